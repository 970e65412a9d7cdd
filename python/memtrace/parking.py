"""memtrace.parked: moves a model, its gradients and its optimizer's state to host memory for a while.

A storage, not a tensor, is what moves: its bytes are copied to the host, then the storage is resized
to zero, which frees its block. On the way back it gets its size and its bytes again. Every tensor of
it, named or not, therefore keeps its shape, its strides, its hooks and what it shares. Only the
address changes.

A thread of the block, its keeper, does all of this; the thread of the program only waits for it.
Python runs handlers of signals in the main thread only, and an exception that is sent to a thread
reaches that thread only. So nothing interrupts the keeper, whatever handlers the program has."""
from __future__ import annotations

import _thread
import contextlib
import functools
import os
import queue
import sys
import threading
import time
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import host_copies, tensors
from .around import Function, around
from .errors import Error, NotRestored, first_line
from .guards import Guards
from .host_copies import HostCopy, View
from .units import text_of_bytes

_POLL_SECONDS = 0.5
_CLAIM_SECONDS = 0.005


def _check_model(model: Any) -> None:
    """FSDP1 resizes the storages of its flat parameters itself, and would find them empty."""
    for name, module in model.named_modules():
        if type(module).__name__ == "FullyShardedDataParallel":
            raise Error(f"'{name or 'the model'}' is wrapped in FullyShardedDataParallel, which "
                        "resizes the storages of its parameters itself; fully_shard (FSDP2) works")


def _check_graphs() -> None:
    """A CUDA graph reads and writes at the addresses of its capture."""
    import gc

    torch = tensors.loaded_torch()
    graph = getattr(torch.cuda, "CUDAGraph", None)
    count = sum(type(value) is graph for value in gc.get_objects()) if graph is not None else 0
    if count:
        raise Error(f"CUDA graphs are alive ({count}): they would use the old addresses after the way "
                    "back. If none of them uses these tensors, pass allow_graphs=True")


# ---- requests ---------------------------------------------------------------

# Only keepers take it, and only for moments: no copy runs under it.
_mutex = threading.Lock()
# What keeps the bytes alive: all blocks that are open or could not be restored.
_blocks: set[_Block] = set()
# The storages that are on the host or on their way, by key. A storage that several blocks use is one
# entry: it comes back with the last of them.
_copies: dict[tuple[str, int], HostCopy] = {}
# Whether this thread is a keeper.
_local = threading.local()


def _forked() -> None:
    """The blocks belong to the parent: the child has neither their keepers nor the GPU."""
    global _mutex
    _mutex = threading.Lock()
    _blocks.clear()
    _copies.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Request:
    """Asks a keeper to begin its block, which is the first request, or to end it."""

    def __init__(self) -> None:
        self.is_done = False
        self.error: Optional[BaseException] = None
        self._gate = threading.Lock()
        self._gate.acquire()

    def finish(self, error: Optional[BaseException]) -> None:
        self.error = error
        self.is_done = True
        self._gate.release()

    def wait(self) -> None:
        """Returns when it is done, and at the latest after a moment."""
        self._gate.acquire(timeout=_POLL_SECONDS)


def restore_all() -> None:
    """Brings back everything that is parked, also of blocks that are still open. Raises the first
    NotRestored, after all blocks were tried."""
    failure: Optional[BaseException] = None
    for block in list(_blocks):
        try:
            block.end()
        except BaseException as error:  # pylint: disable=broad-except
            failure = failure or error
    if failure is not None:
        raise failure


# ---- blocks -----------------------------------------------------------------


