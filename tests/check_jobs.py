#!/usr/bin/env python3
"""check_jobs.py PROGRAM: `memtrace fleet` over recordings of real jobs (fixtures/jobs), compared with
what PyTorch counted in each rank, to the byte, and against what was planted in each program."""
import json
import pathlib
import subprocess
import sys
import tempfile

JOBS = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "jobs"
MIB = 1 << 20
PEAKS = ("requested", "allocated", "active", "reserved")
complaints = []


def expect(what, actual, wanted):
    if actual != wanted:
        complaints.append(f"{what}: {actual!r:.300}, not {wanted!r:.300}")


def run(*words):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True).stdout


def records_of(program, summary):
    """All records of the job's traces, also of restarts that are not in the answer."""
    return json.loads(run(program, "info", summary, "--json", "--all"))["records"]


def check_peaks(name, records, truth):
    """Each rank's four peaks and the levels after each of its steps."""
    by_process = {(record["identity.rank"], record["identity.restart"]): record
                  for record in records}
    for rank in truth["ranks"]:
        restart = rank["restart"] if name != "share" else -1
        record = by_process.get((rank["rank"], restart))
        if record is None:
            complaints.append(f"{name}: rank {rank['rank']} of start {restart} is not there")
            continue
        for peak in PEAKS:
            expect(f"{name} rank {rank['rank']}, {peak} peak", record[f"{peak}_peak.bytes"],
                   rank[f"{peak}_bytes.all.peak"])
        for number, step in enumerate(rank["steps"]):
            expect(f"{name} rank {rank['rank']}, allocated after step {number}",
                   record["steps"][number]["end_allocated_bytes"], step["allocated"])
    expect(f"{name}: processes", len(by_process), len(truth["ranks"]))


class Jobs:
    """Each job is summarized once; `fleet` then reads the summary."""

    def __init__(self, program, names, folder):
        self.program = program
        self.summaries = {name: folder / f"{name}.mtsum" for name in names}
        for name, summary in self.summaries.items():
            run(program, "fleet", JOBS / name, "--quiet", "-o", summary)

    def fleet(self, name):
        return json.loads(run(self.program, "fleet", self.summaries[name], "--json", "--all",
                              "--quiet"))


def outliers(answer):
    return [(one["rank"], one["metric"], one["cause"], one["site"], one["bytes"])
            for one in answer["outliers"]]


def check_planted(jobs):
    expect("ddp_leak", outliers(jobs.fleet("ddp_leak")),
           [(1, "growth", "growth", "remember ddp.py:21", 8 * 48 * MIB)])
    logs = jobs.fleet("ddp_logs")["outliers"]
    expect("ddp_logs", [(one["rank"], one["cause"], one["site"], one["cause_bytes"]) for one in logs],
           [(0, "site", "log ddp.py:26", 500 * MIB)])
    expect("fsdp2_gather", outliers(jobs.fleet("fsdp2_gather")), [])
    pipeline = jobs.fleet("pipeline4")
    expect("pipeline4, source of axes", pipeline["axes_source"], "communicators")
    expect("pipeline4, axes", [(axis["name"], axis["size"], axis["explained_ppm"])
                               for axis in pipeline["axes"]],
           [("stage", 2, 1000000), ("replica", 2, 0)])
    expect("pipeline4, outliers", outliers(pipeline), [])


def check_deaths(jobs):
    answer = jobs.fleet("oom")
    death = answer["first_death"]
    expect("oom", (death["rank"], death["site"], death["limit_bytes"] // MIB,
                   death["vanished_ranks"], death["followed_ranks"]),
           (1, "GPT.forward job.py:100", 8191, 3, 0))
    once = jobs.fleet("once")
    expect("once", (once["first_death"], [(start["restart"], start["records"], start["deaths"])
                                          for start in once["starts"]]),
           (None, [(0, 4, 1), (1, 4, 0)]))


def check_shared(jobs, truth):
    """The server sleeps while the trainer has its peak, and the trainer has freed what it could
    while the server has its own: the programs noted both."""
    device = jobs.fleet("share")["shared_devices"][0]
    asleep = {row["reserved"] for row in truth["server"] if row["what"].startswith("asleep")}
    freed = {row["reserved"] for row in truth["trainer"] if row["what"].startswith("freed")}
    most = {process["reserved_peak_bytes"]: process["others_at_own_peak_bytes"]
            for process in device["processes"]}
    server = max(row["reserved"] for row in truth["server"])
    trainer = max(row["reserved"] for row in truth["trainer"])
    expect("share: sums are exact", device["peak_is_exact"], True)
    expect("share: each slept at one level", (len(asleep), len(freed)), (1, 1))
    expect("share: at the peaks", most, {server: freed.copy().pop(), trainer: asleep.copy().pop()})
    expect("share: the device's peak", device["peak_at_most_bytes"], server + freed.pop())


def main(program):
    names = sorted(path.parent.name for path in JOBS.glob("*/truth.json"))
    truths = {name: json.loads((JOBS / name / "truth.json").read_text()) for name in names}
    expect("jobs", len(names), 8)
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(program, names, pathlib.Path(folder))
        for name in names:
            check_peaks(name, records_of(program, jobs.summaries[name]), truths[name])
        check_planted(jobs)
        check_deaths(jobs)
        check_shared(jobs, truths["share"])
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
