"""Section sources: NVML, NVTX and the driver without CUPTI, each for itself."""
import json
import textwrap

from section_truth import fresh, last_line
from session import ROOT

MIB = 1 << 20

RANGES = """
    import threading, torch
    from torch.cuda import nvtx
    x = torch.empty(1 << 20, device="cuda")
    with nvtx.range("outer"):
        nvtx.range_push("inner"); y = torch.empty(3 << 20, device="cuda"); nvtx.range_pop()
        nvtx.mark("a mark")
        number = nvtx.range_start("started")
        thread = threading.Thread(target=nvtx.range_end, args=(number,)); thread.start(); thread.join()
"""

PROGRAM = """
    import time, torch
    blocks = [torch.empty((i + 1) << 20, device="cuda") for i in range(40)]
    del blocks[::2]
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    time.sleep(1)
    print(torch.cuda.memory_reserved())
"""


def dump(session, trace):
    lines = session.run([session.memtrace, "dump", "--json", trace]).stdout.splitlines()
    return [json.loads(line) for line in lines]


def record_python(session, name, text, **environment):
    folder = fresh(session, f"sources_{name}")
    command = [session.python, "-c", textwrap.dedent(text)]
    done, document = session.record(folder, command, log=f"sources_{name}.txt", **environment)
    if done.returncode or len(document["traces"]) != 1:
        session.add("sources", name, False, f"status {done.returncode}, {len(document['traces'])} traces: see sources_{name}.txt")
        return [], "", done
    trace = next(folder.glob("*.trace.zst"))
    info = json.loads(session.run([session.memtrace, "info", "--json", trace]).stdout)
    return dump(session, trace), info["header"]["sources"] or "", done


def check_nvtx(session):
    events, _, _ = record_python(session, "nvtx", RANGES)
    story = [f"{event['kind']} {event['name']}" for event in events
             if event["kind"].startswith("phase") or event["kind"] == "mark"]
    wanted = ["phase_push outer", "phase_push inner", "phase_pop inner", "mark a mark", "phase_push started",
              "phase_pop started", "phase_pop outer"]
    seen = [word for word in story if word in wanted]
    session.add("sources", "NVTX of PyTorch", seen == wanted, f"{len(seen)} of {len(wanted)} as told: {seen}")


def driver_calls(events):
    return [(event["kind"], event["heap"], event["size"]) for event in events if event["heap"].startswith("driver")
            and event["kind"] in ("alloc", "free_completed", "alloc_failed")]


def check_nvml(session, events, sources, done):
    samples = [event for event in events if event["kind"] == "memory_sample"]
    reserved = int(done.stdout.split()[-1]) if done.stdout.split() else 0
    last = samples[-1]["size"] if samples else 0
    beyond = last - reserved
    good = "nvml" in sources.split(",") and 50 * MIB < beyond < 2048 * MIB
    session.add("sources", "NVML", good, f"{len(samples)} samples by {sources}; the last {last / MIB:.0f} MiB, reserved {reserved / MIB:.0f} MiB, "
                f"so CUDA itself {beyond / MIB:.0f} MiB")


def sources(session):
    check_nvtx(session)
    with_cupti, names, done = record_python(session, "cupti", PROGRAM)
    if names:
        check_nvml(session, with_cupti, names, done)
    wrapped, names, _ = record_python(session, "interposer", PROGRAM, MEMTRACE_CUPTI="none")
    ours, theirs = driver_calls(wrapped), driver_calls(with_cupti)
    at_exit = ours[len(theirs):] # CUPTI is gone when PyTorch gives back what it has
    good = "interposer" in names and ours[:len(theirs)] == theirs and all(kind == "free_completed" for kind, _, _ in at_exit)
    session.add("sources", "PyTorch without CUPTI", good, f"by {names}: {len(theirs)} calls of the driver as CUPTI tells them, and {len(at_exit)} frees at exit")
    script = ROOT / "tests" / "check_interposer.py"
    done = session.run([session.python, script, session.memtrace, session.build / "libmemtrace-inject.so", "--gpu"], "interposer.txt")
    session.add("sources", "every way to the driver", done.returncode == 0, last_line(done))
