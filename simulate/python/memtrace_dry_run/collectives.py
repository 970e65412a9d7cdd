"""What collectives bring to tensors on the device, and to those on the host where this rank is alone or its process
groups are fake: everybody's part is this rank's own, because NCCL is simulated also between several processes.

Only values are handled here, those of shadows and of tensors on the host: operators of PyTorch's process groups run
as they are, with simulated NCCL below them. A sum is this rank's value times the number of ranks. What comes from
other ranks is RECEIVED (shadows.py), so that what a program reads of it is counted, and a loop that waits for it ends.

The all-to-all of a fake group does nothing, also on a real device: there, counts of tokens are what the memory held
before. Here they are those of the job that is planned. What it leaves as it was, such as a sum, is this rank's own."""
import contextlib
import functools
import os
import threading

import torch

from . import alone, fake_groups, hooks, notes, shadows
from .shadows import RECEIVED

_libraries = []


def install(distributed):
    if _libraries:
        return
    library = torch.library.Library("c10d", "IMPL")
    _libraries.append(library)
    for name in sorted(set(_RULES) | set(_OF_ONE) | _WITHOUT_VALUES):
        try:
            _register(library, name)
        except Exception as error:
            notes.failed("hook of c10d::" + name, error)
    _hear_operations(distributed)


def _register(library, name):
    op = getattr(torch.ops.c10d, name).default
    key = getattr(torch._C.DispatchKey, hooks.SWITCHED)
    redispatch, rule = op._handle.redispatch_boxed, _RULES.get(name)
    group_at = [i for i, a in enumerate(op._schema.arguments) if "ProcessGroup" in str(a.type)][0]
    has_tensors_back = len(op._schema.returns) > 1

    def kernel(keys, *arguments, **named):
        def run(*arguments):
            return redispatch(keys.remove(key), *arguments, **named)

        tensor = _first_tensor(arguments[:group_at])
        backend = _backend(tensor, arguments[group_at])
        is_fake = fake_groups.uses(backend, tensor)
        is_answered = alone.is_asked() or (name in _NOT_WRITTEN_BY_FAKE if is_fake else tensor is not None and tensor.is_cuda)
        if getattr(backend, "is_alone", False): # a gloo that has no other ranks (alone.py)
            work = _run_as_one(name, run, arguments, backend)
            out = (arguments[0], work) if has_tensors_back else work
        else:
            out = run(*arguments)
        if rule is not None and is_answered:
            try:
                with hooks.Quiet():
                    rule(_Group(arguments[group_at]), *arguments)
            except Exception as error:
                notes.failed("c10d::" + name, error)
        return out

    library.impl(name, kernel, hooks.SWITCHED, with_keyset=True)


# ---- gloo


def _first_tensor(value):
    """The receiver's list of `gather` is empty on ranks that only send."""
    if not isinstance(value, (list, tuple)):
        return value
    return next((t for t in map(_first_tensor, value) if t is not None), None)


def _backend(tensor, group):
    """What GROUP does its work with for TENSOR; None if that is unknown."""
    try:
        return torch.distributed.ProcessGroup.unbox(group)._get_backend(tensor.device)
    except (RuntimeError, AttributeError):
        return None


def _run_as_one(name, run, arguments, gloo):
    """The work of a collective of one rank: what gloo does with tensors of the device is its own."""
    narrow = _OF_ONE.get(name)
    if narrow is None: # one rank has nothing to do
        return gloo.barrier().boxed()
    out = run(*narrow(list(arguments)))
    work = out[-1] if isinstance(out, (list, tuple)) else out
    if name in _WRITTEN_AFTER and not arguments[0][0].is_cuda:
        work.wait()
    return work


def _from_this_rank(arguments):
    """(tensors, group, root, ...), of broadcast"""
    arguments[2] = 0
    return arguments


def _to_this_rank(arguments):
    """(tensors, group, operation, root, ...), of reduce"""
    arguments[3] = 0
    return arguments


def _one_part(arguments):
    """(parts of each rank, own, ...)"""
    arguments[0] = [parts[:1] for parts in arguments[0]]
    return arguments


def _one_part_of_whole(arguments):
    """(parts of all ranks, own, ...)"""
    arguments[0] = arguments[0].view(-1)[: arguments[1].numel()].view(arguments[1].shape)
    return arguments


_OF_ONE = {"allreduce_": list, "allreduce_coalesced_": list, "broadcast_": _from_this_rank, "reduce_": _to_this_rank,
           "allgather_": _one_part, "_allgather_base_": _one_part_of_whole}
_WITHOUT_VALUES = {"send"}
_WRITTEN_AFTER = {"allreduce_", "allreduce_coalesced_", "reduce_"} # by the rules, and not by gloo's threads at the same time


# ---- values


class _Group:
    """This rank among the others: asked only where an answer depends on it."""

    def __init__(self, boxed):
        self._boxed = boxed

    @property
    def size(self):
        return torch.distributed.ProcessGroup.unbox(self._boxed).size()

    @property
    def rank(self):
        return torch.distributed.ProcessGroup.unbox(self._boxed).rank()


