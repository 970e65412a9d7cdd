"""PyTorch's own history of memory, where the collector cannot be used."""
from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from . import output, program, ranges
from .errors import Error, first_line

# The oldest arguments last: PyTorch has changed them three times.
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"context": "all", "stacks": "python", "clear_history": True, "global_record_annotations": True},
    {"context": "all", "stacks": "python", "clear_history": True},
    {"context": "all", "stacks": "python"},
)
DEFAULT_ENTRIES = 1_000_000
# Its Python functions exist in such a build, and the functions of C++ behind them do not.
_WITHOUT_CUDA = "it is built without CUDA"


class _Shared:
    """The state of PyTorch's one history, as far as this package began it."""

    users: set[History] = set()
    has_annotations = False


def _count_annotated() -> None:
    ranges.annotated = sum(user.has_annotations for user in _Shared.users)


class History:
    """The history of the allocator between `start` and `stop`, for one user in this package. The
    last user ends it. A history that the program began itself is used and never ended."""

    def __init__(self) -> None:
        self._memory = self._find()
        self.is_of_the_program = self._is_on() and not _Shared.users
        self.has_annotations = False

    def start(self, max_entries: int | None, *, clear: bool = False) -> None:
        """Begins the history, or uses that of another user. After an exception, it is not used."""
        is_used = not self.is_of_the_program
        starts = not self._is_on() or (clear and is_used)
        try:
            if is_used:
                _Shared.users.add(self)
            if starts:
                self._start(max_entries or DEFAULT_ENTRIES)
            self.has_annotations = is_used and _Shared.has_annotations
            _count_annotated()
        except BaseException:  # Ctrl-C: PyTorch may have begun
            self.stop()
            raise

    @classmethod
    def existing(cls) -> History:
        """What PyTorch has recorded until now, even if it keeps no history. `stop` does nothing."""
        history = cls.__new__(cls)
        history._memory = cls._find()
        history.is_of_the_program = True
        history.has_annotations = False
        return history

    @staticmethod
    def _find() -> Any:
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        memory = getattr(cuda, "memory", None)
        if memory is None or not hasattr(memory, "_record_memory_history"):
            raise Error("PyTorch is not loaded, or it is too old to have a history of memory")
        return memory

    @staticmethod
    def _is_on() -> bool:
        torch = sys.modules["torch"]
        if not torch.cuda.is_initialized():
            return False  # PyTorch would read a device that it does not have yet, and crash
        enabled = getattr(getattr(torch, "_C", None), "_cuda_isHistoryEnabled", None)
        return bool(enabled and enabled())

    def _start(self, max_entries: int) -> None:
        start = self._memory._record_memory_history
        try:
            for arguments in _ARGUMENTS:
                try:
                    start("all", max_entries=max_entries, **arguments)
                except TypeError:
                    continue
                _Shared.has_annotations = "global_record_annotations" in arguments
                return
            start(True, trace_alloc_max_entries=max_entries, trace_alloc_record_context=True)
        except (RuntimeError, TypeError, AssertionError) as error:
            raise Error(f"PyTorch cannot record its history: {first_line(error)}") from None
        except AttributeError:
            raise Error(f"PyTorch cannot record its history: {_WITHOUT_CUDA}") from None

    def write_trace(self, path: str) -> None:
        """Writes the history so far as a trace, through a snapshot beside it. Raises Error. If only
        the import failed, the snapshot stays."""
        snapshot = output.claim(path, ".pickle")
        try:
            self._dump(snapshot)
        except BaseException:  # a full disk, Ctrl-C: a part of a snapshot cannot be read
            os.unlink(snapshot)
            raise
        try:
            program.run(["import", snapshot, "-o", path, "--quiet", "--no-summary"])
        except Error as error:
            raise Error(f"{error}; the snapshot is '{snapshot}'", error.status) from None
        except BaseException:  # Ctrl-C
            with contextlib.suppress(OSError, ValueError):
                print(f"memtrace: '{path}' is not written; the snapshot is '{snapshot}'",
                      file=sys.stderr)
            raise
        with contextlib.suppress(OSError):
            os.unlink(snapshot)

    def _dump(self, snapshot: str) -> None:
        try:
            self._memory._dump_snapshot(snapshot)
        except AttributeError:
            raise Error(f"PyTorch cannot write its history: {_WITHOUT_CUDA}") from None
        except Exception as error:  # of the disk, pickle, host memory; pylint: disable=broad-exception-caught
            raise Error(f"PyTorch cannot write its history: {first_line(error)}") from None

    def stop(self) -> None:
        """Ends the history for this user. Does nothing before `start` and the second time."""
        try:
            if _Shared.users == {self}:
                self._stop()
        finally:
            _Shared.users.discard(self)
            _count_annotated()

    def _stop(self) -> None:
        try:
            self._memory._record_memory_history(None)
        except TypeError:
            self._memory._record_memory_history(False)
        except (RuntimeError, AttributeError, AssertionError):
            pass  # a PyTorch that cannot begin a history has none to end

    def missing(self) -> tuple[str, ...]:
        """What a recording of the collector has, and a snapshot lacks."""
        found = [
            "memory outside of PyTorch's allocator: CUDA context, libraries, calls of the driver",
            "call stacks of blocks that were allocated before the recording",
        ]
        if not self.has_annotations:
            found.append("phases and steps" if not self.is_of_the_program else
                         "phases and steps, unless the program's own history records annotations")
        return tuple(found)
