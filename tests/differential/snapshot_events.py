#!/usr/bin/env python3
"""snapshot_events.py FILE...: the events of PyTorch snapshots, one a line, as the
importer has to make them; a line "end" after each file. Read with Python's own pickle, and made by another
way: the state at the start is found by undoing the entries from the last to
the first.

    kind heap t_ns device addr size aux stream pool_a:pool_b flags name stack
"""
import bisect
import pickle
import subprocess
import sys

KINDS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
         "segment_unmap", "oom"}
EXPANDABLE, INITIAL = 2, 1
MIB = 1 << 20


def load(path):
    data = open(path, "rb").read()
    if data[:4] == b"\x28\xb5\x2f\xfd":
        data = subprocess.run(["zstd", "-dc", path], check=True, stdout=subprocess.PIPE).stdout
    return pickle.loads(data)


def spell_stack(frames):
    return ";".join(f"{f.get('name', '')}|{f.get('filename', '')}|{f.get('line', 0)}" for f in frames or [])


def line(kind, t_us, device, addr=0, size=0, aux=0, stream=0, pool=(0, 0), flags=0, name="", stack=(), heap="pytorch"):
    heap = "" if kind.startswith("phase") or kind == "dropped" else heap
    return (f"{kind}\t{heap}\t{t_us * 1000}\t{device}\t{addr % 2**64}\t{size}\t{aux}\t{stream % 2**64}\t{pool[0]}:{pool[1]}\t"
            f"{flags}\t{name}\t{spell_stack(stack)}")


def normalise(snapshot):
    """Every version as the newest one."""
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot}
    segments = []
    for segment in snapshot.get("segments", []):
        blocks, at = [], segment.get("address", 0)
        for block in segment["blocks"]:
            block = dict(block)
            block.setdefault("address", at)
            if block.get("history"):
                block.setdefault("requested_size", block["history"][0]["real_size"])
                block.setdefault("frames", block["history"][0].get("frames", []))
            at = block["address"] + block["size"]
            blocks.append(block)
        segments.append(dict(segment, blocks=blocks))
    return segments, snapshot.get("device_traces", []), snapshot.get("external_annotations", []), "segments" in snapshot


def is_complete(trace, segments):
    """Forward: nothing is freed that was not made, and what is left is what
    the snapshot shows."""
    live, bases, mapped = {}, {}, 0
    for e in trace:
        action, addr, size = e["action"], e.get("addr", 0), e.get("size", 0)
        if action == "alloc":
            live[addr] = size
        elif action == "free_completed":
            if live.pop(addr, None) is None:
                return False
        elif action == "segment_alloc":
            bases[addr] = size
        elif action == "segment_free":
            if bases.pop(addr, None) is None:
                return False
        elif action in ("segment_map", "segment_unmap"):
            mapped += size if action == "segment_map" else -size
    shown = {b["address"] for s in segments for b in s["blocks"] if b["state"] != "inactive"}
    plain = {s["address"]: s["total_size"] for s in segments if not s.get("is_expandable")}
    grown = sum(s["total_size"] for s in segments if s.get("is_expandable"))
    return shown == set(live) and plain == bases and grown == mapped


