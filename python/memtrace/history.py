"""PyTorch's own history of memory, where the collector cannot be used."""
from __future__ import annotations

import sys
from typing import Any

from . import ranges
from .errors import Error

# The oldest arguments last: PyTorch has changed them three times.
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"context": "all", "stacks": "python", "clear_history": True, "global_record_annotations": True},
    {"context": "all", "stacks": "python", "clear_history": True},
    {"context": "all", "stacks": "python"},
)
DEFAULT_ENTRIES = 1_000_000


class History:
    """The history of the allocator from now until `dump`."""

    def __init__(self, max_entries: int | None) -> None:
        self._memory = self._find()
        self.was_on = self._is_on()
        self.has_annotations = False
        if not self.was_on:
            self._start(max_entries or DEFAULT_ENTRIES)
        if self.has_annotations:
            ranges.annotated += 1

    @staticmethod
    def _find() -> Any:
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        memory = getattr(cuda, "memory", None)
        if memory is None or not hasattr(memory, "_record_memory_history"):
            raise Error("PyTorch is not loaded, or it is too old to have a history of memory")
        return memory

    @staticmethod
    def _is_on() -> bool:
        enabled = getattr(getattr(sys.modules["torch"], "_C", None), "_cuda_isHistoryEnabled", None)
        return bool(enabled and enabled())

    def _start(self, max_entries: int) -> None:
        start = self._memory._record_memory_history
        try:
            for arguments in _ARGUMENTS:
                try:
                    start("all", max_entries=max_entries, **arguments)
                except TypeError:
                    continue
                self.has_annotations = "global_record_annotations" in arguments
                return
            start(True, trace_alloc_max_entries=max_entries, trace_alloc_record_context=True)
        except (RuntimeError, TypeError, AssertionError) as error:
            raise Error(f"PyTorch cannot record its history: {_line(error)}") from None

    def dump(self, path: str) -> None:
        """Writes the snapshot and ends the history, unless the program began it."""
        try:
            self._memory._dump_snapshot(path)
        except (OSError, RuntimeError, AssertionError) as error:
            raise Error(f"PyTorch cannot write its history: {_line(error)}") from None
        finally:
            self.stop()

    def stop(self) -> None:
        if self.has_annotations:
            ranges.annotated -= 1
            self.has_annotations = False
        if self.was_on:
            return
        self.was_on = True
        try:
            self._memory._record_memory_history(None)
        except TypeError:
            self._memory._record_memory_history(False)

    def missing(self) -> tuple[str, ...]:
        """What a snapshot does not have, and a recording of the collector has."""
        found = [
            "memory outside of PyTorch's allocator: CUDA context, libraries, calls of the driver",
            "call stacks of blocks that were allocated before the recording",
        ]
        if not self.has_annotations:
            found.append("phases and steps" if not self.was_on else "phases and steps, unless the "
                         "program's own history records annotations")
        return tuple(found)


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
