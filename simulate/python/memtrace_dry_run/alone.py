"""One rank of a distributed run, without the others ($MEMTRACE_DRY_RUN_ALONE=1).

The process group stays PyTorch's own, so that what it allocates and which streams it uses stay as they are; NCCL is
simulated and asks nobody. What is left to answer for the other ranks is the store, gloo, which connects processes,
and objects that only another rank has: everybody did as this rank does. Objects that one rank sends to another one
arrive if both are part of the dry run: stages of a pipeline send shapes this way (objects.py)."""
import functools
import inspect
import os
import sys

from . import notes, objects

# The value of a key that the store does not have: as long as NCCL's unique id, which is what ranks read from each other.
UNKNOWN_VALUE = b"\7" * 128

_kept = []  # C++ holds stores and backends without a reference to their Python half


def is_asked():
    return os.environ.get("MEMTRACE_DRY_RUN_ALONE") == "1"


def prepare():
    """Before PyTorch is there. Children inherit it: no thread shall ask the store what went wrong elsewhere."""
    os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")
    os.environ.setdefault("TORCH_NCCL_DUMP_ON_TIMEOUT", "0")


def install(distributed):
    """DISTRIBUTED is torch.distributed."""
    if not distributed.is_available():
        return
    modules = [module for name, module in sorted(sys.modules.items()) if name == "torch.distributed" or name.startswith("torch.distributed.")]
    _replace(modules, "TCPStore", _store(distributed.Store, 2)) # (host, port, world_size, ...)
    _replace(modules, "FileStore", _store(distributed.Store, 1)) # (path, world_size)
    _gloo(modules, distributed)
    _objects(modules, distributed)
    _plumbing(modules, distributed)
    _splits(modules, distributed)
    from . import collectives

    collectives.install(distributed)


def _replace(modules, name, value):
    """Modules that are complete by now, such as device_mesh, have functions by name."""
    for module in modules:
        if name in getattr(module, "__dict__", ()):
            setattr(module, name, value)


def _store(base, world_at):
    """A store in which every other rank has done what this one does. Nobody waits."""

    class AloneStore(base):
        def __init__(self, *arguments, **named):
            super().__init__()
            self._values, self._world = {}, _world_size(arguments[world_at:], named)
            self.host = named.get("host_name", arguments[0] if arguments else "")
            self.port = named.get("port", arguments[1] if len(arguments) > 1 else 0)
            self.path = self.host
            _kept.append(self)

        def set(self, key, value):
            self._values[key] = value if isinstance(value, bytes) else str(value).encode()

        def get(self, key):
            return self._values.get(key, UNKNOWN_VALUE)

        def compare_set(self, key, expected, desired):
            if self._values.get(key, b"") in (b"", _bytes(expected)):
                self.set(key, desired)
            return self._values[key]

        def add(self, key, amount):
            """Each rank adds as much: who counts the ranks finds all of them."""
            total = int(self._values.get(key, b"0")) + amount * self._world
            self.set(key, str(total))
            return total

        def append(self, key, value):
            self._values[key] = self._values.get(key, b"") + _bytes(value)

        def check(self, keys):
            return all(key in self._values for key in keys)

        def wait(self, keys, timeout=None):
            """All keys are there."""

        def delete_key(self, key):
            return self._values.pop(key, None) is not None

        def num_keys(self):
            return len(self._values)

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self):
            return True

        def set_timeout(self, timeout):
            """Nothing takes time here."""

        def clone(self):
            return self

    return AloneStore


def _bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


def _world_size(arguments, named):
    """The first of ARGUMENTS, or the one of that name; of the environment if neither says how many ranks there are."""
    given = arguments[0] if arguments else named.get("world_size")
    return given if isinstance(given, int) and given > 0 else int(os.environ.get("WORLD_SIZE", "1"))


def _gloo(modules, distributed):
    """gloo connects processes when it is made: this one connects nobody, and `collectives` calls it as one of one."""
    if not distributed.is_gloo_available():
        return
    real, store = distributed.distributed_c10d.ProcessGroupGloo, distributed.HashStore

    class ProcessGroupGloo(real):
        is_alone = True

        def __init__(self, _store, rank, size, *arguments, **named):
            super().__init__(store(), 0, 1, *arguments, **named)
            self.of_group = {"rank": rank, "size": size}
            _kept.append(self)

    _replace(modules, "ProcessGroupGloo", ProcessGroupGloo)
    for name in ("rank", "size"):
        setattr(distributed.ProcessGroup, name, _of_group(getattr(distributed.ProcessGroup, name), name))
    # It would compare the ranks' calls with each other.
    _replace(modules, "_create_process_group_wrapper", lambda wrapped_pg, *_arguments, **_named: wrapped_pg)


def _of_group(function, name):
    """The group's number NAME: PyTorch 2.15 asks the group's backend, and gloo here is one of one."""

    @functools.wraps(function)
    def number(group):
        for device in group._device_types:
            given = getattr(group._get_backend(device), "of_group", None)
            if given is not None:
                return given[name]
        return function(group)

    return number


