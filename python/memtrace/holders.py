"""memtrace.who_holds: why a tensor is still alive, as chains of names from a root to the tensor.

The search goes from the tensor to what refers to it, breadth first: frames, closures, containers,
attributes, generators and exceptions through Python's garbage collector, and nodes of the autograd
graph through grad_fn. References that only C++ holds are not visible."""
from __future__ import annotations

import gc
import sys
import threading
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import graph, references, tensors
from .errors import Error, printable
from .pages import ShownAsText

_MAX_OBJECTS = 200_000
_MAX_CHAINS = 10
_MAX_LINKS = 64
# gc.get_referrers compares each reference of the heap with each object of the question.
_MAX_QUESTION = 16
_OWN_MODULES = frozenset((__name__, graph.__name__, references.__name__, tensors.__name__))


@dataclass(frozen=True)
class Chain:
    """One way from a root to the tensor. `kind`: of the root, "global" or "local". `links`: what
    follows the name of the root, for example (".layers", "[3]")."""

    kind: str
    root: str
    links: tuple[str, ...]

    def __str__(self) -> str:
        # Names of attributes, threads and modules may have any characters.
        return printable(self.root + "".join(self.links))


@dataclass(frozen=True, repr=False)
class Holders(ShownAsText):
    """The result of memtrace.who_holds. `tensors`: how many tensor objects show the memory.
    `complete` is False if the search stopped at its limit. `is_allocated`: whether PyTorch's
    allocator has a block at the address in question, None if the question was no address on a GPU."""

    chains: tuple[Chain, ...]
    tensors: int
    complete: bool
    is_allocated: Optional[bool] = None

    def __str__(self) -> str:
        lines = [f"{chain.kind}: {chain}" for chain in self.chains]
        if not self.tensors and self.is_allocated is False:
            lines.append("no tensor has this memory, and PyTorch's allocator has no block there: it is "
                         "free, or belongs to other code")
        elif not self.tensors:
            lines.append("no tensor object of Python has this memory: C++ holds it, for example "
                         "autograd for backward, or a library")
        elif not self.chains and self.complete:
            lines.append("no reference from Python was found: C++ code or an extension holds the "
                         "tensor")
        if not self.complete:
            lines.append(f"the search stopped at its limit, {_MAX_CHAINS} chains, {_MAX_LINKS} links or "
                         "the number of objects: more references may exist")
        return "\n".join(lines)


# ---- the search -------------------------------------------------------------


Level = dict[int, tuple[tuple[str, ...], Any]]


class _Search:
    """A search breadth first, one level at a time: the garbage collector reads the whole heap for
    each question, however many objects the question names."""

    def __init__(self, targets: list[Any], limit: int) -> None:
        self.chains: list[Chain] = []
        self.complete = True
        self._modules: dict[int, str] = {}
        for name, module in list(sys.modules.items()):
            if references.is_a(module, types.ModuleType):
                self._modules.setdefault(id(references.own_dictionary(module)), name)
        # By id of an object: the links from it to the tensor, and the object.
        self._level: Level = {id(item): ((), item) for item in targets}
        self._next: Level = {}
        self._seen = set(self._level)
        self._limit = limit
        # References that the search itself holds are not part of the answer.
        self._own = {id(self), id(self.__dict__), id(targets)}
        self._frames: set[int] = set()
        self._locals: dict[int, list[str]] = {}
        self._read_frames()

    def _read_frames(self) -> None:
        """The garbage collector does not report the variables of running frames. This package's
        frames hold the question, and are left out."""
        # The properties of Thread itself: the program may have replaced them in its own kinds.
        name, number = (vars(threading.Thread)[key].fget for key in ("name", "ident"))
        threads = {number(thread): name(thread) for thread in threading.enumerate()}
        for ident, running in sys._current_frames().items():
            where = "" if threads.get(ident) == "MainThread" else f", thread {threads.get(ident, ident)}"
            frame: Optional[types.FrameType] = running
            while frame is not None:
                self._frames.add(id(frame))
                if not _is_own(frame) and frame.f_code.co_name != "<module>":
                    for name, value in references.variables(frame):
                        text = f"{name} in {references.frame_text(frame)}{where}"
                        self._locals.setdefault(id(value), []).append(text)
                frame = frame.f_back

    def run(self) -> None:
        for _ in range(_MAX_LINKS):
            if not self._level or len(self.chains) >= _MAX_CHAINS:
                break
            level, self._next = self._level, {}
            self._own |= {id(level), id(self._next)}
            self._local_roots(level)
            owners = self._owners(level)
            self._own.add(id(owners))
            for owner in owners:
                if len(self._seen) > self._limit:
                    self.complete = False
                    return
                self._owner(owner, level)
            self._level = self._next
        self.complete = not self._level

    def _owners(self, level: Level) -> list[Any]:
        """Returns all objects that refer to one of the level. A question about few objects is
        fastest in C. About many it would take hours, and Ctrl-C would not end it."""
        self._own |= {id(entry) for entry in level.values()}
        if len(level) > _MAX_QUESTION:
            return [owner for owner in gc.get_objects()
                    if not level.keys().isdisjoint(map(id, gc.get_referents(owner)))]
        values = [value for _, value in level.values()]
        self._own.add(id(values))
        return gc.get_referrers(*values)

    def _owner(self, owner: Any, level: Level) -> None:
        if id(owner) in self._own or id(owner) in self._frames:
            return
        children = {id(child): child for child in gc.get_referents(owner) if id(child) in level}
        for number, child in children.items():
            if id(owner) in self._seen:  # the position of each one in a long list takes too long to find
                return
            self._visit(owner, child, level[number][0])

    def _local_roots(self, level: Level) -> None:
        for number, (links, _) in level.items():
            for text in self._locals.get(number, ()):
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
        if type(owner) is types.FrameType:
            self._ended_frame(owner, child, links)
        elif id(owner) in self._modules:
            self._global(owner, child, links)
        elif type(owner) is tuple and type(child) is types.CellType:
            # The cells of a closure: the function names the variable.
            self._closure(owner, child, links)
        else:
            self._follow(owner, references.links_of(owner, child, links))

    def _closure(self, cells: tuple[Any, ...], cell: Any, links: tuple[str, ...]) -> None:
        position = next(index for index, item in enumerate(cells) if item is cell)
        for function in gc.get_referrers(cells):
            if type(function) is types.FunctionType and function.__closure__ is cells:
                name = function.__code__.co_freevars[position]
                self._follow(function, (f" (closure variable {name})", *links))

    def _ended_frame(self, frame: types.FrameType, child: Any, links: tuple[str, ...]) -> None:
        if _is_own(frame):
            return
        for name, local in references.variables(frame):
            if local is child:
                self._found("local", f"{name} in {references.frame_text(frame)}, which an exception "
                            "or a traceback holds", links)
                return

    def _global(self, owner: dict[str, Any], child: Any, links: tuple[str, ...]) -> None:
        for name, item in list(owner.items()):
            if item is child:
                self._found("global", f"{self._modules[id(owner)]}.{name}", links)


