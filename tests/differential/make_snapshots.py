#!/usr/bin/env python3
"""make_snapshots.py CAPTURES FOLDER: snapshots as other versions of PyTorch, and
other writers, would have written them, from real captures."""
import copy
import pathlib
import pickle
import random
import struct
import sys

from snapshot_events import load

SMALL = ("streams", "graph", "churn_expandable", "twogpu")


class JitPickler:
    """As torch::jit::Pickler writes: protocol 2, texts memoized with BINPUT,
    containers after their content and only if they are shared, no FRAME."""

    def __init__(self, root):
        self.out, self.memo, self.count, self.uses = bytearray(b"\x80\x02"), {}, 0, {}
        self.count_uses(root)
        self.push(root)
        self.out += b"."

    def count_uses(self, value):
        self.uses[id(value)] = self.uses.get(id(value), 0) + 1
        if self.uses[id(value)] == 1:
            for item in (list(value) + list(value.values()) if isinstance(value, dict)
                         else value if isinstance(value, (list, tuple)) else ()):
                self.count_uses(item)

    def put(self, key):
        self.out += b"q" + bytes([self.count]) if self.count < 256 else b"r" + struct.pack("<I", self.count)
        self.memo[key] = self.count
        self.count += 1

    def get(self, key):
        slot = self.memo[key]
        self.out += b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)

    def push_int(self, value):
        if 0 <= value < 256:
            self.out += b"K" + bytes([value])
        elif 0 <= value < 65536:
            self.out += b"M" + struct.pack("<H", value)
        elif -2**31 <= value < 2**31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<q", value)

    def push(self, value):
        if isinstance(value, str):
            if ("text", value) in self.memo:
                return self.get(("text", value))
            data = value.encode()
            self.out += b"X" + struct.pack("<I", len(data)) + data
            return self.put(("text", value))
        if value is None or isinstance(value, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self.push_int(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif id(value) in self.memo:
            self.get(id(value))
        else:
            self.push_container(value)
            if self.uses[id(value)] > 1:
                self.put(id(value))

    def push_container(self, value):
        if isinstance(value, tuple):
            for item in value:
                self.push(item)
            self.out += {0: b")", 1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(value)]
            return
        items = [x for pair in value.items() for x in pair] if isinstance(value, dict) else value
        self.out += b"}(" if isinstance(value, dict) else b"]("
        for item in items:
            self.push(item)
        self.out += b"u" if isinstance(value, dict) else b"e"


def without(dictionary, *keys):
    return {k: v for k, v in dictionary.items() if k not in keys}


def each_entry(snapshot, change):
    snapshot["device_traces"] = [[change(e) for e in t] for t in snapshot["device_traces"]]
    return snapshot


def version_1_12(s):
    return [dict(without(g, "frames", "requested_size", "segment_pool_id", "is_expandable"),
                 blocks=[{"size": b["size"], "state": b["state"]} for b in g["blocks"]]) for g in s["segments"]]


def version_2_0(s):
    def block(b, frames):
        past = [{"addr": b["address"], "real_size": b["requested_size"], "frames": frames},
                {"addr": b["address"], "real_size": 7, "frames": []}]
        return dict(without(b, "address", "requested_size", "frames"), **({"history": past} if b["requested_size"] else {}))
    segments = [dict(without(g, "frames", "segment_pool_id", "is_expandable"),
                     blocks=[block(b, b["frames"]) for b in g["blocks"]]) for g in s["segments"]]
    return each_entry({"segments": segments, "device_traces": s["device_traces"]}, lambda e: without(e, "time_us"))


def version_2_1(s):
    return each_entry(without(s, "allocator_settings", "external_annotations"),
                      lambda e: without(e, "time_us", "compile_context", "user_metadata"))


def version_2_4(s):
    """Phases inside of every device's trace."""
    marks = [{"action": "user_defined", "addr": 0, "size": 0, "stream": 0, "time_us": a["time_us"],
              "frames": [{"name": a["stage"], "filename": a["name"], "line": 0}]} for a in s["external_annotations"]]
    traces = [sorted(t + marks, key=lambda e: e["time_us"]) for t in s["device_traces"]]
    traces[0] = traces[0][len(traces[0]) // 3:]  # a ring: STARTs are missing
    return dict(without(s, "external_annotations"), device_traces=traces)


TAGS = ("", "", "weights", '{"role": "activation"}', "layer 3")


def annotated(trace):
    """After every seventh entry a text for the block that the trace allocated last, or freed last, or that lies at
    an address that it never saw."""
    out, last = [], 12345
    for i, e in enumerate(trace):
        out.append(e)
        if e["action"] in ("alloc", "free_completed"):
            last = e["addr"]
        if i % 7 == 3:
            out.append({"action": "annotate", "addr": last, "size": 0, "stream": 0, "time_us": e.get("time_us", 0),
                        "frames": [], "user_metadata": f"note {i % 3}"})
    return out


def host(latest):
    """Pinned memory as the host's allocator tells it: one list, the device -1; the last block is cached."""
    frames = [{"name": "pin", "filename": "host.py", "line": 4}]
    entry = {"stream": 0, "frames": frames, "compile_context": "", "pool_id": (0, 0), "user_metadata": ""}
    steps = [("segment_alloc", 0, 4096), ("alloc", 0, 4096), ("segment_alloc", 8192, 1 << 20), ("alloc", 8192, 1 << 20),
             ("free_requested", 0, 4096), ("free_completed", 0, 4096), ("alloc", 0, 4096), ("free_requested", 0, 4096),
             ("free_completed", 0, 4096), ("segment_free", 0, 4096), ("segment_alloc", 65536, 512), ("alloc", 65536, 512),
             ("free_requested", 65536, 512), ("free_completed", 65536, 512)]
    traces = [dict(entry, action=action, addr=0x700000000000 + addr, size=size, time_us=max(0, latest - 100 + 5 * i))
              for i, (action, addr, size) in enumerate(steps)]
    segments = [{"device": -1, "address": 0x700000000000 + addr, "total_size": size, "stream": 0, "is_expandable": False,
                 "segment_type": "small", "segment_pool_id": (0, 0), "frames": frames, "allocated_size": size if live else 0,
                 "blocks": [{"address": 0x700000000000 + addr, "size": size, "requested_size": size, "frames": frames,
                             "state": "active_allocated" if live else "inactive"}]}
                for addr, size, live in ((8192, 1 << 20, True), (65536, 512, False))]
    return traces, segments


def version_next(s):
    """Newer than 2.11: pools in entries, host memory, tags, unknown actions and keys."""
    s = each_entry(s, lambda e: dict(e, pool_id=(0, 0) if e["addr" if "addr" in e else "size"] % 3 else (1, 0),
                                     user_metadata=TAGS[e["size"] % len(TAGS)], compile_context="",
                                     new_key={"deep": [1, {"state": "deeper"}, (2, 3)]}))
    strange = {"action": "frobnicate", "addr": 1, "size": 2, "stream": 3, "time_us": 4}
    note = {"action": "annotate", "addr": 5, "size": 6, "stream": 0, "time_us": 7, "frames": [], "user_metadata": "note"}
    mark = {"action": "snapshot", "addr": 0, "size": 6, "stream": 0, "time_us": 7, "frames": []}
    s["device_traces"] = [annotated([strange, note] + t[:50] + [note, mark, strange] + t[50:]) for t in s["device_traces"]]
    traces, segments = host(max((e["time_us"] for t in s["device_traces"] for e in t), default=0))
    return dict(s, host_traces=traces, host_segments=segments, nothing=None, annotations_extra=1.5)


def xpu(s):
    """torch.xpu (torch/csrc/xpu/Module.cpp): no annotations, two settings, and a stream is the address of a queue."""
    def queue(d):
        return dict(d, stream=0x55A000000000 + (d["stream"] & 0xffff) * 64) if "stream" in d else d
    settings = {"PYTORCH_ALLOC_CONF": "expandable_segments:False", "expandable_segments": False}
    traces = [[queue(without(e, "compile_context", "user_metadata")) for e in t] for t in s["device_traces"]]
    return {"segments": [queue(g) for g in s["segments"]], "device_traces": traces, "allocator_settings": settings}


def shuffled(s, seed):
    """Keys in any order, as the C++ writer has them."""
    chance = random.Random(seed)

    def shuffle(value):
        if isinstance(value, dict):
            keys = list(value)
            chance.shuffle(keys)
            return {k: shuffle(value[k]) for k in keys}
        if isinstance(value, list):
            return [shuffle(v) for v in value]
        return value
    return shuffle(s)


def cut(s, share):
    return dict(s, device_traces=[t[int(len(t) * share):] for t in s["device_traces"]])


def without_phases(s, keep):
    return dict(s, external_annotations=[a for i, a in enumerate(s["external_annotations"]) if keep(i)])


def same_time(s):
    """Everything in a few microseconds: ties between entries and phases."""
    base = s["device_traces"][0][0]["time_us"]

    def squeeze(e):
        return dict(e, time_us=base + (e["time_us"] - base) // 2000)
    return dict(each_entry(s, squeeze), external_annotations=[squeeze(a) for a in s["external_annotations"]])


def high_addresses(s):
    """Beyond 2^63, as negative numbers."""
    def up(d, key):
        return dict(d, **{key: d[key] + (1 << 63) - (1 << 64)}) if key in d else d
    segments = [dict(up(g, "address"), blocks=[up(b, "address") for b in g["blocks"]]) for g in s["segments"]]
    return dict(each_entry(copy.copy(s), lambda e: up(e, "addr")), segments=segments)


def variants(name, s):
    yield "1_12", version_1_12(s)
    yield "2_0", version_2_0(s)
    yield "2_1", version_2_1(s)
    yield "2_4", version_2_4(s)
    yield "next", version_next(copy.deepcopy(s))
    yield "xpu", xpu(s)
    yield "shuffled", shuffled(s, name)
    yield "high", high_addresses(s)
    yield "no_traces", dict(s, device_traces=[])
    yield "empty_traces", dict(s, device_traces=[[] for _ in s["device_traces"]])
    yield "traces_only", {"device_traces": s["device_traces"]}
    yield "no_frames", each_entry(copy.copy(s), lambda e: without(e, "frames"))
    yield "no_free_requested", dict(s, device_traces=[[e for e in t if e["action"] != "free_requested"]
                                                     for t in s["device_traces"]])
    yield "phases_lost", without_phases(s, lambda i: i % 3 != 0)
    yield "same_time", same_time(s)
    yield "time_runs_back", each_entry(copy.copy(s), lambda e: dict(e, time_us=e["time_us"] - e["size"] % 9999))
    for percent in (10, 40, 80):
        yield f"cut_{percent}", cut(s, percent / 100)


def main(captures, folder):
    folder = pathlib.Path(folder)
    for name in SMALL:
        for variant, snapshot in variants(name, load(f"{captures}/{name}.pickle.zst")):
            for protocol in range(6) if variant in ("next", "2_0") and name == "graph" else (4,):
                (folder / f"{name}.{variant}.{protocol}.pickle").write_bytes(pickle.dumps(snapshot, protocol))
            if name in ("graph", "twogpu"):
                (folder / f"{name}.{variant}.jit.pickle").write_bytes(bytes(JitPickler(snapshot).out))
    entry = load(f"{captures}/graph.pickle.zst")
    first = entry["device_traces"][0]
    entry["device_traces"] = [first[:9] + first[8:3:-1] + first[9:]]  # shared and out of order
    (folder / "graph.shared.4.pickle").write_bytes(pickle.dumps(entry, 4))
    (folder / "empty.empty.4.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": []}, 4))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
