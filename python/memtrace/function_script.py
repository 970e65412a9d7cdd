"""The source of a program that calls one function of this process, for a dry run in another one."""
from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Callable

from .errors import Error


def source_of_call(function: Callable[..., Any], arguments: Sequence[Any] = (),
                   named: Mapping[str, Any] | None = None) -> str:
    """Returns a program that calls `function`. A function of a module is imported. A function of
    the main script is imported from it under another name than "__main__", as multiprocessing
    does. The source of a function of a notebook is copied, with what it uses. Raises Error with
    the reason if none of these is possible."""
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str) or not hasattr(function, "__module__"):
        raise Error(f"{function!r} cannot run in a dry run: it is not a function")
    if "<locals>" in name or "<lambda>" in name:
        raise Error(f"'{name}' cannot run in a dry run: define it with 'def' at the top of a module "
                    f"or of a cell")
    call = _call(name, arguments, named or {})
    if function.__module__ != "__main__":
        return _imported(function.__module__, name, call)
    main = getattr(sys.modules["__main__"], "__file__", None)
    if main and os.path.isfile(main) and not _is_of_a_cell(function):
        return _from_script(main, name, call)
    return _Copy(function).text() + "\n" + call


def _is_of_a_cell(function: Callable[..., Any]) -> bool:
    """Whether the source is not a file: the kernel of a notebook has a main script of its own."""
    try:
        return not os.path.isfile(inspect.getfile(inspect.unwrap(function)))
    except TypeError:
        return True


def _call(name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> str:
    words = [_literal(value, f"argument {i + 1} of '{name}'") for i, value in enumerate(arguments)]
    words += [f"{key}={_literal(value, f'argument {key} of {name!r}')}"
              for key, value in named.items()]
    return f"{name}({', '.join(words)})\n"


def _literal(value: Any, what: str) -> str:
    if not _is_literal(value):
        raise Error(f"{what} is a {type(value).__name__}, which cannot be copied into a dry run: "
                    f"make it inside the function")
    return repr(value)


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return False


def _imported(module: str, name: str, call: str) -> str:
    first = name.split(".", maxsplit=1)[0]
    return f"{_path()}from {module} import {first}\n{call}"


def _path() -> str:
    folders = [os.path.abspath(folder) for folder in sys.path]
    return f"import sys\nsys.path[:] = {folders!r}\n"


def _from_script(script: str, name: str, call: str) -> str:
    first = name.split(".", maxsplit=1)[0]
    return (
        f"{_path()}import types\n"
        f"module = types.ModuleType('__memtrace_main__')\n"
        f"module.__file__ = {os.path.abspath(script)!r}\n"
        f"sys.modules['__memtrace_main__'] = module\n"
        f"with open(module.__file__, 'rb') as file:\n"
        f"    exec(compile(file.read(), module.__file__, 'exec'), module.__dict__)\n"
        f"{first} = module.{first}\n{call}"
    )


class _Copy:
    """The source of an object of a notebook, after that of everything that it uses."""

    def __init__(self, start: Any) -> None:
        self._lines: list[str] = []
        self._done: set[str] = set()
        self._add_source(start, start.__qualname__.split(".", maxsplit=1)[0])

    def text(self) -> str:
        return _path() + "\n".join(self._lines)

    def _add_source(self, value: Any, name: str) -> None:
        if name in self._done:
            return
        self._done.add(name)
        try:
            source = textwrap.dedent(inspect.getsource(value))
            tree = ast.parse(source)
        except (OSError, TypeError, SyntaxError) as error:
            raise Error(f"the source of '{name}' cannot be read: {error}") from None
        for used in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
            if used in vars(sys.modules["__main__"]):
                self._add(used, vars(sys.modules["__main__"])[used], name)
        self._lines.append(source)

    def _add(self, name: str, value: Any, user: str) -> None:
        if name in self._done:
            return
        if isinstance(value, ModuleType):
            self._once(name, f"import {value.__name__} as {name}" if value.__name__ != name
                       else f"import {name}")
        elif getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            self._add_source(value, name)
        elif _importable(value):
            self._once(name, f"from {value.__module__} import {value.__qualname__} as {name}")
        elif _is_literal(value):
            self._once(name, f"{name} = {value!r}")
        else:
            raise Error(f"'{user}' uses '{name}', a {type(value).__name__}, which cannot be copied "
                        f"into a dry run: make it inside the function")

    def _once(self, name: str, line: str) -> None:
        self._done.add(name)
        self._lines.append(line)


def _importable(value: Any) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return module is not None and getattr(module, getattr(value, "__qualname__", ""), None) is value
