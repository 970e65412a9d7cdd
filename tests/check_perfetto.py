#!/usr/bin/env python3
"""check_perfetto.py PROGRAM FIXTURES [NAME...]: traces of `export perfetto`, read by a decoder of its own.

The counters are those of `replay --counters`; peaks, phases, steps and OOMs those of `analyze`; the blocks of a
profile by stack, and the roles at the peak, those of `live`. If the package perfetto of PyPI is installed, its
decoder must read the same."""
import bisect
import collections
import csv
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unicodedata

from check_hostile_names import HIDDEN, snapshot
from support.json_schema import Schemas
from support.perfetto_trace import Trace
from support.program import fast_program, output

CAPTURES = ("captures/gpt_default", "captures/oom_adam", "captures/streams", "captures/twogpu", "captures/graph",
            "captures/leak", "captures/churn_cap", "captures/churn_noframes", "captures/resnet50_cap1900",
            "captures/ddp_rank1", "captures/gpt_ring", "recorded/mixed", "recorded/twogpu", "dry_run/gpt_batch3")
SIZES = ("requested", "allocated", "active", "reserved")
COLUMNS = 16384
SCHEMAS = Schemas(pathlib.Path(__file__).resolve().parent.parent / "docs" / "schema")


def find(fixtures, name):
    return next(pathlib.Path(fixtures).glob(name + ".*.zst"))


class Run:
    """An exported run, and what other commands print about it."""

    def __init__(self, program, path, folder):
        self.program, self.path, self.out = program, path, folder / "run.pftrace"
        output(program, "export", "perfetto", path, "-o", self.out, "--force")
        self.data = self.out.read_bytes()
        self.trace = Trace(self.data)
        self.analysis = self.ask("analyze")
        self.counts_events = "one event takes 1 ns" in next(iter(self.trace.tracks.values()))["description"]
        output(program, "replay", path, "--counters", folder / "run.csv", "--force", "-q")
        with open(folder / "run.csv", newline="") as file:
            self.counters = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]

    def ask(self, *words):
        return json.loads(output(self.program, *words, self.path, "--json", "--all", "-q"))

    def time(self, facts, prefix=""):
        return facts[prefix + "event"] if self.counts_events else facts[prefix + ("ns" if prefix else "t_ns")]

    def devices(self):
        assert len(self.trace.processes()) == len(self.analysis["devices"])
        return zip(self.trace.processes().items(), self.analysis["devices"])


def reduce(points):
    """A counter keeps a level until the next one."""
    return [point for at, point in enumerate(points) if not at or point[1] != points[at - 1][1]]