def _give(group, to, source):
    """TO has the values of SOURCE, which other ranks sent."""
    if type(to) is not torch.Tensor:
        return
    if to.shape != source.shape:
        _received([to])
    elif not to.is_cuda:
        if to.data_ptr() != source.data_ptr() and not source.is_cuda:
            to.copy_(source)
        _count_on_host(group, to)
    else:
        shadow = shadows.of(source)
        if shadow is not None and shadows.is_small(to):
            shadows.keep(to, shadows.view(source, shadow), _made(group, shadow))
        else:
            _received([to])


def _give_parts(group, to, source):
    """Each part of TO, which is as large as SOURCE, has the values of SOURCE."""
    count = to.numel() // max(source.numel(), 1)
    if count * source.numel() != to.numel() or (to.is_cuda and not shadows.is_small(to)):
        _received([to])
        return
    for part in to.view(-1).chunk(max(count, 1)):
        _give(group, part, source.view(-1))


_plumbing = threading.local() # how many functions of PyTorch that this thread is in exchange what all ranks have alike


def plumbing(function):
    """FUNCTION, which exchanges what ranks have alike, such as shapes: no size and no decision depends on their data."""
    @functools.wraps(function)
    def call(*arguments, **named):
        before = getattr(_plumbing, "depth", 0)
        try:
            _plumbing.depth = before + 1
            return function(*arguments, **named)
        finally:
            _plumbing.depth = before

    return call


def _is_doubtful(group):
    return group.size > 1 and not getattr(_plumbing, "depth", 0)


def _made(group, shadow):
    return max(shadow.made, RECEIVED) if _is_doubtful(group) else shadow.made


def _count_on_host(group, t):
    """What a program reads on the host cannot be seen: that it has T of other ranks counts."""
    if not _is_doubtful(group):
        return
    if t.dtype is torch.bool:
        notes.made_up("condition")
    elif t.dtype in (torch.int32, torch.int64):
        notes.made_up("count")


def _gathered(group, outputs, inputs, *_rest):
    for parts, own in zip(outputs, inputs):
        for part in parts:
            _give(group, part, own)


def _gathered_into(group, output, own, *_rest):
    _give_parts(group, output, own)


def _gathered_into_each(group, outputs, inputs, *_rest):
    for output, own in zip(outputs, inputs):
        _give_parts(group, output, own)


def _exchanged(group, output, own, _group, parts_out, parts_in, *_rest):
    """Others send what this rank sends: as much in all."""
    if output.numel() == own.numel():
        _give(group, output.view(-1), own.view(-1))
        if len(set(parts_out)) <= 1 and len(set(parts_in)) <= 1:
            _unbalance(group, output)
    else:
        _received([output])


def _exchanged_each(group, outputs, inputs, *_rest):
    for output, own in zip(outputs, inputs):
        _give(group, output, own)
        _unbalance(group, output)


MAX_EXPERTS = 1024 # of one rank; more numbers are not counts


def _unbalance(group, t):
    """T, if it is whole numbers that ranks exchange in equal and small parts, says how much each of them sends next: to
    this rank, which has the fullest experts, more than to the others."""
    if t.dtype not in (torch.int32, torch.int64) or group.size == 1 or t.numel() > MAX_EXPERTS * group.size:
        return
    notes.fact("exchanged_counts", True)
    factor, shadow = float(os.environ.get("MEMTRACE_DRY_RUN_IMBALANCE", "1")), shadows.of(t) if t.is_cuda else None
    values = t if not t.is_cuda else shadow and shadows.view(t, shadow)
    if factor != 1 and values is not None:
        values.copy_((values.double() * factor).round())


def _scattered(group, outputs, inputs, *_rest):
    """The source has the parts; the others do not know what they get."""
    for output, parts in zip(outputs, inputs):
        if parts:
            _give(group, output, parts[group.rank])
    if not inputs:
        _received(outputs)


def _received(tensors):
    """Nobody knows what TENSORS, on the device, have now."""
    for t in tensors:
        if t.is_cuda and shadows.of(t) is not None:
            shadows.forget(t)


def _received_from_one(_group, tensors, *_rest):
    _received(tensors)


def _sent_to_all(group, tensors, _group, root, *_rest):
    """The source's values, which are as this rank's own."""
    if group.rank != root:
        for t in tensors:
            _doubt(group, t)


def _doubt(group, t):
    """T has values that other ranks made, at least in part."""
    if not t.is_cuda:
        _count_on_host(group, t)
        return
    shadow = shadows.of(t)
    if shadow is not None:
        shadow.made = _made(group, shadow)


def _reduced(group, tensors, _group, operation, *_rest):
    for t in tensors:
        _reduce(group, t, _name_of(operation))


def _reduced_at_root(group, tensors, _group, operation, root, *_rest):
    if group.rank == root:
        _reduced(group, tensors, _group, operation)


