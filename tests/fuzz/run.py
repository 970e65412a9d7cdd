#!/usr/bin/env python3
"""Runs the fuzz targets of a build (cmake --preset fuzz).

    run.py BUILD MINUTES [TARGET...]    each target for its share of the time, one a core
    run.py BUILD zip FILE.zip TARGET    its seeds and corpus, as OSS-Fuzz wants them
    run.py BUILD pack [TARGET...]       puts what BUILD has learned into corpus/,
                                        minimized and bounded

What is learned stays in BUILD/corpus. An input that crashes a target, leaks, or takes
too long is kept in BUILD/crashes."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import corpus

HERE = pathlib.Path(__file__).resolve().parent
# Targets that share seeds with others; the first byte of cli is the command.
SEEDS = {"input": ("input", "pickle", "trace"), "cli": ("pickle", "trace"), "replay": (), "documents": ()}
PREFIX = {"cli": range(34)}
SLOW_TARGETS = ("cli", "documents", "elf", "input", "tape")  # a longer share
TIMEOUT_S, MEMORY_MB, PACKED_BYTES = 20, 2560, 49152


def targets_of(build, wanted):
    known = sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.c"))
    for target in wanted:
        if target not in known:
            sys.exit(f"run.py: no target is called '{target}'; there are: {' '.join(known)}")
    return [target for target in wanted or known if (build / f"fuzz_{target}").exists()]


def seed_files(target):
    names = SEEDS.get(target, (target,))
    return sorted(path for name in names for path in (HERE / "seeds").glob(f"{name}_*"))


def seed_inputs(target):
    for path in seed_files(target):
        for first in PREFIX.get(target, (None,)):
            yield (b"" if first is None else bytes([first])) + path.read_bytes()
    packed = HERE / "corpus" / f"{target}.corpus"
    if packed.exists():
        yield from corpus.read_packed(packed)


def prepare(build, target):
    folder = build / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for data in seed_inputs(target):
        path = folder / corpus.name_of(data)
        if not path.exists():
            path.write_bytes(data)
    return folder


def command_of(build, target, *more):
    words = [str(build / f"fuzz_{target}"), f"-timeout={TIMEOUT_S}",
             f"-report_slow_units={TIMEOUT_S}", f"-rss_limit_mb={MEMORY_MB}"]
    options = HERE / "options" / f"{target}.options"
    dictionary = HERE / "dict" / f"{target}.dict"
    if options.exists():
        words += ["-" + line.replace(" ", "") for line in options.read_text().splitlines() if "=" in line]
    if dictionary.exists():
        words.append(f"-dict={dictionary}")
    return words + list(more)


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


class Outcome:
    def __init__(self, target, seconds, text, crashes):
        self.target = target
        self.executions = number(r"stat::number_of_executed_units:\s*(\d+)", text)
        self.rate = self.executions // max(seconds, 1)
        self.coverage = number(r"cov: (\d+)", text)
        self.crashes = crashes


def fuzz(build, target, seconds):
    folder, crashes = prepare(build, target), build / "crashes"
    crashes.mkdir(parents=True, exist_ok=True)
    before = set(crashes.glob(f"{target}-*"))
    done = subprocess.run(
        command_of(build, target, str(folder), f"-max_total_time={seconds}", "-print_final_stats=1",
                   f"-artifact_prefix={crashes}/{target}-"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    (build / "crashes" / f"{target}.log").write_text(text)
    found = sorted(set(crashes.glob(f"{target}-*")) - before)
    if done.returncode and not found:
        found = [build / "crashes" / f"{target}.log"]
    return Outcome(target, seconds, text, found)


def share_of(targets, minutes, cores):
    weights = {target: 3 if target in SLOW_TARGETS else 1 for target in targets}
    unit = minutes * 60 * min(cores, len(targets)) / sum(weights.values())
    return {target: max(1, round(unit * weight)) for target, weight in weights.items()}


def fuzz_all(build, minutes, targets):
    cores = os.cpu_count() or 1
    seconds = share_of(targets, minutes, cores)
    total, crashes = 0, []
    print(f"{'target':<20}{'executions':>14}{'exec/s':>10}{'coverage':>10}{'crashes':>9}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        order = sorted(targets, key=lambda target: -seconds[target])
        for outcome in pool.map(lambda target: fuzz(build, target, seconds[target]), order):
            print(f"{outcome.target:<20}{outcome.executions:>14,}{outcome.rate:>10,}"
                  f"{outcome.coverage:>10,}{len(outcome.crashes):>9}", flush=True)
            total += outcome.executions
            crashes += [(outcome.target, path) for path in outcome.crashes]
    print(f"{'total':<20}{total:>14,}")
    for target, path in crashes:
        print(f"\n{target} failed. To repeat it: {' '.join(command_of(build, target))} {path}")
    return 1 if crashes else 0


def pack_all(build, targets):
    for target in targets:
        folder, merged = prepare(build, target), build / "merged" / target
        merged.mkdir(parents=True, exist_ok=True)
        for path in merged.iterdir():
            path.unlink()
        subprocess.run(command_of(build, target, "-merge=1", str(merged), str(folder)),
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        packed = HERE / "corpus" / f"{target}.corpus"
        corpus.pack(merged, packed, PACKED_BYTES)
        count = sum(1 for _ in corpus.read_packed(packed))
        print(f"{target:<20}{count:>8,} of {len(list(merged.iterdir())):,} inputs"
              f"{packed.stat().st_size:>10,} bytes", flush=True)
    return 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, what = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    if what == "zip":
        return corpus.make_zip(sys.argv[3], seed_inputs(sys.argv[4]))
    targets = targets_of(build, sys.argv[3:])
    if what == "pack":
        return pack_all(build, targets)
    if not re.fullmatch(r"\d+(\.\d+)?", what) or float(what) <= 0:
        sys.exit(f"run.py: '{what}' is no number of minutes")
    return fuzz_all(build, float(what), targets)


if __name__ == "__main__":
    sys.exit(main())
