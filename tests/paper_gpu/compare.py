#!/usr/bin/env python3
"""Compares a trace with PyTorch's snapshot of the same run.

    compare.py MEMTRACE TRACE SNAPSHOT.pickle [TRUTH.json]

Equal must be, for each device: the sequence of the allocator's events (kind, address, bytes, stream), their Python
stacks where both have one, the phases; the counters at every row of the truth; and a replay of the trace against
itself. The trace may begin before the snapshot's history and end after it. Exits with 1 if anything differs."""

import collections, csv, json, subprocess, sys, tempfile

KINDS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom"}
COUNTERS = "requested", "allocated", "active", "reserved", "inactive_split"


class Check:
    def __init__(self):
        self.failed = False

    def say(self, good, text):
        self.failed |= not good
        print(f"  {'ok  ' if good else 'DIFF'} {text}")


def events(memtrace, path):
    """{device: allocator events}, [phases], [those of the allocator's segments and of the driver]"""
    process = subprocess.Popen([memtrace, "dump", "--json", "--stacks", "-q", path], stdout=subprocess.PIPE, text=True)
    allocator, phases, segments = collections.defaultdict(list), [], []
    for line in process.stdout:
        event = json.loads(line)
        if event["kind"] in KINDS and event["heap"] == "pytorch":
            allocator[event["device"]].append(event)
        elif event["kind"].startswith("phase_"):
            phases.append(event)
        if event["kind"].startswith("segment_") or event["heap"] in ("driver", "driver:mapped"):
            segments.append(event)
    if process.wait() not in (0, 5):
        sys.exit(f"compare: {path} cannot be read")
    return allocator, phases, segments


def key(event):
    return event["kind"], event["addr"] if event["kind"] != "oom" else 0, event["size"], event["stream"]


def matching(ours, theirs, offset):
    count = 0
    for mine, its in zip(ours[offset:], theirs):
        if key(mine) != key(its):
            break
        count += 1
    return count


def beginning(ours, theirs):
    """Where in our events the snapshot's begin: where most of them agree."""
    return max(range(max(1, min(len(ours), 1000))), key=lambda k: matching(ours, theirs, k))


def describe(event):
    return "{} addr {:#x} size {} stream {:#x}".format(event["kind"], event["addr"], event["size"], event["stream"])


def show_around(ours, theirs, at):
    for i in range(max(0, at - 3), at + 4):
        for name, side in ("trace   ", ours), ("snapshot", theirs):
            print(f"         {i:6} {name} {describe(side[i]) if i < len(side) else '-'}")


def compare_sequence(check, device, ours, theirs):
    """Pairs of events that agree."""
    start = beginning(ours, theirs)
    mine = ours[start:]
    same = matching(mine, theirs, 0)
    good = same == len(theirs)
    check.say(good, f"device {device}: {same} of {len(theirs)} events equal ({start} before, {max(0, len(mine) - len(theirs))} after)")
    if not good:
        show_around(mine, theirs, same)
        lost = collections.Counter(map(key, theirs)) - collections.Counter(map(key, mine))
        extra = collections.Counter(map(key, mine[: len(theirs)])) - collections.Counter(map(key, theirs))
        print(f"         in any order: {sum(lost.values())} of the snapshot are not in the trace, {sum(extra.values())} the other way")
    return list(zip(mine[:same], theirs[:same]))


def plain(frame):
    """PyTorch knows the name of a function; we also know what encloses it: Module.cuda.<locals>.<lambda>."""
    name, place = frame.split(" (", 1)
    return f"{name.rsplit('.', 1)[-1]} ({place}"


def frames(event):
    return list(map(plain, event.get("frames") or []))


def compare_stacks(check, pairs):
    with_stack = [(mine, its) for mine, its in pairs
                  if its.get("frames") and (mine.get("frames") or not mine["kind"].startswith("free_"))]
    equal = [mine for mine, its in with_stack if frames(mine) == its["frames"]]
    none = sum(not mine.get("frames") for mine, _ in with_stack)
    more = sum(bool(mine.get("frames")) for mine, its in pairs if not its.get("frames"))
    check.say(len(equal) == len(with_stack), f"Python stacks: {len(equal)} of {len(with_stack)} equal, {none} without one; {more} where PyTorch has none")
    for mine, its in [p for p in with_stack if frames(p[0]) != p[1]["frames"]][:2]:
        print(f"         {describe(its)}\n           trace    {mine.get('frames')}\n           snapshot {its['frames']}")


def compare_pools(check, pairs):
    known = [(mine, its) for mine, its in pairs if its["pool"] != [0, 0]]
    equal = sum(mine["pool"] == its["pool"] for mine, its in known)
    if known:
        check.say(equal == len(known), f"private pools: {equal} of {len(known)} equal")


