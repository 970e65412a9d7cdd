"""What collectives bring, where this rank is alone: everybody's part is this rank's own.

Only values are handled here, those of shadows and of tensors on the host: operators of PyTorch's process groups run
as they are, with simulated NCCL below them. What is reduced stays this rank's own value."""
import torch

from . import hooks, notes, shadows

_libraries = []


def install(_distributed):
    library = torch.library.Library("c10d", "IMPL")
    _libraries.append(library)
    for name in sorted(set(_RULES) | set(_OF_ONE) | _WITHOUT_VALUES):
        try:
            _register(library, name)
        except Exception as error:
            notes.failed("hook of c10d::" + name, error)


def _register(library, name):
    op = getattr(torch.ops.c10d, name).default
    key = getattr(torch._C.DispatchKey, hooks.SWITCHED)
    redispatch, rule = op._handle.redispatch_boxed, _RULES.get(name)
    group_at = [i for i, a in enumerate(op._schema.arguments) if "ProcessGroup" in str(a.type)][0]
    has_tensors_back = len(op._schema.returns) > 1

    def kernel(keys, *arguments, **named):
        def run(*arguments):
            return redispatch(keys.remove(key), *arguments, **named)

        gloo = _lonely_gloo(arguments[0], arguments[group_at])
        if gloo is None:
            out = run(*arguments)
        else:
            work = _run_as_one(name, run, arguments, gloo)
            out = (arguments[0], work) if has_tensors_back else work
        if rule is not None:
            try:
                with hooks.Quiet():
                    rule(*arguments)
            except Exception as error:
                notes.failed("c10d::" + name, error)
        return out

    library.impl(name, kernel, hooks.SWITCHED, with_keyset=True)


# ---- gloo


def _lonely_gloo(tensors, group):
    """The backend, if it is a gloo that has no other ranks (alone.py); None for others."""
    while isinstance(tensors, (list, tuple)):
        if not tensors:
            return None
        tensors = tensors[0]
    try:
        backend = torch.distributed.ProcessGroup.unbox(group)._get_backend(tensors.device)
    except (RuntimeError, AttributeError):
        return None
    return backend if getattr(backend, "is_alone", False) else None


def _run_as_one(name, run, arguments, gloo):
    """The work of a collective of one rank: what gloo does with tensors of the device is its own."""
    narrow = _OF_ONE.get(name)
    if narrow is None: # one rank has nothing to do
        return gloo.barrier().boxed()
    out = run(*narrow(list(arguments)))
    return out[-1] if isinstance(out, (list, tuple)) else out


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
_WITHOUT_VALUES = {"send", "reduce_scatter_", "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_"}


# ---- values


def _give(to, source):
    """TO has the values of SOURCE."""
    if type(to) is not torch.Tensor or to.shape != source.shape:
        return
    if not to.is_cuda:
        if to.data_ptr() != source.data_ptr() and not source.is_cuda:
            to.copy_(source)
        return
    shadow = shadows.of(source)
    if shadow is not None and shadows.is_small(to):
        shadows.keep(to, shadows.view(source, shadow), shadow.made)
    elif shadows.of(to) is not None:
        shadows.forget(to)


def _give_parts(to, source):
    """Each part of TO, which is as large as SOURCE, has the values of SOURCE."""
    count = to.numel() // max(source.numel(), 1)
    if count * source.numel() != to.numel() or (to.is_cuda and not shadows.is_small(to)):
        return
    for part in to.view(-1).chunk(max(count, 1)):
        _give(part, source.view(-1))


def _gathered(outputs, inputs, *_rest):
    for parts, own in zip(outputs, inputs):
        for part in parts:
            _give(part, own)


def _gathered_into(output, own, *_rest):
    _give_parts(output, own)


def _gathered_into_each(outputs, inputs, *_rest):
    for output, own in zip(outputs, inputs):
        _give_parts(output, own)


def _exchanged(output, own, *_rest):
    """Others send what this rank sends: as much in all."""
    if output.numel() == own.numel():
        _give(output.view(-1), own.view(-1))


def _exchanged_each(outputs, inputs, *_rest):
    for output, own in zip(outputs, inputs):
        _give(output, own)


def _scattered(outputs, inputs, *_rest):
    for output, parts in zip(outputs, inputs):
        if parts:
            _give(output, parts[0])


def _received(tensors, *_rest):
    for t in tensors:
        if t.is_cuda:
            shadows.forget(t)


_RULES = {"allgather_": _gathered, "gather_": _gathered, "allgather_coalesced_": _gathered, "_allgather_base_": _gathered_into,
          "allgather_into_tensor_coalesced_": _gathered_into_each, "alltoall_base_": _exchanged, "alltoall_": _exchanged_each,
          "scatter_": _scattered, "recv_": _received, "recv_any_source_": _received}
