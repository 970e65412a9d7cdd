#!/usr/bin/env python3
"""check_limits.py PROGRAM: recording and analysis under small limits of the system. Not for programs
with sanitizers, which need more of everything."""
import pathlib
import pickle
import resource
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "record")]
from annexes import absent_words  # noqa: E402
from support import check, main  # noqa: E402

STACK_BYTES = 64 << 10


def limited(bench, limit, value, *command):
    return bench.run(*command, preexec_fn=lambda: resource.setrlimit(limit, (value, value)))


def small_stack(bench):
    """Everything but the program of the user gets by with 64 KiB; also the process that looks up names."""
    record = (bench.memtrace, "record", "--stacks", "native", "-o", "run.trace.zst", "--")
    for command, status in ((("true",), 0), ((bench.recorded, "exit", "7"), 7)):
        done = limited(bench, resource.RLIMIT_STACK, STACK_BYTES, *record, *command)
        check(done.returncode == status, f"{done}")
    check(b"names" not in done.stderr and b"summary" not in done.stderr, f"{done.stderr}")
    bench.check_whole(bench.work / "run.trace.zst")
    check((bench.work / "run.trace.zst.mtsum").exists() or "fleet" in absent_words(bench.memtrace),
          f"no summary: {done.stderr}")
    for command in ("analyze", "info", "dump", "lines", "recover"):
        done = limited(bench, resource.RLIMIT_STACK, STACK_BYTES, bench.memtrace, command, "run.trace.zst")
        check(done.returncode == 0, f"{command}: {done}")


def few_descriptors(bench):
    """A trace that cannot be read back for lack of descriptors is not called invalid."""
    said = b""
    for count in range(8, 24):
        done = limited(bench, resource.RLIMIT_NOFILE, count, bench.memtrace, "record", "--no-summary", "-o",
                       "run.trace.zst", "--", bench.recorded, "exit", "0")
        check(done.returncode == 0 and b"not valid" not in done.stderr, f"{count}: {done}")
        bench.check_whole(bench.work / "run.trace.zst")
        said += done.stderr
    check(b"names: the new trace cannot be read back: Too many open files" in said, f"{said}")


def memory_for_a_trace_and_not_for_its_summary(bench):
    """The trace is complete, and one line says that it has no summary; none with --quiet."""
    events = [{"action": "alloc", "addr": (i + 1) << 24, "size": 512, "stream": 0, "time_us": i} for i in range(200000)]
    (bench.work / "many.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
    more = {"environment": bench.environment(MEMTRACE_MAX_MEMORY="40MiB")}
    for flags, said in (((), b"memtrace: 'many.trace': no summary for 'memtrace fleet' was written: memory ran out; to "
                             b"write it later, use 'memtrace fleet --summarize'\n"), (("--quiet",), b"")):
        done = bench.run(bench.memtrace, "import", *flags, "many.pickle", "-o", "many.trace", **more)
        check(done.returncode == 0 and done.stderr == said, f"{done}")
        bench.check_left("many.pickle", "many.trace")


if __name__ == "__main__":
    sys.argv[1] = str(pathlib.Path(sys.argv[1]).parent)
    sys.exit(main([small_stack, few_descriptors, memory_for_a_trace_and_not_for_its_summary]))
