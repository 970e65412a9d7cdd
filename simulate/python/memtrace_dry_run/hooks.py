"""Puts rules around operators of PyTorch.

The hooks are kernels for the dispatch key BackendSelect. That key is in the set of every thread, autograd's own
included; it comes after autograd, autocast and tensor subclasses and right before the backend, and only
operators that make a tensor from nothing have a kernel for it. So nothing above notices: a dispatch mode, which
would be the simple way, makes autograd take other paths (formulas that do not work in place) and so other
requests to the allocator. Each hook calls the backend's kernel with the arguments that it got."""
import ctypes
import threading

import torch

from . import notes, rules

_KEY = "BackendSelect"
_NUMBERS = (int, float, bool, complex)
_here = threading.local()
_libraries = []  # what is registered lasts as long as these


class _Quiet:
    """No modes, no hooks: inside, operators run on the host's shadows only."""

    def __enter__(self):
        _here.inside = True
        self._guards = (torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch._C._AutoDispatchBelowAutograd())
        for guard in self._guards:
            guard.__enter__()

    def __exit__(self, *raised):
        for guard in reversed(self._guards):
            guard.__exit__(*raised)
        _here.inside = False


def _number_as_tensor(number, other):
    """A tensor that promotes types as NUMBER does, which PyTorch hands to kernels in Python as a number."""
    with _Quiet():
        if other is None or other.dim() == 0:
            dtype = torch.result_type(other, number) if other is not None else None
        elif isinstance(number, bool):
            dtype = torch.bool
        elif isinstance(number, int):
            dtype = torch.int64
        elif isinstance(number, float):
            dtype = torch.float64 if other.is_floating_point() or other.is_complex() else torch.get_default_dtype()
        else:
            dtype = torch.complex128 if other.is_complex() else None
        if dtype is None:
            return torch.tensor(number, device="cpu")
        return torch.scalar_tensor(number, dtype=dtype, device="cpu")


def _with_tensors(arguments, positions):
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    arguments = list(arguments)
    for i in positions:
        if i < len(arguments) and type(arguments[i]) in _NUMBERS:
            arguments[i] = _number_as_tensor(arguments[i], tensors[0] if tensors else None)
    return arguments


def _device_tensor(arguments):
    """The first tensor, if it is one on the device that may have a shadow."""
    for a in arguments:
        if isinstance(a, (list, tuple)) and a and isinstance(a[0], torch.Tensor):
            a = a[0]
        if isinstance(a, torch.Tensor):
            if a.is_cuda:
                return a.layout is torch.strided
            if a.dim() != 0:
                return False
    return False


def _kernel(op, rule, name):
    """A kernel that runs the backend's, and RULE before and after it."""
    redispatch = op._handle.redispatch_boxed
    key = torch._C.DispatchKey.BackendSelect
    positions = [i for i, a in enumerate(op._schema.arguments) if str(a.type) == "Tensor"]
    before, after = rule.before, rule.after
    copies = rule.also_from_device

    def kernel(keys, *arguments, **named):
        for i in positions:
            if i < len(arguments) and type(arguments[i]) in _NUMBERS:
                arguments = _with_tensors(arguments, positions)
                break
        keys = keys.remove(key)
        if getattr(_here, "inside", False):
            return redispatch(keys, *arguments, **named)
        concerned = False
        try:
            concerned = _device_tensor(arguments) or _device_tensor(tuple(named.values())) or (
                copies and arguments[1].is_cuda)
            if concerned and before is not None:
                with _Quiet():
                    before(op, arguments, named)
        except Exception as error:
            notes.failed(name, error)
        out = redispatch(keys, *arguments, **named)
        if concerned and after is not None:
            try:
                with _Quiet():
                    answer = after(op, arguments, named, out)
                if answer is not None:
                    return answer
            except Exception as error:
                notes.failed(name, error)
        return out

    return kernel


def _register(library, namespace, name, rule):
    packet, _, overload = name.partition(".")
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    full = "%s::%s" % (namespace, name)
    if torch._C._dispatch_has_kernel_for_dispatch_key(full, _KEY):
        return
    library.impl(name, _kernel(op, rule, full), _KEY, with_keyset=True)


def install(_torch):
    """Hooks every overload, of the operators that rules know, that this PyTorch has."""
    notes.fact("torch", torch.__version__)
    if torch.version.cuda is None:
        return
    rules.answer_copies_with(_simulated_answers())
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    known = rules.table()
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, packet = schema.name.partition("::")
        if namespace != "aten" or packet not in known:
            continue
        name = packet + ("." + schema.overload_name if schema.overload_name else "")
        rule = rules.rule_of(packet, schema)
        if rule is None or not torch._C._dispatch_has_kernel("aten::" + name):
            continue
        try:
            _register(library, "aten", name, rule)
        except Exception as error:
            notes.failed("hook of " + name, error)


def install_torchvision():
    library = torch.library.Library("torchvision", "IMPL")
    _libraries.append(library)
    _register(library, "torchvision", "nms", rules.boxes())


def _simulated_answers():
    """The function of the simulated library that says what the next copy to the host brings, or None."""
    try:
        function = ctypes.CDLL(None).memtrace_simulated_answer
    except (OSError, AttributeError):
        function = _from_runtime()
    if function is not None:
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], None
    return function


def _from_runtime():
    name = "libcudart.so.%s" % torch.version.cuda.split(".")[0]
    for each in (name, name + ".0"):
        try:
            return ctypes.CDLL(each).memtrace_simulated_answer
        except (OSError, AttributeError):
            continue
    return None
