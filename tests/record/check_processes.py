#!/usr/bin/env python3
"""check_processes.py BUILD [CASE...]: programs that start programs."""
import os
import sys
import time

from support import check, main, only

LIMIT_SECONDS = 600

USE_GPU = """
import ctypes
def use_gpu():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, addr = ctypes.c_void_p(), ctypes.c_ulonglong()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    for n in (1000, 2000, 3000):
        assert cuda.cuMemAlloc_v2(ctypes.byref(addr), ctypes.c_size_t(n * 1024)) == 0
    return 1
"""

POOL = USE_GPU + """
import multiprocessing
def work(number):
    return number * number
def work_on_gpu(number):
    return use_gpu()
if __name__ == "__main__":
    multiprocessing.set_start_method("METHOD")
    BEFORE
    with multiprocessing.Pool(4) as pool:
        print(sum(pool.map(WORK, range(20))))
"""


def python_script(bench, text):
    path = bench.work / "script.py"
    path.write_text(text)
    return path


def remove_traces(bench, *others):
    for trace in bench.traces():
        trace.unlink()
    bench.check_left(*others)


ASK = """
import ctypes, subprocess, sys
cuda = ctypes.CDLL("libcuda.so.1")
count, name, total = ctypes.c_int(), ctypes.create_string_buffer(100), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
assert cuda.cuDeviceGetName(name, 100, 0) == 0
assert cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0 and total.value > 0
subprocess.run(sys.argv[1:], check=True)
"""


def launcher_that_asks(bench):
    """It counts the devices and asks for their names, as torchrun does: the trace is its child's."""
    script = python_script(bench, ASK)
    for cupti in ("", "none"):
        done = bench.record(sys.executable, script, bench.recorded, "exit", "0",
                            environment=bench.environment(MEMTRACE_CUPTI=cupti))
        check(done.returncode == 0, f"{cupti}: {done}")
        trace = only(bench.traces())
        bench.check_whole(trace)
        check(len(bench.info(trace)["devices"]) > 0, f"{cupti}: no devices")
        remove_traces(bench, "script.py")


def workers_without_gpu(bench):
    """The parent has a trace, workers (as of a data loader) have none."""
    for method in ("fork", "forkserver", "spawn"):
        script = python_script(bench, POOL.replace("METHOD", method).replace("BEFORE", "use_gpu()")
                               .replace("WORK", "work"))
        done = bench.record(sys.executable, script)
        check(done.returncode == 0 and done.stdout == b"2470\n", f"{method}: {done}")
        bench.check_whole(only(bench.traces()))
        remove_traces(bench, "script.py")


def workers_with_gpu(bench):
    """Each worker has a trace of its own."""
    for method in ("fork", "forkserver", "spawn"):
        script = python_script(bench, POOL.replace("METHOD", method).replace("BEFORE", "pass")
                               .replace("WORK", "work_on_gpu"))
        done = bench.record(sys.executable, script)
        check(done.returncode == 0 and done.stdout == b"20\n", f"{method}: {done}")
        check(1 <= len(bench.traces()) <= 4, f"{method}: {bench.traces()}")
        for trace in bench.traces():
            bench.check_whole(trace)
        remove_traces(bench, "script.py")


def subprocesses(bench):
    """subprocess, os.system, os.fork and what they start."""
    script = python_script(bench, USE_GPU + f"""
import os, subprocess, sys
use_gpu()
assert subprocess.call(["{bench.recorded}", "exit", "3"]) == 3
assert os.system("'{bench.recorded}' exit 4") == 4 << 8
assert subprocess.run("true; echo out", shell=True, capture_output=True).stdout == b"out\\n"
child = os.fork()
if child == 0:
    os._exit(5)
assert os.waitpid(child, 0)[1] == 5 << 8
""")
    done = bench.record(sys.executable, script)
    check(done.returncode == 0, f"{done}")
    check(len(bench.traces()) == 3, f"{bench.traces()}")
    for trace in bench.traces():
        bench.check_whole(trace)


def emptied_environment(bench):
    """Nothing can be recorded there; nothing breaks."""
    done = bench.record("env", "-i", f"LD_LIBRARY_PATH={bench.build}/standin", bench.recorded,
                        "exit", "6")
    check(done.returncode == 6 and b"no process used CUDA" in done.stderr, f"{done}")
    bench.check_left()


def nested(bench):
    """The inner one records."""
    done = bench.record(bench.memtrace, "record", "-o", "inner.trace.zst", bench.recorded, "exit",
                        "8")
    check(done.returncode == 8, f"{done}")
    bench.check_left("inner.trace.zst")
    bench.check_whole(bench.work / "inner.trace.zst")


def daemon(bench):
    """It outlives the command; the command's end is not held up for it, and its
    trace becomes whole."""
    flag = bench.work / "flag"
    flag.touch()
    done = bench.record(bench.recorded, "daemon", flag)
    check(done.returncode == 0 and b"still runs" in done.stderr, f"{done}")
    trace = bench.work / "run.trace.zst"
    check(trace.exists(), "the daemon has no trace")
    flag.unlink()
    end = time.monotonic() + LIMIT_SECONDS
    while not bench.info(trace)["integrity"]["closed"] and time.monotonic() < end:
        time.sleep(0.02)
    while (bench.work / "run.trace.zst.tape").exists() and time.monotonic() < end:
        time.sleep(0.02)
    bench.check_whole(trace)
    bench.check_left("run.trace.zst")


def streams_of_lines(bench):
    """Standard output and error of many processes come through as they are."""
    script = "for i in 1 2 3 4; do (echo out $i; echo err $i >&2) ; done"
    alone = bench.run("bash", "-c", script)
    done = bench.run(bench.memtrace, "record", "-q", "bash", "-c", script)
    check(done.stdout == alone.stdout and done.stderr == alone.stderr, f"{done}")


def closed_streams(bench):
    """What was closed is closed for the command."""
    script = "ls /proc/self/fd | wc -l >count"
    for closing in ("", "<&-"):
        bench.run("bash", "-c", f"bash -c '{script}' {closing}")
        alone = (bench.work / "count").read_text()
        bench.run("bash", "-c", f"'{bench.memtrace}' record -q bash -c '{script}' {closing}")
        check((bench.work / "count").read_text() == alone, f"{closing}: other files are open")


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main([launcher_that_asks, workers_without_gpu, workers_with_gpu, subprocesses, emptied_environment, nested,
                   daemon, streams_of_lines, closed_streams]))
