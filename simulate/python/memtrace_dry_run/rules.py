"""What each operator means for shadows (shadows.py). A rule has two halves: `before` and `after` the operator
itself has run on the device, where it computes nothing. Both run on the host and see the operator's arguments;
what `after` returns, if anything, replaces the operator's result."""
import functools

import torch

from . import draws, fillers, guesses, notes, on_host, others, philox, read_numbers, shadows, sizes, unknown
from .shadows import CHOSEN, GUESSED, KNOWN, RECEIVED
from .unknown import CHOICES, COMPARISONS, NOT_NUMBERS

LOGIC = {"logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
         "bitwise_not", "any", "all", "isin"}
ARITHMETIC = {"add", "sub", "mul", "div", "neg", "abs", "sign", "sgn", "clamp", "clamp_min", "clamp_max", "remainder", "fmod",
              "floor_divide", "pow", "minimum", "maximum", "fmin", "fmax", "floor", "ceil", "round", "trunc", "sqrt", "exp", "log", "log2",
              "reciprocal", "sigmoid", "bitwise_left_shift", "bitwise_right_shift",
              "__lshift__", "__rshift__", "rsub", "gcd"}
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
STEPS = {"_foreach_add_"}
FACTORIZATIONS = {"linalg_cholesky_ex", "linalg_inv_ex", "linalg_lu_factor_ex", "_linalg_solve_ex", "linalg_ldl_factor_ex"}
ALWAYS = {"nonzero", "_local_scalar_dense"}  # hooked for the backend itself
GUESSED_RESULTS = COMPARISONS | LOGIC | CHOICES | {"max", "min", "median", "searchsorted", "bucketize"} | NOT_NUMBERS  # also of unknown values
UNIQUE = {"_unique2", "_unique", "unique_dim", "unique_consecutive", "unique_dim_consecutive"}


class Rule:
    """What happens before and after an operator. `also_from_device`: the second argument may be on the device.
    `is_wanted` of operator and arguments: whether to do anything; it runs no operator. `layout` of the first argument, None: strided."""

    __slots__ = ("before", "after", "also_from_device", "is_wanted", "layout")

    def __init__(self, before=None, after=None, also_from_device=False, is_wanted=None, layout=None):
        self.before, self.after, self.also_from_device, self.is_wanted, self.layout = before, after, also_from_device, is_wanted, layout


_turns = {"condition": 0}


def table():
    """Names of all operators that have a rule."""
    return (COMPARISONS | LOGIC | ARITHMETIC | NOT_NUMBERS | REDUCTIONS | MOVES | IN_PLACE | RANDOM | CHOICES | STEPS | UNIQUE | FACTORIZATIONS |
            {"_coalesce", "_sparse_sparse_matmul", "copy_", "equal", "_local_scalar_dense", "nonzero", "randperm", "multinomial", "histc", "_amp_update_scale_", "_linalg_check_errors"})


def rule_of(packet):
    """The rule of an operator of `table`."""
    special = {"copy_": Rule(None, _copied, True, _is_copied), "_local_scalar_dense": Rule(None, _read), "nonzero": Rule(sizes.before_nonzero, sizes.nonzero),
               "_amp_update_scale_": Rule(None, _scale_updated), "_linalg_check_errors": Rule(_no_errors), "randperm": Rule(_before_drawn, _permuted),
               "multinomial": Rule(_before_drawn, _sampled), "histc": Rule(None, _histogram), "equal": Rule(_before_equal, _after_equal),
               "_coalesce": Rule(sizes.before_coalesced, sizes.coalesced, layout=torch.sparse_coo),
               "_sparse_sparse_matmul": Rule(None, sizes.sparse_product, layout=torch.sparse_coo)}
    if packet in special:
        return special[packet]
    if packet in UNIQUE:
        return Rule(sizes.before_unique, sizes.unique)
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
    return Rule(sizes.before_boxes, sizes.after_boxes)


def among_probabilities(function):
    """FUNCTION, in which unknown floating-point values that are compared with 0 are probabilities: none is below."""
    @functools.wraps(function)
    def call(*arguments, **named):
        before = on_host.context.probabilities
        try:
            on_host.context.probabilities = True
            return function(*arguments, **named)
        finally:
            on_host.context.probabilities = before

    return call


# ---- operators that compute


def _computed(op, arguments, named, out):
    outs = on_host.tensors(out)
    if not outs or not all(o.is_cuda for o in outs):
        return
    if not any(shadows.may_be_known(o) for o in outs):
        _forget(outs)
        return
    name = on_host.packet(op)
    try:
        host = on_host.Map(name not in COMPARISONS and on_host.are_numbers(arguments, outs))
        values = on_host.run(op, name, host, (arguments, named), outs)
    except on_host.Unknown:
        unknown.guess(op, arguments, named, outs)
        return
    made = host.made
    if made == GUESSED and name == "all":
        values = torch.ones_like(values) # as for operands that nobody knows: checks of arguments pass; not RECEIVED values, which loops wait for
    elif made == GUESSED and (name in NOT_NUMBERS or unknown.is_of_infinity(name, arguments)): # a guess may be 0 / 0
        values, made = torch.full_like(values, name == "ne"), CHOSEN
    for o, v in zip(outs, on_host.tensors(values)):
        if o.shape == v.shape and shadows.may_be_known(o):
            shadows.keep(o, v, made)
        else:
            shadows.forget(o)


