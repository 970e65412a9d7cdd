"""Which answers were made up: how many of each kind, and where the first was requested.

Written as JSON to $MEMTRACE_DRY_RUN_NOTES.PID: when PyTorch is imported, when a kind is new, when its count has
doubled, and at the end.
A file is complete or not there. Nothing is written if the variable is not set."""
import atexit
import contextlib
import json
import os
import sys
import threading

VERSION = 1
MAX_FRAMES = 8
MAX_PRINTING_FRAMES = 12  # between a read and PyTorch's printing
MAX_PLACES = 64  # later places count only in the sums
_HERE = os.path.dirname(os.path.abspath(__file__))
# kinds of answers, and whether a size follows from them
KINDS = {
    "number": False,  # a floating-point value that the program read
    "count": True,  # an integer that the program read
    "condition": False,  # a truth value that the program read
    "check": False,  # the same, where the other value raises an exception
    "copy": False,  # values of a tensor that was copied to the host
    "mask": True,  # truth values that were copied to the host
    "choice": False,  # indices: argmax, topk, sort, sampling
    "selection": True,  # how many elements a mask selects, from values that were made up
    "boxes": True,  # how many boxes non-maximum suppression leaves
    "unique": True,  # how many values are different
    "eager": False,  # a function that torch.compile was to compile, and that runs as it is
    "compiled": False,  # a function that Inductor compiled, for kernels that do nothing
    "object": False,  # a Python object that another rank has
}


# Kinds on which a peak may depend, so that their places count.
PLACED = {kind for kind, decides_size in KINDS.items() if decides_size} | {"condition"}


class _State:
    def __init__(self):
        self.path = None
        self.lock = threading.RLock()
        self.clear()

    def clear(self):
        self.answers, self.failures, self.facts = {}, {}, {}
        self.places = {}  # (kind, file, line): a member of the document


_state = _State()


def start(path):
    _state.path = path or None
    atexit.register(write)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)


def _in_child():
    _state.lock = threading.RLock()
    facts = _state.facts
    _state.clear()
    _state.facts = facts
    write()  # it may use the device and end without `atexit`


def fact(name, value):
    """A property of the run, such as the version of PyTorch."""
    with _state.lock: # another thread may be writing them
        _state.facts[name] = value


def made_up(kind, count=1, size=0, of=0):
    """COUNT answers of KIND were made up. SIZE of OF elements is how many count; 0: it is not a number of elements.
    What a tensor is printed as decides nothing."""
    if _is_printing():
        return
    if kind in PLACED:
        _add_place(kind, count, size, of)
    if count:
        _add(_state.answers, kind, count)


def _is_printing():
    """Whether PyTorch makes a text of a tensor; that it does so is a few frames away."""
    frame = sys._getframe(2)
    for _ in range(MAX_PRINTING_FRAMES):
        if frame is None:
            return False
        if frame.f_globals.get("__name__") == "torch._tensor_str":
            return True
        frame = frame.f_back
    return False


def _add_place(kind, count, size, of):
    """The largest size of a place stays: peaks are largest where sizes are."""
    inner, outer = innermost(), _outside()
    if outer is None:
        return
    key = (kind, outer.f_code.co_filename, outer.f_lineno)
    with _state.lock:
        entry = _state.places.get(key)
        if entry is None and len(_state.places) < MAX_PLACES:
            entry = _state.places[key] = {"kind": kind, "place": "%s:%d" % key[1:], "function": outer.f_code.co_name,
                                          "innermost": "%s:%d" % (inner.f_code.co_filename, inner.f_lineno), "count": 0, "size": 0, "of": 0}
        if entry is not None:
            entry["count"] += count
            if size > entry["size"]:
                entry["size"], entry["of"] = size, of


def kinds():
    """The kinds of answers that were made up."""
    return set(_state.answers)


def failed(where, error):
    """The shim itself failed at WHERE; the program got what it would have had without it."""
    _add(_state.failures, where, 1, repr(error)[:300])


def _add(table, name, count, error=None):
    with _state.lock:
        entry = table.get(name)
        if entry is None:
            entry = table[name] = {"count": 0, "first": _stack()}
            if error is not None:
                entry["error"] = error
        before = entry["count"]
        entry["count"] = before + count
        doubled = before.bit_length() != entry["count"].bit_length()
    if doubled:
        write()


def is_own(frame):
    """Whether FRAME is one of the shim."""
    return os.path.dirname(frame.f_code.co_filename) == _HERE


def innermost():
    """The innermost frame outside of the shim, or None."""
    frame = sys._getframe(1)
    while frame is not None and is_own(frame):
        frame = frame.f_back
    return frame


def _outside():
    """The innermost frame outside of the shim and of PyTorch, or None."""
    frame = innermost()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (__package__, "torch"):
        frame = frame.f_back
    return frame


def _stack():
    """The frames that asked, innermost first, without the shim's own."""
    frames, frame = [], innermost()
    while frame is not None and len(frames) < MAX_FRAMES:
        if not is_own(frame):
            frames.append("%s:%d %s" % (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames


def place():
    """File and line of the innermost frame outside of the shim."""
    frame = innermost()
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("?", 0)


def package():
    """The package of the innermost module outside of the shim and of PyTorch."""
    frame = _outside()
    return frame.f_globals.get("__name__", "").partition(".")[0] if frame else ""


def as_dict():
    answers = {k: dict(v, decides_size=KINDS.get(k, False)) for k, v in _state.answers.items()}
    sizes = sum(v["count"] for v in answers.values() if v["decides_size"])
    first = next(iter(_state.failures.items()), None)
    return {"version": VERSION, "pid": os.getpid(), "facts": _state.facts, "sizes_from_data": sizes,
            "failure_count": sum(v["count"] for v in _state.failures.values()),
            "first_failure": "%s: %s" % (first[0], first[1]["error"]) if first else None,
            "places": list(_state.places.values()), "answers": answers, "failures": _state.failures}


def write():
    """Never raises: notes are not worth a program."""
    with _state.lock:
        if not _state.path or not (_state.answers or _state.failures or _state.facts):
            return
        path = "%s.%d" % (_state.path, os.getpid())
        half = os.path.join(os.path.dirname(path), "." + os.path.basename(path) + ".half")
        try:
            with open(half, "w") as f:
                json.dump(as_dict(), f, indent=1)
                f.write("\n")
            os.replace(half, path)
        except OSError:
            # Notes that were written earlier would pass for all of them.
            with contextlib.suppress(OSError):
                os.truncate(path, 0)
