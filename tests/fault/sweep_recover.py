#!/usr/bin/env python3
"""Runs `memtrace recover` while its allocations and its calls on files fail.

    sweep_recover.py PROGRAM [--full] [--shim FILE] [--file-shim FILE]

PROGRAM is a build without sanitizers; fail_alloc.so and fail_file_calls.so lie beside its tests.
A process is killed together with `memtrace record`; then its trace is recovered again and again,
each time with another failure: every allocation and every call, alone and from there on. Without
--full a sample that is the same each time.

A run is sound if it ends by itself within the time limit and
  - the status is 0, the trace is byte for byte that of the undisturbed run, and the tape is gone; or
  - the status is not 0, something is said, and the trace is byte for byte the old one with its tape
    beside it, or the new one.
No other file is left, unless removing it is what failed. Exit status 1 if a run was unsound."""
import argparse
import collections
import concurrent.futures
import errno
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "record"))
import tapes  # noqa: E402
from support import Bench, check  # noqa: E402

LIMIT_SECONDS = 60
PAGE_BYTES = 4096
SAMPLE = 4  # of a sample: the first ones of each kind, then the distance doubles
NAME = "run.trace.zst"
CALLS = ("open", "mkostemp", "fstat", "pread", "write", "fchmod", "fsync", "rename", "unlink",
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
    def __init__(self, program, shims, good, environment):
        self.program, self.shims, self.good, self.environment = program, shims, good, environment
        self.before = good[0].read_bytes(), parts_of(good[1])
        self.whole = None
        self.runs = collections.Counter()
        self.unsound = collections.defaultdict(list)

    def run(self, **more):
        """Status, message, trace, parts of the tape (None: it is gone), other files, did anything fail."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            copy_sparse(self.good, folder)
            log = folder / "log"
            environment = dict(self.environment, **more)
            if more:
                environment.update({"LD_PRELOAD": ":".join(map(str, self.shims)),
                                    "FAIL_ALLOC_LOG": str(log), "FAIL_FILE_LOG": str(log),
                                    "FAIL_ALLOC_PROGRAM": self.program.name,
                                    "FAIL_FILE_PROGRAM": self.program.name})
            try:
                done = subprocess.run([self.program, "recover", NAME], cwd=folder,
                                      env=environment, capture_output=True, timeout=LIMIT_SECONDS)
                status, said = done.returncode, done.stderr
            except subprocess.TimeoutExpired:
                status, said = "hangs", b""
            failed = log.exists() and any(not line.startswith("total")
                                          for line in log.read_text().splitlines())
            tape = folder / f"{NAME}.tape"
            trace = folder / NAME
            others = [path.name for path in folder.iterdir()
                      if path.name not in (NAME, tape.name, "log")]
            return (status, said, trace.read_bytes() if trace.exists() else None,
                    parts_of(tape) if tape.exists() else None, others, failed)

    def fault(self, result, leaves):
        status, said, trace, tape, others, _ = result
        if not isinstance(status, int) or status < 0:
            return f"status {status}"
        if others and not leaves:
            return "a file is left"
        if status == 0:
            return None if trace == self.whole and tape is None else "status 0, but not whole"
        if not said:
            return "nothing is said"
        if trace == self.whole:
            return None
        return None if (trace, tape) == self.before else "the trace or its tape was changed"

    def sweep(self, kind, full, leaves, **settings):
        """All numbers until nothing fails any more, or a sample of them."""
        number_name = "FAIL_ALLOC" if kind.startswith("allocation") else "FAIL_FILE"
        number, step = 1, 1
        while True:
            result = self.run(**{number_name: str(number)}, **settings)
            if not result[5]:
                break
            self.runs[kind] += 1
            why = self.fault(result, leaves)
            if why:
                self.unsound[f"{kind}: {why}"].append((number, result[1][-160:]))
            if not full and number >= SAMPLE:
                step = number
            number += step


def kinds(full):
    for name, more in (("", {}), (" and all that follow", {"FROM": "1"})):
        yield ("allocation" + name, bool(more), {f"FAIL_ALLOC_{key}": value
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
                yield f"{call} {word}{name}", call == "unlink" or bool(more), settings


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--shim", type=pathlib.Path)
    parser.add_argument("--file-shim", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    program = options.program.resolve()
    shims = [(options.shim or program.parent / "tests" / "fail_alloc.so").resolve(),
             (options.file_shim or program.parent / "tests" / "fail_file_calls.so").resolve()]
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(program.parent, work)
        good = tapes.leave(bench)
        sweep = Sweep(program, shims, good, bench.environment())
        status, said, sweep.whole, tape, others, _ = sweep.run()
        check(status == 0 and tape is None and not others, f"undisturbed: {status} {said}")
        check(sweep.whole != sweep.before[0], "there was nothing to recover")
        (bench.work / "whole").write_bytes(sweep.whole)
        check(bench.info("whole")["integrity"]["closed"], "the recovered trace is not whole")
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            jobs = [pool.submit(sweep.sweep, kind, options.full, leaves, **settings)
                    for kind, leaves, settings in kinds(options.full)]
            for job in jobs:
                job.result()
    for kind, found in sorted(sweep.unsound.items()):
        print(f"{len(found)} unsound, {kind}; the first is number {found[0][0]}: {found[0][1]!r}")
    total = sum(sweep.runs.values())
    print(f"{total} runs, {len(sweep.runs)} kinds, "
          f"{sum(len(found) for found in sweep.unsound.values())} unsound")
    return 1 if sweep.unsound or not total else 0


if __name__ == "__main__":
    sys.exit(main())
