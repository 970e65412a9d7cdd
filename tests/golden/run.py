#!/usr/bin/env python3
"""Golden tests of the command line.

    run.py PROGRAM [--update] [--fast] [--part K/N | CASE...]

A case is CASE.cmd, a line or more of shell in which `memtrace` is PROGRAM, `fast_memtrace` that of
support/program.py, for more of the same, and `drawing_list` tests/drawing_list beside PROGRAM, which
writes pictures as display lists. It is run in an empty folder
that holds some of the fixtures (FOLDERS). What it writes is compared byte for byte with CASE.stdout
and CASE.stderr (missing = empty), its status with CASE.exit (missing = 0). --update writes what came
out instead: read the difference before you commit it. An output that is too long to read fails.
--part runs every Nth case, from the Kth. --fast runs the program of support/program.py.
"""
import argparse
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from annexes import absent_words  # pylint: disable=wrong-import-position
from support.program import fast_program  # pylint: disable=wrong-import-position

FIXTURES = HERE.parent.parent / "fixtures"
FOLDERS = ("captures", "categories", "dry_run", "findings", "graph_trees", "imports", "meaning", "modules", "no_history",
           "oom", "recorded", "skipped", "tags", "xplane")
LIMIT_SECONDS = 900
LIMIT_BYTES = 20_000  # of an output


def drawing_list_beside(program):
    return pathlib.Path(program).resolve().parent / "tests" / "drawing_list"


def run(program, lister, script):
    """(stdout, stderr, status) of one case."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name in FOLDERS:
            (work / name).symlink_to(FIXTURES / name)
        (work / "bin").mkdir()
        (work / "bin" / "memtrace").symlink_to(pathlib.Path(program).resolve())
        (work / "bin" / "fast_memtrace").symlink_to(pathlib.Path(fast_program(program)).resolve())
        (work / "bin" / "drawing_list").symlink_to(lister)
        environment = {
            "PATH": f"{work / 'bin'}:{os.environ['PATH']}",
            "HOME": folder, "LC_ALL": "C.UTF-8", "TERM": "dumb",
        }
        environment.update((k, v) for k, v in os.environ.items()
                           if k.endswith("SAN_OPTIONS") or k == "MEMTRACE_DEBUG_HASH_KEY")
        done = subprocess.run(["sh", "-c", script], cwd=work, env=environment, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS)
        return {"stdout": done.stdout, "stderr": done.stderr,
                "exit": b"%d\n" % done.returncode if done.returncode else b""}


def expected(case, kind):
    path = case.with_suffix("." + kind)
    return path.read_bytes() if path.exists() else b""


def remaining(cases, absent):
    """The cases that a build can pass although it lacks commands."""
    return [case for case in cases
            if not any(word.encode() in case.read_bytes() + expected(case, "stdout") + expected(case, "stderr")
                       for word in absent)]


def update(case, result):
    for kind, content in result.items():
        path = case.with_suffix("." + kind)
        if content:
            path.write_bytes(content)
        elif path.exists():
            path.unlink()


def show(case, kind, wanted, got):
    lines = [[line + "\n" for line in text.decode("utf-8", "replace").split("\n")]
             for text in (wanted, got)]
    difference = list(difflib.unified_diff(*lines, f"{case.stem}.{kind}", "came out", n=1))
    sys.stdout.write("".join(line[:400] + ("" if line.endswith("\n") and len(line) < 400 else "\n")
                             for line in difference[:60]))


def check(case, result):
    """True if all three agree; says where not."""
    same = True
    for kind, got in result.items():
        wanted = expected(case, kind)
        if wanted != got:
            same = False
            show(case, kind, wanted, got)
        if len(got) > LIMIT_BYTES:
            same = False
            print(f"{case.stem}.{kind} has {len(got):,} bytes, more than {LIMIT_BYTES:,}: show a part of it")
    return same


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args(arguments)  # --update may stand before the names
    program, rewrite = options.program, options.update
    lister = drawing_list_beside(program)
    if options.fast:
        program = fast_program(program)
    if not os.access(lister, os.X_OK):
        sys.exit(f"run.py: no {lister}; build it: ninja tests/drawing_list")
    part, parts = map(int, options.part.split("/"))
    cases = sorted(HERE.glob("*.cmd"))
    unknown = set(options.names) - {case.stem for case in cases}
    if unknown:
        sys.exit(f"run.py: no cases {sorted(unknown)}")
    cases = [case for case in cases if not options.names or case.stem in options.names]
    cases = remaining(cases, absent_words(program))[part - 1::parts]
    failed = []
    for case in cases:
        result = run(program, lister, case.read_text())
        if rewrite:
            update(case, result)
        elif not check(case, result):
            failed.append(case.stem)
    print(f"{len(cases)} golden cases, {len(failed)} failed" + "".join(f"\n  {n}" for n in failed))
    if failed:
        print("if that is what you meant: tests/golden/run.py PROGRAM --update, and read git diff")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
