"""What each operator means for shadows (shadows.py). A rule has two halves: `before` and `after` the operator
itself has run on the device, where it computes nothing. Both run on the host and see the operator's arguments;
what `after` returns, if anything, replaces the operator's result."""
import functools
import threading

import torch

from . import draws, fillers, guesses, notes, others, philox, shadows
from .shadows import CHOSEN, GUESSED, KNOWN, RECEIVED

COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
LOGIC = {"logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
         "bitwise_not", "any", "all", "isin"}
ARITHMETIC = {"add", "sub", "mul", "div", "neg", "abs", "sign", "sgn", "clamp", "clamp_min", "clamp_max", "remainder", "fmod",
              "floor_divide", "pow", "minimum", "maximum", "fmin", "fmax", "floor", "ceil", "round", "trunc", "sqrt", "exp", "log", "log2",
              "reciprocal", "sigmoid", "bitwise_left_shift", "bitwise_right_shift",
              "__lshift__", "__rshift__", "rsub", "gcd"}
NOT_NUMBERS = {"isnan", "isposinf", "isneginf"}
REDUCTIONS = {"sum", "prod", "mean", "amax", "amin", "max", "min", "aminmax", "_aminmax", "count_nonzero", "cumsum", "cumprod", "bincount", "median", "std", "var"}
MOVES = {"arange", "linspace", "eye", "cat", "stack", "gather", "index", "index_select", "take", "where", "masked_fill", "masked_select",
         "flip", "roll", "tril", "triu", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_put", "index_fill", "repeat_interleave", "one_hot",
         "searchsorted", "bucketize", "tril_indices", "triu_indices"}
IN_PLACE = {"fill_", "zero_", "add_", "sub_", "mul_", "div_", "neg_", "clamp_", "clamp_min_", "clamp_max_", "masked_fill_", "index_fill_",
            "scatter_", "scatter_add_", "scatter_reduce_", "index_add_", "index_copy_", "index_put_", "_index_put_impl_", "bitwise_and_", "bitwise_or_",
            "bitwise_xor_", "bitwise_not_", "logical_and_", "logical_or_", "logical_not_", "logical_xor_", "eq_", "ne_", "lt_", "le_", "gt_", "ge_",
            "remainder_", "floor_divide_", "pow_", "abs_", "floor_", "ceil_", "round_", "sqrt_", "exp_", "log_", "reciprocal_",
            "masked_scatter_", "tril_", "triu_", "cumsum_"}
RANDOM = {"uniform_", "normal_", "random_", "bernoulli_", "exponential_"}
CHOICES = {"argmax", "argmin", "topk", "sort", "kthvalue", "mode"}
STEPS = {"_foreach_add_"}
FACTORIZATIONS = {"linalg_cholesky_ex", "linalg_inv_ex", "linalg_lu_factor_ex", "_linalg_solve_ex", "linalg_ldl_factor_ex"}
ALWAYS = {"nonzero", "_local_scalar_dense"}  # hooked for the backend itself
GUESSED_RESULTS = COMPARISONS | LOGIC | CHOICES | {"max", "min", "median", "searchsorted", "bucketize", "isnan", "isposinf", "isneginf"}  # also of unknown values
UNIQUE = {"_unique2", "_unique", "unique_dim", "unique_consecutive", "unique_dim_consecutive"}
# Values that decide whether a line reads the same guess so often that it waits for another one.
MAX_SAME_GUESSES = 1000


class Rule:
    """What happens before and after an operator. `also_from_device`: the second argument may be on the device.
    `is_wanted` of operator and arguments: whether to do anything; it runs no operator. `layout` of the first argument, None: strided."""

    __slots__ = ("before", "after", "also_from_device", "is_wanted", "layout")

    def __init__(self, before=None, after=None, also_from_device=False, is_wanted=None, layout=None):
        self.before, self.after, self.also_from_device, self.is_wanted, self.layout = before, after, also_from_device, is_wanted, layout


class _Context(threading.local):
    """What a running operator passes to the operators that it runs itself."""

    count = None  # the number of elements that it will read from the device
    equality = None  # the truth value that it will read from the device, and how it came to be
    boxes = False  # non-maximum suppression
    probabilities = False  # unknown floating-point values are not below 0
    found = None  # what `before` computed for `after`
    states = None  # the generator's before the running operator drew, and that of the operator which runs it


