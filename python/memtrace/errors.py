"""The exceptions of this package."""
from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parking import parked


class Error(Exception):
    """What failed, as the program reports it in one line. `status` is the exit status of the
    program, or None if it did not run or did not fail."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class MissingFile(Error, FileNotFoundError):
    """A file that a command reads does not exist. `filename` is its name in the line of the
    program."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text, status)
        self.errno, self.filename = errno.ENOENT, text.partition("'")[2].rpartition("'")[0]

    def __str__(self) -> str:
        return str(self.args[0])


class NotRestored(Error):
    """memtrace.parked could not restore everything. The bytes stay in host memory until the method
    restore() of `parked` succeeds."""

    def __init__(self, text: str, owner: parked) -> None:
        super().__init__(text)
        self.parked = owner

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Writes {name: tensor} to a file that torch.load reads, without the GPU. Returns a line for
        each tensor that could not be read."""
        return self.parked.save(path)


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, or its type if it has none."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def printable(text: str) -> str:
    """The text with escapes for what a terminal or a page would not show as a character."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode()
                   for c in text)
