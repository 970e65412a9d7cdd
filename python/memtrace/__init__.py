"""memtrace: where does the memory of a GPU go?

    report = memtrace.analyze("run.trace.zst")
    with memtrace.phase("forward"): ...
    with memtrace.record("run.trace.zst"): ...

The names below are loaded when they are first used, so importing this package costs little."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import Error as Error
    from .errors import NotRestored as NotRestored
    from .ranges import phase as phase
    from .holders import who_holds as who_holds
    from .parking import parked as parked
    from .ranges import step as step
    from .recording import Recording as Recording
    from .recording import record as record
    from .report import Report as Report
    from .report import analyze as analyze
    from .report import live as live

__version__ = "0.1.0"

_MODULES = {
    "Error": "errors",
    "NotRestored": "errors",
    "Recording": "recording",
    "Report": "report",
    "analyze": "report",
    "live": "report",
    "phase": "ranges",
    "parked": "parking",
    "record": "recording",
    "report": "tensor_report",
    "step": "ranges",
    "who_holds": "holders",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'memtrace' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
