#!/usr/bin/env python3
"""check_absent.py BUILD [CASE...]: on a machine without cairo, libdw, ncurses and SQLite, everything
works that does not need them, and what does need them names the library.
support/absent_libraries.c hides them."""
import json
import pathlib
import re
import sys

from support import check, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "fixtures" / "captures" / "leak.pickle.zst"
NO_PNG = "libcairo.so.2: cannot open shared object file; install cairo (Debian: libcairo2)"
NO_NAMES = ("native frames are addresses without names: libdw.so.1: cannot open shared object file; "
            "install elfutils (Debian: libdw1)")

NO_VIEW = "libncursesw.so.6: cannot open shared object file; install ncurses (Debian: libncursesw6)"

NO_SQL = "libsqlite3.so.0: cannot open shared object file; install SQLite (Debian: libsqlite3-0)"

# PyTorch's history, as far as memtrace uses it.
PYTHON = f"""
import ctypes, shutil, sys, types
import memtrace
with memtrace.record("run.trace.zst", quiet=True) as recording:
    cuda = ctypes.CDLL("libcuda.so.1")
    context, block = ctypes.c_void_p(), ctypes.c_ulonglong()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 20)) == 0
assert recording.trace and recording.method == "collector", recording
assert str(1 << 20) in str(recording.analyze().raw["devices"][0]["summary"]["allocated_peak"])
torch = types.ModuleType("torch")
class Memory:
    def _record_memory_history(self, enabled="all", **options): pass
    def _dump_snapshot(self, path): shutil.copyfile({str(CAPTURE)!r}, path)
torch.cuda = types.SimpleNamespace(memory=Memory(), is_initialized=lambda: True)
observers = []
torch._C = types.SimpleNamespace(_cuda_attach_out_of_memory_observer=observers.append)
sys.modules["torch"] = torch
dumps = memtrace.dump_on_oom("oom")
observers[0]()
assert len(dumps.traces) == 1 and memtrace.analyze(dumps.traces[0]).devices, dumps.traces
"""


def text_of(output):
    """Without the breaks of lines, and without the error number, which the loader does not always
    have."""
    words = " ".join(output.decode().split())
    return words.replace("object file: No such file or directory;", "object file;")


def absent(bench, **more):
    return bench.environment(LD_AUDIT=str(bench.build / "tests" / "absent_libraries.so"), **more)


def run(bench, *words, status=0, environment=None):
    done = bench.run(bench.memtrace, *words, environment=environment or absent(bench))
    check(done.returncode == status, f"{words}: {done}")
    return done


def has_module(bench, name):
    return (bench.build / f"libmemtrace-{name}.so").exists()


def program_needs_none(bench):
    done = bench.run("readelf", "-d", bench.memtrace)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout.decode())
    check(needed and not [name for name in needed if re.match("lib(cairo|png|dw|elf|ncurses|tinfo|sqlite)", name)],
          f"{needed}")


def analysis(bench):
    """The same bytes with and without the libraries, except pictures as PNG."""
    outputs = {}
    for name, environment in (("with", bench.environment()), ("without", absent(bench))):
        folder = bench.work / name
        outputs[name] = [run(bench, *words, environment=environment).stdout for words in (
            ("analyze", CAPTURE), ("analyze", CAPTURE, "--json"), ("info", CAPTURE),
            ("import", CAPTURE, "-o", folder.with_suffix(".trace.zst"), "--quiet", "--no-summary"))]
        outputs[name].append(folder.with_suffix(".trace.zst").read_bytes())
        report = run(bench, "analyze", CAPTURE, "-o", folder, environment=environment)
        outputs[name] += [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())
                          if path.suffix in (".svg", ".html", ".md")]
        if has_module(bench, "png"):
            check((f"(no .png: {NO_PNG})" in text_of(report.stdout)) == (name == "without"),
                  f"{report.stdout}")
            check(bool(list(folder.glob("*.png"))) == (name == "with"), f"{list(folder.iterdir())}")
    check(outputs["with"] == outputs["without"], "the outputs differ")


def pictures(bench):
    if not has_module(bench, "png"):
        return
    path = bench.work / "timeline.png"
    done = run(bench, "render", "timeline", CAPTURE, "-o", path, status=2)
    check(text_of(done.stderr) == f"memtrace: no .png: {NO_PNG}; write an .svg file instead",
          f"{done.stderr}")
    check(not path.exists(), "a picture")
    run(bench, "render", "timeline", CAPTURE, "-o", path.with_suffix(".svg"))
    # The folder of diff is for its page: no note about a picture.
    done = run(bench, "diff", CAPTURE, CAPTURE, "-o", bench.work / "difference")
    check("no .png" not in text_of(done.stdout), f"{done.stdout}")


def questions(bench):
    if not has_module(bench, "sqlite"):
        return
    path = bench.work / "run.db"
    for words, status, text in ((("sql", CAPTURE, "SELECT 1"), 3, f"cannot answer questions in SQL: {NO_SQL}"),
                                (("export", "sqlite", CAPTURE, "-o", path), 4, f"cannot write '{path}': {NO_SQL}")):
        done = run(bench, *words, status=status)
        check(text_of(done.stderr) == f"memtrace: {text}", f"{done.stderr}")
    check(not path.exists() and b"largest" in run(bench, "sql", "--ask", "list").stdout, "a file, or no list")


def recordings(bench):
    trace = bench.work / "run.trace.zst"
    for environment, is_absent in ((bench.environment(), False), (absent(bench), True)):
        done = run(bench, "record", "--stacks", "native", "-o", trace, "--", bench.recorded, "exit", "0",
                   environment=environment)
        if has_module(bench, "names"):
            check((NO_NAMES in text_of(done.stderr)) == is_absent, f"{done.stderr}")
        dumped = run(bench, "dump", "--json", trace).stdout
        check(b'"alloc"' in dumped, f"{dumped}")
        trace.unlink()
    run(bench, "record", "--stacks", "none", "-o", trace, "--", bench.recorded, "exit", "0")


def python(bench):
    script = bench.work / "program.py"
    script.write_text(PYTHON)
    done = bench.run(sys.executable, script, environment=absent(
        bench, PYTHONPATH=str(ROOT / "python"), MEMTRACE_PROGRAM=bench.memtrace,
        PYTHONDONTWRITEBYTECODE="1"))
    check(done.returncode == 0, f"{done}")


def doctor(bench):
    checks = {}
    for name, environment in (("with", bench.environment()), ("without", absent(bench))):
        done = bench.run(bench.memtrace, "doctor", "--json", environment=environment)
        checks[name] = {one["name"]: one for one in json.loads(text_of(done.stdout))["checks"]}
    for name, module, text in (("pictures", "png", f"only .svg pictures: {NO_PNG}"),
                               ("terminal", "terminal", f"no memtrace view: {NO_VIEW}"),
                               ("sql", "sqlite", f"no memtrace sql and no export sqlite: {NO_SQL}"),
                               ("symbols", "names", NO_NAMES)):
        if has_module(bench, module):
            check(checks["with"][name]["state"] == "ok", f"{checks['with'][name]}")
            check(checks["without"][name]["state"] == "degraded", f"{checks['without'][name]}")
            check(checks["without"][name]["text"] == text, f"{checks['without'][name]}")
            check(checks["without"][name]["mend"], f"{checks['without'][name]}")


if __name__ == "__main__":
    sys.exit(main([program_needs_none, analysis, pictures, questions, recordings, python, doctor]))
