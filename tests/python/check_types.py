#!/usr/bin/env python3
"""check_types.py VENV: mypy --strict over the package, for the oldest and the newest Python. VENV is
made if it is missing. Exits with 77 if mypy cannot be installed."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "python"
PACKAGES = ("mypy", "pytest")  # the package has a plugin for pytest
SKIPPED = 77


def quiet(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def install(venv):
    python = venv / "bin" / "python"
    if python.exists() and quiet(python, "-c", "import mypy, pytest").returncode == 0:
        return None
    for words in ([sys.executable, "-m", "venv", venv],
                  [python, "-m", "pip", "install", "--quiet", "--timeout=20", *PACKAGES]):
        done = quiet(*words)
        if done.returncode:
            return (done.stderr or done.stdout).strip().splitlines()[-1:]
    return None


def main():
    venv = pathlib.Path(sys.argv[1])
    reason = install(venv)
    if reason is not None:
        print(f"skipped: mypy cannot be installed: {''.join(reason)}")
        return SKIPPED
    failed = 0
    # mypy checks the syntax and the library of versions that it supports; since 2.0 these begin
    # with 3.10. The other tests run the package with the Python of the system.
    for version in ("3.10", "3.14"):
        done = quiet(venv / "bin" / "python", "-m", "mypy", "--strict", "--python-version", version,
                     "--config-file", ROOT / "pyproject.toml", "--cache-dir", venv / "mypy", PACKAGE / "memtrace")
        print(f"Python {version}: {done.stdout}{done.stderr}", end="")
        failed |= done.returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