def check_counters(run, process, device):
    rows = [row for row in run.counters if row["device"] == device["device"]]
    description = run.trace.tracks[process]["description"]
    assert description.startswith("memtrace: Exact: " if len(rows) <= COLUMNS else "memtrace: Reduced: ")
    assert f" {len(rows):,} events" in description, (description, len(rows))
    for size in SIZES:
        points = run.trace.counter(process, size)
        wanted = [(run.time(row), row[size]) for row in rows]
        assert points[0] == (wanted[0][0], device["summary"]["start"][size])
        if len(rows) <= COLUMNS:
            assert points == reduce(points[:1] + wanted), size
        assert set(points[1:]) <= set(wanted), size
        times = [time for time, _ in points]
        for column in range(min(len(rows), COLUMNS)):
            part = wanted[-(-column * len(rows) // COLUMNS):-(-(column + 1) * len(rows) // COLUMNS)]
            if len(rows) > COLUMNS and part:
                check_column(points, times, part, size)
        check_peak(run, device["summary"][size + "_peak"], points, size, process)


def check_column(points, times, part, size):
    """The largest level of a part, and its last one, hold at their times. Events may share a time."""
    for time, level in (max(part, key=lambda point: point[1]), part[-1]):
        first, end = bisect.bisect_left(times, time), bisect.bisect_right(times, time)
        assert level in (each for _, each in points[max(first - 1, 0):end]), (size, time, level)


def check_peak(run, peak, points, size, process):
    """The reserved peak is the instant at which the request is served, after its segment was allocated."""
    assert max(level for _, level in points) == peak["bytes"], size
    first = next(time for time, level in points if level == peak["bytes"])
    until = next((time for time, level in points if time > first and level < peak["bytes"]), run.time(peak))
    assert first == run.time(peak) or size == "reserved" and first < run.time(peak) <= until, size
    [instant] = [each for each in run.trace.instants(process, "peaks") if each.name == "peak of " + size]
    assert instant.time == run.time(peak) and instant.facts["event"] == peak["event"]
    assert {each: instant.facts[each] for each in SIZES} == {each: peak["then"][each] for each in SIZES}


def check_roles(run, process, device, live):
    """Roles at the allocated peak, and that they sum to the allocated bytes there."""
    peak = run.time(device["summary"]["allocated_peak"])
    wanted = {row["group"]: row["bytes"] for row in live["rows"]}
    assert set(wanted) <= set(run.trace.roles(process))
    before = sum(run.time(row) == peak for row in run.counters) == 1
    for role in run.trace.roles(process):
        points = run.trace.counter(process, role)
        at = [level for time, level in points if time <= peak][-1] if before else None
        levels = {level for time, level in points if time == peak} | {level for time, level in points if time < peak}
        assert at == wanted.get(role, 0) if before else wanted.get(role, 0) in levels, (role, at, wanted.get(role))


def label(frame):
    name = pathlib.PurePosixPath(frame.file).name
    return f"{frame.function} {name}:{frame.line}" if frame.line else f"{frame.function} {name}".strip()


def by_stack(flame):
    sums = collections.Counter()
    for stack, (size, _) in flame.items():
        sums[tuple(map(label, stack)) if stack[-1].file else (stack[-1].function,)] += size
    return sums


def check_profile(run, pid, live, at):
    """The profile at the instant of an answer. The end is that of the device, not of the run."""
    times = [dump.time for dump in run.trace.dumps if (dump.pid, dump.heap) == (pid, "allocated")]
    time = times[-1] if at == "end" else run.time(live["instant"])
    assert time in times and time <= run.time(live["instant"])
    allocated, requested = run.trace.flame(pid, "allocated", time), run.trace.flame(pid, "requested", time + 1)
    assert sum(size for size, _ in allocated.values()) == live["bytes"]["allocated"]
    assert sum(size for size, _ in requested.values()) == sum(row["requested_bytes"] for row in live["rows"])
    blocks = sum(row["blocks"] for row in live["rows"])
    assert sum(count for _, count in allocated.values()) == sum(count for _, count in requested.values()) == blocks
    for metric, found in (("bytes", by_stack(allocated)), ("requested_bytes", by_stack(requested))):
        wanted = collections.Counter()
        for row in live["rows"]:
            wanted[tuple(row["stack"]) or (row["group"],)] += row[metric]
        assert found == wanted, (found - wanted, wanted - found)


def check_phases(run, process, device):
    slices = run.trace.slices(process)
    wanted = [(phase["name"], run.time(phase, "begin_"), run.time(phase, "end_"), phase["source"], phase["cut"])
              for phase in device["phases"]]
    found = [(name, begin, end, categories[1], facts.get("end") == "not recorded")
             for name, begin, end, categories, _, facts in slices]
    assert collections.Counter(found) == collections.Counter(wanted)
    steps = [(begin, end) for _, begin, end, categories, _, _ in slices if categories[0] == "step"]
    if not run.counts_events:
        assert sorted(steps) == sorted((step["begin_ns"], step["end_ns"]) for step in device["steps"])
    assert len(steps) == len(device["steps"])


def check_events(run, process, device):
    events = run.trace.instants(process, "events of the allocator")
    ooms = [event for event in events if event.name.startswith("out of memory")]
    assert len(ooms) == device["summary"]["ooms"]
    assert sum(event.facts["retries"] for event in events if event.name == "retry") == device["summary"]["retries"]


def check_stacks(run):
    """The events are those of `dump`, with its stacks, and no empty_cache is missing."""
    rows = [json.loads(row) for row in output(run.program, "dump", run.path, "--json", "--stacks").splitlines()]
    found = [event for process in run.trace.processes()
             for event in run.trace.instants(process, "events of the allocator")]
    for event in found:
        [row] = [row for row in rows if row.get("seq") == event.facts["event"]]
        stack = [f"{frame.function} ({frame.file}:{frame.line})" for frame in reversed(event.stack or ())]
        assert stack == row["frames"] and event.time == run.time({"event": row["seq"], "t_ns": row["t_ns"]}), row
    calls = [event.facts["calls"] for event in found if event.name == "empty_cache"]
    assert sum(calls) == len(calls) == sum(row.get("kind") == "empty_cache" for row in rows)


def check_other_decoder(run):
    """Skipped without the package perfetto of PyPI."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        return False
    other = perfetto_trace_pb2.Trace()
    other.ParseFromString(run.data)
    assert len(other.packet) == run.trace.packets
    events, dumps = collections.defaultdict(list), []
    for packet in other.packet:
        event = packet.track_event
        assert not unknown(packet)
        if packet.HasField("track_event"):
            events[event.track_uuid].append((event.type, packet.timestamp, event.counter_value))
        for dump in packet.profile_packet.process_dumps:
            dumps.append((dump.pid, dump.heap_name, dump.timestamp,
                          [[each.callstack_id, each.self_allocated, each.self_freed, each.alloc_count, each.free_count]
                           for each in dump.samples]))
    assert events == {uuid: [(event.kind, event.time, event.level) for event in found]
                      for uuid, found in run.trace.events.items() if found}
    assert dumps == [(dump.pid, dump.heap, dump.time, [[number, *totals] for number, (_, totals) in dump.samples.items()])
                     for dump in run.trace.dumps]
    return True


def unknown(packet):
    from google.protobuf.unknown_fields import UnknownFieldSet
    return len(UnknownFieldSet(packet)) + len(UnknownFieldSet(packet.track_event)) \
        + len(UnknownFieldSet(packet.track_descriptor)) + len(UnknownFieldSet(packet.interned_data))


def check_pids(run):
    """The process's own number, except for further devices and for ranks; those are no numbers of processes."""
    first, *others = [track["pid"] for track in run.trace.processes().values()]
    known = re.search(rb'"process_id": (\d+)', output(run.program, "info", run.path, "--json", "-q"))
    is_rank = ", rank " in next(iter(run.trace.processes().values()))["name"]
    assert first == int(known[1]) if known and int(known[1]) and not is_rank else first >= 1 << 22, first
    assert all(1 << 22 <= pid < 1 << 31 for pid in others) and len({first, *others}) == 1 + len(others)


def check_run(run):
    live = {at: {by: run.ask("live", "--at", at, "--by", by)["devices"] for by in ("role", "stack")}
            for at in ("peak", "end")}
    for slot, ((process, track), device) in enumerate(run.devices()):
        check_counters(run, process, device)
        check_roles(run, process, device, live["peak"]["role"][slot])
        check_profile(run, track["pid"], live["peak"]["stack"][slot], "peak")
        check_profile(run, track["pid"], live["end"]["stack"][slot], "end")
        check_events(run, process, device)
        if slot == 0:
            check_phases(run, process, device)
    check_stacks(run)
    check_pids(run)
    assert all(clocks[1] == clocks[4] for clocks in run.trace.clocks)
    return check_other_decoder(run)


def check_joined(program, fixtures, folder):
    """Files of ranks, one after the other, are one trace."""
    runs = [Run(program, find(fixtures, f"captures/ddp_rank{rank}"), folder) for rank in (0, 1)]
    joined = Trace(runs[0].data + runs[1].data)
    for kind in ("tracks", "writers", "events"):
        first, second = (getattr(run.trace, kind) for run in runs)
        assert not set(first) & set(second) and len(getattr(joined, kind)) == len(first) + len(second), kind
    assert joined.events == {**runs[0].trace.events, **runs[1].trace.events}
    processes = joined.processes().values()
    assert len({track["pid"] for track in processes}) == 2
    assert [track["name"] for track in processes] == [f"ddp_rank{rank}, rank {rank}, device {rank}" for rank in (0, 1)]
    for run in runs:
        [track] = run.trace.processes().values()
        for heap in ("allocated", "requested"):
            assert joined.allocations(track["pid"], heap) == run.trace.allocations(track["pid"], heap)


def check_hostile(program, folder):
    """Names are UTF-8 without control characters, and a damaged file gives a partial trace or one line."""
    path = folder / "hostile.pickle"
    path.write_bytes(pickle.dumps(snapshot(7), protocol=4))
    run = Run(program, path, folder)
    texts = {frame.function for writer in run.trace.writers.values() for stack in writer.stacks.values() for frame in stack}
    texts |= {name for writer in run.trace.writers.values() for name in writer.names.values()}
    assert any("\\x1b" in each for each in texts)
    assert not {c for each in texts for c in each if unicodedata.category(c) in HIDDEN}
    whole = path.read_bytes()
    for share in (0.2, 0.6, 0.97):
        path.write_bytes(whole[:int(len(whole) * share)])
        out = folder / "cut.pftrace"
        done = subprocess.run([program, "export", "perfetto", path, "-o", out], capture_output=True, check=False)
        assert done.returncode == 3 and done.stderr, done
        assert not out.exists() or Trace(out.read_bytes())
        out.unlink(missing_ok=True)


def check_overlap(program, folder):
    """A range of the framework that ends in a user's range, which began in it: two tracks."""
    path = folder / "overlap.pickle"
    blocks = [{"action": "alloc", "addr": time_us << 20, "size": 512, "stream": 0, "time_us": time_us, "frames": []}
              for time_us in range(1005, 1070, 10)]
    marks = [{"name": name, "stage": stage, "device": 0, "time_us": time_us}
             for name, stage, time_us in (("step#0", "START", 1001), ("forward", "START", 1002),
                                          ("forward", "END", 1006), ("Optimizer.step#Adam.step", "START", 1010), ("mine", "START", 1020),
                                          ("inner", "START", 1030), ("Optimizer.step#Adam.step", "END", 1040),
                                          ("inner", "END", 1050), ("mine", "END", 1060),
                                          ("step#0", "END", 1070))]
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [blocks], "external_annotations": marks}))
    run = Run(program, path, folder)
    [process] = run.trace.processes()
    check_phases(run, process, run.analysis["devices"][0])
    depths = {name: depth for name, _, _, _, depth, _ in run.trace.slices(process)}
    assert depths["mine"] == 0 and depths["inner"] == 1, depths


