"""The numbers that PyTorch draws on a device, computed on the host.

PyTorch's generator for CUDA is Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
Its state is a seed and an offset, which the host keeps. Each thread of a kernel has a counter of its own: its index
and the offset. Element i of a tensor of n elements therefore depends on the seed, the offset, i, and the number of
threads, which follows from n and from the card. PyTorch 2.4 to 2.15 has this in
aten/src/ATen/native/cuda/DistributionTemplates.h and core/TransformationHelper.h; cuRAND makes words and numbers
(curand_philox4x32_x.h, curand_uniform.h, curand_normal.h).

Whole numbers, uniform numbers and truth values are those of the device, bit by bit. Normal and exponential numbers
differ from them by at most 1e-6 (64 bits: in the last place), because the device approximates sine, cosine and
logarithm: 693 cases on an H200."""
import math

import torch

WORD = 0xFFFFFFFF
BLOCK = 256  # threads of a block of the kernels in DistributionTemplates.h
PERIOD = 4  # words of a counter; offsets count words
CHUNK = 1 << 14  # threads that are computed at a time: few enough for the host's caches and for one of its own threads
ROUNDS, MULTIPLIERS, WEYL = 10, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
ANGLE_STEP = 6.2831854820251465 * 2.0**-32  # CURAND_2POW32_INV_2PI, a number of 32 bits

_threads = {}  # device: how many threads fill a large tensor


class State:
    """The generator's seed and offset before an operator draws."""

    __slots__ = ("seed", "offset", "threads")

    def __init__(self, seed, offset, threads):
        self.seed, self.offset, self.threads = seed & (1 << 64) - 1, offset, threads


