"""pytest without a GPU: tests with a limit run in one other process, on a simulated GPU, and their
reports are shown as if they had run in this one."""
from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from typing import Any

import pytest

from . import program
from .errors import Error
from .pytest_plugin import LEAK, LIMIT

_ONLY = "MEMTRACE_PYTEST_ONLY"
_SHARED = "memtrace_folder"  # what pytest-xdist passes to its workers
_NOTE = ("the test ran on a simulated GPU: kernels compute nothing, so values are meaningless. "
         "Separate what a test computes from how much memory it takes, or use "
         "--memtrace-dry-run=never")
_LAST_LINES = 20


def _has_limit(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in (LIMIT, LEAK))


# Options that the parent serves: the child would write the same file, empty the same folder, wait
# for a debugger's input, start workers, or stop before the tests that the parent waits for.
_OF_THE_PARENT: dict[str, Any] = {
    "xmlpath": None, "htmlpath": None, "report_log": None, "json_report_file": None,
    "allure_report_dir": None, "basetemp": None, "usepdb": False, "trace": False, "maxfail": 0,
    "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "stepwise_skip": False,
    "dist": "no", "tx": [], "numprocesses": None,
}
_CACHES = ("lfplugin", "nfplugin", "stepwiseplugin")


class Child:
    """In the simulated process: runs only the tests that the parent names, and writes reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._path = config.getoption("--memtrace-reports")
        for name, value in _OF_THE_PARENT.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    def pytest_sessionstart(self) -> None:
        manager = self._config.pluginmanager
        for name in _CACHES:
            if manager.get_plugin(name) is not None:
                manager.unregister(name=name)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        with open(os.environ[_ONLY], encoding="utf-8") as file:
            place = {nodeid: index for index, nodeid in enumerate(json.load(file))}
        items[:] = sorted((item for item in items if item.nodeid in place),
                          key=lambda item: place[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(data, default=str) + "\n")


class Parent:
    """In the process without a GPU: replays the reports of the other process. Workers of pytest-xdist
    share one run: the first that comes to a test with a limit makes it, and the others wait."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._names: dict[pytest.Item, str] = {}
        self._reports: dict[str, list[Any]] | None = None
        self._failure = ""
        self._shared: tempfile.TemporaryDirectory[str] | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """In the process that starts workers: one folder for all of them."""
        self._shared = self._shared or tempfile.TemporaryDirectory(prefix="memtrace-")
        node.workerinput[_SHARED] = self._shared.name

    def pytest_unconfigure(self) -> None:
        if self._shared is not None:
            self._shared.cleanup()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, Any, None]:
        # In its workers, pytest-xdist appends groups to the names; the other process has no groups.
        # The hash of an item changes with its name, so the first mapping needs id().
        names = {id(item): item.nodeid for item in items}
        yield
        self._names = {item: names.get(id(item), item.nodeid) for item in items
                       if _has_limit(item)}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item,
                                nextitem: pytest.Item | None) -> bool | None:
        if not _has_limit(item):
            return None
        if self._reports is None:
            self._reports = self._run()
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports.get(self._names[item]) or [self._not_run(item)]:
            report.nodeid = item.nodeid
            if report.failed and report.when == "call":
                report.sections.append(("dry run", _NOTE))
            item.ihook.pytest_runtest_logreport(report=report)
        self._end_fixtures(item, nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @staticmethod
    def _end_fixtures(item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Ends the fixtures of earlier tests that pytest left for this one. Otherwise it would
        refuse to start a test of the next module. The hook for this cannot be used: other
        plugins expect that the test was set up."""
        call = pytest.CallInfo.from_call(
            lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown",
            reraise=(KeyboardInterrupt, pytest.exit.Exception))
        if call.excinfo is not None:
            report = pytest.TestReport.from_item_and_call(item, call)
            item.ihook.pytest_runtest_logreport(report=report)

    def _not_run(self, item: pytest.Item) -> pytest.TestReport:
        return pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed",
            longrepr=f"the test did not run on a simulated GPU: {self._failure}", when="call")

    def _run(self) -> dict[str, list[Any]]:
        """Runs all tests with a limit. Returns their reports by the name of the test."""
        try:
            return self._run_shared()
        except OSError as error:  # a full disk, no memory for a process
            self._failure = str(error)
            return {}

    def _run_shared(self) -> dict[str, list[Any]]:
        shared = getattr(self._config, "workerinput", {}).get(_SHARED)
        if shared and os.path.isdir(shared):  # a worker on another machine does not have it
            with open(os.path.join(shared, "lock"), "w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return self._run_once(shared)
        with tempfile.TemporaryDirectory(prefix="memtrace-") as folder:
            return self._run_once(folder)

    def _run_once(self, folder: str) -> dict[str, list[Any]]:
        reports, ending = os.path.join(folder, "reports.jsonl"), os.path.join(folder, "ending")
        if not os.path.exists(ending):
            text = self._run_in(folder, reports)
            with open(ending, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        with open(ending, encoding="utf-8") as file:
            self._failure = file.read()
        return self._read(reports)

    def _run_in(self, folder: str, reports: str) -> str:
        """Runs the other process. Returns how it ended, as a reason for tests that did not run."""
        only = os.path.join(folder, "only.json")
        with open(only, "w", encoding="utf-8") as file:
            json.dump(list(self._names.values()), file)
        with open(reports, "w", encoding="utf-8"):
            pass  # a worker that died may have left some
        try:
            words = [program.find(), "dry-run", "--quiet", "-o", os.path.join(folder, "traces", ""),
                     "--", sys.executable, "-m", "pytest", f"--memtrace-reports={reports}",
                     *self._config.invocation_params.args]
        except Error as error:
            return str(error)
        with subprocess.Popen(words, cwd=self._config.invocation_params.dir,
                              env={**os.environ, _ONLY: only}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace") as process:
            try:
                printed = "".join(process.communicate())
            except BaseException:  # Ctrl-C: killed, it would leave its tests running
                process.terminate()
                raise
        return "\n".join([f"pytest ended there with status {process.returncode}",
                          *printed.splitlines()[-_LAST_LINES:]])

    def _read(self, path: str) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):  # the process died, or the disk is full
                    break
                report = self._config.hook.pytest_report_from_serializable(
                    config=self._config, data=json.loads(line))
                if isinstance(report.longrepr, list):  # a skip's place: JSON has no tuples
                    report.longrepr = tuple(report.longrepr)
                found.setdefault(report.nodeid, []).append(report)
        return found
