"""Runs functions once, after the first import of a module."""
import importlib.machinery
import sys

from . import notes

_waiting = {}  # name of a module: functions that take it
_before = {}  # name of a module: functions without arguments


def after(name, function):
    """FUNCTION gets the module NAME once it is complete; at once if it is."""
    if name in sys.modules:
        _call(function, sys.modules[name], sys.modules[name])
    else:
        _waiting.setdefault(name, []).append(function)


def before(name, function):
    """FUNCTION runs once, just before the module NAME, which is not imported yet, is executed."""
    _before.setdefault(name, []).append(function)


def start():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _call(function, module, *arguments):
    writes = sys.dont_write_bytecode
    try:
        sys.dont_write_bytecode = True  # see sitecustomize.py
        function(*arguments)
    except Exception as error:
        notes.failed("%s of %s" % (function.__name__.strip("_"), module.__name__), error)
    finally:
        sys.dont_write_bytecode = writes


class _Loader:
    """The loader that was found, and calls after it."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The module must not know of this loader: pickles and `inspect` ask for the real one.
        module.__loader__ = module.__spec__.loader = self._loader
        for function in _before.pop(module.__name__, ()):
            _call(function, module)
        self._loader.exec_module(module)
        # Only here: a program may ask for the spec without importing, or import again after an error.
        for function in _waiting.pop(module.__name__, ()):
            _call(function, module, module)


class _Finder:
    """Asks the other finders, so that every way to import stays as it was."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _waiting and name not in _before:
            return None
        for finder in sys.meta_path:
            if isinstance(finder, _Finder) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec
