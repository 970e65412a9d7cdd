#!/usr/bin/env python3
"""check_closing.py BUILD [CASE...]: programs that close descriptors that they do not
know, and reuse the numbers. Each runs twice, alone and under `memtrace record`: its
files must be the same byte for byte, and the trace is whole.

MEMTRACE_INTERLEAVINGS=N (default 100) is how many rounds of random opens, writes,
closes, dup2s and forks are tried; MEMTRACE_SEED=N repeats the first of them."""
import os
import random
import stat
import sys

from support import check, main, only

ROUNDS = 50  # of one process
INTERLEAVINGS = int(os.environ.get("MEMTRACE_INTERLEAVINGS", "100"))

PYTHON_LOAD = """
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, address, events = ctypes.c_void_p(), ctypes.c_ulonglong(), 0
def start():
    assert not cuda.cuInit(0)
    assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    assert not cuda.cuCtxSetCurrent(context)
    allocate(100)
    time.sleep(0.2)
def allocate(times):
    global events
    for _ in range(times):
        assert not cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))
        assert not cuda.cuMemFree_v2(address)
        events += 3
def use_files(folder):
    files = [open(f"{folder}/own.{i}", "wb", buffering=0) for i in range(8)]
    for line in range(20):
        for file in files:
            file.write(b"record %d\\n" % line)
        allocate(100)
        time.sleep(0.01)
"""

CLOSERANGE = PYTHON_LOAD + """
start()
os.closerange(3, 4096)
use_files(sys.argv[1])
print(events)
"""

# What python-daemon does when a context is opened.
DAEMON = PYTHON_LOAD + """
folder = sys.argv[1]
ready, done = os.pipe()
if os.fork():
    os.close(done)
    os.read(ready, 1)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
start()
os.dup2(done, 1000)  # below the usual limit of 1,024 open files
os.closerange(0, 1000)
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 1)
os.dup2(nothing, 2)
use_files(folder)
with open(f"{folder}/events", "w") as file:
    file.write(str(events))
os._exit(0)
"""


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run_twice(bench, make_words, status=0):
    """The program alone, then recorded with `status`: its files must be equal. What it printed, and
    what memtrace said."""
    done, files = [], []
    for name in "alone", "recorded":
        folder = bench.work / name
        folder.mkdir()
        words = make_words(folder)
        if name == "alone":
            done.append(bench.run(*words))
        else:
            done.append(bench.record(*words))
        check(done[-1].returncode == (0 if name == "alone" else status), f"{name}: {done[-1]}")
        files.append(contents(folder))
    check(files[0].keys() == files[1].keys(), f"other files: {sorted(files[0])} {sorted(files[1])}")
    for name, alone in files[0].items():
        check(files[1][name] == alone, f"memtrace changed {name}: {len(alone)} B became "
              f"{len(files[1][name])} B, {files[1][name][:60]}")
    return done[1].stdout.decode(), done[1].stderr.decode()


def count_events(facts):
    return sum(facts["events"]["kinds"].get(kind, 0)
               for kind in ("alloc", "free_requested", "free_completed"))


def check_trace(bench, trace, events):
    """Closed, undamaged, and it has `events` allocations and frees."""
    facts = bench.info(trace)
    integrity, found = facts["integrity"], count_events(facts)
    check(integrity["closed"] and not integrity["cut"] and not integrity["frames_damaged"]
          and not integrity["events_invalid"], f"{trace} is not whole: {integrity}")
    check(found == events and not integrity["events_dropped"],
          f"{trace}: {found} of {events} events, {integrity}")


def check_case(bench, make_words):
    out, err = run_twice(bench, make_words)
    check("recording stops" not in err, err)
    check_trace(bench, bench.work / "run.trace.zst", int(out))


def closing(bench, *words):
    return [bench.build / "tests" / "closing", *words]


def closes_all(bench):
    """At once, before the first frame is written."""
    check_case(bench, lambda folder: closing(bench, "all", folder, "0"))
    mode = stat.S_IMODE((bench.work / "run.trace.zst").stat().st_mode)
    check(mode == 0o600, f"others may read the trace: {mode:o}")


def closes_all_later(bench):
    check_case(bench, lambda folder: closing(bench, "all", folder, "300"))


def takes_every_number(bench):
    """No number is free, so the trace cannot be opened again: what is missing is counted."""
    out, err = run_twice(bench, lambda folder: closing(bench, "over", folder))
    check("recording stops" in err, f"nobody says that recording stopped: {err}")
    facts = bench.info(bench.work / "run.trace.zst")
    found = count_events(facts)
    dropped = facts["integrity"]["events_dropped"]
    check(found + dropped == int(out) and dropped, f"{found} + {dropped} of {out} events")


def loses_its_trace(bench):
    """Deleted while its descriptor is closed: nothing is made in its place."""
    trace = bench.work / "run.trace.zst"
    trace.touch()
    _, err = run_twice(bench, lambda folder: closing(bench, "lost", folder, trace), status=5)
    check("recording stops" in err, f"nobody says that recording stopped: {err}")
    check(not trace.exists(), "the trace was made again")


def loses_its_stderr_too(bench):
    """The line that says so does not go into the file that is descriptor 2 now."""
    trace = bench.work / "run.trace.zst"
    trace.touch()
    run_twice(bench, lambda folder: closing(bench, "mute", folder, trace), status=5)


def children_of_clone(bench):
    if bench.preload:
        return  # such a child waits for locks of ThreadSanitizer that threads of its parent held
    check_case(bench, lambda folder: closing(bench, "clone", folder))
    only(bench.traces())


def server(bench):
    """The peer checks that it gets the program's bytes and no others."""
    done = bench.record(*closing(bench, "server", "20"))
    check(done.returncode == 0, f"{done}")
    check_trace(bench, bench.work / "run.trace.zst", int(done.stdout))


def python_closerange(bench):
    check_case(bench, lambda folder: [sys.executable, "-c", CLOSERANGE, folder])


def python_daemon(bench):
    """The daemon's trace is its own, and its descriptors 0 to 2 are what it opened."""
    run_twice(bench, lambda folder: [sys.executable, "-c", DAEMON, folder])
    daemon = only(bench.traces())
    events = int((bench.work / "recorded" / "events").read_text())
    check_trace(bench, daemon, events)


def anything(bench):
    seed = int(os.environ.get("MEMTRACE_SEED", random.randrange(1 << 30)))
    print(f"{INTERLEAVINGS} interleavings from MEMTRACE_SEED={seed}")
    for number in range(max(1, INTERLEAVINGS // ROUNDS)):
        work = bench.work / str(number)
        work.mkdir()
        inner = type(bench)(bench.build, work)
        try:
            check_case(inner, lambda folder, n=number: closing(bench, "random", folder,
                                                               str(seed + n), str(ROUNDS)))
        except Exception:
            print(f"the seed is {seed + number}")
            raise


if __name__ == "__main__":
    sys.exit(main([closes_all, closes_all_later, takes_every_number, loses_its_trace,
                   loses_its_stderr_too, children_of_clone, server, python_closerange, python_daemon, anything]))
