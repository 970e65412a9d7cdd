"""memtrace.parked: moves a model, its gradients and its optimizer's state to host memory for a while.

A storage, not a tensor, is what moves: its bytes are copied to the host, then the storage is resized
to zero, which frees its block. On the way back it gets its size and its bytes again. Every tensor of
it, named or not, therefore keeps its shape, its strides, its hooks and what it shares. Only the
address changes."""
from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Callable, Optional

from . import tensors
from .around import Function, around
from .errors import Error, NotRestored, first_line
from .units import text_of_bytes


class _Parked:
    """One storage on the host. `name` is that of its first tensor."""

    def __init__(self, name: str, storage: Any, host: Any) -> None:
        self.name, self.storage, self.host = name, storage, host
        self.size_bytes = int(storage.nbytes())

    def free(self) -> None:
        self.storage.resize_(0)

    def restore(self) -> None:
        self.storage.resize_(self.size_bytes)
        _as_bytes(self.storage).copy_(self.host, non_blocking=True)


def _as_bytes(storage: Any) -> Any:
    """Returns a tensor of bytes over all of a storage."""
    torch = tensors.loaded_torch()
    view = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return view.set_(storage, 0, (int(storage.nbytes()),))


def _host_copy(storage: Any, pin: bool) -> Any:
    torch = tensors.loaded_torch()
    size = int(storage.nbytes())
    try:
        host = torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=pin)
    except RuntimeError:
        # The system limits pinned memory; pageable memory is slower and otherwise the same.
        host = torch.empty(size, dtype=torch.uint8, device="cpu")
    host.copy_(_as_bytes(storage), non_blocking=True)
    return host


def _refusal(storage: Any) -> Optional[str]:
    """Why a storage cannot move, or None."""
    if storage.device.type != "cuda":
        return f"it is on {storage.device}, not on a GPU"
    if not storage.resizable():
        return "its memory belongs to another library or process"
    return None


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


# ---- refused use ------------------------------------------------------------


class _Guard:
    """Replaces a method of one object while at least one `parked` needs it. Without it, a kernel
    would read at address 0, and CUDA would be unusable after that.

    The method is an attribute of the instance. Functions that torch.compile has made already ignore
    new hooks of modules, but they check that a module has no `forward` of its own."""

    def __init__(self, owner: Any, method: str, reason: str) -> None:
        self._owner, self._method, self._reason = owner, method, reason
        self._before: dict[str, Any] = {}
        self._count = 0

    @classmethod
    def add(cls, owner: Any, method: str, reason: str) -> _Guard:
        current = owner.__dict__.get(method)
        guard = current if isinstance(current, cls) else cls(owner, method, reason)
        if guard._count == 0:
            guard._before = {method: current} if method in owner.__dict__ else {}
            owner.__dict__[method] = guard
        guard._count += 1
        return guard

    def remove(self) -> None:
        self._count -= 1
        if self._count == 0 and self._owner.__dict__.get(self._method) is self:
            del self._owner.__dict__[self._method]
            self._owner.__dict__.update(self._before)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise Error(self._reason)


def _refuse_step(optimizer: Any, arguments: Any, named: Any) -> None:
    raise Error(_step_reason(optimizer))


def _step_reason(optimizer: Any) -> str:
    return (f"the parameters of {type(optimizer).__name__} are parked in host memory: leave `with "
            "memtrace.parked(...)` before a step")


def _guard_optimizer(optimizer: Any) -> Any:
    """Returns a handle with remove(). Wrappers of optimizers, such as those of Accelerate, have the
    methods of an optimizer and not always its hooks."""
    try:
        return optimizer.register_step_pre_hook(_refuse_step)
    except Exception:  # pylint: disable=broad-except
        return _Guard.add(optimizer, "step", _step_reason(optimizer))


def _guard_module(module: Any) -> Any:
    return _Guard.add(module, "forward", f"{type(module).__name__} is parked in host memory: leave "
                        "`with memtrace.parked(...)` before a forward pass")


# ---- the context manager ----------------------------------------------------

# Two threads that park the same tensors: the second one finds empty storages.
_lock = threading.RLock()


