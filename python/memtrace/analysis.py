"""Analysis of a trace or a snapshot, through the program."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import program
from .errors import Error
from .frames import Rows, frame_or_rows

if TYPE_CHECKING:
    from .documents.analyze import Analyze, Device, Finding, Gate
    from .documents.live import Live

T = TypeVar("T")


def build(make: Callable[[Mapping[str, Any]], T], document: Any) -> T:
    """Makes a dataclass of a document. Keys are only ever added to documents, so a missing one
    means that the program is older than this package."""
    try:
        return make(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise Error(
            f"the program and this package have different versions: its JSON document lacks {error}"
        ) from None


def warn(lines: Sequence[str], status: int) -> None:
    """Warns that a result exists but is incomplete, at the line of the program that calls this
    package."""
    if status not in (3, 5):
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    for line in lines:
        warnings.warn(line, stacklevel=level)


def answer(make: Callable[[Mapping[str, Any]], T], arguments: Sequence[str]) -> T:
    """Runs a command and returns its document. Raises Error if it has no answer."""
    document, output = program.run_json([*arguments, "--quiet"])
    found = build(make, document)
    warn(output.lines, output.status)
    return found


def words_of(**values: int | str | Mapping[str, int | str] | None) -> list[str]:
    """Options of a command with these names. A mapping gives one option for each of its items, and
    None gives no option."""
    words = []
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}="
        if isinstance(value, Mapping):
            words += [f"{option}{key}={item}" for key, item in value.items()]
        elif value is not None:
            words.append(f"{option}{value}")
    return words


def _table(name: str, description: str) -> property:
    """An attribute of Report: a table as a pandas frame, or as rows without pandas."""
    def table(report: Report) -> Any:
        return frame_or_rows(report.rows(name))

    return property(table, doc=description)


class Report:
    """The answer of `memtrace analyze`. Tables are pandas frames if pandas is installed, else lists
    of dataclasses; `rows(name)` is always a list."""

    def __init__(self, path: program.Path, document: Analyze, options: Sequence[str] = ()) -> None:
        self.path = path
        self.document = document
        self._options = tuple(options)
        self._html: str | None = None

    @property
    def raw(self) -> Mapping[str, Any]:
        """The JSON document as the program printed it."""
        return self.document.raw

    @property
    def devices(self) -> tuple[Device, ...]:
        return self.document.devices

    @property
    def device(self) -> Device:
        """The device with the largest allocated peak."""
        if not self.devices:
            raise Error("the trace has no device")
        return max(self.devices, key=lambda device: device.summary.allocated_peak.bytes)

    @property
    def verdict(self) -> str | None:
        """`pass`, `warn`, `fail` or `not evaluated`, if limits were given."""
        return self.document.verdict

    @property
    def findings(self) -> list[Finding]:
        return [finding for device in self.devices for finding in device.findings]

    @property
    def gates(self) -> list[Gate]:
        return list(self.document.gates or ())

    def rows(self, name: str) -> Rows:
        """The rows of one table of all devices: steps, phases, sites, modules, roles, findings,
        pools, instants, ooms or explanations."""
        if name not in _TABLES:
            raise Error(f"there is no table '{name}': use one of {', '.join(sorted(_TABLES))}")
        return Rows.of_devices(self.devices, _TABLES[name])

    steps = _table("steps", "Steps, with their peaks.")
    phases = _table("phases", "Phases, with their peaks.")
    sites = _table("sites", "Call sites that hold memory at the allocated peak.")
    modules = _table("modules", "The allocated peak by layer and module.")
    roles = _table("roles", "The allocated peak by role: parameters, activations and so on.")
    pools = _table("pools", "Pools of the allocator.")
    instants = _table("instants", "Instants of interest, such as peaks.")

    def to_frame(self, name: str = "steps") -> Any:
        """A table as a pandas frame. Raises ImportError without pandas."""
        return self.rows(name).to_frame()

    def live(self, at: str = "peak", by: str = "site") -> Any:
        """What is alive at an instant (`memtrace live --at AT --by BY`), as a table."""
        found = live(self.path, at=at, by=by)
        return frame_or_rows(Rows.of_devices(found.devices, lambda device: device.rows or ()))

    def text(self) -> str:
        """What `memtrace analyze` prints."""
        words = ["analyze", program.as_argument(self.path), "--quiet", *self._options]
        return program.answered(words).text

    def picture(self, chart: str = "timeline", format: str = "png",
                options: Sequence[str] = ()) -> bytes:
        """A chart of `memtrace render` as a PNG or SVG file."""
        import os
        import tempfile

        with tempfile.TemporaryDirectory(prefix="memtrace-") as folder:
            path = os.path.join(folder, f"{chart}.{format}")
            words = ["render", chart, program.as_argument(self.path), "-o", path, "--quiet"]
            program.answered([*words, *options], path)
            with open(path, "rb") as file:
                return file.read()

    def _repr_html_(self) -> str:
        """The answer and the timeline, for notebooks."""
        if self._html is None:
            from .pages import of_report

            self._html = of_report(self)
        return self._html

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The answer, for IPython in a terminal."""
        printer.text(repr(self) if cycle else self.text().rstrip())

    def __repr__(self) -> str:
        peaks = ", ".join(
            f"device {device.device}: {device.summary.allocated_peak.bytes} bytes allocated"
            for device in self.devices
        )
        return f"<memtrace.Report of {str(self.path)!r}, peaks: {peaks or 'none'}>"


_TABLES: dict[str, Callable[[Device], Iterable[Any]]] = {
    "steps": lambda device: device.steps,
    "phases": lambda device: device.phases,
    "sites": lambda device: device.peak_sites,
    "modules": lambda device: device.modules.rows if device.modules else (),
    "roles": lambda device: device.roles_at_peak,
    "findings": lambda device: device.findings,
    "pools": lambda device: device.pools,
    "instants": lambda device: device.instants,
    "ooms": lambda device: device.ooms,
    "explanations": lambda device: device.explanations,
}


def analyze(
    path: program.Path,
    *,
    all_rows: bool = True,
    policy: str | None = None,
    limit: int | str | None = None,
    max_peak: Mapping[str, int | str] | None = None,
    max_growth: str | None = None,
    fits: int | str | None = None,
    base: program.Path | None = None,
    options: Sequence[str] = (),
) -> Report:
    """Analyzes a trace or a snapshot with `memtrace analyze`.

    Without `all_rows`, long tables end early, and a document has at most 1 MB. `policy`, `limit`,
    `max_peak`, `max_growth`, `fits` and `base` are the options of the command with these names.
    `options` are further words of its command line. A rule that fails does not raise: see
    `Report.verdict`. Raises Error with the line of the program if there is no answer."""
    from .documents.analyze import Analyze

    chosen = list(options)
    chosen += ["--all"] if all_rows else []
    chosen += words_of(policy=policy, limit=limit, max_growth=max_growth, fits=fits,
                       max_peak=max_peak)
    chosen += [f"--base={program.as_argument(base)}"] if base is not None else []
    document = answer(Analyze.from_json, ["analyze", program.as_argument(path), *chosen])
    return Report(path, document, chosen)


def live(path: program.Path, *, at: str = "peak", by: str = "site",
         options: Sequence[str] = ()) -> Live:
    """What is alive at an instant: `memtrace live`."""
    from .documents.live import Live

    return answer(Live.from_json, ["live", program.as_argument(path), f"--at={at}", f"--by={by}",
                                   "--all", *options])
