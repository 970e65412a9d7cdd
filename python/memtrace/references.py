"""How one object refers to another one, in words: for memtrace.who_holds.

Nothing here runs code of the program: no __getattr__ or __getattribute__ of objects and classes, no
properties, no methods of subclasses of containers, no __class__ of proxies, and no repr of other types
than those of Python."""
from __future__ import annotations

import re
import sys
import threading
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Optional

_MAX_TEXT = 40
_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: a function, whose f_locals are a copy
# The link of a key that may be an attribute.
_KEY = re.compile(r"\['(\w+)'\]")
# Attributes that C code computes, of types whose getters have no side effects.
_GETTERS = frozenset((
    "grad", "_grad", "_backward_hooks", "__self__", "__func__", "__traceback__", "__context__",
    "__cause__", "__defaults__", "__kwdefaults__", "__closure__"))
# Suspended code, by type: the attribute of its frame, and what it is.
_SUSPENDED = {types.GeneratorType: ("gi_frame", "generator"),
              types.CoroutineType: ("cr_frame", "coroutine"),
              types.AsyncGeneratorType: ("ag_frame", "asynchronous generator")}
# Of a class, without the __getattribute__ of its metaclass.
_mro_of, _namespace_of, _name_of = (vars(type)[name].__get__ for name in (
    "__mro__", "__dict__", "__name__"))


def is_a(value: Any, kinds: Any) -> bool:
    """isinstance, without __class__ of the value."""
    return issubclass(type(value), kinds)


# ---- frames -----------------------------------------------------------------


def variables(frame: types.FrameType) -> list[tuple[str, Any]]:
    """Returns the local variables of a frame. Before Python 3.13, f_locals of a function is a copy
    that the frame keeps, so it would keep alive what the function deletes: the copies are removed
    again."""
    copies = frame.f_locals
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED and not is_a(copies, dict):
        return []  # of a class whose metaclass has a mapping of its own, or of exec()
    found = list(dict.items(copies) if is_a(copies, dict) else copies.items())
    # References: the frame, `copies`, and the argument. One more: the program called locals().
    if (type(copies) is dict and code.co_flags & _OPTIMIZED and sys.getrefcount(copies) <= 3
            and not _is_traced(frame)):
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            copies.pop(name, None)
    return found


def _is_traced(frame: types.FrameType) -> bool:
    """Whether a debugger or a profiler may write the copies back into the variables."""
    hooks = (getattr(threading, name, None) for name in ("_trace_hook", "_profile_hook"))
    return (frame.f_trace is not None or sys.gettrace() is not None or sys.getprofile() is not None
            or any(hook is not None for hook in hooks))


def frame_text(frame: types.FrameType) -> str:
    code = frame.f_code
    return f"{code.co_name} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"


# ---- links ------------------------------------------------------------------


def links_of(owner: Any, child: Any, links: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the links from `owner`, given those from `child`. The dictionary of an object is no
    link of its own: its keys are the attributes."""
    if type(child) is dict and (own_dictionary(owner) is child or is_a(owner, type)):
        return _as_attribute(links)
    if is_a(owner, threading.local):
        # Each thread has a dictionary, behind a weak reference to the thread.
        first = next((i for i, link in enumerate(links) if _KEY.fullmatch(link)), 0)
        return _as_attribute(links[first:])
    if is_a(owner, types.CellType):
        return links
    return (_link(owner, child), *links)


def _link(owner: Any, child: Any) -> str:
    if is_a(owner, dict):
        return next(_in_mapping(dict.items(owner), child), "[...]")
    for kind in (list, tuple, deque):
        if is_a(owner, kind):
            return next(_in_sequence(kind.__iter__(owner), child), "[...]")
    if is_a(owner, (set, frozenset)):
        return " (an element of a set)"
    if type(owner) in _SUSPENDED:
        return _suspended_link(owner, child)
    return f".{_attribute(owner, child)}"


def _short(value: Any) -> str:
    """A key in words."""
    if type(value) is tuple and len(value) <= 4:
        return f"({', '.join(map(_short, value))})"
    is_plain = type(value) in (str, int, float, bool, bytes, type(None))
    text = repr(value) if is_plain else f"<{_name_of(type(value))}>"
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT - 3] + "..."


def _in_mapping(items: Iterable[tuple[Any, Any]], child: Any) -> Iterator[str]:
    for key, value in list(items):
        if value is child:
            yield f"[{_short(key)}]"
        elif key is child:
            yield ".keys()"


def _in_sequence(items: Iterable[Any], child: Any) -> Iterator[str]:
    for index, value in enumerate(items):
        if value is child:
            yield f"[{index}]"


def _suspended_link(owner: Any, child: Any) -> str:
    attribute, kind = _SUSPENDED[type(owner)]
    frame: Optional[types.FrameType] = getattr(owner, attribute)
    names = [name for name, local in (variables(frame) if frame else ()) if local is child]
    return f" (variable {names[0]} of a suspended {kind})" if names else f" (a suspended {kind})"


def own_dictionary(owner: Any) -> Any:
    """Returns the dictionary of an object, or None. A class may have a property of that name."""
    for base in _mro_of(type(owner)):
        found = _namespace_of(base).get("__dict__")
        if found is not None:
            is_plain = type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType)
            return found.__get__(owner) if is_plain else None
    return None


def _as_attribute(links: tuple[str, ...]) -> tuple[str, ...]:
    key = _KEY.fullmatch(links[0])
    return (f".{key.group(1)}", *links[1:]) if key else links


def _attribute(owner: Any, child: Any) -> str:
    attributes = own_dictionary(owner)
    if is_a(attributes, dict):
        for name, value in list(dict.items(attributes)):
            if value is child:
                return str(name)
    for base in _mro_of(type(owner)):
        for name, descriptor in list(_namespace_of(base).items()):
            if type(descriptor) is types.MemberDescriptorType or (
                    name in _GETTERS and type(descriptor) is types.GetSetDescriptorType):
                try:
                    if descriptor.__get__(owner) is child:
                        return str(name)
                except Exception:  # pylint: disable=broad-except
                    continue
    return f"<{_name_of(type(owner))}>"
