#!/usr/bin/env python3
"""The Python package after an interrupt or an error at a bad moment: the environment of the process is
as before, the exception of the program stays, and what a message names exists."""
import re

from support import DRIVER, Case, main
from test_recording import TORCH

INTERRUPTED = """
import os
import memtrace
from memtrace import collector

def after(function):
    def call(*words, **named):
        function(*words, **named)
        raise KeyboardInterrupt
    return call

before = dict(os.environ)
"""
# A profiler with the history of a false PyTorch, of which `import` can read nothing.
PROFILER = """
SNAPSHOT = "snapshot"
open(SNAPSHOT, "w").write("no snapshot")
""" + TORCH + """
import memtrace
def step(): pass
"""


class Environment(Case):
    def test_an_interrupt_while_the_collector_starts(self):
        """Before the library is loaded, and after it has begun to record."""
        for where in ("collector.driver_has_started = after(collector.driver_has_started)",
                      "collector.program.library = after(collector.program.library)",
                      "collector.ctypes.CDLL = after(collector.ctypes.CDLL)",
                      "collector.Collector._load = after(collector.Collector._load)"):
            with self.subTest(where):
                self.python(INTERRUPTED + where + """
try:
    with memtrace.record("run.trace.zst", quiet=True):
        raise SystemExit("the block ran")
except KeyboardInterrupt:
    pass
assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
""")

    def test_an_interrupt_while_the_environment_is_set(self):
        self.python(INTERRUPTED + """
class Environment(dict):
    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        if name == "NVTX_INJECTION64_PATH":
            raise KeyboardInterrupt

collector.os.environ = Environment(os.environ)
try:
    with memtrace.record("run.trace.zst", quiet=True):
        raise SystemExit("the block ran")
except KeyboardInterrupt:
    pass
assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
""")

    def test_an_interrupted_collector_does_not_go_on(self):
        self.python(DRIVER + INTERRUPTED + """
collector.Collector._load = after(collector.Collector._load)
try:
    with memtrace.record("run.trace.zst", quiet=True):
        raise SystemExit("the block ran")
except KeyboardInterrupt:
    pass
start_cuda()
alloc(4096)
""")
        self.assertEqual(self.left(), [])

    def test_an_interrupt_while_the_collector_ends(self):
        self.python(DRIVER + INTERRUPTED + """
try:
    with memtrace.record("run.trace.zst", quiet=True):
        start_cuda()
        alloc(4096)
        used = memtrace.recording._active[0]._collector
        class Library:
            memtrace_end = staticmethod(after(used._library.memtrace_end))
        used._library = Library
except KeyboardInterrupt:
    pass
assert dict(os.environ) == before, set(os.environ.items()) ^ set(before.items())
""")


class History(Case):
    def test_it_ends_where_no_file_can_be_named(self):
        self.python(PROFILER + """
def fail(*words):
    raise memtrace.Error("too many unfinished recordings")
try:
    with memtrace.record("run.trace.zst", quiet=True, method="pytorch-history"):
        memtrace.output.unfinished = fail
except memtrace.Error:
    pass
else:
    raise SystemExit("no error")
assert [call[0] for call in Memory.calls] == ["all", None], Memory.calls
""")


class Profiler(Case):
    def test_the_exception_of_the_program_stays(self):
        done = self.python(PROFILER + """
try:
    with memtrace.LineProfiler(step):
        raise KeyError("of the program")
except KeyError:
    pass
""", variables={"TMPDIR": str(self.work)})
        self.assertIn("memtrace: no lines are profiled: ", done.stderr)

    def test_what_a_message_names_exists(self):
        done = self.python(PROFILER + """
try:
    with memtrace.LineProfiler(step):
        pass
except memtrace.Error as error:
    print(error)
else:
    raise SystemExit("no error")
""", variables={"TMPDIR": str(self.work)})
        name = re.search(r"the snapshot is '(.*)'", done.stdout).group(1)
        with open(name, encoding="utf-8") as file:
            self.assertEqual(file.read(), "no snapshot")

    def test_nothing_is_left_of_a_recording_without_a_file(self):
        self.python(PROFILER + """
def fail(self, path):
    raise OSError(28, "No space left on device")
Memory._dump_snapshot = fail
try:
    with memtrace.LineProfiler(step):
        pass
except memtrace.Error:
    pass
else:
    raise SystemExit("no error")
""", variables={"TMPDIR": str(self.work)})
        self.assertEqual(self.left(), ["snapshot"])


if __name__ == "__main__":
    main()
