"""Bytes in words, as the program prints them."""
from __future__ import annotations

import re
from fractions import Fraction

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def text_of_bytes(size_bytes: int) -> str:
    """Returns, for example, "0 B", "96.0 KiB" or "1.94 GiB": three digits."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in _UNITS:
        value /= 1024
        if value < 999.5 or unit == _UNITS[-1]:
            break
    if value >= 99.95:
        return f"{value:.0f} {unit}"
    return f"{value:.1f} {unit}" if value >= 9.995 else f"{value:.2f} {unit}"


_FACTORS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
            "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def bytes_of_text(size: int | str) -> int:
    """Returns the bytes of "2 GiB", "1.5MiB", "100 MB" (decimal) or a number. Raises ValueError."""
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    if not found or found.group(2).upper() not in _FACTORS:
        raise ValueError(f"{size!r} is not a size, such as '2 GiB'")
    return int(Fraction(found.group(1)) * _FACTORS[found.group(2).upper()])
