#!/usr/bin/env python3
"""memtrace.phase and memtrace.step under `memtrace record`, and what else sees them."""
from support import DRIVER, Case, main

import memtrace

# A torch that prints what is asked of it.
TORCH = """
import sys, types
torch = types.ModuleType("torch")
class record_function:
    def __init__(self, name): self.name = name
    def __enter__(self): print("enter", self.name); return self
    def __exit__(self, *error): print("exit", self.name)
def say(word): return lambda *name: print(word, *name)
torch.autograd = types.SimpleNamespace(_profiler_enabled=lambda: PROFILER)
torch.profiler = types.SimpleNamespace(record_function=record_function)
torch.cuda = types.SimpleNamespace(nvtx=types.SimpleNamespace(
    range_push=say("push"), range_pop=say("pop"),
    range_start=lambda name: print("start", name) or 7, range_end=say("end")))
sys.modules["torch"] = torch
"""


class Ranges(Case):
    def test_phases(self):
        self.record(DRIVER + """
import asyncio, memtrace

@memtrace.phase("function")
def function():
    '''Words.'''
    return 5

@memtrace.phase("coroutine")
async def coroutine(depth):
    with memtrace.phase("inside"):
        pass
    await asyncio.sleep(0.01)
    return depth

@memtrace.phase("generator")
def generator():
    sent = yield 1
    assert sent == 2
    return 3

@memtrace.phase("asynchronous generator")
async def numbers():
    yield 1

async def main():
    assert await asyncio.gather(coroutine(1), coroutine(2)) == [1, 2]
    assert [number async for number in numbers()] == [1]

start_cuda()
with memtrace.phase("forward"):
    alloc(1000)
assert function() == 5 and function.__doc__ == "Words."
asyncio.run(main())
made = generator()
assert next(made) == 1
try:
    made.send(2)
except StopIteration as end:
    assert end.value == 3
outer = memtrace.phase("again")
try:
    with outer, outer:
        raise KeyError
except KeyError:
    pass
with memtrace.phase("nul\\0 \\udc80 \\u65e5"):
    pass
""")
        coroutines = ["+coroutine", "+inside", "-inside"] * 2 + ["-coroutine"] * 2
        self.assertEqual(self.phases(), [
            "+forward", "-forward", "+function", "-function", *coroutines,
            "+asynchronous generator", "-asynchronous generator", "+generator", "-generator",
            "+again", "+again", "-again", "-again",
            "+nul  \\udc80 \u65e5", "-nul  \\udc80 \u65e5"])

    def test_asynchronous_generators_stay_complete(self):
        """What is sent and thrown arrives, and a close ends the generator and its range."""
        self.record(DRIVER + """
import asyncio, memtrace
seen = []

@memtrace.phase("x")
async def numbers():
    try:
        seen.append((yield 1))
        try:
            yield 2
        except KeyError:
            yield 3
        yield 4
    finally:
        seen.append("end")

async def main():
    made = numbers()
    assert await made.__anext__() == 1
    assert await made.asend("sent") == 2
    assert await made.athrow(KeyError()) == 3
    await made.aclose()
    assert seen == ["sent", "end"], seen

start_cuda()
asyncio.run(main())
""")
        self.assertEqual(self.phases(), ["+x", "-x"])

    def test_steps(self):
        self.record(DRIVER + """
import memtrace, threading
start_cuda()
for size in (1000, 3000, 2000):
    memtrace.step()
    with memtrace.phase("forward"):
        kept = alloc(size)
    free(kept)
with memtrace.step() as step:
    assert step.number == 3
alloc(50000)
with memtrace.step(10):
    pass
with memtrace.step(name="iteration"):
    pass
thread = threading.Thread(target=memtrace.step)  # of its own
thread.start()
thread.join()
""")
        report = memtrace.analyze(self.work / "run.trace.zst")
        steps = report.rows("steps")
        self.assertEqual([step.step for step in steps][:5], [0, 1, 2, 3, 10])
        self.assertEqual([step.peak.allocated for step in steps][:4], [1000, 3000, 2000, 0])
        self.assertEqual({step.source for step in steps}, {"annotation"})
        phases = self.phases()
        self.assertEqual(phases[:8], ["+step#0", "+forward", "-forward", "-step#0",
                                      "+step#1", "+forward", "-forward", "-step#1"])
        self.assertIn("+iteration#11", phases)

    def test_nothing_without_a_recorder(self):
        done = self.python("""
            import memtrace
            with memtrace.phase("x"):
                memtrace.step()
        """)
        self.assertEqual(done.stdout + done.stderr, "")
        self.assertEqual(self.left(), [])

    def test_without_phases(self):
        self.record(DRIVER + "import memtrace\nstart_cuda()\nwith memtrace.phase('x'): alloc(1000)",
                    options=["--phases", "none"])
        self.assertEqual(self.phases(), [])
        self.assertEqual(self.sizes(), [1000])


class Torch(Case):
    CODE = """
import memtrace
with memtrace.phase("x"):
    pass
@memtrace.phase("y")
async def y(): pass
import asyncio
asyncio.run(y())
"""

    def test_profiler(self):
        done = self.python("PROFILER = True" + TORCH + self.CODE)
        self.assertEqual(done.stdout.split("\n")[:2], ["enter x", "exit x"])

    def test_no_profiler(self):
        self.assertEqual(self.python("PROFILER = False" + TORCH + self.CODE).stdout, "")

    def test_other_nvtx_tool(self):
        done = self.python("PROFILER = False" + TORCH + self.CODE,
                           variables={"NVTX_INJECTION64_PATH": "/opt/tool.so"})
        self.assertEqual(done.stdout.split("\n"), ["push x", "pop", "start y", "end 7", ""])

    def test_threads_share_an_object(self):
        """Each thread ends its own range, in whichever order they leave."""
        done = self.python("PROFILER = True" + TORCH + """
import threading
import memtrace
class record_function:
    def __init__(self, name): pass
    def __enter__(self): self.thread = threading.get_ident()
    def __exit__(self, *error): print(self.thread == threading.get_ident())
torch.profiler.record_function = record_function
shared, first, second = memtrace.phase("x"), threading.Event(), threading.Event()
def work():
    first.wait()
    with shared:
        second.set()
        ended.wait()
ended = threading.Event()
thread = threading.Thread(target=work)
thread.start()
with shared:
    first.set()
    second.wait()
ended.set()
thread.join()
shared.__exit__()  # nothing is open
assert not shared._open
""")
        self.assertEqual(done.stdout.split(), ["True", "True"])

    def test_recorded_once_with_a_profiler(self):
        """The collector reads record_function itself, so NVTX would be a second phase."""
        done = self.record("PROFILER = True" + TORCH + DRIVER + "start_cuda()" + self.CODE)
        self.assertEqual(done.stdout, "enter x\nexit x\n")
        self.assertEqual(self.phases(), ["+y", "-y"])
        done = self.record("PROFILER = True" + TORCH + DRIVER + "start_cuda()" + self.CODE,
                           options=["--phases", "nvtx"])
        self.assertEqual(self.phases(), ["+x", "-x", "+y", "-y"])


if __name__ == "__main__":
    main()
