#!/usr/bin/env python3
"""Predictions against PyTorch's own allocator, without a GPU (README.md): from one recorded run with default options
`memtrace fit` says the smallest limit under other options, `memtrace tune` what they reserve at the peak. Then the program
really runs under those options: the smallest limit under which it passes, to the MiB, and its peak have to be the same.
Where free blocks are equal, addresses decide, and those are the driver's: such a prediction says so, and may be off.

    limits.py [--build BUILD] [--out FOLDER] SITE_PACKAGES [CASE...]

Exits with 1 if a prediction is wrong. As `run` beside it; some ten runs of the program a case."""

import argparse, json, os, pathlib, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORKLOADS = ROOT / "fixtures" / "workloads"
TRAIN, POOLS, HARD = WORKLOADS / "train.py", WORKLOADS / "pools_and_threads.py", HERE / "hard.py"
MIB = 1 << 20
FAR = 16  # MiB below a prediction where the search for the real limit ends
CONFS = ["", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4", "garbage_collection_threshold:0.6"]

# Script, workload, its arguments; frees that wait for other streams take so many questions to complete.
CASES = {
    "gpt_fp32": (TRAIN, "gpt", {"amp": False, "seed": 1, "steps": 4, "L": 6, "d": 512}, 0),
    "gpt_seed3": (TRAIN, "gpt", {"seed": 3, "steps": 5}, 0),
    "gpt_checkpoint": (TRAIN, "gpt", {"seed": 5, "ckpt": True, "steps": 5}, 0),
    "seq2seq": (TRAIN, "seq2seq", {"steps": 2}, 0),
    "churn_seed23": (TRAIN, "churn", {"seed": 23}, 0),
    "leak": (TRAIN, "leak", {"steps": 6}, 0),
    "leakval": (TRAIN, "leakval", {"steps": 4}, 0),
    "streams": (TRAIN, "streams", {}, 0),
    "streams_late": (TRAIN, "streams", {}, 40),
    "graph": (TRAIN, "graph", {}, 0),
    "mempool": (POOLS, "mempool", {}, 0),
    "late": (HARD, "late", {}, 30),
}


def python_of(site_packages):
    own = site_packages.parent.parent.parent / "bin" / "python3"
    return str(own) if own.exists() else "python3"


class Case:
    def __init__(self, arguments, name):
        self.arguments, self.name = arguments, name
        self.script, self.workload, self.kw, self.queries = CASES[name]
        self.folder = arguments.out / "limits" / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def environment(self, conf):
        paths = [str(self.arguments.out / "site"), str(self.arguments.site_packages)]
        own = {"PYTHONPATH": os.pathsep.join(paths)} | ({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {})
        return os.environ | own | ({"PAPER_GPU_EVENT_QUERIES": str(self.queries)} if self.queries else {})

    def run(self, conf, cap_mib=None, recorder=()):
        """The truth of a run: what the program itself counted."""
        out = self.folder / "run"
        command = [*recorder, python_of(self.arguments.site_packages), str(self.script), self.workload, str(out), "--kw", json.dumps(self.kw)]
        command += ["--cap-mib", str(cap_mib)] if cap_mib else []
        with open(self.folder / "log", "a") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, env=self.environment(conf))
        return json.loads(out.with_suffix(".truth.json").read_text())

    def record(self):
        self.trace = self.folder / "default.trace.zst"
        self.trace.unlink(missing_ok=True)
        self.run("", recorder=[self.arguments.memtrace, "record", "--quiet", "-o", str(self.trace), "--"])

    def ask(self, command, conf):
        """The answer for the device; with the run's own options, its recorded addresses count."""
        policy = f"pytorch:{conf}" if conf else "pytorch"
        answer = subprocess.run([self.arguments.memtrace, command, "-q", "--json", str(self.trace), "-p", policy],
                                check=True, capture_output=True, text=True)
        return json.loads(answer.stdout)["policies"][0]

    def passes(self, conf, cap_mib):
        return self.run(conf, cap_mib)["oom"] is None

    def real_limit(self, conf, predicted):
        """The smallest limit near the predicted one under which the program passes, the next one failing."""
        limit = predicted
        while not self.passes(conf, limit):
            limit += 1
        while limit > 1 and (limit > predicted or not limit < predicted - FAR) and self.passes(conf, limit - 1):
            limit -= 1
        return limit

    def check(self, conf):
        fit = self.ask("fit", conf)
        limit = fit["fit_bytes"] // MIB
        real = self.real_limit(conf, limit)
        peak = self.ask("replay", conf)["reserved_peak_bytes"]
        real_peak = max(row["reserved_peak"] for row in self.run(conf)["rows"])
        good = limit == real and peak == real_peak
        ties = "" if good else f"; {fit['address_ties']} choices fell by address"
        print(f"{'ok  ' if good else 'DIFF'} {self.name:15} {conf or '(defaults)':30} limit {limit} MiB, real {real}; "
              f"peak {peak}, real {real_peak}{ties}", flush=True)
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "paper_gpu")
    parser.add_argument("site_packages", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    arguments = parser.parse_args()
    arguments.memtrace = str(arguments.build.resolve() / "memtrace")
    arguments.site_packages, arguments.out = arguments.site_packages.resolve(), arguments.out.resolve()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f"no case is called {unknown[0]}")
    subprocess.run([sys.executable, str(HERE / "make_site.py"), str(arguments.site_packages), str(arguments.out / "site")], check=True, stdout=subprocess.DEVNULL)
    good = total = 0
    for name in arguments.cases or CASES:
        case = Case(arguments, name)
        case.record()
        for conf in CONFS:
            total += 1
            good += case.check(conf)
    print(f"{good} of {total} predictions hold")
    sys.exit(0 if good == total else 1)


main()
