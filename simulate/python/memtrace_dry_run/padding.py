"""Whether Inductor pads the operands of a product of matrices, which it decides by measuring both.

Nothing can be measured here, so that nothing is padded, and each decision counts. A rule over shapes that was fitted to
172 decisions of an H200 was tried: it gave 145 of them, but padded products of a GPT-2 that the H200 does not pad, and
its peak rose by 23 %."""
import functools

from . import guesses


def install(pad_mm):
    """After the import of Inductor's module of that name."""
    if not hasattr(pad_mm, "is_padded_faster"): # before PyTorch 2.6
        return
    is_faster = pad_mm.is_padded_faster

    @functools.wraps(is_faster)
    def is_padded_faster(key, *_measured):
        return is_faster(key, 1.0, 0.5 if guesses.read(False) else 1.0)

    pad_mm.is_padded_faster = is_padded_faster
