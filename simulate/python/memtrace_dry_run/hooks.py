"""Puts rules around operators of PyTorch.

The hooks are kernels for a dispatch key that no library for NVIDIA's devices uses (autocast of another vendor's).
The key is switched on thread by thread; each hook calls, with the arguments that it got, what PyTorch would have
called without it. It is off while autograd's engine runs, and on again where that calls Python. It stays on inside
`__torch_dispatch__` of tensors, whose parts are plain tensors, and of modes, which call what they like for an operator:
around a mode, hooks do nothing.

Why not a dispatch mode, and why not in the engine: both change what PyTorch allocates. Under a dispatch mode
autograd takes formulas that do not work in place. And a tensor that passes through Python gets a Python object,
which counts as a reference, so that the engine no longer adds gradients in place.

Two operators are hooked for the backend itself, in every thread and in the engine as well, because they read a
size or a value from the device: `nonzero` and `_local_scalar_dense`. What they read is not a gradient."""
import contextlib
import functools
import os
import threading

import torch

from . import graphs, notes, others, read_numbers, rules, shadows, simulated, sizes

SWITCHED, _ALWAYS = "AutocastIPU", "BackendSelect"
_NUMBERS = (int, float, bool, complex)
_here = threading.local()
_libraries = []  # what is registered lasts as long as these
_observers = {}  # name of an operator: what gets the arguments and the result of its calls
_switched_key = None  # SWITCHED, as PyTorch has it
_level = lambda: 0  # how deep vmap and grad are; None: not inside of them


class Quiet:
    """No modes, no hooks: inside, operators run on the host's shadows only."""

    def __enter__(self):
        self._guards = []
        self._was_on = _is_on()
        try:
            _here.inside = True
            _switch(False)
            for kind in (torch._C.DisableTorchFunction, torch._C._DisableTorchDispatch, torch._C._AutoDispatchBelowAutograd):
                guard = kind()
                guard.__enter__()
                self._guards.append(guard)
        except BaseException: # an interrupt: the hooks of this thread would stay off
            self.__exit__()
            raise

    def __exit__(self, *raised):
        for guard in reversed(self._guards):
            guard.__exit__(*raised)
        _switch(self._was_on)
        _here.inside = False


def _number_as_tensor(number, other):
    """A tensor that promotes types as NUMBER does, which PyTorch hands to kernels in Python as a number."""
    if other is None:
        dtype = None
    elif other.dim() == 0:
        with Quiet():
            dtype = torch.result_type(other, number)
    elif isinstance(number, bool):
        dtype = torch.bool
    elif isinstance(number, int):
        dtype = torch.int64
    elif isinstance(number, float):
        dtype = torch.float64 if other.is_floating_point() or other.is_complex() else torch.get_default_dtype()
    else:
        dtype = torch.complex128 if other.is_complex() else None
    return _constant(number, dtype, torch.get_default_dtype(), torch.is_inference_mode_enabled(), repr(number) if number == 0 else "")


@functools.lru_cache(maxsize=256, typed=True)
def _constant(number, dtype, _default_dtype, _is_inference, _sign):
    """A program passes the same numbers again and again. Autograd saves no tensor that was made for inference; -0.0 equals 0.0;
    without a type, the number gets the default one."""
    with Quiet():
        return torch.tensor(number, device="cpu") if dtype is None else torch.scalar_tensor(number, dtype=dtype, device="cpu")


def _with_tensors(arguments, positions):
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    arguments = list(arguments)
    for i in positions:
        if i < len(arguments) and type(arguments[i]) in _NUMBERS:
            arguments[i] = _number_as_tensor(arguments[i], tensors[0] if tensors else None)
    return arguments


def _is_concerned(value):
    """Whether VALUE is a plain tensor on the device (or a list that begins with one); None: no tensor."""
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter or _is_plain(kind):
        return value.is_cuda and value.layout is torch.strided or (None if value.dim() == 0 else False)
    return False if isinstance(value, torch.Tensor) else None


@functools.lru_cache(maxsize=None)
def _is_plain(kind):
    """Whether tensors of this subclass are storages as others are: it has no `__torch_dispatch__`."""
    return issubclass(kind, torch.Tensor) and kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def _are_wrapped(arguments):
    """Whether there is a tensor of vmap or grad among ARGUMENTS, which has no storage."""
    return _level() is not None and any(map(torch._C._functorch.is_functorch_wrapped_tensor, others.tensors_in(arguments)))


