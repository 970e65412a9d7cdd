#!/usr/bin/env python3
"""check_decoder.py PROGRAM: the decoder that was written from the format's page
and `memtrace dump` agree on every capture and recorded trace; traces of old versions still read."""
import json
import pathlib
import subprocess
import sys
import tempfile

import trace_decoder

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
LONG = 15000  # events of captures that are compared without their stacks


def run(*words):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True).stdout


def dump(program, trace, *options):
    return run(program, "dump", "--json", *options, trace)


def first_difference(decoded, dumped):
    for number, (left, right) in enumerate(zip(decoded, dumped)):
        if left != right:
            return f"event {number}: decoder {left}, program {right}"
    return None if len(decoded) == len(dumped) else f"{len(decoded)} and {len(dumped)} events"


def compare(program, trace):
    events = list(trace_decoder.decode(trace))
    stacks = len(events) < LONG
    decoded = [trace_decoder.line(event, symbols, stacks) for event, symbols in events]
    lines = dump(program, trace, *(["--stacks"] if stacks else [])).splitlines()
    return first_difference(decoded, [json.loads(line) for line in lines])


def check_capture(program, capture, folder):
    trace = folder / "capture.trace"
    run(program, "import", "--quiet", capture, "-o", trace)
    return compare(program, trace)


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
    sys.exit(main(sys.argv[1]))