class _Block:
    """One `with` block: what it moved, and the keeper that moves it."""

    def __init__(self, owner: parked) -> None:
        self._owner = owner
        self.kept: list[tuple[str, str]] = []
        self.moved_bytes = 0
        self._is_started = self._is_launched = self._is_over = self._is_unwanted = False
        self._has_begun = False
        self._streams: list[Any] = []
        self._modules: list[Any] = []
        self._views: list[View] = []
        self._copies: list[HostCopy] = []
        self._guards = Guards()
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._keeper = threading.Lock()  # locked while the keeper lives
        self._process = os.getpid()
        self._leaver: tuple[Any, ...] = ()

    @property
    def is_open(self) -> bool:
        return self._is_started and not self._is_over

    # ---- the thread of the program ------------------------------------------

    def leaver(self) -> Callable[..., None]:
        """Returns the function that a `with` statement calls at its end, and that only the statement
        refers to. An interrupt before the first line of that call makes the statement drop it. Then
        the first of two callbacks, which is C code, sends a request, and the second one waits."""
        leave = functools.partial(_leave, self)
        # Python calls the newest callback first.
        self._leaver = (weakref.ref(leave, self._dropped), weakref.ref(leave, self._requests.put))
        return leave

    def forget_leaver(self) -> None:
        self._leaver = ()

    def is_entered(self) -> bool:
        """Whether a `with` statement has this block, and has not begun it."""
        return not self._is_started and bool(self._leaver) and self._leaver[0]() is not None

    def _dropped(self, _: Any) -> None:
        """Python prints what a callback raises. The exception that made the statement drop the
        function goes on."""
        try:
            self.end()
        except BaseException:  # pylint: disable=broad-except
            pass

    def start(self) -> None:
        """Parks everything, or parks nothing and raises."""
        with tensors.without_overrides():
            self._find()
        request = _Request()
        self._requests.put(request)
        self._is_started = True
        _blocks.add(self)
        interrupt = self._wait(request)
        if interrupt is not None or request.error is not None:
            self.end(interrupt or request.error)
            raise interrupt or request.error or AssertionError

    def end(self, cause: Optional[BaseException] = None) -> None:
        """Brings everything back and removes the guards. Does nothing the second time. Exceptions
        that arrive meanwhile take effect at the end. `cause`: the exception that ends the block."""
        if not self.is_open or os.getpid() != self._process:
            return
        self._is_unwanted = True
        request = _Request()
        self._requests.put(request)
        if getattr(_local, "is_keeper", False):
            return  # the garbage collector ran there: to wait could be to wait for itself
        interrupt = self._wait(request)
        if self.is_open and request.error is not None:
            raise self._not_restored(request.error) from (interrupt or cause or request.error)
        if interrupt is not None:
            raise interrupt

    def _wait(self, request: _Request) -> Optional[BaseException]:
        """Waits for the keeper, and starts it if there is none. Returns the last exception that
        arrived meanwhile, or None."""
        interrupt: Optional[BaseException] = None
        while True:
            try:
                while not (request.is_done or self._is_over or sys.is_finalizing()):
                    if not self._keeper.locked():
                        self._launch()
                    request.wait()
                return interrupt
            except BaseException as error:  # pylint: disable=broad-except
                interrupt = error
                self._is_unwanted = True

    def _launch(self) -> None:
        """A second keeper waits for the first one, so one more does no harm."""
        try:
            _thread.start_new_thread(self._keep, ())
            self._is_launched = True
        except RuntimeError as error:
            if self._is_launched:
                return  # the first one comes later: the machine is busy
            self._is_over = True
            _blocks.discard(self)
            raise Error(f"parked cannot start a thread: {first_line(error)}") from None

    def _not_restored(self, error: BaseException) -> NotRestored:
        out = [copy for copy in self._copies if copy.is_out]
        where = f", beginning with '{out[0].name}'" if out else ""
        return NotRestored(
            f"{text_of_bytes(sum(copy.size_bytes for copy in out))} could not be restored{where}: "
            f"{first_line(error)}. All bytes are still in host memory. If the GPU lacks memory, free "
            "some and call restore() of the attribute `parked` of this exception. If the GPU has "
            "failed, save(path) of this exception writes them to a file", self._owner)

    def _find(self) -> None:
        """Lists the modules, the named tensors and their storages. This may run code of the program,
        so it runs in a thread of the program."""
        seen: set[tuple[str, int]] = set()
        self._modules = [module for model in self._owner._models for module in model.modules()]
        for item in tensors.named(self._owner._models, self._owner._optimizers):
            for suffix, part in tensors.parts(item.tensor):
                storage = tensors.storage_of(part)
                name = item.name + suffix
                if storage is None:
                    self.kept.append((name, "it has no storage that Python can reach"))
                    continue
                key = tensors.key_of(storage)
                self._views.append(View.of(name, part, key))
                is_on_host = storage.device.type == "cpu" and not host_copies.is_on_gpu(storage)
                if key not in seen and not is_on_host:
                    seen.add(key)
                    self._copies.append(HostCopy(name, storage))
        self._streams = host_copies.streams({copy.storage.device for copy in self._copies})

    def save(self, path: Any) -> list[str]:
        if not self.is_open:
            raise Error("nothing is parked: use torch.save")
        return host_copies.save(path, self._views, {copy.key: copy for copy in self._copies})

    # ---- the keeper ---------------------------------------------------------

    def _keep(self) -> None:
        _local.is_keeper = True
        with self._keeper:
            while not self._is_over:
                request = self._requests.get()
                error: Optional[BaseException] = None
                try:
                    self._serve()
                except BaseException as caught:  # pylint: disable=broad-except
                    error = caught
                if isinstance(request, _Request):
                    request.finish(error)

    def _serve(self) -> None:
        """Parks, which is the first request, or restores."""
        begins, self._has_begun = not self._has_begun, True
        with tensors.without_overrides(), contextlib.ExitStack() as stack:
            for stream in self._streams:
                stack.enter_context(tensors.loaded_torch().cuda.stream(stream))
            if begins:
                self._park()
            else:
                self._restore()

    def _claim(self) -> None:
        """Waits until no other block moves one of the storages, and makes them known."""
        while True:
            with _mutex:
                copies = [_copies.get(copy.key, copy) for copy in self._copies]
                if all(copy.mover in (None, self) for copy in copies):
                    self._copies = copies
                    for copy in copies:
                        _copies[copy.key] = copy
                        copy.mover = self
                    return
            time.sleep(_CLAIM_SECONDS)

    def _release(self) -> None:
        with _mutex:
            for copy in self._copies:
                copy.mover = None
                if not copy.holders:
                    _copies.pop(copy.key, None)

    def _park(self) -> None:
        """Copies everything first: no storage is freed before all bytes are on the host."""
        self._claim()
        try:
            movable = self._hold()
            pin = host_copies.may_pin([int(copy.storage.nbytes()) for copy in movable],
                                      self._owner._pin)
            host_copies.wait({copy.storage.device for copy in movable})
            for copy in movable:
                self._check_wanted()
                copy.fill(pin)
            for copy in movable:
                self._check_wanted()
                copy.free()
                self.moved_bytes += copy.size_bytes
            if self._owner._empty_cache and movable:
                tensors.loaded_torch().cuda.empty_cache()
        finally:
            self._release()

    def _check_wanted(self) -> None:
        if self._is_unwanted:
            raise Error("the objects were restored before all of them were parked")

    def _hold(self) -> list[HostCopy]:
        """Adds the guards. Returns what this block moves: not what another one has moved already."""
        shared = host_copies.shared_storages()
        movable = []
        with _mutex:
            for copy in list(self._copies):
                reason = host_copies.refusal(copy.storage, shared) if copy.host is None else None
                if copy.host is None and (reason is not None or not copy.storage.nbytes()):
                    if copy.storage.nbytes():
                        self.kept.append((copy.name, reason or ""))
                    self._copies.remove(copy)
                    _copies.pop(copy.key, None)
                    continue
                if copy.host is None:
                    movable.append(copy)
                copy.holders.add(self)
                copy.guards.append(self._guards)
                self._guards.hold(copy)
            self._guards.hold(self)
            self._guard()
        return movable

    def _guard(self) -> None:
        for module in self._modules:
            self._guards.add_module(module)
        for optimizer in self._owner._optimizers:
            self._guards.add_optimizer(optimizer)
        keys = {copy.key for copy in self._copies}
        for view in self._views:
            if view.key in keys:
                self._guards.add_tensor(view.name, view.tensor)
        for copy in self._copies:
            self._guards.add_storage(copy.name, copy.storage)

    def _restore(self) -> None:
        """Continues where a failure left off. Host copies stay until the GPU has all bytes."""
        self._claim()
        try:
            mine = [copy for copy in self._copies if copy.holders <= {self}]
            for copy in mine:
                copy.restore()
            host_copies.wait({copy.storage.device for copy in mine if copy.host is not None})
            self._finish()
        finally:
            self._release()

    def _finish(self) -> None:
        with _mutex:
            for copy in self._copies:
                copy.holders.discard(self)
                if not copy.holders:
                    copy.host = None
                    for guards in copy.guards:
                        guards.settle(copy)
                    copy.guards.clear()
            self._guards.settle(self)
        self._release()
        self._views, self._copies, self._modules = [], [], []
        self._is_over = True
        _blocks.discard(self)