def results(op, arguments, named, out):
    """All tensors on the device that OP wrote to."""
    return [t for t in (*on_host.written(op, arguments, named, False), *on_host.tensors(out)) if t.is_cuda and t.layout is torch.strided]


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
    shadow, name = shadows.of(t), on_host.packet(op)
    is_filled = (shadow is None or shadow.made != KNOWN) and name in ("fill", "zero") and shadows.is_small(t)
    if shadow is None and not is_filled:
        return
    try:
        host = on_host.Map(numbers=on_host.are_numbers(arguments, [t]))
        if is_filled:
            values = on_host.run(op, name, host, ([torch.empty(t.shape, dtype=t.dtype, device="cpu"), *arguments[1:]], named), [t])
            shadows.keep(t, values, host.made)
        else:
            on_host.run(op, name, host, (arguments, named), [t])
            shadow.made = max(shadow.made, host.made)
    except on_host.Unknown:
        if t.is_floating_point():
            shadows.forget(t)
        elif shadow is not None: # values of the right range, which are counted if something is read from them
            shadow.made = GUESSED


def _forget(tensors):
    for t in tensors:
        shadows.forget(t)


def _forgotten(op, arguments, named, out):
    """What OP writes to is not known any more."""
    _forget(on_host.written(op, arguments, named, False))


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
    on_host.context.states = (on_host.context.states, philox.state(device, named.get("generator")))


def _state_before():
    on_host.context.states, state = on_host.context.states or (None, None)
    return state


def _drawn(op, arguments, named, out):
    t, state = arguments[0], _state_before()
    if not t.is_cuda:
        return
    if not shadows.is_small(t):
        shadows.forget(t)
        return
    host = on_host.Map()
    try:
        rest = [host.of(a) for a in arguments[1:]]
    except on_host.Unknown:
        shadows.forget(t)
        return
    function = draws.filled_by(op, t, rest, state) if state is not None else None
    if function is not None:
        shadows.keep_later(t, function, host.made, True)
        return
    values = torch.empty(t.shape, dtype=t.dtype, device="cpu")
    op(values, *rest, generator=fillers.generator())
    shadows.keep(t, values, GUESSED)


def _permuted(op, arguments, named, out):
    state, count, dtype = _state_before(), out.numel(), out.dtype
    if not shadows.is_small(out):
        return
    if state is not None:
        shadows.keep_later(out, lambda: draws.randperm(state, count, dtype), KNOWN, True)
    else:
        shadows.keep(out, torch.randperm(count, generator=fillers.generator(), dtype=dtype, device="cpu"), GUESSED)


def _sampled(op, arguments, named, out):
    """Indices that are drawn with probabilities."""
    weights, state = on_host.host_or_none(arguments[0]), _state_before()
    if weights is None or not shadows.is_small(out):
        unknown.choose("multinomial", arguments, named, [out])
        return
    made = shadows.of(arguments[0]).made
    if state is not None:
        replacement = on_host.argument(arguments, named, 2, "replacement", False)
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
        shadows.copy(to, source, shadow)
    elif to.dtype is torch.bool:
        unknown.keep_half(to)
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
    if to.numel() == 1:
        read_numbers.copied(to)
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
    if on_host.context.equality is not None:
        value, made = on_host.context.equality
        return _guess_read(value) if made >= RECEIVED else value
    shadow = shadows.of(t)
    if shadow is not None:
        value = shadows.view(t, shadow).item()
        return _guess_read(value) if shadow.made >= RECEIVED else value
    if on_host.context.count is not None and not t.is_floating_point():
        return on_host.context.count
    if t.dtype is torch.bool:
        _turns["condition"] += 1
        return guesses.read(_turns["condition"] % 2 == 0)
    if t.is_floating_point():
        return guesses.read(fillers.NUMBER)
    if t.is_complex():
        return complex(guesses.read(fillers.NUMBER))
    return guesses.read(fillers.count())


def _guess_read(value):
    value = guesses.read(value)
    return guesses.other_if_always(value) if isinstance(value, bool) else value


def _before_equal(op, arguments, named):
    """PyTorch compares the elements where no rule sees it, and reads whether all of them are equal. If nobody knows, they are:
    checks of arguments pass."""
    host = on_host.Map()
    try:
        equal = bool(op(*(host.of(a) for a in arguments)))
    except on_host.Unknown:
        equal, host.made = True, GUESSED
    on_host.context.equality = (equal or host.made == GUESSED, host.made)


def _after_equal(op, arguments, named, out):
    on_host.context.equality = None


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
    *factors, info = on_host.tensors(out)
    _forget(factors)
    shadows.keep(info, torch.zeros(info.shape, dtype=info.dtype, device="cpu"), KNOWN)


def _no_errors(op, arguments, named):
    """Linear algebra succeeded."""
    shadows.keep(arguments[0], torch.zeros(arguments[0].shape, dtype=arguments[0].dtype, device="cpu"), KNOWN)
