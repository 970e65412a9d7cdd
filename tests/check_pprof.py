#!/usr/bin/env python3
"""check_pprof.py PROGRAM FIXTURES: profiles of `export pprof`, read by a decoder of its own.

Every metric sums to the counter of the instant, bytes by role and by frame are those of `live`, and a
selection over time has the blocks of `export folded`. With Go, its own pprof also reads them."""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from support.protobuf import fields, packed

CAPTURES = {"gpt_default": ("peak", "reserved-peak", "end", "phase:step#2/backward"), "oom_adam": ("oom", "peak"),
            "streams": ("peak", "300"), "twogpu": ("peak",), "graph": ("reserved-peak",), "leak": ("end",),
            "churn_expandable": ("peak",), "churn_noframes": ("peak",), "seq2seq_native": ("peak",), "lstm": ("peak",)}


class Profile:
    def __init__(self, data):
        top = collections.defaultdict(list)
        for number, value in fields(data):
            top[number].append(value)
        self.strings = [text.decode() for text in top[6]]
        assert self.strings[0] == ""
        functions = {each[1]: self.strings[each[2]] for each in map(dict, map(fields, top[5]))}
        lines = {each[1]: dict(fields(each[4])) for each in map(dict, map(fields, top[4]))}
        names = {number: functions[line[1]] for number, line in lines.items()}
        self.types = [self.strings[dict(fields(each))[1]] for each in top[1]]
        self.samples = [self.sample(each, names) for each in top[2]]

    def sample(self, data, names):
        stack, values, labels = [], [], {}
        for number, value in fields(data):
            if number == 1:
                stack = [names[each] for each in packed(value)]
            elif number == 2:
                values = packed(value)
            else:
                label = dict(fields(value))
                labels[self.strings[label[1]]] = self.strings[label[2]] if 2 in label else label.get(3, 0)
        assert stack and len(values) == len(self.types)
        return stack, dict(zip(self.types, values)), labels

    def sum(self, metric):
        return sum(values[metric] for _, values, _ in self.samples)

    def by_role(self):
        sums = collections.Counter()
        for _, values, labels in self.samples:
            if "role" in labels:
                sums[labels["role"]] += values["allocated"]
        return dict(sums)


def check_instant(program, path, at, profile):
    done = subprocess.run([program, "live", path, "--at", at, "--by", "role", "--json", "--all", "-q"],
                          stdout=subprocess.PIPE, check=True)
    device = max(json.loads(done.stdout)["devices"], key=lambda each: each["bytes"]["reserved"])
    sizes, waiting = device["bytes"], device["waiting"]
    assert profile.sum("allocated") == sizes["allocated"], (path, at)
    assert profile.sum("reserved") == sizes["reserved"], (path, at)
    assert profile.sum("requested") == sizes["requested"] - waiting["requested_bytes"], (path, at)
    assert profile.sum("blocks") == sum(row["blocks"] for row in device["rows"]), (path, at)
    assert profile.by_role() == {row["group"]: row["bytes"] for row in device["rows"]}, (path, at)
    for _, values, labels in profile.samples:
        assert values["blocks"] * labels.get("bytes", 0) == values["allocated"], labels


def check_population(program, path, profile):
    """All blocks of the run: the bytes of folded stacks, which leave out frames of the framework."""
    folded = subprocess.run([program, "export", "folded", path, "--of", "allocated-total"],
                            stdout=subprocess.PIPE, check=True).stdout.decode()
    assert profile.sum("allocated") == sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())


def export(program, path, out, *options):
    subprocess.run([program, "export", "pprof", path, "-o", out, "--force", *options], check=True)
    return Profile(out.read_bytes())


def check_go(out, profile):
    """Skipped without Go."""
    if not shutil.which("go"):
        return
    done = subprocess.run(["go", "tool", "pprof", "-raw", out], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout.decode()
    values = [[int(each) for each in row.split()] for row in re.findall(r"^ +((?:\d+ +){3}\d+):", done, re.M)]
    for at, metric in enumerate(profile.types):
        assert sum(row[at] for row in values) == profile.sum(metric), (out, metric)


def main(program, fixtures):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run.pb"
        for name, instants in CAPTURES.items():
            path = pathlib.Path(fixtures) / "captures" / f"{name}.pickle.zst"
            for at in instants:
                profile = export(program, path, out, "--at", at)
                check_instant(program, path, at, profile)
                check_go(out, profile)
            check_population(program, path, export(program, path, out, "--of", "allocated-total"))
    print(f"{len(CAPTURES)} captures, {sum(map(len, CAPTURES.values()))} instants")


if __name__ == "__main__":
    main(*sys.argv[1:])