def state(device, generator=None):
    """The State of GENERATOR, by default the device's own; None while a graph is captured: each replay has another."""
    if torch.cuda.is_current_stream_capturing():
        return None
    index = device.index if device.index is not None else torch.cuda.current_device()
    if index not in _threads:
        card = torch.cuda.get_device_properties(index)
        _threads[index] = card.multi_processor_count * (card.max_threads_per_multi_processor // BLOCK) * BLOCK
    generator = generator or torch.cuda.default_generators[index]
    return State(generator.initial_seed(), generator.get_offset(), _threads[index])


# ---- words


def words(at, first, count, call):
    """The four words that COUNT threads from FIRST on get from their call number CALL (curand4)."""
    low = at.offset // PERIOD + call
    x, y, z, w = low & WORD, low >> 32 & WORD, torch.arange(first, first + count, device="cpu"), 0
    keys = [at.seed & WORD, at.seed >> 32]
    for _ in range(ROUNDS):
        p, q = x * MULTIPLIERS[0], z * MULTIPLIERS[1]  # the lower 64 bits
        x, y, z, w = (q >> 32 & WORD) ^ y ^ keys[0], q & WORD, (p >> 32 & WORD) ^ w ^ keys[1], p & WORD
        keys = [(k + step) & WORD for k, step in zip(keys, WEYL)]
    return x, y, z, w


def _each(at, count, made, dtype):
    """COUNT numbers in the order of a grid-stride loop. MADE turns the four words of a call into the call's numbers:
    the thread's first one, then one each for the element that lies one grid further."""
    grid = min(at.threads, -(-count // BLOCK) * BLOCK)
    out = torch.empty(count, dtype=dtype, device="cpu")
    call = begin = 0
    while begin < count:
        for first in range(0, min(grid, count - begin), CHUNK):
            threads = min(CHUNK, grid - first, count - begin - first)
            numbers = made(*words(at, first, threads, call))
            for lane, values in enumerate(numbers):
                start = begin + lane * grid + first
                out[start:start + threads] = values[:max(0, count - start)]
        begin += grid * len(numbers)
        call += 1
    return out


def uniform_float(x):
    """_curand_uniform: above 0, at most 1."""
    return x.to(torch.float32) * 2.0**-32 + 2.0**-33


def _double(x, y):
    """_curand_uniform_double_hq."""
    return (x ^ y << 21).to(torch.float64) * 2.0**-53 + 2.0**-54


def _uniforms(at, count, wide):
    if wide:
        return _each(at, count, lambda x, y, z, w: (_double(x, y), _double(z, w)), torch.float64)
    return _each(at, count, lambda *four: [uniform_float(v) for v in four], torch.float32)


def _narrow_normals(x, y, z, w):
    numbers = []
    for a, b in ((x, y), (z, w)):
        angle = b.to(torch.float32).double() * ANGLE_STEP + ANGLE_STEP / 2
        angle, radius = angle.float().double(), torch.sqrt(-2 * torch.log(uniform_float(a).double()).float())
        numbers += [torch.sin(angle).float() * radius, torch.cos(angle).float() * radius]
    return numbers


def _wide_normals(x, y, z, w):
    angle, radius = (_double(z, w) * 2) * math.pi, torch.sqrt(-2 * torch.log(_double(x, y)))
    return torch.sin(angle) * radius, torch.cos(angle) * radius


def _as_they_are(*four):
    return four


def _wide_words(x, y, z, w):
    return x << 32 | y, z << 32 | w


# ---- distributions: each fills the elements of a tensor of TYPE in the order of the kernel


def _scaled(values, factor, term, dtype):
    """VALUES * FACTOR + TERM as the device computes them: rounded once, then to DTYPE."""
    return (values.double() * factor + term).to(values.dtype).to(dtype)


def _digits(dtype):
    """std::numeric_limits<dtype>::digits."""
    return 1 - int(math.log2(torch.finfo(dtype).eps))


def _rounded(number, dtype):
    return torch.tensor(number, dtype=dtype, device="cpu")


def uniform_(at, count, dtype, low=0.0, high=1.0):
    low, high = _rounded(low, dtype), _rounded(high, dtype)
    values = _scaled(_uniforms(at, count, dtype is torch.float64), float(high - low), float(low), dtype)
    return torch.where(values == high, low, values)


def normal_(at, count, dtype, mean=0.0, std=1.0):
    wide = dtype is torch.float64
    values = _each(at, count, _wide_normals if wide else _narrow_normals, torch.float64 if wide else torch.float32)
    return _scaled(values, float(_rounded(std, values.dtype)), float(_rounded(mean, values.dtype)), dtype)


def exponential_(at, count, dtype, rate=1.0):
    values = _uniforms(at, count, dtype is torch.float64)
    half = torch.finfo(values.dtype).eps / 2
    logarithm = torch.where(values >= 1 - half, torch.full_like(values, -half), torch.log(values.double()).to(values.dtype))
    return (_rounded(-1.0, values.dtype) / _rounded(rate, values.dtype) * logarithm).to(dtype)


def bernoulli_(at, count, dtype, p=0.5):
    values = _uniforms(at, count, dtype is torch.float64)
    return (values < _rounded(p, values.dtype)).to(dtype)


def bernoulli_of(at, p, dtype):
    """For each probability of P; here a thread has four neighbors."""
    p = p.to(torch.float64 if dtype is torch.float64 else torch.float32)
    found = torch.stack(words(at, 0, -(-p.numel() // PERIOD), 0), 1).reshape(-1)[:p.numel()]
    return (uniform_float(found) <= p).to(dtype)


def random_(at, count, dtype):
    if dtype in (torch.int64, torch.float64):
        wide = _each(at, count, _wide_words, torch.int64)
        return wide & (1 << 63) - 1 if dtype is torch.int64 else _remainder(wide, (1 << 53) + 1).to(dtype)
    found = _each(at, count, _as_they_are, torch.int64)
    largest = 1 if dtype is torch.bool else 1 << _digits(dtype) if dtype.is_floating_point else torch.iinfo(dtype).max
    return (found % (largest + 1)).to(dtype)


def random_between(at, count, dtype, low, high):
    """From LOW to HIGH - 1; HIGH None: to the largest value."""
    if high is None and low == -(1 << 63):
        return _each(at, count, _wide_words, torch.int64).to(dtype)
    if dtype.is_floating_point:
        low = _next_from(low, dtype)
        high = min(1 << _digits(dtype), (1 << 63) - 1) + 1 if high is None else _next_to(high, dtype)
    elif high is None:
        high = 2 if dtype is torch.bool else torch.iinfo(dtype).max + 1
    size = high - low
    has_wide_kernel = dtype in (torch.int64, torch.float64, torch.float32, torch.bfloat16)
    if size >= 1 << 28 if has_wide_ranges() else size >= 1 << 32 and has_wide_kernel:
        found = _remainder(_each(at, count, _wide_words, torch.int64), size)
    else:
        found = _each(at, count, _as_they_are, torch.int64) % size
    return (found + low).to(dtype)


def has_wide_ranges():
    """PyTorch 2.7 takes 64 bits for each number of a range of 2^28 (pull request 143787), earlier ones of 2^32."""
    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 7)


def _remainder(numbers, divisor):
    """NUMBERS, 64 bits without a sign, modulo DIVISOR (Warren, "Hacker's Delight", 9-3)."""
    flip = -(1 << 63)
    if divisor >= 1 << 63:
        divisor -= 1 << 64
        return torch.where((numbers ^ flip) >= (divisor ^ flip), numbers - divisor, numbers)
    half = numbers >> 1 & (1 << 63) - 1
    rest = numbers - (half // divisor << 1) * divisor
    return torch.where((rest ^ flip) >= (divisor ^ flip), rest - divisor, rest)


def _next_from(low, dtype):
    """update_from of native/DistributionTemplates.h: the next number that the type has."""
    rounded = int(_rounded(low + 1, dtype))
    return rounded + (1 << max(abs(low + 1).bit_length() - _digits(dtype), 0)) if rounded < low else low


def _next_to(high, dtype):
    rounded = int(_rounded(high - 1, dtype))
    return rounded - (1 << max(abs(high - 1).bit_length() - _digits(dtype), 0)) if rounded >= high else high
