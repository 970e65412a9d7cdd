#!/usr/bin/env python3
"""Predictions against PyTorch's own allocator, without a GPU (README.md): from one recorded run with default options
`memtrace fit` says the smallest limit under other options, `memtrace tune` what they reserve at the peak. Then the program
really runs under those options: at the limit it has to pass, 1 MiB below it has to fail, and the peak has to be the same.

    limits.py [--build BUILD] [--out FOLDER] SITE_PACKAGES [CASE...]

Exits with 1 if a prediction is wrong. As `run` beside it; about ten runs of the program a case."""

import argparse, json, os, pathlib, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TRAIN = ROOT / "fixtures" / "workloads" / "train.py"
MIB = 1 << 20
CONFS = ["", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4"]

CASES = {
    "gpt_fp32": ("gpt", {"amp": False, "seed": 1, "steps": 4, "L": 6, "d": 512}),
    "gpt_seed3": ("gpt", {"seed": 3, "steps": 5}),
    "gpt_checkpoint": ("gpt", {"seed": 5, "ckpt": True, "steps": 5}),
    "seq2seq": ("seq2seq", {"steps": 2}),
    "churn_seed23": ("churn", {"seed": 23}),
    "leak": ("leak", {"steps": 6}),
    "leakval": ("leakval", {"steps": 4}),
    "streams": ("streams", {}),
}


def python_of(site_packages):
    own = site_packages.parent.parent.parent / "bin" / "python3"
    return str(own) if own.exists() else "python3"


class Case:
    def __init__(self, arguments, name):
        self.arguments, self.name = arguments, name
        self.workload, self.kw = CASES[name]
        self.folder = arguments.out / "limits" / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def environment(self, conf):
        paths = [str(self.arguments.out / "site"), str(self.arguments.site_packages)]
        return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | ({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {})

    def run(self, conf, cap_mib=None, recorder=()):
        """The truth of a run: what the program itself counted."""
        out = self.folder / "run"
        command = [*recorder, python_of(self.arguments.site_packages), str(TRAIN), self.workload, str(out), "--kw", json.dumps(self.kw)]
        command += ["--cap-mib", str(cap_mib)] if cap_mib else []
        with open(self.folder / "log", "a") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, env=self.environment(conf))
        return json.loads(out.with_suffix(".truth.json").read_text())

    def record(self):
        self.trace = self.folder / "default.trace.zst"
        self.trace.unlink(missing_ok=True)
        self.run("", recorder=[self.arguments.memtrace, "record", "--quiet", "-o", str(self.trace), "--"])

    def ask(self, command, conf):
        answer = subprocess.run([self.arguments.memtrace, command, "-q", "--json", str(self.trace), "-p", f"pytorch:{conf}"],
                                check=True, capture_output=True, text=True)
        return json.loads(answer.stdout)

    def check(self, conf):
        limit = self.ask("fit", conf)["policies"][0]["fit_bytes"] // MIB
        peak = self.ask("replay", conf)["policies"][0]["reserved_peak_bytes"]
        real_peak = max(row["reserved_peak"] for row in self.run(conf)["rows"])
        passes = self.run(conf, limit)["oom"] is None
        fails = self.run(conf, limit - 1)["oom"] is not None
        good = passes and fails and peak == real_peak
        print(f"{'ok  ' if good else 'DIFF'} {self.name:15} {conf or '(defaults)':30} limit {limit} MiB: "
              f"{'passes' if passes else 'FAILS'}, 1 MiB less: {'fails' if fails else 'PASSES'}; "
              f"peak {peak}, real {real_peak}", flush=True)
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
