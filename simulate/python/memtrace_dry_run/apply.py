"""Changes of the program that run on paper only ($MEMTRACE_DRY_RUN_APPLY, separated by '+').

Each change is a text to paste into the program (patch_texts.py). The text runs here as it would run there; around it are
only counters of calls, bytes and FLOPs, which hold no tensor longer than the program does."""
import atexit
import difflib
import functools
import importlib.util
import inspect
import os
import sys

from . import importing, notes, patch_texts

TOP = "at the top of the program"
OPTIMIZER_OPTIONS = {"foreach": "False", "fused": "True"}
CONFIGURATIONS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
MAX_NAMED_CLASSES = 12
_changes = []  # all that were requested
_classes = set()  # of the modules that were made
_costs = {"flops": 0, "recomputed_flops": 0, "is_recomputing": False}


class Change:
    """One change: its pieces to paste, and what it did."""

    def __init__(self, text):
        self.text, self.pieces, self.calls, self.copied_bytes = text, [], 0, 0
        self.kind, _, self.value = text.partition("=")
        self.missing = ""  # why nothing was changed
        self.waiting = set()  # classes that no module has yet

    def paste(self, text, place=TOP, scope=None):
        """Runs TEXT as the program would at PLACE, and returns the names that it has then."""
        text = text.strip("\n")
        self.pieces.append({"place": place, "text": text})
        scope = {} if scope is None else scope
        _run(text, scope)
        return scope

    def count(self, copied_bytes=0):
        self.calls += 1
        self.copied_bytes += copied_bytes
        if self.calls & (self.calls - 1) == 0:
            _tell()

    def as_dict(self):
        told = {"change": self.text, "calls": self.calls, "copied_bytes": self.copied_bytes, "pieces": self.pieces}
        if self.kind == "checkpoint" and "compiled" not in notes.kinds():
            told.update({name: _costs[name] for name in ("flops", "recomputed_flops")})
        is_hidden = self.kind in ("checkpoint", "offload") and "compiled" in notes.kinds() # calls that Dynamo traces are not counted
        problem = _no_class(sorted(self.waiting)) if self.waiting else "" if self.calls or is_hidden else self.missing
        return dict(told, problem=problem)


def _run(text, scope):
    """Dynamo looks into its functions, because no package has the file; the analysis knows them by the folder's name."""
    exec(compile(text + "\n", "/memtrace_dry_run/patch.py", "exec"), scope)


def start():
    """Called before PyTorch is imported, and before its operators have hooks."""
    texts = [text for text in os.environ.get("MEMTRACE_DRY_RUN_APPLY", "").split("+") if text and text != "none"]
    _changes.extend(Change(text) for text in dict.fromkeys(texts))
    if not _changes:
        return
    atexit.register(_tell) # before the notes are written
    for change in _changes:
        if change.kind == "expandable":
            _expand(change)
    if any(change.kind == "checkpoint" for change in _changes):
        importing.after("torch", _count_flops)


def _tell():
    notes.fact("applied", [change.as_dict() for change in _changes])
    notes.write()


def apply(torch):
    """Called when PyTorch is complete and its operators have their hooks."""
    if not _changes:
        return
    by_class = [change for change in _changes if change.kind in ("checkpoint", "offload")]
    if by_class:
        _watch_modules(torch.nn.Module, [_ByClass(torch, change) for change in by_class])
    for change in _changes:
        if change.kind in _AT_ONCE:
            _AT_ONCE[change.kind](torch, change)
    _tell()


# ---- modules by class