class parked:  # pylint: disable=invalid-name
    """`with memtrace.parked(model, optimizer):` frees the GPU memory of parameters, gradients,
    buffers and state, and restores all of it at the end, also after an exception.

    Inside, these tensors have no memory: a forward pass of the model and a step of the optimizer
    raise. `moved_bytes` is what was freed; `kept` lists (name, reason) of what could not move.
    If the GPU lacks memory for the way back, NotRestored is raised and nothing is lost: `restore()`
    of its attribute `parked` tries again."""

    def __init__(self, *objects: Any, pin: bool = True, empty_cache: bool = True,
                 allow_graphs: bool = False) -> None:
        self._models = [value for value in objects if hasattr(value, "named_parameters")]
        self._optimizers = [value for value in objects if hasattr(value, "param_groups")]
        if len(self._models) + len(self._optimizers) != len(objects):
            raise Error("parked takes models (torch.nn.Module) and optimizers (torch.optim.Optimizer)")
        self._pin, self._empty_cache, self._allow_graphs = pin, empty_cache, allow_graphs
        self._parked: list[_Parked] = []
        self._guards: list[Any] = []
        self._is_open = False
        self.kept: list[tuple[str, str]] = []
        self.moved_bytes = 0

    def __enter__(self) -> "parked":
        if self._is_open:
            raise Error("this `parked` is in use: make another one for a second `with`")
        for model in self._models:
            _check_model(model)
        if not self._allow_graphs:
            _check_graphs()
        self._is_open, self.kept, self.moved_bytes = True, [], 0
        try:
            with tensors.without_overrides(), _lock:
                self._guard()
                self._park()
        except BaseException:
            self.restore()
            raise
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.restore()

    def __call__(self, function: Function) -> Function:
        """As a decorator: the objects are parked while the function runs."""
        return around(function, lambda: parked(
            *self._models, *self._optimizers, pin=self._pin, empty_cache=self._empty_cache,
            allow_graphs=self._allow_graphs))

    def _guard(self) -> None:
        for model in self._models:
            for module in model.modules():
                self._guards.append(_guard_module(module))
        for optimizer in self._optimizers:
            self._guards.append(_guard_optimizer(optimizer))

    # ---- to the host --------------------------------------------------------

    def _movable(self) -> Iterator[tuple[str, Any]]:
        """Yields the storages that can move, with the name of a tensor, and fills `kept`."""
        seen: set[tuple[str, int]] = set()
        for item in tensors.named(self._models, self._optimizers):
            for suffix, part in tensors.parts(item.tensor):
                storage = tensors.storage_of(part)
                name = item.name + suffix
                if storage is None:
                    self.kept.append((name, "it has no storage that Python can reach"))
                    continue
                key = tensors.key_of(storage)
                # An empty storage has no bytes, or an outer `with` has parked it.
                if key in seen or not storage.nbytes() or storage.device.type == "cpu":
                    continue
                seen.add(key)
                reason = _refusal(storage)
                if reason is None:
                    yield name, storage
                else:
                    self.kept.append((name, reason))

    def _park(self) -> None:
        """Copies everything first: no storage is freed before all bytes are on the host."""
        movable = list(self._movable())
        devices = {storage.device for _, storage in movable}
        _wait(devices)
        copies = [_Parked(name, storage, _host_copy(storage, self._pin)) for name, storage in movable]
        _wait(devices)
        for copy in copies:
            # Listed first: an interrupt after free() must not lose the host's copy.
            self._parked.append(copy)
            copy.free()
            self.moved_bytes += copy.size_bytes
        if self._empty_cache and copies:
            tensors.loaded_torch().cuda.empty_cache()

    # ---- and back -----------------------------------------------------------

    def restore(self) -> None:
        """Brings everything back. Does nothing the second time. Ctrl-C and SystemExit take effect
        after the last byte."""
        with tensors.without_overrides(), _lock:
            interrupt = self._restore_all()
        for guard in self._guards:
            guard.remove()
        self._guards.clear()
        self._is_open = False
        if interrupt is not None:
            raise interrupt

    def _restore_all(self) -> Optional[BaseException]:
        """Restores all storages. Returns the interrupt that arrived in between, or None."""
        devices = {item.storage.device for item in self._parked}
        try:
            interrupt = _uninterrupted(self._restore_each)
        except Exception as error:  # pylint: disable=broad-except
            _uninterrupted(lambda: _wait(devices))
            raise self._not_restored(error) from error
        # Copies are asynchronous, so Ctrl-C most often arrives here.
        return _uninterrupted(lambda: _wait(devices)) or interrupt

    def _restore_each(self) -> None:
        """Continues where an interrupt left off."""
        while self._parked:
            self._parked[-1].restore()
            self._parked.pop()

    def _not_restored(self, error: Exception) -> NotRestored:
        rest = sum(item.size_bytes for item in self._parked)
        failed = self._parked[-1]
        if failed.storage.nbytes():
            failed.free()
        return NotRestored(
            f"{text_of_bytes(rest)} could not be restored, beginning with '{failed.name}': {first_line(error)}. "
            "The bytes are still in host memory: free GPU memory and call restore() again, here the "
            "method of the attribute `parked` of this exception", self)


def _uninterrupted(action: Callable[[], None]) -> Optional[BaseException]:
    """Repeats an action until it ends without an interrupt. Returns the last interrupt, or None."""
    interrupt: Optional[BaseException] = None
    while True:
        try:
            action()
            return interrupt
        except (KeyboardInterrupt, SystemExit) as error:
            interrupt = error


def _wait(devices: Iterable[Any]) -> None:
    """Another stream may still use a storage that is about to be freed or read. Only the devices of
    the storages: to synchronize another device would make a context there."""
    for device in devices:
        tensors.loaded_torch().cuda.synchronize(device)
