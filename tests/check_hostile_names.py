#!/usr/bin/env python3
"""check_hostile_names.py PROGRAM: names in a trace never become more than text. Every
command reads traces whose functions, files, phases and paths hold control and
format characters, commands of CI systems, and bytes that are not UTF-8. No output holds
one of them; JSON holds the same characters as escapes; proofs can be pasted."""
import json
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys
import tempfile
import unicodedata
import xml.dom.minidom

from check_charts import charts_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMES = ["a\u202egnp.exe", "\u2066x\u2069", "line\u2028end\u2029", "csi\x9b31m", "esc\x1b[31m", "nl\n::error::n",
         "cr\r##[error]r", "##[error]git", "x##vso[task.setvariable]y", "##teamcity[x]", "::set-output name=a::b",
         " ::warning::w", "\u00a0::error::s", "\u3000::error::w", "zero\u200bwidth\ufeff", "soft\u00adhyphen",
         "tag\U000e0061", "\u061c", "del\x7f", "nul\x00", "non\ufffe", "plain", "tab\tx", "##"]
SPOKEN = {"\n", "\t"}  # of memtrace's own
HIDDEN = {"Cc", "Cf", "Zl", "Zp"}
OTHER_CHARTS = {"diff", "policies"}  # made of two traces, of many replays


def snapshot(seed):
    """Functions, files and phases have those names; some blocks stay."""
    chance = random.Random(seed)
    trace, alive = [], []
    for i in range(400):
        if alive and chance.random() < 0.4:
            old = alive.pop(chance.randrange(len(alive)))
            for action in ("free_requested", "free_completed"):
                trace.append({**old, "action": action, "time_us": 1000 + 10 * i, "frames": []})
            continue
        frames = [{"filename": f"/home/{chance.choice(NAMES)}/{chance.choice(NAMES)}.py", "name": chance.choice(NAMES),
                   "line": chance.randrange(1, 99)} for _ in range(chance.randrange(1, 6))]
        event = {"action": "alloc", "addr": (i + 1) << 24, "size": 512 * chance.randrange(1, 4000), "stream": 0,
                 "time_us": 1000 + 10 * i, "frames": frames}
        alive.append(event)
        trace.append(event)
    marks = [{"name": name, "stage": stage, "device": 0, "time_us": 1000 + 150 * i + (140 if stage == "END" else 0)}
             for i, name in enumerate(NAMES) for stage in ("START", "END")]
    return {"segments": [], "device_traces": [trace], "external_annotations": marks}


class Check:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.outputs = 0
        self.failures = []

    def expect(self, condition, words):
        if not condition:
            self.failures.append(words)
            print(f"FAILED: {words}")

    def run(self, *arguments, may=(0,)):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, check=False)
        what = " ".join(map(ascii, arguments))
        self.expect(done.returncode in may, f"{what}: exit {done.returncode}: {done.stderr[:300]!r}")
        self.text(what, done.stdout)
        self.text(f"{what} (standard error)", done.stderr)
        if "--json" in arguments and done.stdout:
            for line in done.stdout.splitlines() if arguments[0] == "dump" else [done.stdout]:
                json.loads(line)
        return done.stdout

    def text(self, what, content):
        """Nothing deceives, and no line is a command."""
        self.outputs += 1
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            self.expect(False, f"{what}: {error}")
            return
        for c in sorted(set(text) - SPOKEN):
            hidden = unicodedata.category(c) in HIDDEN or ord(c) & 0xFFFE == 0xFFFE
            self.expect(not hidden, f"{what}: {text.count(c)} x U+{ord(c):04X}")
        for line in text.split("\n"):
            self.expect(not re.search(r"##\w*\[", line), f"{what}: a command in {line[:200]!a}")
            self.expect(not line.lstrip().startswith("::"), f"{what}: a command is {line[:200]!a}")

    def files(self, folder):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".svg", ".html", ".xml", ".md", ".json"):
                self.text(ascii(path.name), path.read_bytes())
            if path.suffix in (".svg", ".xml"):
                xml.dom.minidom.parse(str(path))
            if path.suffix == ".html":
                data = re.search(r'id="mt-data">(.*?)</script>', path.read_text(), re.DOTALL)
                self.text("data of the page", "".join(strings(json.loads(data.group(1)))).encode())


