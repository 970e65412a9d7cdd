"""What the tests of the Python package share. MEMTRACE_TEST_BUILD is the build folder; programs run
on the simulated GPU of the build."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "python"
CAPTURES = ROOT / "fixtures" / "captures"
BUILD = pathlib.Path(os.environ.get("MEMTRACE_TEST_BUILD", ROOT / "build" / "ci")).resolve()
# Without sanitizers in ./dev test, as tests/support/program.py: these tests check the package, and
# tests/record checks the program that they run.
PROGRAM = os.environ.get("MEMTRACE_FAST_PROGRAM", str(BUILD / "memtrace"))
LIMIT_SECONDS = 900

sys.path.insert(0, str(PACKAGE))
sys.path.insert(0, str(ROOT / "tests"))
os.environ["MEMTRACE_PROGRAM"] = PROGRAM

import thread_sanitizer  # noqa: E402  pylint: disable=wrong-import-position

# A program that uses the driver as a framework does.
DRIVER = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")

def start_cuda():
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0

def alloc(size):
    address = ctypes.c_ulonglong()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address

def free(address):
    assert cuda.cuMemFree_v2(address) == 0
"""


def environment(**more):
    """The variables of a program on the simulated GPU."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("MEMTRACE_", "LD_PRELOAD", "CUDA_", "NVTX_"))}
    kept["LD_LIBRARY_PATH"] = str(BUILD / "standin")
    kept["MEMTRACE_CUPTI"] = str(BUILD / "standin" / "libcupti.so.13")
    kept["MEMTRACE_PROGRAM"] = PROGRAM
    kept["PYTHONPATH"] = str(PACKAGE)
    if not sys.pycache_prefix:
        kept["PYTHONDONTWRITEBYTECODE"] = "1"
    kept.update(thread_sanitizer.preload(BUILD / "libmemtrace-inject.so"))
    kept.update(more)
    return kept


class Case(unittest.TestCase):
    """A test with an empty folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def python(self, code, *, before=(), variables=None, status=0):
        """Runs a Python program in the folder; `before`: words before the interpreter."""
        script = self.work / "program.py"
        script.write_text(textwrap.dedent(code), encoding="utf-8")
        done = subprocess.run([*before, sys.executable, str(script)], cwd=self.work,
                              env=environment(**(variables or {})), capture_output=True, text=True,
                              timeout=LIMIT_SECONDS, check=False)
        self.assertEqual(done.returncode, status, f"{done.stdout}\n{done.stderr}")
        script.unlink()
        return done

    def record(self, code, name="run.trace.zst", options=()):
        """Runs a Python program under `memtrace record`."""
        words = [PROGRAM, "record", "--no-summary", "-q", "-o", name, *options, "--"]
        return self.python(code, before=words)

    def events(self, name="run.trace.zst"):
        done = subprocess.run([PROGRAM, "dump", "--json", name], cwd=self.work, check=True,
                              capture_output=True, timeout=LIMIT_SECONDS)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def phases(self, name="run.trace.zst"):
        """The begins and ends of phases, in order: "+name", "-name"."""
        signs = {"phase_push": "+", "phase_pop": "-"}
        return [signs[event["kind"]] + event["name"] for event in self.events(name)
                if event["kind"] in signs]

    def sizes(self, name="run.trace.zst", heap="driver"):
        return [event["size"] for event in self.events(name)
                if event["kind"] == "alloc" and event["heap"] == heap]

    def header(self, name="run.trace.zst"):
        done = subprocess.run([PROGRAM, "info", "--json", name], cwd=self.work, check=True,
                              capture_output=True, timeout=LIMIT_SECONDS)
        return json.loads(done.stdout)["header"]

    def left(self):
        """The files in the folder."""
        return sorted(path.name for path in self.work.iterdir())


def main():
    unittest.main()
