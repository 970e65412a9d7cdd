#!/usr/bin/env python3
"""How recordings end: the exception of the program comes first, no name of others is touched, and no
part of a file stays. With the collector, and with the history of a PyTorch that is not one."""
import pathlib
import shutil
import subprocess

from support import CAPTURES, DRIVER, PROGRAM, Case, main

TORCH = """
import os, sys, types
torch = types.ModuleType("torch")
class Memory:
    calls = []
    def _record_memory_history(self, enabled="all", **options): Memory.calls.append(enabled)
    def _dump_snapshot(self, path):
        with open(SNAPSHOT, "rb") as source, open(path, "wb") as made:
            made.write(source.read())
torch.cuda = types.SimpleNamespace(memory=Memory(), is_initialized=lambda: True)
observers = []
torch._C = types.SimpleNamespace(
    _cuda_isHistoryEnabled=lambda: bool(Memory.calls) and Memory.calls[-1] is not None,
    _cuda_attach_out_of_memory_observer=observers.append)
sys.modules["torch"] = torch
import memtrace
from memtrace import output, program
"""
OPTIONS = '"run.trace.zst", method="pytorch-history", quiet=True'


class Endings(Case):
    def setUp(self):
        super().setUp()
        if not shutil.which("zstd"):
            self.skipTest("zstd is not installed")
        self.snapshot = self.work.parent / f"{self.work.name}.pickle"
        self.addCleanup(self.snapshot.unlink)
        with open(self.snapshot, "wb") as file:
            subprocess.run(["zstd", "-dcq", CAPTURES / "seq2seq.pickle.zst"], stdout=file, check=True)

    def run_torch(self, code, **more):
        return self.python(f"SNAPSHOT = {str(self.snapshot)!r}\n" + TORCH + code, **more)

    def is_whole(self, name):
        done = subprocess.run([PROGRAM, "info", "--json", self.work / name], check=False,
                              capture_output=True)
        return done.returncode == 0 and b'"events": 0' not in done.stdout


class Exceptions(Endings):
    def test_status_and_trace_of_a_program_that_ends(self):
        for statement, status in (("raise SystemExit(7)", 7), ("raise KeyboardInterrupt", -2),
                                  ("raise MemoryError", 1)):
            self.run_torch(f"""
with memtrace.record({OPTIONS}):
    {statement}
""", status=status)
            self.assertEqual(self.left(), ["run.trace.zst"], statement)
            self.assertTrue(self.is_whole("run.trace.zst"), statement)

    def test_whatever_fails_at_the_end_the_exception_is_that_of_the_program(self):
        """And PyTorch's history is off, nothing half is left, and the next recording works."""
        for fault in ("OSError(28, 'No space left on device')", "MemoryError('of the host')",
                      "ValueError('of pickle')", "RuntimeError('of the device')"):
            done = self.run_torch(f"""
def fails(self, path):
    with open(path, "wb") as file:
        file.write(b"half")
    raise {fault}
real, Memory._dump_snapshot = Memory._dump_snapshot, fails
try:
    with memtrace.record({OPTIONS.replace(", quiet=True", "")}):
        raise KeyError("of the program")
except KeyError as error:
    assert error.__context__ is None, error.__context__
else:
    raise SystemExit("it is lost")
assert os.listdir() == ["program.py"], os.listdir()
assert Memory.calls == ["all", None] and memtrace.ranges.annotated == 0, Memory.calls
try:
    with memtrace.record({OPTIONS}):
        pass
except memtrace.Error as error:
    assert "PyTorch cannot write its history" in str(error), error
else:
    raise SystemExit("the failure is lost")
Memory._dump_snapshot = real
with memtrace.record({OPTIONS}) as recording:
    pass
assert recording.trace
""")
            self.assertIn("PyTorch cannot write its history", done.stderr)
            self.assertEqual(self.left(), ["run.trace.zst"])
            (self.work / "run.trace.zst").unlink()

    def test_an_interrupt_leaves_no_half_snapshot(self):
        self.run_torch(f"""
def interrupted(self, path):
    with open(path, "wb") as file:
        file.write(b"half")
    raise KeyboardInterrupt
Memory._dump_snapshot = interrupted
try:
    with memtrace.record({OPTIONS}):
        pass
finally:
    assert Memory.calls == ["all", None], Memory.calls
""", status=-2)
        self.assertEqual(self.left(), [])

    def test_an_interrupt_while_a_history_begins(self):
        self.run_torch(f"""
def interrupted(self, enabled="all", **options):
    Memory.calls.append(enabled)
    if enabled == "all":
        raise KeyboardInterrupt
Memory._record_memory_history = interrupted
try:
    memtrace.record({OPTIONS}).__enter__()
except KeyboardInterrupt:
    pass
assert Memory.calls == ["all", None], Memory.calls
del Memory._record_memory_history
Memory._record_memory_history = lambda self, enabled="all", **options: Memory.calls.append(enabled)
with memtrace.record({OPTIONS}) as recording:
    pass
assert recording.trace
""")

    def test_an_interrupt_at_every_line_of_the_start(self):
        """PyTorch's history is off, nothing is being recorded, and the next recording works."""
        done = self.run_torch(f"""
import inspect
from memtrace import history, recording
# Not __enter__: an exception at the end of `with _lock` would leave the lock taken.
names = ("_begin", "start", "_start", "__init__", "_count_annotated")
files = (inspect.getfile(history), inspect.getfile(recording))

def interrupted(number):
    # Whether the start has this many lines. The ends of functions count.
    left = number
    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in files or frame.f_code.co_name not in names:
            return None
        if event in ("line", "return"):
            left -= 1
            if not left:
                raise KeyboardInterrupt
        return trace
    one = memtrace.record({OPTIONS})
    sys.settrace(trace)
    try:
        one.__enter__()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    if left > 0:
        one.__exit__()
    return left <= 0

number, faults = 1, []
while interrupted(number):
    state = (torch._C._cuda_isHistoryEnabled(), len(history._Shared.users), len(recording._active),
             memtrace.ranges.annotated)
    if state != (False, 0, 0, 0):
        faults.append((number, state))
        for one in list(recording._active):
            one.discard()
        for user in list(history._Shared.users):
            user.stop()
    number += 1
assert number > 20, number
print(faults)
""")
        self.assertEqual(done.stdout, "[]\n")

    def test_without_the_program_the_snapshot_stays(self):
        for found in ("/nowhere/memtrace", "/bin/false"):
            done = self.run_torch(f"""
try:
    with memtrace.record({OPTIONS.replace(", quiet=True", "")}):
        os.environ["MEMTRACE_PROGRAM"] = {found!r}
        raise KeyError("of the program")
except KeyError:
    pass
assert Memory.calls == ["all", None], Memory.calls
""")
            (snapshot,) = self.left()
            self.assertIn(f"the snapshot is '{self.work / snapshot}'", done.stderr)
            self.assertEqual((self.work / snapshot).read_bytes(), self.snapshot.read_bytes())
            (self.work / snapshot).unlink()

    def test_an_interrupt_while_frames_get_names(self):
        """The collector's trace is complete without them."""
        self.python(DRIVER + """
import memtrace
def interrupted(*words):
    raise KeyboardInterrupt
with memtrace.record("run.trace.zst", quiet=True):
    start_cuda()
    alloc(4096)
    memtrace.program.run = interrupted
""", status=-2)
        self.assertEqual(self.left(), ["run.trace.zst"])
        self.assertEqual(self.sizes(), [4096])


