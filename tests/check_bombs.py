#!/usr/bin/env python3
"""check_bombs.py PROGRAM MAKE_BOMB: hostile inputs cost no more than in proportion to their size.

Each bomb is made with n and with 4 n things. Each command has an answer, or refuses what is no snapshot.
Measured is work that is the same in every run: the bytes of the answer, and the memory that the program's
own code takes, which --max-memory bounds. Bytes may grow GROWTH times, and a run must fit into BASE and the
bytes for each thing. The larger bomb is for the program of support/program.py, because sanitizers find no
more in it than in the smaller one. bench_bombs.py measures time, on all bombs."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bench"))
import bombs  # noqa: E402
from support.program import fast_program  # noqa: E402

TIMES = 4
GROWTH = 2 * TIMES  # of an answer; n^1.5
SMALL = 64 << 10  # answers below this are not compared

# bomb -> (n, bytes of memory for each thing at 4 n, beside BASE)
CASES = {"phases": (500, 8192), "nested_names": (500, 8192), "steps": (250, 65536),
         "sites": (500, 8192), "streams": (500, 16384), "holes": (1000, 4096),
         "segments": (1000, 8192), "mapped": (1000, 8192), "names_long": (5, 1 << 20), "entries": (500, 8192), "one_deep_stack": (500, 8192), "origins": (2000, 8192),
         "texts": (5000, 1024), "nested_lists": (5000, 1024), "zstd_lists": (50000, 256)}
BASE = 32 << 20
COMMANDS = ("analyze", "json", "replay", "lines", "folded", "speedscope", "live", "dump", "info",
            "import", "icicle", "blocks")
REFUSED = ("texts", "nested_lists", "zstd_lists")  # pickles, but no snapshots
LEAST = 20  # bytes of an answer, so that a program that does nothing is found
SILENT = {("mapped", "folded")}  # there is no stack to print


def run(program, name, words, folder, most_bytes):
    """(bytes that a command prints and writes, its status, its errors)"""
    out, answer = folder / "made", folder / "answer"
    line = bombs.command_words(name, words, out)
    with open(answer, "wb") as file:
        done = subprocess.run([program, *line, "--max-memory", str(most_bytes)], stdout=file,
                              stderr=subprocess.PIPE, check=False)
    total = answer.stat().st_size
    for path in folder.glob("made*"):
        total += path.stat().st_size
        path.unlink()
    return total, done.returncode, done.stderr


def fault(name, command, total, status, errors):
    """What is wrong with a run, or None."""
    if b"--max-memory" in errors:
        return f"takes too much memory: {errors[-300:]}"
    if name in REFUSED:
        is_refusal = status == 3 and b"not a PyTorch memory snapshot" in errors
        return None if is_refusal else f"no refusal, but status {status}: {errors[-300:]}"
    if status:
        return f"status {status}: {errors[-300:]}"
    return f"an answer of {total} bytes" if total < LEAST and (name, command) not in SILENT else None


def check(program, maker, name, folder):
    n, bytes_per_thing = CASES[name]
    _, known, make = bombs.INPUTS[name]
    for command in (word for word in known if word in COMMANDS):
        sizes = []
        for things, which in ((n, program), (TIMES * n, fast_program(program))):
            words = make(maker, folder, things)
            size, *end = run(which, command, words, folder, BASE + bytes_per_thing * things)
            wrong = fault(name, command, size, *end)
            if wrong:
                yield f"{command} of {things} {name}: {wrong}"
            sizes.append(max(size, SMALL))
        if sizes[1] > GROWTH * sizes[0]:
            yield f"{command} of {name}: {sizes[0]} bytes of {n}, {sizes[1]} of {TIMES * n}"


def main(program, maker):
    wrong = []
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            wrong += check(program, maker, name, pathlib.Path(folder))
    print("\n".join(wrong) or f"{len(CASES)} bombs, all within their bounds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
