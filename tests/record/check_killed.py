#!/usr/bin/env python3
"""check_killed.py BUILD [CASE...]: whatever is killed whenever, its trace opens
and holds what it must.

`recorded log` enters every call in a shared book after the driver came back from
it. What is entered was recorded before, so it must be in the trace, however late
the writer is: no clock is needed. The trace file alone, without its tape, may
lack what is younger than 0.2 s, and how late this machine's scheduler was."""
import concurrent.futures
import mmap
import os
import random
import signal
import struct
import sys
import time

from support import check, command_of, main
from tapes import is_running

KILLS = 100
CONTRACT_NS = 200_000_000
BOOK_BYTES = 64 + 8 * (1 << 20)


class Book:
    def __init__(self, path):
        path.write_bytes(b"")
        os.truncate(path, BOOK_BYTES)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), BOOK_BYTES)

    def numbers(self):
        """allocations, frees, how late a sleep of 10 ms was"""
        return struct.unpack_from("QQQ", self.map, 0)

    def done_ns(self, number):
        return struct.unpack_from("Q", self.map, 64 + 8 * number)[0]

    def wait(self, process):
        while not self.numbers()[0]:
            check(process.poll() is None, f"it ended: {process.returncode}")
            time.sleep(0.001)


def start(bench, name):
    book = Book(bench.work / f"{name}.book")
    process = bench.start(bench.memtrace, "record", "--no-summary", "-o", f"{name}.trace.zst",
                          bench.recorded, "log", f"{name}.book")
    book.wait(process)
    return book, process


def check_prefix(bench, trace, book):
    """The trace holds allocations 0, 1, ... without a hole; how many, and frees."""
    events = bench.events(trace, heap=None)
    sizes = [event["size"] for event in events if event["kind"] == "alloc"]
    check(sizes == [256 * (n + 1) for n in range(len(sizes))], f"{trace}: a hole in {sizes[:9]}...")
    allocations, frees, _ = book.numbers()
    check(len(sizes) <= allocations + 1, f"{trace}: {len(sizes)} of {allocations} allocations")
    lost = sum(event["size"] for event in events if event["kind"] == "dropped")
    check(lost <= 1, f"{trace}: {lost} events are lost, not just the one that was being written")
    ends = bool(events) and events[-1]["kind"] == "end"
    return len(sizes), sum(event["kind"] == "free_requested" for event in events), ends


def one_kill(bench, number):
    name = f"kill{number}"
    book, process = start(bench, name)
    time.sleep(random.Random(number).uniform(0, 0.2))
    os.kill(command_of(process, "recorded"), signal.SIGKILL)
    _, err = process.communicate(timeout=600)
    check(process.returncode == -signal.SIGKILL, f"{name}: {process.returncode} {err}")
    trace = bench.work / f"{name}.trace.zst"
    allocations, frees, _ = book.numbers()
    got, got_frees, ends = check_prefix(bench, trace, book)
    check(got >= allocations, f"{name}: {got} of {allocations} allocations are in the trace")
    check(got_frees >= frees, f"{name}: {got_frees} of {frees} frees are in the trace")
    check(ends, f"{name}: the trace is not closed")
    check(b"ended abnormally" in err, f"{name}: nobody says what was recovered: {err}")
    check(not (bench.work / f"{name}.trace.zst.tape").exists(), f"{name}: the tape is left")
    return allocations


