"""The exception of this package."""
from __future__ import annotations


class Error(Exception):
    """What failed, as the program reports it in one line. `status` is the exit status of the
    program, or None if it did not run or did not fail."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status
