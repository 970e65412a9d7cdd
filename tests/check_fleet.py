#!/usr/bin/env python3
"""check_fleet.py PROGRAM WRITE_JOB: `memtrace fleet` over jobs whose facts are known.

WRITE_JOB (tests/fleet/write_job.c) writes the summaries of a simulated job. What is planted has to
be in the answer, and nothing else; how the files are dealt out, in which order they are named, how
many threads read them and which shards come first must not change a byte of it."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

from support.json_schema import Schemas

SCHEMAS = Schemas(pathlib.Path(__file__).resolve().parent.parent / "docs" / "schema")
CAPTURE = pathlib.Path(__file__).resolve().parent.parent / "fixtures/captures/leak.pickle.zst"
MIB = 1 << 20
FACTS = ["logs=0", "talk=1", "leak=1023", "die=1022", "miss=100", "miss=101", "miss=340", "miss=500",
         "miss=900", "cut=5", "cut=512"]
complaints = []


def expect(what, actual, wanted):
    if actual != wanted:
        complaints.append(f"{what}: {actual!r:.300}, not {wanted!r:.300}")


class Bench:
    def __init__(self, program, writer, folder):
        self.program, self.writer, self.folder = program, writer, folder
        self.jobs = 0

    def job(self, stages, replicas, shards, files, *facts):
        self.jobs += 1
        folder = self.folder / f"job{self.jobs}"
        folder.mkdir()
        subprocess.run([self.writer, str(stages), str(replicas), str(shards), str(files), folder,
                        *facts], check=True)
        return folder

    def fleet(self, *words, status=0):
        done = subprocess.run([self.program, "fleet", *map(str, words)], capture_output=True,
                              text=True, check=False)
        expect(f"status of fleet {' '.join(map(str, words))[:200]} ({done.stderr[:200]})",
               done.returncode, status)
        return done.stdout

    def complaints_of(self, *words, status):
        done = subprocess.run([self.program, "fleet", *map(str, words)], capture_output=True,
                              text=True, check=False)
        expect(f"status of fleet {words}", done.returncode, status)
        return done.stderr.splitlines()

    def answer(self, *words, status=0):
        document = json.loads(self.fleet("--json", *words, status=status))
        for complaint in SCHEMAS.complaints(document, "fleet.json"):
            complaints.append(f"{words}: {complaint}")
        return document

    def diff(self, *words, status=0):
        document = json.loads(self.fleet("diff", "--json", *words, status=status))
        for complaint in SCHEMAS.complaints(document, "fleet-diff.json"):
            complaints.append(f"diff {words}: {complaint}")
        return document


def check_facts(bench):
    answer = bench.answer(bench.job(8, 16, 8, 64, *FACTS))
    expect("missing ranks", answer["missing_ranks"], [100, 101, 340, 500, 900])
    expect("ranks seen", answer["ranks_seen"], 1019)
    expect("outcomes", answer["outcomes"],
           {"unknown": 0, "finished": 0, "oom": 1, "failed": 0, "killed": 1016, "cut": 2})
    death = answer["first_death"]
    expect("first death", (death["rank"], death["wanted_bytes"], death["followed_ranks"]),
           (1022, 2048 * MIB, 1016))
    expect("site of the death", death["site"], "forward model.py:88 < step train.py:47")
    outliers = {one["rank"]: one for one in answer["outliers"]}
    expect("outliers", sorted(outliers), [0, 1, 1023])
    expect("leak", (outliers[1023]["cause"], outliers[1023]["site"], outliers[1023]["cause_bytes"]),
           ("growth", "remember train.py:99 < step train.py:47", 1280 * MIB))
    expect("logs", (outliers[0]["cause"], outliers[0]["site"], outliers[0]["cause_bytes"]),
           ("site", "log logs.py:5 < main train.py:14", 700 * MIB))
    expect("communicator", (outliers[1]["cause"], outliers[1]["library"], outliers[1]["bytes"]),
           ("library", "NCCL", 600 * MIB))
    expect("axes", [(axis["name"], axis["size"], axis["replicas"]) for axis in answer["axes"]],
           [("pp", 8, False), ("dp", 16, True), ("tp", 8, True)])
    expect("shared devices", answer["shared_devices"], [])


def check_small_gaps(bench):
    """One of 8 ranks is missing and one is cut: peaks and sums are lower bounds."""
    folder = bench.job(2, 4, 1, 8, "logs=0", "miss=3", "cut=5")
    answer = bench.answer(folder)
    expect("8 ranks: missing", (answer["world"], answer["ranks_seen"], answer["missing_ranks"]), (8, 7, [3]))
    expect("8 ranks: outcomes", {row["rank"]: row["outcome"] for row in answer["ranks"]},
           {rank: "cut" if rank == 5 else "finished" for rank in range(8) if rank != 3})
    expect("8 ranks: outliers", [(one["rank"], one["bytes"]) for one in answer["outliers"]], [(0, 700 * MIB)])
    text = bench.fleet(folder)
    for words in ("Card: at least 14.5 GiB", "7 of 8 ranks; missing: 3", "1 trace is not complete"):
        expect(f"8 ranks: {words}", words in text, True)


def check_bounds(bench):
    """The document of a large job stays below a megabyte, and has all with --all."""
    folder = bench.job(4, 512, 2, 8)
    text = bench.fleet("--json", folder)
    expect("a bounded document", len(text) < 1 << 20, True)
    expect("rows of a bounded document", len(json.loads(text)["ranks"]), 1000)
    expect("rows with --all", len(bench.answer("--all", folder)["ranks"]), 4096)


def check_order(bench):
    """Files in any order, by any number of threads, in any shards."""
    whole = bench.fleet("--json", bench.job(4, 8, 2, 1, "logs=0", "miss=9"))
    folder = bench.job(4, 8, 2, 64, "logs=0", "miss=9")
    files = sorted(folder.glob("*.mtsum"))
    dice = random.Random(1)
    for jobs in (1, 2, 3, 4):
        expect(f"{jobs} threads", bench.fleet("--json", "-j", jobs, folder), whole)
    for _ in range(3):
        dice.shuffle(files)
        expect("files in another order", bench.fleet("--json", *files), whole)
    for count in (2, 3, 7):
        parts = []
        for number in range(1, count + 1):
            parts.append(bench.folder / f"part{count}-{number}.mtsum")
            bench.fleet(folder, "--shard", f"{number}/{count}", "-o", parts[-1])
        dice.shuffle(parts)
        expect(f"{count} shards", bench.fleet("--json", *parts), whole)
        merged = bench.folder / f"merged{count}.mtsum"
        bench.fleet(*parts[:2], "-o", merged)
        expect("a part of parts", bench.fleet("--json", merged, *parts[2:]), whole)


def check_axes(bench):
    answer = bench.answer(bench.job(4, 8, 2, 4, "mesh=0"))
    expect("source of axes", answer["axes_source"], "found")
    expect("axes", [(axis["name"], axis["size"], axis["stride"]) for axis in answer["axes"]],
           [("stage", 4, 16), ("replica", 16, 1)])
    folder = bench.job(4, 8, 2, 4, "mesh=0")
    answer = bench.answer(folder, "--mesh", "pp:4,dp:8,tp:2")
    expect("source of axes", answer["axes_source"], "option")
    bench.fleet(folder, "--mesh", "pp:4,dp:8,tp:4", status=2)
    bench.fleet(folder, "--mesh", "pp", status=2)


def check_gates(bench):
    folder = bench.job(2, 4, 1, 8, "logs=0")
    junit = bench.folder / "junit.xml"
    answer = bench.answer(folder, "--max-peak", "reserved=13.5GiB", "--max-imbalance", "50%",
                          "--junit", junit, status=1)
    expect("gates", [(gate["rule"], gate["group"], gate["state"]) for gate in answer["gates"]],
           [("max-peak reserved", "pp 0", "fail"), ("max-peak reserved", "pp 1", "pass"),
            ("max-imbalance", "all ranks", "pass")])
    suites = ElementTree.parse(junit).getroot()
    expect("cases", [case.get("name") for case in suites.iter("testcase")],
           ["max-peak reserved, pp 0", "max-peak reserved, pp 1", "max-imbalance, all ranks"])
    expect("failures", len(list(suites.iter("failure"))), 1)
    expect("verdict", bench.answer(folder, "--max-imbalance", "50%")["verdict"], "pass")
    bench.fleet(folder, "--max-imbalance", "1%", status=1)
    bench.fleet(folder, "--max-peak", "reserved", status=2)
    answer = bench.answer(folder, "--max-peak", "reserved=90GiB,warn=1GiB")
    expect("warnings", [gate["state"] for gate in answer["gates"]], ["warn", "warn"])
    bench.fleet(folder, "--max-imbalance", "x", status=2)


def states(answer):
    return [(gate["rule"], gate["group"], gate["state"]) for gate in answer["gates"]]


def check_budget(bench):
    folder = bench.job(2, 4, 1, 8, "leak=7")
    budget = bench.folder / "budget.toml"
    budget.write_text("""schema = "memtrace.budget/1"
