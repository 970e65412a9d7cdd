"""pytest: limits for the GPU memory of a test, and traces of failing tests (docs/ci.md)."""
from __future__ import annotations

import gc
import hashlib
import os
import re
import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from . import device_memory
from .errors import Error, first_line
from .units import bytes_of_text, text_of_bytes

if TYPE_CHECKING:
    from .history import History

# pytest loads this file in every project where memtrace is installed: it imports little, and
# PyTorch never.

LIMIT, LEAK = "limit_gpu_memory", "limit_gpu_leak"
METRICS = ("requested", "allocated")
_NAME_CHARACTERS = 150


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memtrace", "GPU memory")
    group.addoption("--memtrace", action="store_true",
                    help="measure every test, and keep traces of failing tests")
    group.addoption("--memtrace-dir", metavar="DIR", default="memtrace-traces",
                    help="where the traces go (default: memtrace-traces)")
    group.addoption("--memtrace-dry-run", choices=("auto", "always", "never"), default="auto",
                    help="run tests with a limit on a simulated GPU: if there is no GPU (auto), "
                         "always, or never")
    group.addoption("--memtrace-reports", metavar="FILE", help="internal: for dry runs")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{LIMIT}(size, metric='requested'): fail if the peak of GPU memory in the test "
                   f"is more than this above its start")
    config.addinivalue_line(
        "markers", f"{LEAK}(size): fail if the test leaves more than this in GPU memory")
    config.pluginmanager.register(Plugin(config), "memtrace-measure")
    if config.getoption("--memtrace-reports"):
        from .pytest_dry_run import Child

        config.pluginmanager.register(Child(config), "memtrace-child")
    elif _uses_dry_run(config):
        from .pytest_dry_run import Parent

        config.pluginmanager.register(Parent(config), "memtrace-parent")


def _uses_dry_run(config: pytest.Config) -> bool:
    choice = config.getoption("--memtrace-dry-run")
    if choice == "never" or device_memory.is_simulated():
        return False
    return choice == "always" or not device_memory.machine_has_gpu()


class _Limits:
    """The limits of a test, from its marks. Raises pytest.UsageError for a mark that is wrong."""

    def __init__(self, item: pytest.Item) -> None:
        self.metric = "requested"
        self.peak_bytes: int | None = None
        self.leak_bytes: int | None = None
        mark = item.get_closest_marker(LIMIT)
        if mark:
            self.metric = mark.kwargs.get("metric", "requested")
            self.peak_bytes = _size_of(mark, item, {"metric"})
        mark = item.get_closest_marker(LEAK)
        if mark:
            self.leak_bytes = _size_of(mark, item, set())
        if self.metric not in METRICS:
            raise pytest.UsageError(f"{item.nodeid}: the metric of {LIMIT} is 'requested' or "
                                    f"'allocated', not {self.metric!r}")

    def exist(self) -> bool:
        return self.peak_bytes is not None or self.leak_bytes is not None


def _size_of(mark: pytest.Mark, item: pytest.Item, named: set[str]) -> int:
    if len(mark.args) != 1 or set(mark.kwargs) - named:
        raise pytest.UsageError(f"{item.nodeid}: {mark.name} needs one size, such as '2 GiB'")
    try:
        return bytes_of_text(mark.args[0])
    except ValueError as error:
        raise pytest.UsageError(f"{item.nodeid}: {mark.name}: {error}") from None


