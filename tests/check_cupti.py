#!/usr/bin/env python3
"""What a program allocated through the CUDA driver is in its trace: each call
once, with its size, in the order of its thread.

    check_cupti.py PROGRAM INJECT STANDIN_FOLDER
    check_cupti.py PROGRAM INJECT --gpu [RUNTIME_ALLOCATIONS]

Runs every_allocation on the stand-in driver under the collector and compares
`memtrace dump --json` with what the program says it did. With --gpu: on the
machine's own driver (every_allocation lies beside INJECT, in standin/), and the
same for a program that allocates through the CUDA runtime
(tests/gpu/runtime_allocations.cu).
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NOT_PASSED_ON = ("MEMTRACE_", "CUDA_INJECTION", "CUDA_HOME", "CUDA_PATH", "LD_PRELOAD")

failures = []


def complain(where, what):
    failures.append(f"{where}: {what}")


class Runner:
    def __init__(self, program, inject, folder):
        self.program, self.inject = Path(program), Path(inject).resolve()
        self.on_gpu = folder == "--gpu"
        self.folder = self.inject.parent / "standin" if self.on_gpu else Path(folder).resolve()
        self.preload, self.executable = self.inject.name, "every_allocation"

    def run(self, arguments, program=None, **settings):
        """Exit status, truth, stderr, and the events of each trace (by process)."""
        status, lines, stderr, traces = self.run_plain(arguments, program, **settings)
        return status, [json.loads(line) for line in lines], stderr, traces

    def run_plain(self, arguments, program=None, **settings):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(NOT_PASSED_ON)}
        with tempfile.TemporaryDirectory() as out:
            environment.update({"MEMTRACE_OUTPUT": f"{out}/", "LD_PRELOAD": self.preload,
                                "CUDA_INJECTION64_PATH": str(self.inject), **settings})
            # The loader searches for the library, because LD_PRELOAD cannot contain a space.
            environment["LD_LIBRARY_PATH"] = str(self.inject.parent)
            if not self.on_gpu:
                environment["LD_LIBRARY_PATH"] += f":{self.folder}"
            done = subprocess.run([program or self.folder / self.executable, *arguments],
                                  env=environment, capture_output=True, text=True, timeout=900)
            traces = {int(path.name.split(".")[0].rsplit("-", 1)[1]): self.dump(path)
                      for path in Path(out).glob("*.trace.zst")}
        return done.returncode, done.stdout.splitlines(), done.stderr, traces

    def dump(self, path):
        done = subprocess.run([self.program, "dump", "--json", path], capture_output=True,
                              text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


# ---- what both sides say, in the same words ----

def of_truth(line):
    return (line["op"], line["heap"], line["addr"], line["size"], line["aux"],
            line["stream"], line["pool"])


def of_trace(event):
    pool = event["pool"][0]
    return (event["kind"], event["heap"], event["addr"], event["size"], event["aux"],
            event["stream"], pool)


def driver_calls(where, events):
    """The driver's memory events by thread: a free is one, not two."""
    threads, waiting = collections.defaultdict(list), {}
    for event in events:
        if not event["heap"].startswith("driver"):
            continue
        if event["device"] != 0:
            complain(where, f"on device {event['device']}: {event}")
        call, thread = of_trace(event), event["thread"]
        if event["kind"] == "free_requested":
            waiting[thread] = call
        elif event["kind"] == "free_completed":
            if waiting.pop(thread, (0,))[1:] != call[1:]:
                complain(where, f"a free is completed that was not requested: {event}")
            threads[thread].append(("free", *call[1:]))
        elif event["kind"] in ("alloc", "alloc_failed"):
            threads[thread].append(call)
    return list(threads.values())


def truth_by_thread(lines):
    threads = collections.defaultdict(list)
    for line in lines:
        threads[line["thread"]].append(line)
    return list(threads.values())


def compare_thread(where, lines, calls):
    """What goes with a context goes in any order."""
    expected = [of_truth(line) for line in lines]
    at_once = [i for i, line in enumerate(lines) if line["call"] == "cuCtxDestroy_v2"]
    if len(calls) == len(expected):
        for side in (expected, calls):
            for i, call in zip(at_once, sorted(side[i] for i in at_once)):
                side[i] = call
    for i, (mine, theirs) in enumerate(zip(expected, calls)):
        if mine != theirs:
            complain(where, f"call {i} ({lines[i]['call']}) is {mine}, in the trace {theirs}")
            return
    for line in lines[len(calls):]:
        complain(where, f"not in the trace: {line}")
    for call in calls[len(expected):]:
        complain(where, f"too much in the trace: {call}")


def first_address(calls):
    return min((call[2] for call in calls if call[0] == "alloc"), default=0)


