"""Storages whose bytes are on the host, for memtrace.parked, and files of them."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import host_memory, tensors
from .errors import Error, first_line
from .units import text_of_bytes

if TYPE_CHECKING:
    from .guards import Guards
    from .parking import _Block

_WHOLE_TYPES = {"quint8": "uint8", "qint8": "int8", "qint32": "int32"}


class HostCopy:
    """One storage, and its bytes on the host while `host` is not None. `name` is that of its first
    tensor. Only a keeper (parking.py) changes it, and only one at a time: `mover`."""

    def __init__(self, name: str, storage: Any) -> None:
        self.name, self.storage, self.key = name, storage, tensors.key_of(storage)
        self.size_bytes = 0
        self.host: Any = None
        # The bytes are on the host only.
        self.is_out = False
        self.holders: set[_Block] = set()
        self.guards: list[Guards] = []
        self.mover: Optional[_Block] = None

    def fill(self, pin: bool) -> None:
        """Copies the bytes to the host. The copies block: when they return, all bytes are there.
        Copies that do not block make PyTorch record an event when pinned memory is freed, which ends
        the process if the GPU has failed in between."""
        host = _new_bytes(int(self.storage.nbytes()), pin)
        host.copy_(as_bytes(self.storage))
        self.host, self.size_bytes = host, int(self.storage.nbytes())

    def free(self) -> None:
        # An interrupt after the next line copies the same bytes back.
        self.is_out = True
        self.storage.resize_(0)

    def restore(self) -> None:
        if self.is_out:
            if self.storage.nbytes() != self.size_bytes:
                self.storage.resize_(self.size_bytes)
            as_bytes(self.storage).copy_(self.host)
            self.is_out = False


def as_bytes(storage: Any) -> Any:
    """Returns a tensor of bytes over all of a storage."""
    torch = tensors.loaded_torch()
    view = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return view.set_(storage, 0, (int(storage.nbytes()),))


def _new_bytes(size: int, pin: bool) -> Any:
    torch = tensors.loaded_torch()
    try:
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=pin)
    except RuntimeError:
        # The system limits pinned memory; pageable memory is slower and otherwise the same.
        return torch.empty(size, dtype=torch.uint8, device="cpu")


def wait(devices: Iterable[Any]) -> None:
    """Another stream may still use a storage that is about to be freed or read. Only the devices of
    the storages: to synchronize another device would make a context there."""
    for device in devices:
        if device.type == "cuda":
            tensors.loaded_torch().cuda.synchronize(device)


def streams(devices: Iterable[Any]) -> list[Any]:
    """Returns the current streams of this thread. PyTorch assigns memory to the stream for which it
    was allocated: what comes back must belong to the stream that uses it."""
    current = tensors.loaded_torch().cuda
    return [current.current_stream(device) for device in devices if device.type == "cuda"]


# ---- what can move ----------------------------------------------------------


def is_on_gpu(storage: Any) -> bool:
    return bool(storage.device.type == "cuda")


def refusal(storage: Any, shared: dict[tuple[str, int], str]) -> Optional[str]:
    """Why a storage cannot move, or None. `shared`: the result of shared_storages()."""
    if not is_on_gpu(storage):
        return f"it is on {storage.device}, not on a GPU"
    if not storage.resizable():
        return "its memory belongs to another library or process"
    return shared.get(tensors.key_of(storage))


def shared_storages() -> dict[tuple[str, int], str]:
    """Returns the storages whose address something else uses, with the reason: storages that tensors
    of this process have at the same addresses, for example through DLPack, and those that
    torch.multiprocessing has sent. Other users of an address cannot be seen from Python."""
    ranges, found = [], {}
    for key, storage in _storages():
        if is_on_gpu(storage) and storage.nbytes():
            start = int(storage.data_ptr())
            ranges.append((str(storage.device), start, start + int(storage.nbytes()), key))
    sent = _sent()
    last = ("", 0, 0, ("", 0))  # the range before that ends last
    for device, start, end, key in sorted(ranges):
        if key[1] in sent:
            found[key] = "it was sent to another process"
        if device == last[0] and start < last[2]:
            for one in (key, last[3]):
                found.setdefault(one, "another storage has the same memory, for example through DLPack")
        if device != last[0] or end > last[2]:
            last = (device, start, end, key)
    return found


def _storages() -> Iterator[tuple[tuple[str, int], Any]]:
    seen = set()
    for tensor in tensors.alive():
        for _, part in tensors.parts(tensor):
            storage = tensors.storage_of(part)
            if storage is not None and tensors.key_of(storage) not in seen:
                seen.add(tensors.key_of(storage))
                yield tensors.key_of(storage), storage


def _sent() -> set[int]:
    reductions = sys.modules.get("torch.multiprocessing.reductions")
    cache = getattr(reductions, "shared_cache", {})
    return {getattr(value, "cdata", 0) for value in list(cache.values())}


def may_pin(sizes: list[int], pin: bool) -> bool:
    """Compares the free memory of the host with the sum of the copies. Returns whether they can be
    pinned: PyTorch rounds the size of pinned memory up to a power of two. Raises Error if there is
    too little memory for them."""
    needed = sum(sizes)
    rounded = sum(1 << (size - 1).bit_length() for size in sizes)
    free = host_memory.available()
    if free is not None and free[0] < rounded and pin:
        # Pinned memory that PyTorch keeps for later counts as used.
        empty_cache = getattr(tensors.loaded_torch()._C, "_host_emptyCache", None)
        if empty_cache is not None:
            empty_cache()
            free = host_memory.available()
    if free is not None and free[0] < needed:
        raise Error(f"parked needs {text_of_bytes(needed)} of host memory, and {free[1]} has "
                    f"{text_of_bytes(free[0])} free: free host memory, raise its limit, or park fewer "
                    "objects")
    return pin and (free is None or free[0] >= rounded)


# ---- files ------------------------------------------------------------------


class View(NamedTuple):
    """How a named tensor shows its storage, at the time of the copy."""

    name: str
    tensor: Any
    key: Optional[tuple[str, int]]
    dtype: Any
    layout: Optional[tuple[tuple[int, ...], tuple[int, ...], int]]  # shape, stride, offset

    @classmethod
    def of(cls, name: str, tensor: Any, key: Optional[tuple[str, int]]) -> View:
        try:
            layout = tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset())
        except Exception:  # pylint: disable=broad-except
            layout = None  # a nested tensor: its storage is one row
        return cls(name, tensor, key, tensor.dtype, layout)

    def on_host(self, copies: dict[tuple[str, int], HostCopy]) -> Any:
        """Returns the tensor on the host. Uses no GPU if its storage was copied."""
        copy = copies.get(self.key) if self.key is not None else None
        if copy is None or copy.host is None:
            return self.tensor.detach().cpu()
        torch = tensors.loaded_torch()
        kind = getattr(torch, _WHOLE_TYPES.get(str(self.dtype).rpartition(".")[2], ""), self.dtype)
        flat = torch.empty(0, dtype=kind, device="cpu")
        shape, stride, offset = self.layout or ((copy.size_bytes // flat.element_size(),), (1,), 0)
        flat.set_(copy.host.untyped_storage(), offset, shape, stride)
        if self.tensor.is_conj():
            flat = flat.conj().resolve_conj()
        return torch._neg_view(flat).resolve_neg() if self.tensor.is_neg() else flat


def save(path: Any, views: Iterable[View], copies: dict[tuple[str, int], HostCopy]) -> list[str]:
    """Writes {name: tensor} with torch.save; the file appears when it is whole. Returns a line for
    each tensor that cannot be read."""
    found: dict[str, Any] = {}
    missing = []
    for view in views:
        try:
            tensor = view.on_host(copies)
        except Exception as error:  # pylint: disable=broad-except
            missing.append(f"{view.name}: {first_line(error)}")
            continue
        name, number = view.name, 2
        while name in found:  # two optimizers with one parameter
            name, number = f"{view.name} ({number})", number + 1
        found[name] = tensor
    _write(os.fspath(path), found)
    return missing


def _write(path: str, value: Any) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    # Not mkstemp: others may read a checkpoint as far as the umask allows it.
    part = os.path.join(folder, f".memtrace-{os.getpid()}-{os.urandom(8).hex()}")
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            tensors.loaded_torch().save(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
