#!/usr/bin/env python3
"""A profiler in the recorded program shares CUPTI's one place with us: it hears
what it hears without us, and the trace has what it has without the profiler.

    check_guest.py PROGRAM INJECT STANDIN_FOLDER

Runs guest_program (fixtures/standin/guest_profiler.c) on the stand-in driver.
"""
import os
import subprocess
import sys

from check_cupti import Runner, complain, failures

WAYS = ("before", "after", "v2", "finalize", "fork")


def alone(runner, program, way, **settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MEMTRACE_", "LD_PRELOAD", "CUDA_"))}
    done = subprocess.run([runner.folder / program[0], *program[1:], way], capture_output=True, text=True, timeout=900,
                          env=environment | {"LD_LIBRARY_PATH": str(runner.folder)} | settings)
    return done.returncode, done.stdout.splitlines()


def recorded(runner, program, way, **settings):
    status, lines, stderr, traces = runner.run_plain([*program[1:], way], runner.folder / program[0], **settings)
    return (status, lines), stderr, traces


def driver_events(traces):
    """Events of the process that allocates, without times and device addresses."""
    kinds = ("alloc", "free_requested", "free_completed", "alloc_failed")
    events = max(([event for event in events if event["heap"] == "driver" and event["kind"] in kinds]
                  for events in traces.values()), key=len, default=[])
    first = min((event["addr"] for event in events), default=0)
    return [(event["kind"], event["addr"] - first, event["size"]) for event in events]


def same_lines(where, mine, theirs):
    if mine == theirs:
        return
    at = next((i for i, pair in enumerate(zip(mine[1], theirs[1])) if pair[0] != pair[1]), min(len(mine[1]), len(theirs[1])))
    complain(where, f"status {theirs[0]}, without us {mine[0]}; line {at + 1}: {theirs[1][at:at + 1]}, without us {mine[1][at:at + 1]}")


def beside(runner, program, way):
    """As without us; and our events are those of the same program whose profiler stays away."""
    where = f"{program[0]} {way}"
    mine = alone(runner, program, way)
    theirs, stderr, traces = recorded(runner, program, way)
    same_lines(where, mine, theirs)
    if stderr:
        complain(where, f"said something: {stderr!r}")
    if not any(line.startswith("subscribe 0, handle yes, holder ") for line in mine[1]):
        complain(where, f"no subscription: {mine[1][:3]}")
    check_events(where, runner, program, way, traces)


def check_events(where, runner, program, way, traces):
    events = driver_events(traces)
    if way in ("before", "after", "v2"):
        quiet = driver_events(recorded(runner, program, "none")[2])
        if not quiet or events != quiet:
            complain(where, f"{len(events)} events of the driver, {len(quiet)} with the profiler away")
    allocations = sum(event[0] == "alloc" for event in events)
    if allocations != {"finalize": 103, "fork": 6}.get(way, 78) or len(events) != 3 * allocations:
        complain(where, f"{allocations} allocations in {len(events)} events")


def with_threads(runner, program):
    mine = alone(runner, program, "threads")
    theirs, stderr, traces = recorded(runner, program, "threads")
    same_lines("threads", mine, theirs)
    made = int(stderr.split()[1])
    allocations = sum(event[0] == "alloc" for event in driver_events(traces))
    if made != allocations:
        complain("threads", f"{allocations} allocations in the trace, {made} made")
    print(f"{made} allocations on 4 threads while a profiler comes and goes")


def straight_through(runner, program):
    """Nothing of ours between: nobody records, another tool holds the place, CUPTI refuses."""
    for settings in ({"MEMTRACE_CUPTI": "none"}, {"MEMTRACE_OUTPUT": ""}, {"MEMTRACE_SIMULATED_CUPTI_HOLDER": "Nsight"},
                     {"MEMTRACE_SIMULATED_CUPTI_ERROR": "15"}):
        mine = alone(runner, program, "v2", **settings)
        same_lines(str(settings), mine, recorded(runner, program, "v2", **settings)[0])


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    runner = Runner(*sys.argv[1:4])
    for program in (["guest_program"], ["guest_loader", str(runner.folder / "guest_library.so")]):
        for way in WAYS:
            beside(runner, program, way)
    straight_through(runner, program)
    with_threads(runner, ["guest_program"])
    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