def _device_tensor(arguments):
    """Whether the first tensor among ARGUMENTS is one that may have a shadow. Scalars of the host do not count."""
    for value in arguments:
        concerned = _is_concerned(value)
        if concerned is not None:
            return concerned
    return None


def _is_made_on_device(named):
    device = named.get("device")
    return isinstance(device, torch.device) and device.type == "cuda"


def _kernel(op, rule, name, key):
    """A kernel that runs the next one, and RULE before and after it."""
    redispatch = op._handle.redispatch_boxed if name not in _ALONE else _with_hooks(op._handle.redispatch_boxed, False)
    positions = [i for i, a in enumerate(op._schema.arguments) if str(a.type) == "Tensor"]
    before, after = rule.before, rule.after
    observe = _observers.get(name.partition("::")[2].partition(".")[0])
    copies, layout = rule.also_from_device, rule.layout
    mode_count = torch._C._len_torch_dispatch_stack if key == _switched_key else lambda: 0 # the others run below modes

    def kernel(keys, *arguments, **named):
        for i in positions:
            if i < len(arguments) and type(arguments[i]) in _NUMBERS:
                arguments = _with_tensors(arguments, positions)
                break
        keys = keys.remove(key)
        if getattr(_here, "inside", False) or mode_count() > 0:
            return redispatch(keys, *arguments, **named)
        concerned = on_device = False
        try:
            on_device = _device_tensor(arguments) if layout is None else arguments[0].is_cuda and arguments[0].layout is layout
            if on_device is None:
                on_device = _device_tensor(tuple(named.values())) or _is_made_on_device(named)
            on_device = (on_device or (copies and _is_concerned(arguments[1]))) and not _are_wrapped(arguments)
            concerned = on_device and (rule.is_wanted is None or rule.is_wanted(op, arguments, named))
            if concerned and before is not None:
                with Quiet():
                    before(op, arguments, named)
        except BaseException as error:
            concerned = False # what `after` would use is not there
            _abandon(before)
            if not isinstance(error, Exception):
                raise
            notes.failed(name, error)
        try:
            out = redispatch(keys, *arguments, **named)
        except BaseException: # above all: out of memory, whose traceback must hold no tensors
            if concerned:
                _abandon(before)
            arguments = named = None
            raise
        try:
            if on_device and observe is not None:
                observe(arguments, out)
            if concerned and after is not None:
                with Quiet():
                    answer = after(op, arguments, named, out)
                if answer is not None:
                    return answer
            elif on_device and after is not None:
                rules.forget_made(out)
            if on_device and graphs.captures:
                graphs.note(rules.results(op, arguments, named, out))
        except BaseException as error:
            _abandon(before)
            with contextlib.suppress(Exception):
                rules.forget_results(op, arguments, named, out)
            if not isinstance(error, Exception):
                raise
            notes.failed(name, error)
        return out

    return kernel


def _abandon(before):
    """The operator ends early: what BEFORE announced for it must not answer a later one."""
    if before is not None:
        sizes.abandon()


def _register(library, namespace, name, rule, key):
    packet, _, overload = name.partition(".")
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    full = "%s::%s" % (namespace, name)
    library.impl(name, _kernel(op, rule, full, getattr(torch._C.DispatchKey, key)), key, with_keyset=True)


def observe(packet, function):
    """FUNCTION gets arguments and result of each call of the operator on the device outside of autograd's engine. Call it before `install`."""
    _observers[packet] = function


def install(_torch):
    """Hooks every overload that this PyTorch has of the operators that have a rule."""
    notes.fact("torch", torch.__version__)
    notes.fact("torch_folder", os.path.dirname(os.path.abspath(torch.__file__)))
    notes.write()
    if torch.version.cuda is None:
        return
    global _switched_key, _level
    _switched_key = getattr(torch._C.DispatchKey, SWITCHED)
    _level = getattr(torch._C._functorch, "maybe_current_level", _level)
    sizes.answer_copies_with(simulated.answers())
    others = torch._C._dispatch_library("IMPL", "_", SWITCHED, __file__, 1)
    others.fallback_fallthrough()
    library = torch.library.Library("aten", "IMPL")
    _libraries.extend((others, library))
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, packet = schema.name.partition("::")
        if namespace != "aten":
            continue
        name = packet + ("." + schema.overload_name if schema.overload_name else "")
        try:
            _hook(library, name, lambda: _rule_of(schema, packet, name))
        except Exception as error:
            notes.failed("hook of " + name, error)
    _leave_out_higher_orders()
    graphs.install()
    read_numbers.install(torch)
    _watch_storages()
    _watch_gradients()
    _watch_optimizers()
    _switch_threads()


