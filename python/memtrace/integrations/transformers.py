"""A callback for the Trainer of Hugging Face Transformers, and of TRL, which uses it."""
from __future__ import annotations

from collections.abc import Collection
from typing import Any

from transformers import TrainerCallback

from ..dumps import DEFAULT_ENTRIES
from ..program import Path
from .training import Training, peaks


class MemtraceCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Marks steps and the optimizer in recordings, writes a trace when memory runs out and at the
    end of chosen steps, and adds peaks to the log of the trainer.

        trainer = Trainer(..., callbacks=[MemtraceCallback("oom")])

    `folder`: where traces go; None: none. `steps`: numbers of optimizer steps, from 0. `log`:
    whether to add peaks. Loggers that the trainer calls before its callbacks, such as W&B, get the
    peaks only if the callback is first: `MemtraceCallback("oom").attach(trainer)`."""

    def __init__(self, folder: Path | None = None, *, steps: Collection[int] = (),
                 log: bool = True, max_entries: int = DEFAULT_ENTRIES) -> None:
        self._training = Training(folder, steps, max_entries)
        self._log = log

    @property
    def traces(self) -> list[str]:
        return self._training.traces

    def attach(self, trainer: Any) -> MemtraceCallback:
        """Adds the callback to a trainer, or moves it, before its other callbacks."""
        callbacks = trainer.callback_handler.callbacks
        callbacks[:] = [self, *(callback for callback in callbacks if callback is not self)]
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._training.begin()

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._training.begin_step(state.global_step)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._training.begin_phase("optimizer")

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._training.end_phase("optimizer")

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._training.end_step(state.global_step - 1)  # the trainer has counted it

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        # Called after each batch of an evaluation: it belongs to no training step.
        self._training.end_phases()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        found = peaks() if self._log else {}
        if logs is not None:
            logs.update(found)
        if state.log_history:
            state.log_history[-1].update(found)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._training.end()