def commands_killed(bench):
    """kill -9 at a hundred moments."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda number: one_kill(bench, number), range(KILLS)))
    check(max(counts) > 100, "they were all killed at once: that shows nothing")


def launcher_killed(bench):
    """memtrace dies, the command goes on; then the command also dies. `memtrace recover`
    makes the trace whole; until then it says so, and is what the contract says."""
    for number in range(8):
        name = f"both{number}"
        book, process = start(bench, name)
        child = command_of(process, "recorded")
        process.kill()
        process.wait(timeout=600)
        check(process.returncode == -signal.SIGKILL, "memtrace")
        before = book.numbers()[0]
        end = time.monotonic() + 600
        while book.numbers()[0] < before + 100 * (number + 1) and time.monotonic() < end:
            time.sleep(0.001)
        killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        os.kill(child, signal.SIGKILL)
        while is_running(child):
            time.sleep(0.001)
        trace = bench.work / f"{name}.trace.zst"
        check_alone(bench, trace, book, killed_ns)
        hint = bench.run(bench.memtrace, "info", trace).stderr
        check(b"memtrace recover" in hint, f"{name}: no hint: {hint}")
        done = bench.run(bench.memtrace, "recover", trace)
        check(done.returncode == 0, f"{name}: {done}")
        got, _, _ = check_prefix(bench, trace, book)
        check(got >= book.numbers()[0], f"{name}: {got} of {book.numbers()[0]}")
        check(not bench.run(bench.memtrace, "info", trace).stderr, f"{name}: still a hint")
        told = bench.run(bench.memtrace, "info", f"{trace}.mtsum")
        check(told.returncode == 0, f"{name}: recover wrote no summary: {told}")


def launcher_alone_killed(bench):
    """memtrace dies, the command ends in order: its trace is whole, and nothing
    else is left."""
    flag = bench.work / "flag"
    flag.touch()
    process = bench.start(bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded, "wait",
                          flag)
    trace = bench.work / "run.trace.zst"
    while not trace.exists():
        check(process.poll() is None, f"it ended: {process.returncode}")
        time.sleep(0.001)
    child = command_of(process, "recorded")
    process.kill()
    process.wait(timeout=600)
    flag.unlink()
    while is_running(child):
        time.sleep(0.001)
    bench.check_whole(trace)
    bench.check_left("run.trace.zst")


def check_alone(bench, trace, book, killed_ns):
    """The file without its tape: cut, but nothing old is missing."""
    copy = bench.work / "alone.trace.zst"
    copy.write_bytes(trace.read_bytes())
    got, _, _ = check_prefix(bench, copy, book)
    allocations, _, late_ns = book.numbers()
    if got < allocations:
        age_ns = killed_ns - book.done_ns(got)
        check(age_ns <= CONTRACT_NS + 2 * late_ns,
              f"{trace.name}: lost an event that was {age_ns / 1e6:.0f} ms old, on a machine that "
              f"was {late_ns / 1e6:.0f} ms late")


def still_running(bench):
    """recover leaves a process alone that runs."""
    _, process = start(bench, "alive")
    done = bench.run(bench.memtrace, "recover", "alive.trace.zst")
    check(done.returncode == 3 and b"still runs" in done.stderr, f"{done}")
    before = (bench.work / "alive.trace.zst").stat().st_ino
    done = bench.run(bench.memtrace, "record", "-o", "alive.trace.zst", "true")
    check(done.returncode == 0 and b"this one writes 'alive-2.trace.zst'" in done.stderr, f"{done}")
    check((bench.work / "alive.trace.zst").stat().st_ino == before, "a trace that is being written was replaced")
    os.kill(command_of(process, "recorded"), signal.SIGTERM)
    process.communicate(timeout=600)
    check(process.returncode == -signal.SIGTERM, f"{process.returncode}")
    bench.check_left("alive.book", "alive.trace.zst")


def recover_refuses(bench):
    """What is no trace, and what has no tape."""
    (bench.work / "text").write_text("no trace")
    for name, status in (("text", 3), ("missing", 3)):
        done = bench.run(bench.memtrace, "recover", name)
        check(done.returncode == status and done.stderr.count(b"\n") == 1, f"{done}")
    bench.record(bench.recorded, "exit", "0")
    before = (bench.work / "run.trace.zst").read_bytes()
    done = bench.run(bench.memtrace, "recover", "run.trace.zst")
    check(done.returncode == 0 and (bench.work / "run.trace.zst").read_bytes() == before, f"{done}")
    (bench.work / "run.trace.zst.tape").write_bytes(b"x" * 100000)
    done = bench.run(bench.memtrace, "recover", "run.trace.zst.tape")
    check(done.returncode == 3 and (bench.work / "run.trace.zst").read_bytes() == before, f"{done}")


if __name__ == "__main__":
    sys.exit(main([commands_killed, launcher_killed, launcher_alone_killed, still_running, recover_refuses]))
