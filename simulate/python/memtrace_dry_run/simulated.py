"""Functions of the simulated libraries that no vendor's library has."""
import ctypes

import torch


def answers():
    """The function that says what the next copy to the host brings, or None."""
    return _typed("memtrace_simulated_answer", [ctypes.c_void_p, ctypes.c_size_t])


def function(name, numbers):
    """The function NAME, which takes NUMBERS of int, or None."""
    return _typed(name, [ctypes.c_int] * numbers)


def communicator(ranks, rank):
    """Makes one of NCCL, for good. A failure is that of the device, which is full."""
    make = _find("memtrace_simulated_communicator")
    if make is not None:
        make.argtypes, make.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
        if make(ranks, rank) != 0:
            raise RuntimeError("NCCL error: unhandled cuda error: no memory for a communicator of %d ranks" % ranks)


def _typed(name, types):
    found = _find(name)
    if found is not None:
        found.argtypes, found.restype = types, None
    return found


def _find(name):
    for library in [None] + _runtimes():
        try:
            return getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
    return None


def _runtimes():
    if torch.version.cuda is None:
        return []
    name = "libcudart.so.%s" % torch.version.cuda.split(".")[0]
    return [name, name + ".0"]
