#!/usr/bin/env python3
"""check_decoder.py PROGRAM: the decoder that was written from the format's page
and `memtrace dump` agree on every capture and recorded trace; traces of old versions still read.
Traces of captures have what the snapshot counted in each segment at the end."""
import json
import pathlib
import pickle
import sys
import tempfile

import trace_decoder
from support.program import fast_program, output

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
LONG = 15000  # events of captures that are compared without their stacks


def dump(program, trace, *options):
    return output(program, "dump", "--json", *options, trace)


def first_difference(decoded, dumped):
    for number, (left, right) in enumerate(zip(decoded, dumped)):
        if left != right:
            return f"event {number}: decoder {left}, program {right}"
    return None if len(decoded) == len(dumped) else f"{len(decoded)} and {len(dumped)} events"


def compare(program, trace, events=None):
    events = events or list(trace_decoder.decode(trace))
    stacks = len(events) < LONG
    decoded = [trace_decoder.line(event, symbols, stacks) for event, symbols in events]
    lines = dump(program, trace, *(["--stacks"] if stacks else [])).splitlines()
    return first_difference(decoded, json.loads(b"[" + b",".join(lines) + b"]"))


def segment_ends(capture):
    """The rows of the table of ends, without the heap, of what a snapshot counts."""
    snapshot = pickle.loads(output("zstd", "-dcq", "--", capture))
    ends = [(segment["device"], segment["address"], segment["total_size"],
             *(segment.get(level) for level in ("allocated_size", "active_size", "requested_size")))
            for segment in snapshot["segments"]]
    with_segments = {end[0] for end in ends}
    return sorted(ends + [(device, 0, 0, 0, 0, 0) for device, trace in enumerate(snapshot["device_traces"])
                          if trace and device not in with_segments])


def check_capture(program, capture, folder):
    trace = folder / "capture.trace"
    output(program, "import", "--quiet", capture, "-o", trace)
    events = list(trace_decoder.decode(trace))
    symbols = max(events, key=lambda one: one[0]["seq"])[1]
    ends = list(symbols.tables[9].values())
    if {symbols.text(symbols.tables[7][heap]) for _, heap, *_ in ends} != {"pytorch"}:
        return "ends of another heap"
    if sorted((device, *rest) for device, _, *rest in ends) != segment_ends(capture):
        return "other levels at the end than in the snapshot"
    return compare(program, trace, events)


def check_old(program, trace):
    wanted = trace.with_suffix(".jsonl").read_bytes()
    if dump(program, trace, "--stacks") != wanted:
        return "dump is not what it was"
    return compare(program, trace)


def main(program):
    checks = [(trace, check_old, ()) for trace in sorted(FIXTURES.glob("traces/v*.zst"))]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        checks += [(trace, compare, ()) for trace in sorted(FIXTURES.glob("recorded/*.zst"))]
        checks += [(capture, check_capture, (pathlib.Path(folder),))
                   for capture in sorted(FIXTURES.glob("captures/*.pickle.zst"))]
        for path, check, more in checks:
            complaint = check(program, path, *more)
            print(f"{path.name}: {complaint or 'agrees'}", flush=True)
            failures += complaint is not None
    return 1 if failures or len(checks) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1])))
