"""The options of %mlrun. They have the same names as in pytorch_memlab."""
from __future__ import annotations

import re
from collections.abc import Mapping

from .line_table import DEFAULT_COLUMNS

_WITH_VALUE = {"f": "function", "c": "column", "g": "gpu", "T": "dump-profile"}
_FLAGS = {"D": "no_default_columns", "q": "quiet", "r": "return-profiler"}
_WORD = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|\S+)")


class MlrunOptions:
    """The options at the beginning of a line, and the statement after them, with its quotes and
    spaces. Raises ValueError."""

    def __init__(self, line: str) -> None:
        self._found: dict[str, list[str]] = {}
        self._rest = line
        while self._rest.lstrip().startswith("-"):
            word = self._next_word()
            if word == "--":
                break
            if word.startswith("--"):
                self._long(word[2:])
            else:
                self._short(word[1:])
        self.statement = self._rest.strip()
        self.functions = self._found.get("function", [])
        own = self._found.get("column", [])
        is_bare = "no_default_columns" in self._found
        self.columns = own if is_bare else [*DEFAULT_COLUMNS, *own]
        self.device = self._device()
        self.is_quiet = "quiet" in self._found
        self.returns_profiler = "return-profiler" in self._found
        self.file = (self._found.get("dump-profile") or [""])[-1]

    def _next_word(self) -> str:
        found = _WORD.match(self._rest)
        if found is None:
            return ""
        self._rest = self._rest[found.end():]
        word = found.group(1)
        return word[1:-1] if word[0] in "\"'" else word

    def _long(self, word: str) -> None:
        name, _, value = word.partition("=")
        if name in _FLAGS.values() and not value:
            self._found[name] = []
        elif name in _WITH_VALUE.values():
            self._add(name, value, f"--{name}")
        else:
            raise ValueError(_unknown(f"--{word}"))

    def _short(self, letters: str) -> None:
        for at, letter in enumerate(letters, 1):
            if letter in _WITH_VALUE:
                self._add(_WITH_VALUE[letter], letters[at:], f"-{letter}")
                return
            if letter not in _FLAGS:
                raise ValueError(_unknown(f"-{letter}"))
            self._found[_FLAGS[letter]] = []
        if not letters:
            raise ValueError(_unknown("-"))

    def _add(self, name: str, value: str, option: str) -> None:
        value = value or self._next_word()
        if not value:
            raise ValueError(f"option {option} needs a value")
        self._found.setdefault(name, []).append(value)

    def _device(self) -> int | None:
        words = self._found.get("gpu")
        if not words:
            return None
        if not words[-1].isdecimal():
            raise ValueError(f"'{words[-1]}' is not the number of a device")
        return int(words[-1])


def _unknown(option: str) -> str:
    def names(known: Mapping[str, str]) -> list[str]:
        return [f"-{short} (--{long})" for short, long in known.items()]

    return f"there is no option {option}: use {', '.join([*names(_WITH_VALUE), *names(_FLAGS)])}"