def compare(where, truth, traces):
    lines = [line for line in truth if line["op"] != "skipped"]
    processes = {line["process"] for line in lines}
    if set(traces) != processes:
        complain(where, f"traces of {sorted(traces)}, the processes are {sorted(processes)}")
    for process, events in traces.items():
        check_order(where, events)
        said = truth_by_thread([line for line in lines if line["process"] == process])
        seen = driver_calls(where, events)
        if len(said) != len(seen):
            complain(where, f"{len(seen)} threads in the trace, {len(said)} allocated")
        for thread in said:
            calls = [of_truth(line) for line in thread]
            best = max(seen, default=[],
                       key=lambda other: sum(a == b for a, b in zip(other, calls)))
            compare_thread(where, thread, best)


def check_order(where, events):
    """In the order of the trace no address is handed out twice."""
    alive = set()
    for event in events:
        place = event["heap"], event["addr"]
        if event["kind"] == "alloc":
            if place in alive:
                complain(where, f"alive already: {event}")
            alive.add(place)
        elif event["kind"] == "free_completed":
            if place not in alive:
                complain(where, f"not alive: {event}")
            alive.discard(place)


# ---- cases ----

def everything(runner):
    status, truth, stderr, traces = runner.run([])
    if status or stderr:
        complain("everything", f"status {status}, {stderr}")
    if len(truth) < 500:
        complain("everything", f"only {len(truth)} calls were made")
    skipped = [line["call"] for line in truth if line["op"] == "skipped"]
    if skipped:
        print(f"not on this driver: {', '.join(skipped)}")
        if not runner.on_gpu:
            complain("everything", "the stand-in can do all calls")
    compare("everything", truth, traces)
    print(f"{len(truth)} calls of {len({line['call'] for line in truth})} kinds in "
          f"{len(traces)} processes")


def through_the_runtime(runner, program):
    status, truth, stderr, traces = runner.run([], program=program)
    if status or stderr:
        complain("runtime", f"status {status}, {stderr}")
    compare("runtime", truth, traces)
    skipped = {line["call"] for line in truth if line["op"] == "skipped"}
    print(f"{len(truth)} calls of {len({line['call'] for line in truth})} kinds through the "
          f"runtime; not on this machine: {', '.join(sorted(skipped)) or 'none'}")


def many_threads(runner):
    _, truth, _, traces = runner.run(["--no-sharing", "--threads", "8", "--rounds", "100"])
    compare("8 threads", truth, traces)


def older_cupti(runner):
    """What an older CUPTI does not know is missing, nothing else."""
    _, truth, _, traces = runner.run(["--no-sharing"], MEMTRACE_SIMULATED_CUPTI_NAMES="677",
                                     MEMTRACE_SIMULATED_CUPTI_VERSION="18")
    known = [line for line in truth if line["call"] != "cuGraphAddNode_v2"]
    compare("CUPTI 11.8", known, traces)


def broken_context(runner):
    """Frees that fail are not in the trace."""
    _, truth, _, traces = runner.run(["--no-sharing", "--broken"])
    compare("broken context", truth, traces)
    marks = [event["name"] for events in traces.values() for event in events
             if event["kind"] == "mark"]
    if not any("700" in name for name in marks):
        complain("broken context", f"no mark of the error: {marks}")


def refused(runner, why, expected, **settings):
    status, truth, stderr, traces = runner.run(["--no-sharing"], **settings)
    if status or not truth:
        complain(why, f"the program was disturbed: status {status}")
    lines = stderr.splitlines()
    if expected and (len(lines) != 1 or expected not in lines[0]):
        complain(why, f"one line with {expected!r} was expected: {stderr!r}")
    if not expected and stderr:
        complain(why, f"said something: {stderr!r}")
    for events in traces.values():
        if any(event["heap"].startswith("driver") and event["kind"] == "alloc" for event in events):
            complain(why, "there are driver events")


def main():
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    runner = Runner(*sys.argv[1:4])
    everything(runner)
    many_threads(runner)
    if len(sys.argv) == 5:
        through_the_runtime(runner, sys.argv[4])
    if not runner.on_gpu:
        older_cupti(runner)
        broken_context(runner)
        refused(runner, "another tool", "Nsight Systems",
                MEMTRACE_SIMULATED_CUPTI_HOLDER="Nsight Systems")
        refused(runner, "too new", "CUPTI_ERROR_NOT_INITIALIZED", MEMTRACE_SIMULATED_CUPTI_ERROR="15")
        refused(runner, "no such file", "no libcupti", MEMTRACE_CUPTI="/no/such/libcupti.so")
    refused(runner, "switched off", "", MEMTRACE_CUPTI="none")
    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    if failures:
        print(f"check_cupti: {len(failures)} failures", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