class Names(Endings):
    def test_a_trace_of_a_recording_that_ended_earlier_stays(self):
        """As when each process of a job records to one name."""
        (self.work / "other.py").write_text(DRIVER + """
import memtrace
with memtrace.record("run.trace.zst", quiet=True):
    start_cuda()
    alloc(8192)
""")
        done = self.python(DRIVER + """
import memtrace, os, subprocess, sys
with memtrace.record("run.trace.zst") as recording:
    start_cuda()
    alloc(4096)
    subprocess.run([sys.executable, "other.py"], check=True)
assert os.path.basename(recording.trace) == "run-2.trace.zst", recording.trace
""")
        self.assertIn("is the trace of another recording", done.stderr)
        self.assertEqual(self.left(), ["other.py", "run-2.trace.zst", "run.trace.zst"])
        self.assertEqual((self.sizes("run.trace.zst"), self.sizes("run-2.trace.zst")), ([8192], [4096]))

    def test_a_file_that_takes_the_place_of_the_earlier_trace_stays(self):
        """At the last moment: between the comparison and the replacement."""
        for made in ("open('run.trace.zst', 'w').write('mine')",
                     "os.symlink('notes', 'run.trace.zst')"):
            (self.work / "notes").write_text("mine")
            self.run_torch(f"""
with memtrace.record({OPTIONS}):
    pass
exchange = output._exchange
def late(one, other):
    output._exchange = exchange
    os.unlink("run.trace.zst")
    {made}
    exchange(one, other)
output._exchange = late
try:
    with memtrace.record({OPTIONS}):
        pass
except memtrace.Error as error:
    assert "cannot write" in str(error) and "the trace is '" in str(error), error
else:
    raise SystemExit("it was replaced")
""")
            self.assertEqual((self.work / "run.trace.zst").read_text(), "mine")
            self.assertEqual((self.work / "notes").read_text(), "mine")
            (complete,) = [name for name in self.left() if "unfinished" in name]
            self.assertTrue(self.is_whole(complete))
            for name in self.left():
                (self.work / name).unlink()

    def test_without_hard_links_and_exchange(self):
        self.run_torch(f"""
def refused(*words):
    raise OSError(1, "Operation not permitted")
os.link = output._exchange = refused
for _ in range(2):
    with memtrace.record({OPTIONS}) as recording:
        pass
    assert recording.trace.endswith("/run.trace.zst")
with open("mine.trace.zst", "w") as file:
    file.write("mine")
assert not output._give_name("run.trace.zst", "mine.trace.zst")
""")
        self.assertEqual(self.left(), ["mine.trace.zst", "run.trace.zst"])
        self.assertTrue(self.is_whole("run.trace.zst"))
        self.assertEqual((self.work / "mine.trace.zst").read_text(), "mine")

    def test_a_link_with_the_name_of_the_snapshot(self):
        """Someone makes it after memtrace has looked for a free name."""
        (self.work / "notes").write_text("mine")
        self.run_torch(f"""
unfinished = output.unfinished
def late(path, suffix=".trace.zst"):
    name = unfinished(path, suffix)
    if suffix == ".pickle":
        output.unfinished = unfinished
        os.symlink("notes", name)
    return name
output.unfinished = late
with memtrace.record({OPTIONS}):
    pass
""")
        self.assertEqual((self.work / "notes").read_text(), "mine")
        self.assertTrue(self.is_whole("run.trace.zst"))


