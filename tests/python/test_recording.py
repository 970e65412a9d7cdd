#!/usr/bin/env python3
"""memtrace.record: with the collector in this process, with PyTorch's history, and neither."""
import pathlib
import shutil
import subprocess

import support
from support import CAPTURES, DRIVER, PROGRAM, Case, main

# A torch with a history of memory: a snapshot of a real run.
TORCH = """
import shutil, sys, types
torch = types.ModuleType("torch")
class Memory:
    calls = []
    def _record_memory_history(self, enabled="all", **options): Memory.calls.append((enabled, sorted(options)))
    def _dump_snapshot(self, path): shutil.copyfile(SNAPSHOT, path)
torch.cuda = types.SimpleNamespace(memory=Memory(), is_initialized=lambda: True)
torch._C = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: False)
sys.modules["torch"] = torch
"""


class Collector(Case):
    def test_records_this_process(self):
        done = self.python(DRIVER + """
import memtrace
with memtrace.record("run.trace.zst") as recording:
    assert recording.method == "collector", recording.reason
    start_cuda()
    with memtrace.phase("work"):
        block = alloc(1 << 20)
    free(block)
report = recording.analyze()
print(report.raw["devices"][0]["summary"]["allocated_peak"])
""")
        self.assertIn(str(1 << 20), done.stdout)
        self.assertIn("with the collector", done.stderr)
        self.assertEqual(self.left(), ["run.trace.zst"])
        self.assertEqual(self.phases(), ["+work", "-work"])
        self.assertEqual(self.sizes(), [1 << 20])

    def test_ignores_settings_of_a_recording_without_its_library(self):
        code = DRIVER + '''
import memtrace
with memtrace.record("own.trace.zst"):
    start_cuda()
    alloc(4096)
'''
        for options in (["--idle"], ["--ring", "5m"], ["--with-env"]):
            self.python(code, before=[PROGRAM, "record", *options, "-o", "run.trace.zst", "--",
                                      "env", "-u", "LD_PRELOAD"])
            self.assertEqual(self.sizes("own.trace.zst"), [4096])
            self.assertIsNone(self.header("own.trace.zst")["command"])
            self.assertNotIn(b"ring_ns", (self.work / "own.trace.zst").read_bytes()[:8192])

    def test_an_exception_passes_and_the_trace_is_complete(self):
        self.python(DRIVER + """
import memtrace
try:
    with memtrace.record("run.trace.zst", quiet=True):
        start_cuda()
        alloc(4096)
        raise KeyError
except KeyError:
    pass
else:
    raise SystemExit("the exception is lost")
""")
        self.assertEqual(self.sizes(), [4096])

    def test_as_a_decorator(self):
        self.python(DRIVER + """
import memtrace

@memtrace.record("run.trace.zst", quiet=True)
def train(size):
    start_cuda()
    alloc(size)
    return 5

assert train(8192) == 5
""")
        self.assertEqual(self.sizes(), [8192])

    def test_decorated_coroutines_and_generators(self):
        for kind, call in (("async def", "asyncio.run(train())"), ("def", "list(train())"),
                           ("async def", "asyncio.run(all_of(train()))")):
            statement = "await asyncio.sleep(0)" if call == "asyncio.run(train())" else "yield 1"
            self.python(DRIVER + f"""
import asyncio, memtrace

async def all_of(made):
    return [item async for item in made]

@memtrace.record("run.trace.zst", quiet=True)
{kind} train():
    {statement}
    start_cuda()
    alloc(8192)

{call}
""")
            with self.subTest(call):
                self.assertEqual(self.sizes(), [8192])

    def test_a_forked_child_does_not_end_it(self):
        """The child leaves the block, as a worker does that was forked inside."""
        done = self.python(DRIVER + """
import memtrace, os, sys
with memtrace.record("run.trace.zst") as recording:
    start_cuda()
    alloc(4096)
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert not os.path.exists("run.trace.zst")
        alloc(8192)
if not child:
    assert recording.trace is None
    sys.stdout.flush()
    os._exit(0)
assert recording.trace
""")
        # Since 3.12, Python also warns about fork in a process with threads.
        lines = [line for line in done.stderr.splitlines() if line.startswith("memtrace: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertEqual(self.sizes(), [4096, 8192])
        self.assertEqual(self.left(), ["run.trace.zst"])

    def test_a_second_recording_is_refused(self):
        self.python(DRIVER + """
import memtrace
with memtrace.record("run.trace.zst", quiet=True):
    start_cuda()
    alloc(4096)
    try:
        memtrace.record("other.trace.zst").__enter__()
    except memtrace.Error as error:
        assert "already being recorded" in str(error), error
    else:
        raise SystemExit("two recordings")
try:
    memtrace.record("again.trace.zst").__enter__()
except memtrace.Error as error:
    assert "already recorded this process once" in str(error), error
""")
        self.assertEqual(self.left(), ["run.trace.zst"])

    def test_after_cuda_has_started_it_says_why(self):
        self.python(DRIVER + """
import memtrace
start_cuda()
try:
    memtrace.record("run.trace.zst", method="collector").__enter__()
except memtrace.Error as error:
    assert "CUDA has already started" in str(error), error
else:
    raise SystemExit("recorded from the middle")
""")
        self.assertEqual(self.left(), [])

    def test_without_cuda_nothing_is_written(self):
        done = self.python("""
import memtrace
with memtrace.record("run.trace.zst") as recording:
    pass
assert recording.trace is None
""")
        self.assertIn("is not written", done.stderr)
        self.assertEqual(self.left(), [])

    def test_under_the_launcher_nothing_is_recorded_twice(self):
        self.record(DRIVER + """
import memtrace
with memtrace.record("inner.trace.zst", quiet=True) as recording:
    assert recording.method == "memtrace record", recording.method
    start_cuda()
    alloc(4096)
""")
        self.assertEqual(self.left(), ["run.trace.zst"])


class Output(Case):
    def refused(self, name, words):
        self.python(f"""
import memtrace
try:
    memtrace.record({name!r}).__enter__()
except memtrace.Error as error:
    assert {words!r} in str(error), error
else:
    raise SystemExit("it was accepted")
""")

    def test_foreign_files_stay(self):
        (self.work / "notes.txt").write_text("mine\n")
        (self.work / "link").symlink_to("notes.txt")
        (self.work / "folder").mkdir()
        self.refused("notes.txt", "did not write this file")
        self.refused("link", "symbolic link")
        self.refused("folder", "not the name of a file")
        self.refused("", "not the name of a file")
        self.assertEqual((self.work / "notes.txt").read_text(), "mine\n")

    def test_a_file_that_appears_meanwhile_stays(self):
        self.python(DRIVER + """
import memtrace
recording = memtrace.record("run.trace.zst", quiet=True)
try:
    with recording:
        start_cuda()
        alloc(4096)
        open("run.trace.zst", "w").write("mine")
except memtrace.Error as error:
    assert "memtrace did not write this file; the trace is '" in str(error), error
else:
    raise SystemExit("it was replaced")
""")
        self.assertEqual((self.work / "run.trace.zst").read_text(), "mine")
        (complete,) = [name for name in self.left() if name != "run.trace.zst"]
        self.assertRegex(complete, r"^run\.unfinished-\d+\.trace\.zst$")
        self.assertEqual(self.sizes(complete), [4096])

    def test_names_of_bytes(self):
        self.python(DRIVER + """
import memtrace
with memtrace.record(b"run\\xff.trace.zst"):
    start_cuda()
    alloc(4096)
""")
        self.assertEqual(self.left(), ["run\udcff.trace.zst"])

    def test_unknown_settings(self):
        self.python("""
import memtrace
for options in ({"stacks": "all"}, {"phases": "nvtx,other"}, {"method": "cupti"}):
    try:
        memtrace.record("run.trace.zst", **options)
    except memtrace.Error as error:
        assert "is unknown: use" in str(error), error
    else:
        raise SystemExit(f"{options} were accepted")
""")

    def test_an_earlier_trace_is_replaced(self):
        for size in (4096, 8192):
            self.python(DRIVER + f"""
import memtrace
with memtrace.record("a 'b'.trace.zst", quiet=True):
    start_cuda()
    alloc({size})
""")
        self.assertEqual(self.sizes("a 'b'.trace.zst"), [8192])
        self.assertEqual(self.left(), ["a 'b'.trace.zst"])


class History(Case):
    def snapshot(self):
        if not shutil.which("zstd"):
            self.skipTest("zstd is not installed")
        path = self.work / "snapshot.pickle"
        with open(path, "wb") as file:
            subprocess.run(["zstd", "-dcq", CAPTURES / "seq2seq.pickle.zst"], stdout=file, check=True)
        return path

    def test_falls_back_and_says_what_is_missing(self):
        snapshot = self.snapshot()
        done = self.python(f"SNAPSHOT = {str(snapshot)!r}\n" + TORCH + """
import memtrace
with memtrace.record("run.trace.zst") as recording:
    pass
assert recording.method == "pytorch-history", recording.method
assert "CUDA has already started" in recording.reason, recording.reason
assert any("outside" in text for text in recording.missing)
assert [call[0] for call in Memory.calls] == ["all", None], Memory.calls
print(recording.analyze().raw["devices"][0]["summary"]["allocated_peak"])
""", variables={"PATH": f"{pathlib.Path(PROGRAM).parent}:/usr/bin:/bin"})
        self.assertIn("history of PyTorch", done.stderr)
        snapshot.unlink()
        self.assertEqual(self.left(), ["run.trace.zst"])
        self.assertIn("4776865280", done.stdout)

    def history(self, code, **more):
        """Runs a program with the history of the false PyTorch; returns its output."""
        snapshot = self.snapshot()
        done = self.python(f"SNAPSHOT = {str(snapshot)!r}\n" + TORCH + code,
                           variables={"PATH": f"{pathlib.Path(PROGRAM).parent}:/usr/bin:/bin"}, **more)
        snapshot.unlink()
        return done

    def test_three_generations_of_arguments(self):
        """Each PyTorch refuses what it does not know, and gets what it knows."""
        for known, annotations in (
                ("context stacks clear_history global_record_annotations max_entries", True),
                ("context stacks clear_history max_entries", False),
                ("context stacks max_entries", False),
                ("trace_alloc_max_entries trace_alloc_record_context", False)):
            self.history(f"""
import memtrace
from memtrace import ranges
def record_memory_history(enabled, **options):
    if set(options) - set({known.split()!r}) or {known.startswith("trace")} and enabled is None:
        raise TypeError("unexpected keyword argument")
    Memory.calls.append((enabled, options))
Memory._record_memory_history = staticmethod(record_memory_history)
with memtrace.record("run.trace.zst", quiet=True, max_entries=7) as recording:
    assert bool(ranges.annotated) == {annotations}
    assert ("phases and steps" not in recording.missing) == {annotations}, recording.missing
assert ranges.annotated == 0
(first, options), (last, none) = Memory.calls
assert sorted(options) == sorted({known.split()!r}) and 7 in options.values(), options
assert (first, last, none) == ({"(True, False, {})" if known.startswith("trace") else "('all', None, {})"})
""")
            self.assertEqual(self.left(), ["run.trace.zst"])

    def test_a_history_of_the_program_goes_on(self):
        self.history("""
import memtrace
torch._C._cuda_isHistoryEnabled = lambda: True
with memtrace.record("run.trace.zst", quiet=True):
    pass
assert Memory.calls == [], Memory.calls
""")

    def test_a_pytorch_without_cuda(self):
        self.history("""
import memtrace
def missing(*words, **options):
    raise AttributeError("module 'torch._C' has no attribute '_cuda_record_memory_history'")
Memory._record_memory_history = staticmethod(missing)
for begin in (lambda: memtrace.record("run.trace.zst", method="pytorch-history").__enter__(),
              lambda: memtrace.dump_on_oom("oom")):
    try:
        begin()
    except memtrace.Error as error:
        assert "it is built without CUDA" in str(error), error
    else:
        raise SystemExit("it was accepted")
""")

    def test_a_rate_that_is_no_rate(self):
        self.python("""
import memtrace
for rate in (-1, 1001, 0.5, "10"):
    try:
        memtrace.record("run.trace.zst", sample_hz=rate)
    except memtrace.Error as error:
        assert str(error) == f"sample_hz is {rate!r}: use a whole number from 0 to 1000", error
    else:
        raise SystemExit(f"{rate} was accepted")
""")

    def test_no_pytorch(self):
        self.python("""
import sys
import memtrace
sys.modules["torch"] = None
try:
    memtrace.dump_on_oom("oom")
except memtrace.Error as error:
    assert "PyTorch cannot be imported" in str(error), error
else:
    raise SystemExit("it was accepted")
""")

    def test_a_forked_child_writes_nothing(self):
        self.history("""
import memtrace, os
with memtrace.record("run.trace.zst") as recording:
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert not os.path.exists("run.trace.zst")
if not child:
    os._exit(0 if memtrace.ranges.annotated == 0 else 1)
""")
        self.assertEqual(self.left(), ["run.trace.zst"])

    def test_pytorch_writes_to_a_file_that_is_already_there(self):
        """Otherwise another user of the folder could put a link in its place, which PyTorch follows."""
        self.history("""
import memtrace, os, stat
def dump(self, path):
    found = os.lstat(path)
    assert stat.S_ISREG(found.st_mode) and found.st_mode & 0o777 == 0o600 and not found.st_size, found
    shutil.copyfile(SNAPSHOT, path)
Memory._dump_snapshot = dump
with memtrace.record("run.trace.zst"):
    pass
""")
        self.assertEqual(self.left(), ["run.trace.zst"])

    def test_a_full_disk_is_no_other_exception(self):
        done = self.history("""
import memtrace
def fail(self, path):
    raise OSError(28, "No space left on device")
Memory._dump_snapshot = fail
try:
    with memtrace.record("run.trace.zst") as recording:
        raise KeyError("of the program")
except KeyError:
    pass
""")
        self.assertIn("PyTorch cannot write its history: [Errno 28] No space left", done.stderr)
        self.assertEqual(self.left(), [])

    def test_an_interrupt_names_the_snapshot(self):
        done = self.history("""
import memtrace
def interrupted(*words):
    raise KeyboardInterrupt
with memtrace.record("run.trace.zst") as recording:
    memtrace.program.run = interrupted
""", status=-2)
        (snapshot,) = self.left()
        self.assertIn(f"the snapshot is '{self.work / snapshot}'", done.stderr)

    def test_neither_is_possible(self):
        self.python(DRIVER + """
import memtrace
start_cuda()
try:
    memtrace.record("run.trace.zst").__enter__()
except memtrace.Error as error:
    assert "PyTorch is not loaded" in str(error), error
else:
    raise SystemExit("recorded")
""")
        self.assertEqual(self.left(), [])


class Scopes(Case):
    def test_of_a_pytorch_that_is_loaded_already(self):
        library = support.BUILD / "standin" / "torch" / "lib" / "libtorch_cuda.so"
        self.python(f"""
            import ctypes
            import memtrace
            torch = ctypes.CDLL("{library}")
            torch.ts_scope_begin.restype = ctypes.c_void_p
            torch.ts_scope_end.argtypes = [ctypes.c_void_p]
            torch.ts_malloc.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
            with memtrace.record("run.trace.zst", quiet=True):
                torch.ts_begin()
                scope = torch.ts_scope_begin(7, b"scope")
                torch.ts_malloc(0, 1000, 0)
                torch.ts_scope_end(scope)
        """)
        self.assertEqual(self.phases(), ["+scope", "-scope"])
        self.assertEqual(self.sizes(heap="pytorch"), [1000])


if __name__ == "__main__":
    main()
