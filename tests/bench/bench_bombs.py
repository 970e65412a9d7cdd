#!/usr/bin/env python3
"""bench_bombs.py PROGRAM MAKE_BOMB [--factor F] [NAME...]: every input of bombs.py at three sizes,
under each command that reads it.

Prints, for the largest size: the input's size, and per command processor time, peak memory and the
answer's size as multiples of the input, and how each grows: the exponent of the number of things,
1 = linear. A '!' marks what grows faster than n^1.3 and takes longer than half a second, and what
does not end in 60 seconds. Times of a busy machine are too long; exponents suffer less.
"""
import math
import multiprocessing
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import bombs

LIMIT_S = 60
SUSPECT, MIN_S = 1.3, 0.5


def run(words, out):
    """(processor seconds, peak bytes, bytes of the answer, status); None if it took too long."""
    with open(out, "wb") as answer:
        process = subprocess.Popen(words, stdout=answer, stderr=subprocess.DEVNULL)
        begin = time.monotonic()
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begin > 4 * LIMIT_S or cpu_seconds(process.pid) > LIMIT_S:
                process.kill()
                os.wait4(process.pid, 0)
                return None
            time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, folder_bytes(out), process.returncode


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def folder_bytes(out):
    total = out.stat().st_size
    for made in out.parent.glob("made*"):
        for path in [made] if made.is_file() else made.rglob("*"):
            total += path.stat().st_size if path.is_file() else 0
        subprocess.run(["rm", "-rf", made], check=True)
    return total


def exponent(small, large, ratio):
    return math.log(large / small) / math.log(ratio) if small > 0 and large > 0 else 0.0


def make_one(maker, name, size, work):
    return bombs.INPUTS[name][2](maker, work, size)


def made_apart(maker, name, size, work):
    """Makes an input in another process: a program's peak memory includes what the process that
    started it had, and this one must stay small (16 MiB)."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(make_one, (maker, name, size, work))


def measure(program, maker, name, factor, work):
    n, commands, _ = bombs.INPUTS[name]
    n = max(8, int(n * factor))
    results = {command: [] for command in commands}
    for size in (n // 2, n, 2 * n):
        words = made_apart(maker, name, size, work)
        input_bytes = sum(p.stat().st_size for p in words if isinstance(p, pathlib.Path))
        for command in commands:
            if results[command] and results[command][-1] is None:
                continue
            line = bombs.command_words(command, words, work / "made")
            results[command].append(run([program, *line], work / "out"))
    return 2 * n, input_bytes, results


def describe(name, things, input_bytes, results):
    rows = 0
    for command, runs in results.items():
        last = runs[-1]
        if last is None:
            print(f"| {name} | {things:,} | {input_bytes:,} | {command} | > {LIMIT_S} s | | | ! |", flush=True)
            rows += 1
            continue
        ratio = 2 ** (len(runs) - 1)
        growth = exponent(max(runs[0][0], 0.01), max(last[0], 0.01), ratio)
        bytes_growth = exponent(runs[0][2], last[2], ratio)
        memory_growth = exponent(runs[0][1], last[1], ratio)
        bad = (growth > SUSPECT or memory_growth > SUSPECT) and last[0] > MIN_S or bytes_growth > SUSPECT
        bad = bad or last[3] not in (0, 1, 2, 3)
        print(f"| {name} | {things:,} | {input_bytes:,} | {command} | {last[0]:.2f} s, n^{growth:.1f} "
              f"| {last[1] / 2**20:,.0f} MiB, {last[1] / input_bytes:,.0f}x, n^{memory_growth:.1f} "
              f"| {last[2]:,} | {'!' if bad else ''} |", flush=True)
        rows += bad
    return rows


def main(program, maker, *words):
    factor = float(words[1]) if words[:1] == ("--factor",) else 1.0
    names = words[2:] if words[:1] == ("--factor",) else words
    print("| input | things | bytes | command | time | memory | answer | |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        bad = sum(describe(name, *measure(program, maker, name, factor, work))
                  for name in names or bombs.INPUTS)
    print(f"\n{bad} suspicious")
    return 1 if bad else 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main(*sys.argv[1:]))
