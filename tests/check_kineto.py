#!/usr/bin/env python3
"""check_kineto.py PROGRAM: traces of torch.profiler, made here from random blocks, operations and ranges, against a
second reading of the same JSON. Blocks, times, stacks, levels after each event and the peak agree, the file may be
compressed, and a file that was cut keeps its beginning and reports the cut. The same for memory timelines: their sums
by category, after each row and at the peak."""
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from support.program import output

BASE_NS = 1790857026000000000
ROUNDS = 6
DEEPEST = 4096  # frames of a stack


def instant(t_ns, thread, size, addr, total, number, device):
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": thread,
            "ts": t_ns / 1000, "args": {"Total Reserved": 1 << 30, "Total Allocated": total, "Bytes": size,
                                        "Device Id": device if device >= 0 else -1,
                                        "Device Type": 1 if device >= 0 else 0, "Addr": addr, "Ev Idx": number}}


def nest(dice, rows, thread, begin, end, depth):
    """Adds ranges within [begin, end]; those of one level do not touch."""
    at = begin + dice.randrange(1, 40)
    while at + 50 < end and depth < 6:
        until = min(end - 1, at + dice.randrange(50, max(51, (end - begin) // 2)))
        category, name = dice.choice([("cpu_op", f"aten::op{dice.randrange(5)}"), ("kernel", "gemm"),
                                      ("python_function", f"/app/m.py({dice.randrange(1, 90)}): f{depth}"),
                                      ("cpu_op", "autograd::é \"quoted\"")])
        rows.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": at / 1000,
                     "dur": (until - at) / 1000, "args": {"External id": 7}})
        nest(dice, rows, thread, at, until, depth + 1)
        at = until + dice.randrange(2, 60)


def make(dice):
    """A profile whose blocks are on two devices and the host. Some were alive before it began."""
    end, threads, rows, live = 40000, (11, 12, 13), [], {}
    levels = {0: 512 * dice.randrange(3), 1: 4096, -1: 0}
    for device in (0, 1):
        for i in range(3):
            live[device, 0x500000 + i * 4096] = 512
            levels[device] += 512
    for thread in threads:
        nest(dice, rows, thread, 0, end, 0)
    for step in range(4):
        rows.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 11,
                     "ts": step * 10, "dur": 9.5})
    for number, t_ns in enumerate(sorted(dice.sample(range(100, end), 400))):
        device = dice.choice((0, 0, 0, 1, -1))
        mine = [key for key in live if key[0] == device]
        if mine and dice.random() < 0.5:
            key = dice.choice(mine)
            size = -live.pop(key)
        else:
            key = (device, 0x7F0000000000 + number * (1 << 20))
            size = live[key] = 512 * dice.randrange(1, 5000) if device >= 0 else dice.randrange(1, 900)
        levels[device] += size
        rows.append(instant(t_ns, dice.choice(threads), size, key[1], levels[device], number, device))
    dice.shuffle(rows)
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 1 << 37}],
            "distributedInfo": {"rank": 1, "world_size": 2}, "baseTimeNanoseconds": BASE_NS, "traceEvents": rows}


def stack_of(profile, row):
    """The ranges that enclose an instant, innermost first, as dump prints them."""
    t, frames = row["ts"], []
    around = [r for r in profile["traceEvents"] if r["ph"] == "X" and r["cat"] in ("cpu_op", "python_function")
              and r["tid"] == row["tid"] and r["ts"] <= t <= r["ts"] + r["dur"] + 1e-9]
    for r in sorted(around, key=lambda r: (r["ts"], -r["dur"])):
        if r["cat"] == "cpu_op":
            frames.insert(0, r["name"] + " (:0)")
        else:
            place, function = r["name"].split("): ")
            frames.insert(0, f"{function} ({place.replace('(', ':')})")
    return frames


def wanted_events(profile):
    rows = [r for r in profile["traceEvents"] if r["name"] == "[memory]" and r["args"]["Device Type"] == 1]
    rows.sort(key=lambda r: r["ts"])
    return [{"kind": "alloc" if r["args"]["Bytes"] > 0 else "free_requested", "addr": r["args"]["Addr"],
             "size": abs(r["args"]["Bytes"]), "device": r["args"]["Device Id"],
             "t_ns": BASE_NS + round(r["ts"] * 1000), "total": r["args"]["Total Allocated"],
             "stack": stack_of(profile, r)} for r in rows]


