"""The file of a recording: when it may be replaced, and how it gets its name."""
from __future__ import annotations

import errno
import os
import stat

from .errors import Error, printable
from .program import Path

# docs/internals/trace-format.md: a skippable frame of zstd whose payload begins with this word.
_MAGIC = b"\x5d\x2a\x4d\x18"
_WORD = b"memtrace"
_SUFFIX = ".trace.zst"
_TAPE = ".tape"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


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


def claim(path: str, suffix: str) -> str:
    """Makes an empty file with such a name. The name cannot be a link, nor a file of anyone else."""
    while True:
        candidate = unfinished(path, suffix)
        try:
            os.close(os.open(candidate, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return candidate
        except FileExistsError:
            continue
        except OSError as error:
            raise Error(f"cannot write '{printable(candidate)}': {error.strerror}") from None


def free(path: str) -> str:
    """The first of `path`, its name with -2, with -3 and so on that no file has."""
    number = 1
    while os.path.lexists(_numbered(path, number)) or os.path.lexists(
            _numbered(path, number) + _TAPE):
        number += 1
    return _numbered(path, number)


def _numbered(path: str, number: int) -> str:
    if number == 1:
        return path
    stem, suffix = (path[: -len(_SUFFIX)], _SUFFIX) if path.endswith(_SUFFIX) \
        else os.path.splitext(path)
    return f"{stem}-{number}{suffix}"


Identity = tuple[int, int, int, int]


def identity(path: str) -> Identity | None:
    """What a file is compared by, or None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def publish(complete: str, path: str, replaced: Identity | None = None) -> str:
    """Gives the complete file its name, and returns it. The file that was there when the recording
    began is replaced (`replaced`: its identity). A trace that has got the name since is that of
    another recording and keeps it: then the name gets a number. Raises Error if another file has
    the name, and then the complete file stays."""
    try:
        if replaced is not None and _replace(complete, path, replaced):
            return path
        if _give_name(complete, path):
            return path
        reason = _why_not(path)
        if reason:
            raise Error(f"cannot write '{path}': {reason}; the trace is '{complete}'")
        while True:
            numbered = free(path)
            if _give_name(complete, numbered):
                return numbered
    except OSError as error:
        raise Error(
            f"cannot write '{path}': {error.strerror}; the trace is '{complete}'"
        ) from None


def _give_name(complete: str, path: str) -> bool:
    """Returns False if a file has the name."""
    try:
        os.link(complete, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        os.replace(complete, path)
    else:
        os.unlink(complete)
    return True


def _replace(complete: str, path: str, replaced: Identity) -> bool:
    """Replaces one file and no other: returns False if the name belongs to another one."""
    if identity(path) != replaced:
        return False
    try:
        _exchange(complete, path)
    except OSError:  # a file system, kernel or libc without this call
        os.replace(complete, path)
        return True
    if identity(complete) != replaced:  # it changed between the two calls
        _exchange(complete, path)
        return False
    os.unlink(complete)
    return True


def _exchange(one: str, other: str) -> None:
    """Exchanges the names of two files in one step."""
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
