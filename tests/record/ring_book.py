"""The book of ringed.c, and its comparison with a trace of `record --ring`."""
import json
import mmap
import os
import struct
import subprocess
import time

MAX_THREADS, LOG, MAX_LIVE = 8, 1 << 19, 1 << 16
ENTRY, HEAD, PATIENCE_S = 16, 64, 300
THREAD_BYTES = HEAD + ENTRY * (LOG + MAX_LIVE)
BOOK_BYTES = HEAD + MAX_THREADS * THREAD_BYTES
NONE, REFUSE, EXIT, FORK, SANDBOX, LARGE, FORK_TWICE, SMALL = range(8)


class Book:
    def __init__(self, path):
        path.write_bytes(b"")
        os.truncate(path, BOOK_BYTES)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), BOOK_BYTES)

    def ready(self):
        return struct.unpack_from("Q", self.map, 8)[0]

    def child(self):
        """The process that the order FORK_TWICE has started."""
        return struct.unpack_from("Q", self.map, 16)[0]

    def order(self, what):
        """Gives an order and waits until it is obeyed."""
        struct.pack_into("Q", self.map, 0, what)
        until = time.monotonic() + PATIENCE_S
        while what != EXIT and struct.unpack_from("Q", self.map, 0)[0]:
            if time.monotonic() > until:
                raise TimeoutError(f"order {what} is not obeyed")
            time.sleep(0.001)

    def count(self, thread):
        return struct.unpack_from("Q", self.map, HEAD + thread * THREAD_BYTES)[0]

    def entries(self, thread, first, end):
        base = HEAD + thread * THREAD_BYTES + HEAD
        return [struct.unpack_from("QQ", self.map, base + n % LOG * ENTRY) for n in range(first, end)]

    def live(self, thread, blocks):
        base = HEAD + thread * THREAD_BYTES + HEAD + LOG * ENTRY
        pairs = (struct.unpack_from("QQ", self.map, base + n * ENTRY) for n in range(blocks))
        return {addr: size for addr, size in pairs if size}


class Trace:
    """What a trace says about the driver's blocks."""

    def __init__(self, memtrace, path, environment=None):
        self.live, self.threads, self.initial, self.late = {}, {}, 0, 0
        self.times = []
        self.lost = self.events = self.refused = 0
        began = False
        with subprocess.Popen([memtrace, "dump", "--json", path], stdout=subprocess.PIPE,
                              env=environment) as dump:
            for line in dump.stdout:
                event = json.loads(line)
                initial = "initial" in event["flags"]
                self.late += initial and began
                began |= not initial
                self.add(event, initial)
        if dump.returncode:
            raise ValueError(f"dump {path}: {dump.returncode}")

    def add(self, event, initial):
        kind, addr, size = event["kind"], event["addr"], event["size"]
        self.initial += initial
        self.events += not initial
        self.lost += size if kind == "dropped" else 0
        self.refused += kind == "alloc_failed"
        self.times = [self.times[0] if self.times else event["t_ns"], event["t_ns"]]
        live = self.live.setdefault(event.get("thread_name"), {})
        if kind == "alloc":
            live[addr] = size
        elif kind == "free_requested":
            live.pop(addr, None)
        if kind in ("alloc", "free_requested") and not initial:
            self.threads.setdefault(event["thread_name"], []).append((addr, size if kind == "alloc" else 0))


def end_in_log(log, seen):
    """Where the last events of a thread are in its log: the index after them, or None."""
    for end in range(len(log), 0, -1):
        if log[end - 1] == seen[-1] and log[max(0, end - len(seen)):end] == seen[-end:]:
            return end
    return None


def compare(trace, book, threads, blocks):
    """Complaints. The call of each thread that was under way may be missing in the book."""
    complaints, other = [], 0
    if trace.late:
        complaints.append(f"{trace.late} initial events come after the first other event")
    for thread in range(threads):
        count, seen = book.count(thread), trace.threads.get(f"ring{thread}", [])
        log = book.entries(thread, max(0, count - LOG), count)
        wanted, found = book.live(thread, blocks), dict(trace.live.get(f"ring{thread}", {}))
        if not seen:
            complaints.append(f"thread {thread} has no events")
            continue
        end = end_in_log(log, seen)
        if end is None and len(seen) > 1:
            end = end_in_log(log, seen[:-1])
        if end is None:
            complaints.append(f"thread {thread}: the last {len(seen)} events are not in its book: "
                              f"{seen[-3:]} {log[-3:]}")
            continue
        for addr, size in log[end:]:
            if size:
                found[addr] = size
            else:
                found.pop(addr, None)
        differ = set(found.items()) ^ set(wanted.items())
        other += len(differ)
        # a call that had not come back
        if len(differ) > 1:
            complaints.append(f"thread {thread}: {len(differ)} of {len(wanted)} live blocks differ: "
                              f"{sorted(differ)[:4]}")
    return complaints, other
