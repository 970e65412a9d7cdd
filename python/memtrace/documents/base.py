"""What all classes of documents have, and how their fields are made from JSON."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Document:
    """An object of a JSON document. `raw` is the object as the program printed it. It also has the
    keys of a program that is newer than this package."""

    raw: Mapping[str, Any]


def same(value: Any) -> Any:
    return value


def many(build: Callable[[Any], T], values: Any) -> tuple[T, ...]:
    return tuple(build(value) for value in values)


def maybe(build: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else build(value)


def maybe_many(build: Callable[[Any], T], values: Any) -> tuple[T, ...] | None:
    return None if values is None else many(build, values)
