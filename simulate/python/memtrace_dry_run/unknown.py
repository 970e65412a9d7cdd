"""Results of operators some of whose arguments nobody knows: made-up ones (fillers.py), or none."""
import math

import torch

from . import fillers, notes, on_host, shadows
from .shadows import CHOSEN, GUESSED, KNOWN

NOT_NUMBERS = {"isnan", "isposinf", "isneginf"}
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
CHOICES = {"argmax", "argmin", "topk", "sort", "kthvalue", "mode"}


def guess(op, arguments, named, outs):
    name = on_host.packet(op)
    if name in COMPARISONS:
        _guess_comparison(op, name, arguments, outs[0])
    elif name in ("any", "all"):
        shadows.keep(outs[0], torch.full(outs[0].shape, name == "all", dtype=outs[0].dtype, device="cpu"), GUESSED)
    elif name in CHOICES or name in ("max", "min", "median"):
        choose(name, arguments, named, outs)
    elif name in ("searchsorted", "bucketize"):
        _choose_places(arguments, outs[0])
    elif name in NOT_NUMBERS:
        shadows.keep(outs[0], torch.zeros(outs[0].shape, dtype=torch.bool, device="cpu"), CHOSEN)
    else:
        for o in outs:
            shadows.forget(o)
            if o.dtype is torch.bool and shadows.is_small(o):
                keep_half(o)


def keep_half(t):
    shape = t.shape
    shadows.keep_later(t, lambda: fillers.half(shape), GUESSED)


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
    x, y = on_host.host_or_none(a), on_host.host_or_none(b)
    if name in ("gt", "ge") and notes.package() in fillers.LOOK_FOR_OUTLIERS:
        values = torch.zeros(out.shape, dtype=torch.bool, device="cpu")
    elif name in ("eq", "ne"):
        values = torch.full(out.shape, name == "ne", dtype=torch.bool, device="cpu")
    elif x is None and y is None and not on_host.are_numbers((a, b), [out]) or not (a if x is None else b).is_floating_point() or (
            out.numel() > 1 and not on_host.context.probabilities and _is_zero(y if x is None else x)):
        keep_half(out)
        return
    else:
        known = y if x is None else x
        limit = None if known is None else fillers.bound(known, (name in ("lt", "le")) == (x is None), out.numel())
        if not on_host.are_numbers((a, b), [out]):
            shapes = [t.shape if v is None else None for t, v in ((a, x), (b, y))]
            shape = out.shape
            shadows.keep_later(out, lambda: _compared(name, [limit if s is None else fillers.uniform(s) for s in shapes]).expand(shape), GUESSED)
            return
        drawn = [fillers.uniform(()) if v is None else limit for v in (x, y)]
        values = _compared(name, drawn)
        _remember_drawn(((a, x, y), (b, y, x)), drawn, limit)
    shadows.keep(out, values.expand(out.shape), CHOSEN if is_of_infinity(name, arguments) else GUESSED)


def is_of_infinity(name, arguments):
    """Whether a comparison is that of torch.isinf."""
    return name in ("eq", "ne") and isinstance(arguments[1], float) and math.isinf(arguments[1])


def _compared(name, operands):
    return getattr(torch, name)(*(v if isinstance(v, torch.Tensor) else torch.tensor(v) for v in operands))


def _remember_drawn(operands, drawn, limit):
    """Numbers keep the values with which they were compared, moved as the limit was."""
    for (t, value, other), found in zip(operands, drawn):
        if value is None:
            on_host.remember(t, found * float(other) / float(limit) if limit else found)


def _is_zero(value):
    return value.dim() == 0 and value.item() == 0 if isinstance(value, torch.Tensor) else value == 0


def choose(name, arguments, named, outs):
    """Indices of unknown values; the values themselves stay unknown."""
    source = arguments[0]
    index = next((o for o in outs if o.dtype is torch.int64), None)
    for o in outs:
        if o is not index:
            shadows.forget(o)
    if index is None or not shadows.is_small(index):
        return
    if name in ("argmax", "argmin", "max", "min", "median", "mode"):
        dim = on_host.argument(arguments, named, 1, "dim", None)
        size = source.numel() if not isinstance(dim, int) or source.dim() == 0 else source.shape[dim]
        values = fillers.indices(index.shape, None, size)
    else:
        at = {"topk": 2, "sort": 1, "kthvalue": 2, "multinomial": 99}[name]
        dim = on_host.argument(arguments, named, at, "dim", -1)
        dim = dim if isinstance(dim, int) and not isinstance(dim, bool) else on_host.argument(arguments, named, 2, "dim", -1)
        dim = dim if isinstance(dim, int) else -1
        size = source.shape[dim] if source.dim() else 1
        are_experts = name == "topk" and size <= fillers.MAX_EXPERTS
        values = fillers.indices(index.shape, dim if index.dim() else None, size, has_ends=not are_experts)
    notes.made_up("choice")
    shadows.keep_later(index, values, CHOSEN, True)


def _choose_places(arguments, out):
    borders = next((a for a in arguments if isinstance(a, torch.Tensor) and a.dim()), None)
    size = (borders.shape[-1] if borders is not None else 1) + 1
    notes.made_up("choice")
    shadows.keep(out, (fillers.uniform(out.shape) * size).to(out.dtype), CHOSEN)
