"""Starts the shim of a dry run, then the user's own sitecustomize, which this file hides."""
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _allow_bytecode():
    """`memtrace dry-run` forbids bytecode, because Python would write that of this file beside it. The program writes its own
    as ever, unless it was started with -B."""
    if os.environ.get("MEMTRACE_DRY_RUN_WRITES_BYTECODE") == "1" and not _has_option_b():
        sys.dont_write_bytecode = False


def _has_option_b():
    """Python's own options only: they end at the first word that is none, and at -c and -m."""
    try:
        with open("/proc/self/cmdline", "rb") as line:
            words = line.read().split(b"\0")[1:]
    except OSError:
        return False
    while words:
        word = words.pop(0)
        if word == b"--check-hash-based-pycs":
            words = words[1:]
        if word.startswith(b"--"):
            continue
        if not word.startswith(b"-") or word == b"-":
            return False
        for place, letter in enumerate(word[1:].decode("ascii", "replace"), 2):
            if letter == "B":
                return True
            if letter in "cm":
                return False
            if letter in "WX":
                if place == len(word):
                    words = words[1:]
                break
    return False


def _start():
    if os.environ.get("MEMTRACE_DRY_RUN") != "1":
        return
    writes = sys.dont_write_bytecode
    try:
        sys.dont_write_bytecode = True  # the installed folder is not the program's to write into
        import memtrace_dry_run

        memtrace_dry_run.start()
    except Exception as error:  # the program must start, with or without the shim
        sys.stderr.write("memtrace: the dry run's Python part did not start: %r\n" % (error,))
    finally:
        sys.dont_write_bytecode = writes


def _paths_behind():
    """What Python would have searched: nothing in front of this folder had a sitecustomize. Another
    memtrace's folder may follow, whose file does the same; two that skipped one folder each would not end."""
    places = [os.path.abspath(path or os.curdir) for path in sys.path]
    return sys.path[places.index(_HERE) + 1 :] if _HERE in places else []


def _run_the_users_own():
    paths = [path for path in _paths_behind() if os.path.abspath(path or os.curdir) != _HERE]
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if found is None or found.loader is None:
        return
    module = importlib.util.module_from_spec(found)
    sys.modules["sitecustomize"] = module
    found.loader.exec_module(module)


_allow_bytecode()
_start()
_run_the_users_own()
