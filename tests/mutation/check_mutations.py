#!/usr/bin/env python3
"""Breaks core rules one line at a time and shows that the program's own invariants find each fault.

    check_mutations.py [--work FOLDER] [--jobs N] [NAME...]
    check_mutations.py --lines

Copies the tree to FOLDER (default: build/mutation), builds it with assertions and without tests,
and checks that all runs pass. Then, for each mutation of mutations.py whose name holds one of the
words: changes the line, builds, makes the runs, and restores the file. A mutation is caught if a
run stops at an assertion or ends with exit status 6 (MT_CHECK). Prints a table; the exit status is 1
if one was not caught. Takes minutes: part of the long checks, not of ./dev test.

--lines builds nothing: it checks that each line is in its file once. This is a test of ctest.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutations as table  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
CAPTURES = ["fixtures/captures/churn.pickle.zst", "fixtures/captures/churn_cap.pickle.zst",
            "fixtures/captures/seq2seq.pickle.zst"]
EXIT_INTERNAL = 6
SECONDS_PER_RUN = 120


def copy_tree(work):
    """The files that git knows of, and new ones that it does not ignore."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=TREE,
                            check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, target = TREE / name, work / name
        if name.startswith(("tests/", "docs/")) or not source.is_file():
            continue
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (work / "tests" / "bench").mkdir(parents=True, exist_ok=True)
    (work / "tests" / "bench" / "CMakeLists.txt").write_text("")


def configure(work):
    subprocess.run(["cmake", "--preset", "dev", "-B", "out", "-DMEMTRACE_SANITIZE=OFF",
                    "-DMEMTRACE_WERROR=OFF", "-DMEMTRACE_CAIRO=OFF", "-DMEMTRACE_LIBDW=OFF",
                    "-DMEMTRACE_NCURSES=OFF", "-DMEMTRACE_SQLITE=OFF", "-DBUILD_TESTING=OFF"], cwd=work, check=True, stdout=subprocess.DEVNULL)


def build(work, jobs):
    done = subprocess.run(["cmake", "--build", "out", "-j", str(jobs), "--target", "memtrace"],
                          cwd=work, capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-600:]


def run(work, arguments, capture, scratch):
    """What stopped the run: the text of the assertion or check, "" if nothing did."""
    names = {"capture": capture, "trace": scratch / (pathlib.Path(capture).name + ".trace"),
             "new": scratch / "new.trace"}
    names["new"].unlink(missing_ok=True)
    words = [word.format(**names) for word in arguments]
    try:
        done = subprocess.run([work / "out" / "memtrace", *words], cwd=work, capture_output=True,
                              timeout=SECONDS_PER_RUN, text=True, errors="replace",
                              env={"PATH": "/usr/bin:/bin", "MEMTRACE_CHECK_SEED": "1"})
    except subprocess.TimeoutExpired:
        return None, "did not end"
    found = re.search(r"assertion failed: (.*?); MEMTRACE", done.stderr)
    if done.returncode < 0 and found:
        return found.group(1), done.returncode
    if done.returncode == EXIT_INTERNAL:
        return done.stderr.strip(), done.returncode
    return "", done.returncode


def make_traces(work, scratch):
    for capture in CAPTURES:
        target = scratch / (pathlib.Path(capture).name + ".trace")
        subprocess.run([work / "out" / "memtrace", "import", capture, "--quiet", "-o", target],
                       cwd=work, check=True)


def check_unchanged(work, scratch):
    for arguments in table.ALL_RUNS:
        for capture in CAPTURES:
            caught, code = run(work, arguments, capture, scratch)
            if caught or code not in range(EXIT_INTERNAL):
                raise SystemExit(f"unchanged program: {arguments}, {capture}: {caught or code}")


def try_mutation(work, mutation, scratch, jobs):
    path = work / mutation.file
    text = path.read_text()
    if mutation.before not in text:
        return "the line is not there: fix tests/mutation/mutations.py", False
    path.write_text(text.replace(mutation.before, mutation.after, 1))
    try:
        trouble = build(work, jobs)
        if trouble:
            return "does not build: " + trouble, False
        for arguments in mutation.runs:
            for capture in CAPTURES:
                caught, _ = run(work, arguments, capture, scratch)
                if caught:
                    return caught, True
        return "NOT CAUGHT", False
    finally:
        path.write_text(text)


def check_lines():
    """A mutation of a line that has changed since would test nothing."""
    faults = 0
    for mutation in table.MUTATIONS:
        path = TREE / mutation.file
        if not path.is_file() or path.read_text(encoding="utf-8").count(mutation.before) != 1:
            faults += 1
            print(f"{mutation.file} does not have the line of '{mutation.name}' once: "
                  "fix tests/mutation/mutations.py")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=TREE / "build" / "mutation")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.lines:
        return check_lines()
    copy_tree(args.work)
    configure(args.work)
    trouble = build(args.work, args.jobs)
    if trouble:
        raise SystemExit(trouble)
    chosen = [mutation for mutation in table.MUTATIONS
              if not args.names or any(word in mutation.name for word in args.names)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        make_traces(args.work, scratch)
        check_unchanged(args.work, scratch)
        for mutation in chosen:
            text, caught = try_mutation(args.work, mutation, scratch, args.jobs)
            missed += not caught
            print(f"{'caught' if caught else 'MISSED'}  {mutation.name}  |  {mutation.file}  |  "
                  f"{text}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations caught by invariants")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
