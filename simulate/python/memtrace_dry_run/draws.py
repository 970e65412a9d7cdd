"""What each operator of PyTorch that draws puts into a tensor on a device (philox.py has the numbers)."""
import math

import torch

from . import philox

# How far __logf is off, by its absolute value where it is near 0 (CUDA C++ Programming Guide: an error of at
# most 2^-21.41 between 0.5 and 2, of at most 3 ulp elsewhere)
LOGARITHM_ERROR = 2.0**-21


def filled_by(op, t, arguments, at):
    """A function that returns what the operator OP puts into T, in T's shape; None if that is not known here. It does not
    hold T."""
    fill = _filler(op._schema.name.partition("::")[2], op._schema.overload_name, t, arguments)
    if fill is None:
        return None
    order, is_complex = _Order(t), t.is_complex()
    count, dtype = t.numel() * (1 + is_complex), torch.empty(0, dtype=t.dtype, device="cpu").real.dtype
    return lambda: order.placed(torch.view_as_complex(fill(at, count, dtype).reshape(-1, 2)) if is_complex else fill(at, count, dtype))


def _filler(name, overload, t, arguments):
    """What fills a number of elements of a type with what NAME draws."""
    if name == "random_":
        if not overload:
            return philox.random_
        low, high = arguments if overload == "from" else (0, arguments[0])
        return lambda at, count, dtype: philox.random_between(at, count, dtype, low, high)
    if name == "bernoulli_" and overload == "Tensor":
        p = arguments[0]
        if not (t.is_contiguous() or p.numel() == 1 or p.stride() == t.stride()):
            return None # the kernel goes through both in an order of its own (CUDAApplyUtils.cuh)
        p = p.expand(t.shape).permute(_Order(t).dims).flatten().clone()
        return lambda at, count, dtype: philox.bernoulli_of(at, p, dtype)
    if name == "normal_" and t.is_complex(): # each part has one half of the variance
        mean, std = (list(arguments) + [0.0, 1.0][len(arguments):])[:2]
        arguments = (mean, std / math.sqrt(2))
    function = {"uniform_": philox.uniform_, "normal_": philox.normal_, "exponential_": philox.exponential_,
                "bernoulli_": philox.bernoulli_}.get(name)
    return function and (lambda at, count, dtype: function(at, count, dtype, *arguments))


class _Order:
    """A tensor's dimensions from the largest stride to the smallest: kernels follow the memory (TensorIterator)."""

    def __init__(self, t):
        self.dims = sorted(range(t.dim()), key=lambda d: (-t.stride(d), d))
        self.shape = [t.shape[d] for d in self.dims]

    def placed(self, values):
        """VALUES, in the order of the memory, in the tensor's shape."""
        return values.reshape(self.shape).permute(sorted(range(len(self.dims)), key=self.dims.__getitem__))


# ---- indices


def randperm(at, count, dtype):
    """Random keys are sorted; where some are equal, one thread shuffles what they belong to (Randperm.cuh)."""
    if count == 0:
        return torch.empty(0, dtype=dtype, device="cpu")
    bits = min(64, math.ceil(math.log2(count - (6.0 * count * count + 1) / (math.log(0.9) * 12))))
    kind = torch.int32 if bits <= 32 else torch.int64
    limits = torch.iinfo(kind)
    keys = philox.random_between(at, count, kind, limits.min, limits.max).to(torch.int64)
    # sort_pairs compares the lower bits only; the highest bit of the type is its sign
    keys = keys if bits in (32, 64) else keys & (1 << bits) - 1
    keys, places = torch.sort(keys, stable=True)
    unroll = 2 if limits.max - limits.min >= 1 << 28 and philox.has_wide_ranges() or bits > 32 else 4
    grid = min(at.threads, -(-count // philox.BLOCK) * philox.BLOCK)
    later = philox.State(at.seed, at.offset + ((count - 1) // (grid * unroll) + 1) * philox.PERIOD, at.threads)
    same = (keys[1:] == keys[:-1]).nonzero().flatten().tolist()
    while same:
        first, size = same.pop(0), 2
        while same and same[0] == first + size - 1:
            same.pop(0)
            size += 1
        _shuffle(later, places, first, size)
    return places.to(dtype)


def _shuffle(at, places, first, size):
    """Fisher and Yates, with the words of thread FIRST."""
    words = [int(w) for call in range(size // philox.PERIOD + 1) for w in philox.words(at, first, 1, call)]
    for i in range(size - 1, 0, -1):
        j = words[size - 1 - i] % (i + 1)
        a, b = int(places[first + i]), int(places[first + j])
        places[first + i], places[first + j] = b, a


def multinomial(at, weights, count, replacement):
    """COUNT indices for each row of WEIGHTS, and whether rounding on the device cannot give others."""
    if replacement and count > 1:
        return _multinomial_again(at, weights, count)
    noise = _Order(torch.empty_like(weights)).placed(philox.exponential_(at, weights.numel(), weights.dtype))
    scores = (weights / noise).double()
    found = torch.topk(scores, min(count + 1, scores.shape[-1]), -1)
    best = found.values
    # an error of the logarithm matters where the noise, weight / score, is small
    error = best * (LOGARITHM_ERROR * best / weights.gather(-1, found.indices).double() + 4 * torch.finfo(weights.dtype).eps)
    error = error.nan_to_num()
    low, high = (best - error)[..., :-1], (best + error)[..., 1:]
    return found.indices[..., :count], bool((low > high).all())


def _multinomial_again(at, weights, count):
    """sampleMultinomialWithReplacement: one word for each index, looked up in the sums of the row."""
    rows = weights.reshape(-1, weights.shape[-1]).double()
    width = -(-count // 128) * 128
    words = torch.cat([philox.words(at, row * width, count, 0)[0] for row in range(rows.shape[0])])
    values = philox.uniform_float(words).double().reshape(-1, count)
    sums = torch.cumsum(rows / rows.sum(-1, keepdim=True), -1)
    found = torch.searchsorted(sums, values).clamp_(max=rows.shape[-1] - 1)
    error = rows.shape[-1] ** 0.5 * torch.finfo(weights.dtype).eps
    sure = (torch.searchsorted(sums, values - error) == found) & (torch.searchsorted(sums, values + error) == found)
    return found.reshape(weights.shape[:-1] + (count,)), bool(sure.all())
