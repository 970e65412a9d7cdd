#!/usr/bin/env python3
"""The Python part of a dry run (simulate/python), without PyTorch: a small fake takes its place.

What must hold whatever a program does: it starts and ends as it would have, the user's own sitecustomize
runs, notes are complete files, and a failure of the shim is counted and nothing more."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SHIM = pathlib.Path(__file__).resolve().parent.parent / "simulate" / "python"
FAKE_TORCH = '''
__version__ = "2.99"
class version: cuda = %(cuda)r
def compile(model=None, **_): raise RuntimeError("Triton wants a device")
class cuda:
    class Event:
        def elapsed_time(self, other): return %(ms)r
'''


class Shim(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.torch()

    def torch(self, cuda=None, ms=0.0):
        (self.folder / "torch.py").write_text(FAKE_TORCH % {"cuda": cuda, "ms": ms})

    def run_program(self, text, **environment):
        """(status, output, {process: notes})"""
        program = self.folder / "program.py"
        program.write_text(text)
        for old in self.folder.glob("notes.*"):
            old.unlink()
        done = subprocess.run(
            [sys.executable, "-B", str(program)], capture_output=True, text=True, check=False, cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SHIM), str(self.folder)]), "MEMTRACE_DRY_RUN": "1",
                 "MEMTRACE_DRY_RUN_NOTES": str(self.folder / "notes"), **environment})
        notes = {int(path.suffix[1:]): json.loads(path.read_text()) for path in self.folder.glob("notes.*")}
        return done.returncode, done.stdout + done.stderr, notes

    def only(self, notes):
        self.assertEqual(len(notes), 1, notes)
        return next(iter(notes.values()))

    def test_a_program_without_torch_runs_as_it_is(self):
        status, output, notes = self.run_program("import sys; print('torch' in sys.modules); sys.exit(7)")
        self.assertEqual((status, output, notes), (7, "False\n", {}))

    def test_without_the_variable_nothing_is_changed(self):
        status, output, notes = self.run_program(
            "import sys, torch; print('memtrace_dry_run' in sys.modules, type(torch.__loader__).__name__)", MEMTRACE_DRY_RUN="")
        self.assertEqual((status, output, notes), (0, "False SourceFileLoader\n", {}))

    def test_the_users_own_sitecustomize_runs(self):
        (self.folder / "sitecustomize.py").write_text("import builtins; builtins.marked = __file__\n")
        _, output, _ = self.run_program("import sys, sitecustomize; print(marked == sitecustomize.__file__, 'memtrace_dry_run' in sys.modules)")
        self.assertEqual(output, "True True\n")

    def test_the_users_own_sitecustomize_may_fail_as_ever(self):
        (self.folder / "sitecustomize.py").write_text("raise ValueError('mine')\n")
        status, output, _ = self.run_program("print('ran')")
        self.assertEqual(status, 0)
        self.assertIn("mine", output)
        self.assertIn("ran", output)

    def test_two_shims_do_not_look_for_each_other(self):
        other = self.folder / "other"
        shutil.copytree(SHIM, other)
        (self.folder / "sitecustomize.py").write_text("import builtins; builtins.runs = getattr(builtins, 'runs', 0) + 1\n")
        status, output, notes = self.run_program(
            "import torch; torch.compile(1); print(runs)", PYTHONPATH=os.pathsep.join(map(str, (SHIM, other, self.folder))))
        self.assertEqual((status, output), (0, "1\n"))
        self.assertEqual(self.only(notes)["answers"]["eager"]["count"], 1)

    def test_the_path_stays_as_it_is(self):
        (self.folder / "sitecustomize.py").write_text("import builtins, sys; builtins.path = list(sys.path)\n")
        _, output, _ = self.run_program("import sys; print(path == sys.path[1:], sys.dont_write_bytecode)", PYTHONDONTWRITEBYTECODE="")
        self.assertEqual(output, "True True\n") # -B

    def test_asking_for_torch_is_not_importing_it(self):
        text = "import importlib.util, torch_asked\nimport torch\nprint(torch.compile(3))"
        (self.folder / "torch_asked.py").write_text("import importlib.util\nassert importlib.util.find_spec('torch')\n")
        status, output, notes = self.run_program(text)
        self.assertEqual((status, output), (0, "3\n"))
        self.assertEqual(self.only(notes)["answers"]["eager"]["count"], 1)

    def test_a_second_import_after_an_error_is_hooked(self):
        (self.folder / "torch.py").write_text("import builtins\nif not hasattr(builtins, 'tried'):\n    builtins.tried = 1\n    raise ImportError('once')\n" + FAKE_TORCH % {"cuda": None, "ms": 0.0})
        status, output, _ = self.run_program("try:\n    import torch\nexcept ImportError as e: print(e)\nimport torch; print(torch.compile(3))")
        self.assertEqual((status, output), (0, "once\n3\n"))

    def test_no_bytecode_beside_the_shims_modules(self):
        copy = self.folder / "copy"
        shutil.copytree(SHIM, copy, ignore=shutil.ignore_patterns("__pycache__"))
        program = "import torch; torch.compile(1); import memtrace_dry_run.patches; import sys; print(sys.dont_write_bytecode)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
                                   "PYTHONPATH": os.pathsep.join([str(copy), str(self.folder)]), "MEMTRACE_DRY_RUN": "1"})
        self.assertEqual((done.stdout, done.stderr), ("False\n", ""))
        self.assertFalse((copy / "memtrace_dry_run" / "__pycache__").exists())

    def test_torch_keeps_its_loader(self):
        _, output, _ = self.run_program("import torch; print(type(torch.__loader__).__name__, type(torch.__spec__.loader).__name__)")
        self.assertEqual(output, "SourceFileLoader SourceFileLoader\n")

    def test_compile_gives_back_what_it_got(self):
        status, output, notes = self.run_program(
            "import torch\ndef f(): return 3\n@torch.compile(mode='max-autotune')\ndef g(): return 4\nprint(torch.compile(f) is f, g())\n")
        self.assertEqual((status, output), (0, "True 4\n"))
        found = self.only(notes)
        self.assertEqual(found["answers"]["eager"]["count"], 2)
        self.assertEqual(found["facts"]["torch_compile"], "eager")
        self.assertRegex(found["answers"]["eager"]["first"][0], "program.py:[34] ") # up to 3.10: the line of `def`

    def test_time_passes_between_events(self):
        text = "import torch; e = torch.cuda.Event(); print(1 / e.elapsed_time(e))"
        _, output, notes = self.run_program(text)
        self.assertEqual(output, "1.0\n")
        self.assertEqual(self.only(notes)["answers"]["time"]["count"], 1)
        self.torch(ms=4.0)
        _, output, notes = self.run_program(text)
        self.assertEqual(output, "0.25\n")
        self.assertNotIn("time", self.only(notes)["answers"])

    def test_a_failure_of_the_shim_is_counted_and_nothing_more(self):
        self.torch(cuda="13.0")  # the fake has no dispatcher to hook
        status, output, notes = self.run_program("import torch; print('runs')")
        self.assertEqual((status, output), (0, "runs\n"))
        failures = self.only(notes)["failures"]
        self.assertEqual([f["count"] for f in failures.values()], [1])
        self.assertIn("AttributeError", next(iter(failures.values()))["error"])

    def test_shadows_can_be_switched_off(self):
        _, output, notes = self.run_program(
            "import torch\ntry: torch.compile(1)\nexcept RuntimeError as e: print(e)", MEMTRACE_DRY_RUN_SHADOWS="0")
        self.assertEqual((output, notes), ("Triton wants a device\n", {}))

    def test_an_error_of_torch_itself_is_the_programs(self):
        (self.folder / "torch.py").write_text("raise ImportError('libcudart.so')")
        status, output, _ = self.run_program("import torch")
        self.assertEqual(status, 1)
        self.assertIn("ImportError: libcudart.so", output)

    def test_each_process_writes_its_own_notes(self):
        _, output, notes = self.run_program(
            "import os, torch\ntorch.compile(1); torch.compile(2); torch.compile(3)\n"
            "p = os.fork()\nif p == 0: torch.compile(4); os._exit(0)\nos.waitpid(p, 0); print(os.getpid(), p)")
        parent, child = map(int, output.split())
        self.assertEqual(notes[parent]["answers"]["eager"]["count"], 3)
        self.assertEqual(notes[child]["answers"]["eager"]["count"], 1)

    def test_notes_survive_a_kill(self):
        _, _, notes = self.run_program("import os, signal, torch\nfor i in range(9): torch.compile(i)\nos.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(self.only(notes)["answers"]["eager"]["count"], 8) # written when the count has doubled

    def test_notes_that_cannot_be_written_change_nothing(self):
        status, output, notes = self.run_program("import torch; torch.compile(1); print('ran')", MEMTRACE_DRY_RUN_NOTES="/nowhere/at/all")
        self.assertEqual((status, output, notes), (0, "ran\n", {}))

    def test_half_a_file_is_never_there(self):
        self.run_program("import torch; torch.compile(1)")
        self.assertEqual([path.name for path in self.folder.glob(".*.half")], [])

    def test_counts_of_sizes(self):
        _, _, notes = self.run_program(
            "import torch\nfrom memtrace_dry_run import notes\nnotes.made_up('selection', 3); notes.made_up('number', 5); notes.made_up('count')")
        found = self.only(notes)
        self.assertEqual(found["sizes_from_data"], 4)
        self.assertEqual({k: v["decides_size"] for k, v in found["answers"].items()}, {"selection": True, "number": False, "count": True})

    def test_children_do_not_compile(self):
        _, output, _ = self.run_program("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import os, torch; print(os.environ[\"TORCHDYNAMO_DISABLE\"], torch.compile(5))'], capture_output=True, text=True).stdout)")
        self.assertEqual(output.strip(), "1 5")


if __name__ == "__main__":
    unittest.main()