_context = _Context()
_same_guesses = {}  # place: how often it has read one guess
_turns = {"condition": 0}
_answer = None  # tells the simulated library what the next copy to the host brings


def answer_copies_with(function):
    global _answer
    _answer = function


def table():
    """Names of all operators that have a rule."""
    return (COMPARISONS | LOGIC | ARITHMETIC | NOT_NUMBERS | REDUCTIONS | MOVES | IN_PLACE | RANDOM | CHOICES | STEPS | UNIQUE | FACTORIZATIONS |
            {"_coalesce", "_sparse_sparse_matmul", "copy_", "equal", "_local_scalar_dense", "nonzero", "randperm", "multinomial", "histc", "_amp_update_scale_", "_linalg_check_errors"})


def rule_of(packet):
    """The rule of an operator of `table`."""
    special = {"copy_": Rule(None, _copied, True, _is_copied), "_local_scalar_dense": Rule(None, _read), "nonzero": Rule(_before_nonzero, _nonzero),
               "_amp_update_scale_": Rule(None, _scale_updated), "_linalg_check_errors": Rule(_no_errors), "randperm": Rule(_before_drawn, _permuted),
               "multinomial": Rule(_before_drawn, _sampled), "histc": Rule(None, _histogram), "equal": Rule(_before_equal, _after_equal),
               "_coalesce": Rule(_before_coalesced, _coalesced, layout=torch.sparse_coo),
               "_sparse_sparse_matmul": Rule(None, _sparse_product, layout=torch.sparse_coo)}
    if packet in special:
        return special[packet]
    if packet in UNIQUE:
        return Rule(_before_unique, _unique)
    if packet in FACTORIZATIONS:
        return Rule(None, _factorized)
    if packet in RANDOM:
        return Rule(_before_drawn, _drawn)
    if packet in STEPS:
        return Rule(None, _each_in_place, is_wanted=_is_written_known)
    if packet in IN_PLACE:
        return Rule(None, _in_place, is_wanted=None if packet in ("fill_", "zero_") else _is_first_known)
    return Rule(None, _computed, is_wanted=None if packet in GUESSED_RESULTS else _have_values)


def rule_of_other(schema, name):
    """The rule of an operator that is not in `table`, or None."""
    kind = others.kind_of(schema, name)
    if kind is None:
        return None
    if kind == others.COMPUTED:
        return Rule(None, _computed, is_wanted=_are_known)
    after = {others.WRITTEN: _in_place, others.FORGOTTEN: _forgotten, others.COPIED: _each_copied, others.STATISTICS: _statistics}[kind]
    return Rule(None, after, is_wanted=_is_one_known if kind == others.COPIED else _is_written_known)


def _have_values(op, arguments, named):
    """Whether a result may have values: all tensors are known; a mask of unknown values has made-up ones, and so has a number."""
    are_known = are_numbers = True
    is_mask = False
    for t in others.tensors_in(arguments):
        is_mask = is_mask or t.dtype is torch.bool
        are_numbers = are_numbers and not t.dim()
        if t.is_cuda and not shadows.exists(t):
            if t.dim() and t.is_floating_point():
                return _are_filled(named)
            are_known = False
    return are_known or are_numbers or is_mask or _are_filled(named)


def _is_first_known(op, arguments, named):
    return shadows.exists(arguments[0])


def _is_copied(op, arguments, named):
    """Whether a copy moves values, or needs some."""
    to, source = arguments[0], arguments[1]
    if not (to.is_cuda and source.is_cuda):
        return True
    return shadows.exists(source) or shadows.exists(to) or not (to.is_floating_point() or to.is_complex())


def _are_known(op, arguments, named):
    """Whether all tensors on the device are known, or one that is to be filled."""
    return _are_filled(named) or all(not t.is_cuda or shadows.exists(t) for t in others.tensors_in(arguments))


def _are_filled(named):
    return bool(named) and any(t.is_cuda and shadows.exists(t) for t in others.tensors_in(named.values()))


