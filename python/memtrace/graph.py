"""The tensors that the graph of autograd holds, and gradients: C++ holds them, so Python's garbage
collector does not see them."""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from . import references, tensors

_MAX_NODES = 50_000
_RAW = "_raw"


def _in_raw(raw: Any) -> Iterator[Any]:
    """Yields what a node saved, without the hooks of saved tensors. Those may compute the tensor
    again (checkpoints) or copy it to the GPU. PyTorch before 2.7 has no way around them, so what it
    saved is not searched."""
    if not hasattr(raw, "unpack_hook"):
        return
    data = raw.data
    for item in data if type(data) in (tuple, list) else (data,):
        if tensors.is_tensor(item):
            yield item


def _saved_by(node: Any) -> Iterator[tuple[str, Any]]:
    for name in dir(node):
        if not name.startswith(f"{_RAW}_saved_"):
            continue
        try:
            value = getattr(node, name)
        except RuntimeError:  # freed by backward
            continue
        for raw in value if isinstance(value, (list, tuple)) else (value,):
            for tensor in _in_raw(raw):
                yield name[len(_RAW):], tensor
    # What a torch.autograd.Function keeps as attributes of its context.
    attributes = references.own_dictionary(node)
    for name, value in list(attributes.items()) if type(attributes) is dict else ():
        if tensors.is_tensor(value):
            yield name, value


def saved(storages: set[tuple[str, int]], limit: int) -> tuple[list[tuple[Any, str]], bool]:
    """Returns at most `limit` tensors whose grad_fn leads to a node that saved one of the storages,
    with the way, and whether the whole graph was searched."""
    found: list[tuple[Any, str]] = []
    visited: set[Any] = set()
    for tensor in tensors.alive():
        queue = deque([tensor.grad_fn] if tensor.grad_fn is not None else [])
        while queue:
            node = queue.popleft()
            if node in visited:
                continue
            if len(visited) >= _MAX_NODES or len(found) >= limit:
                return found, False
            visited.add(node)
            for name, item in _saved_by(node):
                link = f".grad_fn ... {node.name()}.{name}"
                known = any(other is tensor and text == link for other, text in found)
                if not known and not storages.isdisjoint(tensors.keys_of(item)):
                    found.append((tensor, link))
            queue.extend(following for following, _ in node.next_functions if following is not None)
    return found, True


def gradients(storages: set[tuple[str, int]]) -> list[tuple[Any, str]]:
    """Returns tensors whose gradient has one of the storages."""
    found = []
    for tensor in tensors.alive():
        gradient = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
        if gradient is not None and not storages.isdisjoint(tensors.keys_of(gradient)):
            found.append((tensor, ".grad"))
    return found
