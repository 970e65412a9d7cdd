"""memtrace.who_holds: why a tensor is still alive, as chains of names from a root to the tensor.

The search goes from the tensor to what refers to it, breadth first: frames, closures, containers,
attributes, generators and exceptions through Python's garbage collector, and nodes of the autograd
graph through grad_fn. References that only C++ holds are not visible."""
from __future__ import annotations

import gc
import re
import sys
import threading
import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import tensors
from .errors import Error

_MAX_OBJECTS = 200_000
_MAX_CHAINS = 10
_MAX_NODES = 50_000
# The link of a key that may be an attribute.
_KEY = re.compile(r"\['(\w+)'\]")


@dataclass(frozen=True)
class Chain:
    """One way from a root to the tensor. `kind`: of the root, "global" or "local". `links`: what follows the name of the root, for example (".layers", "[3]")."""

    kind: str
    root: str
    links: tuple[str, ...]

    def __str__(self) -> str:
        return self.root + "".join(self.links)


@dataclass(frozen=True)
class Holders:
    """The result of memtrace.who_holds. `tensors`: how many tensor objects show the memory.
    `complete` is False if the search stopped at its limit."""

    chains: tuple[Chain, ...]
    tensors: int
    complete: bool

    def __str__(self) -> str:
        lines = [f"{chain.kind}: {chain}" for chain in self.chains]
        if not self.tensors:
            lines.append("no tensor that Python knows has this memory: C++ holds it, for example "
                         "autograd for backward, or a library")
        elif not self.chains:
            lines.append("no reference was found that Python knows: C++ or an extension holds it, and "
                         "cannot be named")
        if not self.complete:
            lines.append(f"the search stopped after {_MAX_OBJECTS:,} objects")
        return "\n".join(lines)


# ---- names of references ----------------------------------------------------


def _short(value: Any) -> str:
    """A key in words. Only built-in types: repr of others would run the program's code."""
    if type(value) is tuple and len(value) <= 4:
        return f"({', '.join(map(_short, value))})"
    is_plain = type(value) in (str, int, float, bool, bytes, type(None))
    text = repr(value) if is_plain else f"<{type(value).__name__}>"
    return text if len(text) <= 40 else text[:37] + "..."


def _in_mapping(owner: dict[Any, Any], child: Any) -> Iterator[str]:
    for key, value in list(owner.items()):
        if value is child:
            yield f"[{_short(key)}]"
        elif key is child:
            yield ".keys()"


def _in_sequence(owner: Any, child: Any) -> Iterator[str]:
    for index, value in enumerate(owner):
        if value is child:
            yield f"[{index}]"


def _link(owner: Any, child: Any) -> str:
    """Returns how `owner` refers to `child`."""
    if isinstance(owner, dict):
        return next(_in_mapping(owner, child), "[...]")
    if isinstance(owner, (list, tuple, deque)):
        return next(_in_sequence(owner, child), "[...]")
    if isinstance(owner, (set, frozenset)):
        return " (an element of a set)"
    return f".{_attribute(owner, child)}"