class _ByClass:
    """A change of the modules of some classes."""

    def __init__(self, torch, change):
        self.torch, self.change, self.scopes = torch, change, {}
        self.names = set(change.value.split(","))
        change.waiting = set(self.names)

    def meet(self, cls):
        found = {cls.__name__, "%s.%s" % (cls.__module__, cls.__qualname__)} & self.names
        if found:
            self.change.waiting -= found
            self._change_class(cls)
            _tell()

    def _change_class(self, cls):
        self.change.missing = "%s never ran in training with gradients" % cls.__name__
        if self.change.kind == "offload":
            function, text = "offloaded", patch_texts.OFFLOAD
        elif hasattr(cls, "gradient_checkpointing") and any(c.__name__ == "GradientCheckpointingLayer" for c in cls.__mro__):
            function, text = "switched_on", patch_texts.CHECKPOINT_SWITCH
        else:
            function, text = "checkpointed", patch_texts.CHECKPOINT
        scope = self.scopes.get(function)
        if scope is None:
            scope = self.scopes[function] = self.change.paste(text)
            self._count(scope)
        place, lines = _where(cls)
        scope[cls.__name__] = cls
        self.change.pieces.append({"place": place, "text": "%s%s(%s)" % (lines, function, cls.__name__)})
        scope[function](cls)

    def _count(self, scope):
        if self.change.kind == "offload":
            scope["torch"] = _Counted(self.torch, _copying(self.torch, self.change))
        else:
            scope["_checkpoint"], scope["_counted"] = scope["checkpoint"], _counted_checkpoint(scope["checkpoint"], self.change)
            _run(_CHECKPOINT_COUNTED, scope)


# Dynamo looks into this one.
_CHECKPOINT_COUNTED = """
import torch
def checkpoint(function, *args, use_reentrant, **kwargs):
    if torch.compiler.is_compiling():
        return _checkpoint(function, *args, use_reentrant=use_reentrant, **kwargs)
    return _counted(function, *args, use_reentrant=use_reentrant, **kwargs)
"""


def _counted_checkpoint(checkpoint, change):
    def counted(function, *arguments, **named):
        change.count()
        return checkpoint(_told_recomputing(function), *arguments, **named)

    return counted


def _told_recomputing(function):
    """FUNCTION, all of whose calls but the first recompute."""
    state = {"is_again": False}

    def run(*arguments, **named):
        before = _costs["is_recomputing"]
        _costs["is_recomputing"], state["is_again"] = state["is_again"], True
        try:
            return function(*arguments, **named)
        finally:
            _costs["is_recomputing"] = before

    return run


def _watch_modules(module, changes):
    """Classes exist before their modules, however they are made."""

    def watched(make):
        @functools.wraps(make)
        def call(self, *arguments, **named):
            cls = type(self)
            if cls not in _classes:
                _classes.add(cls)
                for change in changes:
                    change.meet(cls)
            return make(self, *arguments, **named)

        return call

    module.__init__, module.__setstate__ = watched(module.__init__), watched(module.__setstate__)


def _no_class(missing):
    made = sorted({cls.__name__ for cls in _classes if not cls.__module__.startswith("torch.nn.")})
    near = difflib.get_close_matches(missing[0], made, 1)
    shown = ", ".join(made[:MAX_NAMED_CLASSES]) + (", ..." if len(made) > MAX_NAMED_CLASSES else "")
    return "no module of class %s was made; %sclasses that were made: %s" % (
        " or ".join(missing), "did you mean %s? " % near[0] if near else "", shown or "none")


def _where(cls):
    """The place to paste a call with CLS, and the lines that import it."""
    if cls.__module__ != "__main__":
        return TOP, "from %s import %s\n" % (cls.__module__, cls.__qualname__.partition(".")[0])
    try:
        lines, first = inspect.getsourcelines(cls)
        return "below class %s, after line %d of %s" % (cls.__name__, first + len(lines) - 1, os.path.basename(inspect.getsourcefile(cls))), ""
    except (OSError, TypeError):
        return "below class %s" % cls.__name__, ""


# ---- bytes that are copied


class _Counted:
    """torch, with another save_on_cpu."""

    def __init__(self, torch, save_on_cpu):
        self._torch, self.save_on_cpu = torch, save_on_cpu
        self.autograd = self.graph = self

    def __getattr__(self, name):
        return getattr(self._torch, name)


def _copying(torch, change):
    """save_on_cpu, which counts."""

    def save_on_cpu(**named):
        made = torch.autograd.graph.save_on_cpu(**named)
        pack = made.pack_hook

        def counted(tensor):
            if tensor.is_cuda:
                change.count(tensor.numel() * tensor.element_size())
            return pack(tensor)

        made.pack_hook = counted
        return made

    return save_on_cpu


def _save_on_cpu(torch, change):
    change.missing = "no tensor was saved for backward"
    text = patch_texts.SAVE_ON_CPU.strip("\n")
    change.pieces.append({"place": TOP, "text": text})
    _copying(torch, change)(pin_memory=True).__enter__()


# ---- the optimizer, the loss, the data type, the allocator


