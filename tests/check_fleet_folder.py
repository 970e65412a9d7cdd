#!/usr/bin/env python3
"""check_fleet_folder.py PROGRAM WRITE_JOB: what `memtrace fleet -o DIR` writes, without a browser.

The files are there and say the same as the answer; files of others are never replaced; what the page
holds of single ranks is what their summaries hold; the page stays bounded at 16,384 ranks, says what
it leaves out, and holds every notable rank."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import summary_decoder
from support.program import fast_program

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
MAX_BYTES, LEVELS = 4_000_000, 4095
FOREIGN = b"the user's own words\n"
complaints = []


def expect(what, actual, wanted=True):
    if actual != wanted:
        complaints.append(f"{what}: {actual!r:.300}, not {wanted!r:.300}")


class Bench:
    def __init__(self, program, writer, folder):
        self.program, self.writer, self.folder = program, writer, folder
        self.made = 0

    def place(self):
        self.made += 1
        return self.folder / f"place{self.made}"

    def job(self, stages, replicas, shards, files, *facts):
        folder = self.place()
        folder.mkdir()
        subprocess.run([self.writer, *map(str, (stages, replicas, shards, files)), folder, *facts],
                       check=True)
        return folder

    def run(self, *words, status=0):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, check=False)
        expect(f"status of {' '.join(map(str, words))[:200]} ({done.stderr[:200]})", done.returncode,
               status)
        return done.stdout.decode()

    def fleet(self, *words, status=0):
        return self.run("fleet", "-q", *words, status=status)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix not in (".svg", ".png"))


def data_of(page):
    return json.loads(re.search(r'id="mt-data">(.*?)</script>', page.read_text(), re.DOTALL).group(1))


def levels_of(code):
    """The levels of a curve, by the words of job_page_data.h alone."""
    levels, at = [], 0
    while at < len(code):
        if code[at] == "~":
            levels += levels[-1:] * (DIGITS.index(code[at + 1]) + 1)
        else:
            levels.append(64 * DIGITS.index(code[at]) + DIGITS.index(code[at + 1]))
        at += 2
    return levels


def check_files(bench):
    job, out = bench.job(2, 4, 1, 8, "waves=1", "logs=0"), bench.place()
    text = bench.fleet(job, "-o", out)
    expect("files", names_in(out), ["fleet.json", "report.html", "summary.md"])
    expect("the text ends with the files", text.rstrip().split("\nFiles\n")[1].split()[:3],
           [str(out / name) for name in ("fleet.json", "summary.md", "report.html")])
    expect("fleet.json", (out / "fleet.json").read_text(), bench.fleet("--json", job))
    expect("the answer is first", text.split("\n\nFiles")[0], bench.fleet(job).rstrip())
    first = (out / "summary.md").read_text().split("\n")[0]
    expect("the first line of summary.md is the answer",
           first, "### memtrace fleet: Card: about 14.5 GiB on each device: rank 0 (pp 0, dp 0, tp 0; "
           "node00) needs the most")
    page = (out / "report.html").read_bytes()
    bench.fleet(job, "-o", f"{out}/")
    expect("the same page again", (out / "report.html").read_bytes() == page)
    gates = bench.place()
    bench.fleet(job, "-o", gates, "--max-peak", "reserved=13.5GiB", status=1)
    expect("files with gates", names_in(gates),
           ["fleet.json", "junit.xml", "report.html", "summary.md"])
    expect("the summary begins with the gates", (gates / "summary.md").read_text().split("\n")[0],
           "### memtrace fleet: FAIL: 1 of 2 rules")
    html = (gates / "report.html").read_text()
    expect("the page begins with the gates",
           html.index("FAIL: 1 of 2 rules") < html.index("Highest reserved peak"))


def check_gates(bench):
    """A rule that cannot be evaluated fails, or warns if that is allowed."""
    job = bench.job(2, 2, 1, 4, "miss=1")
    for more, status, state, mark in (([], 1, "fail", "\u274c"),
                                      (["--allow-not-evaluated"], 0, "warn", "\u26a0")):
        out = bench.place()
        bench.fleet(job, "-o", out, "--max-peak", "reserved=90GiB", *more, status=status)
        html, summary = ((out / name).read_text() for name in ("report.html", "summary.md"))
        expect(f"{state} in the page", f'<td class="state {state}">not evaluated</td>' in html)
        expect(f"{state} in the summary", f"| {mark} not evaluated |" in summary)


def check_others_files(bench):
    """Nothing of the user's is replaced, and nothing else is written then."""
    job = bench.job(2, 2, 1, 4)
    for name in ("report.html", "fleet.json", "summary.md", "junit.xml"):
        out = bench.place()
        out.mkdir()
        (out / name).write_bytes(FOREIGN)
        rules = ["--max-imbalance", "50%"]
        bench.fleet(job, "-o", out, *rules, status=4)
        expect(f"{name} of the user", (out / name).read_bytes(), FOREIGN)
        expect(f"nothing beside {name}", [path.name for path in out.iterdir()], [name])
        bench.fleet(job, "-o", out, *rules, "--force")
        expect(f"{name} is replaced with --force", (out / name).read_bytes() != FOREIGN)
    (out / "junit.xml").write_bytes(FOREIGN)
    bench.fleet(job, "-o", out)
    expect("junit.xml without gates", (out / "junit.xml").read_bytes(), FOREIGN)
    bench.fleet(job, "-o", "-", status=2)
    bench.fleet(job, "-o", bench.place(), "--shard", "1/2", status=2)
    bench.fleet(job, "-o", bench.folder / "x.mtsum")
    expect("FILE.mtsum is a summary", (bench.folder / "x.mtsum").read_bytes()[:6], b"MTSUM1")


