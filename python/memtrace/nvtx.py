"""A copy of NVTX, as programs in C contain it, that talks to memtrace's collector.

At its first call a copy loads the library that NVTX_INJECTION64_PATH names, and passes it a function
that returns a table of slots. The library writes its functions into the slots. The interface is in
the header of NVTX; collector/inject/nvtx/nvtx_abi.h describes the part that is used. Tools other
than memtrace's collector may rely on other parts of it, so they are left to the copy of PyTorch."""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, NamedTuple

COLLECTOR = "libmemtrace-inject.so"

_CALLBACKS = 1  # the export table with the slots
_CORE = 1  # the module with the functions below
_SLOTS = 16
_MARK, _START, _END, _PUSH, _POP = 2, 5, 7, 9, 11

_lock = threading.Lock()


class Functions(NamedTuple):
    mark: Callable[[bytes], None]
    start: Callable[[bytes], int]
    end: Callable[[int], None]
    push: Callable[[bytes], int]
    pop: Callable[[], int]


class _Copy:
    """The memory that the tool has pointers to. It lives as long as the process."""

    def __init__(self) -> None:
        self.slots = (ctypes.c_void_p * _SLOTS)()
        self.table = (ctypes.c_void_p * (_SLOTS + 1))()
        for index in range(1, _SLOTS):
            self.table[index] = ctypes.addressof(self.slots) + index * ctypes.sizeof(ctypes.c_void_p)
        module_table = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_uint)
        )
        self.module_table = module_table(self._module_table)

        class Callbacks(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("module_table", module_table)]

        self.callbacks = Callbacks(ctypes.sizeof(Callbacks), self.module_table)
        self.export_table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(self._export_table)

    def _module_table(self, module: int, table: Any, size: Any) -> int:
        if module != _CORE:
            return 0
        table[0] = ctypes.addressof(self.table)
        size[0] = _SLOTS
        return 1

    def _export_table(self, number: int) -> int | None:
        return ctypes.addressof(self.callbacks) if number == _CALLBACKS else None

    def functions(self) -> Functions | None:
        text, number, size = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64
        kinds = {
            _MARK: ctypes.CFUNCTYPE(None, text),
            _START: ctypes.CFUNCTYPE(size, text),
            _END: ctypes.CFUNCTYPE(None, size),
            _PUSH: ctypes.CFUNCTYPE(number, text),
            _POP: ctypes.CFUNCTYPE(number),
        }
        if not all(self.slots[index] for index in kinds):
            return None
        return Functions(*[kind(self.slots[index] or 0) for index, kind in kinds.items()])


_copies: list[_Copy] = []
_known: tuple[Functions | None] | None = None


def functions() -> Functions | None:
    """The functions of memtrace's collector, or None if it does not record this process."""
    if _known is None:
        _attach()
    return _known[0] if _known else None


def forget() -> None:
    """Looks for the collector again at the next call."""
    global _known
    _known = None


def is_other_tool() -> bool:
    """Whether a tool other than memtrace's collector reads ranges."""
    path = os.environ.get("NVTX_INJECTION64_PATH", "")
    return bool(path) and os.path.basename(path) != COLLECTOR


def _attach() -> None:
    global _known
    with _lock:
        if _known is not None:
            return
        path = os.environ.get("NVTX_INJECTION64_PATH", "")
        if os.path.basename(path) != COLLECTOR:
            _known = (None,)
            return
        try:
            begin = ctypes.CDLL(path).InitializeInjectionNvtx2
        except (OSError, AttributeError):
            _known = (None,)
            return
        copy = _Copy()
        _copies.append(copy)
        begin.argtypes = [ctypes.c_void_p]
        begin.restype = ctypes.c_int
        attached = begin(ctypes.cast(copy.export_table, ctypes.c_void_p))
        _known = (copy.functions() if attached else None,)
