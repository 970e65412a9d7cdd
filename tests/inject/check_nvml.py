#!/usr/bin/env python3
"""What the driver says that a process uses is in its trace.

    check_nvml.py PROGRAM INJECT STANDIN_FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CONTEXT = 300 << 20
PAGE = 2 << 20
MEMORY = 8 << 30
OTHERS = 1 << 30  # of another process, as the stand-in has it

failures = []


def run(program, inject, folder, **settings):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MEMTRACE_")}
    with tempfile.TemporaryDirectory() as out:
        environment.update({
            "MEMTRACE_OUTPUT": f"{out}/", "MEMTRACE_STACKS": "none", "MEMTRACE_FLUSH_MS": "5",
            "MEMTRACE_SAMPLE_HZ": "100", "MEMTRACE_SIMULATED_CONTEXT": str(CONTEXT),
            "MEMTRACE_SIMULATED_MEMORY": str(MEMORY), "LD_LIBRARY_PATH": f"{folder}:{inject.parent}",
            "CUDA_INJECTION64_PATH": str(inject), "LD_PRELOAD": inject.name, **settings})
        done = subprocess.run([folder / "lookup_program", "dlsym", "1000", "1000"],
                              env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode or done.stderr:
            failures.append(f"status {done.returncode}: {done.stderr}")
        trace, = Path(out).glob("*.trace.zst")
        info, dump = (subprocess.run([program, *words, trace], capture_output=True, text=True,
                                     check=True).stdout
                      for words in (["info", "--json"], ["dump", "--json"]))
    return json.loads(info), [json.loads(line) for line in dump.splitlines()]


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    program, inject, folder = (Path(word).resolve() for word in sys.argv[1:])
    info, events = run(program, inject, folder)
    samples = {(event["size"], event["aux"], event["device"]) for event in events
               if event["kind"] == "memory_sample"}
    used = CONTEXT + PAGE
    if (used, MEMORY - OTHERS - used, 0) not in samples:
        failures.append(f"samples are {sorted(samples)}")
    if "nvml" not in (info["header"]["sources"] or "").split(","):
        failures.append(f"no source: {info}")
    if not any(event["kind"] == "alloc" and event["size"] == 7 for event in events):
        failures.append("no driver events beside the samples")
    _, events = run(program, inject, folder, MEMTRACE_SAMPLE_HZ="0")
    if any(event["kind"] == "memory_sample" for event in events):
        failures.append("there are samples, though none were requested")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
