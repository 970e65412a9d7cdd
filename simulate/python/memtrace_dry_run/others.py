"""Operators that have no rule of their own: which of them are hooked, what happens to values, and how much work the
host does for an operator.

An operator that only computes results runs on the host if all its arguments are known; otherwise nothing happens,
because what it returns has no values yet. One that writes to its arguments also runs on the host, or their values are
forgotten. Operators that draw, and those of autograd's engine, run on the device only."""
import functools
import math

import torch

MAX_WORK = 1 << 24  # of one operator on the host, about the operations of the processor: some milliseconds
ELEMENT = 4  # operations for one element
# Parts of names: these have values that nothing reads, or no values.
_LEFT_OUT = ("backward", "dropout", "attention", "rnn", "gru", "lstm", "ctc", "quant", "sparse", "nested", "empty", "assert",
             "foreach", "fused", "batch_norm", "_copy", "grad_input", "record_stream", "polynomial", "bessel", "slow_conv", "transformer")
_KEEPING = ("record_stream",) # its schema says that it writes
_STATISTICS = ("running_mean", "running_var")
# Which argument has as its last dimension what each element of the result sums over.
_PRODUCTS = {"mm": 0, "bmm": 0, "_int_mm": 0, "addmm": 1, "baddbmm": 1, "addmv": 1, "_addmm_activation": 1, "_cdist_forward": 0}
_SORTS = {"sort", "topk", "kthvalue", "median", "nanmedian", "mode"}
_MATRICES = ("linalg", "cholesky", "triangular", "lu_", "ormqr", "geqrf")
_VECTORS = ("vector_norm", "powsum", "cross")

COMPUTED, WRITTEN, FORGOTTEN, COPIED, STATISTICS = range(5)


def kind_of(schema, name):
    """How an operator of aten is treated; None: it is not hooked."""
    packet = schema.name.partition("::")[2]
    if not _has_kernel(name, "CUDA") and packet not in ("convolution", "_foreach_copy_"):
        return None # it is made of others, or there is none for the device
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    if any(a.name in _STATISTICS for a in schema.arguments):
        return None if "backward" in name else STATISTICS
    if packet == "_foreach_copy_":
        return COPIED
    if any(str(a.type) != "Tensor" for a in written):
        return None if packet.startswith("_amp_") else FORGOTTEN # lists: nothing but counters of steps is read from them
    tags = getattr(getattr(torch.ops.aten, packet), schema.overload_name or "default").tags
    if torch.Tag.inplace_view in tags or packet in _KEEPING:
        return None
    is_computed = not any(part in name for part in _LEFT_OUT) and _returns_tensors(schema, written)
    has_kernel = _has_kernel(name, "CPU") or packet == "convolution"
    if not is_computed or not has_kernel or torch.Tag.nondeterministic_seeded in tags:
        return FORGOTTEN if written else None
    return WRITTEN if written and not written[0].is_out else COMPUTED


def _has_kernel(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, key)


def _returns_tensors(schema, written):
    """Whether it computes tensors, and from tensors. Views have the values of what they are views of."""
    return (bool(schema.returns) and all(str(r.type) == "Tensor" and (r.alias_info is None or r.alias_info.is_write) for r in schema.returns)
            and any("Tensor" in str(a.type) for a in schema.arguments if a not in written or not a.is_out))


@functools.lru_cache(maxsize=None)
def written_by(op, only_out=False):
    """(position, name) of the arguments that OP writes to."""
    return [(i, a.name) for i, a in enumerate(op._schema.arguments)
            if (a.is_out if only_out else a.name in _STATISTICS or a.alias_info is not None and a.alias_info.is_write)]


def tensors_in(values):
    """The tensors among VALUES and in lists among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (v for v in value if isinstance(v, torch.Tensor))


def work_of(packet, arguments, outs):
    """About how many operations of the processor an operator takes."""
    elements = max([t.numel() for t in tensors_in(arguments)] + [o.numel() for o in outs])
    if packet in _PRODUCTS:
        return 2 * outs[0].numel() * arguments[_PRODUCTS[packet]].shape[-1]
    if packet == "convolution":
        return 2 * outs[0].numel() * math.prod(arguments[1].shape[1:])
    if packet in _SORTS:
        return 2 * elements * max(elements, 2).bit_length()
    if any(part in packet for part in _MATRICES) and not any(part in packet for part in _VECTORS):
        return 2 * elements * max(outs[0].shape or [1])
    return ELEMENT * elements
