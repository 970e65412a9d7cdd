"""The program of tests that replay for a minute of processor time."""
import os


def replay_program(program):
    """`./dev test` names the program without sanitizers, which has the same assertions. The goldens run
    the same commands with sanitizers."""
    return os.environ.get("MEMTRACE_REPLAY_PROGRAM", program)
