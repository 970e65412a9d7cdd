"""Process groups of PyTorch that only look like some (the backend "fake"): one process plans a job of many.

They have no communicator, so that the device of the real job needs more: what NCCL takes there for each group that a
collective uses is taken from the simulated device as well, outside of PyTorch's allocator."""
import threading

from . import notes, simulated

_lock = threading.Lock()
_seen = {} # id: backend, which lives on so that no other one gets its id


def uses(backend, tensor):
    """Whether BACKEND is a fake one. The first time with a TENSOR on the device, NCCL would make its communicator."""
    if type(backend).__name__ != "FakeProcessGroup":
        return False
    if tensor is not None and tensor.is_cuda and backend.size() > 1:
        with _lock:
            is_new = id(backend) not in _seen
            _seen[id(backend)] = backend
        if is_new:
            _take(backend)
    return True


def _take(backend):
    simulated.communicator(backend.size(), backend.rank())
    notes.fact("fake_groups", len(_seen))
    notes.write()
