#!/usr/bin/env python3
"""check_types.py VENV: mypy --strict over the package and a program that uses it, for the oldest and the
newest Python. VENV is made if it is missing. Exits with 77 if mypy cannot be installed."""
import pathlib
import re
import sys

from venv_packages import SKIPPED, install, quiet

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "python"
PACKAGES = ("mypy", "pytest", "pandas-stubs")  # the package has a plugin for pytest
USE = """
import memtrace
report = memtrace.analyze("run.trace.zst")
reveal_type(report.steps)
reveal_type(report.live())
reveal_type(report.to_frame("ooms"))
reveal_type(report.card)
reveal_type(report.held_by)
reveal_type(report.text())
reveal_type(report.advice[0].saves_bytes)
"""
KINDS = ["DataFrame"] * 3 + ["Card | None", "dict[str, int]", "str", "int | None"]


def main():
    venv = pathlib.Path(sys.argv[1])
    reason = install(venv, PACKAGES)
    if reason is not None:
        print(f"skipped: mypy cannot be installed: {reason}")
        return SKIPPED
    mypy = [venv / "bin" / "python", "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml",
            "--cache-dir", venv / "mypy"]
    failed = 0
    # mypy checks the syntax and the library of versions that it supports; since 2.0 these begin
    # with 3.10. The other tests run the package with the Python of the system.
    for version in ("3.10", "3.14"):
        done = quiet(*mypy, "--python-version", version, PACKAGE / "memtrace")
        print(f"Python {version}: {done.stdout}{done.stderr}", end="")
        failed |= done.returncode
    # With what mypy has cached for the newest version.
    done = quiet(*mypy, "--python-version", version, "-c", USE, MYPYPATH=str(PACKAGE))
    kinds = [re.sub(r"[\w.]+\.", "", kind) for kind in re.findall('note: Revealed type is "(.*)"', done.stdout)]
    if kinds != KINDS:
        print(f"types of a report: {kinds} instead of {KINDS}\n{done.stdout}{done.stderr}")
        failed = 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
