#!/usr/bin/env python3
"""check_packages.py VENV TEST PACKAGE...: runs the file TEST with the packages, in an environment that is made if it is
missing. Exits with 77 if they cannot be installed. What the many processes of a test import is compiled once, in VENV."""
import os
import pathlib
import subprocess
import sys

from venv_packages import SKIPPED, install

HERE = pathlib.Path(__file__).resolve().parent


def main(venv, test, *packages):
    reason = install(pathlib.Path(venv), packages)
    if reason is not None:
        print(f"skipped: the packages cannot be installed: {reason}")
        return SKIPPED
    variables = {**os.environ, "PYTHONPYCACHEPREFIX": str(pathlib.Path(venv, "compiled").resolve())}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run([pathlib.Path(venv) / "bin" / "python", HERE / test], check=False, env=variables).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