def _links(owner: Any, child: Any, links: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the links from `owner`, given those from `child`. The dictionary of an object is no
    link of its own: its keys are the attributes."""
    if type(child) is dict and _own_dictionary(owner) is child:
        return _as_attribute(links)
    if isinstance(owner, threading.local):
        # Each thread has a dictionary, behind a weak reference to the thread.
        first = next((i for i, link in enumerate(links) if _KEY.fullmatch(link)), 0)
        return _as_attribute(links[first:])
    return (_link(owner, child), *links)


def _own_dictionary(owner: Any) -> Any:
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None


def _as_attribute(links: tuple[str, ...]) -> tuple[str, ...]:
    key = _KEY.fullmatch(links[0])
    return (f".{key.group(1)}", *links[1:]) if key else links


def _generator_link(generator: types.GeneratorType[Any, Any, Any], child: Any) -> str:
    frame = generator.gi_frame
    names = [name for name, local in (frame.f_locals.items() if frame else ()) if local is child]
    return f" (variable {names[0]} of a suspended generator)" if names else " (a suspended generator)"


def _function_link(function: types.FunctionType, child: Any) -> str:
    return f".{_attribute(function, child)}"


def _attribute(owner: Any, child: Any) -> str:
    variables = _own_dictionary(owner)
    if isinstance(variables, dict):
        for name, value in list(variables.items()):
            if value is child:
                return str(name)
    for base in type(owner).__mro__:
        for name in _slots(base):
            try:
                if getattr(owner, name) is child:
                    return name
            except Exception:  # pylint: disable=broad-except
                continue
    for name in ("grad", "_grad", "__self__", "__func__", "__wrapped__", "func", "args", "keywords",
                 "__traceback__", "__context__", "__cause__", "_backward_hooks", "__defaults__",
                 "__kwdefaults__", "__closure__"):
        try:
            if getattr(owner, name, None) is child:
                return name
        except Exception:  # pylint: disable=broad-except
            continue
    return f"<{type(owner).__name__}>"


def _slots(base: type) -> tuple[str, ...]:
    slots = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


# ---- roots ------------------------------------------------------------------


def _frame_text(frame: types.FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"


class _Search:
    """A search breadth first, one level at a time: the garbage collector reads the whole heap for
    each question, however many objects the question names."""

    def __init__(self, targets: list[Any], limit: int) -> None:
        self.chains: list[Chain] = []
        self.complete = True
        self._modules: dict[int, str] = {}
        for name, module in list(sys.modules.items()):
            if isinstance(module, types.ModuleType):
                self._modules.setdefault(id(module.__dict__), name)
        # By id of an object: the links from it to the tensor, and the object.
        self._level: dict[int, tuple[tuple[str, ...], Any]] = {id(item): ((), item) for item in targets}
        self._next: dict[int, tuple[tuple[str, ...], Any]] = {}
        self._seen = set(self._level)
        self._limit = limit
        # What this search itself holds is no answer.
        self._own = {id(self), id(self.__dict__), id(targets)}
        self._frames: set[int] = set()
        self._locals: dict[int, list[tuple[str, str]]] = {}
        self._read_frames()

    def _read_frames(self) -> None:
        """Running frames refer to their variables without the garbage collector's knowledge. This
        package's frames hold the question, and are left out."""
        threads = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, running in sys._current_frames().items():
            where = "" if threads.get(ident) == "MainThread" else f", thread {threads.get(ident, ident)}"
            frame: Optional[types.FrameType] = running
            while frame is not None:
                self._frames.add(id(frame))
                if frame.f_globals.get("__name__") != __name__ and frame.f_code.co_name != "<module>":
                    variables = frame.f_locals
                    self._own.add(id(variables))
                    for name, value in list(variables.items()):
                        text = f"{name} in {_frame_text(frame)}{where}"
                        self._locals.setdefault(id(value), []).append((name, text))
                frame = frame.f_back

    def run(self) -> None:
        while self._level and len(self.chains) < _MAX_CHAINS:
            if len(self._seen) > self._limit:
                self.complete = False
                return
            level, self._next = self._level, {}
            self._own |= {id(level), id(self._next)}
            self._local_roots(level)
            values = [value for _, value in level.values()]
            self._own |= {id(values)} | {id(entry) for entry in level.values()}
            owners = gc.get_referrers(*values)
            self._own.add(id(owners))
            for owner in owners:
                self._owner(owner, level)
            self._level = self._next

    def _owner(self, owner: Any, level: dict[int, tuple[tuple[str, ...], Any]]) -> None:
        if id(owner) in self._own or id(owner) in self._frames:
            return
        children = {id(child): child for child in gc.get_referents(owner) if id(child) in level}
        for number, child in children.items():
            self._visit(owner, child, level[number][0])

    def _local_roots(self, level: dict[int, tuple[tuple[str, ...], Any]]) -> None:
        for number, (links, _) in level.items():
            for _, text in self._locals.get(number, ()):
                self._found("local", text, links)

    def _found(self, kind: str, root: str, links: tuple[str, ...]) -> None:
        chain = Chain(kind, root, links)
        if chain not in self.chains:
            self.chains.append(chain)

    def _follow(self, owner: Any, links: tuple[str, ...]) -> None:
        if id(owner) not in self._seen:
            self._seen.add(id(owner))
            self._next[id(owner)] = (links, owner)

    def _visit(self, owner: Any, child: Any, links: tuple[str, ...]) -> None:
        if isinstance(owner, types.FrameType):
            self._ended_frame(owner, child, links)
        elif isinstance(owner, dict) and id(owner) in self._modules:
            self._global(owner, child, links)
        elif isinstance(owner, types.GeneratorType):
            self._follow(owner, (_generator_link(owner, child), *links))
        elif isinstance(owner, types.FunctionType):
            self._follow(owner, (_function_link(owner, child), *links))
        elif isinstance(owner, tuple) and owner and all(type(item) is types.CellType for item in owner):
            # The cells of a closure: the function names the variable.
            self._closure(owner, child, links)
        elif isinstance(owner, types.CellType):
            self._follow(owner, links)
        else:
            self._follow(owner, _links(owner, child, links))

    def _closure(self, cells: tuple[Any, ...], cell: Any, links: tuple[str, ...]) -> None:
        for function in gc.get_referrers(cells):
            if isinstance(function, types.FunctionType) and function.__closure__ is cells:
                position = next(index for index, item in enumerate(cells) if item is cell)
                name = function.__code__.co_freevars[position]
                self._follow(function, (f" (closure variable {name})", *links))

    def _ended_frame(self, frame: types.FrameType, child: Any, links: tuple[str, ...]) -> None:
        for name, local in list(frame.f_locals.items()):
            if local is child:
                self._found("local", f"{name} in {_frame_text(frame)}, which an exception or a "
                            "traceback holds", links)
                return

    def _global(self, owner: dict[str, Any], child: Any, links: tuple[str, ...]) -> None:
        for name, item in list(owner.items()):
            if item is child:
                self._found("global", f"{self._modules[id(owner)]}.{name}", links)


# ---- the autograd graph -----------------------------------------------------


def _saved_by(node: Any) -> Iterator[tuple[str, Any]]:
    for name in dir(node):
        if name.startswith("_saved_"):
            try:
                value = getattr(node, name)
            except RuntimeError:  # freed by backward
                continue
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if tensors.is_tensor(item):
                    yield name, item


def _graph_chains(storages: set[tuple[str, int]]) -> list[tuple[Any, str]]:
    """Returns tensors whose grad_fn leads to a node that saved one of the storages, and the way."""
    found: list[tuple[Any, str]] = []
    visited: set[Any] = set()
    for tensor in tensors.alive():
        queue = deque([tensor.grad_fn] if tensor.grad_fn is not None else [])
        while queue and len(visited) < _MAX_NODES:
            node = queue.popleft()
            if node in visited:
                continue
            visited.add(node)
            for name, saved in _saved_by(node):
                storage = tensors.storage_of(saved)
                if storage is not None and tensors.key_of(storage) in storages:
                    found.append((tensor, f".grad_fn ... {node.name()}.{name}"))
            queue.extend(following for following, _ in node.next_functions if following is not None)
    return found


def _gradient_chains(storages: set[tuple[str, int]]) -> list[tuple[Any, str]]:
    """Returns tensors whose gradient has one of the storages: C++ holds the gradient."""
    found = []
    for tensor in tensors.alive():
        gradient = tensor.grad if tensor.is_leaf else None
        storage = tensors.storage_of(gradient) if gradient is not None else None
        if storage is not None and tensors.key_of(storage) in storages:
            found.append((tensor, ".grad"))
    return found


# ---- the question -----------------------------------------------------------


def _at_address(address: int) -> list[Any]:
    found = []
    for tensor in tensors.alive():
        for _, part in tensors.parts(tensor):
            storage = tensors.storage_of(part)
            if storage is not None and storage.data_ptr() <= address < storage.data_ptr() + storage.nbytes():
                found.append(tensor)
    return found


def _at_site(site: str) -> list[Any]:
    """The tensors in blocks that a line of code allocated, from PyTorch's history of memory."""
    torch = tensors.loaded_torch()
    file, _, line = site.rpartition(":")
    if not file or not line.isdigit():
        raise Error(f"'{site}' is no site: FILE:LINE, for example train.py:13")
    found, has_frames = [], False
    for segment in torch.cuda.memory_snapshot() if torch.cuda.is_available() else ():
        for block in segment["blocks"]:
            frames = block.get("frames") or ()
            has_frames = has_frames or bool(frames)
            if block["state"] == "active_allocated" and any(
                    frame["line"] == int(line) and frame["filename"].endswith(file) for frame in frames):
                found += _at_address(block["address"])
    if not has_frames:
        raise Error("PyTorch has no history of memory: call torch.cuda.memory._record_memory_history() "
                    "before the allocation, or pass a tensor or an address")
    return found


def _same_storage(tensor: Any) -> list[Any]:
    storages = {tensors.key_of(storage) for _, part in tensors.parts(tensor)
                if (storage := tensors.storage_of(part)) is not None}
    return [other for other in tensors.alive() if other is not tensor and any(
        (storage := tensors.storage_of(part)) is not None and tensors.key_of(storage) in storages
        for _, part in tensors.parts(other))]


def who_holds(target: Union[Any, int, str], *, limit: int = _MAX_OBJECTS) -> Holders:
    """Returns what keeps memory alive. `target`: a tensor, an address on a device, or a site such as
    "train.py:13". A tensor stands for all tensors that share its storage. The search looks at `limit`
    objects at most; Ctrl-C ends it."""
    if isinstance(target, str):
        objects = _at_site(target)
    elif isinstance(target, int):
        objects = _at_address(target)
    elif tensors.is_tensor(target):
        objects = [target, *_same_storage(target)]
    else:
        raise Error(f"who_holds takes a tensor, an address or a site, not {type(target).__name__}")
    storages = {tensors.key_of(storage) for tensor in objects for _, part in tensors.parts(tensor)
                if (storage := tensors.storage_of(part)) is not None}
    search = _Search(objects, limit)
    search.run()
    chains = list(search.chains)
    for holder, link in [*_gradient_chains(storages), *_graph_chains(storages)]:
        above = _Search([holder], limit)
        above.run()
        chains += [Chain(chain.kind, chain.root, (*chain.links, link)) for chain in above.chains[:1]]
    return Holders(tuple(chains[:_MAX_CHAINS]), len(objects), search.complete)
