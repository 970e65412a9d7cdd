"""A trace of what PyTorch's allocator did until memory ran out, written before the process dies."""
from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import Any

from . import output, program
from .collector import is_recorded_already
from .errors import Error, first_line
from .history import History

_LOG = logging.getLogger("memtrace")
# An entry with a Python stack takes about 1 KB of host memory, as long as the program runs.
DEFAULT_ENTRIES = 100_000
# The variables with the rank of a process, by launcher: torchrun, Open MPI, MPICH and Slurm.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


class Dumps:
    """Writes traces of PyTorch's history into a folder, one for each failed request at most
    `max_traces` times, and one for each call of `write`. `traces` are the paths."""

    def __init__(self, folder: str | os.PathLike[str], max_entries: int, max_traces: int) -> None:
        self.folder = os.fspath(folder)
        self.traces: list[str] = []
        self.is_recorded_elsewhere = is_recorded_already()
        self._max_entries = max_entries
        self._max_traces = max_traces
        self._failures = 0
        # Reentrant: what runs while a trace is written may allocate and fail.
        self._lock = threading.RLock()
        self._history: History | None = None
        if not self.is_recorded_elsewhere:
            self._history = History()
            self._history.start(max_entries)

    def write(self, name: str) -> str | None:
        """Writes the history so far to `name`.trace.zst in the folder and returns its path, or None
        after `stop` or if memtrace itself started this process. Raises Error if that fails."""
        return self._write(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(str(self.folder), f"{name}.trace.zst")

    def _write(self, path: str) -> str | None:
        with self._lock:
            if self._history is None:
                return None
            path = output.check(path)
            replaced = output.identity(path)
            unfinished = output.unfinished(path)
            self._history.write_trace(unfinished)
            path = output.publish(unfinished, path, replaced)
            self.traces.append(path)
            return path

    def failed(self) -> None:
        """A request of memory has failed: the exception of the program is next. Nothing may escape
        from here, because the caller is the allocator."""
        with self._lock:
            self._failures += 1
            failure = self._failures
        if failure > self._max_traces:
            return
        try:
            # A file of another process or program keeps its name: this one gets the next number.
            path = self._write(output.free(self._path(f"oom-{rank_and_process()}")))
            if path:
                _LOG.error("GPU memory ran out; trace: %s\n%s", path,
                           program.first_lines(["analyze", path]))
        except Exception as error:  # pylint: disable=broad-exception-caught
            with contextlib.suppress(Exception):  # a handler of the log may be the program's
                _LOG.error("GPU memory ran out, and no trace could be written: %s", error)

    def stop(self) -> None:
        """Ends the history. Failures after this are not recorded."""
        with self._lock:
            if self._history:
                self._history.stop()
            self._history = None
        if self in _observed:
            _observed.remove(self)

    def resume(self) -> None:
        """Begins another history after `stop`. Without `stop`, does nothing. Raises Error."""
        with self._lock:
            if self._history is None and not self.is_recorded_elsewhere:
                history = History()
                history.start(self._max_entries)
                self._history = history
                _observed.append(self)

    def __enter__(self) -> Dumps:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.stop()


def rank_and_process() -> str:
    """Part of the name of a trace: "rank3-pid4711", or "pid4711" outside of a launcher."""
    for name in _RANKS:
        rank = os.environ.get(name, "")
        if rank.isascii() and rank.isdecimal():
            return f"rank{rank}-pid{os.getpid()}"
    return f"pid{os.getpid()}"


_observed: list[Dumps] = []
_attached = False


def _observe(*_: Any) -> None:
    for dumps in list(_observed):
        dumps.failed()


def dump_on_oom(folder: str | os.PathLike[str], *, max_entries: int = DEFAULT_ENTRIES,
                max_traces: int = 3) -> Dumps:
    """From now on, if a request of PyTorch's allocator fails, writes a trace into the folder before
    the exception reaches the program, and the first lines of its analysis to the log "memtrace".

        memtrace.dump_on_oom("oom")

    The name of the trace has the rank and the process: oom-rank3-pid4711.trace.zst. A program that
    catches the exception and continues gets at most `max_traces` traces. `max_entries` bounds the
    events that are kept. If `memtrace record` started this process, its trace has the failure, and
    no other one is written. Call it after the device of the process is set. The result ends the
    history with `stop()`, and writes a trace at any time with `write(name)`. Raises Error without
    PyTorch."""
    global _attached
    try:
        import torch
    except ImportError as error:
        raise Error(f"PyTorch cannot be imported: {first_line(error)}") from None
    dumps = Dumps(folder, max_entries, max_traces)
    if dumps.is_recorded_elsewhere:
        _LOG.info("memtrace already records this process: no traces are written to %s",
                  dumps.folder)
        return dumps
    if not _attached:
        # PyTorch cannot detach an observer, so all calls share one.
        try:
            torch._C._cuda_attach_out_of_memory_observer(_observe)
        except (AttributeError, RuntimeError) as error:
            dumps.stop()
            raise Error(f"PyTorch reports no failed requests: {first_line(error)}") from None
        _attached = True
    _observed.append(dumps)
    return dumps