def undo(trace, segments):
    """The state before the first entry: {addr: block}, {base: segment}, pieces."""
    live, bases, pieces = {}, {}, {}
    for s in segments:
        if s.get("is_expandable"):
            for at in range(s["address"], s["address"] + s["total_size"], 2 * MIB):
                pieces[at] = (s.get("stream", 0), tuple(s.get("segment_pool_id") or (0, 0)))
        else:
            bases[s["address"]] = (s["total_size"], s.get("stream", 0), tuple(s.get("segment_pool_id") or (0, 0)),
                                   s.get("frames", []))
        for b in s["blocks"]:
            if b["state"] != "inactive":
                live[b["address"]] = [b.get("requested_size") or b["size"], s.get("stream", 0),
                                      b["state"] != "active_allocated", b.get("frames", []), b["size"]]
    for e in reversed(trace):
        action, addr, size, stream = e["action"], e.get("addr", 0), e.get("size", 0), e.get("stream", 0)
        if action == "alloc":
            live.pop(addr, None)
        elif action == "free_completed":
            live[addr] = [size, stream, True, [], None]
        elif action == "free_requested":
            live[addr][2] = False
        elif action == "segment_alloc":
            bases.pop(addr, None)
        elif action == "segment_free":
            bases[addr] = (size, stream, (0, 0), [])
        elif action == "segment_map":
            for at in range(addr, addr + size, 2 * MIB):
                pieces.pop(at, None)
        elif action == "segment_unmap":
            for at in range(addr, addr + size, 2 * MIB):
                pieces[at] = (stream, (0, 0))
    return live, bases, pieces


def ranges_of(pieces):
    ranges = []
    for at in sorted(pieces):
        if ranges and ranges[-1][0] + ranges[-1][1] == at and ranges[-1][2] == pieces[at][0]:
            ranges[-1][1] += 2 * MIB
        else:
            ranges.append([at, 2 * MIB, pieces[at][0]])
    return ranges


def tags(trace):
    """The program's own record of the block of each "alloc" entry, by index, and of blocks of the start, by address."""
    by_entry, at_start, owner = {}, {}, {}
    for i, e in enumerate(trace):
        text = e.get("user_metadata", "")
        if e["action"] == "alloc":
            owner[e["addr"]], by_entry[i] = (by_entry, i), [text] if text else []
        elif e["action"] == "free_completed":
            owner[e["addr"]] = None
        elif e["action"] == "annotate" and text:
            found = owner.get(e["addr"], (at_start, e["addr"]))
            if found:
                texts = found[0].setdefault(found[1], [])
                if "; ".join(texts) != text:
                    texts.append(text)
                if len("; ".join(texts).encode()) > 512:
                    texts[:] = [text]
    return [{k: "; ".join(v) for k, v in d.items()} for d in (by_entry, at_start)]


def initial(device, trace, segments, t_us):
    names = tags(trace)[1]
    live, bases, pieces = undo(trace, segments)
    found = [(addr, "segment_alloc", size, stream, pool, INITIAL, frames)
             for addr, (size, stream, pool, frames) in bases.items()]
    found += [(addr, "segment_map", size, stream, (0, 0), INITIAL | EXPANDABLE, [])
              for addr, size, stream in ranges_of(pieces)]
    lines = [line(kind, t_us, device, addr, size, 0, stream, pool, flags, "", frames)
             for addr, kind, size, stream, pool, flags, frames in sorted(found, key=lambda f: f[0])]
    starts = sorted((f[0], f[0] + f[2], f[5] & EXPANDABLE, f[4]) for f in found)
    for addr in sorted(live):
        requested, stream, pending, frames, size = live[addr]
        at = bisect.bisect(starts, (addr, 2**64)) - 1
        inside = at >= 0 and addr < starts[at][1]
        flags, pool = INITIAL | (starts[at][2] if inside else 0), starts[at][3] if inside else (0, 0)
        # the size of a block that was freed in the window is another test's matter
        lines.append(line("alloc", t_us, device, addr, requested, size or "?", stream, pool, flags, names.get(addr, ""), frames))
        if pending:
            lines.append(line("free_requested", t_us, device, addr, requested, 0, stream, pool,
                              flags, ""))
    return lines


