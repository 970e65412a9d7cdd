#!/usr/bin/env python3
"""check_counts.py BUILD [CASE...]: what a process counted is in its trace, or `record` and
`recover` say how much is missing and why."""
import json
import struct
import sys

import tapes
from support import check, main

NAME = "run.trace.zst"


def document(done):
    return json.loads(done.stderr.splitlines()[-1])["traces"][0]


def nothing_missing(bench):
    """Every ordinary end."""
    for way in (("exit", "0"), ("quick", "0"), ("signal", "9")):
        done = bench.run(bench.memtrace, "record", "--json", "-o", NAME, bench.recorded, *way)
        trace = document(done)
        check(trace["complete"] and trace["events_dropped"] == 0 and trace["dropped"] == [],
              f"{way}: {trace}")
        check(trace["state"] == ("whole" if way[0] == "exit" else "recovered"), f"{way}: {trace}")
        (bench.work / NAME).unlink()


def dropped_by_the_process(bench):
    """The tape says that events were dropped: the trace, text, JSON and status say so."""
    _, tape = tapes.leave(bench)
    tapes.change(tape, tapes.DROPPED, struct.pack("<Q", 7))
    kept = tapes.bytes_of(bench.work / NAME, tape)
    done = bench.run(bench.memtrace, "recover", "--strict", NAME)
    check(done.returncode == 5 and b"7 events lost: " in done.stdout, f"{done}")
    check(b"nothing lost" not in done.stdout, f"it contradicts itself: {done.stdout}")
    for path, data in zip((bench.work / NAME, tape), kept):
        path.write_bytes(data)
    done = bench.run(bench.memtrace, "recover", "--json", NAME)
    trace = json.loads(done.stdout)["traces"][0]
    check(done.returncode == 0 and not trace["complete"] and trace["events_dropped"] == 7 and
          sum(one["events"] for one in trace["dropped"]) == 7, f"{trace}")
    info = bench.info(bench.work / NAME)
    check(info["integrity"]["events_dropped"] == 7, f"{info['integrity']}")
    check(b"7 events were dropped" in bench.run(bench.memtrace, "info", NAME).stdout, "info")


def taken_and_never_written(bench):
    """Numbers that were taken when the process died, and nothing behind them."""
    _, tape = tapes.leave(bench)
    with open(tape, "rb") as file:
        next_seq = struct.unpack_from("<Q", file.read(4096), tapes.NEXT_SEQ)[0]
    tapes.change(tape, tapes.NEXT_SEQ, struct.pack("<Q", next_seq + 3))
    done = bench.run(bench.memtrace, "recover", NAME)
    check(done.returncode == 0 and b"3 events lost: the process ended" in done.stdout, f"{done}")


def without_a_tape(bench):
    """The program removes the tape of a process that was killed: nobody takes what is
    left for a whole trace."""
    (bench.work / "flag").touch()
    script = f"'{bench.recorded}' wait flag & sleep 0.5; kill -9 $!; wait; rm {NAME}.tape; exit 0"
    done = bench.record("sh", "-c", script)
    check(done.returncode == 0 and b"end is missing" in done.stderr, f"{done}")
    done = bench.run(bench.memtrace, "record", "--strict", "--json", "-o", NAME, "sh", "-c", script)
    trace = document(done)
    check(done.returncode == 5 and trace["state"] == "incomplete" and not trace["complete"],
          f"{done}")
    done = bench.run(bench.memtrace, "recover", NAME)
    check(done.returncode == 3 and b"end is missing" in done.stderr, f"{done}")


def no_contradiction(bench):
    """A process that cannot be recorded says so; `record` does not say that there was none."""
    if bench.preload:
        return  # ThreadSanitizer writes a file when it starts
    done = bench.record("sh", "-c", f"ulimit -f 0; '{bench.recorded}' exit 0")
    lines = done.stderr.splitlines()
    check(any(b"nothing is recorded" in line for line in lines), f"{done}")
    check(not any(b"there is nothing to record" in line for line in lines), f"{done}")


if __name__ == "__main__":
    sys.exit(main([nothing_missing, dropped_by_the_process, taken_and_never_written,
                   without_a_tape, no_contradiction]))
