"""The program of tests that mostly replay."""
import os


def replay_program(program):
    """Returns the program that `./dev test` names, which has assertions but no sanitizers, or PROGRAM.
    The goldens run most of the same commands with sanitizers."""
    return os.environ.get("MEMTRACE_REPLAY_PROGRAM", program)
