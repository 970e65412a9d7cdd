"""Operators that read from the device how large their results are: selections, unique values, boxes, sparse tensors."""
import torch

from . import fillers, guesses, notes, on_host, shadows
from .shadows import CHOSEN, GUESSED, KNOWN

_answer = None  # tells the simulated library what the next copy to the host brings


def answer_copies_with(function):
    global _answer
    _answer = function


def _tell(count):
    """The operator that runs next reads COUNT from the device."""
    on_host.context.count = count
    if _answer is not None:
        _answer(int(count).to_bytes(8, "little", signed=True), 8)


def _told():
    on_host.context.count = None
    if _answer is not None:
        _answer(None, 0)


def _mask(t):
    """Which elements count as not zero, and whether that was made up. Another assumption than the default one also
    replaces guesses that select all or nothing, as those of equality do."""
    shadow = shadows.of(t)
    is_known = shadow is not None and shadows.may_be_known(t) and not (on_host.context.boxes and t.dtype is torch.bool)
    if is_known and shadow.made < GUESSED:
        return shadows.view(t, shadow), shadow.made != KNOWN
    share = guesses.share_selected()
    if is_known:
        mask = shadows.view(t, shadow)
        selected = torch.count_nonzero(mask)
        if share == guesses.share() and (guesses.is_default() or 0 < selected < t.numel()):
            return mask, True
    return fillers.half(t.shape, share), True


def before_nonzero(op, arguments, named):
    mask, is_made_up = _mask(arguments[0])
    found = torch.nonzero(mask)
    if is_made_up:
        notes.made_up("boxes" if on_host.context.boxes else "selection", 0 if on_host.context.boxes else 1, found.shape[0], mask.numel())
    on_host.context.found = (found, is_made_up)
    _tell(found.shape[0])


def nonzero(op, arguments, named, out):
    _told()
    found, is_made_up = on_host.context.found
    if out.shape != found.shape: # the simulated library cannot be told: make what PyTorch would have made
        out = torch.empty((found.shape[1], found.shape[0]), dtype=torch.int64, device=out.device).t()
    shadows.keep(out, found, CHOSEN if is_made_up else KNOWN)
    return out


def before_unique(op, arguments, named):
    t = arguments[0]
    shadow = shadows.of(t)
    on_host.context.found = None
    if shadow is None or not shadows.is_small(t):
        size = t.shape[arguments[1]] if "dim" in on_host.packet(op) and len(arguments) > 1 and isinstance(arguments[1], int) else t.numel()
        count = int(size * guesses.share_selected() + 0.5) or min(size, 1)
        notes.made_up("unique", size=count, of=size)
        _tell(count)
        return
    values = op(shadows.view(t, shadow), *arguments[1:], **named)
    if shadow.made != KNOWN:
        notes.made_up("unique")
    on_host.context.found = (values, shadow.made)
    dim = arguments[1] if "dim" in on_host.packet(op) and len(arguments) > 1 and isinstance(arguments[1], int) else 0
    _tell(values[0].shape[dim])


def unique(op, arguments, named, out):
    _told()
    if on_host.context.found is None:
        return
    values, made = on_host.context.found
    for o, v in zip(on_host.tensors(out), on_host.tensors(values)):
        if o.shape == v.shape:
            shadows.keep(o, v, made)


def before_coalesced(op, arguments, named):
    """Elements of a sparse tensor at the same place become one."""
    t = arguments[0]
    indices = t._indices()
    shadow, on_host.context.found = shadows.of(indices), None
    if shadow is None or not shadows.is_small(indices):
        count = int(indices.shape[1] * guesses.share_selected() + 0.5) or min(indices.shape[1], 1)
        notes.made_up("unique", size=count, of=indices.shape[1])
        _tell(count)
        return
    made, values = shadow.made, shadows.view(indices, shadow)
    found = torch.unique(values, dim=1)
    if made != KNOWN:
        notes.made_up("unique", size=found.shape[1], of=indices.shape[1])
    on_host.context.found = (found, made)
    _tell(found.shape[1])


def coalesced(op, arguments, named, out):
    _told()
    if on_host.context.found is not None and out._indices().shape == on_host.context.found[0].shape:
        shadows.keep(out._indices(), *on_host.context.found)


def sparse_product(op, arguments, named, out):
    """The simulated cuSPARSE spreads elements evenly."""
    notes.made_up("unique", size=out._nnz(), of=out.numel())


def before_boxes(op, arguments, named):
    on_host.context.boxes = True
    notes.made_up("boxes")


def after_boxes(op, arguments, named, out):
    on_host.context.boxes = False


def abandon():
    """Forgets what the running operator passed on."""
    on_host.context.found, on_host.context.states, on_host.context.equality, on_host.context.boxes = None, None, None, False
    _told()
