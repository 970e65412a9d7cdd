#!/usr/bin/env python3
"""check_summaries.py PROGRAM [--all]: the summaries of the small fixtures, or of all.

The decoder that was written from the format's page reads the same as `memtrace info --json --all` prints for
each, field by field; sums close, and figures are those of `memtrace analyze --json`; the same trace
gives the same bytes twice, and another hash key changes nothing."""
import csv
import json
import os
import pathlib
import sys
import tempfile

import summary_decoder
from support.program import fast_program, output

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
LARGEST_BYTES = 64 * 1024
SMALL_BYTES = 8000  # of a fixture
ORACLES = ("seq2seq.pickle.zst", "twogpu.pickle.zst", "oom_adam.pickle.zst", "leak.pickle.zst")
COLUMNS, LEAVES, STEPS = 512, 256, 256


def check_decoder(program, summary):
    said = json.loads(output(program, "info", "--json", "--all", summary))
    decoded = summary_decoder.decode(summary)
    for key in ("records", "paths"):
        if said[key] != decoded[key]:
            return f"{key} differ: {json.dumps(said[key])[:300]} | {json.dumps(decoded[key])[:300]}"
    return None if said["bytes"] == summary.stat().st_size else "the size is wrong"


def check_sums(record):
    peak = record["allocated_peak.bytes"]
    roles = [value for name, value in record.items() if name.startswith("role_bytes.")]
    leaves = [0] * len(roles)
    for leaf in record["leaves"]:
        leaves[leaf["role"]] += leaf["bytes"]
    if len(roles) != 10 or sum(roles) != peak or leaves != roles:
        return f"roles {roles}, leaves {leaves}, peak {peak}"
    if sum(owner["bytes"] for owner in record["owners"]) != record["outside_bytes"]:
        return "owners do not sum to what is outside"
    return None


def check_course(record):
    columns = record["columns"]
    if len(columns) != (COLUMNS if record["end_t_ns"] > record["begin_t_ns"] else 0):
        return f"{len(columns)} columns"
    for name in ("allocated", "reserved"):
        most = max((column[f"{name}_bytes"] for column in columns), default=None)
        if most is not None and most != record[f"{name}_peak.bytes"]:
            return f"the highest column of {name} is {most}, its peak {record[f'{name}_peak.bytes']}"
        if any(step[f"{name}_peak_bytes"] > record[f"{name}_peak.bytes"] for step in record["steps"]):
            return f"a step is above the peak of {name}"
    if len(record["leaves"]) > LEAVES or len(record["steps"]) > STEPS:
        return "too many leaves or steps"
    return None


def check_device(record, device):
    for peak in ("requested_peak", "allocated_peak", "active_peak", "reserved_peak"):
        ours, theirs = record[f"{peak}.bytes"], device["summary"][peak]["bytes"]
        if ours != theirs:
            return f"{peak} is {ours}, analyze says {theirs}"
    need = device.get("need")
    if record["allocator_need_is_known"] != (need is not None) or \
       need and need["limit_bytes"] + need["above_limit_bytes"] != record["allocator_need_bytes"]:
        return f"the need is {record['allocator_need_bytes']}, analyze says {need}"
    card = device["card"]
    if card and (record["needed_bytes"], record["needed_is_known"]) != (card["bytes"], not card["at_least"]):
        return f"the card is {record['needed_bytes']}, analyze says {card}"
    if (record["outcome"] == 2) != any(oom["fatal"] for oom in device["ooms"]) and \
       not record["is_driver_level"]:
        return f"the outcome is {record['outcome']}, analyze says {device['ooms']}"
    return None


def check_analysis(program, trace, decoded):
    devices = json.loads(output(program, "analyze", "--json", "--all", trace))["devices"]
    records = decoded["records"]
    if [record["device"] for record in records] != [device["device"] for device in devices]:
        return "other devices than analyze has"
    for record, device in zip(records, devices):
        complaint = check_sums(record) or check_course(record) or check_device(record, device)
        if complaint:
            return complaint
    return None


