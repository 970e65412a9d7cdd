#!/usr/bin/env python3
"""Runs `memtrace recover` while its allocations and its calls on files fail (options: sweep.py).

A process is killed together with `memtrace record`; then its trace is recovered again and again,
each time with another failure: every allocation and every call, alone and with all later ones. A command of
the summary is a kind of failure.

A run is right if it ends by itself within the time limit and
  - the status is 0, the trace has the events and the header of the undisturbed run (not always the
    names of native frames), and the tape is gone; or
  - the status is not 0, something is said, and the trace is byte for byte the old one with its tape
    beside it, or has those events.
No other file is left, unless removing it is what failed."""
import errno
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "record"))
import tapes  # noqa: E402
from support import Bench, check  # noqa: E402
from sweep import (HALF_FILE, INPUT, OTHER, OTHER_ANSWER, SIGNAL, TIME_OUT, Summary, Verdict, choose,  # noqa: E402
                   options, right, run_all)

LIMIT_SECONDS = 600
PAGE_BYTES = 4096
SAMPLE = 4  # of a sample: the first ones of each kind, then the distance doubles
NAME = "run.trace.zst"
CALLS = ("open", "fstat", "pread", "write", "fchmod", "fsync", "rename", "unlink",
         "close", "mmap")
ERRORS = (("EIO", errno.EIO), ("ENOSPC", errno.ENOSPC), ("EINTR", errno.EINTR), ("SHORT", "SHORT"))


def copy_sparse(paths, folder):
    """A tape is almost all hole."""
    subprocess.run(["cp", "--sparse=always", *paths, folder], check=True)


def parts_of(path):
    """The contents of a sparse file: its size, and what is not zero, page by page."""
    parts, at = {}, 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # a hole up to the end
                    break
                raise
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            for page in range(at - at % PAGE_BYTES, end, PAGE_BYTES):
                data = os.pread(file.fileno(), PAGE_BYTES, page)
                if data.strip(b"\0"):
                    parts[page] = data
            at = end
    return size, parts


class Sweep:
    def __init__(self, arguments, good, environment):
        self.arguments, self.program = arguments, arguments.program
        self.shims = f"{arguments.alloc_shim}:{arguments.file_shim}"
        self.good, self.environment = good, environment
        self.before = good[0].read_bytes(), parts_of(good[1])
        self.whole = self.whole_events = None

    def run(self, **more):
        """Status, message, trace, parts of the tape (None: it is gone), other files, did anything fail."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            copy_sparse(self.good, folder)
            log = folder / "log"
            environment = dict(self.environment, **more)
            if more:
                environment.update({"LD_PRELOAD": self.shims,
                                    "FAIL_ALLOC_LOG": str(log), "FAIL_FILE_LOG": str(log),
                                    "FAIL_ALLOC_PROGRAM": str(self.program),
                                    "FAIL_FILE_PROGRAM": str(self.program)})
            try:
                done = subprocess.run([self.program, "recover", NAME], cwd=folder,
                                      env=environment, capture_output=True, timeout=LIMIT_SECONDS)
                status, said = done.returncode, done.stderr
            except subprocess.TimeoutExpired:
                status, said = None, b""
            failed = log.exists() and any(not line.startswith("total")
                                          for line in log.read_text().splitlines())
            tape = folder / f"{NAME}.tape"
            trace = folder / NAME
            summary = folder / f"{NAME}.mtsum"
            known = (NAME, tape.name, "log") + (
                (summary.name,) if summary.exists() and self.facts_of(summary, "records") else ())
            others = [path.name for path in folder.iterdir() if path.name not in known]
            return (status, said, trace.read_bytes() if trace.exists() else None,
                    parts_of(tape) if tape.exists() else None, others, failed)

    def events_of(self, trace):
        """What a trace and its header say without its native frames, to which recovery adds names
        and inlined functions if it can: they change the numbers of the stacks. None: it is not
        whole."""
        with tempfile.NamedTemporaryFile(suffix=".trace.zst") as file:
            file.write(trace)
            file.flush()
            try:
                done = subprocess.run([self.program, "dump", file.name, "--json", "--strict"],
                                      env=self.environment, capture_output=True,
                                      timeout=LIMIT_SECONDS)
                facts = self.facts_of(file.name)
            except subprocess.TimeoutExpired:
                return None
        return (re.sub(rb'"stack":\d+', b'"stack":0', done.stdout), facts) \
            if done.returncode == 0 and facts else None

    def facts_of(self, path, key="header"):
        """The facts of a trace's header, or the records of a summary; None if they cannot be read."""
        done = subprocess.run([self.program, "info", path, "--json"], env=self.environment,
                              capture_output=True, timeout=LIMIT_SECONDS)
        return json.loads(done.stdout)[key] if done.returncode == 0 else None

    def is_whole(self, trace):
        return trace == self.whole or \
            trace is not None and self.events_of(trace) == self.whole_events

    def judge(self, result, leaves):
        status, said, trace, tape, others, _ = result
        if status is None:
            return Verdict("time-out", TIME_OUT)
        if status < 0:
            return Verdict(f"signal {-status}", SIGNAL)
        if others and not leaves:
            return Verdict("a file is left", HALF_FILE)
        if status == 0:
            return right("whole") if self.is_whole(trace) and tape is None else \
                Verdict("status 0, but not whole", OTHER_ANSWER)
        if not said:
            return Verdict(f"status {status}, and nothing is said", OTHER)
        if (trace, tape) == self.before:
            return right("as before")
        return right("whole, but its tape stays") if self.is_whole(trace) else \
            Verdict("the trace or its tape was changed", INPUT)

    def one(self, number, settings, leaves):
        result = self.run(**settings, **{number_name(settings): str(number)})
        how = " ".join(f"{key}={value}" for key, value in settings.items())
        verdict = self.judge(result, leaves)
        return result[5], (verdict, f"number {number}, {how}", result[1][-160:].decode("utf-8", "replace"))

    def sweep(self, settings, leaves):
        """All numbers until nothing fails any more, or a sample of them."""
        found, number, step = [], 1, 1
        while True:
            was_reached, verdict = self.one(number, settings, leaves)
            if not was_reached:
                return found
            found.append(verdict)
            if not self.arguments.full and number >= SAMPLE:
                step = number
            number += step


