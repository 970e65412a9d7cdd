#!/usr/bin/env python3
"""score.py PROGRAM [--floor] [--rows] [TABLE...]: how often memtrace says the right word.

A table is a JSON list of recordings with what their programs really have (fixtures/meaning/README.md).
Without TABLE: that of fixtures/meaning. The score is the share of bytes at the allocated peak with the
right role, of recordings with the right steps, and with a right first advice; and how many false
findings there are. --rows prints what is wrong. --floor: status 1 if a score is below FLOORS.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support.program import fast_program

TABLE = ROOT / "fixtures" / "meaning" / "truth.json"
FLOORS = {"roles": 99, "steps": 100, "first": 100, "false": 0}  # "false": at most
# Words of the report for what a table calls "rest": memory that the program's own objects do not hold.
REST = {"temporaries", "activations", "workspace", "other", "inputs", "buffers", "outputs", "communication"}


def analyzed(program, path):
    done = subprocess.run([program, "analyze", "--json", "--quiet", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600, check=False)
    if done.returncode:
        raise SystemExit(f"analyze {path}: status {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)["devices"]


def words_of(key):
    """The roles that a key of the table allows: "a|b"; "rest"."""
    words = set(key.split("|"))
    return words | REST if "rest" in words else words


def right_bytes(true, said):
    """Bytes with a right role: the narrowest keys choose first."""
    left, right = dict(said), 0
    for key in sorted(true, key=lambda k: len(words_of(k))):
        wanted = true[key]
        for word in sorted(words_of(key) & left.keys()):
            used = min(wanted, left[word])
            wanted, left[word], right = wanted - used, left[word] - used, right + used
    return right


def judged(program, row, folder):
    """{what: (points, of how many)} of a recording, and what is wrong with it."""
    # Truth is of the device with the most memory.
    device = max(analyzed(program, folder / row["file"]), key=lambda d: d["summary"]["allocated_peak"]["bytes"])
    said = {r["role"]: r["bytes"] for r in device["roles_at_peak"]}
    findings = [f["id"] for f in device["findings"]]
    points, wrong = {}, []
    if row.get("roles"):
        true = {k: v for k, v in row["roles"].items() if k != "?"}
        whole = sum(true.values())
        right = min(right_bytes(true, said), whole) / whole
        points["roles"] = (right, 1)
        if right < 0.97:
            wrong.append(f"roles {right:.0%}: " + ", ".join(
                f"{k} {said.get(k, 0) / 2**20:.1f}/{true.get(k, 0) / 2**20:.1f}" for k in sorted({*said, *true}) if
                max(said.get(k, 0), true.get(k, 0)) > whole / 50) + " MiB said/true")
    if "steps" in row:
        counts = row["steps"] if isinstance(row["steps"], list) else [row["steps"] or 0]
        points["steps"] = (len(device["steps"]) in counts, 1)
        if len(device["steps"]) not in counts:
            wrong.append(f"steps {len(device['steps'])}, true {counts}")
    if "first" in row:
        first = findings[0] if findings else None
        points["first"] = (first in row["first"] or (first is None and (not row["first"] or None in row["first"])), 1)
        if not points["first"][0]:
            wrong.append(f"first {first}, true {row['first']}")
    false = [kind for kind in findings if kind in row.get("not", ())]
    points["false"] = (len(false), 1)
    if false:
        wrong.append(f"false {false}")
    return points, wrong


def main(program, options, tables):
    rows = [(row, pathlib.Path(table).parent) for table in tables or [TABLE] for row in json.loads(pathlib.Path(table).read_text())]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(lambda item: judged(program, *item), rows))
    score = {}
    for what in FLOORS:
        of = [points[what] for points, _ in results if what in points]
        total = sum(got for got, _ in of)
        score[what] = total if what == "false" else 100 * total / max(1, len(of))
        print(f"{what:6} {total:g} false findings" if what == "false" else f"{what:6} {score[what]:5.1f} % of {len(of)} recordings")
    if "--rows" in options:
        for (row, _), (_, wrong) in zip(rows, results):
            if wrong:
                print(f"{row['file']}: " + "; ".join(wrong))
    if "--floor" not in options:
        return 0
    bad = [what for what, floor in FLOORS.items() if (score[what] > floor if what == "false" else score[what] < floor)]
    for what in bad:
        print(f"{what} is {score[what]:.1f}; the floor is {FLOORS[what]}")
    return bool(bad)


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    sys.exit(main(fast_program(arguments[0]), [a for a in sys.argv[1:] if a.startswith("--")], arguments[1:]))
