"""Rows of documents as a pandas frame, if pandas is installed."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from .documents.base import Document

_LEVELS = ("requested", "allocated", "active", "reserved")


class Rows(list[Any]):
    """A list of dataclasses of one kind. `extra` has columns that a row does not have itself, such
    as its device. `main` are the columns that come first in a frame. Times of a frame are seconds
    since `start_ns`, or None if that is None."""

    def __init__(self, rows: Iterable[Document] = (), extra: Sequence[Mapping[str, Any]] = (),
                 main: Sequence[str] = (), start_ns: int | None = None):
        super().__init__(rows)
        self.extra = extra or [{} for _ in self]
        self.main = main
        self.start_ns = start_ns

    @classmethod
    def of_devices(cls, devices: Iterable[Any], rows_of: Callable[[Any], Iterable[Any]],
                   main: Sequence[str], start_ns: int | None = None) -> Rows:
        """The rows of all devices. Each has the number of its device."""
        pairs = [(row, {"device": device.device}) for device in devices for row in rows_of(device)]
        return cls([row for row, _ in pairs], [extra for _, extra in pairs], ("device", *main),
                   start_ns)

    def columns(self) -> list[dict[str, Any]]:
        """The rows as mappings of columns to plain values, with units: `peak.allocated` is
        `peak_allocated_bytes`, and `peak_t_ns` is `peak_t_s`."""
        found = []
        for row, extra in zip(self, self.extra):
            columns = {**extra, **self._flat(row)}
            found.append({**{name: columns[name] for name in self.main}, **columns})
        return found

    def to_frame(self) -> pandas.DataFrame:
        """The rows as a pandas frame of all columns. Raises ImportError without pandas."""
        return frame(self.columns(), None if self else self.main)

    def main_frame(self) -> pandas.DataFrame:
        """The main columns as a pandas frame. Without pandas: the rows as they are."""
        try:
            return frame(self.columns(), self.main)
        except ImportError:
            return self  # type: ignore[return-value,unused-ignore]

    def _flat(self, row: Any, prefix: str = "") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field in fields(row):
            if field.name == "raw":
                continue
            name, value = prefix + field.name, getattr(row, field.name)
            if is_dataclass(value):
                found.update(self._flat(value, "" if name == "bytes" else f"{name}_"))
            elif isinstance(value, Mapping):
                for key, part in value.items():
                    found[f"{name}_{key.replace(' ', '_')}_bytes"] = part
            elif name.endswith("_ns"):
                found[f"{name[:-2]}s"] = seconds(value, self.start_ns)
            else:
                found[f"{name}_bytes" if name.endswith(_LEVELS) else name] = value
        return found


def seconds(t_ns: int, start_ns: int | None) -> float | None:
    """A time in seconds since the start, or None if the file has no times."""
    return None if start_ns is None else (t_ns - start_ns) / 1e9


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
          ) -> pandas.DataFrame:
    """Mappings of columns as a pandas frame. Raises ImportError without pandas."""
    import pandas

    found: pandas.DataFrame = pandas.DataFrame(rows, columns=list(columns) if columns else None)
    return found
