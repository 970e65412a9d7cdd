"""Compares predictions of `memtrace` for other options and limits with real runs of the program under them. For section_limits.py and tests/paper_gpu/limits.py."""
import itertools
import json
import os
import subprocess

MIB = 1 << 20
FAR = 16  # MiB below a prediction where the search for the real limit ends
CONFS = ["", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4", "garbage_collection_threshold:0.6"]


class Case:
    """One workload, recorded once with default options. Its methods may be called from several threads."""

    def __init__(self, folder, memtrace, python, name, script, workload, kw, environment=None):
        self.folder, self.memtrace, self.python, self.name = folder, memtrace, python, name
        self.script, self.workload, self.kw = script, workload, kw
        self.own = environment or {}
        self.numbers = itertools.count()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.trace = self.folder / "default.trace.zst"

    def environment(self, conf):
        return os.environ | self.own | ({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {})

    def run(self, conf, cap_mib=None, recorder=()):
        """The truth of a run: what the program itself counted."""
        out = self.folder / f"run{next(self.numbers)}"
        command = [*recorder, self.python, str(self.script), self.workload, str(out), "--kw", json.dumps(self.kw)]
        command += ["--cap-mib", str(cap_mib)] if cap_mib else []
        with open(out.with_suffix(".log"), "w", encoding="utf-8") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, env=self.environment(conf))
        out.with_suffix(".pickle").unlink()
        return json.loads(out.with_suffix(".truth.json").read_text())

    def record(self, conf="", cap_mib=None):
        self.trace.unlink(missing_ok=True)
        return self.run(conf, cap_mib, recorder=[self.memtrace, "record", "--quiet", "-o", str(self.trace), "--"])

    def ask(self, *command):
        answer = subprocess.run([self.memtrace, command[0], "-q", "--json", str(self.trace), *command[1:]], check=True, capture_output=True, text=True)
        return json.loads(answer.stdout)

    def ask_of(self, command, conf):
        """The answer for the device; with the run's own options, its recorded addresses count."""
        return self.ask(command, "-p", f"pytorch:{conf}" if conf else "pytorch")["policies"][0]

    def passes(self, conf, cap_mib):
        return self.run(conf, cap_mib)["oom"] is None

    def peak(self, conf):
        return max(row["reserved_peak"] for row in self.run(conf)["rows"])

    def real_limit(self, conf, predicted):
        """The smallest limit near the predicted one under which the program passes, the next one failing."""
        limit = predicted
        while not self.passes(conf, limit):
            limit += 1
        while limit > 1 and (limit > predicted or not limit < predicted - FAR) and self.passes(conf, limit - 1):
            limit -= 1
        return limit

    def check(self, conf):
        """Whether both predictions hold, and a line about them."""
        fit = self.ask_of("fit", conf)
        limit = fit["fit_bytes"] // MIB
        real, peak, real_peak = self.real_limit(conf, limit), self.ask_of("replay", conf)["reserved_peak_bytes"], self.peak(conf)
        good = limit == real and peak == real_peak
        ties = "" if good else f"; {fit['address_ties']} choices fell by address"
        return good, f"limit {limit} MiB, real {real}; peak {peak}, real {real_peak}{ties}"

    def came_to(self, conf, cap_mib):
        """Allocations that the program was granted."""
        return self.run(conf, cap_mib)["rows"][-1]["allocations"]

    def check_died(self, conf, cap_mib, others=()):
        """A run that dies of its limit: with the smallest limit that `memtrace fit` says, under its own options and under others, the program comes further; with 1 MiB less it does not. And under
        the limit of the run it comes further where `memtrace analyze` says so. Returns [(options, holds, a line)]."""
        died_at = self.record(conf, cap_mib)["rows"][-1]["allocations"]
        rows = [(other or "(defaults)", *self.check_smallest(other, cap_mib, died_at)) for other in (conf, *others)]
        ways = self.ask("analyze")["devices"][0]["out_of_memory"]["goes_on_with"]
        return rows + [self.check_way(way, cap_mib, died_at) for way in ways if not way["as_it_was"]]

    def check_smallest(self, conf, cap_mib, died_at):
        fit = self.ask_of("fit", conf)
        limit = fit["fit_bytes"] // MIB
        less, enough = self.came_to(conf, limit - 1), self.came_to(conf, limit)
        ties = "" if less <= died_at < enough else f"; {fit['address_ties']} choices fell by address"
        return less <= died_at < enough, (f"at {cap_mib} MiB it died after {died_at} allocations; here at {limit - 1} MiB after {less}, at the predicted {limit} MiB it comes to {enough}{ties}")

    def check_way(self, way, cap_mib, died_at):
        conf = way["policy"].partition(":")[2]
        came_to, says = self.came_to(conf, cap_mib), way["under_same_limit"]
        good = None if says not in ("yes", "no") else (says == "yes") == (came_to > died_at)
        return f"{conf or '(defaults)'} at the limit of the run", good, f"{says}; at {cap_mib} MiB it died after {died_at} allocations, here it comes to {came_to}"

    def check_tuned(self):
        """The setting that `memtrace tune` prints, run for real."""
        best = self.ask("tune")["best"]
        real = self.peak(best["conf"])
        return best["reserved_peak_bytes"] == real, f"{best['conf'] or '(defaults)'}: peak {best['reserved_peak_bytes']}, real {real}"
