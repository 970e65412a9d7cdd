"""Objects that a rank sends to one other rank, if both are part of the same dry run.

Each rank is a process of its own, and they need not run at the same time: a sender leaves a file, and a receiver waits
for it. $MEMTRACE_DRY_RUN_OBJECTS begins the names of these files, in a private folder of the dry run. Like PyTorch,
the receiver unpickles what the other process of the same program has pickled."""
import functools
import inspect
import io
import os
import pickle
import time

PATIENCE_S = 60 # a sender may come after its receiver, or fail

_counts = {} # (sender, receiver): objects so far


def peer(distributed, bound, side):
    """The rank of the other side, "src" or "dst", in the whole job; None if the call does not name it."""
    in_group = bound.arguments.get("group_" + side)
    if in_group is None:
        return bound.arguments.get(side)
    group = bound.arguments.get("group") or distributed.distributed_c10d._get_default_group()
    return distributed.get_global_rank(group, in_group)


def sending(distributed, function):
    """send_object_list that also leaves its objects to the receiver."""

    @functools.wraps(function)
    def send_object_list(*arguments, **named):
        bound = inspect.signature(function).bind(*arguments, **named)
        receiver = peer(distributed, bound, "dst")
        path = _path(distributed.get_rank(), receiver)
        if path is not None and receiver is not None:
            with open(path + ".part", "wb") as file:
                pickle.dump(list(bound.arguments["object_list"]), file)
            os.replace(path + ".part", path)
        return function(*arguments, **named)

    return send_object_list


def receive(distributed, bound, sender):
    """Fills the list of a call of recv_object_list, and receives as it would. False: nothing came."""
    path = _path(sender, distributed.get_rank())
    data = _wait(path) if path is not None and sender is not None else None
    if data is None:
        return False
    received = pickle.loads(data)
    bound.arguments["object_list"][:] = received
    _receive_tensors(distributed, bound, received)
    return True


def _path(sender, receiver):
    stem = os.environ.get("MEMTRACE_DRY_RUN_OBJECTS")
    if not stem:
        return None
    number = _counts[sender, receiver] = _counts.get((sender, receiver), 0) + 1
    return "%s-%s-%s-%d" % (stem, sender, receiver, number)


def _wait(path):
    last = time.monotonic() + PATIENCE_S
    while True:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            if time.monotonic() > last:
                return None
            time.sleep(0.02)


def _receive_tensors(distributed, bound, received):
    """Allocates and communicates like recv_object_list: sizes, then bytes."""
    import torch

    group, device = bound.arguments.get("group"), bound.arguments.get("device")
    if device is None and distributed.get_backend(group) == "nccl":
        device = torch.device("cuda", torch.cuda.current_device())
    count = sum(_size(item) for item in received)
    for shape, dtype in ((len(received), torch.long), (count, torch.uint8)):
        _receive_tensor(distributed, bound, torch.empty(shape, dtype=dtype, device=device))


def _size(item):
    file = io.BytesIO()
    pickle.Pickler(file).dump(item)
    return file.tell()


def _receive_tensor(distributed, bound, tensor):
    sides = {side: bound.arguments[side] for side in ("src", "group_src") if bound.arguments.get(side) is not None}
    group = bound.arguments.get("group")
    if not bound.arguments.get("use_batch"):
        distributed.recv(tensor, group=group, **sides)
        return
    sender = peer(distributed, bound, "src")
    for work in distributed.batch_isend_irecv([distributed.P2POp(distributed.irecv, tensor, sender, group)]):
        work.wait()
