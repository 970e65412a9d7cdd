"""Rows of documents as a pandas frame, if pandas is installed."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .documents.base import Document


class Rows(list[Any]):
    """A list of dataclasses of one kind. `extra` has columns that a row does not have itself, such
    as its device."""

    def __init__(self, rows: Iterable[Document] = (), extra: Sequence[Mapping[str, Any]] = ()):
        super().__init__(rows)
        self.extra = extra or [{} for _ in self]

    @classmethod
    def of_devices(cls, devices: Iterable[Any], rows_of: Callable[[Any], Iterable[Any]]) -> Rows:
        """The rows of all devices. Each has the number of its device."""
        pairs = [(row, {"device": device.device}) for device in devices for row in rows_of(device)]
        return cls([row for row, _ in pairs], [extra for _, extra in pairs])

    def columns(self) -> list[dict[str, Any]]:
        """The rows as mappings of columns to plain values: `peak.allocated` is
        `peak_allocated`."""
        return [{**extra, **flat(row)} for row, extra in zip(self, self.extra)]

    def to_frame(self) -> Any:
        """The rows as a pandas frame. Raises ImportError without pandas."""
        return frame(self.columns())


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Mappings of columns as a pandas frame. Raises ImportError without pandas."""
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return pandas.DataFrame(rows)


def flat(row: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(row):
        if field.name == "raw":
            continue
        value = getattr(row, field.name)
        if is_dataclass(value):
            found.update(flat(value, f"{prefix}{field.name}_"))
        elif isinstance(value, Mapping):
            for key, part in value.items():
                found[f"{prefix}{field.name}_{key}"] = part
        else:
            found[prefix + field.name] = value
    return found


def frame_or_rows(rows: Rows) -> Any:
    """A pandas frame if pandas is installed, else the list."""
    try:
        return rows.to_frame()
    except ImportError:
        return rows
