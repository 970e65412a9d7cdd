"""Objects that a rank sends to one other rank, if both are part of the same dry run.

Each rank is a process of its own, and they need not run at the same time: a sender leaves a file, and a receiver waits
for it. $MEMTRACE_DRY_RUN_OBJECTS begins the names of these files, in a private folder of the dry run. Like PyTorch,
the receiver unpickles what the other process of the same program has pickled."""
import functools
import inspect
import io
import os
import pickle
import sys
import time

PATIENCE_S = 60 # a sender may come after its receiver, or fail

_counts = {} # (sender, receiver): objects so far
_absent = set() # senders that did not come


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
        result = function(*arguments, **named)
        _leave(_path(distributed.get_rank(), peer(distributed, bound, "dst")), bound.arguments["object_list"])
        return result

    return send_object_list


def receive(distributed, bound, sender):
    """Fills the list of a call of recv_object_list, and receives as it would. False: nothing came."""
    path = _path(sender, distributed.get_rank())
    if path is None or sender in _absent:
        return False
    data = _wait(path)
    if data is None:
        _absent.add(sender)
        sys.stderr.write("memtrace: rank %d waited %d s for an object of rank %d: --jobs allows too few ranks at the same time, "
                         "or that rank failed\n" % (distributed.get_rank(), PATIENCE_S, sender))
        return False
    received = pickle.loads(data)
    bound.arguments["object_list"][:] = received
    _receive_tensors(distributed, bound, received)
    return True


def _leave(path, objects):
    """Without room for the file, the receiver waits in vain, and this rank goes on."""
    if path is None:
        return
    try:
        with open(path + ".part", "wb") as file:
            pickle.dump(list(objects), file)
        os.replace(path + ".part", path)
    except OSError as error:
        sys.stderr.write("memtrace: cannot leave an object for another rank: %s\n" % error)


def _path(sender, receiver):
    """None if one of them is not part of the dry run ($MEMTRACE_DRY_RUN_RANKS: "0,1,7")."""
    stem = os.environ.get("MEMTRACE_DRY_RUN_OBJECTS")
    ranks = os.environ.get("MEMTRACE_DRY_RUN_RANKS", "").split(",")
    if not stem or str(sender) not in ranks or str(receiver) not in ranks:
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

    device = bound.arguments.get("device")
    device_of = getattr(distributed.distributed_c10d, "_get_object_coll_device", None) # newer than PyTorch 2.4
    if device is None and device_of is not None:
        device = device_of(bound.arguments.get("group"))
    elif device is None and "nccl" in distributed.get_backend(bound.arguments.get("group")):
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