def read_events(program, path):
    lines = output(program, "dump", "--json", "--stacks", path).decode().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def wanted_phases(profile):
    rows = [r for r in profile["traceEvents"] if r["ph"] == "X" and r["cat"] == "user_annotation"]
    return sorted((BASE_NS + round(t * 1000), kind, r["name"])
                  for r in rows for kind, t in (("phase_push", r["ts"]), ("phase_pop", r["ts"] + r["dur"])))


def check_events(program, profile, path):
    """Each event, the level of its device after it, and the times of phases."""
    events, live, levels = read_events(program, path), {}, {}
    phases = [event for event in events if event["kind"] in ("phase_push", "phase_pop")]
    assert sorted((e["t_ns"], e["kind"], e["name"]) for e in phases) == wanted_phases(profile), phases
    memory = [event for event in events if event["kind"] in ("alloc", "free_requested")]
    initial = [event for event in memory if "initial" in event["flags"]]
    wanted = wanted_events(profile)
    assert len(memory) == len(initial) + len(wanted), (len(memory), len(initial), len(wanted))
    assert not [event for event in events if event["kind"] == "dropped"]
    for event in initial:
        live[event["device"], event["addr"]] = event["size"]
        levels[event["device"]] = levels.get(event["device"], 0) + event["size"]
    for event, want in zip(memory[len(initial):], wanted):
        for key in ("kind", "addr", "size", "device", "t_ns"):
            assert event[key] == want[key], (key, event, want)
        assert event.get("frames", []) == want["stack"], (event, want)
        key = event["device"], event["addr"]
        if event["kind"] == "alloc":
            assert key not in live, event
            live[key] = event["size"]
            levels[event["device"]] += event["size"]
        else:
            levels[event["device"]] -= live.pop(key)
        assert levels[event["device"]] == want["total"], (event, want)


def check_peaks(program, profile, path):
    report = json.loads(output(program, "analyze", "--json", path))
    for device in report["devices"]:
        rows = [row for row in wanted_events(profile) if row["device"] == device["device"]]
        first = rows[0]["total"] - (rows[0]["size"] if rows[0]["kind"] == "alloc" else -rows[0]["size"])
        peak = max(first, *(row["total"] for row in rows))
        assert device["summary"]["allocated_peak"]["bytes"] == peak, (device["summary"], peak)
    facts = json.loads(output(program, "info", "--json", path))["header"]
    assert facts["rank"] == 1 and facts["sizes_rounded"] and not facts["has_segments"], facts
    done = subprocess.run([program, "fit", path], capture_output=True, text=True, check=False)
    assert done.returncode and "no segments, streams or requested sizes" in done.stderr, done


def check_compressed(program, text, path, folder):
    plain = output(program, "dump", "--json", path)
    packed = folder / "packed.json.gz"
    packed.write_bytes(gzip.compress(text[:1000]) + gzip.compress(text[1000:]))
    assert output(program, "dump", "--json", packed) == plain
    subprocess.run(["zstd", "-q", "-f", path, "-o", folder / "packed.json.zst"], check=True)
    assert output(program, "dump", "--json", folder / "packed.json.zst") == plain
    assert output(program, "dump", "--json", "-", input=text) == plain