def _rule_of(schema, packet, name):
    """The rule of an operator; an empty one if it is only observed; None: neither."""
    if packet in rules.table():
        return rules.rule_of(packet)
    return rules.rule_of_other(schema, name) or (rules.Rule() if packet in _observers else None)


def _leave_out_higher_orders():
    """Operators of functions (flex_attention, cond) have no kernel for the key; those made later read the list."""
    torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(_switched_key)
    for op in torch._ops._higher_order_ops.values():
        op.fallthrough(_switched_key)


# pow(number, tensor) makes a tensor of the number on the device and gives it to this one. PyTorch hands such a tensor to
# Python as a number, which it can read from a tensor of the host only.
_NOT_FOR_PYTHON = ("pow.Tensor_Tensor_out",)
# These copy such a tensor, so that what they call must not be hooked.
_ALONE = ("aten::bucketize.Scalar", "aten::bucketize.Scalar_out", "aten::searchsorted.Scalar", "aten::searchsorted.Scalar_out")


def _hook(library, name, rule):
    if name in _NOT_FOR_PYTHON or not torch._C._dispatch_has_kernel("aten::" + name):
        return
    if torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, "CompositeImplicitAutograd"):
        return # what it is made of is hooked
    rule = rule()
    if rule is not None:
        _register(library, "aten", name, rule, _ALWAYS if name.partition(".")[0] in rules.ALWAYS else SWITCHED)


# ---- where the hooks are on


def _switch(on):
    if on: # threads begin with all keys of autocast excluded
        torch._C._dispatch_tls_set_dispatch_key_excluded(_switched_key, False)
    torch._C._dispatch_tls_set_dispatch_key_included(_switched_key, on)


def _is_on():
    return torch._C._dispatch_tls_is_dispatch_key_included(_switched_key)


def _is_traced():
    """Whether this thread computes on fake tensors, as when a function is compiled."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def _with_hooks(function, on):
    """FUNCTION, with the hooks of its thread switched on or off while it runs."""

    @functools.wraps(function)
    def switched(*arguments, **named):
        before = _is_on()
        try:
            _switch(on and not _is_traced())
            return function(*arguments, **named)
        except BaseException: # its traceback must hold no tensors
            arguments = named = None
            raise
        finally:
            _switch(before)

    return switched


def switched_off(function):
    """FUNCTION without hooks in its thread."""

    @functools.wraps(function)
    def switched(*arguments, **named):
        before, outer = _is_on(), getattr(_here, "outside", False)
        try:
            _here.outside = before
            _switch(False)
            return function(*arguments, **named)
        finally:
            _switch(before)
            _here.outside = outer

    return switched


def switched_as_outside(function):
    """FUNCTION with hooks as they were where the innermost function of `switched_off` was called."""

    @functools.wraps(function)
    def switched(*arguments, **named):
        before = _is_on()
        try:
            _switch(getattr(_here, "outside", before))
            return function(*arguments, **named)
        finally:
            _switch(before)

    return switched


class _Engine:
    """Autograd's engine, which runs without hooks."""

    def __init__(self, engine):
        self._engine = engine
        self.run_backward = _with_hooks(graphs.noting_gradients(_forgetting_gradients(engine.run_backward)), False)

    def queue_callback(self, callback):
        return self._engine.queue_callback(_with_hooks(callback, True))

    def __getattr__(self, name):
        return getattr(self._engine, name)


def _forgetting_gradients(run_backward):
    """RUN_BACKWARD, which adds to gradients that may have been known: written to by the program, or assigned."""

    @functools.wraps(run_backward)
    def run(*arguments, **named):
        shadows.have_gradients = True
        versions = shadows.float_versions()
        try:
            return run_backward(*arguments, **named)
        finally:
            shadows.forget_changed(versions)

    return run