def _splits(modules, distributed):
    """Tells simulated NCCL how large the communicator is that a new group splits off."""
    from . import simulated

    tell = simulated.function("memtrace_simulated_split", 2)
    make = getattr(distributed.distributed_c10d, "_new_process_group_helper", None)
    if tell is None or make is None:
        return

    @functools.wraps(make)
    def _new_process_group_helper(group_size, group_rank, *arguments, **named):
        try:
            if group_rank is not None and group_rank >= 0:
                tell(group_size, group_rank)
            return make(group_size, group_rank, *arguments, **named)
        finally:
            tell(0, 0) # not for a later group, if this one splits nothing

    _replace(modules, "_new_process_group_helper", _new_process_group_helper)
    split = getattr(distributed, "split_group", None)
    if split is None:
        return

    @functools.wraps(split)
    def split_group(*arguments, **named):
        bound = _bind(split, arguments, named)
        parent = bound.arguments.get("parent_pg")
        rank = distributed.get_rank(parent)
        try:
            for ranks in bound.arguments.get("split_ranks") or ():
                if rank in ranks:
                    tell(len(ranks), sorted(ranks).index(rank))
            return split(*arguments, **named)
        finally:
            tell(0, 0)

    _replace(modules, "split_group", split_group)


def _objects(modules, distributed):
    for name, wrap in (("broadcast_object_list", _broadcast_object_list), ("scatter_object_list", _scatter_object_list),
                       ("send_object_list", objects.sending), ("recv_object_list", _recv_object_list),
                       ("monitored_barrier", _monitored_barrier)):
        function = getattr(distributed, name, None)
        if function is not None:
            _replace(modules, name, wrap(distributed, function))


def _plumbing(modules, distributed):
    """DDP compares the shapes of parameters, and all its ranks have the buckets of rank 0; gathered objects are measured and copied as tensors."""
    from . import collectives

    for name, has_objects in (("_verify_params_across_processes", False), ("all_gather_object", True), ("gather_object", True)):
        function = getattr(distributed, name, None)
        if function is not None:
            function = collectives.plumbing(function)
            _replace(modules, name, _noting_object(function) if has_objects else function)
    reducer = getattr(distributed, "Reducer", None)
    if hasattr(reducer, "_rebuild_buckets"):
        reducer._rebuild_buckets = collectives.plumbing(reducer._rebuild_buckets)


def _noting_object(function):
    @functools.wraps(function)
    def call(*arguments, **named):
        notes.made_up("object")
        return function(*arguments, **named)

    return call


def _bind(function, arguments, named):
    bound = inspect.signature(function).bind(*arguments, **named)
    bound.apply_defaults()
    return bound


def _is_member(distributed, group):
    return distributed.get_rank(group) >= 0


def _is_source(distributed, bound):
    group = bound.arguments.get("group")
    in_group = bound.arguments.get("group_src")
    if in_group is not None:
        return distributed.get_rank(group) == in_group
    return distributed.get_rank() == (bound.arguments.get("src") or 0)


def _broadcast_object_list(distributed, function):
    """A rank that does not have the objects sends its own to itself: what the source would allocate."""

    @functools.wraps(function)
    def broadcast_object_list(*arguments, **named):
        bound = _bind(function, arguments, named)
        if not _is_member(distributed, bound.arguments.get("group")) or _is_source(distributed, bound):
            return function(*arguments, **named)
        notes.made_up("object")
        bound.arguments["src"] = distributed.get_rank()
        if "group_src" in bound.arguments:
            bound.arguments["group_src"] = None
        return function(*bound.args, **bound.kwargs)

    return broadcast_object_list


def _scatter_object_list(distributed, function):
    """The receiver's list stays as it is."""

    @functools.wraps(function)
    def scatter_object_list(*arguments, **named):
        bound = _bind(function, arguments, named)
        if _is_member(distributed, bound.arguments.get("group")) and not _is_source(distributed, bound):
            notes.made_up("object")
            return None
        return function(*arguments, **named)

    return scatter_object_list


def ask_for_shapes(stage):
    """STAGE is torch.distributed.pipelining.stage: a stage receives the shapes of its inputs from the one before it."""
    infer = stage.PipelineStage._shape_inference

    @functools.wraps(infer)
    def _shape_inference(self, *arguments, **named):
        try:
            return infer(self, *arguments, **named)
        except AssertionError as error:
            if self.is_first or "Expected tuple" not in str(error):
                raise
            raise RuntimeError(
                "memtrace dry-run: stage %d runs without the stage before it, which would send the shapes of its inputs; run its rank "
                "too (--ranks all), or pass them: "
                'PipelineStage(..., input_args=torch.empty(SHAPE, device="meta"), output_args=torch.empty(SHAPE, device="meta"))'
                % self.stage_index) from None

    stage.PipelineStage._shape_inference = _shape_inference


def _recv_object_list(distributed, function):
    """The receiver's list stays as it is if the sender is not part of the dry run."""

    @functools.wraps(function)
    def recv_object_list(*arguments, **named):
        bound = _bind(function, arguments, named)
        source = objects.peer(distributed, bound, "src")
        if not objects.receive(distributed, bound, source):
            notes.made_up("object")
        return 0 if source is None else source

    return recv_object_list


def _monitored_barrier(distributed, function):
    """Everybody arrives."""

    @functools.wraps(function)
    def monitored_barrier(*arguments, **named):
        bound = _bind(function, arguments, named)
        group = bound.arguments.get("group")
        if _is_member(distributed, group) and distributed.get_backend(group) != "gloo":
            return function(*arguments, **named) # says that it wants gloo
        return None

    return monitored_barrier
