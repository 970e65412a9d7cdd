"""memtrace.parked: moves a model, its gradients and its optimizer's state to host memory for a while.

A storage, not a tensor, is what moves: its bytes are copied to the host, then the storage is resized
to zero, which frees its block. On the way back it gets its size and its bytes again. Every tensor of
it, named or not, therefore keeps its shape, its strides, its hooks and what it shares. Only the
address changes."""
from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Optional

from . import tensors
from .errors import Error
from .units import text_of_bytes


class _Parked:
    """One storage on the host. `names` are the tensors of it."""

    def __init__(self, name: str, storage: Any, host: Any) -> None:
        self.name, self.storage, self.host = name, storage, host
        self.size_bytes = int(storage.nbytes())

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
        host = torch.empty(size, dtype=torch.uint8, pin_memory=pin)
    except RuntimeError:
        # The system limits pinned memory; pageable memory is slower and otherwise the same.
        host = torch.empty(size, dtype=torch.uint8)
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
        raise Error(f"{count} CUDA graphs are alive: they would use the old addresses after the way "
                    "back. If none of them uses these tensors, pass allow_graphs=True")


class parked:  # pylint: disable=invalid-name
    """`with memtrace.parked(model, optimizer):` frees the GPU memory of parameters, gradients,
    buffers and state, and restores all of it at the end, also after an exception.

    Inside, these tensors have no memory: a forward pass of the model and a step of the optimizer
    raise. `moved_bytes` is what was freed; `kept` lists (name, reason) of what could not move.
    If the GPU lacks memory for the way back, the exception says so, nothing is lost, and `restore()`
    tries again."""

    def __init__(self, *objects: Any, pin: bool = True, empty_cache: bool = True,
                 allow_graphs: bool = False) -> None:
        self._models = [value for value in objects if hasattr(value, "named_parameters")]
        self._optimizers = [value for value in objects if hasattr(value, "param_groups")]
        if len(self._models) + len(self._optimizers) != len(objects):
            raise Error("parked takes models (torch.nn.Module) and optimizers (torch.optim.Optimizer)")
        self._pin, self._empty_cache, self._allow_graphs = pin, empty_cache, allow_graphs
        self._parked: list[_Parked] = []
        self._hooks: list[Any] = []
        self.kept: list[tuple[str, str]] = []
        self.moved_bytes = 0

    def __enter__(self) -> "parked":
        for model in self._models:
            _check_model(model)
        if not self._allow_graphs:
            _check_graphs()
        _wait()
        try:
            self._park()
        except BaseException:
            self.restore()
            raise
        self._guard()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.restore()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """As a decorator: the objects are parked while the function runs."""
        import functools

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            with parked(*self._models, *self._optimizers, pin=self._pin,
                        empty_cache=self._empty_cache, allow_graphs=self._allow_graphs):
                return function(*arguments, **named)

        return call

    # ---- to the host --------------------------------------------------------

    def _park(self) -> None:
        """Copies everything first: no storage is freed before all bytes are on the host."""
        seen: set[tuple[str, int]] = set()
        copies: list[_Parked] = []
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
                    copies.append(_Parked(name, storage, _host_copy(storage, self._pin)))
                else:
                    self.kept.append((name, reason))
        _wait()
        for copy in copies:
            copy.storage.resize_(0)
            self._parked.append(copy)
            self.moved_bytes += copy.size_bytes
        if self._empty_cache and copies:
            tensors.loaded_torch().cuda.empty_cache()

    def _guard(self) -> None:
        """Without it, a kernel would read at address 0, and CUDA would be unusable after that."""
        for model in self._models:
            for module in model.modules():
                self._hooks.append(module.register_forward_pre_hook(_refuse_forward))
        for optimizer in self._optimizers:
            register = getattr(optimizer, "register_step_pre_hook", None)
            if register is not None:
                self._hooks.append(register(_refuse_step))

    # ---- and back -----------------------------------------------------------

    def restore(self) -> None:
        """Brings everything back. Does nothing the second time."""
        try:
            while self._parked:
                self._parked[-1].restore()
                self._parked.pop()
        except RuntimeError as error:
            rest = sum(item.size_bytes for item in self._parked)
            failed = self._parked[-1]
            if failed.storage.nbytes():
                failed.storage.resize_(0)
            raise Error(f"{text_of_bytes(rest)} could not be restored, beginning with '{failed.name}': "
                        f"{str(error).splitlines()[0]}. The bytes are still in host memory: free GPU "
                        "memory and call restore() again") from error
        finally:
            _wait()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()


def _wait() -> None:
    """Another stream may still use a storage that is about to be freed or read."""
    torch = tensors.loaded_torch()
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)


def _refuse_forward(model: Any, arguments: Any) -> None:
    raise Error(f"{type(model).__name__} is parked in host memory: leave `with memtrace.parked(...)` "
                "before a forward pass")


def _refuse_step(optimizer: Any, arguments: Any, named: Any) -> None:
    raise Error(f"the parameters of {type(optimizer).__name__} are parked in host memory: leave `with "
                "memtrace.parked(...)` before a step")
