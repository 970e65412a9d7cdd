#!/usr/bin/env python3
"""check_fleet_tune.py PROGRAM [DIR...]: `memtrace fleet --tune`, compared with `tune`, `replay` and
`fit` on each trace.

The slow way to the same answer: the settings that `tune` prints for the rank of each cluster that
needs the most, a replay and a search of each on every rank that was checked, and the setting with
the smallest largest need. Each DIR is one more job of traces to check, such as recordings that are
too large for the fixtures."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from support.json_schema import Schemas
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS = Schemas(ROOT / "docs" / "schema")
CAPTURES, JOBS = ROOT / "fixtures" / "captures", ROOT / "fixtures" / "jobs"
SETTINGS_A_TRACE, SHORTLIST = 6, 8
complaints = []


def expect(what, actual, wanted):
    if actual != wanted:
        complaints.append(f"{what}: {actual!r:.300}, not {wanted!r:.300}")


def run(program, *words, status=0):
    done = subprocess.run([str(word) for word in (program, *words)], capture_output=True, text=True,
                          check=False)
    expect(f"status of {' '.join(map(str, words))[:200]} ({done.stderr[:300]})", done.returncode, status)
    return done


def answer_of(program, *words, status=0):
    answer = json.loads(run(program, "fleet", "--json", "-q", "--tune", *words, status=status).stdout)
    for complaint in SCHEMAS.complaints(answer, "fleet.json"):
        complaints.append(f"{words}: {complaint}")
    return answer


class Oracle:
    """One trace under one setting, by the commands that print it."""

    def __init__(self, program):
        self.program, self.known = program, {}

    def devices(self, trace, conf):
        """{device: (limit, need, peak, calls)}; conf None: as the run was."""
        key = (str(trace), conf)
        if key not in self.known:
            policy = "pytorch" if conf is None else f"pytorch:{conf}"
            fits = json.loads(run(self.program, "fit", "--json", "-q", "--no-cards", trace, "-p", policy).stdout)
            replays = json.loads(run(self.program, "replay", "--json", "-q", trace, "-p", policy).stdout)
            found = {}
            for fit, replay in zip(fits["policies"], replays["policies"]):
                expect(f"devices of {trace}", fit["device"], replay["device"])
                above = max(0, fit["fit_reserved_bytes"] - fit["modeled_order_fit_bytes"])
                found[fit["device"]] = (fit["fit_bytes"], fit["fit_bytes"] + above,
                                        replay["reserved_peak_bytes"],
                                        replay["device_allocs"] + replay["device_frees"])
            self.known[key] = found
        return self.known[key]

    def tuned(self, trace):
        """Settings of the front of `tune`, and what the run had."""
        answer = json.loads(run(self.program, "tune", "--json", "-q", "--no-fits", trace).stdout)
        confs = [row["conf"] for row in answer["front"]]
        best = answer["best"]["conf"]
        kept = [conf for i, conf in enumerate(confs) if i < SETTINGS_A_TRACE or conf == best]
        return kept, answer["current"]["conf"]


def check_cells(oracle, name, checked, conf, paths):
    """Every number of the replayed ranks; their needs beside the allocator."""
    beside = {}
    for row in checked:
        place = (row["trace"], row["device"])
        before = oracle.devices(paths[row["trace"]], None)[row["device"]]
        after = oracle.devices(paths[row["trace"]], conf)[row["device"]]
        beside[place] = row["before"]["needed_bytes"] - before[1]
        for cell, wanted in ((row["before"], before), (row["after"], after)):
            expect(f"{name}, {place}", (cell["limit_bytes"], cell["needed_bytes"],
                                        cell["reserved_peak_bytes"], cell["driver_calls"]),
                   (wanted[0], wanted[1] + beside[place], wanted[2], wanted[3]))
    return beside


def check_largest(name, settings, key):
    rows = settings["checked"]
    largest = max(row[key]["needed_bytes"] for row in rows)
    expect(f"{name}, largest need {key}", settings[key]["needed_bytes"], largest)
    expect(f"{name}, limit {key}", settings[key]["limit_bytes"],
           max(row[key]["limit_bytes"] for row in rows))
    expect(f"{name}, rank {key}", settings[key]["trace"],
           next(row["trace"] for row in rows if row[key]["needed_bytes"] == largest))


def check_choice(oracle, name, settings, beside, paths):
    """No setting that tune prints for a tuned rank needs less."""
    checked = settings["checked"]
    confs = []
    for trace in dict.fromkeys(row["trace"] for row in checked if row["tuned"]):
        kept, current = oracle.tuned(paths[trace])
        confs += [conf for conf in kept if conf not in confs]
        for cluster in settings["clusters"]:
            if cluster["trace"] == trace:
                expect(f"{name}, setting of the run", cluster["run_conf"], current)
    expect(f"{name}, settings", settings["settings_replayed"], len(confs))

    def peak(conf):
        return max(oracle.devices(paths[row["trace"]], conf)[row["device"]][2]
                   + beside[row["trace"], row["device"]] for row in checked)

    def need(conf):
        return max(oracle.devices(paths[row["trace"]], conf)[row["device"]][1]
                   + beside[row["trace"], row["device"]] for row in checked)

    listed = sorted(confs, key=peak)[:SHORTLIST]
    least = min([need(conf) for conf in listed] + [settings["before"]["needed_bytes"]])
    expect(f"{name}, least need", settings["after"]["needed_bytes"], least)
    expect(f"{name}, nothing is gained", settings["conf"] is None,
           least == settings["before"]["needed_bytes"])
    for cluster in settings["clusters"]:
        place = (cluster["trace"], cluster["device"])
        own = [oracle.devices(paths[place[0]], conf)[place[1]][1] for conf in confs]
        own.append(oracle.devices(paths[place[0]], None)[place[1]][1])
        if len(confs) <= SHORTLIST:
            expect(f"{name}, own best of {place}", cluster["own"]["needed_bytes"],
                   min(own) + beside[place])


def check_job(program, oracle, name, *words):
    """A job whose traces are all there."""
    answer = answer_of(program, *words, "--all")
    settings = answer["settings"]
    paths = {}
    for word in map(pathlib.Path, words):
        for path in word.rglob("*") if word.is_dir() else [word]:
            paths[path.name] = path
    beside = check_cells(oracle, name, settings["checked"], settings["conf"], paths)
    check_largest(name, settings, "before")
    check_largest(name, settings, "after")
    check_choice(oracle, name, settings, beside, paths)
    rows = {(row["trace"], row["device"]): row for row in answer["ranks"]}
    for row in settings["checked"]:
        reported = rows[row["trace"], row["device"]]
        if reported["needed_is_exact"]:
            expect(f"{name}, need as fleet says it", row["before"]["needed_bytes"], reported["needed_bytes"])
    expect(f"{name}, every rank is in one list",
           sorted((row["trace"], row["device"]) for key in ("checked", "not_checked_but_alike", "not_checked")
                  for row in settings[key]), sorted(rows))
    expect(f"{name}, worst rank is checked",
           max(rows.values(), key=lambda row: row["needed_bytes"])["needed_bytes"]
           in [rows[row["trace"], row["device"]]["needed_bytes"] for row in settings["checked"]], True)
    return answer


def check_missing(program, folder):
    """Ranks without a trace, or with another one, are named and not claimed."""
    for rank in (0, 1):
        shutil.copy(CAPTURES / f"ddp_leak_rank{rank}.pickle.zst", folder)
    run(program, "fleet", folder, "--summarize", "-q")
    whole = answer_of(program, folder)["settings"]
    expect("a worker", answer_of(program, folder, "-j", "1")["settings"], whole)
    expect("replayed", sorted(row["rank"] for row in whole["checked"]), [0, 1])
    expect("the worst is tuned", [row["rank"] for row in whole["checked"] if row["tuned"]], [1])
    trace = folder / "ddp_leak_rank1.pickle.zst"
    trace.rename(folder / "elsewhere")
    check_stand_in(program, folder, "there is no trace beside its summary")
    trace.write_bytes((folder / "ddp_leak_rank0.pickle.zst").read_bytes())
    for summary in folder.glob("*.mtsum"):
        summary.touch()
    check_stand_in(program, folder, "the file is not the one that was summarized")
    check_unreadable(program, folder, trace)
    for trace in folder.glob("*.zst"):
        trace.unlink()
    done = run(program, "fleet", folder, "--tune", status=3)
    expect("no trace", "no rank has a trace beside its summary" in done.stderr, True)


def check_stand_in(program, folder, reason):
    """Rank 0 is replayed instead of rank 1, which needs the most and is not claimed."""
    settings = answer_of(program, folder)["settings"]
    expect("replayed", [(row["rank"], row["tuned"]) for row in settings["checked"]], [(0, True)])
    expect("alike", [row["rank"] for row in settings["not_checked_but_alike"]], [1])
    expect("reasons", [(row["rank"], row["reason"]) for row in settings["not_replayable"]],
           [(1, reason)])
    text = run(program, "fleet", folder, "--tune", "-q").stdout.replace("\n  ", " ")
    for words in ("on each device that was checked", "Checked by replay: rank 0",
                  "Not checked: rank 1; an equivalent rank was checked",
                  "rank 1 needs about 1.24 GiB as it ran, more than any rank that was checked",
                  f"Not replayed: rank 1: {reason}"):
        expect(f"words of '{text}': {words}", words in text, True)


def check_unreadable(program, folder, trace):
    """A trace that is there but cannot be read: the answer is for the others, and the status is 3."""
    trace.unlink()
    trace.symlink_to("/proc/self/mem")  # nothing is mapped at its start, so reading fails
    for summary in folder.glob("*.mtsum"):
        os.utime(summary, (1 << 32, 1 << 32))  # newer than the trace, whose time is now
    done = run(program, "fleet", folder, "--tune", "-q", status=3)
    expect("others are tuned", "Checked by replay: rank 0" in done.stdout, True)
    expect(f"message of {done.stderr}", f"'{trace}': no SHA-256: Input/output error\n" in done.stderr, True)


def check_other_cluster(program, folder):
    """A cluster of which no rank has a trace."""
    for trace in (JOBS / "share").glob("*.zst"):
        shutil.copy(trace, folder)
    run(program, "fleet", folder, "--summarize", "-q")
    next(folder.glob("*rank0*.zst")).unlink()
    settings = answer_of(program, folder)["settings"]
    expect("no rank of the cluster", [row["rank"] for row in settings["not_checked"]], [0])
    expect("none is alike", settings["not_checked_but_alike"], [])
    text = run(program, "fleet", folder, "--tune", "-q").stdout
    expect("it is said", "Not checked: rank 0; no equivalent rank was checked" in text, True)


def check_shared(program):
    """Two ranks on one device: the numbers are those of a rank, and the answer says so."""
    text = run(program, "fleet", JOBS / "share", "--tune", "-q").stdout.replace("\n  ", " ")
    for words in ("less on each rank: ", "Ranks share 1 device, and such a device must have memory"):
        expect(f"words of a shared device in '{text[:600]}'", words in text, True)
    expect("no number for each device", "less on each device" in text, False)


def check_names(program, folder):
    """Traces with one name in folders of their own, as snapshots of ranks often are."""
    for rank in (0, 1):
        (folder / str(rank)).mkdir()
        shutil.copy(CAPTURES / f"ddp_leak_rank{rank}.pickle.zst", folder / str(rank) / "snapshot.pickle.zst")
    run(program, "fleet", folder, "--summarize", "-q")
    settings = answer_of(program, folder)["settings"]
    expect("both are found", len(settings["checked"]), 2)
    text = run(program, "fleet", folder, "--tune", "-q").stdout.replace("\n  ", " ")
    expect(f"one setting in '{text[:200]}'", "the best setting that tune found does not need less" in text, True)
    for rank in (0, 1):
        shutil.copy(CAPTURES / "leak.pickle.zst", folder / str(rank) / "snapshot.pickle.zst")
    for summary in folder.rglob("*.mtsum"):
        summary.touch()
    done = run(program, "fleet", folder, "--tune", "-q", status=3)
    expect(f"a reason in '{done.stderr[:300]}'", "no rank has a trace beside its summary" in done.stderr, True)


def check_real_runs(program):
    """Jobs that ran again under the setting, on real GPUs. Which rank has which peak may change from
    run to run (fixtures/jobs/README.md, ddp), so values are compared, not ranks."""
    for job, real in json.loads((JOBS / "settings.json").read_text())["jobs"].items():
        settings = answer_of(program, JOBS / job)["settings"]
        predicted = {row["after"]["reserved_peak_bytes"] for row in settings["checked"]}
        expect(f"{job}: the setting", settings["conf"], real["conf"])
        expect(f"{job}: reserved peaks", predicted, set(real["reserved_peak_bytes"]))
        if "fits_limit_bytes" in real:
            expect(f"{job}: the smallest limit", real["fails_limit_bytes"]
                   < settings["after"]["limit_bytes"] <= real["fits_limit_bytes"], True)


def check_refusals(program, folder):
    done = run(program, "fleet", JOBS / "ddp", "--tune", "--shard", "1/2", "-o", folder / "x.mtsum",
               status=2)
    expect("a shard", "--tune needs all ranks" in done.stderr, True)
    done = run(program, "fleet", ROOT / "fixtures" / "recorded" / "driver_only.trace.zst", "--tune",
               status=3)
    expect("not PyTorch", "cannot replay any rank" in done.stderr, True)
    expect("not asked", json.loads(run(program, "fleet", "--json", CAPTURES / "leak.pickle.zst").stdout)
           ["settings"], None)


def main(program, *folders):
    oracle = Oracle(program)
    check_job(program, oracle, "ddp_leak", CAPTURES / "ddp_leak_rank0.pickle.zst",
              CAPTURES / "ddp_leak_rank1.pickle.zst")
    check_job(program, oracle, "twogpu", CAPTURES / "twogpu.pickle.zst")
    check_job(program, oracle, "share", JOBS / "share")
    job = check_job(program, oracle, "ddp", CAPTURES / "ddp_rank0.pickle.zst",
                    CAPTURES / "ddp_rank1.pickle.zst")
    expect("ddp needs less", job["settings"]["conf"] is not None, True)
    for folder in folders:
        check_job(program, oracle, folder, folder)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("missing", "cluster", "names"):
            (pathlib.Path(folder) / name).mkdir()
        check_missing(program, pathlib.Path(folder) / "missing")
        check_other_cluster(program, pathlib.Path(folder) / "cluster")
        check_names(program, pathlib.Path(folder) / "names")
        check_shared(program)
        check_real_runs(program)
        check_refusals(program, pathlib.Path(folder))
    print("\n".join(complaints) or "fleet --tune: every number is that of tune, replay and fit")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), *sys.argv[2:]))
