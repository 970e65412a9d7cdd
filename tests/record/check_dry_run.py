#!/usr/bin/env python3
"""check_dry_run.py BUILD [CASE...]: `memtrace dry-run` on the stand-ins for a GPU: what it answers, how it ends, what
it leaves behind."""
import json
import os
import pathlib
import sys
import time

from support import check, main

KNOWN = ("MEMTRACE_DRY_RUN", "MEMTRACE_SIMULATED_DEVICE", "MEMTRACE_SIMULATED_DEVICES", "MEMTRACE_SIMULATED_MEMORY")


def dry_run(bench, *words, **more):
    return bench.run(bench.memtrace, "dry-run", *words, environment=bench.environment(MEMTRACE_DRY_RUN_SITE="own", **more))


def first_line(done):
    return (done.stdout.decode().splitlines() or [""])[0]


def answer(bench):
    """The trace says what it is, and nobody speaks of its times."""
    done = dry_run(bench, "--device", "rtx-4090", "-o", "d.trace.zst", "--", bench.recorded, "exit", "0")
    check(done.returncode == 0, f"{done}")
    check(first_line(done) == "Dry run on a simulated RTX 4090 24 GB: times and values mean nothing", first_line(done))
    header = bench.info(bench.work / "d.trace.zst")["header"]
    check(header["dry_run"] == {"card": "RTX 4090 24 GB", "devices": 1, "memory_bytes": 25254407700}, f"{header}")
    check(all(event["t_ns"] == 0 for event in bench.events(bench.work / "d.trace.zst")), "there are times")
    again = bench.run(bench.memtrace, "analyze", "d.trace.zst")
    check(again.stdout in done.stdout and again.stdout, "analyze prints something else")
    check(" in 0" not in bench.run(bench.memtrace, "info", "d.trace.zst").stdout.decode(), "info has a time")
    done = bench.run(bench.memtrace, "live", "--at", "3s", "d.trace.zst")
    check(done.returncode == 2 and b"a dry run has no times" in done.stderr, f"{done}")
    bench.check_left("d.trace.zst")


def no_device(bench):
    """A program that used none says so, and keeps no gate."""
    done = dry_run(bench, "--", "sh", "-c", "exit 0")
    check(done.returncode == 0, f"{done}")
    check(done.stdout.decode() == "Dry run on a simulated H200 141 GB: no recorded process used the device\n", f"{done}")
    done = dry_run(bench, "--max-peak", "reserved=1GiB", "--", "sh", "-c", "exit 0")
    check(done.returncode == 1 and b"was not evaluated" in done.stdout, f"{done}")
    done = dry_run(bench, "--json", "--max-peak", "reserved=1GiB", "--", "sh", "-c", "exit 0")
    check(done.returncode == 1 and json.loads(done.stdout)["verdict"] == "not evaluated", f"{done}")
    done = dry_run(bench, "--max-peak", "reserved=1GiB", "--", "sh", "-c", "exit 7")
    check(done.returncode == 7, f"the command's status comes first: {done}")
    bench.check_left()


def environment_of_the_command(bench):
    script = "import json,os;json.dump({k:v for k,v in os.environ.items() if k.startswith('MEMTRACE_')},open('env','w'))"
    done = dry_run(bench, "--limit", "3GiB", "--devices", "2", "-o", "d.trace.zst", "--", sys.executable, "-c", script)
    seen = json.loads((bench.work / "env").read_text())
    check(done.returncode == 0, f"{done}")
    check([seen[name] for name in KNOWN] == ["1", "H200 141 GB", "2", str(3 << 30)], f"{seen}")
    check(not pathlib.Path(seen["MEMTRACE_DRY_RUN_NOTES"]).parent.exists(), "the folder of notes is left")


def status(bench):
    """That of the command, also if it is a signal; its input is its own."""
    done = dry_run(bench, "-o", "d.trace.zst", "--", bench.recorded, "exit", "42")
    check(done.returncode == 42, f"{done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", bench.recorded, "signal", "9")
    check(done.returncode == -9, f"{done}")
    done = bench.run(bench.memtrace, "dry-run", "-q", "--", bench.recorded, "echo", stdin=b"words\n",
                     environment=bench.environment(MEMTRACE_DRY_RUN_SITE="own"))
    check(done.stdout.startswith(b"words\n"), f"{done}")


