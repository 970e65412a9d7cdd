"""Runs of the commands of commands.py with faults: what sweep_memory.py and sweep_io.py share.

Each run has a folder that holds the results which the same command made of another capture, so that
a result which is lost or half written is seen. A run is right if it ends within the time limit with
  - the status, output and files of the undisturbed run, or
  - another status than 0, a message that fits the fault, and every file byte for byte the earlier
    one or that of the undisturbed run; no other file is left, none is gone.
Inputs never change."""
import pathlib
import re
import shutil
import tempfile
import time

from commands import COMMANDS, Workplace, make_inputs, without_salt
from sweep import (HALF_FILE, INPUT, OTHER, OTHER_ANSWER, SIGNAL, TIME_OUT, Summary, Verdict, choose,
                   last_words, options, right, run_all)

SLOWEST_SECONDS = 20  # of a run beyond ten times the undisturbed one
FIRST_SECONDS = 600
TRIES = 3  # threads allocate in any order: the last calls of a run may not come up again


def of_another_capture(line):
    return re.sub(r"(captures|categories)/\w+\.pickle", "captures/accumulate.pickle", line)


class CommandSweep:
    """A subclass has `environment(line, fault, log)`, `learn(line)` -> (what it learned, text for the
    summary), `plan(learned, turn)` -> faults, `is_reached(done)`, `says_enough(done, fault)`,
    `may_share_status(says_enough, line)`, `describe(fault, line)` and WORD. NONE are commands without
    anything that could fail, LEFT_OUT those that the sweep does not run."""

    NONE = ()
    LEFT_OUT = ()

    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.program = arguments, folder, arguments.program
        made, other = folder / "made", folder / "other" / "made"
        other.parent.mkdir()
        make_inputs(self.program, made)
        make_inputs(self.program, other, of_another_capture)
        self.earlier = Workplace(folder / "other" / "earlier", other)
        self.places = [Workplace(folder / f"run{i}", made) for i in range(arguments.jobs)]
        self.inputs = {path: path.read_bytes() for path in made.iterdir()}

    def run(self, place, line, seconds, fault=None):
        """What a run did that began with the earlier results; `log` has the shim's lines."""
        place.clean()
        shutil.copytree(self.earlier.root, place.root, symlinks=True, dirs_exist_ok=True,
                        ignore=lambda folder, names: [
                            name for name in names if (place.root / name).is_symlink()])
        log = place.root.with_suffix(".log")
        log.unlink(missing_ok=True)
        more = self.environment(line, fault, log) if fault is not None else {}
        done = place.run(self.program, line, seconds, **more)
        done["files"] = without_salt(self.program, line, place)
        done["log"] = log.read_text().splitlines() if log.exists() else []
        return done

    def wrong_file(self, base, done):
        """The verdict on a file that is neither the earlier nor the new one; None if there is none."""
        for name, content in done["files"].items():
            if name not in base["files"] and name not in base["earlier"]:
                return Verdict(f"left {re.sub('[0-9a-f]{6,}|[A-Za-z0-9]{6}$', '*', name)}", HALF_FILE)
            if content not in (base["files"].get(name), base["earlier"].get(name)):
                return Verdict(f"half file {name}", HALF_FILE)
        if not set(base["earlier"]) & set(base["files"]) <= set(done["files"]):
            return Verdict("an earlier result is gone", HALF_FILE)
        return None

    def wrong_input(self):
        for path, content in self.inputs.items():
            if path.read_bytes() != content:
                path.write_bytes(content)
                return Verdict(f"changed its input {path.name}", INPUT)
        return None

    @staticmethod
    def lacks_source(line, base, done):
        """A file of source that cannot be read is named, and its lines are printed without text."""
        return line.startswith("lines --source") and (done["status"], done["files"]) == (
            0, base["files"]) and b"was not read: " in done["stderr"]

    def judge(self, line, base, done, fault):
        wrong = self.wrong_input()
        if wrong:
            return wrong
        if done["status"] is None:
            return Verdict("time-out", TIME_OUT)
        if done["status"] < 0:
            return Verdict(f"signal {-done['status']}", SIGNAL)
        if all(done[what] == base[what] for what in ("status", "stdout", "files")):
            return right("same") if self.is_reached(done) else Verdict("not reached", OTHER)
        if self.lacks_source(line, base, done):
            return right("without lines of source, as said")
        if done["status"] == 0:
            return Verdict("other answer with status 0", OTHER_ANSWER)
        wrong = self.wrong_file(base, done)
        if wrong:
            return wrong
        # doctor answers with what fails here, and an experiment of it may be what failed
        says_enough = line.startswith("doctor") or self.says_enough(done, fault)
        if done["status"] == base["status"] and not self.may_share_status(says_enough, line):
            return Verdict(f"other answer with status {done['status']}", OTHER)
        if not says_enough:
            return Verdict(f"status {done['status']} without {self.WORD}", OTHER)
        return right(f"status {done['status']}")

    def one(self, place, line, base, limit, fault):
        for _ in range(TRIES):
            done = self.run(place, line, limit, fault)
            verdict = self.judge(line, base, done, fault)
            if verdict.kind != "not reached":
                break
        return verdict, self.describe(fault, line), last_words(done)

    def command(self, summary, name, line, turn):
        self.earlier.clean()
        self.earlier.run(self.program, of_another_capture(line), FIRST_SECONDS)
        begin = time.monotonic()
        base = self.run(self.places[0], line, FIRST_SECONDS)
        limit = SLOWEST_SECONDS + 10 * (time.monotonic() - begin)
        base["earlier"] = without_salt(self.program, line, self.earlier)
        learned, facts = self.learn(line)
        runs = self.plan(learned, turn)
        summary.add(name, line, run_all(
            self.places, runs, lambda place, fault: self.one(place, line, base, limit, fault)), facts,
            name in self.NONE)


def sweep_commands(kind, text):
    arguments = options(text)
    chosen = choose(arguments, {name: line for name, line in COMMANDS.items() if name not in kind.LEFT_OUT})
    summary = Summary(arguments)
    with tempfile.TemporaryDirectory(prefix="memtrace-sweep-") as folder:
        sweep = kind(arguments, pathlib.Path(folder))
        for turn, (name, line) in enumerate(chosen.items()):
            sweep.command(summary, name, line, turn)
    return summary.end()
