#!/usr/bin/env python3
"""check_ladder.py BUILD [CASE...]: what becomes of the driver's events where CUPTI
is missing, too new, taken, or not wanted."""
import json
import re
import sys

from support import check, main, only


def record(bench, **environment):
    """(what memtrace said, the trace's sources); the program must be itself."""
    done = bench.record(bench.recorded, "exit", "3", environment=bench.environment(**environment))
    check(done.returncode == 3 and not done.stdout, f"{environment}: {done}")
    trace = only(bench.traces())
    header = bench.info(trace)["header"]
    bench.trace = trace
    said = re.sub("^memtrace: next: .*\n", "", done.stderr.decode(), flags=re.MULTILINE)
    return said, (header["sources"] or "").split(",")


def check_substitute(bench, words, **environment):
    said, sources = record(bench, **environment)
    check("interposer" in sources and "cupti" not in sources, f"{environment}: {sources}: {said}")
    bench.check_whole(bench.trace)
    for word in words:
        check(word in said, f"{environment}: '{word}' is not said: {said}")
    check("no driver events" not in said, f"{environment}: {said}")


def cupti_fits(bench):
    said, sources = record(bench)
    check("cupti" in sources and "interposer" not in sources and said.count("\n") == 1,
          f"{sources}: {said}")
    bench.check_whole(bench.trace)


def cupti_is_not_wanted(bench):
    """And no message is printed."""
    check_substitute(bench, [], MEMTRACE_CUPTI="none")
    said, _ = record(bench, MEMTRACE_CUPTI="none")
    check(said.count("\n") == 1, said)


def cupti_is_missing(bench):
    check_substitute(bench, ["no libcupti found", "wrapped instead"],
                     MEMTRACE_CUPTI="/nowhere/libcupti.so.13")


def cupti_is_too_new(bench):
    """Newer than the driver: tried. It may work all the same."""
    newer = {"MEMTRACE_SIMULATED_CUPTI_VERSION": "140000"}
    check_substitute(bench, ["newer than the driver"], MEMTRACE_SIMULATED_CUPTI_ERROR="15", **newer)
    said, sources = record(bench, **newer)
    check("cupti" in sources and said.count("\n") == 1, f"{sources}: {said}")


def cupti_is_taken(bench):
    """By another injected tool."""
    check_substitute(bench, ["Nsight uses CUPTI"], MEMTRACE_SIMULATED_CUPTI_HOLDER="Nsight",
                     CUDA_INJECTION64_PATH="/nowhere/libother.so")


def cupti_fails_later(bench):
    """Nobody could know: one line, and the program is itself."""
    said, sources = record(bench, MEMTRACE_SIMULATED_CUPTI_HOLDER="Nsight")
    check("cupti" not in sources and "no driver events" in said and "Nsight" in said
          and "MEMTRACE_CUPTI=none" in said, f"{sources}: {said}")
    check("not recorded: no driver events" in said, f"the last lines say nothing: {said}")
    missing = bench.info(bench.trace)["header"]["not_recorded"]
    check(missing.startswith("no driver events") and "Nsight" in missing, missing)


def what_could_not_start_makes_it_incomplete(bench):
    def run(*options, **environment):
        done = bench.run(bench.memtrace, "record", "-o", "run.trace.zst", *options,
                         bench.recorded, "exit", "0", environment=bench.environment(**environment))
        return done, json.loads(done.stderr.decode().splitlines()[-1]) if "--json" in options else {}

    done, said = run("--json", "--strict", MEMTRACE_SIMULATED_CUPTI_HOLDER="Nsight")
    trace = only(said["traces"])
    check(done.returncode == 5 and not trace["complete"] and trace["state"] == "whole", f"{done}")
    check("Nsight" in only(trace["not_recorded"]) and trace["events_dropped"] == 0, f"{trace}")
    done, said = run("--json", "--strict")
    trace = only(said["traces"])
    check(done.returncode == 0 and trace["complete"] and not trace["not_recorded"], f"{done}")


def a_process_that_dies_at_once_says_what_recorded_it(bench):
    """Facts precede the first event; only then nothing can be killed in between."""
    for source, environment in (("cupti", {}), ("interposer", {"MEMTRACE_CUPTI": "none"})):
        bench.record(bench.recorded, "signal", "9", environment=bench.environment(**environment))
        header = bench.info(only(bench.traces()))["header"]
        check(header["sources"] == source and "driver_calls" in header, f"{header}")


if __name__ == "__main__":
    sys.exit(main([cupti_fits, cupti_is_not_wanted, cupti_is_missing, cupti_is_too_new,
                   cupti_is_taken, cupti_fails_later, what_could_not_start_makes_it_incomplete,
                   a_process_that_dies_at_once_says_what_recorded_it]))
