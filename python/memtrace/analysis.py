"""Analysis of a trace or a snapshot, through the program."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from . import program
from .errors import Error, printable
from .frames import Rows, seconds
from .pages import Explorer, Text, of_report
from .units import text_of_bytes

if TYPE_CHECKING:
    import pandas

    from .documents.analyze import Analyze, Device, Finding, Gate
    from .documents.common import Card
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


def answer(make: Callable[[Mapping[str, Any]], T], arguments: Sequence[str],
           text: str | None = None) -> T:
    """Runs a command, with `text` as its standard input, and returns its document. Raises Error if
    it has no answer."""
    document, output = program.run_json([*arguments, "--quiet"], text)
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


@dataclass(frozen=True)
class Peak:
    """The instant at which a device has most bytes allocated. `t_s`: seconds since the start, or
    None if the file has no times. `reserved_peak_bytes`: the most that was reserved, at any
    instant."""

    bytes: int
    reserved_peak_bytes: int
    t_s: float | None
    event: int
    step: int | None
    phase: str | None


class Report:
    """The answer of `memtrace analyze`. `card`, `peak`, `held_by` and `advice` are those of the
    fullest device. Tables such as `steps` are pandas frames of the main columns; without pandas,
    lists of dataclasses. `to_frame(name)` has all columns, and `rows(name)` is always a list."""

    def __init__(self, path: str | os.PathLike[str], document: Analyze,
                 options: Sequence[str] = ()) -> None:
        self.path = path
        self.document = document
        self._options = tuple(options)
        self._text: Text | None = None
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
        """The fullest device: one that ran out of memory, else the one with the largest reserved
        peak. Raises Error if there is none."""
        if not self.devices:
            raise Error("the trace has no device")
        return max(self.devices, key=_fullness)

    @property
    def card(self) -> Card | None:
        """What a card must have for this run, or None if that is not known."""
        return self.device.card

    @property
    def peak(self) -> Peak:
        """The allocated peak."""
        summary = self.device.summary
        at = summary.allocated_peak
        return Peak(at.bytes, summary.reserved_peak.bytes, seconds(at.t_ns, self._start_ns),
                    at.event, at.step, at.phase)

    @property
    def held_by(self) -> dict[str, int]:
        """The bytes of the allocated peak by role, largest first."""
        roles = sorted(self.device.roles_at_peak, key=lambda row: -row.bytes)
        return {row.role: row.bytes for row in roles}

    @property
    def advice(self) -> list[Finding]:
        """What to change, in the order of the program: each has a `title`, the `advice`, and
        `saves_bytes`."""
        return list(self.device.findings)

    @property
    def verdict(self) -> str | None:
        """`pass`, `warn`, `fail` or `not evaluated`, if limits were given."""
        return self.document.verdict

    @property
    def findings(self) -> list[Finding]:
        """The findings of all devices."""
        return [finding for device in self.devices for finding in device.findings]

    @property
    def gates(self) -> list[Gate]:
        return list(self.document.gates or ())

    @property
    def _start_ns(self) -> int | None:
        found = self.document.input
        return found.first_t_ns if found.last_t_ns > found.first_t_ns else None

    def rows(self, name: str) -> Rows:
        """The rows of one table of all devices: steps, phases, sites, modules, roles, findings,
        pools, instants, ooms or explanations."""
        if name not in _TABLES:
            raise Error(f"there is no table '{name}': use one of {', '.join(sorted(_TABLES))}")
        rows_of, main = _TABLES[name]
        return Rows.of_devices(self.devices, rows_of, main.split(), self._start_ns)

    @property
    def steps(self) -> pandas.DataFrame:
        """Steps, with their peaks."""
        return self.rows("steps").main_frame()

    @property
    def phases(self) -> pandas.DataFrame:
        """Phases, with their peaks."""
        return self.rows("phases").main_frame()

    @property
    def sites(self) -> pandas.DataFrame:
        """Call sites that hold memory at the allocated peak."""
        return self.rows("sites").main_frame()

    @property
    def modules(self) -> pandas.DataFrame:
        """The allocated peak by layer and module."""
        return self.rows("modules").main_frame()

    @property
    def roles(self) -> pandas.DataFrame:
        """The allocated peak by role: parameters, activations and so on."""
        return self.rows("roles").main_frame()

    @property
    def pools(self) -> pandas.DataFrame:
        """Pools of the allocator."""
        return self.rows("pools").main_frame()

    @property
    def instants(self) -> pandas.DataFrame:
        """Instants of interest, such as peaks."""
        return self.rows("instants").main_frame()

    def to_frame(self, name: str = "steps") -> pandas.DataFrame:
        """All columns of a table as a pandas frame. Raises ImportError without pandas."""
        return self.rows(name).to_frame()

    def live(self, at: str = "peak", by: str = "site") -> pandas.DataFrame:
        """What is alive at an instant (`memtrace live --at AT --by BY`), as a table."""
        found = live(self.path, at=at, by=by)
        main = ("group", "bytes", "blocks", "role", "phase", "step")
        return Rows.of_devices(found.devices, lambda device: device.rows or (), main).main_frame()

    @property
    def text(self) -> Text:
        """What `memtrace analyze` prints. `report.text()` is the same."""
        if self._text is None:
            words = ["analyze", program.as_argument(self.path), "--quiet", *self._options]
            self._text = Text(program.answered(words).text.rstrip())
        return self._text

    def picture(self, chart: str = "timeline", format: str = "png",
                options: Sequence[str] = ()) -> bytes:
        """A chart of `memtrace render` as a PNG or SVG file; the timeline also as HTML."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="memtrace-") as folder:
            path = os.path.join(folder, f"{chart}.{format}")
            words = ["render", chart, program.as_argument(self.path), "-o", path, "--quiet"]
            program.answered([*words, *options], path)
            with open(path, "rb") as file:
                return file.read()

    def explore(self) -> Explorer:
        """The timeline to zoom and select on, for notebooks."""
        return Explorer(self.picture(format="html").decode("utf-8"))

    def _repr_html_(self) -> str:
        """The answer and the timeline, for notebooks."""
        if self._html is None:
            self._html = of_report(self)
        return self._html

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The answer, for IPython in a terminal."""
        printer.text(repr(self) if cycle else str(self.text))

    def __repr__(self) -> str:
        parts = [f"<memtrace.Report of {str(self.path)!r}"]
        if self.devices:
            card, peak = self.card, self.peak
            place = peak.phase or (f"step {peak.step}" if peak.step is not None else "")
            if card:
                sign = "at least" if card.at_least else "about"
                parts.append(f"card {sign} {text_of_bytes(card.bytes)}")
            parts.append(f"peak {text_of_bytes(peak.bytes)}{' in ' if place else ''}{place}")
            parts += [f"advice: {finding.title}" for finding in self.advice[:1]]
        return printable("; ".join(parts)) + ">"


def _fullness(device: Device) -> tuple[bool, int, int, int]:
    """Orders devices as the program does."""
    summary = device.summary
    return (any(oom.fatal for oom in device.ooms), summary.reserved_peak.bytes,
            summary.allocated_peak.bytes, -device.device)


# The rows of each table, and its main columns after the number of the device.
_TABLES: dict[str, tuple[Callable[[Device], Iterable[Any]], str]] = {
    "steps": (lambda device: device.steps,
              "step peak_allocated_bytes peak_reserved_bytes end_allocated_bytes begin_s peak_t_s"),
    "phases": (lambda device: device.phases,
               "path peak_allocated_bytes peak_reserved_bytes exit_allocated_bytes begin_s end_s"),
    "sites": (lambda device: device.peak_sites, "site bytes blocks role phase"),
    "modules": (lambda device: device.modules.rows if device.modules else (),
                "path kind layer bytes blocks"),
    "roles": (lambda device: device.roles_at_peak, "role bytes inferred"),
    "findings": (lambda device: device.findings, "title advice saves_bytes saving cost"),
    "pools": (lambda device: device.pools,
              "id_a id_b reserved_peak_bytes allocated_peak_bytes segments first_site"),
    "instants": (lambda device: device.instants,
                 "kind allocated_bytes reserved_bytes t_s step phase"),
    "ooms": (lambda device: device.ooms,
             "request_bytes fatal device_free_bytes t_s step phase"),
    "explanations": (lambda device: device.explanations,
                     "kind from_bytes to_bytes step other_step phase"),
}


def analyze(
    path: str | os.PathLike[str],
    *,
    all_rows: bool = True,
    policy: str | None = None,
    limit: int | str | None = None,
    max_peak: Mapping[str, int | str] | None = None,
    max_growth: str | None = None,
    fits: int | str | None = None,
    base: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
) -> Report:
    """Analyzes a trace or a snapshot with `memtrace analyze`.

    Without `all_rows`, long tables end early, and a document has at most 1 MB. `policy`, `limit`,
    `max_peak`, `max_growth`, `fits` and `base` are the options of the command with these names.
    `options` are further words of its command line. A rule that fails does not raise: see
    `Report.verdict`. Raises Error with the line of the program if there is no answer."""
    from .documents.analyze import Analyze

    chosen = [*options, *words_of(policy=policy, limit=limit, max_growth=max_growth, fits=fits,
                                  max_peak=max_peak)]
    chosen += [f"--base={program.as_argument(base)}"] if base is not None else []
    document = answer(Analyze.from_json, ["analyze", program.as_argument(path), *chosen,
                                          *(["--all"] if all_rows else [])])
    return Report(path, document, chosen)


def live(path: str | os.PathLike[str], *, at: str = "peak", by: str = "site",
         options: Sequence[str] = ()) -> Live:
    """What is alive at an instant: `memtrace live`."""
    from .documents.live import Live

    return answer(Live.from_json, ["live", program.as_argument(path), f"--at={at}", f"--by={by}",
                                   "--all", *options])
