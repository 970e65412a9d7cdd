#!/usr/bin/env python3
"""Where CUPTI cannot be used, libmemtrace-cuda.so sees the same calls.

    check_interposer.py PROGRAM INJECT STANDIN_FOLDER [INTERPOSER]

Runs what check_cupti.py runs with both libraries preloaded and CUPTI switched
off; then lookup_program, which finds the driver in every way there is.
INTERPOSER: by default libmemtrace-cuda.so beside INJECT. Instead of the folder
--gpu: on the machine's own driver.
"""
import sys
from pathlib import Path

import check_cupti

WAYS = {"linked": "driver", "dlsym": "driver", "old": "driver", "global": "driver",
        "address": "driver", "first": "driver", "context": "driver", "stream": "driver:async"}


class Runner(check_cupti.Runner):
    def __init__(self, program, inject, folder, interposer):
        super().__init__(program, inject, folder)
        self.preload = f"{self.inject.name}:{Path(interposer).name}"

    def run_plain(self, arguments, program=None, **settings):
        return super().run_plain(arguments, program, **{"MEMTRACE_CUPTI": "none", **settings})


def ways_to_the_driver(runner):
    runner.executable = "lookup_program"
    for number, (way, heap) in enumerate(WAYS.items()):
        size = 1000 + number
        if runner.on_gpu and way == "context":
            continue  # as old as the stand-in's is no driver's
        status, lines, stderr, traces = runner.run_plain([way, str(size)])
        expected = "init 0 retain 0 current 0 alloc 0 free 0 refused 2 kept 0 release 0"
        if status or stderr or lines != [expected]:
            check_cupti.complain(way, f"status {status}: {lines} {stderr}")
        events = [event for trace in traces.values() for event in trace
                  if event["heap"].startswith("driver")
                  and event["kind"] not in ("phase_push", "phase_pop", "mark", "memory_sample")]
        seen = [(event["kind"], event["heap"], event["size"]) for event in events
                if event["kind"] not in ("end", "context")]
        wanted = [("alloc", heap, size), ("free_requested", heap, size),
                  ("free_completed", heap, size), ("alloc_failed", "driver", 2**50),
                  ("alloc", "driver", 7),
                  ("free_requested", "driver", 7), ("free_completed", "driver", 7)]
        if way == "context":
            wanted = wanted[:-2]  # nobody destroys it
        if any(event["device"] for event in events):
            check_cupti.complain(way, "not on device 0")
        if seen != wanted:
            check_cupti.complain(way, f"in the trace: {seen}")
        contexts = sum(event["kind"] == "context" for event in events)
        if contexts != 1:
            check_cupti.complain(way, f"{contexts} contexts were created")


def dlsym_knows_who_calls(runner):
    library = runner.folder / "lookup_library.so"
    status, lines, stderr, traces = runner.run_plain(["scopes", str(library)])
    if status or stderr or lines != ["own 1 next 1 streams 1"]:
        check_cupti.complain("dlsym", f"status {status}: {lines} {stderr}")
    if traces:
        check_cupti.complain("dlsym", "a program without CUDA left a trace")


def quiet_beside_cupti(runner):
    """Both see the same calls: only one of them may report them."""
    _, truth, _, traces = runner.run(["--no-sharing"], MEMTRACE_CUPTI="")
    check_cupti.compare("beside CUPTI", truth, traces)


def alone(runner, interposer):
    """Without the library that listens, and with it if nobody asked."""
    runner.executable = "lookup_program"
    for preload, output in ((Path(interposer).name, None), (runner.preload, "")):
        settings = {"CUDA_INJECTION64_PATH": ""} if output is None else {"MEMTRACE_OUTPUT": output}
        runner.preload = preload
        for way in WAYS:
            if runner.on_gpu and way == "context":
                continue
            status, lines, stderr, traces = runner.run_plain([way, "1000"], **settings)
            if status or stderr or traces or "kept 0" not in lines[0]:
                check_cupti.complain("alone", f"{way}: status {status}: {lines} {stderr}")


def main():
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    interposer = sys.argv[4] if len(sys.argv) == 5 else \
        Path(sys.argv[2]).resolve().parent / "libmemtrace-cuda.so"
    runner = Runner(*sys.argv[1:4], interposer)
    check_cupti.everything(runner)
    check_cupti.many_threads(runner)
    quiet_beside_cupti(runner)
    if not runner.on_gpu:
        check_cupti.broken_context(runner)
    ways_to_the_driver(runner)
    dlsym_knows_who_calls(runner)
    alone(runner, interposer)
    for failure in check_cupti.failures[:20]:
        print(failure, file=sys.stderr)
    if check_cupti.failures:
        print(f"check_interposer: {len(check_cupti.failures)} failures", file=sys.stderr)
    return 1 if check_cupti.failures else 0


if __name__ == "__main__":
    sys.exit(main())