def _switch_threads():
    _switch(True)
    threading.Thread._bootstrap_inner = _with_hooks(threading.Thread._bootstrap_inner, True)
    if hasattr(os, "register_at_fork"): # a forked child of the loader computes on the host only
        os.register_at_fork(after_in_child=lambda: _switch(False))
    torch.autograd.Variable._execution_engine = _Engine(torch.autograd.Variable._execution_engine)
    backward = torch.autograd.function.BackwardCFunction
    backward.apply = _with_hooks(backward.apply, True)
    _switch_tensors()
    _switch_hooks()
    hooks = torch.autograd.graph.saved_tensors_hooks
    start = hooks.__init__

    @functools.wraps(start)
    def init(self, pack_hook, unpack_hook):
        start(self, pack_hook, _with_hooks(unpack_hook, True))

    hooks.__init__ = init


def _watch_storages():
    resize = torch.UntypedStorage.resize_

    @functools.wraps(resize)
    def resized(self, size):
        shadows.shrink(self, size)
        return resize(self, size)

    torch.UntypedStorage.resize_ = resized


def _watch_gradients():
    """Python assigns gradients by `t.grad = u` and `t.grad.data = u`."""
    assign = torch.Tensor.__setattr__

    @functools.wraps(assign)
    def assigned(self, name, value):
        assign(self, name, value)
        if name in ("grad", "data") and isinstance(value, torch.Tensor):
            try:
                if name == "grad":
                    shadows.have_gradients = True
                t = value if name == "grad" else self
                if _is_concerned(value) and not t.requires_grad:
                    shadows.watch(t)
            except Exception as error:
                notes.failed("assignment of " + name, error)

    torch.Tensor.__setattr__ = assigned


def _watch_optimizers():
    """Optimizers of other packages write to parameters and to their state in C++, outside of PyTorch's operators. They count
    steps in Python."""
    from torch.optim import optimizer

    def forget(stepped, _arguments, _named):
        if type(stepped).__module__.startswith("torch."):
            return
        try:
            parameters = (t for group in stepped.param_groups for t in group["params"] if t.is_floating_point())
            state = (t for values in stepped.state.values() if isinstance(values, dict)
                     for t in others.tensors_in(values.values()) if t.dim())
            for t in (*parameters, *state):
                if _is_concerned(t):
                    shadows.forget(t)
        except Exception as error:
            notes.failed("step of an optimizer", error)

    if hasattr(optimizer, "register_optimizer_step_post_hook"): # since PyTorch 2.1
        optimizer.register_optimizer_step_post_hook(forget)


def _switch_hooks():
    """Functions of the program that autograd's engine calls: they may count, or step an optimizer."""
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        if hasattr(torch.Tensor, name):
            setattr(torch.Tensor, name, _registering(getattr(torch.Tensor, name)))
    of_modules = torch.utils.hooks.BackwardHook
    start = of_modules.__init__

    @functools.wraps(start)
    def init(self, module, user_hooks, user_pre_hooks):
        start(self, module, [_with_hooks(f, True) for f in user_hooks], [_with_hooks(f, True) for f in user_pre_hooks])

    of_modules.__init__ = init


def _registering(register):
    @functools.wraps(register)
    def registering(self, hook):
        return register(self, _with_hooks(hook, True) if callable(hook) else hook)

    return registering


def _switch_tensors():
    """PyTorch excludes the key from where it calls `__torch_dispatch__`, or DTensor's dispatcher in C++. Before, it looks in
    Python for a rule of the class. What is no longer excluded then stays so until the call has ended."""
    try:
        from torch._library import simple_registry

        find = simple_registry.find_torch_dispatch_rule
    except (ImportError, AttributeError): # before PyTorch 2.5
        return

    @functools.wraps(find)
    def found(op, kind):
        if _holds_values(kind) and not _is_traced():
            torch._C._dispatch_tls_set_dispatch_key_excluded(_switched_key, False)
        return find(op, kind)

    simple_registry.find_torch_dispatch_rule = found


@functools.lru_cache(maxsize=None)
def _holds_values(kind):
    """Whether KIND, a tensor or a mode, is none that PyTorch traces with."""
    return not kind.__module__.startswith(("torch._subclasses.", "torch.fx."))


def install_torchvision():
    library = torch.library.Library("torchvision", "IMPL")
    _libraries.append(library)
    _register(library, "torchvision", "nms", rules.boxes(), SWITCHED)