def columns_of(rows, record):
    """The same columns from the counters after each event (`replay --counters`)."""
    begin, length = record["begin_t_ns"], record["end_t_ns"] - record["begin_t_ns"]
    borders = [begin - -length * i // COLUMNS for i in range(1, COLUMNS)]
    columns, level = [[0, 0]], [0, 0]
    for row in rows:
        while len(columns) < COLUMNS and int(row["t_ns"]) >= borders[len(columns) - 1]:
            columns.append(list(level))
        level = [int(row["allocated"]), int(row["reserved"])]
        columns[-1] = [max(pair) for pair in zip(columns[-1], level)]
    columns += [list(level)] * (COLUMNS - len(columns))
    return [{"allocated_bytes": one, "reserved_bytes": other} for one, other in columns]


def step_hash_of(events, device):
    """FNV-1a of what the last whole step requested."""
    found, sizes = None, None
    for event in events:
        is_step = (event["name"] or "").startswith("step#")
        if event["kind"] == "phase_push" and is_step:
            sizes = []
        elif event["kind"] == "phase_pop" and is_step and sizes is not None:
            found, sizes = sizes, None
        elif event["kind"] == "alloc" and event["device"] == device and sizes is not None:
            sizes.append(event["size"])
    value = 0xcbf29ce484222325
    for byte in b"".join(size.to_bytes(8, "little") for size in found or []):
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return value if found else 0


def check_oracles(program, name, folder):
    """Columns and hash, from other commands' answers."""
    trace, counters = folder / "run.trace.zst", folder / "counters.csv"
    output(program, "import", "--quiet", "--force", FIXTURES / "captures" / name, "-o", trace)
    output(program, "replay", trace, "--counters", counters)
    rows = list(csv.DictReader(counters.open()))
    events = [json.loads(line) for line in output(program, "dump", "--json", trace).splitlines()]
    names_steps = any((event["name"] or "").startswith("step#") for event in events)
    for record in summary_decoder.decode(f"{trace}.mtsum")["records"]:
        device = record["device"]
        own = [row for row in rows if int(row["device"]) == device]
        if columns_of(own, record) != record["columns"]:
            return "the columns are not those of the counters"
        if names_steps and step_hash_of(events, device) != record["step_hash"]:
            return "the hash of the last whole step is another"
    return None


def check(program, fixture, folder):
    trace, again = folder / "run.trace.zst", folder / "again" / "run.trace.zst"
    summary = pathlib.Path(f"{trace}.mtsum")
    output(program, "import", "--quiet", "--force", fixture, "-o", trace, env={**os.environ, "MEMTRACE_DEBUG_HASH_KEY": "1"})
    if not summary.exists():
        return "import wrote no summary"
    first = summary.read_bytes()
    again.parent.mkdir(exist_ok=True)
    again.write_bytes(trace.read_bytes())
    output(program, "import", "--quiet", "--force", trace, "-o", again, env={**os.environ, "MEMTRACE_DEBUG_HASH_KEY": "2"})
    if again.read_bytes() == trace.read_bytes() and \
       pathlib.Path(f"{again}.mtsum").read_bytes() != first:
        return "the same trace gave other bytes"
    if len(first) > LARGEST_BYTES:
        return f"the summary has {len(first)} bytes"
    complaint = check_decoder(program, summary)
    return complaint or check_analysis(program, trace, summary_decoder.decode(summary))


def main(program, *options):
    small = SMALL_BYTES if "--all" not in options else 1 << 30
    fixtures = [path for name in ("captures", "findings", "recorded", "graph_trees", "no_history")
                for path in sorted((FIXTURES / name).glob("*.zst"))
                if not path.name.endswith((".csv.zst", ".json.zst")) and path.stat().st_size < small]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for path, how in [*((path, check) for path in fixtures),
                          *((pathlib.Path(name), check_oracles) for name in ORACLES)]:
            complaint = how(program, path, pathlib.Path(folder))
            print(f"{path.name}: {complaint or 'agrees'}", flush=True)
            failures += complaint is not None
    return 1 if failures or len(fixtures) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), *sys.argv[2:]))
