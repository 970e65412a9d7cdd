"""What the sections of tests/gpu/run share: running things, and the table."""
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "gpu"
WORKLOADS = ROOT / "fixtures" / "workloads"
TIMED_OUT = 124


class Session:
    def __init__(self, arguments):
        self.build = pathlib.Path(arguments.build).resolve()
        self.memtrace = str(self.build / "memtrace")
        self.python = arguments.python
        self.rounds = arguments.rounds
        self.out = arguments.out.resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.results = self.out / "results.jsonl"
        self.failed = False

    def run(self, command, log=None, cwd=None, timeout=900, **environment):
        """Runs it; what it wrote is kept in FOLDER/log. Status 124: it did not end in time."""
        try:
            done = subprocess.run([str(word) for word in command], cwd=cwd or self.out, capture_output=True, text=True, timeout=timeout,
                                  env=os.environ | environment, errors="replace", check=False)
        except subprocess.TimeoutExpired as late:
            said = [(text or b"").decode(errors="replace") for text in (late.stdout, late.stderr)]
            done = subprocess.CompletedProcess(late.cmd, TIMED_OUT, *said)
        if log:
            (self.out / log).write_text(f"$ {' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}\nstatus {done.returncode}\n")
        return done

    def record(self, folder, command, options=(), log=None, cwd=None, timeout=900, **environment):
        """Under `memtrace record`: (the run, the document of --json with its traces)."""
        folder.mkdir(parents=True, exist_ok=True)
        done = self.run([self.memtrace, "record", "--json", "-o", f"{folder}/", *options, "--", *command], log, cwd, timeout, **environment)
        lines = [line for line in done.stderr.splitlines() if line.startswith('{"schema":')]
        return done, json.loads(lines[-1]) if lines else {"traces": [], "exit_status": done.returncode}

    def add(self, section, name, good, text):
        """One row of the table; good: True, False, or None for a mere figure."""
        self.failed |= good is False
        text = text.replace(str(self.build), "BUILD").replace(str(self.out), "FOLDER")
        row = {"section": section, "name": name, "good": good, "text": text, "time": time.time()}
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"  {row_word(good):5} {section} {name}: {text}", flush=True)

    def rows(self):
        """The last row of each name."""
        last = {}
        for line in self.results.read_text().splitlines() if self.results.exists() else []:
            row = json.loads(line)
            last[row["section"], row["name"]] = row
        return list(last.values())

    def table(self):
        lines = ["| section | what | verdict | |", "|---|---|---|---|"]
        lines += [f"| {row['section']} | {row['name']} | {row_word(row['good'])} | {row['text'].replace('|', '/').replace(chr(10), ' ')} |" for row in self.rows()]
        return "\n".join(lines) + "\n"


def row_word(good):
    return {True: "ok", False: "FAIL", None: "-"}[good]


def gib(count):
    return f"{count / 2**30:.3f} GiB"
