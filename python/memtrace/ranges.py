"""Phases and steps: named ranges of a program.

A range goes to each place that can record it: memtrace's collector or another NVTX tool, and, while
PyTorch's profiler or its history of memory records annotations, a `record_function` of PyTorch."""
from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import Any, Callable

from . import nvtx
from .around import Function, around

# Counts the recordings that read record_function ranges (history.py).
annotated = 0


def _text(name: str) -> bytes:
    return name.replace("\0", " ").encode("utf-8", "backslashreplace")


def _profiler_runs() -> bool:
    torch = sys.modules.get("torch")
    enabled = getattr(getattr(torch, "autograd", None), "_profiler_enabled", None)
    return bool(enabled and enabled())


def _collector_reads_scopes() -> bool:
    """Whether the collector also records the scopes of PyTorch, so that a range would be recorded
    twice."""
    return "torch" in os.environ.get("MEMTRACE_PHASES", "nvtx,torch").split(",")


def _torch_range(name: str) -> Any:
    """A record_function, if it would be recorded, else None."""
    if not annotated and not _profiler_runs():
        return None
    profiler = getattr(sys.modules.get("torch"), "profiler", None)
    make = getattr(profiler, "record_function", None)
    return make(name) if make else None


def _torch_nvtx() -> Any:
    """The NVTX of PyTorch, if another tool than memtrace's collector wants ranges, else None."""
    if not nvtx.is_other_tool():
        return None
    return getattr(getattr(sys.modules.get("torch"), "cuda", None), "nvtx", None)


class _Range:
    """A range that is open, and how to close it. Nested ranges end in order; others may overlap."""

    def __init__(self, name: str, nested: bool) -> None:
        self._end: list[Callable[[], Any]] = []
        scope = _torch_range(name) if nested else None
        functions = nvtx.functions()
        if functions and not (scope is not None and _collector_reads_scopes()):
            self._open(functions, _text(name), nested)
        elif not functions:
            self._open_in_torch(name, nested)
        if scope is not None:
            scope.__enter__()
            self._end.append(lambda: scope.__exit__(None, None, None))

    def _open(self, functions: nvtx.Functions, name: bytes, nested: bool) -> None:
        if nested:
            functions.push(name)
            self._end.append(functions.pop)
        else:
            number = functions.start(name)
            self._end.append(lambda: functions.end(number))

    def _open_in_torch(self, name: str, nested: bool) -> None:
        torch_nvtx = _torch_nvtx()
        if torch_nvtx is None:
            return
        try:
            if nested:
                torch_nvtx.range_push(name)
                self._end.append(torch_nvtx.range_pop)
            else:
                number = torch_nvtx.range_start(name)
                self._end.append(lambda: torch_nvtx.range_end(number))
        except RuntimeError:
            pass  # PyTorch without CUDA has no NVTX

    def close(self) -> None:
        while self._end:
            self._end.pop()()

    def __enter__(self) -> _Range:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class phase:
    """A named range of the program: a context manager, or a decorator.

        with memtrace.phase("forward"):
            ...

        @memtrace.phase("load batch")
        def load(): ...

    Without a recorder it does nothing, and costs about two microseconds. Threads may share an object,
    but a range ends in the thread in which it began. Coroutines and generators may interleave, so a
    decorated one gets ranges that may overlap others; PyTorch's profiler does not see those."""

    def __init__(self, name: str) -> None:
        self.name = name
        # By thread, the innermost last: other threads have ranges of their own.
        self._open: dict[int, list[_Range]] = {}

    def __enter__(self) -> phase:
        opened = _Range(self.name, nested=True)
        self._open.setdefault(threading.get_ident(), []).append(opened)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        thread = threading.get_ident()
        opened = self._open.get(thread)
        if not opened:  # another thread began it, and only that one can end it
            return
        opened.pop().close()
        if not opened:
            del self._open[thread]

    def __call__(self, function: Function) -> Function:
        return around(function, lambda: _Range(self.name, nested=True),
                      lambda: _Range(self.name, nested=False))


class _Thread(threading.local):
    """The steps of a thread."""

    def __init__(self) -> None:
        self.next_number = 0
        self.open: step | None = None


_thread = _Thread()


class step:
    """Begins a step, and ends the step that this thread began before.

        for batch in batches:
            memtrace.step()
            ...

    As a context manager it also ends the step, so that work between steps belongs to none:

        with memtrace.step():
            ...

    The range is called `step#0`, `step#1`, ...: a name with a number that `memtrace analyze`
    recognizes as a step. `number` continues a run that was interrupted."""

    def __init__(self, number: int | None = None, name: str = "step") -> None:
        end_step()
        self.number = _thread.next_number if number is None else number
        _thread.next_number = self.number + 1
        # record_function ranges nest, and a step begins anywhere, so only the collector overlaps.
        self._range = _Range(f"{name}#{self.number}", nested=bool(annotated))
        _thread.open = self

    def __enter__(self) -> step:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._range.close()
        if _thread.open is self:
            _thread.open = None


def end_step() -> None:
    """Ends the step of this thread, if there is one."""
    if _thread.open is not None:
        _thread.open.close()


def restart_steps() -> None:
    """The next step of this thread is number 0, if it is not numbered otherwise."""
    end_step()
    _thread.next_number = 0
