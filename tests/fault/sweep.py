"""What the sweeps of faults (sweep_*.py) share: options, the summary, the pool of runs.

    sweep_NAME.py PROGRAM [--full] [--only REGEX] [--jobs N] [--shims FOLDER] [--json FILE]
                  [--list] [-v]

PROGRAM is a build without sanitizers; fail_alloc.so and fail_file_calls.so are in FOLDER, by default
the folder `tests` beside it. Without --full a sample of the runs that is the same each time. --only
chooses commands by their names, --list prints them. --json adds the figures of this sweep to FILE,
which may hold those of others. Each command has one line of summary:

    NAME   N runs: signals, other answers with status 0, half files, destroyed inputs, time-outs,
           other faults; then what the runs became

followed by the runs that were wrong: three of each kind, with -v all of them. Exit status 0 if no run
was wrong and every command ran, 1 if not, 3 if --only chooses no command of this sweep."""
import argparse
import atexit
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile
import time

SIGNAL, OTHER_ANSWER, HALF_FILE = "signals", "other answers with status 0", "half files"
INPUT, TIME_OUT, OTHER = "destroyed inputs", "time-outs", "other faults"
FAULTS = (SIGNAL, OTHER_ANSWER, HALF_FILE, INPUT, TIME_OUT, OTHER)
NOTHING_CHOSEN = 3

# What became of a run: `kind` in words; `fault` is one of FAULTS, or None if the run was right.
Verdict = collections.namedtuple("Verdict", "kind fault")


def right(kind):
    return Verdict(kind, None)


def options(text):
    parser = argparse.ArgumentParser(description=text.split("\n", 1)[0])
    parser.add_argument("program", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--shims", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    chosen = parser.parse_args()
    folder = (chosen.shims or chosen.program.parent / "tests").resolve()
    chosen.alloc_shim, chosen.file_shim = preloadable(folder, "fail_alloc.so"), preloadable(folder, "fail_file_calls.so")
    for path in (chosen.program, chosen.alloc_shim, chosen.file_shim):
        if not path.exists():
            sys.exit(f"{path.resolve()} does not exist; `./dev sweep` builds it")
    return chosen


def preloadable(folder, name):
    """A link to the library, in a folder without spaces: LD_PRELOAD cannot contain one."""
    place = tempfile.TemporaryDirectory(prefix="shims-")
    atexit.register(place.cleanup)
    link = pathlib.Path(place.name, name)
    link.symlink_to(folder / name)
    return link


def choose(arguments, commands):
    """The commands that --only chooses; ends the program if there is nothing to run."""
    chosen = {name: line for name, line in commands.items() if re.search(arguments.only, name)}
    if arguments.list:
        print("\n".join(f"{name:30} {line}" for name, line in chosen.items()))
        sys.exit(0)
    if not chosen:
        print(f"no command of this sweep matches '{arguments.only}'")
        sys.exit(NOTHING_CHOSEN)
    return chosen


class Summary:
    """Verdicts by command."""

    def __init__(self, arguments):
        self.arguments, self.begin = arguments, time.monotonic()
        self.commands = {}

    def add(self, name, line, verdicts, facts="", may_be_none=False):
        """verdicts: [(Verdict, how to repeat the run, what it said)]. Prints the command's lines."""
        faults = collections.Counter(verdict.fault for verdict, _, _ in verdicts if verdict.fault)
        kinds = collections.Counter(verdict.kind for verdict, _, _ in verdicts)
        if not verdicts and not may_be_none:
            faults[OTHER], kinds["never ran"] = 1, 0
        wrong = collections.defaultdict(list)
        for verdict, how, said in verdicts:
            if verdict.fault:
                wrong[verdict.kind].append((how, said))
        self.commands[name] = {"line": line, "runs": len(verdicts),
                               "faults": {fault: faults[fault] for fault in FAULTS},
                               "kinds": dict(sorted(kinds.items())),
                               "wrong": {kind: [how for how, _ in cases]
                                         for kind, cases in sorted(wrong.items())}}
        became = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        print(f"{name:30} {facts}{self.text(len(verdicts), faults)} ({became})", flush=True)
        for kind, cases in sorted(wrong.items()):
            for how, said in cases[:None if self.arguments.verbose else 3]:
                print(f"    {kind}: {how}: {said!r}", flush=True)

    @staticmethod
    def text(runs, faults):
        return f"{runs:5} runs: " + ", ".join(f"{faults[fault]} {fault}" for fault in FAULTS)

    def end(self):
        """Prints the sum, writes --json; the exit status."""
        runs = sum(command["runs"] for command in self.commands.values())
        faults = collections.Counter()
        for command in self.commands.values():
            faults.update(command["faults"])
        seconds = round(time.monotonic() - self.begin)
        name = pathlib.Path(sys.argv[0]).stem
        print(f"{name} in all, {len(self.commands)} commands in {seconds} s: "
              f"{self.text(runs, faults).strip()}", flush=True)
        if self.arguments.json:
            self.write_json(name, {"full": self.arguments.full, "seconds": seconds, "runs": runs,
                                   "faults": {fault: faults[fault] for fault in FAULTS},
                                   "commands": self.commands})
        return 1 if sum(faults.values()) else 0

    def write_json(self, name, figures):
        path = self.arguments.json
        known = json.loads(path.read_text()) if path.exists() else {}
        known[name] = figures
        whole = path.with_name(path.name + ".new")
        whole.write_text(json.dumps(known, indent=1) + "\n")
        whole.replace(path)


def run_all(places, runs, work):
    """work(place, run) for all runs, in their order, each place used by one run at a time."""
    free = list(places)

    def one(run):
        place = free.pop()
        try:
            return work(place, run)
        finally:
            free.append(place)

    with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        return list(pool.map(one, runs))


def last_words(done):
    return done["stderr"].strip().split(b"\n")[-1][:160].decode("utf-8", "replace")