def _is_written_known(op, arguments, named):
    for i, name in others.written_by(op, False):
        value = arguments[i] if i < len(arguments) else named.get(name)
        for t in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(t, torch.Tensor) and t.is_cuda and shadows.exists(t):
                return True
    return False


def _is_one_known(op, arguments, named):
    return any(t.is_cuda and shadows.exists(t) for t in others.tensors_in(arguments))


def boxes():
    return Rule(_before_boxes, _after_boxes)


def among_probabilities(function):
    """FUNCTION, in which unknown floating-point values that are compared with 0 are probabilities: none is below."""
    @functools.wraps(function)
    def call(*arguments, **named):
        before = _context.probabilities
        try:
            _context.probabilities = True
            return function(*arguments, **named)
        finally:
            _context.probabilities = before

    return call


# ---- arguments


class _Unknown(Exception):
    """An argument has no shadow."""


class _Map:
    """Arguments on the host for arguments on the device; made is the most doubtful of them. With `numbers`, a number that
    nobody knows gets a value, so that all that is computed from it agrees: t + dt is more than t."""

    def __init__(self, numbers=False):
        self.made, self.numbers = KNOWN, numbers

    def look_for(self, values):
        """Fails if there is no shadow of one of VALUES, before those of others are made."""
        if not self.numbers and not all(not t.is_cuda or shadows.exists(t) for t in others.tensors_in(values)):
            raise _Unknown

    def of(self, value):
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)([self.of(v) for v in value]) if type(value) in (list, tuple) else value
        if isinstance(value, torch.device):
            return torch.device("cpu")
        return value

    def _tensor(self, t):
        if not t.is_cuda:
            return t
        if t.layout is not torch.strided:
            raise _Unknown
        shadow = shadows.of(t)
        if shadow is None and self.numbers and t.is_floating_point():
            shadow = _remember(t, fillers.NUMBER)
        if shadow is None or not shadows.may_be_known(t):
            raise _Unknown
        self.made = max(self.made, shadow.made)
        return shadows.view(t, shadow)


def _remember(t, value):
    """The shadow of the number T, which counts as VALUE from now on; None if T is a part of something."""
    shadows.keep(t, torch.full((), float(value), dtype=t.dtype, device="cpu"), GUESSED)
    return shadows.of(t)


def _are_numbers(arguments, outs):
    return outs[0].dim() == 0 and all(t.dim() == 0 for t in others.tensors_in(arguments))


def _written(op, arguments, named, only_out=True):
    """The tensors that an operator writes to; only those named out=: what it fills."""
    places = others.written_by(op, only_out)
    return list(others.tensors_in(named.get(name, arguments[i] if i < len(arguments) else None) for i, name in places))


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [v for v in value if isinstance(v, torch.Tensor)] if isinstance(value, (list, tuple)) else []


def _packet(op):
    return op._schema.name.partition("::")[2].rstrip("_") or "?"


# ---- operators that compute


def _computed(op, arguments, named, out):
    outs = _tensors(out)
    if not outs or not all(o.is_cuda for o in outs):
        return
    if not any(shadows.may_be_known(o) for o in outs):
        _forget(outs)
        return
    name = _packet(op)
    try:
        host = _Map(name not in COMPARISONS and _are_numbers(arguments, outs))
        values = _run(op, name, host, (arguments, named), outs)
    except _Unknown:
        _guess(op, arguments, named, outs)
        return
    made = host.made
    if made == GUESSED and name == "all":
        values = torch.ones_like(values) # as for operands that nobody knows: checks of arguments pass; not RECEIVED values, which loops wait for
    elif made == GUESSED and name in NOT_NUMBERS: # a guess may be 0 / 0
        values, made = torch.zeros_like(values), CHOSEN
    for o, v in zip(outs, _tensors(values)):
        if o.shape == v.shape and shadows.may_be_known(o):
            shadows.keep(o, v, made)
        else:
            shadows.forget(o)


