#!/usr/bin/env python3
"""Work that is spread over threads gives the same bytes as the work of one thread.

    check_parallel.py PROGRAM FIXTURES

In a build with ThreadSanitizer (./dev tsan) a data race also fails the test: the program then
ends with status 66."""
import pathlib
import subprocess
import sys
import tempfile

from support.program import fast_program

POLICIES = ("pytorch", "bfc", "ort", "cupy", "cub", "first-fit", "best-fit", "buddy", "tlsf", "paged", "none")
failures = []


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=1500, check=False)
    if done.returncode:
        failures.append(f"{' '.join(map(str, command[1:]))}: status {done.returncode}, "
                        f"{done.stderr.decode(errors='replace')}")
    return done.stdout


def answers(program, capture, jobs, folder):
    """What a command writes: standard output and every file, by name."""
    policies = [word for name in POLICIES for word in ("--policy", name)]
    many = ["--jobs", str(jobs)]
    found = {"replay": run([program, "replay", capture, *policies, *many], folder),
             "fit": run([program, "fit", capture, *policies, *many], folder)}
    run([program, "analyze", capture, "-o", "pictures"], folder)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def main(program, fixtures):
    program = pathlib.Path(program).resolve()
    for name in ("streams_cap", "twogpu"):
        capture = (pathlib.Path(fixtures) / "captures" / f"{name}.pickle.zst").resolve()
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as eight:
            alone = answers(program, capture, 1, pathlib.Path(one))
            together = answers(program, capture, 8, pathlib.Path(eight))
        failures.extend(f"{name}: {what} differs" for what in alone.keys() | together.keys()
                        if alone.get(what) != together.get(what))
        if len(alone) < 10:
            failures.append(f"{name}: only {sorted(alone)}")
    with tempfile.TemporaryDirectory() as folder:  # the model of modules leaves while the relay works
        run([program, "analyze", pathlib.Path(fixtures).resolve() / "captures" / "seq2seq.pickle.zst", "-o", "pictures"], folder)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), sys.argv[2]))