def strings(value):
    """Every text in a document, including keys."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from strings(key)
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value + "\n"


def check_commands(check, path):
    check.run("analyze", path)
    check.run("analyze", "--all", path)
    check.run("analyze", "--json", path)
    check.run("analyze", path, "--max-peak", "reserved=1MiB", "-o", "folder", may=(1,))
    check.files(check.folder / "folder")
    for by in ("site", "stack", "phase", "role"):
        check.run("live", path, "--by", by)
    for command in ("live", "lines", "info", "dump", "replay", "tune"):
        check.run(command, path)
        check.run(command, path, "--json")
    check.run("fleet", path, may=(0, 1))
    check.run("fleet", path, "--json", "--all")
    check.run("fleet", "diff", path, path)
    check.run("fleet", "diff", path, path, "--json", "--all")
    check.run("fleet", path, "--max-peak", "reserved=1GiB", "-o", "fleet", may=(0, 1))
    check.files(check.folder / "fleet")
    check.run("fit", path, "--limit", "64MiB", may=(0, 1))
    check.run("lines", path, "--all")
    check.run("dump", path, "--stacks")
    check.run("diff", path, "other.pickle", may=(0, 1))
    check.run("diff", path, "other.pickle", "--json", may=(0, 1))
    check.run("diff", path, "other.pickle", "-o", "change", may=(0, 1))
    check.files(check.folder / "change")
    check.run("export", "folded", path)
    check.run("export", "folded", path, "--reverse")
    check.run("export", "speedscope", path)
    for chart in sorted(set(charts_of(check.program)) - OTHER_CHARTS):
        check.run("render", chart, path, "-o", f"{chart}.svg", may=(0, 2, 3))
    check.files(check.folder)


def check_same_in_json(check, path):
    """An escape in JSON is the character itself."""
    found = set()
    for line in check.run("dump", path, "--json", "--stacks").splitlines():
        found.update(strings(json.loads(line)))
    for name in NAMES:
        if "\x00" not in name:
            check.expect(any(name in text for text in found), f"{name!a} is in dump --json")


def words_of_bash(line):
    """The arguments that bash passes on for a line of a terminal."""
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
    return [word.decode() for word in done.stdout.split(b"\0")[:-1]]


def check_proofs(check):
    """A line that is said to prove something can be pasted, whatever the file is called."""
    capture = ROOT / "fixtures" / "findings" / "pinned_more.pickle.zst"
    for name, pasted in (("-rf.pickle", "./-rf.pickle"), ("a b.pickle", None), ("nl\nx.pickle", None),
                         ("\u202ex.pickle", None), ("it's.pickle", None), ("$(x).pickle", None), ("=x.pickle", None)):
        (check.folder / name).write_bytes(capture.read_bytes())
        out = check.run("analyze", "--all", "--", name).decode()
        proofs = re.findall(r"^ *Check: (.*)", out, re.MULTILINE)
        check.expect(proofs, f"{name!a}: there is a proof")
        for proof in proofs:
            words = words_of_bash(proof)
            check.expect(words[2] == (pasted or name), f"{name!a}: {words[2]!a} in {proof!a}")


def check_places_in_proofs(check):
    """A proof selects the line of a file, whatever the file is called, and can be pasted."""
    packed = ROOT / "fixtures" / "findings" / "pinned_more.pickle.zst"
    raw = subprocess.run(["zstd", "-dc", packed], capture_output=True, check=True).stdout
    for name in ("it's.py", "\u202egnp.py", "a b.py", "$(touch x).py", "esc\x1b.py"):
        capture = pickle.loads(raw)
        for events in capture["device_traces"]:
            for frame in (frame for event in events for frame in event.get("frames", ())):
                frame["filename"] = frame["filename"].replace("pinned.py", name)
        (check.folder / "place.pickle").write_bytes(pickle.dumps(capture))
        out = check.run("analyze", "--all", "place.pickle").decode()
        proofs = [proof for proof in re.findall(r"^ *Check: (.*)", out, re.MULTILINE) if "--pool" in proof]
        check.expect(proofs, f"{name!a}: a finding selects a line")
        for proof in proofs:
            check.run(*words_of_bash(proof)[1:])


def check_long_paths(check):
    """A proposed command is never cut, however long its path is."""
    folder = pathlib.Path(*[letter * 200 for letter in "abcdefg"])
    (check.folder / folder).mkdir(parents=True)
    for name in ("one", "two"):
        subprocess.run([check.program, "import", "-q", ROOT / "fixtures/captures/seq2seq.pickle.zst", "-o",
                        folder / f"{name}.trace.zst"], cwd=check.folder, check=True)
    done = subprocess.run([check.program, "analyze", folder], cwd=check.folder, capture_output=True, text=True,
                          check=False)
    proposed = re.findall(r"memtrace fleet (.*)", done.stderr)
    check.expect(proposed == [str(folder)], f"a folder with a long path: {done.stderr[:300]!r}")


def main():
    with tempfile.TemporaryDirectory(prefix="memtrace-names-") as name:
        check = Check(os.path.abspath(sys.argv[1]), pathlib.Path(name))
        hostile = "a\u202e##[error]\n::error::b.pickle"
        (check.folder / hostile).write_bytes(pickle.dumps(snapshot(1)))
        (check.folder / "other.pickle").write_bytes(pickle.dumps(snapshot(2)))
        check_commands(check, hostile)
        check_same_in_json(check, hostile)
        check_proofs(check)
        check_places_in_proofs(check)
        check_long_paths(check)
        print(f"{check.outputs} outputs, {len(check.failures)} failures")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
