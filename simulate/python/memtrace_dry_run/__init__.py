"""What a dry run needs inside of Python.

Kernels do nothing in a dry run, so the device holds no values. This package keeps the values that steer a
program: copies on the host ("shadows") of small tensors on the device, computed by PyTorch's own kernels for
the CPU. Where a value is not known it answers with a plausible one, and counts that.

It never touches the device and never changes which requests PyTorch's allocator gets. A failure inside of it
is counted and leaves what the program would have had without it.

    notes      counts and places of made-up answers, written as JSON
    guesses    outcomes of made-up answers under the assumption of this run, and which of them made a program fail
    read_numbers  numbers that the program read, which decide where it compares them
    importing  runs functions after a module was imported
    shadows    values of tensors, by storage
    fillers    made-up values
    others     operators without a rule of their own, and how much work one is
    on_host    operators on the host, and what they pass on
    unknown    results of operators of unknown values
    sizes      sizes that operators read from the device
    rules      what each operator means for shadows
    hooks      puts the rules around PyTorch's operators
    graphs     what CUDA graphs write to
    patches    functions of Python that need a device: elapsed_time, torchvision's proposals
    compiled   torch.compile
    padding    what Inductor would decide by measuring products of matrices
    simulated_triton  Triton without a GPU and without a compiler
    written_arguments  what a kernel of Triton writes to
    alone      one rank without the others: the store, gloo, objects of other ranks
    simulated  functions that only the simulated libraries have
    apply      changes of the program that run on paper only
    patch_texts  what to paste into a program for each of them
    collectives  what collectives bring to a rank that is alone
    fake_groups  process groups that do nothing, and what NCCL would take for them
"""
import atexit
import os

_is_started = False


def start():
    """Called when the interpreter starts; a second call does nothing. Imports nothing of PyTorch."""
    from . import alone, apply, compiled, guesses, importing, notes

    global _is_started
    if _is_started:
        return
    _is_started = True
    if os.environ.get("MEMTRACE_DRY_RUN_SHADOWS", "1") == "0":
        return
    notes.start(os.environ.get("MEMTRACE_DRY_RUN_NOTES"))
    atexit.register(guesses.note_failure)  # before the notes are written
    importing.before("torch", _look_for_device)
    compiled.start()
    importing.after("torch", _patch)
    apply.start()
    importing.after("torch", _hook)
    importing.after("torch", apply.apply)
    importing.after("torchvision", _hook_torchvision)
    importing.after("torchvision.models.detection.rpn", _patch_proposals)
    for library in ("cupy", "jax", "tensorflow"):
        importing.before(library, _noting_other_library(library))
    if alone.is_asked():
        alone.prepare()
        importing.after("torch", _leave_alone)
        importing.after("torch.distributed.pipelining.stage", alone.ask_for_shapes)
    importing.start()


def _look_for_device():
    """Whether the simulated libraries are in this process; something may have removed LD_PRELOAD on the way to it. Then the
    program must not use a GPU of the machine."""
    from . import notes

    library = os.environ.get("MEMTRACE_DRY_RUN_PRELOAD")
    if library:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            is_there = os.path.realpath(library) in maps.read()
        if not is_there:
            os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    notes.fact("simulated", not library or is_there)
    notes.write()


def _noting_other_library(name):
    """It has an allocator of its own, and asks for more of CUDA than is simulated."""

    def note_other_library():
        from . import notes

        notes.fact("other_library", name)
        notes.write()

    return note_other_library


def _patch(torch):
    from . import patches

    patches.install(torch)


def _leave_alone(_torch):
    """torch.distributed is a part of what `import torch` imports, and needs the whole of it here."""
    from . import alone, importing

    importing.after("torch.distributed", alone.install)


def _hook(torch):
    from . import hooks

    hooks.install(torch)
    importing.after("torch.distributed", _hook_collectives)


def _hook_collectives(distributed):
    from . import collectives

    if distributed.is_available():
        collectives.install(distributed)


def _hook_torchvision(_torchvision):
    from . import hooks

    hooks.install_torchvision()


def _patch_proposals(rpn):
    from . import patches

    patches.rank_proposals(rpn)
