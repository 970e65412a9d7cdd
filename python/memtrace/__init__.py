"""memtrace: where does the memory of a GPU go?

    report = memtrace.analyze("run.trace.zst")
    with memtrace.phase("forward"): ...
    with memtrace.record("run.trace.zst"): ...

The names below are loaded when they are first used, so importing this package costs little."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .database import Database as Database
    from .database import read as read
    from .dry_runs import dry_run as dry_run
    from .dumps import dump_on_oom as dump_on_oom
    from .errors import Error as Error
    from .errors import NotRestored as NotRestored
    from .ranges import phase as phase
    from .holders import who_holds as who_holds
    from .parking import parked as parked
    from .profiling import LineProfiler as LineProfiler
    from .profiling import profile as profile
    from .questions import diff as diff
    from .questions import estimate_diff as estimate_diff
    from .questions import fit as fit
    from .questions import lines as lines
    from .questions import oom as oom
    from .questions import tune as tune
    from .ranges import step as step
    from .recording import Recording as Recording
    from .recording import record as record
    from .analysis import Report as Report
    from .analysis import analyze as analyze
    from .analysis import live as live
    from .tensor_report import report as report

__version__ = "0.1.0"

_MODULES = {
    "Database": "database",
    "Error": "errors",
    "LineProfiler": "profiling",
    "NotRestored": "errors",
    "Recording": "recording",
    "Report": "analysis",
    "analyze": "analysis",
    "diff": "questions",
    "dry_run": "dry_runs",
    "dump_on_oom": "dumps",
    "estimate_diff": "questions",
    "fit": "questions",
    "lines": "questions",
    "live": "analysis",
    "oom": "questions",
    "phase": "ranges",
    "parked": "parking",
    "profile": "profiling",
    "read": "database",
    "record": "recording",
    "report": "tensor_report",
    "step": "ranges",
    "tune": "questions",
    "who_holds": "holders",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'memtrace' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    _show_plainly(value)
    globals()[name] = value
    return value


class _Plain(str):
    """An annotation that help() shows without quotes. Python before 3.14 adds them."""

    __repr__ = str.__str__


def _show_plainly(value: Any) -> None:
    for part in [value, *(vars(value).values() if isinstance(value, type) else ())]:
        function = getattr(part, "fget", None) or getattr(part, "__func__", part)
        if not isinstance(function, type) and hasattr(function, "__annotations__"):
            function.__annotations__ = {
                name: _Plain(kind) if isinstance(kind, str) else kind
                for name, kind in function.__annotations__.items()}


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext memtrace`: %%memtrace, %mlrun and %memtrace_live."""
    from .ipython import Magics

    shell.register_magics(Magics)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
