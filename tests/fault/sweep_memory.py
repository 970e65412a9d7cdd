#!/usr/bin/env python3
"""Runs memtrace's commands while allocations fail (options: sweep.py; rules: command_sweep.py).

Every command runs once undisturbed, and once to learn where it allocates. Then, for every call stack
that allocates, its first and its last allocation fail, each alone, and the first one with all that
follow. A failure ends with status 3 and with one line about memory, which names the input or the
output, unless the command has several inputs or the failure comes before its arguments are read.

Allocations that cairo makes do not fail: docs/internals/robustness.md says why.

To repeat a run use FAIL_ALLOC=N [FAIL_ALLOC_FROM=1] FAIL_ALLOC_NOT_IN=libcairo:libpixman \\
    LD_PRELOAD=.../fail_alloc.so PROGRAM ...
"""
import collections
import re
import sys

from command_sweep import CommandSweep, sweep_commands

REASON = re.compile(rb"memtrace: (cannot (read|write|draw) ('[^']+'|standard (in|out)put): )?"
                    rb"(out of memory|needs more memory than .*)")
NOT_RUN = b"memtrace: cannot run 'true': Cannot allocate memory"
SAMPLE_RUNS = 3  # of each command

Fault = collections.namedtuple("Fault", "number from_there_on")


class MemorySweep(CommandSweep):
    WORD = "one line about memory"
    NONE = ("wrong option", "wrong command")  # they allocate nothing

    def environment(self, line, fault, log):
        more = {"LD_PRELOAD": str(self.arguments.alloc_shim),
                "FAIL_ALLOC_PROGRAM": str(self.program), "FAIL_ALLOC_LOG": str(log)}
        if "png" in line or "report" in line:
            more["FAIL_ALLOC_NOT_IN"] = "libcairo:libpixman"
        if fault.number:
            more["FAIL_ALLOC"] = str(fault.number)
        else:
            more["FAIL_ALLOC_SITES"] = str(self.sites)
        if fault.from_there_on:
            more["FAIL_ALLOC_FROM"] = "1"
        return more

    @property
    def sites(self):
        return self.folder / "sites"

    def learn(self, line):
        """The first and the last allocation of every call stack."""
        self.sites.unlink(missing_ok=True)
        self.run(self.places[0], line, 600, Fault(0, False))
        first, last, total = {}, {}, 0
        for text in self.sites.read_text().splitlines() if self.sites.exists() else []:
            number, site = text.split()
            total = max(total, int(number))
            first.setdefault(site, int(number))
            last[site] = int(number)
        return (first, last), f"{total:7} allocations {len(first):5} stacks "

    def plan(self, learned, turn):
        first, last = (set(numbers.values()) for numbers in learned)
        runs = sorted([Fault(n, False) for n in first | last] + [Fault(n, True) for n in first])
        if self.arguments.full or len(runs) <= SAMPLE_RUNS:
            return runs
        return [runs[(2 * i + 1) * len(runs) // (2 * SAMPLE_RUNS)] for i in range(SAMPLE_RUNS)]

    @staticmethod
    def is_reached(done):
        return any(line.startswith("failed") for line in done["log"])

    @staticmethod
    def says_enough(done, fault):
        about = [line for line in done["stderr"].splitlines() if b"memory" in line.lower()]
        ends = [line for line in about if line != NOT_RUN]  # a command that did not run is said before
        usual = done["status"] == 3 and len(ends) == 1 and REASON.fullmatch(ends[0])
        return usual or done["status"] == 126 and about == [NOT_RUN]

    @staticmethod
    def may_share_status(says_enough, line):
        """Status 1 and more may be both the usual answer and that of a failure that is told."""
        return says_enough

    @staticmethod
    def describe(fault, line):
        return f"FAIL_ALLOC={fault.number}{' FAIL_ALLOC_FROM=1' * fault.from_there_on} memtrace {line}"


if __name__ == "__main__":
    sys.exit(sweep_commands(MemorySweep, __doc__))
