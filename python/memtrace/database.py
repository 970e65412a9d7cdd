"""A recording as tables: data frames of the database that `memtrace export sqlite` writes."""
from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from . import program
from .analysis import warn
from .errors import Error, printable
from .output import remove_folder

_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x6D747264  # PRAGMA application_id of export_database.c
_PACKAGES = ("pandas", "polars", "pyarrow")
# What a query may do. SQLITE_RECURSIVE has no name in Python before 3.11.
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, 31, 33)


class Database:
    """The tables of a recording. Each table and view of the database is an attribute, such as
    `blocks`, which is read when it is first used and then stays. `sql` answers a query."""

    def __init__(self, path: program.Path, database: str, frames: str | None) -> None:
        self.path = database
        self._source, self._frames = os.fsdecode(path), frames

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables and views."""
        with _opened(self.path) as connection:
            return tuple(name for name, in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
                " AND name NOT LIKE 'sqlite%' ORDER BY rowid"))

    def sql(self, query: str, /, **parameters: Any) -> Any:
        """The answer to one SELECT as a frame. `:name` in the query is the parameter of that name:
        `sql("SELECT * FROM blocks WHERE bytes >= :least", least=1 << 20)`. Raises Error if the
        query is wrong or does more than read."""
        with _opened(self.path) as connection:
            return self._frame(connection.execute(query, parameters), {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.tables:
            raise AttributeError(f"the database has no table '{name}'")
        quoted = '"' + name.replace('"', '""') + '"'
        with _opened(self.path) as connection:
            kinds = {column: kind for _, column, kind, *_ in
                     connection.execute(f"PRAGMA table_info({quoted})")}
            found = self._frame(connection.execute(f"SELECT * FROM {quoted}"), kinds)
        self.__dict__[name] = found
        return found

    def _frame(self, cursor: sqlite3.Cursor, kinds: dict[str, str]) -> Any:
        if cursor.description is None:
            raise Error("the query is empty")
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        values: Iterable[Sequence[Any]] = zip(*rows) if rows else [()] * len(names)
        columns = {unique: (_kind(column, kinds.get(name, "")), column)
                   for unique, name, column in zip(_unique(names), names, values)}
        return _maker(self._frames)(columns)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.tables})

    def __repr__(self) -> str:
        return f"<memtrace.Database of {printable(repr(self._source))}: {', '.join(self.tables)}>"


def read(path: program.Path, *, frames: str | None = None, events: bool = False,
         options: Sequence[str] = ()) -> Database:
    """Returns everything about a recording as tables: `memtrace export sqlite`.

    `path` is a trace, a snapshot, or a database that memtrace wrote, which stays as it is. The
    database of a recording is in a temporary folder, which is removed with the result. `frames` is
    "pandas", "polars" or "pyarrow"; without it, the first of these that is installed. `events` adds
    a row for each event of the allocator to the table `events`."""
    if frames not in (None, *_PACKAGES):
        raise Error(f"there are no frames of '{frames}': use one of {', '.join(_PACKAGES)}")
    if is_database(path):
        file = os.path.abspath(os.fsdecode(path))
        if _is_partial(file):
            warn([f"'{printable(os.fsdecode(path))}': its recording is damaged: the tables lack a "
                  "part of the run"], 3)
        return Database(path, file, frames)
    return _exported(path, frames, [*(["--events"] if events else []), *options])


def _exported(path: program.Path, frames: str | None, options: Sequence[str]) -> Database:
    import tempfile

    folder = tempfile.mkdtemp(prefix="memtrace-")
    file = os.path.join(folder, "run.db")
    try:
        words = ["export", "sqlite", program.as_argument(path), "-o", file, "--quiet", *options]
        output = program.answered(words, file)
    except BaseException:
        remove_folder(folder, os.getpid())
        raise
    found = Database(path, file, frames)
    weakref.finalize(found, remove_folder, folder, os.getpid())
    warn(output.lines, output.status)
    return found


def is_database(path: program.Path) -> bool:
    """Raises Error for a database of another program."""
    try:
        with open(path, "rb") as file:
            head = file.read(72)
    except (OSError, ValueError):
        return False  # the program reports it
    if not head.startswith(_MAGIC):
        return False
    if int.from_bytes(head[68:72], "big") != _APPLICATION:
        raise Error(f"'{printable(os.fsdecode(path))}' is a database that memtrace did not write")
    return True


def _is_partial(database: str) -> bool:
    with _opened(database) as connection:
        return connection.execute("SELECT 1 FROM settings WHERE name = 'is_damaged'"
                                  " AND value <> 0").fetchone() is not None


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that can only read. Each question has its own, so a database can be used in
    several threads and after a fork. Raises Error for what SQLite reports."""
    import pathlib

    try:
        with closing(sqlite3.connect(f"{pathlib.Path(path).as_uri()}?mode=ro", uri=True)) as found:
            found.execute("PRAGMA trusted_schema = OFF")
            found.set_authorizer(_allow)
            yield found
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, OverflowError) as error:
        raise Error(printable(str(error))) from None