def _run(op, name, host, given, outs):
    """What OP returns on the host; not known if that is too much work, or if the host cannot do it."""
    arguments, named = given
    if others.work_of(name, arguments, outs) > others.MAX_WORK:
        raise _Unknown
    filled = {place for both in others.written_by(op, True) for place in both} # an argument of out= may also be one that is read
    host.look_for([*(a for i, a in enumerate(arguments) if i not in filled), *(v for k, v in named.items() if k not in filled)])
    arguments = [_blank(a) if i in filled else host.of(a) for i, a in enumerate(arguments)]
    named = {k: _blank(v) if k in filled else host.of(v) for k, v in named.items()}
    threads = torch.get_num_threads()
    try:
        if threads > 1: # an operator that autograd's thread runs never got the others
            torch.set_num_threads(1)
        return op(*arguments, **named)
    except (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError) as error: # no kernel of the host, or made-up indices
        raise _Unknown from error
    finally:
        if threads > 1:
            torch.set_num_threads(threads)


def _blank(value):
    """What an operator fills, on the host."""
    if isinstance(value, torch.Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="cpu")
    return type(value)(map(_blank, value)) if isinstance(value, (list, tuple)) else value


def results(op, arguments, named, out):
    """All tensors on the device that OP wrote to."""
    return [t for t in (*_written(op, arguments, named, False), *_tensors(out)) if t.is_cuda and t.layout is torch.strided]


def forget_made(out):
    """An operator of which some values are not known called others, which may have filled its results before they were computed."""
    for t in out if isinstance(out, (list, tuple)) else (out,):
        if isinstance(t, torch.Tensor) and t.is_cuda and shadows.exists(t):
            shadows.forget(t)


def forget_results(op, arguments, named, out):
    """A rule failed half way: what OP wrote is not known."""
    _forget(results(op, arguments, named, out))


def _in_place(op, arguments, named, out):
    t = arguments[0]
    if not t.is_cuda:
        return
    shadow, name = shadows.of(t), _packet(op)
    is_filled = (shadow is None or shadow.made != KNOWN) and name in ("fill", "zero") and shadows.is_small(t)
    if shadow is None and not is_filled:
        return
    try:
        host = _Map(numbers=_are_numbers(arguments, [t]))
        if is_filled:
            values = _run(op, name, host, ([torch.empty(t.shape, dtype=t.dtype, device="cpu"), *arguments[1:]], named), [t])
            shadows.keep(t, values, host.made)
        else:
            _run(op, name, host, (arguments, named), [t])
            shadow.made = max(shadow.made, host.made)
    except _Unknown:
        if t.is_floating_point():
            shadows.forget(t)
        elif shadow is not None: # values of the right range, which are counted if something is read from them
            shadow.made = GUESSED


def _forget(tensors):
    for t in tensors:
        shadows.forget(t)


def _forgotten(op, arguments, named, out):
    """What OP writes to is not known any more."""
    _forget(_written(op, arguments, named, False))


def _statistics(op, arguments, named, out):
    """Batch normalization writes to its running statistics in training."""
    places = {a.name: i for i, a in enumerate(op._schema.arguments)}
    is_training = named.get("training", arguments[places["training"]] if places.get("training", 99) < len(arguments) else True)
    if is_training:
        _forgotten(op, arguments, named, out)


def _each_copied(op, arguments, named, out):
    for to, source in zip(arguments[0], arguments[1]):
        _copied(op, (to, source), named, out)


def _each_in_place(op, arguments, named, out):
    """Lists of tensors; only counters of steps matter, which are scalars."""
    rest = arguments[1:]
    for i, t in enumerate(arguments[0]):
        if not t.is_cuda:
            continue
        if t.dim() != 0:
            shadows.forget(t)
            continue
        shadow = shadows.of(t)
        if shadow is None:
            continue
        value = rest[0][i] if isinstance(rest[0], (list, tuple)) else rest[0]
        if isinstance(value, torch.Tensor) and value.is_cuda:
            other = shadows.of(value)
            if other is None:
                shadows.forget(t)
                continue
            shadow.made = max(shadow.made, other.made)
            value = shadows.view(value, other)
        shadows.view(t, shadow).add_(value, alpha=named.get("alpha", rest[1] if len(rest) > 1 else 1))


def _before_drawn(op, arguments, named):
    """PyTorch moves the generator's offset before it draws. Operators that draw call others that do (randperm)."""
    t = next((a for a in (*arguments, *named.values()) if isinstance(a, torch.Tensor)), None)
    device = named["device"] if t is None else t.device
    _context.states = (_context.states, philox.state(device, named.get("generator")))


