"""The file of a recording: when it may be replaced, and how it gets its name."""
from __future__ import annotations

import os
import stat

from .errors import Error, printable
from .program import Path

# docs/trace-format.md: a skippable frame of zstd whose payload begins with this word.
_MAGIC = b"\x5d\x2a\x4d\x18"
_WORD = b"memtrace"
_SUFFIX = ".trace.zst"
_TAPE = ".tape"


def check(path: Path) -> str:
    """Returns the absolute path of a trace that may be written. Makes its folder. Raises Error if
    a file that is not a finished trace has this name."""
    text = os.fsdecode(path)
    if "\0" in text or not text or text.endswith(os.sep) or os.path.isdir(text):
        raise Error(f"cannot write '{printable(text)}': it is not the name of a file")
    whole = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(text))),
                         os.path.basename(text))
    reason = _why_not(whole)
    if reason:
        raise Error(f"cannot write '{printable(text)}': {reason}")
    try:
        os.makedirs(os.path.dirname(whole), exist_ok=True)
    except OSError as error:
        raise Error(f"cannot write '{printable(text)}': {error.strerror}") from None
    if not os.access(os.path.dirname(whole), os.W_OK | os.X_OK):
        raise Error(f"cannot write '{printable(text)}': its folder cannot be written")
    return whole


def _why_not(path: str) -> str | None:
    try:
        kind = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.strerror
    if stat.S_ISLNK(kind.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISREG(kind.st_mode):
        return "it is not a regular file"
    if os.path.lexists(path + _TAPE):
        return "it is being recorded, or 'memtrace recover' has not completed it"
    if kind.st_size and not _is_trace(path):
        return "memtrace did not write this file"
    return None


def _is_trace(path: str) -> bool:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            start = file.read(16)
    except OSError:
        return False
    return start[:4] == _MAGIC and start[8:] == _WORD


def unfinished(path: str, suffix: str = _SUFFIX) -> str:
    """A name beside the trace for what is written until it is complete."""
    stem = path[: -len(_SUFFIX)] if path.endswith(_SUFFIX) else path
    for number in range(1000):
        again = f"-{number}" if number else ""
        candidate = f"{stem}.unfinished-{os.getpid()}{again}{suffix}"
        if not os.path.lexists(candidate) and not os.path.lexists(candidate + _TAPE):
            return candidate
    raise Error(f"cannot write '{path}': too many unfinished recordings are beside it")


def remove_folder(folder: str, process: int) -> None:
    """Removes a temporary folder of the process that made it. A forked child also runs what its
    parent has registered for the end of the program, and must not take the folder away."""
    import shutil

    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def publish(complete: str, path: str) -> None:
    """Gives the complete file its name. A file that has the name by now is replaced only if it is a
    trace. Raises Error, and then the complete file stays."""
    try:
        try:
            os.link(complete, path)
        except FileExistsError:
            reason = _why_not(path)
            if reason:
                raise Error(f"cannot write '{path}': {reason}; the trace is '{complete}'") from None
            os.replace(complete, path)
            return
        except OSError:  # a file system without hard links
            reason = _why_not(path)
            if reason:
                raise Error(f"cannot write '{path}': {reason}; the trace is '{complete}'") from None
            os.replace(complete, path)
            return
        os.unlink(complete)
    except OSError as error:
        raise Error(
            f"cannot write '{path}': {error.strerror}; the trace is '{complete}'"
        ) from None
