#!/usr/bin/env python3
"""Runs programs under `memtrace record` while the recorder's allocations in them fail.

    sweep_recorder.py PROGRAM [--full] [--shim FILE]

PROGRAM is a build without sanitizers; fail_alloc.so lies beside its tests. Only allocations that
libmemtrace-inject.so makes fail, itself or through what it calls: every one alone, and from there
on. Without --full a sample that is the same each time.

A run is sound if the program ends within the time limit with the status and the output that it has
undisturbed, and
  - the trace has every event, or
  - the trace can be read, and what it lacks is counted in it and told by `record`, or
  - one line says that nothing is recorded, or that there are no events of the driver.
Exit status 1 if a run was unsound."""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "record"))
from support import Bench, check  # noqa: E402

LIMIT_SECONDS = 60
SAMPLE = 12  # numbers of each kind
TOLD = (b"nothing is recorded", b"no driver events")
WAYS = (("exit", "3"), ("threads", "4"), ("signal", "9"), ("fork",))


def events_of(bench, trace):
    """How many events, and how many are said to be lost. Samples come by the clock."""
    kept = lost = 0
    for event in bench.events(trace, heap=None):
        if event["kind"] == "dropped":
            lost += event["size"]
        elif event["kind"] not in ("end", "memory_sample"):
            kept += 1
    return kept, lost


class Sweep:
    def __init__(self, program, shim, way):
        self.program, self.shim, self.way = program, shim, way
        self.undisturbed = None
        self.runs = 0
        self.unsound = []

    def run(self, **more):
        with tempfile.TemporaryDirectory() as work:
            bench = Bench(self.program.parent, work)
            log = bench.work / "log"
            if more:
                more.update({"LD_PRELOAD": str(self.shim), "FAIL_ALLOC_LOG": str(log),
                             "FAIL_ALLOC_PROGRAM": "tests/recorded",
                             "FAIL_ALLOC_IN": "libmemtrace-inject.so"})
            try:
                done = bench.run(bench.memtrace, "record", "--stacks", "both", "-o",
                                 "run.trace.zst", "--", bench.recorded, *self.way,
                                 environment=bench.environment(**more))
            except subprocess.TimeoutExpired:
                return "hangs", b"", b"", [], False
            counts = []
            for trace in bench.traces():
                info = bench.run(bench.memtrace, "info", "--json", trace)
                facts = json.loads(info.stdout)["integrity"] if info.returncode == 0 else None
                sound = (facts and facts["closed"] and not facts["cut"]
                         and not facts["frames_damaged"] and not facts["events_invalid"])
                counts.append(events_of(bench, trace) if sound else None)
            failed = log.exists() and b"failed" in log.read_bytes()
            return done.returncode, done.stdout, done.stderr, counts, failed

    def fault(self, result):
        status, out, said, counts, _ = result
        if (status, out) != self.undisturbed[:2]:
            return f"status {status}, the program is not itself"
        wanted = sum(kept for kept, _ in self.undisturbed[3])
        if None in counts:
            return None if b"damaged" in said or b"missing" in said else "a broken trace"
        kept, lost = (sum(pair[which] for pair in counts) for which in (0, 1))
        if kept + lost < wanted and not any(words in said for words in TOLD):
            return f"{kept} events and {lost} lost, of {wanted}, and nothing is said"
        if lost and b"lost" not in said:
            return f"{lost} events are lost, and nothing is said"
        return None

    def sweep(self, full):
        self.undisturbed = self.run()
        check(all(pair and not pair[1] for pair in self.undisturbed[3]) and self.undisturbed[3],
              f"undisturbed: {self.undisturbed}")
        for more in ({}, {"FAIL_ALLOC_FROM": "1"}):
            number, step = 1, 1
            while True:
                result = self.run(FAIL_ALLOC=str(number), **more)
                if not result[4]:
                    break
                self.runs += 1
                why = self.fault(result)
                if why:
                    self.unsound.append((number, bool(more), why, result[2][-300:]))
                if not full and number >= SAMPLE // 3:
                    step = 1 + number
                number += step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--shim", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    program = options.program.resolve()
    shim = (options.shim or program.parent / "tests" / "fail_alloc.so").resolve()
    sweeps = [Sweep(program, shim, way) for way in WAYS]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for job in [pool.submit(sweep.sweep, options.full) for sweep in sweeps]:
            job.result()
    kinds = collections.Counter()
    for sweep in sweeps:
        for number, from_there_on, why, said in sweep.unsound:
            kinds[why] += 1
            if kinds[why] <= 3:
                print(f"{' '.join(sweep.way)}: number {number}{' and on' * from_there_on}: {why}: "
                      f"{said!r}")
    total = sum(sweep.runs for sweep in sweeps)
    print(f"{total} runs, {sum(kinds.values())} unsound")
    return 1 if kinds or not total else 0


if __name__ == "__main__":
    sys.exit(main())
