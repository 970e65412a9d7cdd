"""Starts the shim of a dry run, then the user's own sitecustomize, which this file hides."""
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


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


_start()
_run_the_users_own()