def route(trace, segments):
    """Pool of every entry, going back from the segments that are left."""
    ranges = {s["address"]: (s["address"] + s["total_size"], tuple(s.get("segment_pool_id") or (0, 0)),
                             bool(s.get("is_expandable"))) for s in segments}
    pools = []
    for e in reversed(trace):
        if "pool_id" in e and e["pool_id"] is not None:
            pools.append(tuple(e["pool_id"]))
            continue
        addr = e.get("addr", 0)
        found = next((r for base, r in ranges.items() if base <= addr < r[0]), None) if any(
            r[1] != (0, 0) for r in ranges.values()) else None
        pools.append(found[1] if found and e["action"] in KINDS - {"oom"} else (0, 0))
        if e["action"] in ("segment_alloc", "segment_free") and found and not found[2]:
            ranges.pop(addr, None)
    return pools[::-1]


def empty_caches(trace):
    """Indices before which an explicit empty_cache began."""
    memory = [i for i, e in enumerate(trace) if e["action"] in KINDS]
    found, at = set(), 0
    while at < len(memory):
        gone = ("segment_free", "segment_unmap")
        if trace[memory[at]]["action"] not in gone:
            at += 1
            continue
        first = memory[at]
        while at < len(memory) and trace[memory[at]]["action"] in gone:
            at += 1
        frames = trace[first].get("frames") or []
        named = next((f for f in frames if f["name"] == "empty_cache"), None)
        if at == len(memory) or trace[memory[at]]["action"] in ("free_requested", "free_completed") \
                or (named and named["filename"].endswith("memory.py")):
            found.add(first)
    return found


def inline_phases(traces):
    """PyTorch 2.4, 2.5: user_defined entries, the same in every device."""
    counts = [sum(e["action"] == "user_defined" for e in t) for t in traces]
    return counts.index(max(counts)) if counts and max(counts) else None


def matched(marks):
    """Marks (name, is_end) that count: an END needs an open START of its name."""
    open_names, kept = [], []
    for name, is_end in marks:
        if not is_end:
            open_names.append(name)
        elif name in open_names:
            del open_names[len(open_names) - 1 - open_names[::-1].index(name)]
        else:
            kept.append(False)
            continue
        kept.append(True)
    return kept


def entry_lines(device, trace, segments, phases_here):
    pools, caches, latest, out, names = route(trace, segments), empty_caches(trace), 0, [], tags(trace)[0]
    marks = [(e["frames"][0]["filename"], e["frames"][0]["name"] == "END") for e in trace
             if e["action"] == "user_defined"]
    kept = iter(matched(marks))
    for i, e in enumerate(trace):
        latest = max(latest, e.get("time_us", 0))
        action, frames, stream = e["action"], e.get("frames", []), e.get("stream", 0)
        if i in caches:
            out.append((latest, line("empty_cache", latest, device, stack=frames)))
        if action == "user_defined" and phases_here and next(kept):
            kind = "phase_pop" if frames[0]["name"] == "END" else "phase_push"
            out.append((latest, line(kind, latest, device, name=frames[0]["filename"])))
        if action not in KINDS:
            continue
        oom = action == "oom"
        out.append((latest, line(action, latest, device, 0 if oom else e.get("addr", 0), e.get("size", 0),
                                 e.get("device_free", 0) if oom else 0, stream, pools[i],
                                 EXPANDABLE if action in ("segment_map", "segment_unmap") else 0, names.get(i, ""), frames)))
    return out


def lacking(trace, segments, has_segments):
    """How many entries of each kind the history lacks at least: everything that is taken is given back or there at the
    end, and nothing is given back that was not taken."""
    count = dict.fromkeys(("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"), 0)
    kinds = [e["action"] for e in trace]
    end = "free_requested" if "free_requested" in kinds and "free_completed" not in kinds else "free_completed"
    if end == "free_requested":
        count["free_completed"] += kinds.count("free_requested")
    elif "free_requested" not in kinds:
        count["free_requested"] += kinds.count("free_completed")
    if not trace or not has_segments:
        return count
    plain = {s["address"]: s for s in segments if not s.get("is_expandable")}
    blocks = {b["address"] for s in segments for b in s["blocks"] if b["state"] != "inactive"}
    mentioned = {e.get("addr") for e in trace if e["action"] in ("segment_alloc", "segment_free")}
    if not undo(trace, segments)[0]:
        count["segment_alloc"] += sum(bool(s.get("frames")) for addr, s in plain.items() if addr not in mentioned)
    for taken, given, there in (("alloc", end, blocks), ("segment_alloc", "segment_free", plain)):
        told = {}
        for e in trace:
            if e["action"] in (taken, given):
                told.setdefault(e["addr"], []).append(e["action"] == taken)
        for addr, words in told.items():
            count[taken] += sum(not a and not b for a, b in zip(words, words[1:])) + (not words[-1] and addr in there)
            count[given] += sum(a and b for a, b in zip(words, words[1:])) + (words[-1] and addr not in there and bool(segments))
    return count