def _state_before():
    _context.states, state = _context.states or (None, None)
    return state


def _drawn(op, arguments, named, out):
    t, state = arguments[0], _state_before()
    if not t.is_cuda:
        return
    if not shadows.is_small(t):
        shadows.forget(t)
        return
    host = _Map()
    try:
        rest = [host.of(a) for a in arguments[1:]]
    except _Unknown:
        shadows.forget(t)
        return
    function = draws.filled_by(op, t, rest, state) if state is not None else None
    if function is not None:
        shadows.keep_later(t, function, host.made)
        return
    values = torch.empty(t.shape, dtype=t.dtype, device="cpu")
    op(values, *rest, generator=fillers.generator())
    shadows.keep(t, values, GUESSED)


def _permuted(op, arguments, named, out):
    state, count, dtype = _state_before(), out.numel(), out.dtype
    if not shadows.is_small(out):
        return
    if state is not None:
        shadows.keep_later(out, lambda: draws.randperm(state, count, dtype), KNOWN)
    else:
        shadows.keep(out, torch.randperm(count, generator=fillers.generator(), dtype=dtype, device="cpu"), GUESSED)


def _sampled(op, arguments, named, out):
    """Indices that are drawn with probabilities."""
    weights, state = _host_or_none(arguments[0]), _state_before()
    if weights is None or not shadows.is_small(out):
        _choose("multinomial", arguments, named, [out])
        return
    made = shadows.of(arguments[0]).made
    if state is not None:
        replacement = _argument(arguments, named, 2, "replacement", False)
        values, is_sure = draws.multinomial(state, weights, arguments[1], replacement)
        shadows.keep(out, values, made if is_sure else GUESSED)
    else:
        shadows.keep(out, torch.multinomial(weights, *arguments[1:3], generator=fillers.generator()), GUESSED)


def _histogram(op, arguments, named, out):
    """The kernel for the CPU takes no whole numbers, with which programs count the tokens of each expert."""
    shadow = shadows.of(arguments[0])
    if shadow is None or not shadows.is_small(arguments[0]):
        shadows.forget(out)
        return
    values = op(shadows.view(arguments[0], shadow).double(), *arguments[1:], **named)
    shadows.keep(out, values.to(out.dtype), shadow.made)


# ---- what cannot be computed


def _guess(op, arguments, named, outs):
    name = _packet(op)
    if name in COMPARISONS:
        _guess_comparison(op, name, arguments, outs[0])
    elif name in ("any", "all"):
        shadows.keep(outs[0], torch.full(outs[0].shape, name == "all", dtype=outs[0].dtype, device="cpu"), GUESSED)
    elif name in CHOICES or name in ("max", "min", "median"):
        _choose(name, arguments, named, outs)
    elif name in ("searchsorted", "bucketize"):
        _choose_places(arguments, outs[0])
    elif name in NOT_NUMBERS:
        shadows.keep(outs[0], torch.zeros(outs[0].shape, dtype=torch.bool, device="cpu"), CHOSEN)
    else:
        for o in outs:
            shadows.forget(o)
            if o.dtype is torch.bool and shadows.is_small(o):
                _keep_half(o)


def _keep_half(t):
    shape = t.shape
    shadows.keep_later(t, lambda: fillers.half(shape), GUESSED)


def _host_or_none(value):
    """Values of a number or of a tensor, None if nobody knows them."""
    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return value
    shadow = shadows.of(value)
    return shadows.view(value, shadow) if shadow is not None and shadows.may_be_known(value) else None


def _is_same(a, b):
    return (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.data_ptr() == b.data_ptr() and a.dtype == b.dtype and
            a.shape == b.shape and a.stride() == b.stride() and a.is_conj() == b.is_conj() and a.is_neg() == b.is_neg())


