#!/usr/bin/env python3
"""Predictions against PyTorch's own allocator, without a GPU (README.md): from one recorded run with default options
`memtrace fit` says the smallest limit under other options, `memtrace tune` what they reserve at the peak. Then the program
really runs under those options: the smallest limit under which it passes, to the MiB, and its peak have to be the same.
Where free blocks are equal, addresses decide, and those are the driver's: such a prediction says so, and may be off.

    limits.py [--build BUILD] [--out FOLDER] SITE_PACKAGES [CASE...]

Exits with 1 if a prediction is wrong. As `run` beside it; some ten runs of the program a case."""

import pathlib, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "gpu"))
from predictions import CONFS, Case  # noqa: E402
from paper import arguments_of, python_of  # noqa: E402

WORKLOADS = ROOT / "fixtures" / "workloads"
TRAIN, POOLS, HARD = WORKLOADS / "train.py", WORKLOADS / "pools_and_threads.py", HERE / "hard.py"

# Script, workload, its arguments; whether the allocator learns late that another stream is done with a block.
CASES = {
    "gpt_fp32": (TRAIN, "gpt", {"amp": False, "seed": 1, "steps": 4, "L": 6, "d": 512}, False),
    "gpt_seed3": (TRAIN, "gpt", {"seed": 3, "steps": 5}, False),
    "gpt_checkpoint": (TRAIN, "gpt", {"seed": 5, "ckpt": True, "steps": 5}, False),
    "seq2seq": (TRAIN, "seq2seq", {"steps": 2}, False),
    "churn_seed23": (TRAIN, "churn", {"seed": 23}, False),
    "leak": (TRAIN, "leak", {"steps": 6}, False),
    "leakval": (TRAIN, "leakval", {"steps": 4}, False),
    "streams": (TRAIN, "streams", {}, False),
    "streams_late": (TRAIN, "streams", {}, True),
    "graph": (TRAIN, "graph", {}, False),
    "mempool": (POOLS, "mempool", {}, False),
    "late": (HARD, "late", {}, True),
}


def case_of(arguments, name):
    script, workload, kw, is_late = CASES[name]
    environment = arguments.site | {"MEMTRACE_SIMULATED_EARLY_RELEASE": str(int(not is_late))}
    return Case(arguments.out / "limits" / name, arguments.memtrace, python_of(arguments.site_packages), name, script, workload, kw, environment)


def main():
    arguments = arguments_of(__doc__, CASES)
    good = total = 0
    for name in arguments.cases or CASES:
        case = case_of(arguments, name)
        case.record()
        for conf in CONFS:
            holds, text = case.check(conf)
            print(f"{'ok  ' if holds else 'DIFF'} {name:15} {conf or '(defaults)':30} {text}", flush=True)
            total += 1
            good += holds
    print(f"{good} of {total} predictions hold")
    sys.exit(0 if good == total else 1)


main()
