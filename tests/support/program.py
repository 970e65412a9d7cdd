"""The program that tests run, and how."""
import os
import subprocess


def fast_program(program):
    """Returns the program that `./dev test` names, which has assertions but no sanitizers, or PROGRAM:
    for tests that compare many answers. The goldens run most of the same commands with sanitizers."""
    return os.environ.get("MEMTRACE_FAST_PROGRAM", program)


def output(*words, status=0, **options):
    """Returns the standard output of a command, as bytes. Options are those of subprocess.run; with
    another exit status than STATUS, the test fails with the command and its standard error."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, **options)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, words))[:300]}: status {done.returncode}: {done.stderr[-2000:]!r}")
    return done.stdout
