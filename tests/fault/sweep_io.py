#!/usr/bin/env python3
"""Runs memtrace's commands while their calls on files fail (options: sweep.py; rules: command_sweep.py).

Every command runs once undisturbed, and once to learn which calls it makes. Then each call fails
with each error of ERRORS, alone and with all that follow. Calls that a signal interrupts (EINTR) or
that move only a part of the bytes (SHORT) must change nothing.

To repeat a run use FAIL_FILE=N FAIL_FILE_CALL=NAME FAIL_FILE_ERROR=NUMBER [FAIL_FILE_FROM=1] \\
    FAIL_FILE_OWN=1 LD_PRELOAD=.../fail_file_calls.so PROGRAM ...
"""
import collections
import errno
import sys

from command_sweep import CommandSweep, sweep_commands
from sweep import OTHER, Verdict

SAMPLE_RUNS = 3  # of each command
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

Fault = collections.namedtuple("Fault", "call error number from_there_on of")


class FileSweep(CommandSweep):
    LEFT_OUT = ("dry-run", "dry-run json")  # a child closes files while it waits to be killed: their number changes
    WORD = "a word"

    def environment(self, line, fault, log):
        more = {"LD_PRELOAD": str(self.arguments.file_shim), "FAIL_FILE_PROGRAM": str(self.program),
                "FAIL_FILE_OWN": "1", "FAIL_FILE_LOG": str(log), "FAIL_FILE": str(fault.number)}
        if fault.call:
            number = fault.error if fault.error == "SHORT" else getattr(errno, fault.error)
            more.update(FAIL_FILE_CALL=fault.call, FAIL_FILE_ERROR=str(number))
        if fault.from_there_on:
            more["FAIL_FILE_FROM"] = "1"
        return more

    def learn(self, line):
        """How many calls of each name one process makes."""
        words = self.logged(line, None)
        calls = collections.Counter(call for call, _, _ in words)
        if len({process for _, _, process in words}) > 1:  # a child counts on from its parent's number
            for call in ERRORS:
                calls[call] = max((int(number) for _, number, _ in self.logged(line, call)), default=0)
        return calls, f"{sum(calls.values()):5} calls "

    def logged(self, line, call):
        fault = Fault(call, "EIO", 0, False, 0)
        return [text.split() for text in self.run(self.places[0], line, 600, fault)["log"]]

    def plan(self, learned, turn):
        runs = [Fault(call, error, number, from_there_on, learned[call])
                for call, errors in ERRORS.items() for number in range(1, learned[call] + 1)
                for error in errors for from_there_on in (False, True)]
        if self.arguments.full or len(runs) <= SAMPLE_RUNS:
            return runs
        # another part of each share in every command, so that all calls and errors come up
        share = len(runs) / SAMPLE_RUNS
        return [runs[int((i + (turn * 0.382) % 1) * share)] for i in range(SAMPLE_RUNS)]

    @staticmethod
    def is_reached(done):
        return bool(done["log"])

    @staticmethod
    def says_enough(done, fault):
        is_mute = fault.call == "write" and fault.from_there_on
        return bool(done["stderr"]) or is_mute

    @staticmethod
    def may_share_status(says_enough, line):
        return line.startswith("doctor")

    def judge(self, line, base, done, fault):
        verdict = super().judge(line, base, done, fault)
        if fault.error in HARMLESS and not verdict.fault and verdict.kind != "same":
            return Verdict(f"{fault.error} changes the answer", OTHER)
        return verdict

    @staticmethod
    def describe(fault, line):
        return (f"{fault.call} {fault.number} of {fault.of}{' and on' * fault.from_there_on} fails "
                f"with {fault.error}, memtrace {line}")


if __name__ == "__main__":
    sys.exit(sweep_commands(FileSweep, __doc__))