class Failures(Endings):
    """memtrace.dump_on_oom."""

    def test_names_that_others_have(self):
        """A failure never costs a file, and never goes without a trace."""
        done = self.run_torch("""
from memtrace import dumps
os.makedirs("oom")
name = f"oom/oom-pid{os.getpid()}"
with open(f"{name}.trace.zst", "w") as file:
    file.write("mine")
os.symlink("../notes", f"{name}-2.trace.zst")
dumps = memtrace.dump_on_oom("oom")
for _ in range(2):
    observers[0]()
print(*[os.path.basename(path) for path in dumps.traces])
assert open(f"{name}.trace.zst").read() == "mine"
assert not os.path.exists("notes") and os.path.islink(f"{name}-2.trace.zst")
dumps.stop()
again = memtrace.dump_on_oom("oom")  # as a process on another machine with this number
before = os.stat(dumps.traces[0])
observers[0]()
assert os.stat(dumps.traces[0]) == before
print(os.path.basename(again.traces[0]))
""")
        self.assertRegex(done.stdout, r"^oom-pid\d+-3\.trace\.zst oom-pid\d+-4\.trace\.zst\n"
                                      r"oom-pid\d+-5\.trace\.zst\n$")

    def test_ranks(self):
        for variables, rank in (({"RANK": "3"}, "rank3-"), ({"RANK": "²"}, ""), ({"RANK": "٣"}, ""),
                                ({"RANK": "x", "PMI_RANK": "12"}, "rank12-")):
            done = self.python("""
                import os
                from memtrace.dumps import rank_and_process
                print(rank_and_process().replace(f"pid{os.getpid()}", "pid"))
            """, variables=variables)
            self.assertEqual(done.stdout, f"{rank}pid\n", variables)

    def test_an_observer_that_pytorch_refuses(self):
        self.run_torch("""
del torch._C._cuda_attach_out_of_memory_observer
try:
    memtrace.dump_on_oom("oom")
except memtrace.Error as error:
    assert "PyTorch reports no failed requests" in str(error), error
else:
    raise SystemExit("it was accepted")
assert Memory.calls == ["all", None], Memory.calls
""")
        self.assertEqual(self.left(), [])

    def test_nothing_escapes_to_the_allocator(self):
        self.run_torch("""
import logging
class Handler(logging.Handler):
    def emit(self, record):
        raise ValueError("of the program's log")
logging.getLogger("memtrace").addHandler(Handler())
dumps = memtrace.dump_on_oom("oom")
def fails(self, path):
    raise RuntimeError("of the device")
Memory._dump_snapshot = fails
observers[0]()
assert dumps.traces == [] and os.listdir("oom") == [], os.listdir("oom")
""")

    def test_a_callback_after_an_exception(self):
        """A trainer without a hook for exceptions: another training begins well, and PyTorch's
        history ends with the callback."""
        self.run_torch("""
import gc
from memtrace.integrations.training import Training
training = Training("oom", [0])
for _ in range(2):
    training.begin()
    training.begin_step(0)
    training.begin_phase("forward")  # here the training raises
training.end_step(0)
assert [os.path.basename(path)[:6] for path in training.traces] == ["step0-"], training.traces
assert Memory.calls == ["all"], Memory.calls
del training
gc.collect()
assert Memory.calls == ["all", None], Memory.calls
""")


if __name__ == "__main__":
    main()