def _is_own(frame: types.FrameType) -> bool:
    name = dict.get(frame.f_globals, "__name__")
    return type(name) is str and name in _OWN_MODULES


# ---- the question -----------------------------------------------------------


def _at_address(address: int) -> list[Any]:
    found = []
    for tensor in tensors.alive():
        for _, part in tensors.parts(tensor):
            storage = tensors.storage_of(part)
            if storage is not None and storage.device.type != "meta" and (
                    storage.data_ptr() <= address < storage.data_ptr() + storage.nbytes()):
                found.append(tensor)
                break
    return found


def _is_allocated(address: int) -> Optional[bool]:
    blocks = [(start, block["size"]) for _, start, block in tensors.blocks()]
    return any(start <= address < start + size for start, size in blocks) if blocks else None


def _at_site(site: str) -> list[Any]:
    """The tensors in blocks that a line of code allocated, from PyTorch's history of memory."""
    file, _, line = site.rpartition(":")
    if not file or not line.isdigit():
        raise Error(f"'{site}' is not a site: write FILE:LINE, for example train.py:13")
    addresses, has_frames = [], False
    for _, address, block in tensors.blocks():
        frames = block.get("frames") or ()
        has_frames = has_frames or bool(frames)
        if any(frame["line"] == int(line) and f"/{frame['filename']}".endswith(f"/{file.lstrip('/')}")
               for frame in frames):
            addresses.append(address)
    if not has_frames:
        raise Error("PyTorch has no history of memory: call torch.cuda.memory._record_memory_history() "
                    "before the allocation, or pass a tensor or an address")
    if not addresses:
        raise Error(f"no memory that is allocated now comes from '{site}'")
    return _unique(tensor for address in addresses for tensor in _at_address(address))


def _unique(objects: Iterable[Any]) -> list[Any]:
    return list({id(item): item for item in objects}.values())


def _same_storage(tensor: Any) -> list[Any]:
    keys = tensors.keys_of(tensor)
    return [other for other in tensors.alive()
            if other is not tensor and not keys.isdisjoint(tensors.keys_of(other))]


def who_holds(target: Union[Any, int, str], *, limit: int = _MAX_OBJECTS) -> Holders:
    """Returns what keeps memory alive. `target`: a tensor, an address on a device, or a site such as
    "train.py:13". A tensor means all tensors that share its storage. The search looks at `limit`
    objects at most; Ctrl-C ends it."""
    is_allocated = None
    with tensors.without_overrides():
        if tensors.is_tensor(target):
            objects = [target, *_same_storage(target)]
        elif type(target) is str:
            objects = _at_site(target)
        elif type(target) is int:
            objects, is_allocated = _at_address(target), _is_allocated(target)
        else:
            raise Error(f"who_holds takes a tensor, an address or a site, not {type(target).__name__}")
        return _search(objects, limit, is_allocated)


def _search(objects: list[Any], limit: int, is_allocated: Optional[bool]) -> Holders:
    storages = {key for tensor in objects for key in tensors.keys_of(tensor)}
    search = _Search(objects, limit)
    search.run()
    chains, complete = list(search.chains), search.complete
    in_graph, is_whole = graph.saved(storages, _MAX_CHAINS)
    above: dict[int, list[Chain]] = {}
    for holder, link in [*graph.gradients(storages), *in_graph]:
        if len(chains) >= _MAX_CHAINS:
            is_whole = False
            break
        if id(holder) not in above:
            roots = _Search([holder], limit)
            roots.run()
            above[id(holder)] = roots.chains[:1]
        chains += [Chain(chain.kind, chain.root, (*chain.links, link)) for chain in above[id(holder)]]
    return Holders(tuple(chains[:_MAX_CHAINS]), len(objects), complete and is_whole, is_allocated)
