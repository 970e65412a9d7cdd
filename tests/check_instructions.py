#!/usr/bin/env python3
"""check_instructions.py PROGRAM CAPTURE: the speed of build/optimized/memtrace (with assertions), in
instructions, which do not depend on the load of the machine. Valgrind counts them. Fails above a limit, and below 60% of it:
lower the limit then. The limits leave a quarter for other compilers and C libraries."""
import pathlib
import re
import subprocess
import sys
import tempfile

# Millions of instructions with fixtures/captures/seq2seq.pickle.zst. Give the reason when you raise one.
LIMITS = {"info": 52, "import": 80, "analyze": 790, "replay": 36}
LEAST = 0.6


def count(words):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out.%p", *words],
                              check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return sum(int(found.replace(",", "")) for found in re.findall(r"refs:\s+([\d,]+)", done.stderr)) / 1e6


def main(program, capture):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder, "t.trace")
        commands = {"info": [capture], "import": [capture, "--no-summary", "-o", trace], "analyze": [capture], "replay": [trace]}
        for name, words in commands.items():
            millions = count([program, name, "--quiet", *map(str, words)])
            good = LEAST * LIMITS[name] <= millions <= LIMITS[name]
            failed |= not good
            print(f"{name}: {millions:.0f} million instructions, limit {LIMITS[name]}{'' if good else ': FAILED'}")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
