#!/usr/bin/env python3
"""check_timing.py BUILD [--all]: the peaks of a rank do not depend on how long anything takes, and the answer gives both ends
of what depends on time on a GPU. Runs timed_job.py with a real PyTorch; exits with 77 if that cannot be had. --all also runs
the kinds that take half of the time and differ least: a program that does not end its group, and FSDP2."""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "support"))
import check_real_wheel as wheel  # noqa: E402  pylint: disable=wrong-import-position
from program import fast_program  # noqa: E402  pylint: disable=wrong-import-position

LIMIT_SECONDS = 900
PAUSE_SECONDS = "0.25"  # more than twice what the watchdog sleeps


def rank_0(build, python, kind, pause):
    """What the answer has about rank 0 of timed_job.py."""
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run([fast_program(build / "memtrace"), "dry-run", "--quiet", "--json", "--ranks", "0", "--world", "2", "--",
                               python, "-B", HERE / "timed_job.py", kind, pause], cwd=work, timeout=LIMIT_SECONDS,
                              capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{kind}: exit status {done.returncode}\n{done.stderr}")
    run = json.loads(done.stdout)["runs"][0]
    late = run["allocated_peak_bytes"], run["reserved_peak_bytes"]
    early = next((again for again in run["assumed"]["runs"] if again["assumption"] == "early"), None)
    early = (early["allocated_peak_bytes"], early["reserved_peak_bytes"]) if early else (None, None)
    return late, early, run["depended_on_timing"]["collectives"]


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def main(build, is_all):
    if wheel.allowed_mib() == 0:
        raise wheel.Skip("MEMTRACE_TEST_WHEEL_MIB is 0")
    python = wheel.python_with_torch()
    wheel.check_is_for_cuda(python)
    quick = rank_0(build, python, "ddp", "0")
    slow = rank_0(build, python, "ddp", PAUSE_SECONDS)
    check(quick == slow, "ddp:", quick, "without pauses,", slow, "with pauses")
    late, early, collectives = quick
    check(collectives and None not in early, "ddp:", collectives, "collectives depend on timing, early peaks", early)
    gradients = 8 * (1024 + 1) * 1024 * 4
    check(late[0] - early[0] == gradients, "ddp: old buckets of", late[0] - early[0], "B, not", gradients)
    check(late[1] > early[1], "ddp: reserved", late[1], "late,", early[1], "early")
    if is_all:
        check(rank_0(build, python, "open", "0") == quick, "open differs from ddp")
    for kind in ("waits", "fsdp") if is_all else ("waits",):
        _, early, collectives = rank_0(build, python, kind, "0")
        check(not collectives and early == (None, None), kind + ":", collectives, "collectives depend on timing")


if __name__ == "__main__":
    try:
        main(pathlib.Path(sys.argv[1]).resolve(), "--all" in sys.argv[2:])
    except wheel.Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
