"""Finds the program and its libraries, and runs commands of the program."""
from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Union

from .errors import Error

Path = Union[str, "os.PathLike[str]"]

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


def run(arguments: Sequence[str], accepted: Collection[int] = (0,)) -> Output:
    """Runs a command. Raises Error with its line if the exit status is not an accepted one."""
    command = [find(), *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except (OSError, ValueError) as error:
        raise Error(f"cannot run '{command[0]}': {error}") from None
    errors = done.stderr.decode("utf-8", "replace").splitlines()
    lines = [line[len("memtrace: "):] if line.startswith("memtrace: ") else line for line in errors]
    if done.returncode not in accepted:
        raise Error(_first_line(lines, command, done.returncode), done.returncode)
    return Output(done.stdout.decode("utf-8", "replace"), lines, done.returncode)


def _first_line(lines: Sequence[str], command: Sequence[str], status: int) -> str:
    for line in lines:
        if line.strip():
            return line
    name = command[1] if len(command) > 1 else ""
    if status < 0:
        return f"memtrace {name} was ended by signal {-status}"
    return f"memtrace {name} failed with status {status}"


def run_json(arguments: Sequence[str], accepted: Collection[int] = (0,)) -> tuple[Any, Output]:
    """Runs a command that prints one JSON document. Returns the document and the output."""
    import json

    output = run([*arguments, "--json"], accepted)
    try:
        return json.loads(output.text), output
    except ValueError:
        if output.status:
            raise Error(_first_line(output.lines, ["", *arguments], output.status),
                        output.status) from None
        raise Error(f"memtrace {arguments[0]} printed no JSON document") from None