def _guess_comparison(op, name, arguments, out):
    a, b = arguments[0], arguments[1]
    if not shadows.is_small(out):
        return
    if _is_same(a, b):
        values = torch.full(out.shape, name in ("eq", "ge", "le"), dtype=torch.bool, device="cpu")
        shadows.keep(out, values, GUESSED if a.is_floating_point() or a.is_complex() else KNOWN) # NaN is not equal to itself
        return
    x, y = _host_or_none(a), _host_or_none(b)
    if name in ("gt", "ge") and notes.package() in fillers.LOOK_FOR_OUTLIERS:
        values = torch.zeros(out.shape, dtype=torch.bool, device="cpu")
    elif name in ("eq", "ne"):
        values = torch.full(out.shape, name == "ne", dtype=torch.bool, device="cpu")
    elif x is None and y is None and not _are_numbers((a, b), [out]) or not (a if x is None else b).is_floating_point() or (
            out.numel() > 1 and not _context.probabilities and _is_zero(y if x is None else x)):
        _keep_half(out)
        return
    else:
        known = y if x is None else x
        limit = None if known is None else fillers.bound(known, (name in ("lt", "le")) == (x is None), out.numel())
        if not _are_numbers((a, b), [out]):
            shapes = [t.shape if v is None else None for t, v in ((a, x), (b, y))]
            shape = out.shape
            shadows.keep_later(out, lambda: _compared(name, [limit if s is None else fillers.uniform(s) for s in shapes]).expand(shape), GUESSED)
            return
        drawn = [fillers.uniform(()) if v is None else limit for v in (x, y)]
        values = _compared(name, drawn)
        _remember_drawn(((a, x, y), (b, y, x)), drawn, limit)
    shadows.keep(out, values.expand(out.shape), GUESSED)


def _compared(name, operands):
    return getattr(torch, name)(*(v if isinstance(v, torch.Tensor) else torch.tensor(v) for v in operands))


def _remember_drawn(operands, drawn, limit):
    """Numbers keep the values with which they were compared, moved as the limit was."""
    for (t, value, other), found in zip(operands, drawn):
        if value is None:
            _remember(t, found * float(other) / float(limit) if limit else found)


def _is_zero(value):
    return value.dim() == 0 and value.item() == 0 if isinstance(value, torch.Tensor) else value == 0


def _argument(op_arguments, named, at, name, default):
    return named[name] if name in named else op_arguments[at] if len(op_arguments) > at else default


def _choose(name, arguments, named, outs):
    """Indices of unknown values; the values themselves stay unknown."""
    source = arguments[0]
    index = next((o for o in outs if o.dtype is torch.int64), None)
    for o in outs:
        if o is not index:
            shadows.forget(o)
    if index is None or not shadows.is_small(index):
        return
    if name in ("argmax", "argmin", "max", "min", "median", "mode"):
        dim = _argument(arguments, named, 1, "dim", None)
        size = source.numel() if not isinstance(dim, int) or source.dim() == 0 else source.shape[dim]
        values = fillers.indices(index.shape, None, size)
    else:
        at = {"topk": 2, "sort": 1, "kthvalue": 2, "multinomial": 99}[name]
        dim = _argument(arguments, named, at, "dim", -1)
        dim = dim if isinstance(dim, int) and not isinstance(dim, bool) else _argument(arguments, named, 2, "dim", -1)
        dim = dim if isinstance(dim, int) else -1
        size = source.shape[dim] if source.dim() else 1
        are_experts = name == "topk" and size <= fillers.MAX_EXPERTS
        values = fillers.indices(index.shape, dim if index.dim() else None, size, has_ends=not are_experts)
    notes.made_up("choice")
    shadows.keep(index, values, CHOSEN)


def _choose_places(arguments, out):
    borders = next((a for a in arguments if isinstance(a, torch.Tensor) and a.dim()), None)
    size = (borders.shape[-1] if borders is not None else 1) + 1
    notes.made_up("choice")
    shadows.keep(out, (fillers.uniform(out.shape) * size).to(out.dtype), CHOSEN)


# ---- what leaves the device


def _copied(op, arguments, named, out):
    to, source = arguments[0], arguments[1]
    if not isinstance(source, torch.Tensor):
        return
    if to.is_cuda:
        _copied_to_device(to, source)
    elif source.is_cuda:
        _copied_to_host(to, source)


