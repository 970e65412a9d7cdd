"""torch.compile in a dry run: Dynamo and Inductor run, and the functions that they make.

Where Triton is missing, or Inductor fails, a function runs as it is, and the answer says so."""
import atexit
import fcntl
import functools
import glob
import importlib.util
import os
import shutil
import stat
import tempfile
import threading

from . import importing, notes, padding, simulated_triton

FOLDER_PREFIX = "memtrace-compiled-"
LOCK = "owner.lock"
_here = threading.local()


def start():
    """Called before PyTorch is imported. Children inherit the environment."""
    if importlib.util.find_spec("triton") is None:
        os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
        importing.after("torch", _run_as_it_is)
        return
    # Workers compile for Triton only; there is nothing to compile.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    importing.after("triton", simulated_triton.install)
    importing.after("torch._dynamo.convert_frame", _compiling)
    importing.after("torch._inductor.compile_fx", _counted)
    importing.after("torch._inductor.runtime.triton_heuristics", simulated_triton.install_in_inductor)
    importing.after("torch._inductor.fx_passes.pad_mm", padding.install)


def _run_as_it_is(torch):
    """torch.compile gives back what it got."""
    if not hasattr(torch, "compile"):
        return

    @functools.wraps(torch.compile)
    def compile(model=None, *_arguments, **_named):
        if model is None:
            return compile
        _ran_as_it_is()
        return model

    torch.compile = compile


def _ran_as_it_is():
    notes.made_up("eager")
    notes.fact("torch_compile", "eager")


def _compiling(convert_frame):
    """Dynamo computes on fake tensors, for which no rule is made."""
    from . import hooks

    _use_own_cache()
    _leave_out_this_package()
    # Guards compare the thread's dispatch keys, of which the hooks' is one, with those of the call.
    guards = convert_frame.CheckFunctionManager
    guards.__init__ = hooks.switched_as_outside(guards.__init__)
    reasons = getattr(convert_frame, "get_and_maybe_log_recompilation_reasons", None)
    if reasons is not None:
        convert_frame.get_and_maybe_log_recompilation_reasons = hooks.switched_as_outside(reasons)
    compiled = hooks.switched_off(convert_frame._compile)

    @functools.wraps(compiled)
    def compile(*arguments, **named):
        try:
            return compiled(*arguments, **named)
        except Exception as error:
            if not any(kind.__name__ in _OWN_WAYS for kind in type(error).__mro__):
                _ran_as_it_is()
                notes.failed("torch.compile", error)
                # Not before: it forbids programs to set fail_on_recompile_limit_hit, and hides errors of their own.
                convert_frame.config.suppress_errors = True
            raise

    convert_frame._compile = compile


def _counted(compile_fx):
    """Counts what Inductor compiles. Dynamo also gives functions to other backends, and leaves out those without tensors."""
    compiled = compile_fx.compile_fx

    @functools.wraps(compiled)
    def counted(*arguments, **named):
        if getattr(_here, "is_in_inductor", False): # it calls itself with other settings
            return compiled(*arguments, **named)
        _here.is_in_inductor = True
        try:
            made = compiled(*arguments, **named)
        finally:
            _here.is_in_inductor = False
        notes.made_up("compiled")
        notes.fact("torch_compile", "inductor")
        return made

    compile_fx.compile_fx = counted


def _leave_out_this_package():
    """Dynamo does not look at the frames of this package."""
    from torch._dynamo import trace_rules

    trace_rules.add(__package__)


# How Dynamo itself says that a frame is not for it, or that the program asks for what it does not do.
_OWN_WAYS = ("Unsupported", "SkipFrame", "RecompileLimitExceeded", "FailOnRecompileLimitHit", "CacheLimitExceeded", "UnsafeScriptObjectError")


def _use_own_cache():
    """What a dry run chose as fastest must not be what a real run finds."""
    _remove_stale(tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
    _lock(os.path.join(folder, LOCK))
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    os.environ.pop("TRITON_CACHE_DIR", None)
    atexit.register(_remove, folder, os.getpid())


def _lock(path, flags=os.O_CREAT):
    """A descriptor that holds PATH until this process has ended, however it does; None if another process has it."""
    file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _remove_stale(parent):
    """Folders of runs that were killed: this user's own, and locked by nobody. Not where another user could put another
    folder of this user in the place of one that was checked."""
    place = os.stat(parent)
    if place.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not place.st_mode & stat.S_ISVTX:
        return
    for folder in glob.glob(os.path.join(glob.escape(parent), FOLDER_PREFIX + "*")):
        try:
            found = os.lstat(folder)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            file = _lock(os.path.join(folder, LOCK), 0)
            if file is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(file)
        except OSError:
            continue


def _remove(folder, owner):
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
