"""Whether Inductor pads the operands of a product of matrices, which it decides by measuring both.

Nothing can be measured here. Of 172 such decisions on an H200 (bfloat16, float16 and float32, PyTorch 2.11.0) this
rule gives 145: padding is faster for large products, if rows of an operand or of the result do not all begin at a
multiple of 16 bytes. Never to pad gives 63."""
import functools
import threading

from . import notes

ALIGNED_BYTES = 16
LARGE = 5_000_000_000 # multiplications; below, starting kernels takes most of the time
FASTER, SLOWER = (2.0, 1.0), (1.0, 1.0) # milliseconds without padding and with it

_here = threading.local()


def install(pad_mm):
    """After the import of Inductor's module of that name."""
    if not hasattr(pad_mm, "_should_pad") or not hasattr(pad_mm, "is_padded_faster"): # before PyTorch 2.6
        return
    should_pad, is_faster = pad_mm._should_pad, pad_mm.is_padded_faster

    @functools.wraps(should_pad)
    def _should_pad(match, mat1, mat2, *arguments, **named):
        _here.operands = [[pad_mm.realize_symbols(of) for of in (t.size(), t.stride())] + [t.element_size()] for t in (mat1, mat2)]
        return should_pad(match, mat1, mat2, *arguments, **named)

    @functools.wraps(is_faster)
    def is_padded_faster(key, *_measured):
        notes.made_up("condition")
        return is_faster(key, *(FASTER if _is_faster(*_here.operands) else SLOWER))

    pad_mm._should_pad, pad_mm.is_padded_faster = _should_pad, is_padded_faster


def _is_faster(a, b):
    """Of operands A and B: sizes, strides, bytes of an element."""
    rows, inner, columns = a[0][-2], a[0][-1], b[0][-1]
    begins = [_between_rows(strides) for _, strides, _ in (a, b)] + [columns]
    return rows * inner * columns >= LARGE and any(begin * a[2] % ALIGNED_BYTES for begin in begins)


def _between_rows(strides):
    """Elements from one row to the next, of a matrix that is stored by rows or by columns."""
    return max(strides[-2:])
