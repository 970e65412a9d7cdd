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

# A gate that failed (1), damaged parts (3) and missing events (5) still have an answer.
ANSWERED = (0, 1, 3, 5)

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
        rows: list[Any] = []
        extra: list[dict[str, Any]] = []
        for device in self.devices:
            found = list(_TABLES[name](device))
            rows += found
            extra += [{"device": device.device}] * len(found)
        return Rows(rows, extra)

    @property
    def steps(self) -> Any:
        return frame_or_rows(self.rows("steps"))

    @property
    def phases(self) -> Any:
        return frame_or_rows(self.rows("phases"))

    @property
    def sites(self) -> Any:
        """Call sites that hold memory at the allocated peak."""
        return frame_or_rows(self.rows("sites"))

    @property
    def modules(self) -> Any:
        """The allocated peak by layer and module."""
        return frame_or_rows(self.rows("modules"))

    @property
    def roles(self) -> Any:
        """The allocated peak by role: parameters, gradients, activations and so on."""
        return frame_or_rows(self.rows("roles"))

    @property
    def pools(self) -> Any:
        return frame_or_rows(self.rows("pools"))

    @property
    def instants(self) -> Any:
        return frame_or_rows(self.rows("instants"))

    def to_frame(self, name: str = "steps") -> Any:
        """A table as a pandas frame. Raises ImportError without pandas."""
        return self.rows(name).to_frame()

    def live(self, at: str = "peak", by: str = "site") -> Any:
        """What is alive at an instant (`memtrace live --at AT --by BY`), as a table."""
        return frame_or_rows(live_rows(live(self.path, at=at, by=by)))

    def text(self) -> str:
        """What `memtrace analyze` prints."""
        return program.run(["analyze", program.as_argument(self.path), "--quiet", *self._options],
                           ANSWERED).text

    def picture(self, chart: str = "timeline", format: str = "png",
                options: Sequence[str] = ()) -> bytes:
        """A chart of `memtrace render` as a PNG or SVG file."""
        import os
        import tempfile

        with tempfile.TemporaryDirectory(prefix="memtrace-") as folder:
            path = os.path.join(folder, f"{chart}.{format}")
            program.run(["render", chart, program.as_argument(self.path), "-o", path, "--quiet",
                         *options], ANSWERED)
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
    `options` are further words of its command line. A gate that fails is no error: see
    `Report.verdict`. Raises Error with the line of the program if there is no answer."""
    from .documents.analyze import Analyze

    chosen = list(options)
    chosen += ["--all"] if all_rows else []
    chosen += pairs(policy=policy, limit=limit, max_growth=max_growth, fits=fits)
    chosen += [f"--max-peak={metric}={size}" for metric, size in (max_peak or {}).items()]
    chosen += [f"--base={program.as_argument(base)}"] if base is not None else []
    arguments = ["analyze", program.as_argument(path), "--quiet", *chosen]
    document, output = program.run_json(arguments, ANSWERED)
    report = Report(path, build(Analyze.from_json, document), chosen)
    warn(output.lines, output.status)
    return report


def pairs(**values: int | str | None) -> list[str]:
    return [
        f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None
    ]


def live(path: program.Path, *, at: str = "peak", by: str = "site",
         options: Sequence[str] = ()) -> Live:
    """What is alive at an instant: `memtrace live`."""
    from .documents.live import Live

    arguments = ["live", program.as_argument(path), f"--at={at}", f"--by={by}", "--all", "--quiet",
                 *options]
    document, output = program.run_json(arguments, ANSWERED)
    found = build(Live.from_json, document)
    warn(output.lines, output.status)
    return found


def live_rows(found: Live) -> Rows:
    rows: list[Any] = []
    extra: list[dict[str, Any]] = []
    for device in found.devices:
        rows += device.rows or ()
        extra += [{"device": device.device}] * len(device.rows or ())
    return Rows(rows, extra)