class Plugin:
    """Measures tests that have a limit, or all tests with --memtrace."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._keeps = bool(config.getoption("--memtrace"))
        self._rows: list[dict[str, Any]] = []
        self._measured: dict[pytest.Item, _Measured] = {}  # tests that have no report yet

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            _Limits(item)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        limits = _Limits(item)
        if not (limits.exist() or self._keeps):
            yield
            return
        measured = _Measured(limits, item, self._config.getoption("--memtrace-dir"), self._keeps)
        self._measured[item] = measured
        outcome = yield
        measured.end()
        # An exception, so that pytest treats it as any other failure: xfail, --pdb, --maxfail.
        if measured.failure and outcome.excinfo is None:
            _fail(outcome, measured.failure)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item,
                                  call: Any) -> Generator[None, Any, None]:
        outcome = yield
        measured = self._measured.pop(item, None) if call.when == "call" else None
        if measured is None:
            return
        # Only the report shows whether the test failed: a unittest.TestCase does not pass on its
        # exception, and skips and expected failures are exceptions as well.
        measured.end_trace(outcome.excinfo is not None or outcome.get_result().failed)
        report = outcome.get_result()
        report.memtrace = measured.row(report.nodeid)
        if measured.answer:
            report.sections.append(("GPU memory", measured.answer))

    def pytest_sessionfinish(self) -> None:
        for measured in self._measured.values():  # Ctrl-C: no report
            measured.end_trace(False)
        self._measured.clear()

    def pytest_runtest_logreport(self, report: Any) -> None:
        row = getattr(report, "memtrace", None)
        if row and not hasattr(self._config, "workerinput"):
            self._rows.append(row)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        rows = [row for row in self._rows if row["has_limit"] or row["peak_bytes"]]
        if not rows:
            return
        terminalreporter.section("GPU memory of tests: peak and rest above the start of the test")
        for line in lines_of(rows):
            terminalreporter.write_line(line)


def _fail(outcome: Any, text: str) -> None:
    error = pytest.fail.Exception(text, pytrace=False)
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(error)
    else:  # pluggy before 1.1
        outcome._result, outcome._excinfo = None, (type(error), error, None)


class _Measured:
    """The memory of one test: the peak of each device above its start, and what the test leaves."""

    def __init__(self, limits: _Limits, item: pytest.Item, folder: str, keeps: bool) -> None:
        self.limits = limits
        self.failure = ""
        self.answer = ""
        self.trace = ""
        self._why_no_trace = ""
        self._keeps = keeps
        self._history: History | None = None
        # Tests and their fixtures change the working directory.
        self._base = os.path.realpath(item.config.invocation_params.dir)
        self._path = os.path.join(self._base, folder, f"{_file_name(item.nodeid)}.trace.zst")
        self._replaced: tuple[int, int, int, int] | None = None
        self._peaks: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self._counters: device_memory.Counters | None = None
        if keeps:
            self._begin()
        try:
            self._counters = device_memory.Counters(limits.metric)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self._cannot_count(error)

    def _begin(self) -> None:
        """Begins PyTorch's history, not a `memtrace.record`: the test may use that itself."""
        from . import output
        from .history import History

        if "torch" not in sys.modules:
            self._why_no_trace = "no trace: PyTorch was not loaded when the test began"
            return
        try:
            self._path = output.check(self._path)
            self._replaced = output.identity(self._path)
            self._history = History()
            self._history.start(None, clear=True)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self._history = None
            self._why_no_trace = f"no trace: {first_line(error)}"

    def _cannot_count(self, error: Exception) -> None:
        """PyTorch's counters fail, for example after an error of the device. A test without a limit
        goes on, and the exception of the test itself is more important."""
        self._counters = None
        if self.limits.exist():
            self.failure = f"GPU memory could not be measured: {first_line(error)}"

    def end(self) -> None:
        if self._counters is None:
            return
        try:
            self._measure(self._counters)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self._cannot_count(error)

    def _measure(self, counters: device_memory.Counters) -> None:
        reason = device_memory.why_not_counted(self.limits.metric)
        if reason:
            self.failure = reason if self.limits.exist() else ""
            return
        self._peaks = counters.peaks()
        if self.limits.leak_bytes is not None:
            gc.collect()
        self._left = counters.left()
        self.failure = self._judge()
        if self.failure and not self._keeps:
            self.failure += "\nTo see what holds it, run pytest with --memtrace."

    def _judge(self) -> str:
        peak, left = self.limits.peak_bytes, self.limits.leak_bytes
        lines = [
            f"GPU memory: {text_of_bytes(found)} ({found} B) {self.limits.metric} at the peak of "
            f"device {device}, more than the limit of {text_of_bytes(peak)}"
            for device, found in self._peaks.items() if peak is not None and found > peak
        ] + [
            f"GPU memory: the test left {text_of_bytes(found)} ({found} B) {self.limits.metric} on "
            f"device {device}, more than the limit of {text_of_bytes(left)}"
            for device, found in self._left.items() if left is not None and found > left
        ]
        return "\n".join(lines)

    def end_trace(self, is_kept: bool) -> None:
        """Ends the history, after a test that failed with a trace."""
        from .ranges import restart_steps

        history, self._history = self._history, None
        if history is None:
            self.answer = self._why_no_trace if is_kept else ""
            return
        try:
            if is_kept:
                self._write(history)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.answer = f"no trace: {first_line(error)}"
        finally:
            history.stop()
            restart_steps()
        if self.trace:
            self.answer = self._answer()

    def _write(self, history: History) -> None:
        from . import output

        unfinished = output.unfinished(self._path)
        history.write_trace(unfinished)
        self.trace = output.publish(unfinished, self._path, self._replaced)

    def _answer(self) -> str:
        """What is alive at the peak or, after a leak, at the end; without a limit that failed, the
        first lines of the analysis."""
        from .program import first_lines

        words = ["analyze", self.trace]
        if self.failure:
            has_peak = any(size > (self.limits.peak_bytes or 0) for size in self._peaks.values())
            is_leak = self.limits.peak_bytes is None or not has_peak
            words = ["live", self.trace, f"--at={'end' if is_leak else 'peak'}"]
        return first_lines(words)

    def row(self, nodeid: str) -> dict[str, Any]:
        """What the summary shows, as plain values: it may cross processes."""
        return {
            "test": nodeid,
            "metric": self.limits.metric,
            "peak_bytes": max(self._peaks.values(), default=0),
            "left_bytes": max(self._left.values(), default=0),
            "limit_bytes": self.limits.peak_bytes,
            "has_limit": self.limits.exist(),
            "is_simulated": device_memory.is_simulated(),
            "trace": self._shown_path(),
        }

    def _shown_path(self) -> str:
        start = os.path.join(self._base, "")
        return self.trace[len(start):] if self.trace.startswith(start) else self.trace


# Two such tests have different names when separators and brackets are "-".
_PLAIN = re.compile(r"[\w./]+(::\w+)+(\[[\w.=-]*\w\])?", re.ASCII)


def _file_name(nodeid: str) -> str:
    """A name that no other test has: otherwise one trace would replace another one."""
    name = re.sub(r"[^A-Za-z0-9._=-]+", "-", nodeid).strip("-.")
    if _PLAIN.fullmatch(nodeid) and "[-" not in nodeid and len(name) <= _NAME_CHARACTERS:
        return name
    digest = hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{name[-_NAME_CHARACTERS:].lstrip('-.')}-{digest}"


def lines_of(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One line for each test, and one for its trace."""
    for row in rows:
        limit = row["limit_bytes"]
        words = [f"{text_of_bytes(row['peak_bytes']):>9} {row['metric']}"]
        words += [f"limit {text_of_bytes(limit)}"] if limit is not None else []
        words += [f"{text_of_bytes(row['left_bytes'])} left"] if row["left_bytes"] > 0 else []
        words += ["simulated"] if row["is_simulated"] else []
        yield f"{', '.join(words)}: {row['test']}"
        if row["trace"]:
            yield f"{'':9} {row['trace']}"
