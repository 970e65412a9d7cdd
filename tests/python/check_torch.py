#!/usr/bin/env python3
"""check_torch.py BUILD NAMES: the files torch_NAMES.py (a pattern) with a real PyTorch, in a dry run.
Exits with 77 if that PyTorch cannot be had; tests/real_wheel installs it."""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_wheel"))
sys.path.insert(0, str(HERE.parent / "support"))
import check_real_wheel as wheel  # noqa: E402  pylint: disable=wrong-import-position
from program import fast_program  # noqa: E402  pylint: disable=wrong-import-position

LIMIT_SECONDS = 1500


def main(build, names):
    if wheel.allowed_mib() == 0:
        raise wheel.Skip("MEMTRACE_TEST_WHEEL_MIB is 0")
    python = wheel.python_with_torch()
    wheel.check_is_for_cuda(python)
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run([fast_program(build / "memtrace"), "dry-run", "--quiet", "-o", "cases.trace.zst", "--",
                               python, "-B", "-m", "unittest", "discover", "-s", HERE, "-p", f"torch_{names}.py"],
                              cwd=work, timeout=LIMIT_SECONDS,
                              capture_output=True, text=True, check=False)
    if done.returncode or "\nOK" not in done.stderr:
        print(done.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]))
    except wheel.Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
