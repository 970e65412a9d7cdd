#!/usr/bin/env python3
"""Predictions of memory pools against PyTorch's own allocator, without a GPU (README.md): a program is recorded once, as it
is; `memtrace replay --pool` and `memtrace fit --pool` say what it would reserve, and the smallest limit, if one of its
functions allocated from a torch.cuda.MemPool of its own. Then it really does (pooled.py): its peak, and that it passes at
that limit and not 1 MiB below, have to be the same. Where free blocks are equal, addresses decide, and those are the
driver's: such a prediction says so, and may be off.

    pools.py [--build BUILD] [--out FOLDER] SITE_PACKAGES [CASE...]

Exits with 1 if a prediction is wrong. Three runs of the program a case and setting."""

import json, os, pathlib, subprocess, sys

from paper import arguments_of, python_of

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
CONFS = ["", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4", "garbage_collection_threshold:0.6"]
SMALL_GPT = {"steps": 3, "L": 3, "d": 256, "bs": 4, "ctx": 512}

# Workload of pooled.py, its arguments, the functions that get a pool, and how memtrace selects them.
CASES = {
    "scratch": ("mixed", {}, "scratch", "site=~^scratch$"),
    "kept": ("mixed", {}, "kept", "site=~^kept$"),
    "both": ("mixed", {"seed": 8}, "scratch,kept", "site=~^(scratch|kept)$"),
    "embedding": ("gpt", SMALL_GPT, "Embedding", "site=~sparse.py:"),
    "optimizer": ("gpt", SMALL_GPT, "step", "site=~adamw?.py:"),
}


class Case:
    def __init__(self, arguments, name):
        self.arguments, self.name = arguments, name
        self.workload, self.kw, self.functions, self.selector = CASES[name]
        self.folder = arguments.out / "pools" / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, out, conf="", pooled=False, cap_mib=None):
        """What the program itself counted."""
        own = self.arguments.site | ({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {})
        own |= {"POOLED": self.functions} if pooled else {}
        command = [python_of(self.arguments.site_packages), str(HERE / "pooled.py"), self.workload, str(self.folder / out)]
        command += ["--kw", json.dumps(self.kw)] + (["--cap-mib", str(cap_mib)] if cap_mib else [])
        with open(self.folder / "log", "a") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, env=os.environ | own)
        return json.loads((self.folder / out).with_suffix(".truth.json").read_text())

    def ask(self, command, conf):
        answer = subprocess.run([self.arguments.memtrace, command, "-q", "--json", str(self.folder / "plain.pickle"), "-p", f"pytorch:{conf}",
                                 "--pool", self.selector], check=True, capture_output=True, text=True)
        return json.loads(answer.stdout)["policies"][0]

    def passes(self, conf, cap_mib):
        return self.run("limited", conf, True, cap_mib)["oom"] is None

    def check(self, conf):
        replay, limit = self.ask("replay", conf), self.ask("fit", conf)["fit_bytes"] // MIB
        real = max(row["reserved_peak"] for row in self.run("pooled", conf, True)["rows"])
        edge = self.passes(conf, limit) and not self.passes(conf, limit - 1)
        good = replay["reserved_peak_bytes"] == real and edge
        ties = "" if good else f"; {replay['address_ties']} choices fell by address"
        print(f"{'ok  ' if good else 'DIFF'} {self.name:10} {conf or '(defaults)':36} peak {replay['reserved_peak_bytes']}, real {real}; "
              f"limit {limit} MiB {'is real' if edge else 'is not'}{ties}", flush=True)
        return good


def main():
    arguments = arguments_of(__doc__, CASES)
    good = total = 0
    for name in arguments.cases or CASES:
        case = Case(arguments, name)
        case.run("plain")
        for conf in CONFS:
            total += 1
            good += case.check(conf)
    print(f"{good} of {total} predictions hold")
    sys.exit(0 if good == total else 1)


main()