def check_data(bench):
    """What is drawn of a rank is what its summary holds."""
    job, out = bench.job(2, 4, 2, 4, "waves=1", "leak=3", "die=5", "miss=9"), bench.place()
    bench.fleet(job, "-o", out)
    data = data_of(out / "report.html")
    records = {record["identity.rank"]: record for path in job.iterdir()
               for record in summary_decoder.decode(path)["records"]}
    expect("ranks of the page", sorted(rank["rank"] for rank in data["ranks"]), sorted(records))
    for rank in data["ranks"]:
        record = records[rank["rank"]]
        for name in ("allocated", "reserved"):
            levels = levels_of(data["curves"][rank[name]])
            real = [column[f"{name}_bytes"] for column in record["columns"]]
            expect(f"columns of rank {rank['rank']}", len(levels), len(real))
            most = max(abs(level * rank["most"] / LEVELS - one) for level, one in zip(levels, real))
            expect(f"{name} of rank {rank['rank']} is {most} B off",
                   most <= rank["most"] / LEVELS / 2 + 1)
        expect(f"peaks of rank {rank['rank']}", rank["peaks"],
               [record[f"{name}_peak.bytes"] for name in ("requested", "allocated", "active", "reserved")])
        expect(f"host of rank {rank['rank']}", data["strings"][rank["host"]], record["identity.host"])
        expect(f"holders of rank {rank['rank']}", sorted(rank["sites"][2::4]),
               sorted(leaf["bytes"] for leaf in record["leaves"]))
        expect(f"steps of rank {rank['rank']}", rank["steps"][0::2],
               [step["first"] for step in record["steps"]])
    first = data["ranks"][0]
    expect("the first rank of the page", (first["rank"], data["notable"][:2]),
           (5, [0, data["notable"][1]]))
    expect("why it is notable", data["notable"][1].startswith("ran out of memory first"))
    expect("how it ended", data["strings"][first["end"]],
           "ran out of memory after 60.0 s: it requested 2.00 GiB in forward model.py:88 < "
           "step train.py:47; 0 B were free")


def expand(runs, step):
    return [first + step * n for first, count in zip(runs[::2], runs[1::2]) for n in range(count)]


def check_large(bench):
    facts = ["waves=1", "logs=0", "talk=1", "leak=9999", "die=16382", "miss=20", "cut=7"]
    job, out = bench.job(16, 128, 8, 16, *facts), bench.place()
    bench.fleet(job, "-o", out)
    page = out / "report.html"
    expect(f"bytes of the page: {page.stat().st_size}", page.stat().st_size < MAX_BYTES)
    expect("bytes of the summary", (out / "summary.md").stat().st_size < 65536)
    data, html = data_of(page), page.read_text()
    here = [rank["rank"] for rank in data["ranks"]]
    expect(f"{len(here)} ranks", 500 < len(here) < 16383)
    expect("notable ranks are there", {0, 1, 7, 9999, 16382} <= set(here))
    expect("the first is the death", here[0], 16382)
    said = re.search(r"([\d,]+) of 16,383 ranks can be chosen", html)
    expect("what is left out is said", bool(said) and int(said.group(1).replace(",", "")), len(here))
    answer = json.loads(bench.fleet("--json", "--all", job))["ranks"]
    index = data["index"]
    expect("ranks of the index", expand(index["ranks"], 1), [row["rank"] for row in answer])
    expect("peaks of the index", index["peaks"], [row["reserved_peak_bytes"] for row in answer])
    clusters = expand(index["clusters"], 0)
    expect("groups of the index", clusters, [row["cluster"] for row in answer])
    rows = {rank["row"] for rank in data["ranks"]}
    expect("each group of replicas has a rank", {clusters[row] for row in rows}, set(clusters))
    expect("rows of the table of ranks", html.count("<tr>", html.index('id="rank-rows-0"')), 201)


def main(program, writer):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(program, writer, pathlib.Path(folder))
        for check in (check_files, check_gates, check_others_files, check_data, check_large):
            check(bench)
    print("\n".join(complaints[:40]) or "a folder of fleet: its files say what the answer says")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), *sys.argv[2:]))