def _allow(action: int, name: str | None, *_: Any) -> int:
    is_read = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and name == "table_info")
    return sqlite3.SQLITE_OK if is_read else sqlite3.SQLITE_DENY


def _unique(names: Sequence[str]) -> list[str]:
    """The names of columns; the second `event` becomes `event_2`."""
    found: list[str] = []
    for name in names:
        number, unique = 1, name
        while unique in found:
            number, unique = number + 1, f"{name}_{number + 1}"
        found.append(unique)
    return found


def _kind(column: Sequence[Any], declared: str) -> str:
    """INTEGER, REAL, TEXT, BLOB, or "" for values of several kinds. Columns without values are what
    the table declares."""
    kinds = {type(value) for value in column if value is not None}
    if not kinds:
        return declared
    if kinds == {int, float} and all(abs(value) <= 2**53 for value in column if value is not None):
        return "REAL"
    names = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}
    return names[kinds.pop()] if len(kinds) == 1 else ""


Columns = dict[str, "tuple[str, Sequence[Any]]"]


def _maker(frames: str | None) -> Callable[[Columns], Any]:
    """The function for a package, or for the first one that is installed."""
    import importlib.util

    makers = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}
    for name, make in makers.items():
        if name == frames or (frames is None and importlib.util.find_spec(name)):
            return make
    raise ImportError(f"no package for frames is installed: pip install {_PACKAGES[0]}")


def _pandas(columns: Columns) -> Any:
    import pandas

    # Without Int64, a column with NULLs would be float64, which has no exact addresses.
    dtypes = {"INTEGER": "Int64", "REAL": "float64", "TEXT": None}
    return pandas.DataFrame({name: pandas.Series(list(column), dtype=dtypes.get(kind, "object"))
                             for name, (kind, column) in columns.items()})


def _polars(columns: Columns) -> Any:
    import polars

    kinds = {"INTEGER": polars.Int64, "REAL": polars.Float64, "BLOB": polars.Binary}
    return polars.DataFrame([polars.Series(name, _alike(kind, column),
                                           kinds.get(kind, polars.String), strict=kind != "REAL")
                             for name, (kind, column) in columns.items()])


def _pyarrow(columns: Columns) -> Any:
    import pyarrow

    kinds = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "BLOB": pyarrow.binary()}
    return pyarrow.table({name: pyarrow.array(_alike(kind, column),
                                              kinds.get(kind, pyarrow.string()))
                          for name, (kind, column) in columns.items()})


def _alike(kind: str, column: Sequence[Any]) -> list[Any]:
    """The values of a column. Values of several kinds become text: these packages have no column
    for them."""
    if kind:
        return list(column)
    return [value if value is None else str(value) for value in column]