max-imbalance = "50%"
max_needed = "15GiB"
[max-peak]
reserved = "12GiB"
[group.pp.0.max-peak]
reserved = "14GiB"
[max-growth]
limit = "1MiB"
[max-missing]
limit = 0
""")
    answer = bench.answer(folder, "--budget", budget, status=1)
    expect("budget", states(answer),
           [("max-peak reserved", "pp 1", "pass"), ("max-growth", "pp 0", "pass"),
            ("max-growth", "pp 1", "fail"), ("max-peak reserved", "pp 0", "pass"),
            ("max-needed", "pp 0", "pass"), ("max-needed", "pp 1", "pass"),
            ("max-imbalance", "all ranks", "pass"), ("max-missing", "all ranks", "pass")])
    growth = answer["gates"][2]
    expect("growth", (growth["rank"], growth["actual_bytes"]), (7, 64 * MIB))
    for wrong in ("", "max-peak = 1", "[group.pp.0.max-fragmentation]\nlimit = \"5%\"",
                  "[max-fragmentation]\nlimit = \"5%\"", "max-missing = \"x\"",
                  "group.pp.max-peak.reserved = \"1GiB\"", "nothing = 1", "schema = \"x/1\"",
                  "[group.pp.0.max-regression]\nlimit = \"1%\""):
        budget.write_text(wrong)
        bench.fleet(folder, "--budget", budget, status=3)
    bench.fleet(folder, "--max-imbalance", "-1", status=2)
    bench.fleet(folder, "--budget", bench.folder / "none.toml", status=3)


def check_not_evaluated(bench):
    """A rule does not pass while a rank that it is about is missing, cut or out of memory."""
    rule = ("--max-peak", "reserved=90GiB")
    folder = bench.job(2, 4, 1, 8, "miss=1")
    answer = bench.answer(folder, *rule, status=1)
    expect("a missing rank", states(answer), [("max-peak reserved", "pp 0", "not evaluated"),
                                              ("max-peak reserved", "pp 1", "pass")])
    budget = bench.folder / "missing.toml"
    budget.write_text("max-missing = 1")
    bench.fleet(folder, *rule, "--budget", budget)
    budget.write_text("max-missing = 0")
    text = bench.fleet(folder, *rule, "--budget", budget, status=1)
    expect("one rank too few", "max-missing: 1 rank is missing, above 0\n" in text, True)
    bench.fleet(folder, *rule, "--allow-not-evaluated")
    bench.fleet(folder, "--max-imbalance", "90%", status=1)
    expect("a missing rank, and a peak that is too large",
           [one[2] for one in states(bench.answer(folder, "--max-peak", "reserved=1GiB", status=1))],
           ["fail", "fail"])
    stage = bench.job(2, 2, 1, 4, "miss=2", "miss=3")
    expect("a stage that is missing", states(bench.answer(stage, *rule, status=1)),
           [("max-peak reserved", "pp 0", "pass"), ("max-peak reserved", "pp unknown",
                                                    "not evaluated")])
    # the ranks that did not run out of memory themselves are killed later
    for fact, first in (("cut=5", "pass"), ("die=5", "not evaluated")):
        expect(fact, [one[2] for one in states(bench.answer(bench.job(2, 4, 1, 8, fact), *rule,
                                                            status=1))], [first, "not evaluated"])
    unreadable = bench.job(2, 4, 1, 8)
    (unreadable / "rank00007.mtsum").write_bytes(b"MTSUM1\0\0 and nothing else")
    bench.fleet(unreadable, *rule, status=1)


def check_doubt_breaks_no_rule(bench):
    """A share of the mean, or a bound of the base, can be wrong in both directions."""
    for fact, reason in (("cut=5", "a trace is cut"), ("die=5", "out of memory"),
                         ("miss=5", "ranks are missing")):
        folder = bench.job(2, 4, 1, 8, "logs=0", fact)
        gate = bench.answer(folder, "--max-imbalance", "1%", status=1)["gates"][0]
        expect(f"imbalance with {fact}", gate["state"], "not evaluated")
        expect(f"reason with {fact}", reason in str(gate["reason"]) or "killed" in str(gate["reason"]), True)
        bench.fleet(folder, "--max-imbalance", "1%", "--allow-not-evaluated")
    base, heavy = bench.job(2, 4, 1, 8, "cut=5"), bench.job(2, 4, 1, 8, "heavy=1")
    answer = bench.answer(heavy, "--base", base, "--max-regression", "reserved=2%", status=1)
    expect("ranks with a sure base", states(answer)[1][2], "fail")
    expect("a sure base", answer["gates"][1]["rank"] == 5, False)
    base = bench.job(2, 1, 1, 2, "cut=1")
    answer = bench.answer(bench.job(2, 1, 1, 2, "heavy=1"), "--base", base, "--max-regression",
                          "reserved=2%", status=1)
    expect("a base that is cut", [one[2] for one in states(answer)], ["pass", "not evaluated"])
    base, more = bench.job(2, 2, 1, 4), bench.job(2, 4, 1, 8, "heavy=1", "miss=5")
    answer = bench.answer(more, "--base", base, "--max-regression", "reserved=2%", status=1)
    expect("the mean of a group without a rank", [one[2] for one in states(answer)],
           ["pass", "not evaluated"])


def check_counts_of_gates(bench):
    """What is not evaluated is not counted as passed."""
    folder = bench.job(2, 4, 1, 8, "cut=5")
    words = ("--max-peak", "reserved=90GiB", "--max-imbalance", "90%", "--allow-not-evaluated")
    text = bench.fleet(folder, *words)
    expect("gates that passed", text.splitlines()[0], "PASS: 1 of 3 rules; 2 not evaluated")
    page = bench.folder / "page"
    bench.fleet(folder, *words, "-o", page)
    expect("gates on the page", "PASS: 1 of 3 rules; 2 not evaluated" in (page / "report.html").read_text(),
           True)
    junit = ElementTree.parse(page / "junit.xml").getroot()
    expect("skipped cases", len(list(junit.iter("skipped"))), 2)


def check_budget_words(bench):
    """Rules without a bound, and bases of several jobs."""
    folder, budget = bench.job(2, 4, 1, 8), bench.folder / "words.toml"
    budget.write_text("[max-missing]\nallow-not-evaluated = true\n[max-peak]\nreserved = \"90GiB\"\n")
    lines = bench.complaints_of(folder, "--budget", budget, status=3)
    expect("a rule without a bound", "max-missing has neither limit nor warn" in "".join(lines), True)
    budget.write_text('allow-not-evaluated = true\n[max-peak]\nreserved = "90GiB"\n')
    bench.fleet(folder, "--budget", budget)
    base = bench.job(2, 4, 1, 8, "job=slurm:1")
    (base / "other.mtsum").write_bytes((bench.job(1, 1, 1, 1, "job=slurm:2") / "rank00000.mtsum").read_bytes())
    lines = bench.complaints_of(folder, "--base", base, "--max-regression", "2%", status=2)
    expect("a base of several jobs", lines[0],
           "memtrace: fleet: the base has 2 jobs; --base takes files of one job: name a folder or a "
           "summary with only one job")
    expect("their names", len(lines), 3)


def check_output_is_no_input(bench):
    """A summary that is read is never replaced, whatever its name is spelled like."""
    folder = bench.job(2, 4, 1, 2)
    parts = sorted(folder.glob("*.mtsum"))
    before = [part.read_bytes() for part in parts]
    link = bench.folder / "link.mtsum"
    link.symlink_to(parts[1])
    for output in (parts[0], folder / "." / parts[1].name, link):
        for words in ([*parts], [folder], [folder, "--force"]):
            lines = bench.complaints_of(*words, "-o", output, status=2)
            expect("a reason", "is one of the files to read, and would be replaced" in "".join(lines), True)
    expect("the parts", [part.read_bytes() for part in parts], before)
    bench.fleet(*parts, "-o", bench.folder / "whole.mtsum")
    bench.fleet(*parts, "-o", bench.folder / "whole.mtsum")
    trace = bench.folder / "trace.pickle.zst"
    trace.write_bytes(CAPTURE.read_bytes())
    bench.fleet(trace, "--summarize", "-q")
    bench.complaints_of(trace, "-o", f"{trace}.mtsum", status=2)


def check_regression(bench):
    base, same = bench.job(2, 4, 1, 8), bench.job(2, 8, 1, 8)
    heavy = bench.job(2, 4, 1, 8, "heavy=1")
    rule = ("--base", base, "--max-regression", "2%")
    bench.fleet(base, *rule)
    bench.fleet(same, *rule)
    answer = bench.answer(heavy, *rule, status=1)
    expect("a regression", states(answer),
           [(f"max-regression {metric}", f"pp {stage}", "fail" if stage else "pass")
            for metric in ("allocated", "reserved") for stage in (0, 1)])
    gate = answer["gates"][3]
    expect("its bytes", gate["actual_bytes"] - gate["base_bytes"], 300 * MIB)
    bench.fleet(heavy, "--base", base, "--max-regression", "reserved=2%,300MiB")
    expect("without a base", [one[2] for one in states(bench.answer(
        heavy, "--max-regression", "2%", status=1))], ["not evaluated"] * 4)
    bench.fleet(heavy, "--base", bench.job(2, 4, 1, 8, "cut=2"), "--max-regression", "9%", status=1)
    bench.fleet(bench.job(2, 4, 1, 8, "miss=2"), *rule, status=1)
    bench.fleet(heavy, "--base", bench.folder / "none.mtsum", "--max-regression", "9%", status=3)
    budget = bench.folder / "with_base.toml"
    budget.write_text(f"base = \"{base.name}\"\n[max-regression]\nlimit = \"2%\"\n")
    bench.fleet(heavy, "--budget", budget, status=1)
    bench.fleet(base, "--budget", budget)


def check_gates_of_strangers(bench):
    """A rank whose place on the axis is not known is held to the rule like the others."""
    named = bench.job(2, 4, 1, 8, "miss=0")
    stranger = bench.job(2, 4, 1, 8, "mesh=0", "logs=0")
    answer = bench.answer(named, stranger / "rank00000.mtsum", "--max-peak", "reserved=13.5GiB",
                          status=1)
    expect("gates", [(gate["group"], gate["state"], gate["rank"]) for gate in answer["gates"]],
           [("pp 0", "pass", 1), ("pp 1", "pass", 4), ("pp unknown", "fail", 0)])


def check_inputs(bench):
    """What cannot be read is named and counted, and jobs are not mixed."""
    folder = bench.job(2, 4, 1, 8)
    (folder / "rank00003.mtsum").write_bytes(b"MTSUM1\0\0 and nothing else")
    answer = bench.answer(folder, status=3)
    expect("missing rank", answer["missing_ranks"], [3])
    expect("unreadable", [pathlib.Path(one["path"]).name for one in answer["unreadable"]],
           ["rank00003.mtsum"])
    expect("needed is a lower bound", answer["needed_is_exact"], False)
    (bench.folder / "empty").mkdir()
    bench.fleet(bench.folder / "empty", status=3)
    bench.fleet(bench.folder / "none.mtsum", status=3)
    bench.fleet(folder, "--shard", "1/2", status=2)
    bench.fleet(folder, "--shard", "0/2", "-o", bench.folder / "x.mtsum", status=2)
    bench.fleet(folder, "--shard", "3/2", "-o", bench.folder / "x.mtsum", status=2)
    bench.fleet(bench.job(2, 4, 1, 8, "miss=3"), "--strict", status=5)


def check_nothing(bench):
    """A file without a record is no answer, and the command says so."""
    empty = bench.folder / "nothing.mtsum"
    bench.fleet(bench.job(1, 2, 1, 1), "--shard", "2/2", "-o", empty)
    done = subprocess.run([bench.program, "fleet", empty], capture_output=True, text=True,
                          check=False)
    expect("no record", (done.returncode, "no file has a record" in done.stderr), (3, True))


def check_sums(answer):
    """Parts sum to wholes, to the byte."""
    metrics = {one["metric"]: one for one in answer["metrics"]}
    for side in ("a_sum_bytes", "b_sum_bytes"):
        whole = metrics["allocated peak"][side]
        for part in ("roles", "sites"):
            expect(f"{side} of {part}", sum(one[side] for one in answer[part]), whole)
        for axis in answer["axes"]:
            expect(f"{side} of {axis['name']}",
                   sum(one["allocated_peak"][side] for one in axis["groups"]), whole)
        expect(f"{side} of libraries", sum(one[side] for one in answer["libraries"]),
               metrics["memory outside the allocator"][side])


def check_planted_diff(bench):
    """A stage that holds 300 MiB more at a line that an edit has moved, and a rank without a file."""
    before = bench.job(4, 4, 2, 8)
    after = bench.job(4, 4, 2, 8, "heavy=2", "moved=10", "miss=5", "talk=1")
    answer = bench.diff(before, after)
    expect("matched by", answer["matched_by"], "ranks")
    expect("matches", answer["matched_count"], 31)
    expect("missing in B", [one["rank"] for one in answer["only_in_a"]], [5])
    expect("missing ranks", (answer["a"]["missing_ranks"], answer["b"]["missing_ranks"]), ([], [5]))
    site = answer["sites"][0]
    expect("site", (site["site"], site["site_in_a"], site["moved"], site["only_in"]),
           ("forward model.py:88 < step train.py:57", "forward model.py:88 < step train.py:47",
            True, None))
    expect("its change", (site["min_bytes"], site["max_bytes"], site["mean_bytes"]),
           (0, 300 * MIB, 300 * MIB * 8 // 31))
    expect("other sites", [one["max_bytes"] for one in answer["sites"][1:]], [0, 0])
    axes = {axis["name"]: axis["groups"] for axis in answer["axes"]}
    expect("stages", [group["allocated_peak"]["mean_bytes"] for group in axes["pp"]],
           [0, 0, 300 * MIB, 0])
    expect("cause", axes["pp"][2]["site_change_bytes"], 300 * MIB)
    library = answer["libraries"][0]
    expect("library", (library["library"], library["max_bytes"], library["max_match"]),
           ("NCCL", 600 * MIB, "rank 1"))
    expect("ranks", sorted(one["rank"] for one in answer["matches"]
                           if one["reserved_peak"]["change_bytes"] == 300 * MIB), list(range(16, 24)))
    check_sums(answer)
    text = bench.fleet("diff", before, after)
    expect("first line", text.splitlines()[0].startswith("+300 MiB (reserved peak) on rank 16 is "),
           True)
    expect("a job and itself", bench.diff(before, before)["has_changes"], False)
    expect("shards", bench.fleet("diff", "--json", before, after),
           bench.fleet("diff", "--json", "-j", 3, before, after))


def check_other_worlds(bench):
    """Another number of replicas, another mesh, nothing in common."""
    small, large = bench.job(4, 2, 2, 4), bench.job(4, 6, 2, 4, "heavy=1")
    answer = bench.diff(small, large)
    expect("matched by", answer["matched_by"], "groups")
    expect("matches", sorted((one["name"], one["a_ranks"], one["b_ranks"])
                             for one in answer["matches"]), [(f"pp {i}", 4, 12) for i in range(4)])
    expect("largest", answer["matches"][0]["name"], "pp 1")
    check_sums(answer)
    back = bench.diff(large, small)
    expect("the other way", [-one["mean_bytes"] for one in back["sites"]],
           [one["mean_bytes"] for one in answer["sites"]])
    text = bench.fleet("diff", small, large)
    expect(f"sizes of groups in '{text[:400]}'",
           "a group has 4 ranks in A and 12 ranks in B: changes are those of a mean rank" in text, True)
    expect("one size of all groups", "a mean change counts each group once" in text, False)
    short = bench.job(4, 6, 2, 4, "heavy=1", "miss=0", "miss=1", "miss=2")
    text = bench.fleet("diff", small, short).replace("\n  ", " ")
    expect(f"sizes that differ in '{text[:400]}'",
           "a group has 4 ranks in A and 9 to 12 ranks in B" in text and
           "a mean change counts each group once, and the mean of A or of B each rank once" in text, True)
    expect("sizes of equal jobs", "ranks in A and" in bench.fleet("diff", small, small), False)
    other = bench.job(2, 2, 2, 4, "heavy=1")
    answer = bench.diff(small, other)
    expect("matched by", answer["matched_by"], "parameters")
    text = bench.fleet("diff", small, other)
    expect("no sizes of sets with equal sizes", "ranks of A" in text, False)
    wide = bench.fleet("diff", small, bench.job(2, 4, 2, 4, "heavy=1"))
    expect("a set of other size", "a set of parameters has 4 ranks in A and 8 ranks in B" in wide, True)
    expect(f"sizes in the table of '{wide}'",
           [line.split()[7:9] for line in wide.splitlines()
            if line.startswith("  parameters as of rank 12 of A")], [["4", "8"]])
    expect("the plural of a set", " sets of parameters" in text and "parameterss" not in text, True)
    check_sums(answer)


def check_diff_inputs(bench):
    one, other = bench.job(2, 2, 1, 4), bench.job(2, 2, 1, 4)
    (other / "rank00002.mtsum").write_bytes(b"MTSUM1\0\0 and nothing else")
    answer = bench.diff(one, other, status=3)
    expect("unreadable", answer["b"]["files_unreadable"], 1)
    expect("only in A", [rank["rank"] for rank in answer["only_in_a"]], [2])
    mixed = bench.job(1, 4, 1, 4, "mesh=0", "job=")
    bench.fleet(CAPTURE, "--quiet", "-o", mixed / "process_without_a_rank.mtsum")
    text = bench.fleet("diff", mixed, bench.job(1, 4, 1, 4, "mesh=0", "job=", "miss=0", "miss=1"))
    expect("ranks 0 and 1 after a process without a rank",
           "3 only in A, not in the changes: rank 0-1\n" in text, True)
    bench.fleet("diff", one, status=2)
    bench.fleet("diff", one, other, one, status=2)
    bench.fleet("diff", one, bench.folder / "none.mtsum", status=3)
    bench.fleet("diff", one, bench.job(2, 2, 1, 4, "miss=1"), "--strict", status=5)
    bench.fleet("diff", one, one, "--mesh", "pp:3", status=2)
    bench.fleet("diff", one, one, "--job-b", "slurm:1", status=2)
    folder = bench.folder / "diff"
    folder.mkdir()
    (folder / "a.mtsum").write_bytes((one / "rank00000.mtsum").read_bytes())
    expect("a folder called diff", json.loads(bench.fleet("--json", folder))["ranks_seen"], 1)
    done = subprocess.run([pathlib.Path(bench.program).resolve(), "fleet", "./diff", "--json"], cwd=bench.folder,
                          capture_output=True, check=False)
    expect("./diff", done.returncode, 0)
    large = bench.job(4, 512, 2, 8)
    text = bench.fleet("diff", "--json", large, bench.job(4, 512, 2, 8, "heavy=0", "miss=9"))
    expect("a bounded diff", len(text) < 1 << 20, True)
    expect("rows that are left out", json.loads(text)["matches_omitted"] > 0, True)


def check_many_damaged(bench):
    """Damaged files are named up to a bound, and counted beyond it."""
    folder = bench.job(4, 128, 1, 512)
    files = sorted(folder.glob("*.mtsum"))
    for damaged in files[100:400:3]:
        damaged.write_bytes(damaged.read_bytes()[:-1])
    lines = bench.complaints_of(folder, status=3)
    expect("named files", [line for line in lines if "cannot read" in line],
           [f"memtrace: cannot read '{path}': the summary is cut short, or bytes follow its end"
            for path in files[100:400:3]])
    expect("count", lines[-1], "memtrace: fleet: 100 files cannot be read")
    for damaged in files[400:]:
        damaged.write_bytes(b"")
    lines = bench.complaints_of(folder, status=3)
    expect("named files of many", sum("cannot read" in line for line in lines), 100)
    expect("count of many", lines[-1],
           "memtrace: fleet: 212 files cannot be read; --all lists them")
    lines = bench.complaints_of(folder, "--all", status=3)
    expect("named files with --all", sum("cannot read '" in line for line in lines), 212)
    answer = bench.answer(folder, status=3)
    expect("missing", len(answer["missing_ranks"]), 212)
    expect("unreadable", len(answer["unreadable"]), 212)


def check_memory(bench):
    """A job that does not fit into --max-memory: one line that says why and what to do."""
    folder = bench.job(4, 512, 2, 1024)
    expect("too little memory", bench.complaints_of(folder, "--max-memory", "3MiB", status=3),
           [f"memtrace: cannot read '{folder}': needs more memory than the 3.00 MiB that --max-memory "
            "allows; raise --max-memory"])


def check_restarts(bench):
    first = bench.job(2, 4, 1, 8, "die=2")
    second = bench.job(2, 4, 1, 8, "restart=1")
    answer = bench.answer(first, second)
    expect("starts", answer["starts"], [{"restart": 0, "records": 8, "deaths": 1},
                                        {"restart": 1, "records": 8, "deaths": 0}])
    expect("death of an earlier start", answer["first_death"], None)


def check_old_summary(bench):
    """A summary that is older than its trace is of another run: only the trace is read."""
    folder = bench.folder / "old"
    folder.mkdir()
    trace, summary = folder / "r.trace.zst", folder / "r.trace.zst.mtsum"
    subprocess.run([bench.program, "import", "--quiet", "--no-summary", CAPTURE, "-o", trace], check=True)
    wanted = bench.fleet("--json", folder)
    summary.write_bytes((bench.job(1, 1, 1, 1) / "rank00000.mtsum").read_bytes())
    os.utime(summary, (0, 0))
    for words in ([folder], [trace, summary]):
        expect("the same without its old summary", bench.fleet("--json", *words), wanted)


def main(program, writer):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(program, writer, pathlib.Path(folder))
        for check in (check_facts, check_small_gaps, check_bounds, check_order, check_axes, check_gates,
                      check_gates_of_strangers, check_budget, check_not_evaluated, check_regression,
                      check_doubt_breaks_no_rule, check_counts_of_gates, check_budget_words,
                      check_output_is_no_input,
                      check_inputs, check_nothing, check_many_damaged, check_memory, check_restarts,
                      check_planted_diff, check_other_worlds, check_diff_inputs, check_old_summary):
            check(bench)
    print("\n".join(complaints) or "fleet: every planted fact, and the same bytes in any order")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
