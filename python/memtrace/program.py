"""Finds the program and its libraries, and runs commands of the program."""
from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Union

from .errors import Error, MissingFile

Path = Union[str, "os.PathLike[str]"]

# A gate that failed (1), damaged parts (3) and missing events (5) still have an answer.
ANSWERED = (0, 1, 3, 5)
_LINES = 12  # of an answer in a log

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_ELF = b"\x7fELF"
# Relative to the folder of the program: a build folder, then folders of an installation.
_LIBRARY_FOLDERS = (
    ".",
    "../lib",
    "../lib64",
    "../lib/x86_64-linux-gnu",
    "../lib/aarch64-linux-gnu",
    "../libexec/memtrace",
    "../lib/memtrace",
)


def find() -> str:
    """Returns the path of the program: MEMTRACE_PROGRAM, the program inside this package, or the
    first one on PATH."""
    configured = os.environ.get("MEMTRACE_PROGRAM")
    if configured:
        if not _is_executable(configured):
            raise Error(f"MEMTRACE_PROGRAM is '{configured}', which is not a program")
        return configured
    own = os.path.join(_PACKAGE, "bin", "memtrace")
    if _is_executable(own):
        return own
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder, "memtrace")
        # The script of this package has the same name, and would start itself.
        if _is_executable(candidate) and _is_elf(candidate):
            return candidate
    raise Error(
        "the memtrace program is neither in this package nor on PATH: reinstall the package, or set "
        "MEMTRACE_PROGRAM"
    )


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_ELF)) == _ELF
    except OSError:
        return False


def library(name: str = "libmemtrace-inject.so") -> str:
    """Returns the path of a library of the program: MEMTRACE_INJECT for the collector, or the one
    that was built or installed with the program."""
    configured = os.environ.get("MEMTRACE_INJECT") if name == "libmemtrace-inject.so" else None
    if configured:
        if not os.path.isfile(configured):
            raise Error(f"MEMTRACE_INJECT is '{configured}', which does not exist")
        return os.path.realpath(configured)
    program = os.path.realpath(find())
    for folder in _LIBRARY_FOLDERS:
        candidate = os.path.join(os.path.dirname(program), folder, name)
        if os.path.isfile(candidate):
            return os.path.realpath(candidate)
    raise Error(f"{name} is not installed with '{program}': reinstall memtrace with all its files")


class Output(NamedTuple):
    """What a command printed. `lines`: those on standard error, without the name of the program."""

    text: str
    lines: Sequence[str]
    status: int


def as_argument(path: Path) -> str:
    """A path as one word of a command line: never an option, and never standard input."""
    text = os.fspath(path)
    if not isinstance(text, str):
        text = os.fsdecode(text)
    return f".{os.sep}{text}" if text.startswith("-") else text


def run(arguments: Sequence[str], accepted: Collection[int] = (0,),
        text: str | None = None) -> Output:
    """Runs a command, with `text` as its standard input. Raises Error with its line if the exit
    status is not an accepted one."""
    command = [find(), *arguments]
    given = (text or "").encode("utf-8", "replace")
    try:
        done = subprocess.run(command, input=given, capture_output=True, check=False)
    except (OSError, ValueError) as error:
        raise Error(f"cannot run '{command[0]}': {error}") from None
    errors = done.stderr.decode("utf-8", "replace").splitlines()
    lines = [line[len("memtrace: "):] if line.startswith("memtrace: ") else line for line in errors]
    if done.returncode not in accepted:
        raise _error(_first_line(lines, command, done.returncode), done.returncode)
    return Output(done.stdout.decode("utf-8", "replace"), lines, done.returncode)


def _error(line: str, status: int) -> Error:
    is_missing = line.startswith("cannot read '") and line.endswith("': No such file or directory")
    return MissingFile(line, status) if is_missing else Error(line, status)


def _first_line(lines: Sequence[str], command: Sequence[str], status: int) -> str:
    for line in lines:
        if line.strip():
            return line
    name = command[1] if len(command) > 1 else ""
    if status < 0:
        return f"memtrace {name} was ended by signal {-status}"
    return f"memtrace {name} failed with status {status}"


def answered(arguments: Sequence[str], file: str | None = None, text: str | None = None) -> Output:
    """Runs a command that prints an answer, or writes it to `file`; `text` is its standard input.
    Raises Error if there is none, for example because the input cannot be read at all."""
    output = run(arguments, ANSWERED, text)
    if not (os.path.exists(file) if file else output.text):
        raise _error(_first_line(output.lines, ["", *arguments], output.status), output.status)
    return output


def first_lines(arguments: Sequence[str]) -> str:
    """The first lines of an answer, and the command for the whole answer if there are more. If
    there is no answer, the reason."""
    try:
        output = answered([*arguments, "--quiet"])
    except Error as error:
        return f"the trace could not be analyzed: {error}"
    lines = output.text.splitlines()
    more = [f"... memtrace {' '.join(map(shell_word, arguments))}"] if len(lines) > _LINES else []
    return "\n".join([*lines[:_LINES], *more])


def shell_word(word: str) -> str:
    """A word for the command line of a shell, without characters that change a terminal."""
    import shlex

    if word.isprintable():
        return shlex.quote(word)
    text = "".join(c if c.isprintable() and c not in "\\'" else _escaped(c) for c in word)
    return f"$'{text}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def run_json(arguments: Sequence[str], text: str | None = None) -> tuple[Any, Output]:
    """Runs a command that prints one JSON document, with `text` as its standard input. Returns the
    document and the output."""
    import json

    output = answered([*arguments, "--json"], text=text)
    try:
        return json.loads(output.text), output
    except ValueError:
        raise Error(f"memtrace {arguments[0]} printed no JSON document") from None
