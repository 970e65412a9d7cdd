"""How much memory of the host this process can still get, for memtrace.parked.

Linux grants memory that it does not have, and ends a process when the memory is used. So a copy of
many gigabytes is compared with the limits before its first byte."""
from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from typing import Optional

# Folder, limit, usage and the prefix in memory.stat, of the first and the second version of cgroups.
_CGROUPS = {1: ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
            2: ("sys/fs/cgroup", "memory.max", "memory.current", "")}
# Pages of files, which the kernel drops when memory is needed.
_RECLAIMABLE = ("inactive_file", "active_file")


def available(root: str = "/") -> Optional[tuple[int, str]]:
    """Returns the smallest number of free bytes among the limits of this process, and what sets it,
    or None if no limit can be read. `root`: where /proc and /sys are."""
    return min((*_of_system(root), *_of_cgroups(root), *_of_address_space(root)), default=None)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _decimal(text: str) -> Optional[int]:
    return int(text) if text.isascii() and text.isdecimal() else None


def _number(path: str) -> Optional[int]:
    """Returns the number in a file, or None if there is none, as in "max"."""
    text = _text(path).strip()
    return _decimal(text)


def _of_system(root: str) -> Iterator[tuple[int, str]]:
    for line in _text(os.path.join(root, "proc/meminfo")).splitlines():
        words = line.split()
        if words[:1] == ["MemAvailable:"] and len(words) > 1 and _decimal(words[1]) is not None:
            yield int(words[1]) << 10, "this machine"


def _of_cgroups(root: str) -> Iterator[tuple[int, str]]:
    """A limit of any folder above that of the process also counts. A container often sees only its
    own folder, at the top, with a path that does not exist in it."""
    for line in _text(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, limit, usage, prefix = _CGROUPS[1 if controllers else 2]
        parts = [part for part in path.split("/") if part]
        for count in range(len(parts) + 1):
            here = os.path.join(root, folder, *parts[:count])
            limit_bytes = _number(os.path.join(here, limit))
            used_bytes = _number(os.path.join(here, usage))
            if limit_bytes is not None and used_bytes is not None:
                free_bytes = limit_bytes - used_bytes + _reclaimable(here, prefix)
                yield max(free_bytes, 0), f"the cgroup /{'/'.join(parts[:count])}"


def _reclaimable(folder: str, prefix: str) -> int:
    names = {prefix + name for name in _RECLAIMABLE}
    pairs = (line.split() for line in _text(os.path.join(folder, "memory.stat")).splitlines())
    return sum(int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in names)


def _of_address_space(root: str) -> Iterator[tuple[int, str]]:
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    words = _text(os.path.join(root, "proc/self/statm")).split()
    if limit_bytes != resource.RLIM_INFINITY and words:
        used_bytes = int(words[0]) * resource.getpagesize()
        yield max(limit_bytes - used_bytes, 0), "the limit of the address space (ulimit -v)"