def _copied_to_device(to, source):
    is_small = shadows.may_be_known if source.is_cuda else shadows.is_small
    if not is_small(to) or source.layout is not torch.strided:
        if shadows.of(to) is not None:
            shadows.forget(to)
        return
    if not source.is_cuda:
        shadows.keep(to, source.detach(), KNOWN)
        return
    shadow = shadows.of(source)
    if shadow is not None:
        shadows.keep(to, shadows.view(source, shadow), shadow.made)
    elif to.dtype is torch.bool:
        _keep_half(to)
    elif not to.is_floating_point() and source.is_floating_point():
        shadows.keep(to, torch.full(to.shape, fillers.COUNT, dtype=to.dtype, device="cpu"), CHOSEN)
    else:
        shadows.forget(to)


def _copied_to_host(to, source):
    shadow = shadows.of(source)
    if shadow is not None and shadows.may_be_known(source):
        to.copy_(shadows.view(source, shadow))
        if shadow.made != KNOWN:
            _count_copy(to)
        return
    _count_copy(to)
    if to.numel() > fillers.MAX_COPIED_ELEMENTS:
        return
    if to.dtype is torch.bool:
        to.copy_(fillers.half(to.shape))
    elif to.is_floating_point():
        to.copy_(fillers.uniform(to.shape, 0.1, 0.9))
    elif not to.is_complex():
        to.fill_(fillers.COUNT)


def _count_copy(to):
    """A mask on the host decides sizes that nobody sees."""
    if to.dtype is torch.bool and to.numel() > 1:
        notes.made_up("mask", size=int(to.sum()), of=to.numel())
    else:
        notes.made_up("copy")


def _read(op, arguments, named, out):
    t = arguments[0]
    if not t.is_cuda:
        return None
    if _context.equality is not None:
        value, made = _context.equality
        return _guess_read(value) if made >= RECEIVED else value
    shadow = shadows.of(t)
    if shadow is not None:
        value = shadows.view(t, shadow).item()
        return _guess_read(value) if shadow.made >= RECEIVED else value
    if _context.count is not None and not t.is_floating_point():
        return _context.count
    if t.dtype is torch.bool:
        _turns["condition"] += 1
        return guesses.read(_turns["condition"] % 2 == 0)
    if t.is_floating_point():
        return guesses.read(fillers.NUMBER)
    if t.is_complex():
        return complex(guesses.read(fillers.NUMBER))
    return guesses.read(fillers.count())


def _guess_read(value):
    """A loop that waits for another guess gets it."""
    value = guesses.read(value)
    if not isinstance(value, bool):
        return value
    place = notes.place()
    last, same = _same_guesses.get(place, (value, 0))
    same = same + 1 if last == value else 0
    _same_guesses[place] = (value, same)
    return not value if same >= MAX_SAME_GUESSES and same % 2 else value


def _before_equal(op, arguments, named):
    """PyTorch compares the elements where no rule sees it, and reads whether all of them are equal. If nobody knows, they are:
    checks of arguments pass."""
    host = _Map()
    try:
        equal = bool(op(*(host.of(a) for a in arguments)))
    except _Unknown:
        equal, host.made = True, GUESSED
    _context.equality = (equal or host.made == GUESSED, host.made)


def _after_equal(op, arguments, named, out):
    _context.equality = None


# ---- sizes


def _tell(count):
    """The operator that runs next reads COUNT from the device."""
    _context.count = count
    if _answer is not None:
        _answer(int(count).to_bytes(8, "little", signed=True), 8)


def _told():
    _context.count = None
    if _answer is not None:
        _answer(None, 0)


def abandon():
    """Forgets what the running operator passed on."""
    _context.found, _context.states, _context.equality, _context.boxes = None, None, None, False
    _told()


def _mask(t):
    """Which elements count as not zero, and whether that was made up. Another assumption than the default one also
    replaces guesses that select all or nothing, as those of equality do."""
    shadow = shadows.of(t)
    is_known = shadow is not None and shadows.may_be_known(t) and not (_context.boxes and t.dtype is torch.bool)
    if is_known and shadow.made < GUESSED:
        return shadows.view(t, shadow), shadow.made != KNOWN
    share = guesses.share_selected()
    if is_known:
        mask = shadows.view(t, shadow)
        selected = torch.count_nonzero(mask)
        if share == guesses.share() and (guesses.is_default() or 0 < selected < t.numel()):
            return mask, True
    return fillers.half(t.shape, share), True


