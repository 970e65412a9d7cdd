"""Records this process from inside: with the collector if CUDA has not started, otherwise with
PyTorch's history of memory."""
from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import output, program, ranges
from .around import Function, around
from .collector import Collector, Refused, is_recorded_already
from .errors import Error
from .history import History

if TYPE_CHECKING:
    from .analysis import Report

COLLECTOR = "collector"
HISTORY = "pytorch-history"
LAUNCHER = "memtrace record"

_COLLECTOR_MISSES = (
    "processes that this one starts",
    "calls of the driver, if CUPTI cannot be used",
)

_STACKS = {"auto": "auto", "none": "none", "python": "python", "native": "native",
           "both": "python,native"}
_PHASES = {name: name for name in ("none", "nvtx", "torch", "autograd")}

_MAX_SAMPLE_HZ = 1000

_lock = threading.Lock()
_active: list[record] = []


def _forked() -> None:
    """The recording belongs to the parent. The child neither ends it nor writes its file."""
    global _lock
    _lock = threading.Lock()
    _active.clear()
    ranges.annotated = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _setting(name: str, text: str, known: Mapping[str, str]) -> str:
    for word in text.split(","):
        if word not in known:
            raise Error(f"{name} '{text}' is unknown: use {', '.join(known)}")
    return ",".join(known[word] for word in text.split(","))


class Recording:
    """What is known about a recording.

    `method`: "collector", "pytorch-history", or "memtrace record" if that has started the process,
    so that nothing is recorded twice. `reason`: why it is not the collector, or "". `missing`: what
    this method does not record. `path`: where the trace will be. `trace`: its path as soon as it is
    complete; None if there is none, for example because the program did not use CUDA."""

    def __init__(self, path: str, method: str, reason: str, missing: Sequence[str]) -> None:
        self.path = path
        self.method = method
        self.reason = reason
        self.missing = tuple(missing)
        self.trace: str | None = None

    def analyze(self, **options: Any) -> Report:
        """Analyzes the trace: `memtrace.analyze`. Raises Error if there is none."""
        from .analysis import analyze

        if self.trace is None:
            raise Error(f"there is no trace '{self.path}': nothing was recorded, or it has not ended")
        return analyze(self.trace, **options)

    def __repr__(self) -> str:
        state = "complete" if self.trace else "no trace"
        return f"<memtrace.Recording of {self.path!r} by {self.method}, {state}>"