def check_cut(program, text, folder):
    """All but the last bytes, plain and compressed."""
    for name, content in (("cut.json", text[:-200]), ("cut.json.gz", gzip.compress(text)[:-20]),
                          ("short.json.gz", gzip.compress(text[:-200]))):
        path = folder / name
        path.write_bytes(content)
        done = subprocess.run([program, "dump", "--json", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and f"cut at byte {len(content)}" in done.stderr, done.stderr
        strict = subprocess.run([program, "info", "--strict", path], capture_output=True, text=True, check=False)
        assert strict.returncode == 5, strict


def check_deep(program, folder):
    """Ranges deeper than a stack may be. The import keeps how many are missing."""
    rows = [{"ph": "X", "cat": "cpu_op", "name": f"op{i}", "pid": 1, "tid": 7, "ts": i, "dur": 9000 - 2 * i, "args": {}}
            for i in range(DEEPEST + 3)] + [instant(4500000, 7, 512, 4096, 512, 1, 0)]
    (folder / "deep.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
    assert b"3 frames omitted from deep stacks" in output(program, "info", folder / "deep.json")
    output(program, "import", "-q", folder / "deep.json", "-o", folder / "deep.trace")
    assert b"3 frames of deep stacks" in output(program, "info", folder / "deep.trace")
    (folder / "torn.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        *rows, instant(4500001, 7, 512, -4096, 512, 2, 2000)]}))
    text = subprocess.run([program, "info", folder / "torn.json"], capture_output=True, text=True, check=False).stdout
    assert "1 unreadable records" in text and "cannot be read" not in text, text


CATEGORIES = ("PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "other")
ROLES = ("parameters", "optimizer state", "inputs", "temporaries", "activations", "gradients", "temporaries", "other")


def make_timeline(dice):
    """Rows as export_memory_timeline_raw orders them."""
    live = [[dice.choice((40, 512, 4096 * dice.randrange(1, 99))), dice.randrange(8)] for _ in range(9)]
    rows, t_ns = [[-1, 1, *block] for block in live], BASE_NS
    for _ in range(600):
        t_ns += dice.randrange(3) * 1000 + dice.randrange(2)
        block = dice.choice(live)
        if dice.random() < 0.4:
            live.append([dice.choice((40, 512, dice.randrange(1, 1 << 20))), dice.randrange(8)])
            rows.append([t_ns, 2, *live[-1]])
        elif dice.random() < 0.5:
            rows.append([t_ns, 3, -block[0], block[1]])
            block[1] = dice.choice((block[1], dice.randrange(8)))
            rows.append([t_ns, 3, *block])
        elif len(live) > 1:
            rows.append([t_ns, 4, -block[0], block[1]])
            live.remove(block)
    return rows


def check_timeline(program, rows, path):
    sums, most, peak, peak_sums = [0] * 8, [0] * 8, 0, None
    for i, (_, _, size, category) in enumerate(rows):
        sums[category] += size
        most[category] = max(most[category], sums[category])
        if rows[i][0] >= 0 and sum(sums) > peak or rows[i][0] < 0 <= rows[i + 1][0]:
            peak, peak_sums = sum(sums), list(sums)
    levels, highest, live = [0] * 8, [0] * 8, {}
    for event in read_events(program, path):
        if event["kind"] == "alloc":
            assert event["addr"] not in live, event
            live[event["addr"]] = (event["size"], CATEGORIES.index(event["name"]))
            levels[live[event["addr"]][1]] += event["size"]
        elif event["kind"] == "free_requested":
            size, category = live.pop(event["addr"])
            assert size == event["size"], event
            levels[category] -= size
        highest = [max(pair) for pair in zip(highest, levels)]
    assert levels == sums and highest == most, (levels, sums, highest, most)
    device, = json.loads(output(program, "analyze", "--json", path))["devices"]
    assert device["summary"]["allocated_peak"]["bytes"] == peak, (device["summary"], peak)
    wanted = {role: sum(s for s, r in zip(peak_sums, ROLES) if r == role) for role in ROLES}
    found = {row["role"]: row["bytes"] for row in device["roles_at_peak"]}
    assert found == {role: size for role, size in wanted.items() if size}, (found, wanted)


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "run.pt.trace.json"
        for seed in range(ROUNDS):
            profile = make(random.Random(seed))
            text = json.dumps(profile, indent=seed % 3 or None, ensure_ascii=bool(seed % 2)).encode()
            path.write_bytes(text)
            check_events(program, profile, path)
            check_peaks(program, profile, path)
        check_compressed(program, text, path, folder)
        check_cut(program, text, folder)
        check_deep(program, folder)
        for seed in range(ROUNDS):
            rows, path = make_timeline(random.Random(seed)), folder / "run.raw.json.gz"
            path.write_bytes(gzip.compress(json.dumps(rows, indent=seed % 3 or None).encode()))
            check_timeline(program, rows, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