def number_name(settings):
    return "FAIL_FILE" if any(name.startswith("FAIL_FILE") for name in settings) else "FAIL_ALLOC"


def kinds(full):
    for name, more in (("", {}), (" and all that follow", {"FROM": "1"})):
        yield ("recover, allocation" + name, bool(more), {f"FAIL_ALLOC_{key}": value
                                                 for key, value in more.items()})
        for call in CALLS:
            for word, error in ERRORS:
                if word == "SHORT" and call not in ("pread", "write"):
                    continue
                if word == "EINTR" and (more or call not in ("pread", "write")):
                    continue
                if word == "ENOSPC" and not full and call != "write":
                    continue
                settings = {"FAIL_FILE_CALL": call, "FAIL_FILE_ERROR": str(error)}
                if call == "write":
                    settings["FAIL_FILE_AT"] = "/"  # files, not the pipe to the one who listens
                settings.update({f"FAIL_FILE_{key}": value for key, value in more.items()})
                yield f"recover, {call} {word}{name}", call == "unlink" or bool(more), settings


def undisturbed(sweep, bench):
    status, said, sweep.whole, tape, others, _ = sweep.run()
    check(status == 0 and tape is None and not others, f"undisturbed: {status} {said}")
    check(sweep.whole != sweep.before[0], "there was nothing to recover")
    sweep.whole_events = sweep.events_of(sweep.whole)
    check(sweep.whole_events, "the recovered trace cannot be read")
    check(sweep.events_of(sweep.before[0]) != sweep.whole_events, "the trace was whole before")
    (bench.work / "whole").write_bytes(sweep.whole)
    check(bench.info("whole")["integrity"]["closed"], "the recovered trace is not whole")


def main():
    arguments = options(__doc__)
    known = {name: (leaves, settings) for name, leaves, settings in kinds(arguments.full)}
    chosen = list(choose(arguments, {name: "recover run.trace.zst" for name in known}))
    summary = Summary(arguments)
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(arguments.program.parent, work)
        sweep = Sweep(arguments, tapes.leave(bench), bench.environment())
        undisturbed(sweep, bench)
        results = run_all(range(arguments.jobs), chosen,
                          lambda _, name: sweep.sweep(known[name][1], known[name][0]))
    for name, found in zip(chosen, results):
        summary.add(name, "recover run.trace.zst", found)
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