def gate(bench):
    for limit, code in (("1KiB", 1), ("1GiB", 0)):
        done = dry_run(bench, "--json", "--max-peak", f"allocated={limit}", "-o", "d.trace.zst", "--", bench.recorded,
                       "exit", "0")
        document = json.loads(done.stdout)
        check(done.returncode == code and document["verdict"] == ("fail" if code else "pass"), f"{done}")
    done = dry_run(bench, "--max-peak", "allocated=1KiB", "-o", "d.trace.zst", "--", bench.recorded, "exit", "7")
    check(done.returncode == 7, f"the command's status comes first: {done}")


def json_alone_on_stdout(bench):
    done = dry_run(bench, "--json", "-o", "d.trace.zst", "--", "sh", "-c", f"echo spoken; {bench.recorded} exit 3")
    document = json.loads(done.stdout)
    check(b"spoken" in done.stderr and document["exit_status"] == 3 == done.returncode, f"{done}")
    check([t["path"] for t in document["traces"]] == [str(bench.work / "d.trace.zst")], f"{document}")


def timeout(bench):
    """All of the tree ends, also what ignores TERM and what has a session of its own."""
    script = "trap '' TERM; echo $$ >>pids; (setsid sh -c 'echo $$ >>pids; sleep 50'; sleep 50) & sleep 50; sleep 50"
    began = time.monotonic()
    done = dry_run(bench, "--timeout", "1s", "--", "sh", "-c", script)
    check(done.returncode == 124 and b"did not end in 1s" in done.stderr, f"{done}")
    check(time.monotonic() - began < 20, "it took too long")
    for pid in (bench.work / "pids").read_text().split():
        state = pathlib.Path(f"/proc/{pid}/stat")
        check(not state.exists() or state.read_text().split()[2] == "Z", f"{pid} lives")


def notes(bench):
    """What the Python part counted, over all processes."""
    script = ('for p in 1 2; do echo "{\\"version\\": 1, \\"sizes_from_data\\": 2, \\"answers\\": {\\"condition\\": '
              '{\\"count\\": 3}}}" >$MEMTRACE_DRY_RUN_NOTES.$p; done; ' + bench.recorded + " exit 0")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(first_line(done) == "4 sizes and 6 decisions depended on data that a dry run does not have; peaks may differ",
          f"{done}")
    script = ('echo "{\\"version\\": 1, \\"answers\\": {\\"eager\\": {\\"count\\": 2}}}" >$MEMTRACE_DRY_RUN_NOTES.1; '
              + bench.recorded + " exit 0")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check("asked for 2 times and compiled nothing" in first_line(done), f"{done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", "echo '{' >$MEMTRACE_DRY_RUN_NOTES.1; "
                   f"{bench.recorded} exit 0")
    check("written or read" in first_line(done), f"{done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", "echo $MEMTRACE_DRY_RUN_NOTES >notes; "
                   f"cd ${{MEMTRACE_DRY_RUN_NOTES%/*}} && echo '{{' >.notes.1.half; cd - >&2; {bench.recorded} exit 0")
    check("written or read" not in first_line(done), f"{done}")
    folder = pathlib.Path((bench.work / "notes").read_text().strip()).parent
    check(not folder.exists(), "what a killed process left is still there")
    done = dry_run(bench, "-o", "d.trace.zst", "--", bench.recorded, "exit", "0", TMPDIR=str(bench.work / "none"))
    check("written or read" in first_line(done), f"{done}")


def refusals(bench):
    for words, code, text in ((("--device", "A100", "true"), 2, "A100 80 GB"), (("--device", "H20O", "true"), 2, "H200"),
                              (("--timeout", "soon", "true"), 2, "--timeout"), (("--devices", "9", "true"), 2, "goes up to"),
                              ((), 2, "missing"), (("no-such-command",), 127, "no-such-command")):
        done = dry_run(bench, *words)
        check(done.returncode == code and text in done.stderr.decode(), f"{words}: {done}")
    done = bench.run(bench.memtrace, "dry-run", "--", "no-such-command",
                     environment=dict(bench.environment(), PATH=os.environ["PATH"]))
    check(done.returncode == 127, f"the command comes before its PyTorch: {done}")
    done = bench.run(bench.memtrace, "dry-run", "--", sys.executable, "-S", "-c", "",
                     environment=dict(bench.environment(), PATH=os.environ["PATH"]))
    check(done.returncode in (0, 2), f"{done}")  # with and without a PyTorch in the tests' own Python
    bench.check_left()


if __name__ == "__main__":
    sys.exit(main([answer, no_device, environment_of_the_command, status, gate, json_alone_on_stdout, timeout, notes, refusals]))
