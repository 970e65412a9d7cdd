#!/usr/bin/env python3
"""Runs memtrace's commands while allocations fail.

    sweep_memory.py PROGRAM [--full] [--only REGEX] [--jobs N] [--shim FILE] [--list] [-v]

PROGRAM is a build without sanitizers; fail_alloc.so (fail_alloc.c) lies beside its tests. Every
command runs once undisturbed, and once to learn where it allocates. Then, for every call stack
that allocates, its first and its last allocation fail, each alone, and the first one with all that
follow. Without --full a sample of these runs that is the same each time, a few of every command.

cairo's own allocations do not fail: cairo 1.16 answers that with assertions, jumps and crashes of its
own, or draws less and says nothing.

A run is sound if it ends within the time limit with
  - the same status, output and files as the undisturbed run, or
  - another status and a message that names memory, and no file under a final name that differs
    from the undisturbed run's.
Prints a line a command and every kind of unsound run with its number: to repeat one, use
    FAIL_ALLOC=N [FAIL_ALLOC_FROM=1] LD_PRELOAD=.../fail_alloc.so PROGRAM ...
Exit status 1 if a run was unsound.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile
import time

from commands import COMMANDS, Workplace, make_inputs

SAMPLE_RUNS = 10  # of each command
SLOWEST_SECONDS = 20  # of a run beyond ten times the undisturbed one


class Sweep:
    def __init__(self, arguments, folder):
        self.program = pathlib.Path(arguments.program).resolve()
        self.shim = pathlib.Path(arguments.shim).resolve() if arguments.shim else \
            self.program.parent / "tests" / "fail_alloc.so"
        self.arguments, self.folder = arguments, folder
        made = folder / "made"
        make_inputs(self.program, made)
        self.places = [Workplace(folder / f"run{i}", made) for i in range(arguments.jobs)]

    def run(self, place, line, fault, seconds):
        if fault:
            fault = {**fault, "LD_PRELOAD": str(self.shim), "FAIL_ALLOC_PROGRAM": str(self.program)}
            if "png" in line or "report" in line:
                fault["FAIL_ALLOC_NOT_IN"] = "libcairo"
        return place.run(self.program, line, seconds, **fault)

    def plan(self, name, line):
        """(allocations, call stacks, runs): a run is (number, whether all from there on fail)."""
        place = self.places[0]
        sites = self.folder / "sites"
        sites.unlink(missing_ok=True)
        place.clean()
        self.run(place, line, {"FAIL_ALLOC_SITES": str(sites)}, 600)
        first, last, total = {}, {}, 0
        for text in sites.read_text().splitlines() if sites.exists() else []:
            number, site = text.split()
            total = max(total, int(number))
            first.setdefault(site, int(number))
            last[site] = int(number)
        alone = set(first.values()) | set(last.values())
        runs = sorted([(n, False) for n in alone] + [(n, True) for n in set(first.values())])
        if not self.arguments.full and len(runs) > SAMPLE_RUNS:
            runs = [runs[(2 * i + 1) * len(runs) // (2 * SAMPLE_RUNS)] for i in range(SAMPLE_RUNS)]
        return total, len(first), runs

    def judge(self, line, base, done, files, reached):
        """What became of a run; (kind, is_sound)."""
        same = (done["stdout"], files) == (base["stdout"], base["files"])
        # doctor answers with what fails here, and an experiment of it may be what failed
        says_memory = b"memory" in done["stderr"].lower() or (
            line.startswith("doctor") and done["status"] > 0)
        if done["status"] is None:
            return "hang", False
        if done["status"] < 0:
            return f"signal {-done['status']}", False
        if done["status"] == base["status"] and same:
            return "same" if reached else "not reached", True
        if done["status"] == 0 or (done["status"] == base["status"] and not says_memory):
            return f"other answer with status {done['status']}", False
        if not says_memory:
            return f"status {done['status']} without a word of memory", False
        for name, content in files.items():
            if name not in base["files"]:
                return f"left {re.sub('[0-9]{2,}|[A-Za-z0-9]{6}$', '*', name)}", False
            if content != base["files"][name]:
                return f"half file {name}", False
        return f"status {done['status']}", True

    def one(self, place, line, base, limit, number, from_there_on):
        log = place.root.with_suffix(".log")
        log.unlink(missing_ok=True)
        place.clean()
        fault = {"FAIL_ALLOC": str(number), "FAIL_ALLOC_LOG": str(log)}
        if from_there_on:
            fault["FAIL_ALLOC_FROM"] = "1"
        done = self.run(place, line, fault, limit)
        reached = log.exists() and "failed" in log.read_text()
        kind, is_sound = self.judge(line, base, done, place.files(), reached)
        return kind, is_sound, number, from_there_on, done

    def command(self, name, line):
        place = self.places[0]
        place.clean()
        begin = time.monotonic()
        base = self.run(place, line, {"FAIL_ALLOC_LOG": os.devnull}, 600)
        limit = SLOWEST_SECONDS + 10 * (time.monotonic() - begin)
        base["files"] = place.files()
        total, sites, runs = self.plan(name, line)
        kinds, unsound = collections.Counter(), {}
        free = list(self.places)
        with concurrent.futures.ThreadPoolExecutor(len(free)) as pool:
            def work(run):
                own = free.pop()
                try:
                    return self.one(own, line, base, limit, *run)
                finally:
                    free.append(own)
            for kind, is_sound, number, from_there_on, done in pool.map(work, runs):
                kinds[kind] += 1
                if not is_sound:
                    unsound.setdefault(kind, []).append((number, from_there_on, done))
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        print(f"{name:24} {total:7} allocations {sites:5} stacks {len(runs):5} runs: {counts}",
              flush=True)
        for kind, cases in sorted(unsound.items()):
            for number, from_there_on, done in cases[:None if self.arguments.verbose else 3]:
                said = done["stderr"].decode("utf-8", "replace").strip().split("\n")[-1][:120]
                print(f"    {kind}: FAIL_ALLOC={number}{' FAIL_ALLOC_FROM=1' * from_there_on} "
                      f"memtrace {line}: {said!r}", flush=True)
        return len(runs), kinds, sum(map(len, unsound.values()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shim")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    chosen = {name: line for name, line in COMMANDS.items() if re.search(arguments.only, name)}
    if arguments.list:
        print("\n".join(f"{name:24} {line}" for name, line in chosen.items()))
        return 0
    begin, runs, unsound, kinds = time.monotonic(), 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="memtrace-sweep-") as folder:
        sweep = Sweep(arguments, pathlib.Path(folder))
        for name, line in chosen.items():
            more_runs, more_kinds, more_unsound = sweep.command(name, line)
            runs, unsound = runs + more_runs, unsound + more_unsound
            kinds.update(more_kinds)
    signals = sum(count for kind, count in kinds.items() if kind.startswith("signal"))
    others = sum(count for kind, count in kinds.items() if kind.startswith("other answer"))
    halves = sum(count for kind, count in kinds.items() if kind.startswith(("half", "left")))
    silent = sum(count for kind, count in kinds.items() if kind.endswith("word of memory"))
    print(f"{len(chosen)} commands, {runs} runs in {time.monotonic() - begin:.0f} s: "
          f"{signals} signals, {kinds['hang']} hangs, {others} other answers with the usual "
          f"status, {halves} half files, {silent} failures without a word of memory")
    return 1 if unsound else 0


if __name__ == "__main__":
    sys.exit(main())
