"""Made-up values. They are the same in every run of a program, and they never use PyTorch's own generators, so
that what the program draws itself stays as it was.

Floating-point values that nobody knows count as uniform between 0 and 1: finite, positive, never equal. A
comparison of many values with 0, or with a bound beyond 1, is true for one half, because nothing says where such
values lie; beyond CERTAIN_BOUND it is decided by the bound. Under another assumption (guesses.py), the share that a
comparison of many values leaves grows or shrinks as one half does. Indices lie in the middle of large ranges: the ends of a vocabulary
are where end-of-text and padding are."""
import functools
import math

import torch

from . import guesses

SEED = 20261123
NUMBER = 0.5
COUNT = 1
CERTAIN_BOUND = 1e4
LARGE_RANGE = 64  # for larger ranges, only the middle half is used
MAX_EXPERTS = 1024  # of a layer; each gets as many tokens
MAX_COPIED_ELEMENTS = 1 << 20
# Packages that compare values with a bound which one in a thousand passes.
LOOK_FOR_OUTLIERS = ("bitsandbytes",)
GOLDEN = 0.6180339887498949

_generator = None
_turn = 0


def generator():
    global _generator
    if _generator is None:
        _generator = torch.Generator(device="cpu")
        _generator.manual_seed(SEED)
    return _generator


def uniform(shape, low=0.0, high=1.0):
    return torch.empty(shape, dtype=torch.float32, device="cpu").uniform_(low, high, generator=generator())


def half(shape, share=None):
    """Truth values, one half of them true: SHARE, or that of the assumption. A single one is as without assumptions."""
    if math.prod(shape) == 1:
        share = guesses.DEFAULT_SHARE
    return uniform(shape) < (guesses.share() if share is None else share)


def count():
    """A whole number that nobody knows: larger under the assumption that everything is selected."""
    return max(1, int(2 * guesses.share())) * COUNT


def fill(t):
    """Gives values that nobody knows to T, on the host."""
    if t.dtype is torch.bool:
        t.copy_(half(t.shape))
    elif not t.is_floating_point() and not t.is_complex():
        t.fill_(count())


def bound(value, is_below, count):
    """VALUE moved so that comparing it with COUNT values of `uniform` gives the declared share; IS_BELOW: those below."""
    if isinstance(value, torch.Tensor):
        value = value.to(torch.float32)
        value = torch.where((value >= 1) & (value < CERTAIN_BOUND), torch.full_like(value, 0.5), value)
        return value if count == 1 or guesses.is_default() else torch.where((value > 0) & (value < 1), _moved(value, is_below).clamp(0, 1), value)
    value = float(value.real if isinstance(value, complex) else value)
    value = 0.5 if 1 <= value < CERTAIN_BOUND else value
    return value if count == 1 or guesses.is_default() or not 0 < value < 1 else min(max(_moved(value, is_below), 0.0), 1.0)


def _moved(value, is_below):
    factor = guesses.share() / guesses.DEFAULT_SHARE
    return value * factor if is_below else 1 - (1 - value) * factor


def indices(shape, dim, size, has_ends=True):
    """A function that returns indices below SIZE of SHAPE, others for each call of this one; along DIM (None: nowhere) no two
    are the same, if that can be. HAS_ENDS: those at the ends of a large range mean something else."""
    global _turn
    _turn += 1
    return functools.partial(_indices_of_turn, _turn, list(shape), dim, size, has_ends)


def _indices_of_turn(turn, shape, dim, size, has_ends):
    low, span = 0, max(size, 1)
    along = shape[dim] if dim is not None and shape else 1
    if has_ends and size >= LARGE_RANGE and along <= size // 2:
        low, span = size // 4, size // 2
    rows = torch.arange(math.prod(shape) // max(along, 1), device="cpu")
    first = (rows * _coprime(span) + turn * 7919) % span
    if along == 1:
        return (first + low).reshape(shape)
    steps = torch.arange(along, device="cpu") * _coprime(span)
    found = (first[:, None] + steps[None, :]).remainder_(span).add_(low)
    moved = shape[:]
    del moved[dim]
    return found.reshape(moved + [along]).movedim(-1, dim)


def _coprime(span):
    """A step near the golden section of SPAN, so that multiples of it spread."""
    step = max(1, int(span * GOLDEN))
    while math.gcd(step, span) != 1:
        step += 1
    return step
