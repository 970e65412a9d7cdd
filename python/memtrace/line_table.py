"""The memory of each line of some functions, beside the code: the table of a line profiler."""
from __future__ import annotations

import html
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from .errors import Error
from .frames import frame
from .units import text_of_bytes

if TYPE_CHECKING:
    from .documents.common import Levels
    from .documents.lines import Line, Lines

# The names that torch.cuda.memory_stats and pytorch_memlab use, and what the table shows if no
# columns are given. "after" is the value after the line ran for the last time.
DEFAULT_COLUMNS = (
    "active_bytes.all.peak",
    "reserved_bytes.all.peak",
    "active_bytes.all.current",
    "growth",
    "allocated_bytes.all.allocated",
    "allocation.all.allocated",
)
_HEADINGS = {
    "active_bytes.all.peak": "peak",
    "reserved_bytes.all.peak": "reserved peak",
    "active_bytes.all.current": "after",
    "growth": "growth",
    "allocated_bytes.all.allocated": "allocated",
    "allocation.all.allocated": "times",
}
_NUMBER = "text-align: right; white-space: nowrap"  # of a cell in HTML
_METRICS = ("requested", "allocated", "active", "reserved")


_TOTALS: Mapping[str, Callable[[Line], int | None]] = {
    "growth": lambda line: line.growth_bytes,
    "allocated_bytes.all.allocated": lambda line: line.allocated_bytes,
    "allocation.all.allocated": lambda line: line.allocations,
}
_MOMENTS: Mapping[str, Callable[[Line], Levels]] = {
    "peak": lambda line: line.peak,
    "current": lambda line: line.after,
}


def check_columns(columns: Sequence[str]) -> None:
    """Raises Error for a column that a table cannot have."""
    for column in columns:
        metric, _, moment = column.partition("_bytes.all.")
        if column not in _TOTALS and (metric not in _METRICS or moment not in _MOMENTS):
            raise Error(f"there is no column '{column}': use active_bytes.all.peak, "
                        f"reserved_bytes.all.current and so on, or growth")


def value_of(line: Line, column: str) -> int | None:
    """A value of a line, or None if the trace does not have it."""
    if column in _TOTALS:
        return _TOTALS[column](line)
    metric, _, moment = column.partition("_bytes.all.")
    value = _MOMENTS[moment](line).raw.get(metric)
    return None if value is None else int(value)


class Row(NamedTuple):
    """A line of a function. `values` are those of the columns; None: the line has no events."""

    function: str
    line: int
    values: Mapping[str, int | None] | None
    code: str


class Code(NamedTuple):
    """The source of a function."""

    name: str
    short_name: str
    file: str
    first: int
    lines: Sequence[str]


def code_of(function: Callable[..., Any]) -> Code:
    """Raises Error if the source cannot be read."""
    inner = inspect.unwrap(function)
    inner = getattr(inner, "__func__", inner)
    try:
        lines, first = inspect.getsourcelines(inner)
        file = inner.__code__.co_filename
    except (OSError, TypeError, AttributeError) as error:
        raise Error(f"the source of {function!r} cannot be read: {error}") from None
    return Code(inner.__qualname__, inner.__name__, file, first, [line.rstrip() for line in lines])


class LineTable:
    """The lines of functions with their memory. Notebooks show it as a table; `repr` is text.
    `to_frame()` is a pandas frame, and `rows` are all lines."""

    def __init__(self, document: Lines | None, codes: Sequence[Code],
                 columns: Sequence[str] = DEFAULT_COLUMNS, device: int | None = None) -> None:
        check_columns(columns)
        self.document = document
        self.columns = tuple(columns)
        self.codes = tuple(codes)
        self._tables = [(code, self._rows_of(code, device)) for code in codes]
        self.rows = [row for _, rows in self._tables for row in rows]

    def _rows_of(self, code: Code, device: int | None) -> list[Row]:
        found = self._lines_of(code, device)
        rows: list[Row] = []
        for number, text in enumerate(code.lines, code.first):
            line = found.get(number)
            values = {name: value_of(line, name) for name in self.columns} if line else None
            rows.append(Row(code.name, number, values, text))
        return rows

    def _lines_of(self, code: Code, device: int | None) -> dict[int, Line]:
        """The lines of a function on the device, or on the first one that has the function."""
        for candidate in self.document.devices if self.document else ():
            if device is not None and candidate.device != device:
                continue
            lines = {
                line.line: line
                for function in candidate.functions
                if function.function.rsplit(".", maxsplit=1)[-1] == code.short_name
                and function.file == code.file
                for line in function.lines
                if code.first <= line.line < code.first + len(code.lines)
            }
            if lines:
                return lines
        return {}

    def to_frame(self) -> Any:
        """All lines as a pandas frame. Raises ImportError without pandas."""
        return frame([
            {"function": row.function, "line": row.line,
             **(row.values or dict.fromkeys(self.columns)), "code": row.code}
            for row in self.rows
        ])

    def _texts(self, row: Row) -> list[str]:
        if row.values is None:
            return ["" for _ in self.columns]
        return [_text(name, row.values[name]) for name in self.columns]

    def text(self) -> str:
        """The table as text."""
        return "\n\n".join(self._text_of(*table) for table in self._tables) or "no function was profiled"

    def _text_of(self, code: Code, rows: Sequence[Row]) -> str:
        table = [["line", *map(_heading, self.columns)]]
        table += [[str(row.line), *self._texts(row)] for row in rows]
        widths = [max(map(len, column)) for column in zip(*table)]
        codes = ["code", *[row.code for row in rows]]
        lines = ["  ".join(word.rjust(width) for word, width in zip(words, widths)) + f"  {source}"
                 for words, source in zip(table, codes)]
        empty = [] if any(row.values for row in rows) else ["no line allocated or freed memory"]
        return "\n".join([f"{code.name}, {code.file}", *lines, *empty])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return "\n".join(self._html_of(*table) for table in self._tables) or "<p>no function</p>"

    def _html_of(self, code: Code, rows: Sequence[Row]) -> str:
        largest = {name: max([abs(row.values[name] or 0) for row in rows if row.values] or [0])
                   for name in self.columns}
        head = "".join(f'<th style="{_NUMBER}">{html.escape(_heading(name))}</th>'
                       for name in self.columns)
        body = "".join(self._html_row(row, largest) for row in rows)
        return (f"<h4><code>{html.escape(code.name)}</code></h4>"
                f"<table><thead><tr><th>line</th>{head}"
                f'<th style="text-align: left">code</th></tr></thead><tbody>{body}</tbody></table>')

    def _html_row(self, row: Row, largest: Mapping[str, int]) -> str:
        cells = "".join(
            f'<td style="{_NUMBER}; {_bar((row.values or {}).get(name), largest[name])}">'
            f"{html.escape(text)}</td>" for name, text in zip(self.columns, self._texts(row)))
        return (f"<tr><td>{row.line}</td>{cells}<td style=\"text-align: left; white-space: pre; "
                f'font-family: monospace">{html.escape(row.code)}</td></tr>')


def _heading(column: str) -> str:
    return _HEADINGS.get(column, column)


def _text(column: str, value: int | None) -> str:
    if value is None:
        return "?"
    if column == "allocation.all.allocated":
        return str(value)
    return f"-{text_of_bytes(-value)}" if value < 0 else text_of_bytes(value)


def _bar(value: int | None, largest: int) -> str:
    """A bar behind a value: its share of the largest value of the column."""
    if not value or value < 0 or not largest:
        return ""
    share = 100 * value // largest
    return f"background: linear-gradient(to left, #9ecae199 {share}%, transparent {share}%)"