def held(live, event):
    """Bytes that the driver has given out within a segment."""
    if event["kind"] in ("segment_alloc", "segment_free"):
        return live.get(event["addr"], 0)
    return sum(size for addr, size in live.items() if event["addr"] <= addr < event["addr"] + event["size"])


def compare_driver(check, segments):
    """A segment is memory that the driver gave out before. PyTorch says that it frees one, then does; it unmaps, then says so."""
    live, leaving, good, first = {}, {}, 0, None
    for event in segments:
        kind, addr = event["kind"], event["addr"]
        if kind == "alloc":
            live[addr] = event["size"]
        elif kind == "free_completed":
            live.pop(addr, None)
            good += leaving.pop(addr, None) is not None
        elif kind == "segment_free":
            leaving[addr] = event
            first = first or (None if held(live, event) == event["size"] else event)
        elif kind.startswith("segment_"):
            right = held(live, event) == (0 if kind == "segment_unmap" else event["size"])
            good += right
            first = first or (None if right else event)
    count = sum(event["kind"].startswith("segment_") for event in segments)
    first = first or next(iter(leaving.values()), None)
    check.say(good == count and not first, f"driver: {good} of {count} segments are its memory" + (f", not {describe(first)}" if first else ""))


def compare_phases(check, ours, theirs):
    names = {event["name"] for event in theirs}
    begun = [collections.Counter(e["name"] for e in side if e["kind"] == "phase_push") for side in (ours, theirs)]
    lacking = {name: begun[1][name] for name in names if begun[0][name] < begun[1][name]}
    check.say(not lacking, f"phases: {sum(begun[1].values()) - sum(lacking.values())} of {sum(begun[1].values())} of the snapshot in the trace {list(lacking)[:4] or ''}")


def counters(memtrace, trace, device):
    """[(time, {counter: bytes})] after every event."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/counters.csv"
        subprocess.run([memtrace, "replay", "-q", "-p", "recorded", "--counters", path, trace], stdout=subprocess.DEVNULL)
        with open(path) as f:
            rows = list(csv.DictReader(f))
    return [(int(row["t_ns"]), {name: int(row[name]) for name in COUNTERS}) for row in rows if int(row["device"]) == device]


def compare_counters(check, memtrace, trace, device, rows):
    """What memory_stats() said at each row, and its peaks since the first row."""
    ours, at, equal, first = counters(memtrace, trace, device), 0, 0, None
    now, peak = dict.fromkeys(COUNTERS, 0), dict.fromkeys(COUNTERS, 0)
    for number, row in enumerate(rows):
        while at < len(ours) and ours[at][0] // 1000 <= row["time_us"]:
            now = ours[at][1]
            peak = {name: max(peak[name], now[name]) for name in COUNTERS}
            at += 1
        if number == 0:
            peak = dict(now)
        got = now | {f"{name}_peak": peak[name] for name in COUNTERS}
        wrong = {name: (got[name], row[name]) for name in got if got[name] != row[name]}
        equal += not wrong
        first = first or (wrong and (number, row["phase"], wrong))
    check.say(equal == len(rows), f"memory_stats(): {equal} of {len(rows)} rows equal, each {', '.join(COUNTERS)} and their peaks")
    if first:
        print(f"         first in row {first[0]} ({first[1]}): (trace, torch) {first[2]}")


def verify(check, memtrace, trace):
    done = subprocess.run([memtrace, "replay", "--verify", "-p", "pytorch", trace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [line.strip() for line in done.stdout.splitlines() if "exact" in line or "differ" in line or "of" in line]
    check.say(done.returncode == 0, f"replay --verify: {'; '.join(lines[-2:])[:300]}")


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit("usage: compare.py MEMTRACE TRACE SNAPSHOT.pickle [TRUTH.json]")
    memtrace, trace, snapshot = sys.argv[1:4]
    check = Check()
    ours, our_phases, segments = events(memtrace, trace)
    theirs, their_phases, _ = events(memtrace, snapshot)
    pairs = []
    for device in sorted(theirs):
        pairs += compare_sequence(check, device, ours.get(device, []), theirs[device])
    compare_stacks(check, pairs)
    compare_pools(check, pairs)
    compare_driver(check, segments)
    compare_phases(check, our_phases, their_phases)
    if len(sys.argv) == 5:
        with open(sys.argv[4]) as f:
            compare_counters(check, memtrace, trace, min(theirs), json.load(f)["rows"])
    verify(check, memtrace, trace)
    sys.exit(1 if check.failed else 0)


main()
