"""A callback for the Trainer of Lightning, as `lightning.pytorch` or `pytorch_lightning`."""
from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..dumps import DEFAULT_ENTRIES
from ..program import Path
from .training import Training, peaks

if TYPE_CHECKING:
    from lightning.pytorch import Callback
elif "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class MemtraceCallback(Callback):  # type: ignore[misc,unused-ignore]
    """Marks steps, forward, backward, the optimizer and validation in recordings, writes a trace
    when memory runs out and at the end of chosen steps, and logs peaks.

        trainer = Trainer(..., callbacks=[MemtraceCallback("oom")])

    `folder`: where traces go; None: none. `steps`: numbers of training batches, from 0. `log`:
    whether to log peaks with the logger of the trainer."""

    def __init__(self, folder: Path | None = None, *, steps: Collection[int] = (),
                 log: bool = True, max_entries: int = DEFAULT_ENTRIES) -> None:
        self._training = Training(folder, steps, max_entries)
        self._log = log
        self._number = 0

    @property
    def traces(self) -> list[str]:
        return self._training.traces

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any,
                             batch_idx: int) -> None:
        self._training.begin_step(self._number)
        self._training.begin_phase("forward")

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._training.end_phases()
        self._training.begin_phase("backward")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._training.end_phases()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._training.end_phases()
        self._training.begin_phase("optimizer")

    def on_before_zero_grad(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._training.end_phase("optimizer")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any,
                           batch_idx: int) -> None:
        self._training.end_step(self._number)
        self._number += 1
        found = peaks() if self._log else {}
        if found:
            pl_module.log_dict(found)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.end_phases()
        self._training.begin_phase("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end_phases()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._training.end()
