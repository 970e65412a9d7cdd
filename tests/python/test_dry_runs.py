#!/usr/bin/env python3
"""memtrace.dry_run and memtrace.dump_on_oom with a real PyTorch (tests/real_wheel). Exits with 77 if
that cannot be had. What needs no PyTorch is in Source."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import BUILD, LIMIT_SECONDS, PACKAGE, PROGRAM, ROOT, Case

sys.path.insert(0, str(ROOT / "tests" / "real_wheel"))
import check_real_wheel as wheel  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
APPROXIMATED = ("normal", "exponential", "complex", "row", "generator")
PYTHON = None

# What a notebook has: cells that linecache knows, in a module __main__ that is no file.
NOTEBOOK = """
import linecache, sys, types
main = types.ModuleType("__main__")
sys.modules["__main__"] = main

def cell(text):
    name = f"<cell {len(linecache.cache)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), vars(main))
"""


class WithTorch(Case):
    def run_python(self, code, *, status=0, before=(), **variables):
        """Runs a program with PyTorch in the folder. Returns what it prints."""
        script = self.work / "main.py"
        script.write_text(textwrap.dedent(code), encoding="utf-8")
        done = subprocess.run([*before, PYTHON, "-B", script], cwd=self.work, timeout=LIMIT_SECONDS,
                              capture_output=True, text=True, check=False, env={
                                  **os.environ, "MEMTRACE_PROGRAM": PROGRAM, "PYTHONPATH": str(PACKAGE),
                                  "PATH": f"{pathlib.Path(PYTHON).parent}:{os.environ['PATH']}", **variables})
        self.assertEqual(done.returncode, status, f"{done.stdout}\n{done.stderr}")
        return done


class DryRun(WithTorch):
    def test_script_command_and_options(self):
        (self.work / "train.py").write_text(textwrap.dedent("""
            import sys, torch
            print("words", sys.argv[1:])
            kept = [torch.ones(int(sys.argv[1]), 1 << 18, device="cuda") for _ in range(4)]
            """), encoding="utf-8")
        done = self.run_python("""
            import os, sys
            import memtrace
            answer = memtrace.dry_run("train.py", 25)
            print(answer.exit_status, answer.out_of_memory, answer.devices[0].allocated_peak_bytes >> 20)
            answer = memtrace.dry_run(["python", "train.py", 300, "b c"], limit="1GiB", quiet=True)
            print(answer.exit_status, answer.out_of_memory, len(answer.devices))
            answer = memtrace.dry_run("train.py", 5, output="kept/", quiet=True, device="RTX 4090",
                                      max_peak={"allocated": "10 MiB"})
            print(answer.simulated.card, [gate.state for gate in answer.gates], len(os.listdir("kept")))
            answer = memtrace.dry_run([sys.executable, "-c", "raise SystemExit(7)"], quiet=True)
            print(answer.exit_status)
            """)
        # PyTorch rounds 25 MiB up to 26.
        self.assertEqual(done.stdout.splitlines()[0], "0 False 104")
        self.assertEqual(done.stdout.splitlines()[1], "1 True 1")
        self.assertIn("4090", done.stdout.splitlines()[2])
        self.assertIn("['fail'] 1", done.stdout.splitlines()[2])
        self.assertEqual(done.stdout.splitlines()[3], "7")
        self.assertEqual(done.stderr.count("words ['25']"), 1)
        self.assertNotIn("b c", done.stderr)

    def in_outer_dry_run(self, code):
        """`import torch` needs libraries that a dry run stands in for. The program of the test is in
        such a run, and does not look as if it were."""
        return self.run_python('import os\nos.environ.pop("MEMTRACE_OUTPUT")\n' + textwrap.dedent(code),
                               before=[PROGRAM, "dry-run", "-q", "-o", "outer/", "--"])

    def test_errors(self):
        done = self.run_python("""
            import memtrace
            for target, words, named in (("nosuch.py", (), {}), (["nosuchprogram"], (), {}),
                                         ("main.py", (), {"size": 3}), ("main.py", (), {"limit": "much"}),
                                         ("main.py", (), {"device": "nosuch"})):
                try:
                    answer = memtrace.dry_run(target, *words, quiet=True, **named)
                    print("answer", answer.exit_status)
                except memtrace.Error as error:
                    print(error.status, error)
            """)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("nosuchprogram", lines[1])
        self.assertIn("'size' is neither an option of dry_run nor an argument", lines[2])
        self.assertIn("much", lines[3])
        self.assertIn("nosuch", lines[4])

    def test_functions_of_a_module_and_of_the_main_script(self):
        (self.work / "models.py").write_text(textwrap.dedent("""
            import torch

            class Model:
                @staticmethod
                def build(n, dtype=torch.float32):
                    return torch.ones(n, 1 << 18, device="cuda", dtype=dtype)
            """), encoding="utf-8")
        done = self.in_outer_dry_run("""
            import memtrace, models, torch
            factor = 3

            def train(n, extra=0, kind=float("inf")):
                print("in train", n, extra, kind, __name__)
                return torch.ones(n * factor + extra, 1 << 18, device="cuda")

            if __name__ == "__main__":
                for answer in (memtrace.dry_run(train, 10, extra=1),
                               memtrace.dry_run(models.Model.build, 8, dtype=torch.float16)):
                    print(answer.devices[0].allocated_peak_bytes / (1 << 20))
            """)
        self.assertEqual(done.stdout.split()[:2], ["32.0", "4.0"])  # PyTorch rounds 31 MiB up to 32
        self.assertIn("in train 10 1 inf __memtrace_main__", done.stderr)

    def test_a_script_without_a_guard(self):
        done = self.run_python("""
            import memtrace

            def train():
                pass

            print(memtrace.dry_run(train).exit_status)
            """)
        self.assertEqual(done.stdout.split(), ["1"])
        self.assertIn("call it below 'if __name__ == \"__main__\":'", done.stderr)

    def test_a_program_that_is_itself_in_a_dry_run(self):
        self.run_python("""
            import memtrace
            try:
                memtrace.dry_run("nosuch.py")
            except memtrace.Error as error:
                assert "itself in a dry run" in str(error), error
            else:
                raise SystemExit("nested")
            """, before=[PROGRAM, "dry-run", "-q", "-o", "outer/", "--"])

    def test_a_notebook(self):
        done = self.in_outer_dry_run(NOTEBOOK + textwrap.dedent('''
            cell("""
            import memtrace, torch
            import torch.nn.functional as F
            from torch import nn
            from dataclasses import dataclass
            model = torch.zeros(3)  # a local variable of train has this name
            device = torch.device("cuda", 0)
            dtype = torch.bfloat16
            sizes = {"hidden": [256], "mask": float("-inf"), "empty": ()}

            @dataclass
            class Config:
                batch: int = 8
            """.replace("\\n            ", "\\n"))
            cell("""
            class Net(nn.Module):
                def __init__(self, config):
                    super().__init__()
                    self.layer = make(config.batch)

                def forward(self, data):
                    return act(self.layer(data))
            """.replace("\\n            ", "\\n"))
            cell("""
            act = lambda data: F.relu(data)

            def make(n):
                return nn.Linear(sizes["hidden"][0] * n, 1024, device=device, dtype=dtype)

            linear = make

            def train(batch):
                model = Net(Config(batch))
                data = torch.ones(4, 256 * batch, device=device, dtype=dtype)
                assert linear is make and sizes["mask"] < 0
                print("parameters", sum(p.numel() for p in model.parameters()))
                return model(data)

            answer = memtrace.dry_run(train, 8)
            print(answer.exit_status, answer.devices[0].allocated_peak_bytes)
            """.replace("\\n            ", "\\n"))
            '''))
        # The weight and the bias; the data, the product and its positive part; cuBLAS's workspace.
        self.assertIn(f"parameters {2048 * 1024 + 1024}", done.stderr)
        self.assertEqual(done.stdout.split()[0], "0")
        self.assertGreaterEqual(int(done.stdout.split()[1]), 2 * (2048 * 1024 + 1024 + 4 * 2048 + 2 * 4 * 1024))

    def test_an_interrupt_ends_the_program(self):
        done = self.run_python("""
            import os, signal, subprocess, threading, time
            import memtrace

            def interrupt():
                while not os.path.exists("runs"):
                    time.sleep(0.1)
                os.kill(os.getpid(), signal.SIGINT)

            begin = time.monotonic()
            threading.Thread(target=interrupt, daemon=True).start()
            try:
                memtrace.dry_run(["python", "-c", "import time; open('runs', 'w'); time.sleep(900)"])
            except KeyboardInterrupt:
                print(time.monotonic() - begin < 450, os.path.exists("runs"))
            """)
        self.assertEqual(done.stdout.split(), ["True", "True"])


class Draws(WithTorch):
    """Numbers that the device draws are those of an H200 (tests/real_wheel/draws.json)."""

    def test_as_on_a_device(self):
        folder = pathlib.Path(wheel.__file__).parent
        known = json.loads((folder / "draws.json").read_text(encoding="utf-8"))
        done = self.run_python((folder / "draws.py").read_text(encoding="utf-8"),
                               before=[PROGRAM, "dry-run", "-q", "-o", "outer/", "--"])
        found = json.loads(done.stdout.splitlines()[0])
        self.assertEqual(found.keys(), known.keys())
        for name, results in known.items():
            with self.subTest(name):
                self.assertEqual(len(found[name]), len(results))
                for here, there in zip(found[name], results):
                    if name.startswith(APPROXIMATED):
                        self.assert_close(here["first"], there["first"], name)
                    else:
                        self.assertEqual(here, there)
        self.assertNotIn("depended on data", done.stderr)
        self.assertNotIn("Python part", done.stderr)

    def assert_close(self, here, there, name):
        """The device approximates sine, cosine and logarithm with an error of 2^-20.9 and less; a difference may then
        move a rounded number to its neighbor."""
        digits = 7 if "bfloat16" in name else 10 if "float16" in name else 22
        for a, b in zip(here, there):
            self.assertLessEqual(abs(a - b), 2e-6 + abs(b) * 2.0**-digits)


DUMP = """
import glob, logging, os
os.environ.pop("MEMTRACE_OUTPUT")  # a dry run in which the process does not look recorded
import memtrace, torch
logging.basicConfig(format="LOG %(message)s")

