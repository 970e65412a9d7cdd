"""The source of a function of a notebook, with everything that it uses."""
from __future__ import annotations

import ast
import inspect
import linecache
import math
import os
import symtable
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from .errors import Error


def expression(value: Any) -> str | None:
    """Python code for a value, or None if no short code makes an equal one: None, numbers, text,
    containers of these, and PyTorch's devices and types."""
    try:
        return _expression(value)
    except (RecursionError, ValueError):  # ValueError: an int with too many digits
        return None


def _expression(value: Any) -> str | None:
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if kind is dict:
        pairs = [(_expression(key), _expression(part)) for key, part in value.items()]
        if any(key is None or part is None for key, part in pairs):
            return None
        return "{" + ", ".join(f"{key}: {part}" for key, part in pairs) + "}"
    if kind in (list, tuple, set, frozenset):
        parts = [_expression(part) for part in value]
        text = "".join(f"{part}, " for part in parts)
        return None if None in parts else f"{kind.__name__}(({text}))"
    return _of_torch(value)


def _of_torch(value: Any) -> str | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(value, torch.device):
        return f"__import__('torch').device({str(value)!r})"
    if isinstance(value, torch.dtype):
        return f"__import__('torch').{str(value).rpartition('.')[2]}"
    return None


class Copy:
    """The source of an object of a notebook, after that of everything that it uses. Raises Error
    for an object that cannot be copied."""

    def __init__(self, start: Any) -> None:
        self._main = vars(sys.modules["__main__"])
        self._lines: list[str] = []
        self._done: dict[str, Any] = {}
        first, _, rest = start.__qualname__.partition(".")
        self._add_definition(self._main.get(first) if rest else start, first, first)

    def text(self) -> str:
        return "\n".join(self._lines)

    def _add(self, name: str, user: str) -> None:
        """Adds a global name that the source of `user` has."""
        value = self._main[name]
        if name in self._done:
            return
        if isinstance(value, ModuleType):
            self._once(name, value, f"import {value.__name__} as {name}"
                       if value.__name__ != name else f"import {name}")
        elif getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            self._add_definition(value, name, user)
        else:
            self._once(name, value, _import(name, value) or _assignment(name, value, user))

    def _add_definition(self, value: Any, name: str, user: str) -> None:
        """Adds a function or a class, and then `name` if that is another name of it."""
        own = value.__qualname__
        if own == "<lambda>":
            own = name
        if not own.isidentifier():
            raise Error(f"'{user}' uses '{name}', which is defined inside of another object and "
                        f"cannot be copied into a dry run: define it at the top of a cell")
        if self._done.get(own, value) is not value:
            raise Error(f"'{user}' uses '{name}', an object called '{own}' as another one is: "
                        f"give them different names")
        if own not in self._done:
            self._done[own] = value
            source = _source(value, own)
            for used in _global_names(source):
                if used in self._main and used != own:
                    self._add(used, own)
            self._lines.append(source)
        if name != own:
            self._once(name, value, f"{name} = {own}")

    def _once(self, name: str, value: Any, line: str) -> None:
        self._done[name] = value
        self._lines.append(line)


def _import(name: str, value: Any) -> str | None:
    """An import of the value from the module that its `__module__` names, or None."""
    of = getattr(value, "__module__", None)
    module = sys.modules.get(of) if isinstance(of, str) else None
    for found in (getattr(value, "__qualname__", None), name):
        if isinstance(found, str) and found.isidentifier() and module is not None \
                and getattr(module, found, None) is value:
            return f"from {of} import {found} as {name}"
    return None


def _assignment(name: str, value: Any, user: str) -> str:
    text = expression(value)
    if text is None:
        raise Error(f"'{user}' uses '{name}', a {type(value).__name__}, which cannot be copied "
                    f"into a dry run: make it inside the function")
    return f"{name} = {text}"


def _global_names(source: str) -> list[str]:
    """The global names that the source reads, without local variables of the same name."""
    found: set[str] = set()
    tables = [symtable.symtable(source, "<cell>", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found.update(symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()
                     and (symbol.is_global() or table.get_type() == "module"))
    return sorted(found)


def _source(value: Any, name: str) -> str:
    try:
        if inspect.isclass(value):
            return _source_of_class(value)
        source = textwrap.dedent(inspect.getsource(value))
        if not _defines(ast.parse(source), name):
            raise Error(f"'{name}' cannot be copied into a dry run: define it with 'def' at the top "
                        f"of a cell")
        return source
    except (OSError, TypeError, SyntaxError) as error:
        raise Error(f"the source of '{name}' cannot be read: {error}") from None


def _defines(tree: ast.Module, name: str) -> bool:
    """Whether the source is one definition, or one assignment of a lambda, of this name."""
    if len(tree.body) != 1:
        return False
    line = tree.body[0]
    if isinstance(line, ast.Assign):
        return [ast.dump(target) for target in line.targets] == [
            ast.dump(ast.Name(name, ast.Store()))] and isinstance(line.value, ast.Lambda)
    return getattr(line, "name", None) == name


def _source_of_class(value: type) -> str:
    """Before Python 3.13, `inspect` does not find a class in a cell, but it finds its methods."""
    for lines in _cells_of(value):
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        for node in reversed(list(ast.walk(tree))):
            if isinstance(node, ast.ClassDef) and node.name == value.__name__:
                first = min([node.lineno, *[line.lineno for line in node.decorator_list]])
                return textwrap.dedent("".join(lines[first - 1:node.end_lineno]))
    raise OSError("no cell defines it")


def _cells_of(value: type) -> Iterator[Sequence[str]]:
    """The lines of the cells where the methods are from, and then of all others, newest first."""
    for member in vars(value).values():
        function = inspect.unwrap(getattr(member, "__func__", getattr(member, "fget", member)))
        code = getattr(function, "__code__", None)
        if code is not None and code.co_filename in linecache.cache:
            yield linecache.getlines(code.co_filename)
    for name in reversed(list(linecache.cache)):
        if not os.path.exists(name):
            yield linecache.getlines(name)
