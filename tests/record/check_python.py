#!/usr/bin/env python3
"""check_python.py BUILD [CASE...]: Python stacks from the traced thread to the
trace. The interpreter's own view is the truth; how the stacks are read
is for check_python_stacks.py."""
import json
import os
import sys

from support import check, main, only

SCRIPT = """
import ctypes, json, os, sys, threading, time

cuda = ctypes.CDLL("libcuda.so.1")
context, addr = ctypes.c_void_p(), ctypes.c_ulonglong()
truth = []

def stack():
    frame, frames = sys._getframe(1), []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.append(f"{name} ({code.co_filename}:{frame.f_lineno})")
        frame = frame.f_back
    return frames

def alloc():  # each by its size
    size = 4096 * (len(truth) + 1)
    emit(size); truth.append((size, stack()))

def driver(size):
    assert cuda.cuMemAlloc_v2(ctypes.byref(addr), ctypes.c_size_t(size)) == 0

def torch(size):  # a forked child may not use the driver
    report = ctypes.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
    report(ctypes.c_void_p(size << 12), ctypes.c_int64(size), ctypes.c_size_t(0),
           ctypes.c_size_t(0), ctypes.c_uint16(1))

emit = driver

def begin():
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0

class Layer:
    def __init__(self, depth):
        self.depth = depth
    def __call__(self):
        if self.depth:
            Layer(self.depth - 1)()
        alloc()

def numbers():
    for i in range(3):
        alloc()
        yield i

def repeated():
    for _ in range(3):
        alloc()

def work():
    for i in range(3):
        Layer(i)()
    repeated()
    repeated()  # equal frames, below one that went on
    list(numbers())
    [alloc() for _ in range(2)]
    sorted([2, 1], key=lambda n: alloc() or n)
    exec(compile("\\\\n\\\\nalloc()", "/not/there/\\u65e5\\u672c.py", "exec"))
    for i in range(20):
        exec(compile("\\\\n" * (i % 2) + "alloc()", f"<cell {i:02}>", "exec"))
    for i in range(20):  # one code object after the other, at the same address
        exec(compile("for _ in range(3): alloc()", f"<loop {i:02}>", "exec"))

def wait():  # until the collector has compared two frames and trusts what it reads
    for i in range(40):
        time.sleep(0.01)

def tell(path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(truth, file)

if __name__ == "__main__":
    begin()
    work()
    wait()
    work()
    thread = threading.Thread(target=lambda: [begin(), work()])
    thread.start()
    thread.join()
    tell("truth.json")
    if sys.argv[1:] == ["fork"]:
        child = os.fork()
        if child == 0:
            truth.clear()
            emit = torch
            work()
            tell("truth_of_child.json")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
"""


def write_script(bench):
    path = bench.work / "script.py"
    path.write_text(SCRIPT.replace("\\\\", "\\"), encoding="utf-8")
    return path


def stacks(bench, trace):
    """Frames of each allocation, by its size."""
    done = bench.run(bench.memtrace, "dump", "--json", "--stacks", trace)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return {event["size"]: event.get("frames") or [] for event in events
            if event["kind"] == "alloc" and event["heap"] in ("driver", "pytorch")}


def compare(bench, trace, truth):
    truth = json.loads((bench.work / truth).read_text(encoding="utf-8"))
    found = stacks(bench, trace)
    check(len(truth) > 30, f"{len(truth)} allocations")
    for size, frames in truth:  # before them: who emitted it, and native frames of the driver's call
        whole = found.get(size, [])
        check(len(whole) > len(frames) and whole[-len(frames):] == frames,
              f"{size} bytes: {whole}, in {frames}")
        check(not any("script.py:" in frame for frame in whole[:-len(frames) - 1]),
              f"{size} bytes: {whole} has one frame of Python more than {frames}")


def equal_to_what_python_says(bench):
    done = bench.record(sys.executable, write_script(bench))
    check(done.returncode == 0, f"{done}")
    trace = only(bench.traces())
    compare(bench, trace, "truth.json")
    check("python" in bench.info(trace)["header"]["sources"], f"{bench.info(trace)}")


def child_has_its_own(bench):
    done = bench.run(bench.memtrace, "record", "-o", "out/", "--", sys.executable,
                     write_script(bench), "fork")
    check(done.returncode == 0, f"{done}")
    first, second = bench.traces(bench.work / "out")
    if len(stacks(bench, first)) < len(stacks(bench, second)):
        first, second = second, first
    compare(bench, first, "truth.json")
    compare(bench, second, "truth_of_child.json")


def none_if_not_asked(bench):
    done = bench.run(bench.memtrace, "record", "-o", "run.trace.zst", "--stacks", "none", "--",
                     sys.executable, write_script(bench))
    check(done.returncode == 0, f"{done}")
    trace = only(bench.traces())
    check(not any(".py:" in frame for frames in stacks(bench, trace).values() for frame in frames),
          "there are stacks of Python")
    check("python" not in bench.info(trace)["header"]["sources"], f"{bench.info(trace)}")


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main([equal_to_what_python_says, child_has_its_own, none_if_not_asked]))