def check_options(program, fixtures, folder):
    path = find(fixtures, "captures/leak")
    written = output(program, "export", "perfetto", path)
    assert output(program, "export", "perfetto", path, "-o", "-") == written
    for wrong in (["--at", "peak"], ["--of", "live"], ["--metric", "count"], ["--reverse"], ["--blocks"],
                  ["--device", "0"], ["--events"], ["--json"]):
        output(program, "export", "perfetto", path, *wrong, status=2)
    out = folder / "out"
    document = json.loads(output(program, "export", "perfetto", path, "-o", out, "--json"))
    assert document == {"schema": "memtrace.export/1", "format": "perfetto", "path": str(out), "bytes": len(written)}
    assert not SCHEMAS.complaints(document, "export.json")
    assert out.read_bytes() == written
    output(program, "export", "perfetto", path, "-o", out)
    out.write_bytes(b"\x0a\x05hello")
    output(program, "export", "perfetto", path, "-o", out, status=4)
    assert out.read_bytes() == b"\x0a\x05hello"


def main(program, fixtures, *names):
    program = fast_program(program)
    others = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in names or CAPTURES:
            try:
                others += check_run(Run(program, find(fixtures, name), folder))
            except AssertionError as error:
                raise AssertionError(name) from error
        check_joined(program, fixtures, folder)
        check_hostile(program, folder)
        check_overlap(program, folder)
        check_options(program, fixtures, folder)
    print(f"{len(names or CAPTURES)} runs; {others} of them also read by Perfetto's own decoder")


if __name__ == "__main__":
    os.environ.pop("MEMTRACE_MAX_MEMORY", None)
    main(*sys.argv[1:])
