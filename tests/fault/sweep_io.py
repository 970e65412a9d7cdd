#!/usr/bin/env python3
"""Runs memtrace's commands while their calls on files fail.

    sweep_io.py PROGRAM [--full] [--only REGEX] [--jobs N] [--shim FILE] [-v]

PROGRAM is a build without sanitizers; fail_file_calls.so (fail_file_calls.c) lies beside its tests.
Every command runs in a folder that holds the results which it made of another capture: once
undisturbed, and once to learn which calls it makes. Then each call fails with each error of ERRORS,
alone and with all that follow. Without --full a sample of these runs that is the same each time.

A run is sound if it ends within the time limit with
  - the same status, output and files as the undisturbed run, or
  - another status than 0 and the undisturbed one's, a message (unless all writes fail), and every
    file is byte for byte the earlier one or that of the undisturbed run. No other file is left,
    none is gone.
Calls that a signal interrupts (EINTR) or that move only a part of the bytes must change nothing.
Prints a line a command and every kind of unsound run; to repeat one, use
    FAIL_FILE=N FAIL_FILE_CALL=NAME FAIL_FILE_ERROR=NUMBER [FAIL_FILE_FROM=1] FAIL_FILE_OWN=1 \\
        LD_PRELOAD=.../fail_file_calls.so PROGRAM ...
Exit status 1 if a run was unsound.
"""
import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

from commands import COMMANDS, Workplace, make_inputs

SAMPLE_RUNS = 8  # of each command
SLOWEST_SECONDS = 20  # of a run beyond ten times the undisturbed one
READS = ("EIO", "EINTR", "SHORT")
WRITES = ("EIO", "ENOSPC", "EINTR", "SHORT")
ERRORS = {
    "read": READS,
    "pread": READS,
    "write": WRITES,
    "pwrite": WRITES,
    "open": ("EIO", "ENOSPC", "EINTR"),
    "close": ("EIO", "ENOSPC", "EINTR"),
    "rename": ("EIO", "ENOSPC"),
    "fsync": ("EIO", "ENOSPC", "EINTR"),
    "ftruncate": ("EIO", "EINTR"),
    "fstat": ("EIO",),
    "mkdir": ("EIO", "ENOSPC"),
    "mmap": ("ENOMEM",),
}
HARMLESS = ("EINTR", "SHORT")

Fault = collections.namedtuple("Fault", "call error number from_there_on")


def of_another_capture(line):
    return re.sub(r"(captures|categories)/\w+\.pickle", "captures/accumulate.pickle", line)


