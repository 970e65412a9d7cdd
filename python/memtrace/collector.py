"""Loads the collector into this process (docs/internals/recorder.md, "A program that records itself")."""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from typing import Any

from . import nvtx, program
from .errors import Error

_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED
_WITHOUT_PYTORCH = 1  # of memtrace_begin
# Settings of a `memtrace record` that started this process without its library.
_ONLY_OF_RECORD = ("MEMTRACE_MANIFEST", "MEMTRACE_IDLE", "MEMTRACE_RING_SECONDS",
                   "MEMTRACE_RING_ABOVE", "MEMTRACE_WITH_ENV")


def is_recorded_already() -> bool:
    """Whether `memtrace record` or `memtrace dry-run` started this process."""
    return bool(os.environ.get("MEMTRACE_OUTPUT")) and hasattr(
        ctypes.CDLL(None), "memtrace_set_mesh"
    )


def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def driver_has_started() -> bool:
    driver = _driver()
    count = ctypes.c_int()
    return driver is not None and driver.cuDeviceGetCount(ctypes.byref(count)) != _NOT_INITIALIZED


def has_context() -> bool:
    """Whether a CUDA context exists: memory may have been allocated."""
    torch_cuda = getattr(sys.modules.get("torch"), "cuda", None)
    is_initialized = getattr(torch_cuda, "is_initialized", None)
    if is_initialized is not None and is_initialized():
        return True
    driver = _driver()
    count, context = ctypes.c_int(), ctypes.c_void_p()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)):
        return False
    if driver.cuCtxGetCurrent(ctypes.byref(context)) == 0 and context.value:
        return True
    flags, active = ctypes.c_uint(), ctypes.c_int()
    for device in range(count.value):
        state = driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        if state or active.value:
            return True
    return False


class Refused(Exception):
    """Why the collector cannot record this process."""


class Collector:
    """The collector in this process, between `begin` and `end`. It records once: later recordings
    are refused."""

    used = False

    def __init__(self) -> None:
        self._library: Any = None
        self._injection = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
        self._before = {name: os.environ.get(name) for name in self._injection}

    def begin(self, output: str, settings: Mapping[str, str]) -> None:
        """Raises Refused if the collector cannot record this process."""
        if Collector.used:
            raise Refused("the collector has already recorded this process once")
        if has_context():
            raise Refused("CUDA has already started")
        try:
            path = program.library()
        except Error as error:
            raise Refused(str(error)) from None
        self._begin(path, output, settings)

    def _begin(self, path: str, output: str, settings: Mapping[str, str]) -> None:
        wanted = {
            **settings,
            **dict.fromkeys(_ONLY_OF_RECORD, ""),
            "MEMTRACE_OUTPUT": output,
            "MEMTRACE_FOLLOW": "none",
            "MEMTRACE_ROOT": str(os.getpid()),
        }
        for name, following in zip(self._injection, ("MEMTRACE_CUDA_NEXT", "MEMTRACE_NVTX_NEXT")):
            wanted[following] = self._before[name] or ""
        kept = {name: os.environ.get(name) for name in wanted}
        started = driver_has_started()
        try:
            os.environ.update(wanted)
            for name in self._injection:
                os.environ[name] = path
            self._load(path, started)
        except BaseException:
            self._restore(self._before)
            raise
        finally:
            # The library has read its settings. Processes that this one starts are not recorded.
            self._restore(kept)
        nvtx.forget()

    def _load(self, path: str, driver_started: bool) -> None:
        # Once it is loaded, it cannot be loaded again with other settings.
        Collector.used = True
        try:
            self._library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            begun = self._library.memtrace_begin()
        except (OSError, AttributeError) as error:
            raise Refused(f"the collector cannot be loaded: {error}") from None
        if begun == 0:
            if driver_started:  # it would have called this when it started
                self._library.InitializeInjection()
            return
        self._library.memtrace_end()
        if begun == _WITHOUT_PYTORCH:
            raise Refused("this release of PyTorch is not known to the collector")
        raise Refused("the collector was loaded before")

    @staticmethod
    def _restore(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def end(self) -> int:
        """Ends the recording: 0 if the trace is complete, 1 if there is none, because nothing was
        recorded, -1 if a part of it is only on its tape. An interrupt may have come before the
        library was loaded, or before it began."""
        try:
            return int(self._library.memtrace_end()) if self._library is not None else 1
        finally:
            self._restore(self._before)
            nvtx.forget()
