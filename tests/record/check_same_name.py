#!/usr/bin/env python3
"""check_same_name.py BUILD [CASE...]: several recordings with one -o FILE. Each that ends with
status 0 has a whole trace of its own, whose name it prints."""
import os
import re
import signal
import subprocess
import sys
import time

from support import LIMIT_SECONDS, check, command_of, main, only
import tapes
from tapes import is_running

ROUNDS, PROCESSES = 3, 12
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_", "OMPI_", "PMI_", "PMIX_", "MV2_")


def environment(bench, **more):
    kept = bench.environment(MEMTRACE_ARENA_MIB="1", **more)
    return {name: value for name, value in kept.items() if name in more or not name.startswith(LAUNCHERS)}


def start(bench, *words, output="run.trace.zst", **variables):
    return subprocess.Popen([bench.memtrace, "record", "--no-summary", "-o", output, "--", bench.recorded, *words],
                            cwd=bench.work, env=environment(bench, **variables), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def record(bench, **variables):
    process = start(bench, "exit", "0", **variables)
    said = process.communicate(timeout=LIMIT_SECONDS)[1]
    check(process.returncode == 0, f"{said}")
    return said


def printed(said):
    """The names of the traces in the lines of the end."""
    return re.findall(r"^memtrace: (\S+\.trace\.zst): [\d,]+ events", said.decode(), re.M)


def wait_for(condition, processes):
    while not condition():
        ended = [process.returncode for process in processes if process.poll() is not None]
        check(not ended, f"ended early: {ended}")
        time.sleep(0.01)


def at_the_same_time(bench):
    """All of them record when the first one ends."""
    for _ in range(ROUNDS):
        flag = bench.work / "flag"
        flag.touch()
        processes = [start(bench, "wait", flag) for _ in range(PROCESSES)]
        wait_for(lambda: len(list(bench.work.glob("*.tape"))) == PROCESSES, processes)
        flag.unlink()
        said = [process.communicate(timeout=LIMIT_SECONDS)[1] for process in processes]
        check(all(process.returncode == 0 for process in processes), f"{said}")
        names = sorted(name for text in said for name in printed(text))
        wanted = sorted(["run.trace.zst"] + [f"run-{number}.trace.zst" for number in range(2, PROCESSES + 1)])
        check(names == wanted, f"{names} {said}")
        bench.check_left(*wanted)
        for trace in bench.traces():
            bench.check_whole(trace)
            trace.unlink()


def one_after_the_other(bench):
    """A later recording replaces the trace of the name, and no other trace."""
    (bench.work / "run-2.trace.zst").write_bytes(b"")
    for _ in range(3):
        check(printed(record(bench)) == ["run.trace.zst"], "another name")
        bench.check_whole(bench.work / "run.trace.zst")
        bench.check_left("run.trace.zst", "run-2.trace.zst")


def ranks(bench):
    """As `srun -n 3 memtrace record -o run.trace.zst`: names with the rank, also if one ends before the
    next begins. The next job replaces them."""
    for _ in range(2):
        for rank in range(3):
            said = record(bench, SLURM_PROCID=str(rank), SLURM_NTASKS="3", SLURM_STEP_ID="0")
            check(printed(said) == [f"run-rank{rank}.trace.zst"], f"{said}")
        bench.check_left(*[f"run-rank{rank}.trace.zst" for rank in range(3)])
    for trace in bench.traces():
        bench.check_whole(trace)


def the_first_ends_first(bench):
    """The process that has the name ends while another one, of the same name, runs."""
    flags = [bench.work / "first", bench.work / "second"]
    processes = []
    for flag in flags:
        flag.touch()
        processes.append(start(bench, "wait", flag))
        wait_for(lambda: len(list(bench.work.glob("*.tape"))) == len(processes), processes)
    for flag, process in zip(flags, processes):
        flag.unlink()
        said = process.communicate(timeout=LIMIT_SECONDS)[1]
        check(process.returncode == 0, f"{said}")
    check(printed(said) == ["run-2.trace.zst"], f"{said}")
    bench.check_left("run.trace.zst", "run-2.trace.zst")
    for trace in bench.traces():
        bench.check_whole(trace)


def killed_recorders(bench):
    """A killed `memtrace record` does not keep the name, but its process does until it ends."""
    flag = bench.work / "flag"
    flag.touch()
    process = start(bench, "wait", flag)
    tape = bench.work / "run.trace.zst.tape"
    wait_for(lambda: tape.exists() and tapes.commit_of(tape)[0], [process])
    child = command_of(process, "recorded")
    process.kill()
    process.wait(timeout=LIMIT_SECONDS)
    said = record(bench)
    check(printed(said) == ["run-2.trace.zst"] and b"belongs to another recording" in said, f"{said}")
    os.kill(child, signal.SIGKILL)
    while is_running(child):
        time.sleep(0.01)
    process.stderr.close()
    said = record(bench)
    check(printed(said) == ["run.trace.zst"], f"{said}")
    flag.unlink()
    bench.check_left("run.trace.zst", "run-2.trace.zst")
    for trace in bench.traces():
        bench.check_whole(trace)


def a_trace_that_is_gone(bench):
    """That is an error, although the command succeeds."""
    flag = bench.work / "flag"
    flag.touch()
    process = start(bench, "wait", flag)
    tape = bench.work / "run.trace.zst.tape"
    wait_for(lambda: tape.exists() and tapes.commit_of(tape)[0], [process])
    only(bench.traces()).unlink()
    flag.unlink()
    said = process.communicate(timeout=LIMIT_SECONDS)[1]
    check(process.returncode == 5, f"status {process.returncode}: {said}")
    check(re.fullmatch(rb"memtrace: run.trace.zst: .*No such file or directory; lost: \d+ events; its tape is kept: "
                       rb"0 more on the tape, 0 lost\n", said), f"{said}")
    tape.unlink()

    flag.touch()  # the tape is also gone
    process = start(bench, "wait", flag)
    wait_for(lambda: tape.exists() and tapes.commit_of(tape)[0], [process])
    only(bench.traces()).unlink()
    tape.unlink()
    flag.unlink()
    said = process.communicate(timeout=LIMIT_SECONDS)[1]
    check(process.returncode == 5, f"status {process.returncode}: {said}")
    check(b"; lost: the recording of this process\n" in said and b"is kept" not in said, f"{said}")
    bench.check_left()


if __name__ == "__main__":
    sys.exit(main([at_the_same_time, one_after_the_other, ranks, the_first_ends_first, killed_recorders,
                   a_trace_that_is_gone]))
