"""The source of a program that calls one function of this process, for a dry run in another one."""
from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from .errors import Error
from .notebook_copy import Copy, expression

# The name of a main script that the program below has imported.
IMPORTED_MAIN = "__memtrace_main__"


def source_of_call(function: Callable[..., Any], arguments: Sequence[Any] = (),
                   named: Mapping[str, Any] | None = None) -> str:
    """Returns a program that calls `function`. A function of a module is imported. A function of
    the main script is imported from it under another name than "__main__", as multiprocessing
    does. The source of a function of a notebook is copied, with what it uses. Raises Error with
    the reason if none of these is possible."""
    name = _name(function)
    call = _call(name, arguments, named or {})
    if function.__module__ != "__main__":
        return _imported(function.__module__, name, call)
    if _is_of_a_cell(function):
        return _path() + Copy(function).text() + "\n" + call
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m: relative imports need the name of the module
        return _imported(spec.name, name, call)
    return _from_script(str(main.__file__), name, call)


def _name(function: Callable[..., Any]) -> str:
    """The qualified name of a function that another process can have. Raises Error."""
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str) or not isinstance(getattr(function, "__module__", None), str):
        raise Error(f"{function!r} cannot run in a dry run: it is not a function")
    if "<locals>" in name or "<lambda>" in name:
        raise Error(f"'{name}' cannot run in a dry run: define it with 'def' at the top of a module "
                    f"or of a cell")
    owner = getattr(function, "__self__", None)
    of_class = f"{getattr(owner, '__qualname__', '')}.{getattr(function, '__name__', '')}"
    if inspect.ismethod(function) and name != of_class:
        raise Error(f"'{name}' cannot run in a dry run: it is a method of an object. Call it in a "
                    f"function that makes the object")
    return name


def _is_of_a_cell(function: Callable[..., Any]) -> bool:
    """Whether the main script, if there is one, is not where the function is from: the kernel of a
    notebook has a main script of its own."""
    main = getattr(sys.modules["__main__"], "__file__", None)
    if not main or not os.path.isfile(main):
        return True
    try:
        return not os.path.isfile(inspect.getfile(inspect.unwrap(function)))
    except (OSError, TypeError):
        return True


def _call(name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> str:
    words = [_word(value, f"argument {i + 1} of '{name}'") for i, value in enumerate(arguments)]
    words += [f"{key}={_word(value, f'argument {key} of {name!r}')}"
              for key, value in named.items()]
    return f"{name}({', '.join(words)})\n"


def _word(value: Any, what: str) -> str:
    text = expression(value)
    if text is None:
        raise Error(f"{what} is a {type(value).__name__}, which cannot be copied into a dry run: "
                    f"make it inside the function")
    return text


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
        f"module = types.ModuleType({IMPORTED_MAIN!r})\n"
        f"module.__file__ = {os.path.abspath(script)!r}\n"
        f"sys.modules[module.__name__] = module\n"
        f"with open(module.__file__, 'rb') as file:\n"
        f"    exec(compile(file.read(), module.__file__, 'exec'), module.__dict__)\n"
        f"{first} = module.{first}\n{call}"
    )
