#!/usr/bin/env python3
"""check_stacks.py BUILD [CASE...]: native frames have names when the program has
ended, and stacks begin and end where the program's own part does."""
import json
import os
import re
import sys

from support import REAL, check, main, only

ALLOCATES = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, place = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def innermost(size):
    cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size))
    return size
def outermost():
    return sorted([3000, 1000, 2000], key=lambda size: innermost(size << 10))
outermost()
"""


def stacks(bench, trace):
    """[[(function, file:line), ...] innermost first] of the allocations."""
    text = bench.run(bench.memtrace, "dump", "--stacks", trace).stdout.decode()
    found = []
    for line in text.splitlines():
        frame = re.fullmatch(r" {10,}(\S.*?)(?: \((\S.*)\))?", line)
        if frame is None:
            found.append([] if re.search(r"  alloc +driver  ", line) else None)
        elif found[-1] is not None:
            found[-1].append((frame.group(1), frame.group(2) or ""))
    return [stack for stack in found if stack is not None]


def has_names(bench):
    checks = json.loads(bench.run(bench.memtrace, "doctor", "--json").stdout)["checks"]
    return only(c for c in checks if c["name"] == "symbols")["state"] == "ok"


def record(bench, which, *words):
    """The stacks of the first allocations; `which` None: without the option."""
    option = ["--stacks", which] if which else []
    done = bench.run(bench.memtrace, "record", "-o", "run.trace.zst", *option, "--", *words)
    check(done.returncode == 0, f"{done}")
    found = stacks(bench, "run.trace.zst")[:3]
    check(len(found) == 3, f"{found}")
    return found


def is_ours(frame):
    return any("libmemtrace" in word or "cupti" in word for word in frame)


def native(bench):
    for stack in record(bench, "native", bench.recorded, "exit", "0"):
        functions = [function for function, place in stack]
        check(not any(map(is_ours, stack)), f"{stack}")
        if has_names(bench):
            check(REAL or functions[0] == "cuMemAlloc_v2", f"{stack}")
            check("main" in functions, f"{stack}")


def takes_native():
    """Calls of the driver have native frames whatever --stacks says, where there is a walker."""
    return os.uname().machine == "x86_64"


def python(bench):
    both(bench, "python")


def both(bench, which="both"):
    for stack in record(bench, which, sys.executable, "-c", ALLOCATES):
        functions = [function.split(".")[-1] for function, place in stack]
        check(functions[-4:] == ["innermost", "<lambda>", "outermost", "<module>"], f"{stack}")
        check(not any(map(is_ours, stack)), f"{stack}")
        check(len(functions) > 4 or not takes_native(), f"{stack}")
        if has_names(bench) and takes_native():
            check(REAL or functions[0] == "cuMemAlloc_v2", f"{stack}")
            check(any("ffi" in word for frame in stack[:-4] for word in frame), f"{stack}")
            check(not any("_PyEval" in function or function == "main" for function in functions),
                  f"{stack}")


def chosen_without_python(bench):
    """Native frames in a process without an interpreter, and the header says that there are stacks."""
    stacks_found = record(bench, None, bench.recorded, "exit", "0")
    if not bench.info("run.trace.zst")["header"]["has_stacks"]:
        check(os.uname().machine != "x86_64", "no native stacks")
        return
    for stack in stacks_found:
        check(stack, "no stack")
        check(not has_names(bench) or "main" in [function for function, place in stack], f"{stack}")
    answer = bench.run(bench.memtrace, "analyze", "run.trace.zst").stdout.decode()
    check("no stacks were recorded" not in answer, answer)


def chosen_with_python(bench):
    """The same frames as with --stacks python."""
    words = [sys.executable, "-c", ALLOCATES]
    check(record(bench, None, *words) == record(bench, "python", *words), "not those of Python")


def none(bench):
    """What names the library of a driver call, and no word of stacks in the header."""
    for stack in record(bench, "none", bench.recorded, "exit", "0"):
        check(bool(stack) == takes_native(), f"{stack}")
    check(not bench.info("run.trace.zst")["header"]["has_stacks"], "has_stacks")


MANY = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, place = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for _ in range(16400):
    cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(4096))
"""


def bounded(bench):
    """Without --stacks native, only a limited number of driver calls get stacks."""
    done = bench.run(bench.memtrace, "record", "-o", "run.trace.zst", "--stacks", "none", "--",
                     sys.executable, "-c", MANY)
    check(done.returncode == 0, f"{done}")
    found = [bool(stack) for stack in stacks(bench, "run.trace.zst")]
    expected = 16384 if takes_native() else 0
    check(len(found) == 16400 and sum(found) == expected, f"{len(found)}, {sum(found)}")
    check(all(found[:expected]) and not any(found[expected:]), "not the first ones")


sys.exit(main([bounded, native, python, both, chosen_without_python, chosen_with_python, none]))
