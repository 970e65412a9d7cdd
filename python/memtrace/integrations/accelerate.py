"""Marks and traces for a training loop with Hugging Face Accelerate, which has no callbacks."""
from __future__ import annotations

import functools
import weakref
from collections.abc import Collection
from typing import Any, Callable

from ..dumps import DEFAULT_ENTRIES
from ..program import Path
from ..ranges import phase
from .training import Training, peaks


class Watch:
    """What `watch` returns. `traces`: those that were written. `end()` ends the last step and the
    history; `accelerator.end_training()` calls it also."""

    def __init__(self, accelerator: Any, training: Training, log: bool) -> None:
        self._accelerator = accelerator
        self._training = training
        self._number = 0
        # Weak: accelerator.free_memory() drops optimizers, and their memory with them.
        self._optimizers: list[weakref.ref[Any]] = []
        accelerator.backward = _in_phase("backward", accelerator.backward)
        accelerator.prepare = self._then(accelerator.prepare, self._find_optimizers)
        accelerator.end_training = self._then(accelerator.end_training, self.end)
        if log:
            accelerator.log = self._with_peaks(accelerator.log)
        self._find_optimizers()
        training.begin()
        training.begin_step(0)

    @property
    def traces(self) -> list[str]:
        return self._training.traces

    def end(self) -> None:
        self._training.end()

    @staticmethod
    def _then(function: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*words: Any, **named: Any) -> Any:
            result = function(*words, **named)
            then()
            return result

        return call

    def _find_optimizers(self) -> None:
        """Wraps `step` of optimizers that `prepare` has made since the last call."""
        for optimizer in getattr(self._accelerator, "_optimizers", ()):
            if not any(optimizer is known() for known in self._optimizers):
                known = weakref.ref(optimizer)
                self._optimizers.append(known)
                optimizer.step = self._step_of(_weak(optimizer.step, known), known)

    def _step_of(self, function: Callable[..., Any],
                 optimizer: weakref.ref[Any]) -> Callable[..., Any]:
        in_phase = _in_phase("optimizer", function)

        @functools.wraps(function)
        def call(*words: Any, **named: Any) -> Any:
            if not self._accelerator.sync_gradients:  # gradients accumulate: no step yet
                return function(*words, **named)
            result = in_phase(*words, **named)
            # A step ends with the last optimizer of the program.
            if optimizer is self._last():
                self._training.end_step(self._number)
                self._number += 1
                self._training.begin_step(self._number)
            return result

        return call

    def _last(self) -> weakref.ref[Any] | None:
        self._optimizers = [known for known in self._optimizers if known() is not None]
        return self._optimizers[-1] if self._optimizers else None

    def _with_peaks(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(values: dict[str, Any], *words: Any, **named: Any) -> Any:
            return function({**values, **peaks()}, *words, **named)

        return call


def _weak(function: Callable[..., Any], owner: weakref.ref[Any]) -> Callable[..., Any]:
    """A method that does not keep its object alive: the object holds it, which would be a cycle."""
    if getattr(function, "__self__", None) is not owner():
        return function
    plain: Callable[..., Any] = getattr(function, "__func__")

    @functools.wraps(plain)
    def call(*words: Any, **named: Any) -> Any:
        return plain(owner(), *words, **named)

    return call


def _in_phase(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*words: Any, **named: Any) -> Any:
        with phase(name):
            return function(*words, **named)

    return call


def watch(accelerator: Any, folder: Path | None = None, *, steps: Collection[int] = (),
          log: bool = True, max_entries: int = DEFAULT_ENTRIES) -> Watch:
    """Marks steps, backward and the optimizer of a loop in recordings, writes a trace when memory
    runs out and at the end of chosen steps, and adds peaks to `accelerator.log`.

        accelerator = Accelerator()
        memtrace.integrations.accelerate.watch(accelerator, "oom")

    `folder`: where traces go; None: none. `steps`: numbers of optimizer steps, from 0."""
    return Watch(accelerator, Training(folder, steps, max_entries), log)
