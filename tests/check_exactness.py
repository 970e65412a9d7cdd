#!/usr/bin/env python3
"""check_exactness.py PROGRAM [--snapshots N] [--seed S] [--jobs J] [--json FILE] [--only SEED]: claims of exactness.

Random programs run on a slow model of PyTorch's allocator (differential/allocator_model.py). `memtrace analyze` reads
their snapshots. Whatever it calls exact must be what the model counted: the peak since the window began and the level
at the end of each counter that the claim covers, and OOMs. A trace made by import must give the same claims. No claim
may survive a snapshot that ends with other levels. Prints the seed, and exits with 1 if a claim is wrong or if too few
devices are claimed exact. --only repeats the snapshot of one seed; --json stores all outcomes."""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import pickle
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "differential"))
from allocator_model import Program, Waiting  # noqa: E402
from support.program import fast_program  # noqa: E402

LEVELS = ("requested", "allocated", "active", "reserved")
LEAST_EXACT = 0.85  # of the devices: a check that claims nothing is never wrong


def differences(report, truth):
    """{what: report - model} of the counters that the report covers."""
    levels, counts = truth
    summary, found = report["summary"], {}
    for name in report["verify"].get("exact_counters", LEVELS):
        if name in levels:
            peak, end = levels[name]
            found[f"{name} peak"], found[f"{name} at the end"] = summary[f"{name}_peak"]["bytes"] - peak, summary["end"][name] - end
    found["ooms"] = summary["ooms"] - counts["ooms"]
    return {what: by for what, by in found.items() if by}


def outcome_of(report, truth):
    exact = bool(report["verify"]["exact"])
    wrong = differences(report | {"verify": report["verify"] if exact else {}}, truth)
    reason = None if exact else report["verify"]["first_difference"] or "events are missing"
    return {"exact": exact, "policy": report["verify"]["policy"], "reason": reason, "wrong": wrong}


def same_claims(program, path, reports):
    """Whether a trace that import makes of the snapshot gives the same claims."""
    trace = path.with_suffix(".trace")
    subprocess.run([program, "import", "--quiet", path, "-o", trace], capture_output=True, check=True)
    done = subprocess.run([program, "analyze", "--quiet", "--json", trace], capture_output=True, text=True, check=True)
    trace.unlink()
    return {number: report["verify"] for number, report in reports.items()} == {
        report["device"]: report["verify"] for report in json.loads(done.stdout)["devices"]}


def program_of(seed):
    """The first four seeds are programs whose frees wait, in which no free completes. All others are random."""
    return Waiting(seed, expandable=seed & 1, is_requested_in_it=seed & 2) if seed < 4 else Program(seed)


def try_seed(arguments):
    """[outcome of a device with entries], or the failure of the program."""
    program, seed, folder = arguments
    model = program_of(seed)
    path = pathlib.Path(folder, f"{seed}.pickle")
    with open(path, "wb") as file:
        pickle.dump(model.snapshot(), file, protocol=4)
    done = subprocess.run([program, "analyze", "--quiet", "--json", path], capture_output=True, text=True, timeout=600)
    truths = {device.number: model.truth(device.number) for device in model.devices}
    outcomes = []
    if done.returncode and any(truths.values()):
        return [{"seed": seed, "failed": f"status {done.returncode}: {done.stderr.strip()[-200:]}"}]
    reports = {report["device"]: report for report in json.loads(done.stdout)["devices"]} if not done.returncode else {}
    if seed % 8 == 0 and reports and not same_claims(program, path, reports):
        return [{"seed": seed, "failed": "the imported trace gives other claims"}]
    path.unlink()
    for number, truth in truths.items():
        if truth and number in reports:
            facts = {"seed": seed, "device": number, "window": model.kind if model.cut[number] else "whole",
                     "options": model.options.text(), "pools": len(model.devices[number].pools) > 1}
            outcomes.append(facts | outcome_of(reports[number], truth))
    return outcomes


def claims_despite_other_ends(program, folder):
    """What is claimed exact although the snapshot says that the run ended otherwise: it must be nothing."""
    model = next(one for one in map(Program, range(1000)) if one.kind == "whole" and len(one.devices) == 2 and all(
        device.trace and 0 < device.levels["allocated"] < 1 << 40 and not one.options.expandable for device in one.devices))

    def exact(segments):
        path = pathlib.Path(folder, "ends.pickle")
        path.write_bytes(pickle.dumps(model.snapshot() | {"segments": segments}, protocol=4))
        text, answer = (subprocess.run([program, "analyze", "--quiet", *options, path], capture_output=True, text=True, check=True).stdout
                        for options in (["--all"], ["--json"]))
        return [" exact" in line for line in text.splitlines() if line.startswith("  replay (pytorch")] + [
            report["verify"]["exact"] for report in json.loads(answer)["devices"]]

    segments = model.snapshot()["segments"]
    others = {f"{level} + 1": [segment | {level: segment[level] + 1} for segment in segments]
              for level in ("allocated_size", "active_size", "requested_size", "total_size")}
    others["no segments"] = []
    return ([] if exact(segments) == 4 * [True] else ["the snapshot itself is not exact"]) + [
        f"exact with {what}" for what, changed in others.items() if any(exact(changed))]


def kind_of(reason):
    """A reason without its numbers."""
    return re.sub(r"0x[0-9a-f]+|[0-9][0-9,.]*( [KMGT]?i?B| bytes)?", "N", reason)


def summary_of(outcomes):
    claimed = [one for one in outcomes if one.get("exact")]
    return {"devices": sum("exact" in one for one in outcomes), "exact": len(claimed), "wrong_claims": sum(bool(one["wrong"]) for one in claimed),
            "not_exact_but_right": sum(one.get("exact") is False and not one["wrong"] for one in outcomes),
            "failed": sum("failed" in one for one in outcomes)}


def print_outcomes(outcomes):
    reasons = collections.Counter((kind_of(one["reason"]), "right" if not one["wrong"] else "off")
                                  for one in outcomes if one.get("exact") is False)
    for (reason, numbers), count in reasons.most_common(12):
        print(f"  {count} not exact, numbers {numbers}: {reason}")
    for one in outcomes:
        if "failed" in one or (one["exact"] and one["wrong"]):
            print("WRONG:", json.dumps(one))
    print(json.dumps(summary_of(outcomes)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--snapshots", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    seeds = [arguments.only] if arguments.only is not None else [*range(4), *(dice.randrange(1 << 40) for _ in range(arguments.snapshots))]
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        work = pool.map(try_seed, [(fast_program(arguments.program), seed, folder) for seed in seeds], chunksize=4)
        outcomes = [outcome for outcomes in work for outcome in outcomes]
        outcomes += [{"seed": None, "failed": what} for what in claims_despite_other_ends(fast_program(arguments.program), folder)]
    if arguments.json:
        arguments.json.write_text("\n".join(map(json.dumps, outcomes)) + "\n")
    print_outcomes(outcomes)
    found = summary_of(outcomes)
    too_few = found["exact"] < LEAST_EXACT * found["devices"] or any(
        one["seed"] in range(4) and not one.get("exact") for one in outcomes)
    sys.exit(1 if found["wrong_claims"] or found["failed"] or too_few else 0)


if __name__ == "__main__":
    main()