def _reduced_part(group, output, whole, _group, operation, *_rest):
    """This rank's part of WHOLE."""
    parts = whole.view(-1).chunk(group.size) if whole.is_contiguous() else ()
    _reduce_to(group, output, parts[group.rank] if group.rank < len(parts) else None, _name_of(operation))


def _reduced_part_of_each(group, outputs, inputs, _group, operation, *_rest):
    for output, whole in zip(outputs, inputs):
        _reduced_part(group, output, whole, _group, operation)


def _reduced_part_of_list(group, outputs, inputs, _group, operation, *_rest):
    for output, parts in zip(outputs, inputs):
        _reduce_to(group, output, parts[group.rank], _name_of(operation))


def _reduce_to(group, output, part, operation):
    """OUTPUT has this rank's PART (None: not known) of what all ranks reduce."""
    if part is None or part.numel() != output.numel() or part.is_cuda != output.is_cuda:
        _received([output])
        return
    _give(group, output.view(-1), part.view(-1))
    _reduce(group, output, operation)


def _name_of(operation):
    """The name of a ReduceOp as operators get it; None if it is unknown."""
    kinds = torch.distributed.ReduceOp
    if hasattr(kinds, "unbox"):
        operation = kinds.unbox(operation)
    else: # before PyTorch 2.15
        operation = getattr(_said, "operation", None)
        if operation is None:
            return "SUM"
    found = [name for name in _KEPT + ("SUM",) if operation == getattr(kinds, name, None)]
    return found[0] if found else None


_said = threading.local() # the operation that this thread reduces with, where an operator does not say it
_REDUCING = ("allreduce", "allreduce_coalesced", "reduce", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced")
_REDUCING_FUNCTIONAL = ("all_reduce", "all_reduce_", "all_reduce_coalesced", "all_reduce_coalesced_", "reduce_scatter_tensor",
                        "reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_out")


def _hear_operations(distributed):
    """Of methods of process groups and of functional collectives: what they reduce with."""
    if hasattr(distributed.ReduceOp, "unbox"):
        return
    for name in _REDUCING:
        method = getattr(distributed.ProcessGroup, name, None)
        if method is not None:
            setattr(distributed.ProcessGroup, name, _heard(method))
    functional = torch.library.Library("_c10d_functional", "IMPL")
    _libraries.append(functional)
    for name in _REDUCING_FUNCTIONAL:
        if hasattr(torch.ops._c10d_functional, name):
            _hear_functional(functional, name)


def _heard(method):
    @functools.wraps(method)
    def heard(group, *arguments, **named):
        kinds, found = torch.distributed.ReduceOp, None
        for value in (*arguments, *named.values()):
            value = getattr(value, "reduceOp", value)
            if isinstance(value, (kinds, kinds.RedOpType)):
                found = value
        with _saying(found):
            return method(group, *arguments, **named)

    return heard


def _hear_functional(library, name):
    op, key = getattr(torch.ops._c10d_functional, name).default, getattr(torch._C.DispatchKey, hooks.SWITCHED)

    def kernel(keys, *arguments, **named):
        with _saying(getattr(torch.distributed.ReduceOp, arguments[1].upper(), "unknown")):
            return op._handle.redispatch_boxed(keys.remove(key), *arguments, **named)

    library.impl(name, kernel, hooks.SWITCHED, with_keyset=True)


@contextlib.contextmanager
def _saying(operation):
    outer = getattr(_said, "operation", None)
    try:
        _said.operation = operation
        yield
    finally:
        _said.operation = outer


# Ranks with the same value reduce it to that value. A product would leave the range of all types.
_KEPT = ("AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR")


def _reduce(group, t, operation):
    """T, this rank's value, becomes what ranks with the same value have together."""
    if operation is None: # BXOR, a sum with a factor
        _received([t])
        return
    shadow = shadows.of(t) if t.is_cuda else None
    if t.is_cuda and (shadow is None or not shadows.is_small(t)):
        return # nothing was known
    values = shadows.view(t, shadow) if t.is_cuda else t
    if operation == "SUM" and values.dtype is not torch.bool:
        values.mul_(group.size)
    _doubt(group, t)


_NOT_WRITTEN_BY_FAKE = {"alltoall_base_", "alltoall_", "scatter_", "recv_", "recv_any_source_", "reduce_scatter_", "_reduce_scatter_base_",
                        "reduce_scatter_tensor_coalesced_"}
_RULES = {"allgather_": _gathered, "gather_": _gathered, "allgather_coalesced_": _gathered, "_allgather_base_": _gathered_into,
          "allgather_into_tensor_coalesced_": _gathered_into_each, "alltoall_base_": _exchanged, "alltoall_": _exchanged_each,
          "scatter_": _scattered, "recv_": _received_from_one, "recv_any_source_": _received_from_one, "broadcast_": _sent_to_all,
          "allreduce_": _reduced, "allreduce_coalesced_": _reduced, "reduce_": _reduced_at_root, "reduce_scatter_": _reduced_part_of_list,
          "_reduce_scatter_base_": _reduced_part, "reduce_scatter_tensor_coalesced_": _reduced_part_of_each}