def fails(gib=1 << 12):
    first = torch.ones(5, 1 << 18, device="cuda")
    try:
        torch.empty(gib, 1 << 30, device="cuda", dtype=torch.uint8)
    except torch.OutOfMemoryError:
        return True
    return False

def names():
    return sorted(os.path.basename(path).replace(str(os.getpid()), "PID") for path in glob.glob("oom/*"))
"""


class Dumps(WithTorch):
    def dump(self, code, **variables):
        return self.run_python(DUMP + textwrap.dedent(code),
                               before=[PROGRAM, "dry-run", "-q", "-o", "traces/", "--"], **variables)

    def test_a_trace_for_each_failure(self):
        done = self.dump("""
            dumps = memtrace.dump_on_oom("oom", max_traces=2)
            assert fails() and fails() and fails()
            assert names() == ["oom-rank3-pidPID-2.trace.zst", "oom-rank3-pidPID.trace.zst"], names()
            assert [os.path.basename(path) for path in dumps.traces] == [
                f"oom-rank3-pid{os.getpid()}.trace.zst", f"oom-rank3-pid{os.getpid()}-2.trace.zst"]
            first, second = [memtrace.analyze(path) for path in dumps.traces]
            (oom,) = first.rows("ooms")
            assert (oom.request_bytes, oom.then.allocated) == (1 << 42, 5 << 20), oom
            assert len(second.rows("ooms")) == 2
            assert any("fails" in frame for frame in oom.stack), oom.stack
            path = dumps.write("now")
            assert path.endswith("/oom/now.trace.zst") and len(memtrace.analyze(path).rows("ooms")) == 3
            dumps.stop()
            assert not torch._C._cuda_isHistoryEnabled()
            assert fails() and len(names()) == 3 and dumps.write("later") is None
            with memtrace.dump_on_oom("oom") as again:
                assert fails() and len(again.traces) == 1
            assert fails() and len(again.traces) == 1
            """, RANK="3")
        self.assertEqual(done.stderr.count("LOG GPU memory ran out; trace: "), 3)
        self.assertIn("4.00 TiB requested", done.stderr)

    def test_nothing_escapes(self):
        done = self.dump("""
            open("file", "w").close()
            dumps = memtrace.dump_on_oom("file/folder")
            assert fails() and dumps.traces == []
            dumps.stop()
            dumps = memtrace.dump_on_oom("oom")
            dumps._write = lambda path: 1 / 0
            assert fails()
            dumps.stop()
            os.environ["MEMTRACE_PROGRAM"] = "/nosuch/program"
            with memtrace.dump_on_oom("oom"):
                assert fails()
            """)
        self.assertEqual(done.stderr.count("LOG GPU memory ran out, and no trace could be written: "), 3)
        self.assertIn("division by zero", done.stderr)
        self.assertIn("which is not a program; the snapshot is", done.stderr)

    def test_the_history_is_shared(self):
        self.dump("""
            dumps = memtrace.dump_on_oom("oom")
            kept = torch.ones(2, 1 << 18, device="cuda")
            with memtrace.record("part.trace.zst", method="pytorch-history", quiet=True) as recording:
                more = torch.ones(3, 1 << 18, device="cuda")
            assert recording.analyze().device.summary.allocations == 2
            assert torch._C._cuda_isHistoryEnabled()
            with memtrace.record("part.trace.zst", method="pytorch-history", quiet=True,
                                 clear_history=True) as recording:
                most = torch.ones(3, 1 << 18, device="cuda")
            assert recording.analyze().device.summary.allocations == 1
            assert fails()
            (trace,) = dumps.traces
            (oom,) = memtrace.analyze(trace).rows("ooms")
            assert oom.then.allocated == 13 << 20, oom.then
            dumps.stop()
            assert not torch._C._cuda_isHistoryEnabled()
            torch.cuda.memory._record_memory_history()
            memtrace.dump_on_oom("oom").stop()
            assert torch._C._cuda_isHistoryEnabled()  # the program's own
            """)

    def test_in_a_recorded_process(self):
        self.run_python("""
            import memtrace, torch
            dumps = memtrace.dump_on_oom("oom")
            assert dumps.is_recorded_elsewhere and dumps.write("now") is None
            try:
                torch.empty(1 << 42, device="cuda", dtype=torch.uint8)
            except torch.OutOfMemoryError:
                pass
            assert dumps.traces == []
            dumps.stop()
            """, before=[PROGRAM, "dry-run", "-q", "-o", "traces/", "--"])
        self.assertFalse((self.work / "oom").exists())


class Source(Case):
    """function_script.py without PyTorch: what it copies, runs; what it refuses, it explains."""

    def copied(self, *cells, call="source_of_call(main.start)"):
        """Runs cells, and then the program that it makes of `start`, in another process."""
        code = NOTEBOOK + "".join(f"cell({textwrap.dedent(text)!r})\n" for text in cells) + textwrap.dedent(f"""
            from memtrace import Error
            from memtrace.function_script import source_of_call
            try:
                text = {call}
            except Error as error:
                print("ERROR", error)
            else:
                open("copy.py", "w").write(text)
            """)
        said = self.python(code).stdout.strip()
        copy = self.work / "copy.py"
        if not copy.exists():
            return said
        text = copy.read_text(encoding="utf-8")
        copy.unlink()
        return self.python(text).stdout.strip()

    def test_what_it_uses(self):
        self.assertEqual(self.copied("""
            import os.path as p, json, math
            from collections import OrderedDict as Ordered
            from typing import Optional
            top = {"a": [1, 2.5, float("inf"), (None,), {3}, frozenset()], b"b": "it's"}
            """, """
            class Base:
                factor = 2
                @classmethod
                def make(cls): return cls()
            class Child(Base):
                @property
                def value(self): return helper(self.factor)
            """, """
            def decorate(function): return function
            @decorate
            def helper(n): return again(n - 1) if n else math.inf
            def again(n): return helper(n)
            other = helper
            def start():
                text: Optional[str] = p.basename("/x/y")
                print(text, Child.make().value, other(0), json.dumps(Ordered(k=1)), top["a"][2], len(top))
            """), 'y inf inf {"k": 1} inf 2')

    def test_arguments(self):
        self.assertEqual(self.copied("def start(*words, **named): print(words, named)",
                                     call="source_of_call(main.start, (1, 'a', [(2,)]), {'x': {'y': None}})"),
                         "(1, 'a', [(2,)]) {'x': {'y': None}}")
        self.assertEqual(self.copied("class A:\n    @staticmethod\n    def b(n): print(n)\n    @classmethod\n"
                                     "    def c(cls, n): print(n)", call="source_of_call(main.A.b, [4])"), "4")

    def test_local_names_are_not_global_ones(self):
        self.assertEqual(self.copied("model = open('/dev/null')\nresult = model", """
            def start():
                model = 3
                print([model for model in range(2)], model)
            """), "[0, 1] 3")

    def test_the_newest_definition_of_a_class(self):
        self.assertEqual(self.copied("class A:\n    def b(self): return 1", "class A:\n    def b(self): return 2",
                                     "def start(): print(A().b())"), "2")

    def test_refusals(self):
        for cells, call, reason in (
            (["start = lambda: 1"], "main.start", "'<lambda>' cannot run in a dry run: define it with 'def'"),
            (["def make():\n    def f(): pass\n    return f\nstart = make()"], "main.start", "define it with 'def'"),
            (["handle = open('/dev/null')\ndef start(): handle"], "main.start",
             "'start' uses 'handle', a TextIOWrapper, which cannot be copied into a dry run: make it inside"),
            (["def make():\n    def f(): pass\n    return f\nf = make()\ndef start(): f()"], "main.start",
             "'start' uses 'f', which is defined inside of another object"),
            (["def f(): pass\nold = f\ndef f(): old()\ndef start(): f()"], "main.start",
             "'f' uses 'old', an object called 'f' as another one is"),
            (["class A:\n    def b(self): pass\nstart = A().b"], "main.start", "it is a method of an object"),
            (["import functools\nstart = functools.partial(print)"], "main.start", "it is not a function"),
            (["def start(n): pass"], "main.start, [object()]",
             "argument 1 of 'start' is a object, which cannot be copied"),
            (["def start(n): pass"], "main.start, (), {'n': {'a': [open]}}", "argument n of 'start' is a dict"),
            (["f = [lambda: 1][0]\ndef start(): f()"], "main.start", "'f' cannot be copied into a dry run"),
            (["exec('def start(): pass')"], "main.start", "the source of 'start' cannot be read"),
        ):
            with self.subTest(reason):
                self.assertIn(reason, self.copied(*cells, call=f"source_of_call({call})"))


def main():
    global PYTHON
    if wheel.allowed_mib() == 0 or not (BUILD / "libmemtrace-simulated-cuda.so").exists():
        raise wheel.Skip("MEMTRACE_TEST_WHEEL_MIB is 0, or there are no dry runs on this platform")
    PYTHON = wheel.python_with_torch()
    wheel.check_is_for_cuda(PYTHON)
    unittest.main()


if __name__ == "__main__":
    try:
        main()
    except wheel.Skip as reason_to_skip:
        print(f"skipped: {reason_to_skip}")
        sys.exit(77)
