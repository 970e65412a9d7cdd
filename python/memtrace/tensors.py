"""Tensors, their names in a model, and the storages that hold their bytes.

Nothing here imports torch: a caller passes tensors, so torch is loaded."""
from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from .errors import Error

# In the order in which a report lists them.
KINDS = ("parameters", "gradients", "optimizer state", "buffers", "other tensors")


class Named(NamedTuple):
    """A tensor that a model or an optimizer holds."""

    name: str
    kind: str
    tensor: Any


def loaded_torch() -> Any:
    """Returns torch, or raises if this process has not imported it, or an old one."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        raise Error("torch is not imported in this process, so it has no tensors")
    if not hasattr(torch.Tensor, "untyped_storage"):
        raise Error(f"PyTorch {getattr(torch, '__version__', '?')} is too old: this function needs 2.0 "
                    "or newer")
    return torch


def without_overrides() -> Any:
    """Returns a context manager. Inside, calls and attributes of tensors do not run __torch_function__
    of the program: of subclasses, which may raise, or of a mode such as `with torch.device(...)`."""
    return loaded_torch()._C.DisableTorchFunction()


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor. isinstance would run __class__ of proxies, which may have side
    effects."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(value), torch.Tensor)


def parts(tensor: Any) -> list[tuple[str, Any]]:
    """Returns the tensors with storages that a tensor consists of, with a suffix for the name:
    indices and values of a sparse tensor, the local shard of a DTensor, or the tensor itself."""
    try:
        flatten = getattr(tensor, "__tensor_flatten__", None)
        if flatten is not None:
            return [(f".{name}{suffix}", part) for name in flatten()[0]
                    for suffix, part in parts(getattr(tensor, name))]
        names = _parts_of_layout(tensor.layout)
        return [(f".{name.strip('_')}", getattr(tensor, name)()) for name in names] or [("", tensor)]
    except Exception:  # pylint: disable=broad-except
        return [("", tensor)]  # a subclass that is incomplete: at most it has a storage


def _parts_of_layout(layout: Any) -> tuple[str, ...]:
    """Returns the methods that return the parts of a sparse tensor. Those of COO work for tensors
    that are not coalesced."""
    torch = loaded_torch()
    if layout == torch.sparse_coo:
        return ("_indices", "_values")
    if layout in (torch.sparse_csr, torch.sparse_bsr):
        return ("crow_indices", "col_indices", "values")
    if layout in (torch.sparse_csc, torch.sparse_bsc):
        return ("ccol_indices", "row_indices", "values")
    return ()


def storage_of(tensor: Any) -> Any:
    """Returns the untyped storage, or None: fake, functional and MKL-DNN tensors have none that
    Python can reach."""
    try:
        storage = tensor.untyped_storage()
        if storage.device.type != "meta":  # where the address of a fake tensor makes PyTorch warn
            storage.data_ptr()
    except Exception:  # pylint: disable=broad-except
        return None
    return storage


def key_of(storage: Any) -> tuple[str, int]:
    """Returns a key that no other storage has while this one is alive."""
    return str(storage.device), int(storage._cdata)


def keys_of(tensor: Any) -> set[tuple[str, int]]:
    """Returns the keys of the storages of a tensor."""
    storages = (storage_of(part) for _, part in parts(tensor))
    return {key_of(storage) for storage in storages if storage is not None}


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Returns the shape, or () for nested tensors, which have none."""
    try:
        return tuple(int(size) for size in tensor.shape)
    except Exception:  # pylint: disable=broad-except
        return ()


def blocks() -> Iterator[tuple[str, int, Any]]:
    """Yields device, address and description of each allocated block of PyTorch's CUDA allocator."""
    torch = loaded_torch()
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return
    for segment in torch.cuda.memory_snapshot():
        address = int(segment["address"])
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                yield f"cuda:{segment['device']}", address, block
            address += int(block["size"])


def _gradient(tensor: Any) -> Any:
    # PyTorch warns if .grad is read from a tensor that is not a leaf.
    if not tensor.is_leaf:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tensor.grad
    return tensor.grad


def _with_gradient(name: str, kind: str, tensor: Any) -> Iterator[Named]:
    yield Named(name, kind, tensor)
    gradient = _gradient(tensor)
    if gradient is not None:
        yield Named(f"{name}.grad", "gradients", gradient)


def of_model(model: Any) -> Iterator[Named]:
    """Yields parameters, their gradients, and buffers. A tensor that has several names comes once
    for each."""
    for name, tensor in _with_duplicates(model.named_parameters):
        yield from _with_gradient(name, "parameters", tensor)
    for name, tensor in _with_duplicates(model.named_buffers):
        yield from _with_gradient(name, "buffers", tensor)


def _with_duplicates(method: Any) -> list[tuple[str, Any]]:
    """Models may replace named_parameters by a function that lacks an argument of PyTorch's."""
    try:
        return list(method(remove_duplicate=False))
    except TypeError:
        return list(method())


def _in_state(name: str, value: Any) -> Iterator[Named]:
    """The state of an optimizer holds tensors, also in lists and dictionaries."""
    if is_tensor(value):
        yield Named(name, "optimizer state", value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _in_state(f"{name}.{key}", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _in_state(f"{name}[{index}]", item)


def of_optimizer(optimizer: Any, names: dict[int, str]) -> Iterator[Named]:
    """Yields what an optimizer holds. `names`: of tensors by id; a parameter that is not there is
    named after its group."""
    known = dict(names)
    for number, group in enumerate(optimizer.param_groups):
        for index, tensor in enumerate(group["params"]):
            if id(tensor) not in known:
                known[id(tensor)] = f"param_groups[{number}].params[{index}]"
                yield from _with_gradient(known[id(tensor)], "parameters", tensor)
    for owner, state in optimizer.state.items():
        yield from _in_state(known.get(id(owner), "state"), state)


def named(models: list[Any], optimizers: list[Any]) -> list[Named]:
    """Returns all named tensors. With several models, names begin with the number of the model."""
    found: list[Named] = []
    names: dict[int, str] = {}
    for number, model in enumerate(models):
        prefix = f"model{number}." if len(models) > 1 else ""
        for item in of_model(model):
            found.append(item._replace(name=prefix + item.name))
            names.setdefault(id(item.tensor), prefix + item.name)
    for optimizer in optimizers:
        found += of_optimizer(optimizer, names)
    return found


def alive() -> list[Any]:
    """Returns all tensors that Python's garbage collector tracks. A tensor that C++ made and holds,
    such as a result inside an operator that autograd saved, has no object for Python."""
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, loaded_torch().Tensor)}
    return [value for value in objects if type(value) in kinds]
