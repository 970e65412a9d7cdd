"""Operators on the host: their arguments, with the values that are known, and what a running operator passes on."""
import threading

import torch

from . import fillers, others, shadows
from .shadows import GUESSED, KNOWN


class _Context(threading.local):
    """What a running operator passes to the operators that it runs itself."""

    count = None  # the number of elements that it will read from the device
    equality = None  # the truth value that it will read from the device, and how it came to be
    boxes = False  # non-maximum suppression
    probabilities = False  # unknown floating-point values are not below 0
    found = None  # what `before` computed for `after`
    states = None  # the generator's before the running operator drew, and that of the operator which runs it


context = _Context()


class Unknown(Exception):
    """An argument has no shadow."""


class Map:
    """Arguments on the host for arguments on the device; made is the most doubtful of them. With `numbers`, a number that
    nobody knows gets a value, so that all that is computed from it agrees: t + dt is more than t."""

    def __init__(self, numbers=False):
        self.made, self.numbers = KNOWN, numbers

    def look_for(self, values):
        """Fails if there is no shadow of one of VALUES, before those of others are made."""
        if not self.numbers and not all(not t.is_cuda or shadows.exists(t) for t in others.tensors_in(values)):
            raise Unknown

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
            raise Unknown
        shadow = shadows.of(t)
        if shadow is None and self.numbers and t.is_floating_point():
            shadow = remember(t, fillers.NUMBER)
        if shadow is None or not shadows.may_be_known(t):
            raise Unknown
        self.made = max(self.made, shadow.made)
        return shadows.view(t, shadow)


def remember(t, value):
    """The shadow of the number T, which counts as VALUE from now on; None if T is a part of something."""
    shadows.keep(t, torch.full((), float(value), dtype=t.dtype, device="cpu"), GUESSED)
    return shadows.of(t)


def are_numbers(arguments, outs):
    return outs[0].dim() == 0 and all(t.dim() == 0 for t in others.tensors_in(arguments))


def written(op, arguments, named, only_out=True):
    """The tensors that an operator writes to; only those named out=: what it fills."""
    places = others.written_by(op, only_out)
    return list(others.tensors_in(named.get(name, arguments[i] if i < len(arguments) else None) for i, name in places))


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [v for v in value if isinstance(v, torch.Tensor)] if isinstance(value, (list, tuple)) else []


def packet(op):
    return op._schema.name.partition("::")[2].rstrip("_") or "?"


def run(op, name, host, given, outs):
    """What OP returns on the host; not known if that is too much work, or if the host cannot do it."""
    arguments, named = given
    if others.work_of(name, arguments, outs) > others.MAX_WORK:
        raise Unknown
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
        raise Unknown from error
    finally:
        if threads > 1:
            torch.set_num_threads(threads)


def _blank(value):
    """What an operator fills, on the host."""
    if isinstance(value, torch.Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="cpu")
    return type(value)(map(_blank, value)) if isinstance(value, (list, tuple)) else value


def host_or_none(value):
    """Values of a number or of a tensor, None if nobody knows them."""
    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return value
    shadow = shadows.of(value)
    return shadows.view(value, shadow) if shadow is not None and shadows.may_be_known(value) else None


def argument(op_arguments, named, at, name, default):
    return named[name] if name in named else op_arguments[at] if len(op_arguments) > at else default