def host_lines(trace):
    """What the host's allocator takes and gives back is the driver's; of no size that is not recorded."""
    out, latest = [], 0
    for e in trace:
        latest = max(latest, e.get("time_us", 0))
        kinds = {"segment_alloc": ["alloc"], "segment_free": ["free_requested", "free_completed"]}.get(e["action"])
        for kind in kinds or [e["action"]]:
            if kind in ("alloc", "free_requested", "free_completed"):
                out.append((latest, line(kind, latest, 0, e["addr"], e["size"], 0, e.get("stream", 0), tuple(e["pool_id"]),
                                         stack=e["frames"], heap="driver:host" if kinds else "user:pinned")))
    return out


def phase_marks(annotations):
    kept, latest, out = matched([(a["name"], a["stage"] == "END") for a in annotations]), 0, []
    for a, keep in zip(annotations, kept):
        latest = max(latest, a["time_us"])
        end = a["stage"] == "END"
        if keep:
            out.append((latest, end, line("phase_pop" if end else "phase_push", latest, a.get("device", 0),
                                          name=a["name"])))
    return out


def merge(devices, marks):
    heads, at, out = [0] * len(devices), 0, []
    while True:
        ready = [(d[h][0], i) for i, (d, h) in enumerate(zip(devices, heads)) if h < len(d)]
        head = min(ready) if ready else None
        if at < len(marks) and (not head or marks[at][0] < head[0] or (marks[at][0] == head[0] and not marks[at][1])):
            out.append(marks[at][2])
            at += 1
        elif head:
            out.append(devices[head[1]][heads[head[1]]][1])
            heads[head[1]] += 1
        else:
            return out


def main(path):
    snapshot = load(path)
    segments, traces, annotations, has_segments = normalise(snapshot)
    count = max([len(traces)] + [s.get("device", 0) + 1 for s in segments])
    traces = list(traces) + [[] for _ in range(count - len(traces))]
    of = [[s for s in segments if s.get("device", 0) == d] for d in range(count)]
    chosen = None if annotations else inline_phases(traces)
    marks = phase_marks(annotations)
    devices = [entry_lines(d, t, of[d], d == chosen) for d, t in enumerate(traces)]
    pinned = snapshot.get("host_traces", []) if isinstance(snapshot, dict) else []
    devices.append(host_lines(pinned))
    times = [d[0][0] for d in devices if d] + [a["time_us"] for a in annotations[:1]]
    lines = []
    for d, trace in enumerate(traces):
        if has_segments and not is_complete(trace, of[d]):
            lines += initial(d, trace, of[d], min(times, default=0))
    latest = max([0] + [e.get("time_us", 0) for t in traces + [pinned] for e in t] + [a["time_us"] for a in annotations])
    missing = [lacking(trace, of[d], has_segments) for d, trace in enumerate(traces)]
    lost = [line("dropped", latest, 0, 0, sum(m[kind] for m in missing), name=f"{kind} entries missing from the history")
            for kind in (missing[0] if missing else ()) if any(m[kind] for m in missing)]
    sys.stdout.write("\n".join(lines + merge(devices, marks) + lost + ["end", ""]))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        main(argument)