def _optimizer_option(torch, change):
    option = "%s=%s" % (change.kind, change.value or OPTIMIZER_OPTIONS[change.kind])
    change.missing = "no optimizer of torch.optim that takes %s was made" % change.kind
    _on_optimizers(torch, change, patch_texts.OPTIMIZER, option, lambda cls: change.kind in inspect.signature(cls).parameters)


def _eight_bits(torch, change):
    change.missing = "neither torch.optim.Adam nor AdamW was made"
    if importlib.util.find_spec("bitsandbytes") is None:
        change.missing = "the environment of the program has no bitsandbytes (pip install bitsandbytes)"
        _tell()
        sys.exit(2)
    _on_optimizers(torch, change, patch_texts.EIGHT_BITS, "", lambda cls: cls.__name__ in ("Adam", "AdamW"))


def _on_optimizers(torch, change, text, option, takes):
    """Pastes TEXT for all optimizers, and shows it for those that the program makes."""
    names, base = {}, torch.optim.Optimizer
    for name, cls in sorted(vars(torch.optim).items()):
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base and takes(cls):
            filled = text.format(name=name, option=option)
            change.paste(filled)
            names[getattr(torch.optim, name)] = change.pieces.pop()
    init = base.__init__

    @functools.wraps(init)
    def counted(self, *arguments, **named):
        piece = next((names[cls] for cls in type(self).__mro__ if cls in names), None)
        if piece is not None:
            if piece not in change.pieces:
                change.pieces.append(piece)
            change.count()
        return init(self, *arguments, **named)

    base.__init__ = counted


def _chunked_loss(_torch, change):
    change.missing = "cross_entropy never ran with gradients on [tokens, classes]"
    scope = change.paste(patch_texts.CHUNKED_LOSS.format(chunks=int(change.value)))
    loss = scope["ChunkedCrossEntropy"]
    apply = loss.apply

    def counted(*arguments):
        change.count()
        return apply(*arguments)

    loss.apply = counted


def _dtype(_torch, change):
    change.paste(patch_texts.DTYPE.format(dtype=change.value))
    change.count()


def _expand(change):
    names = [name for name in CONFIGURATIONS if os.environ.get(name)] or [CONFIGURATIONS[1]]
    for name in names:
        kept = [part for part in os.environ.get(name, "").split(",") if part.strip() and not part.strip().startswith("expandable_segments")]
        os.environ[name] = ",".join(kept + ["expandable_segments:True"])
        change.pieces.append({"place": "in the shell, before the command", "text": "export %s=%s" % (name, os.environ[name])})
    change.calls = 1


_AT_ONCE = {"save_on_cpu": _save_on_cpu, "foreach": _optimizer_option, "fused": _optimizer_option, "8bit": _eight_bits,
            "chunked-loss": _chunked_loss, "dtype": _dtype}


# ---- FLOPs


def _count_flops(torch):
    """FLOPs of products and convolutions outside of the engine; backward has twice those of forward."""
    from . import hooks

    def matrices(arguments, out):
        a, b = [a for a in arguments if isinstance(a, torch.Tensor) and a.dim() > 1][-2:]
        return 2 * a.numel() * b.shape[-1]

    def convolution(arguments, out):
        weight = arguments[1]
        made = arguments[0] if arguments[6] else out # transposed
        return 2 * made.numel() * weight.numel() // weight.shape[0]

    def attention(arguments, out):
        query, key = arguments[:2]
        return 4 * query.numel() * key.shape[-2]

    def recurrent(arguments, out):
        steps = arguments[0].shape[0] * arguments[0].shape[1]
        return 2 * steps * sum(weight.numel() for weight in arguments[1])

    def counted(formula):
        def observe(arguments, out):
            first = out[0] if isinstance(out, (tuple, list)) else out
            flops = formula(arguments, first)
            if _costs["is_recomputing"]:
                _costs["recomputed_flops"] += flops
            else:
                _costs["flops"] += flops * (3 if torch.is_grad_enabled() else 1)

        return observe

    for formula, names in ((matrices, ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm")), (convolution, ("convolution",)), (recurrent, ("_cudnn_rnn",)),
                           (attention, ("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
                                        "_scaled_dot_product_cudnn_attention"))):
        for name in names:
            hooks.observe(name, counted(formula))
