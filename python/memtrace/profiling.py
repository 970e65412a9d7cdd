"""A line profiler of GPU memory: records, and shows the memory of each line of some functions."""
from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Callable, TypeVar, cast

from .errors import Error
from .line_table import DEFAULT_COLUMNS, Code, LineTable, code_of
from .output import remove_folder
from .questions import lines
from .recording import HISTORY, LAUNCHER, record

Function = TypeVar("Function", bound=Callable[..., Any])


def keep_if_used(folder: str) -> None:
    """Removes a temporary folder, unless a recording that failed has left something in it."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)


class LineProfiler:
    """Records between `start` and `stop`, or in a `with` block, and then has the table of the
    functions.

        with memtrace.LineProfiler(train_step) as profiler:
            train_step()
        print(profiler.table())

    Memory is PyTorch's if PyTorch is loaded, else that of the driver. The functions run at full
    speed: the table comes from the call stacks in the recording."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._codes: list[Code] = []
        self._remove: weakref.finalize[..., LineProfiler] | None = None
        self._folder = ""
        self._record: record | None = None
        self._document: Any = None
        for function in functions:
            self.add(function)

    def add(self, function: Callable[..., Any]) -> None:
        """Adds a function to the table. Raises Error if its source cannot be read."""
        code = code_of(function)
        if code not in self._codes:
            self._codes.append(code)

    def start(self) -> None:
        """Begins to record. Raises Error if neither method of `memtrace.record` is possible, or if
        `memtrace record` started this process."""
        if self._record is not None:
            raise Error("this profiler has already started")
        self._folder = tempfile.mkdtemp(prefix="memtrace-")
        self._remove = weakref.finalize(self, remove_folder, self._folder, os.getpid())
        self._record = record(
            os.path.join(self._folder, "lines.trace.zst"), stacks="python", free_stacks=True,
            method=HISTORY if "torch" in sys.modules else None, quiet=True, clear_history=True)
        try:
            if self._record.__enter__().method == LAUNCHER:
                self._record.__exit__()
                raise Error("memtrace started this process: use 'memtrace lines' on its trace")
        except BaseException:
            self._record = None
            self._remove()
            raise

    def stop(self) -> None:
        """Ends the recording and reads the lines."""
        if self._record is None or self._remove is None:
            return
        recorder, self._record = self._record, None
        try:
            recorder.__exit__()
        except BaseException:  # its message names what it has left in the folder
            self._remove.detach()
            keep_if_used(self._folder)
            raise
        try:
            trace = recorder.recording.trace if recorder.recording else None
            if trace and self._codes:
                # By name, a function without events would be an error.
                self._document = lines(trace, all_functions=True)
        finally:
            self._remove()

    def __enter__(self) -> LineProfiler:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None = None,
                 error: BaseException | None = None, trace: TracebackType | None = None) -> None:
        try:
            self.stop()
        except Error as failure:
            if error is None:
                raise
            # The exception of the program is more important.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                print(f"memtrace: no lines are profiled: {failure}", file=sys.stderr)

    def table(self, columns: Sequence[str] = DEFAULT_COLUMNS,
              device: int | None = None) -> LineTable:
        """The lines of the functions on one device, by default the first that has them."""
        return LineTable(self._document, self._codes, columns, device)


class _Session:
    """What the decorator shares: one profiler from the first call to the end of the program."""

    def __init__(self) -> None:
        self.profiler = LineProfiler()
        self._lock = threading.Lock()
        self._is_begun = False
        self._process = 0

    def begin(self) -> None:
        with self._lock:
            if self._is_begun:
                return
            self._is_begun = True
            self._process = os.getpid()
            try:
                self.profiler.start()
            except Error as error:
                print(f"memtrace: no lines are profiled: {error}", file=sys.stderr)
                return
            atexit.register(self._print)

    def _print(self) -> None:
        if os.getpid() != self._process:  # a forked child: the table is that of its parent
            return
        try:
            self.profiler.stop()
            print(self.profiler.table().text())
        except Error as error:
            print(f"memtrace: no lines are profiled: {error}", file=sys.stderr)


_session = _Session()


def profile(function: Function) -> Function:
    """A decorator: when the program ends, prints the memory of each line of the function.

        @memtrace.profile
        def train_step(): ...

    The recording begins with the first call of a decorated function and ends with the program.
    Generators and functions that call each other are possible."""
    _session.profiler.add(function)

    @functools.wraps(function)
    def call(*words: Any, **named: Any) -> Any:
        _session.begin()
        return function(*words, **named)

    return cast(Function, call)