def _before_nonzero(op, arguments, named):
    mask, is_made_up = _mask(arguments[0])
    found = torch.nonzero(mask)
    if is_made_up:
        notes.made_up("boxes" if _context.boxes else "selection", 0 if _context.boxes else 1, found.shape[0], mask.numel())
    _context.found = (found, is_made_up)
    _tell(found.shape[0])


def _nonzero(op, arguments, named, out):
    _told()
    found, is_made_up = _context.found
    if out.shape != found.shape: # the simulated library cannot be told: make what PyTorch would have made
        out = torch.empty((found.shape[1], found.shape[0]), dtype=torch.int64, device=out.device).t()
    shadows.keep(out, found, CHOSEN if is_made_up else KNOWN)
    return out


def _before_unique(op, arguments, named):
    t = arguments[0]
    shadow = shadows.of(t)
    _context.found = None
    if shadow is None or not shadows.is_small(t):
        size = t.shape[arguments[1]] if "dim" in _packet(op) and len(arguments) > 1 and isinstance(arguments[1], int) else t.numel()
        count = int(size * guesses.share_selected() + 0.5) or min(size, 1)
        notes.made_up("unique", size=count, of=size)
        _tell(count)
        return
    values = op(shadows.view(t, shadow), *arguments[1:], **named)
    if shadow.made != KNOWN:
        notes.made_up("unique")
    _context.found = (values, shadow.made)
    dim = arguments[1] if "dim" in _packet(op) and len(arguments) > 1 and isinstance(arguments[1], int) else 0
    _tell(values[0].shape[dim])


def _unique(op, arguments, named, out):
    _told()
    if _context.found is None:
        return
    values, made = _context.found
    for o, v in zip(_tensors(out), _tensors(values)):
        if o.shape == v.shape:
            shadows.keep(o, v, made)


def _before_coalesced(op, arguments, named):
    """Elements of a sparse tensor at the same place become one."""
    t = arguments[0]
    indices, size = t._indices(), t.shape[:t.sparse_dim()]
    shadow, _context.found = shadows.of(indices), None
    if shadow is None or not shadows.is_small(indices):
        count = int(indices.shape[1] * guesses.share_selected() + 0.5) or min(indices.shape[1], 1)
        notes.made_up("unique", size=count, of=indices.shape[1])
        _tell(count)
        return
    made, values = shadow.made, shadows.view(indices, shadow)
    found = torch.unique(values, dim=1)
    if made != KNOWN:
        notes.made_up("unique", size=found.shape[1], of=indices.shape[1])
    _context.found = (found, made)
    _tell(found.shape[1])


def _coalesced(op, arguments, named, out):
    _told()
    if _context.found is not None and out._indices().shape == _context.found[0].shape:
        shadows.keep(out._indices(), *_context.found)


def _sparse_product(op, arguments, named, out):
    """The simulated cuSPARSE spreads elements evenly."""
    notes.made_up("unique", size=out._nnz(), of=out.numel())


def _before_boxes(op, arguments, named):
    _context.boxes = True
    notes.made_up("boxes")


def _after_boxes(op, arguments, named, out):
    _context.boxes = False


# ---- single operators


def _scale_updated(op, arguments, named, out):
    """What GradScaler does when no gradient was infinite."""
    scale, growth, found, factor, backoff, interval = arguments[:6]
    s, g, f = shadows.of(scale), shadows.of(growth), shadows.of(found)
    if s is None or g is None:
        return
    steps = shadows.view(growth, g)
    if f is not None and shadows.view(found, f).item() != 0:
        shadows.view(scale, s).mul_(backoff)
        steps.zero_()
    elif steps.item() + 1 >= interval:
        shadows.view(scale, s).mul_(factor)
        steps.zero_()
    else:
        steps.add_(1)


def _factorized(op, arguments, named, out):
    """The last result says which pivot was bad: none was. The others are not known."""
    *factors, info = _tensors(out)
    _forget(factors)
    shadows.keep(info, torch.zeros(info.shape, dtype=info.dtype, device="cpu"), KNOWN)


def _no_errors(op, arguments, named):
    """Linear algebra succeeded."""
    shadows.keep(arguments[0], torch.zeros(arguments[0].shape, dtype=arguments[0].dtype, device="cpu"), KNOWN)
