"""What memtrace.parked refuses while the bytes of a tensor are on the host: forward and step, which
would read at address 0 and make CUDA unusable, and copies and files, which would contain zeros."""
from __future__ import annotations

from typing import Any

from .errors import Error

_HINT = "leave `with memtrace.parked(...)` first, or call memtrace.parking.restore_all()"
# The functions are looked up at the instance. __getstate__ is for copy.copy, which looks up
# __reduce_ex__ at the class; _load_from_state_dict for a module that contains the parked one.
_OF_MODULE = ("forward", "state_dict", "load_state_dict", "_load_from_state_dict", "_apply",
              "__deepcopy__", "__getstate__", "__reduce_ex__")
_OF_SCRIPT = ("save", "save_to_buffer")
_OF_OPTIMIZER = ("state_dict", "load_state_dict", "__deepcopy__", "__getstate__", "__reduce_ex__")
_OF_TENSOR = ("__deepcopy__",)
# What torch.save, pickle, copy.deepcopy and torch.multiprocessing call, also for a view.
_OF_STORAGE = ("cpu", "clone", "_write_file", "_share_cuda_", "__deepcopy__")


class _Guard:
    """Replaces a method of one object while at least one user needs it.

    The method is an attribute of the instance. Functions that torch.compile has made already ignore
    new hooks of modules, but they check that a module has no `forward` of its own."""

    def __init__(self, owner: Any, method: str, text: str) -> None:
        self._attributes, self._method, self._text = owner.__dict__, method, text
        self._before: dict[str, Any] = {}
        self._users: set[Guards] = set()

    @classmethod
    def of(cls, owner: Any, method: str, text: str) -> _Guard:
        """Returns the guard that is in place, or one that is not in place yet."""
        current = owner.__dict__.get(method)
        return current if isinstance(current, cls) else cls(owner, method, text)

    def add(self, user: Guards) -> None:
        self._users.add(user)
        current = self._attributes.get(self._method)
        if current is not self:
            self._before = {} if self._method not in self._attributes else {self._method: current}
            self._attributes[self._method] = self

    def remove(self, user: Guards) -> None:
        """Does nothing the second time."""
        self._users.discard(user)
        if not self._users and self._attributes.get(self._method) is self:
            if self._before:
                self._attributes.update(self._before)
            else:
                del self._attributes[self._method]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise Error(self._text)

    def __reduce_ex__(self, _: Any) -> Any:
        # Part of the attributes of a tensor that is being saved.
        raise Error(self._text)


class _Hook:
    """A hook of an optimizer also works if the program holds the bound method `step`."""

    def __init__(self, optimizer: Any, text: str) -> None:
        def refuse(*_: Any) -> None:
            raise Error(text)

        self._handle = optimizer.register_step_pre_hook(refuse)

    def remove(self, _: Guards) -> None:
        self._handle.remove()


class Guards:
    """The guards of one block. They stay while the block is open, and while a storage that it uses is
    empty because another block also uses it. The caller has the lock of all blocks."""

    def __init__(self) -> None:
        self._guards: list[Any] = []
        self._reasons: set[Any] = set()

    def hold(self, reason: Any) -> None:
        self._reasons.add(reason)

    def settle(self, reason: Any) -> None:
        """A reason has ended. With the last one, the guards are removed."""
        self._reasons.discard(reason)
        while self._guards and not self._reasons:
            self._guards[-1].remove(self)
            self._guards.pop()

    def _refuse(self, owner: Any, methods: tuple[str, ...], text: str) -> None:
        for method in methods if hasattr(owner, "__dict__") else ():
            # Listed before it is in place, so that no failure in between leaves it there.
            self._guards.append(_Guard.of(owner, method, f"{text}: {_HINT}"))
            self._guards[-1].add(self)

    def add_module(self, module: Any) -> None:
        methods = _OF_MODULE + tuple(name for name in _OF_SCRIPT if hasattr(type(module), name))
        self._refuse(module, methods, f"{type(module).__name__} is parked in host memory")

    def add_optimizer(self, optimizer: Any) -> None:
        """Wrappers of optimizers, such as those of Accelerate, have the methods of an optimizer and
        not always its hooks."""
        text = f"the parameters of {type(optimizer).__name__} are parked in host memory"
        methods: tuple[str, ...] = _OF_OPTIMIZER
        try:
            self._guards.append(_Hook(optimizer, f"{text}: {_HINT}"))
        except Exception:  # pylint: disable=broad-except
            methods = ("step", *methods)
        self._refuse(optimizer, methods, text)

    def add_tensor(self, name: str, tensor: Any) -> None:
        self._refuse(tensor, _OF_TENSOR, f"'{name}' is parked in host memory")

    def add_storage(self, name: str, storage: Any) -> None:
        self._refuse(storage, _OF_STORAGE, f"the memory of '{name}' is parked in host memory")
