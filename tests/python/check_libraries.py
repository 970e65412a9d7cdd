#!/usr/bin/env python3
"""check_libraries.py BUILD plugin|exceptions|callbacks|ipython: the cases of that name with real libraries, on a
simulated GPU. Exits with 77 if the libraries cannot be had; tests/real_wheel installs them."""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent / "python"
sys.path.insert(0, str(HERE.parent / "real_wheel"))
sys.path.insert(0, str(HERE.parent / "support"))
import check_real_wheel as wheel  # noqa: E402  pylint: disable=wrong-import-position
from program import fast_program  # noqa: E402  pylint: disable=wrong-import-position
import python_libraries  # noqa: E402  pylint: disable=wrong-import-position

LIMIT_SECONDS = 1500
CASES = {"plugin": "plugin_cases.py", "exceptions": "plugin_exceptions.py",
         "callbacks": "callback_cases.py", "ipython": "ipython_cases.py"}


def words_of(name, program, python):
    """The command, and what its output must have."""
    if CASES[name].startswith("plugin"):  # pytest, which starts dry runs itself
        return [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                HERE / CASES[name]], " passed"
    return [program, "dry-run", "--quiet", "-o", "cases/", "--", python, "-B",
            HERE / CASES[name]], "\nOK"


def main(build, name):
    if wheel.allowed_mib() == 0:
        raise wheel.Skip("MEMTRACE_TEST_WHEEL_MIB is 0")
    program = fast_program(build / "memtrace")
    words, ending = words_of(name, program, python_libraries.python_with_libraries())
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(words, cwd=work, timeout=LIMIT_SECONDS, capture_output=True, text=True,
                              check=False, env={**os.environ, "PYTHONPATH": str(PACKAGE), "IPYTHONDIR": work,
                                                "MEMTRACE_PROGRAM": str(program)})
    output = done.stdout + done.stderr
    if done.returncode not in (0, 1) or ending not in output or "FAILED" in output \
            or "Ran 0 tests" in output:
        print(output)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]))
    except wheel.Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