class record:
    """Records what the process does with GPU memory into a trace: a context manager, or a decorator.

        with memtrace.record("run.trace.zst") as recording:
            train()
        print(recording.analyze().device.summary.allocated_peak)

    Use `memtrace record COMMAND` if you can start the program: it records more. This function is for
    other programs. If CUDA has not started, it loads the collector into the process. Otherwise it
    records PyTorch's history of memory and imports it. One line on standard error names the
    method and what it does not record; `Recording` has the same facts.

    The file appears when the recording ends, complete, even if the block raises an exception. A file
    with this name is replaced only if it is a finished trace that was there at the start. If another
    recording has written one since, the new trace gets the next free name. A process that the block
    forks does not end the recording.

    `stacks` ("auto", "none", "python", "native", "both"), `free_stacks`, `phases`
    ("nvtx,torch,autograd" or "none") and `sample_hz` are options of `memtrace record`.
    `max_entries` is the size of PyTorch's history. `clear_history` drops the events of a history
    that this package already keeps, for example for `dump_on_oom`. `method` chooses "collector" or
    "pytorch-history" instead of trying both. Raises Error if neither is possible."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        stacks: str = "auto",
        free_stacks: bool = False,
        phases: str = "nvtx,torch",
        sample_hz: int = 10,
        max_entries: int | None = None,
        method: str | None = None,
        clear_history: bool = False,
        quiet: bool = False,
    ) -> None:
        if method not in (None, COLLECTOR, HISTORY):
            raise Error(f"method '{method}' is unknown: use '{COLLECTOR}' or '{HISTORY}'")
        if not isinstance(sample_hz, int) or not 0 <= sample_hz <= _MAX_SAMPLE_HZ:
            raise Error(f"sample_hz is {sample_hz!r}: use a whole number from 0 to {_MAX_SAMPLE_HZ}")
        self._path = os.fsdecode(path)
        self._settings = {
            "MEMTRACE_STACKS": _setting("stacks", stacks, _STACKS)
                               + (",frees" if free_stacks else ""),
            "MEMTRACE_PHASES": _setting("phases", phases, _PHASES),
            "MEMTRACE_SAMPLE_HZ": str(sample_hz),
            "MEMTRACE_QUIET": "1" if quiet else "",
        }
        self._max_entries = max_entries
        self._method = method
        self._clear_history = clear_history
        self._quiet = quiet
        self._whole = ""
        self._replaced: output.Identity | None = None
        self._unfinished = ""
        self._collector: Collector | None = None
        self._history: History | None = None
        self.recording: Recording | None = None

    def __call__(self, function: Function) -> Function:
        """As a decorator: records each call, which replaces the trace of the call before. A
        coroutine or a generator is recorded until it ends."""
        return around(function, self._again)

    def _again(self) -> record:
        copy = record(self._path, max_entries=self._max_entries, method=self._method,
                      clear_history=self._clear_history, quiet=self._quiet)
        copy._settings = self._settings
        return copy

    def __enter__(self) -> Recording:
        with _lock:
            if _active:
                raise Error(f"'{_active[0]._path}' is already being recorded")
            self._whole = output.check(self._path)
            self._replaced = output.identity(self._whole)
            try:
                # Known before it begins, so that Ctrl-C at any line leads to its end.
                _active.append(self)
                self.recording = self._begin()
            except BaseException:
                self._undo()
                raise
        try:
            self._print(self._first_line(self.recording))
        except BaseException:  # Ctrl-C
            self.__exit__(*sys.exc_info())
            raise
        return self.recording

    def _begin(self) -> Recording:
        # A caller that insists on the history gets it: it does not disturb the other recording.
        if self._method != HISTORY and is_recorded_already():
            return Recording(self._whole, LAUNCHER, "memtrace started this process", ())
        reason = ""
        if self._method != HISTORY:
            try:
                self._unfinished = output.unfinished(self._whole)
                self._collector = Collector()
                self._collector.begin(self._unfinished, self._settings)
                return Recording(self._whole, COLLECTOR, "", _COLLECTOR_MISSES)
            except Refused as error:
                self._collector = None
                reason = str(error)
        if self._method == COLLECTOR:
            raise Error(f"cannot record with the collector: {reason}")
        try:
            self._history = History()
            self._history.start(self._max_entries, clear=self._clear_history)
        except Error as error:
            raise Error(f"cannot record: {reason + '; ' if reason else ''}{error}") from None
        return Recording(self._whole, HISTORY, reason, self._history.missing())

    def _first_line(self, recording: Recording) -> str:
        name = self._path
        if recording.method == LAUNCHER:
            return f"'{name}' is not written: memtrace already records this process"
        if recording.method == COLLECTOR:
            return f"recording '{name}' with the collector; not recorded: " + "; ".join(
                recording.missing
            )
        reason = f", because {recording.reason}" if recording.reason else ""
        return (
            f"recording '{name}' with the history of PyTorch{reason}; not recorded: "
            + "; ".join(recording.missing)
        )

    def _print(self, line: str) -> None:
        if not self._quiet:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                print(f"memtrace: {line}", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        with _lock:
            if self not in _active:  # a forked child
                return
            _active.remove(self)
        ranges.restart_steps()
        try:
            self._end()
        except Exception as failure:  # pylint: disable=broad-exception-caught
            if error is None:
                raise
            # The exception of the program is more important.
            self._print(str(failure) or type(failure).__name__)

    def discard(self) -> None:
        """Ends the recording without a trace, as quickly as the method allows."""
        with _lock:
            if self not in _active:  # a forked child
                return
            _active.remove(self)
        ranges.restart_steps()
        self._drop()

    def _undo(self) -> None:
        """Ends what has begun, after an interrupt or an error. That exception goes on."""
        if self in _active:
            _active.remove(self)
        try:
            self._drop()
        except Exception as failure:  # pylint: disable=broad-exception-caught
            self._print(str(failure) or type(failure).__name__)

    def _drop(self) -> None:
        if self._history is not None:
            self._history.stop()
            self._history = None
        elif self._collector is not None and self._end_collector(self._collector):
            os.unlink(self._unfinished)

    def _end(self) -> None:
        assert self.recording is not None
        if self._collector is not None:
            complete = self._end_collector(self._collector)
        elif self._history is not None:
            complete = self._end_history(self._history)
        else:
            return
        if not complete:
            self._print(f"'{self._path}' is not written: the program did not use CUDA")
            return
        try:
            if self.recording.method == COLLECTOR:
                # Names of native frames. Without them the trace is complete all the same.
                with contextlib.suppress(Error):
                    program.run(["recover", "--quiet", "--no-summary", self._unfinished])
        finally:  # also after Ctrl-C
            self.recording.trace = output.publish(self._unfinished, self._whole, self._replaced)
        if self.recording.trace != self._whole:
            self._print(f"'{self._path}' is the trace of another recording that ended earlier; this "
                        f"one is '{self.recording.trace}'")

    def _end_collector(self, collector: Collector) -> bool:
        ended = collector.end()
        self._collector = None
        if ended < 0:
            raise Error(
                f"the trace is not complete yet: when the program has ended, run "
                f"'memtrace recover {self._unfinished}'"
            )
        return ended == 0

    def _end_history(self, history: History) -> bool:
        try:
            self._unfinished = output.unfinished(self._whole)
            history.write_trace(self._unfinished)
        finally:
            self._history = None
            history.stop()
        return True