class Sweep:
    def __init__(self, arguments, folder):
        self.program = pathlib.Path(arguments.program).resolve()
        self.shim = pathlib.Path(arguments.shim).resolve() if arguments.shim else \
            self.program.parent / "tests" / "fail_file_calls.so"
        self.arguments, self.folder = arguments, folder
        (folder / "other").mkdir()
        made, other = folder / "made", folder / "other" / "made"
        make_inputs(self.program, made)
        make_inputs(self.program, other, of_another_capture)
        self.earlier = Workplace(folder / "other" / "earlier", other)
        self.places = [Workplace(folder / f"run{i}", made) for i in range(arguments.jobs)]
        self.inputs = {path: path.read_bytes() for path in made.iterdir()}

    def run(self, place, line, seconds, **fault):
        """What a run did, beginning with the earlier results."""
        place.clean()
        shutil.copytree(self.earlier.root, place.root, symlinks=True, dirs_exist_ok=True,
                        ignore=lambda folder, names: [
                            name for name in names if (place.root / name).is_symlink()])
        log = place.root.with_suffix(".log")
        log.unlink(missing_ok=True)
        if fault:
            fault.update(LD_PRELOAD=str(self.shim), FAIL_FILE_PROGRAM=str(self.program),
                         FAIL_FILE_OWN="1", FAIL_FILE_LOG=str(log))
        done = place.run(self.program, line, seconds, **fault)
        done["files"] = place.files()
        done["calls"] = log.read_text().split()[::2] if log.exists() else []
        return done

    def plan(self, calls, turn):
        runs = [Fault(call, error, number, from_there_on)
                for call, errors in ERRORS.items() for number in range(1, calls[call] + 1)
                for error in errors for from_there_on in (False, True)]
        if self.arguments.full or len(runs) <= SAMPLE_RUNS:
            return runs
        # another part of each share in every command, so that all calls and errors come up
        share = len(runs) / SAMPLE_RUNS
        return [runs[int((i + (turn * 0.382) % 1) * share)] for i in range(SAMPLE_RUNS)]

    def judge(self, line, base, done, fault):
        """What became of a run; (kind, is_sound)."""
        answer = ("status", "stdout", "files")
        same = all(done[what] == base[what] for what in answer)
        for path, content in self.inputs.items():
            if path.read_bytes() != content:
                path.write_bytes(content)
                return f"changed its input {path.name}", False
        if done["status"] is None:
            return "hang", False
        if done["status"] < 0:
            return f"signal {-done['status']}", False
        if same:
            return "same" if done["calls"] else "not reached", True
        if fault.error in HARMLESS:
            return f"{fault.error} changes the answer", False
        for name, content in done["files"].items():
            if name not in base["files"] and name not in base["earlier"]:
                return f"left {re.sub('[0-9a-f]{6,}', '*', name)}", False
            if content not in (base["files"].get(name), base["earlier"].get(name)):
                return f"half file {name}", False
        if not set(base["earlier"]) & set(base["files"]) <= set(done["files"]):
            return "an earlier result is gone", False
        # doctor answers with what fails here, and an experiment of it may be what failed
        if done["status"] in (0, base["status"]) and not line.startswith("doctor"):
            return f"other answer with status {done['status']}", False
        is_mute = fault.call == "write" and fault.from_there_on
        if not done["stderr"] and not is_mute and not line.startswith("doctor"):
            return f"status {done['status']} without a word", False
        return f"status {done['status']}", True

    def command(self, name, line, turn):
        self.earlier.clean()
        self.earlier.run(self.program, of_another_capture(line), 600)
        begin = time.monotonic()
        base = self.run(self.places[0], line, 600)
        limit = SLOWEST_SECONDS + 10 * (time.monotonic() - begin)
        base["earlier"] = self.earlier.files()
        calls = collections.Counter(self.run(self.places[0], line, limit, FAIL_FILE="0")["calls"])
        runs = self.plan(calls, turn)
        kinds, unsound = collections.Counter(), {}
        free = list(self.places)

        def work(fault):
            place = free.pop()
            try:
                number = fault.error if fault.error == "SHORT" else getattr(errno, fault.error)
                more = {"FAIL_FILE_FROM": "1"} if fault.from_there_on else {}
                done = self.run(place, line, limit, FAIL_FILE=str(fault.number),
                                FAIL_FILE_CALL=fault.call, FAIL_FILE_ERROR=str(number), **more)
                return fault, done, *self.judge(line, base, done, fault)
            finally:
                free.append(place)

        with concurrent.futures.ThreadPoolExecutor(len(free)) as pool:
            for fault, done, kind, is_sound in pool.map(work, runs):
                kinds[kind] += 1
                if not is_sound:
                    unsound.setdefault(kind, []).append((fault, done))
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        print(f"{name:24} {sum(calls.values()):5} calls {len(runs):5} runs: {counts}", flush=True)
        for kind, cases in sorted(unsound.items()):
            for fault, done in cases[:None if self.arguments.verbose else 3]:
                said = done["stderr"].strip().split(b"\n")[-1] or b" / ".join(
                    sorted(set(done["stdout"].split(b"\n")) - set(base["stdout"].split(b"\n"))))
                print(f"    {kind}: {fault.call} {fault.number} of {calls[fault.call]}"
                      f"{' and on' * fault.from_there_on} fails with {fault.error}, "
                      f"memtrace {line}: {said[:160].decode('utf-8', 'replace')!r}", flush=True)
        return kinds, sum(map(len, unsound.values()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shim")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    begin, unsound, kinds = time.monotonic(), 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="memtrace-sweep-") as folder:
        sweep = Sweep(arguments, pathlib.Path(folder))
        chosen = [item for item in COMMANDS.items() if re.search(arguments.only, item[0])]
        for turn, (name, line) in enumerate(chosen):
            more_kinds, more_unsound = sweep.command(name, line, turn)
            kinds.update(more_kinds)
            unsound += more_unsound
    print(f"{len(chosen)} commands, {sum(kinds.values())} runs in {time.monotonic() - begin:.0f} s: "
          f"{kinds['same']} with the same answer, {unsound} unsound")
    return 1 if unsound or not kinds else 0


if __name__ == "__main__":
    sys.exit(main())
