#!/usr/bin/env python3
"""The commands for gdb show what the program holds. check_gdb.py PROGRAM CAPTURE; 77 without gdb."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM, CAPTURE = sys.argv[1:3]
ROW = r"^ +\d+ +([0-9a-f]{6,}) +(\d+) (?:ALLOCATED|FREE|PENDING)"  # address, size
COMMANDS = pathlib.Path(__file__).with_name("memtrace.py")


def stop_at(place, command):
    words = ["gdb", "-batch", "-nx", "-x", COMMANDS, "-ex", f"break {place}", "-ex", "run", "-ex", command, "--args", PROGRAM, "replay", CAPTURE]
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    return done.stdout + done.stderr


def main():
    if not shutil.which("gdb"):
        return 77
    blocks = stop_at("mt_block_store_is_sound if store->live > 6", "mt-blocks *store")
    if "ptrace" in blocks and "not permitted" in blocks:
        return 77
    table = re.findall(ROW, blocks, re.M)
    live = int(re.search(r"^(\d+) blocks$", blocks, re.M).group(1))
    assert live > 6 and len(table) == live, blocks[-2000:]
    for segment in re.split(r"^segment, .*$", blocks, flags=re.M)[1:]:
        rows = [(int(a, 16), int(size)) for a, size in re.findall(ROW, segment, re.M)]
        assert rows and all(a + size <= b for (a, size), (b, _) in zip(rows, rows[1:])), segment
    # Optimized, `batch` is left in one of them: in the first by gcc, in the second by clang.
    events = [stop_at(f"{place} if batch->count > 3", "mt-events *batch 1 3") for place in ("plain_events", "decides")]
    rows = max((re.findall(r"^ +(\d+) ([A-Z_]+) +[0-9a-f]+ +\d+ ", text, re.M) for text in events), key=len)
    assert len(rows) == 3 and all(int(a[0]) < int(b[0]) for a, b in zip(rows, rows[1:])), events
    return 0


if __name__ == "__main__":
    sys.exit(main())