# ---- the context manager ----------------------------------------------------


def _leave(block: _Block, _: Any = None, value: Optional[BaseException] = None, *__: Any) -> None:
    try:
        block.end(value)
    except NotRestored:
        block.forget_leaver()  # the exception reports it
        raise
    block.forget_leaver()


class _Exit:
    """`__exit__` of a `parked`. A `with` statement looks it up before it enters the block."""

    def __get__(self, owner: Optional[parked], kind: Any = None) -> Callable[..., None]:
        return self if owner is None else owner._leaver()

    def __call__(self, owner: parked, *arguments: Any) -> None:
        owner._leaver()(*arguments)  # contextlib.ExitStack looks it up at the class


class parked:  # pylint: disable=invalid-name
    """`with memtrace.parked(model, optimizer):` frees the GPU memory of parameters, gradients,
    buffers and state, and restores all of it at the end, also after an exception.

    Inside, these tensors have no memory: a forward pass of the model, a step of the optimizer, and
    copies of both raise. `moved_bytes` is what was freed; `kept` lists (name, reason) of what could
    not move. If the GPU cannot take the bytes back, NotRestored is raised and nothing is lost:
    `restore()` of its attribute `parked` tries again, and its method `save(path)` needs no GPU.
    `memtrace.parking.restore_all()` restores what an interrupt has left."""

    def __init__(self, *objects: Any, pin: bool = True, empty_cache: bool = True,
                 allow_graphs: bool = False) -> None:
        self._models = [value for value in objects if hasattr(value, "named_parameters")]
        self._optimizers = [value for value in objects if hasattr(value, "param_groups")]
        if len(self._models) + len(self._optimizers) != len(objects):
            raise Error("parked takes models (torch.nn.Module) and optimizers (torch.optim.Optimizer)")
        self._pin, self._empty_cache, self._allow_graphs = pin, empty_cache, allow_graphs
        self._block: Optional[_Block] = None
        # By thread: the block that its `with` statement is about to enter.
        self._entering: dict[int, _Block] = {}

    @property
    def kept(self) -> list[tuple[str, str]]:
        return self._block.kept if self._block is not None else []

    @property
    def moved_bytes(self) -> int:
        return self._block.moved_bytes if self._block is not None else 0

    def _leaver(self) -> Callable[..., None]:
        if self._block is not None and self._block.is_open:
            return functools.partial(_leave, self._block)
        block = self._entering[_thread.get_ident()] = _Block(self)
        return block.leaver()

    def __enter__(self) -> parked:
        if self._block is not None and self._block.is_open:
            raise Error("this `parked` is in use: make another one for a second `with`")
        for model in self._models:
            _check_model(model)
        if not self._allow_graphs:
            _check_graphs()
        block = self._entering.pop(_thread.get_ident(), None)
        if block is None or not block.is_entered():
            block = _Block(self)
        self._block = block
        block.start()
        return self

    if TYPE_CHECKING:
        def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                     trace: Optional[TracebackType]) -> None: ...
    else:
        __exit__ = _Exit()

    def __call__(self, function: Function) -> Function:
        """As a decorator: the objects are parked while the function runs."""
        return around(function, lambda: parked(
            *self._models, *self._optimizers, pin=self._pin, empty_cache=self._empty_cache,
            allow_graphs=self._allow_graphs))

    def restore(self) -> None:
        """Brings everything back. Does nothing the second time. Ctrl-C and other exceptions take
        effect after the last byte."""
        if self._block is not None:
            self._block.end()

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Writes the named tensors to a file, as {name: tensor}; torch.load reads it. It uses the
        copies on the host, so it needs no GPU for what was moved. The file appears when it is
        whole. Returns a line for each tensor that could not be read."""
        if self._block is None:
            raise Error("nothing is parked: use torch.save")
        return self._block.save(path)
