#!/usr/bin/env python3
"""check_jobs.py PROGRAM: `memtrace fleet` over recordings of real jobs (fixtures/jobs), compared with
what PyTorch counted in each rank, to the byte, and against what was planted in each program."""
import html
import json
import pathlib
import re
import sys
import tempfile

from support.program import fast_program, output

JOBS = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "jobs"
MIB = 1 << 20
PEAKS = ("requested", "allocated", "active", "reserved")
complaints = []


def expect(what, actual, wanted):
    if actual != wanted:
        complaints.append(f"{what}: {actual!r:.300}, not {wanted!r:.300}")


def records_of(program, summary):
    """All records of the job's traces, also of restarts that are not in the answer."""
    return json.loads(output(program, "info", summary, "--json", "--all"))["records"]


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
            output(program, "fleet", JOBS / name, "--quiet", "-o", summary)

    def fleet(self, name):
        return json.loads(output(self.program, "fleet", self.summaries[name], "--json", "--all", "--quiet"))


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


TITLE = re.compile(r"(?P<name>[^:]*): mean (?P<mean>.*?) per rank, .*; minimum (?P<min>.*?) on rank "
                   r"(?P<min_rank>\d+); maximum (?P<max>.*?) on rank (?P<max_rank>\d+),.*; sum (?P<sum>.*?), on ")


def exact(words):
    """The bytes of "2.97 GiB (3,185,791,232 B)" and of "512 B"."""
    return int(re.search(r"([\d,]+) B\)?$", words).group(1).replace(",", ""))


def texts_of(chart, element):
    return [html.unescape(text) for text in re.findall(rf"<{element}[^>]*>([^<]*)", chart.read_text())]


def check_ranks_chart(name, out, answer, text):
    titles = texts_of(out / "ranks.svg", "title")
    expect(f"{name}: bars of ranks.svg", [title for title in titles if title.startswith("rank ")],
           [f"rank {row['rank']}: reserved peak {row['reserved_peak_bytes']:,} B, allocated peak "
            f"{row['allocated_peak_bytes']:,} B, {row['outcome']}" for row in answer["ranks"]])
    words = texts_of(out / "ranks.svg", "text")
    peak = re.sub(r"\s+", " ", re.search(r"Reserved peak (.*?)\n  \d", text, re.DOTALL).group(1))
    lowest = min(answer["ranks"], key=lambda row: (row["reserved_peak_bytes"], row["rank"]))
    highest = max(answer["ranks"], key=lambda row: (row["reserved_peak_bytes"], -row["rank"]))
    for tile, rank in (("Highest reserved peak", highest["rank"]), ("Lowest", lowest["rank"])):
        at = words.index(tile)
        expect(f"{name}: {tile} of ranks.svg is a peak of the text {peak}",
               (words[at + 1] in peak, words[at + 2]), (True, f"rank {rank}"))


def check_tree_chart(name, out, answer):
    cells = [found.groupdict() for found in map(TITLE.match, texts_of(out / "tree.svg", "title")) if found]
    root, spread = cells[0], answer["allocated_peak"]
    expect(f"{name}: the root of tree.svg",
           (root["name"], exact(root["mean"]), exact(root["min"]), exact(root["max"]),
            int(root["min_rank"]), int(root["max_rank"]), exact(root["sum"])),
           ("allocated peaks", spread["mean_bytes"], spread["min_bytes"], spread["max_bytes"],
            spread["min_rank"], spread["max_rank"],
            sum(row["allocated_peak_bytes"] for row in answer["ranks"])))
    for role in sorted({site["role"] for site in answer["sites"]}):
        drawn = sum(exact(cell["sum"]) for cell in cells if cell["name"].lower() == role)
        most = sum(site["mean_bytes"] + 1 for site in answer["sites"] if site["role"] == role)
        expect(f"{name}: tree.svg draws {drawn} of at most {most} bytes a rank of {role}",
               drawn <= most * len(answer["ranks"]), True)


def check_devices_chart(name, out, answer, text):
    """Each row of the table of processes in the text is a row of the chart."""
    words = texts_of(out / "devices.svg", "text")
    rank_of = {row["trace"]: f"rank {row['rank']}" for row in answer["ranks"]}
    rows = re.findall(r"^    (\S+\.trace\S*) +(\S+ \w+) +(\S+ \w+) +(\S+ \w+)$", text, re.MULTILINE)
    drawn = {}
    for at, word in enumerate(words):
        if word.startswith("process ") and words[at - 1] in rank_of.values():
            held, peak, _, others = words[at + 1:at + 5]
            drawn[words[at - 1]] = (peak, held, others)
    expect(f"{name}: processes of devices.svg", drawn, {rank_of[trace]: tuple(rest) for trace, *rest in rows})
    expect(f"{name}: the table has a row for each process", len(rows),
           len(answer["shared_devices"][0]["processes"]))


def check_charts(jobs, folder):
    """Charts, text and fleet.json have the same numbers."""
    for name in ("pipeline4", "share", "ddp"):
        out = folder / f"{name}-charts"
        text = output(jobs.program, "fleet", jobs.summaries[name], "--quiet", "-o", out).decode()
        answer = json.loads((out / "fleet.json").read_text())
        check_ranks_chart(name, out, answer, text)
        check_tree_chart(name, out, answer)
        expect(f"{name}: a chart of shared devices", (out / "devices.svg").exists(), name == "share")
        if name == "share":
            check_devices_chart(name, out, answer, text)


def check_one_rank(jobs, folder):
    """A page of one rank compares it with nothing."""
    out = folder / "one-charts"
    output(jobs.program, "fleet", JOBS / "ddp" / "2018-rank0.trace.zst", "--quiet", "-o", out)
    facts = [text for text in texts_of(out / "tree.svg", "text") if text.startswith("width = ")]
    expect("one rank: facts of the tree", [re.sub(r"\(.*?\) ", "", text) for text in facts],
           ["width = bytes \u00b7 5.17 GiB on rank 0 \u00b7 1 of 4 ranks"])
    expect("one rank: why it is notable", "the only rank that was read" in (out / "report.html").read_text(),
           True)


def check_overlap(jobs, folder):
    """Without one of four ranks, both axes explain a part of the same variance."""
    traces = sorted((JOBS / "pipeline4").glob("*.zst"))
    note = "the shares overlap and do not add up"
    output(jobs.program, "fleet", *traces[:3], "--quiet", "-o", folder / "three-ranks.mtsum")
    for ranks, summary, overlaps in ((4, jobs.summaries["pipeline4"], False), (3, folder / "three-ranks.mtsum", True)):
        words = [jobs.program, "fleet", summary, "--quiet", "--mesh", "pp:2,dp:2"]
        answer = json.loads(output(*words, "--json"))
        expect(f"{ranks} ranks are in the answer", len(answer["ranks"]), ranks)
        expect(f"{ranks} ranks: axes overlap", answer["axes_overlap"], overlaps)
        expect(f"{ranks} ranks: more than the whole",
               sum(axis["explained_ppm"] for axis in answer["axes"]) > 1000000, overlaps)
        expect(f"{ranks} ranks: the text says so", note in output(*words).decode(), overlaps)


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
        check_charts(jobs, pathlib.Path(folder))
        check_one_rank(jobs, pathlib.Path(folder))
        check_overlap(jobs, pathlib.Path(folder))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1])))
