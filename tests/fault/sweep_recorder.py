#!/usr/bin/env python3
"""Runs programs under `memtrace record` while allocations fail (options: sweep.py).

In most commands the allocations of libmemtrace-inject.so in the traced program fail, those that it
makes itself or through what it calls; in the commands "record ..." those of `memtrace record`. Every
one fails alone, and with all that follow, until a number is not reached any more.

A run is right if it ends within the time limit, no signal ends what it does not end without memtrace,
the traced program's output and exit status are those without memtrace, and
  - the trace is whole and has every event, or counts in itself those that it lacks, which `record`
    tells; or
  - the trace is whole, does not name the source that it lacks, and one line says why.
`memtrace record` that lacks memory may also
  - start nothing, with a status that is not 0 and a message, and leave no trace; or
  - leave the trace as the process left it, and say so.
With --redact a trace is redacted, or one line says that it is not. The report of `record` names every
trace, or one line says that memory ran out.

Allocations that libdw makes in `memtrace record` do not fail: docs/internals/robustness.md says why."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import namedtuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "record"))
from support import Bench, check  # noqa: E402
from sweep import (HALF_FILE, OTHER, OTHER_ANSWER, SIGNAL, TIME_OUT, Summary, Verdict, choose, options,  # noqa: E402
                   right, run_all)

SAMPLE = 4  # of a sample: the first ones of each kind, then the distance doubles
TIMES = ("memory_sample",)  # events that come by the clock
RECORD = ("record", "--no-summary", "--stacks", "both", "-o", "run.trace.zst")

# name -> (options of record, arguments of tests/recorded, whose allocations fail)
LIBRARY, PROGRAM = "libmemtrace-inject.so", None
COMMANDS = {
    "exit": ((), ("exit", "42"), LIBRARY),
    "threads": ((), ("threads", "4"), LIBRARY),
    "signal": ((), ("signal", "9"), LIBRARY),
    "fork": ((), ("fork",), LIBRARY),
    "forkexec": ((), ("forkexec",), LIBRARY),
    "redact": (("--redact",), ("exit", "42"), LIBRARY),
    "record": ((), ("exit", "42"), PROGRAM),
    "record redact": (("--redact",), ("exit", "42"), PROGRAM),
    "record json": (("--json",), ("exit", "42"), PROGRAM),
}

Result = namedtuple("Result", "status out said traces left was_reached")
Trace = namedtuple("Trace", "is_whole kept lost sources is_redacted")


def trace_of(bench, path):
    """A trace that cannot be read has no events."""
    try:
        facts = bench.info(path)
        events = bench.events(path, heap=None)
    except Exception:  # pylint: disable=broad-except
        return Trace(False, 0, 0, "", False)
    integrity, header = facts["integrity"], facts["header"]
    is_whole = integrity["closed"] and not integrity["cut"] and not integrity["frames_damaged"] \
        and not integrity["events_invalid"]
    lost = sum(event["size"] for event in events if event["kind"] == "dropped")
    kept = sum(event["kind"] not in ("end", "dropped", *TIMES) for event in events)
    return Trace(bool(is_whole), kept, lost, header["sources"] or "",
                 bool(re.fullmatch("redacted-host-[0-9a-f]{12}", header["host"] or "")))


class Sweep:
    def __init__(self, arguments, command):
        self.arguments, self.program = arguments, arguments.program
        self.flags, self.way, self.place = command
        self.bare = self.run_bare()
        self.base = self.run()
        check((self.base.status, self.base.out) == self.bare
              and self.base.traces
              and all(trace.is_whole and not trace.lost for trace in self.base.traces),
              f"undisturbed: {self.base}, without memtrace: {self.bare}")

    def run_bare(self):
        with tempfile.TemporaryDirectory() as work:
            bench = Bench(self.program.parent, work)
            done = bench.run(bench.recorded, *self.way)
            return done.returncode, done.stdout

    def environment(self, bench, number, from_there_on):
        more = {"LD_PRELOAD": str(self.arguments.alloc_shim), "FAIL_ALLOC": str(number),
                "FAIL_ALLOC_LOG": str(bench.work / "log"), "FAIL_ALLOC_PROGRAM": str(self.program)}
        if not self.place:
            more["FAIL_ALLOC_NOT_IN"] = "libdw"  # docs/internals/robustness.md says why
        else:
            more.update(FAIL_ALLOC_PROGRAM="tests/recorded", FAIL_ALLOC_IN=self.place)
        if from_there_on:
            more["FAIL_ALLOC_FROM"] = "1"
        return bench.environment(**more)

    def run(self, number=0, from_there_on=False):
        with tempfile.TemporaryDirectory() as work:
            bench = Bench(self.program.parent, work)
            environment = self.environment(bench, number, from_there_on) if number else None
            try:
                done = bench.run(bench.memtrace, *RECORD, *self.flags, "--", bench.recorded, *self.way,
                                 environment=environment)
            except subprocess.TimeoutExpired:
                return Result(None, b"", b"", [], [], True)
            log = bench.work / "log"
            was_reached = log.exists() and b"failed" in log.read_bytes()
            traces = [trace_of(bench, path) for path in bench.traces()]
            left = [path.name for path in bench.work.iterdir()
                    if path.name != "log" and not path.name.endswith(".trace.zst")]
            return Result(done.returncode, done.stdout, done.stderr, traces, left, was_reached)

    def judge(self, result):
        if result.status is None:
            return Verdict("time-out", TIME_OUT)
        if result.status < 0 and result.status != self.bare[0]:
            return Verdict(f"signal {-result.status}", SIGNAL)
        is_itself = (result.status, result.out) == self.bare
        if not is_itself and not self.is_refusal(result):
            if result.status > 128:
                return Verdict(f"a signal ends the program, status {result.status}", SIGNAL)
            return Verdict(f"status {result.status}, the program is not itself", OTHER_ANSWER
                           if result.status == 0 else OTHER)
        if is_itself and not self.is_reported(result):
            return Verdict("the report lacks a trace, and nothing is said", OTHER)
        return self.judge_traces(result) if is_itself else right("nothing is started")

    def is_reported(self, result):
        """The report of `record` has a line, or a member of its document, for every trace."""
        if self.place or b"memory" in result.said:
            return True
        if "--json" not in self.flags:
            return result.said.count(b".trace.zst: ") >= len(result.traces)
        try:
            return len(json.loads(result.said)["traces"]) == len(result.traces)
        except ValueError:
            return False

    def is_refusal(self, result):
        return (not self.place and result.status > 0 and not result.out and not result.traces
                and not result.left and b"memory" in result.said)

    def judge_traces(self, result):
        says_unfinished = not self.place and any(words in result.said for words in (
            b"memory", b"cannot be completed", b"stays as it is"))
        if not all(trace.is_whole for trace in result.traces):
            return right("unfinished, as said") if says_unfinished else \
                Verdict("a trace is not whole", HALF_FILE)
        if result.left and not says_unfinished:
            return Verdict(f"left {re.sub('-?[0-9A-Za-z]{6,}$', '*', result.left[0])}", HALF_FILE)
        if "--redact" in self.flags and not all(trace.is_redacted for trace in result.traces):
            if b"redact" not in result.said:
                return Verdict("a trace is not redacted, and nothing is said", OTHER)
        return self.judge_events(result)

    def judge_events(self, result):
        wanted, kept, lost = (sum(numbers) for numbers in (
            (trace.kept for trace in self.base.traces), (trace.kept for trace in result.traces),
            (trace.lost for trace in result.traces)))
        if lost and b"lost" not in result.said:
            return Verdict("events are lost, and nothing is said", OTHER)
        if kept + lost >= wanted:
            return right("events counted as lost" if lost else "every event")
        sources = [sorted(trace.sources for trace in of.traces) for of in (result, self.base)]
        if sources[0] != sources[1] or not any(sources[1]):  # a killed process names none
            return right("a source is missing, as said") if b"memory" in result.said or \
                b"nothing is recorded" in result.said else \
                Verdict("a source is missing, and nothing is said", OTHER)
        return Verdict(f"{wanted - kept - lost} events are missing in the trace, and not counted", OTHER)

    def one(self, run):
        result = self.run(*run)
        how = f"FAIL_ALLOC={run[0]}{' FAIL_ALLOC_FROM=1' * run[1]} in {self.place or 'memtrace'}"
        return result.was_reached, (self.judge(result), how, result.said[-300:].decode("utf-8", "replace"))

    def sweep(self, summary, name):
        found = []
        for from_there_on in (False, True):
            number, step = 1, 1
            while True:
                batch = [(number + step * i, from_there_on) for i in range(self.arguments.jobs)]
                results = run_all(batch, batch, lambda _, run: self.one(run))
                found += [verdict for was_reached, verdict in results if was_reached]
                if not all(was_reached for was_reached, _ in results):
                    break
                number = batch[-1][0] + step
                if not self.arguments.full and number >= SAMPLE:
                    step = number
        summary.add(name, " ".join((*RECORD, *self.flags, "--", "recorded", *self.way)), found)


def main():
    arguments = options(__doc__)
    chosen = choose(arguments, {name: " ".join((*flags, *way)) for name, (flags, way, _) in
                                COMMANDS.items()})
    summary = Summary(arguments)
    for name in chosen:
        Sweep(arguments, COMMANDS[name]).sweep(summary, name)
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
