"""Bytes in words, as the program prints them."""
from __future__ import annotations

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
