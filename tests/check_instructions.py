#!/usr/bin/env python3
"""check_instructions.py PROGRAM CAPTURE: the speed of build/optimized/memtrace (with assertions), in
instructions, which do not depend on the load of the machine. Valgrind counts them. Fails above a limit, and below 60% of it:
lower the limit then. The limits leave a quarter for other compilers and C libraries."""
import pathlib
import re
import subprocess
import sys
import tempfile

# Millions of instructions with fixtures/captures/seq2seq.pickle.zst, of "optimal" with write_steps. Give the reason when
# you raise one.
LIMITS = {"info": 52, "import": 80, "analyze": 790, "replay": 36, "optimal": 70}
LEAST = 0.6


def count(words):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out.%p", *words],
                              check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return sum(int(found.replace(",", "")) for found in re.findall(r"refs:\s+([\d,]+)", done.stderr)) / 1e6


def write_steps(path, steps=40, layers=250):
    """Buffers of equal steps: a layer's output lives until its backward pass; both have temporary memory."""
    lines = ["lower,upper,size"]
    for start in range(0, steps * 8 * layers, 8 * layers):
        for layer in range(layers):
            forward, backward = start + 3 * layer, start + 8 * layers - 3 * layer
            lines += [f"{forward},{backward},{512 * (1 + layer * 7919 % 97)}",
                      f"{forward + 1},{forward + 3},{512 * (1 + layer * 104729 % 89)}",
                      f"{backward - 3},{backward - 1},{512 * (1 + layer * 1299709 % 83)}"]
    path.write_text("\n".join(lines))


def main(program, capture):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        trace, steps = pathlib.Path(folder, "t.trace"), pathlib.Path(folder, "steps.csv")
        write_steps(steps)
        commands = {"info": [capture], "import": [capture, "--no-summary", "-o", trace], "analyze": [capture], "replay": [trace],
                    "optimal": [steps, "--time", "none"]}
        for name, words in commands.items():
            millions = count([program, name, "--quiet", *map(str, words)])
            good = LEAST * LIMITS[name] <= millions <= LIMITS[name]
            failed |= not good
            print(f"{name}: {millions:.0f} million instructions, limit {LIMITS[name]}{'' if good else ': FAILED'}")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
