#!/usr/bin/env python3
"""What programs say through NVTX is in their traces.

    check_nvtx.py PROGRAM INJECT STANDIN_FOLDER COMPILER

Runs nvtx_program, which imitates how copies of NVTX look for a tool; and where
NVIDIA's headers are (MEMTRACE_NVTX_HEADERS, folders with colons between them) a
program that is compiled with them.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import thread_sanitizer  # pylint: disable=wrong-import-position

ANSWERS = ["push 0", "push 1", "domain push 0", "library push 1", "pop 1", "domain pop 0",
           "id yes", "pop 0", "pop -1"]
DEAF = ["push -2", "push -2", "domain push -2", "library push -2", "pop -2", "domain pop -2",
        "id no", "pop -2", "pop -2"]
STORY = ["push outer", "push wide \u20ac", "push shared: message", "push shared: inside",
         "mark library", "pop shared: inside", "pop wide \u20ac", "pop shared: message",
         "push across threads"]
ENDER = ["mark on another thread", "pop across threads"]

failures = []


def expect(where, what, seen, wanted):
    if seen != wanted:
        failures.append(f"{where}: {what} are\n  {seen}, not\n  {wanted}")


class Runner:
    def __init__(self, program, inject, folder):
        self.program, self.inject = Path(program).resolve(), Path(inject).resolve()
        self.folder = Path(folder).resolve()

    def run(self, where, command, **settings):
        """Lines of output, and dump's lines and objects of the first process's trace."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MEMTRACE_")}
        with tempfile.TemporaryDirectory() as out:
            environment.update({"MEMTRACE_OUTPUT": f"{out}/", "MEMTRACE_STACKS": "none",
                                "NVTX_INJECTION64_PATH": str(self.inject), **settings})
            started = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            output, stderr = started.communicate(timeout=600)
            if started.returncode or stderr:
                failures.append(f"{where}: status {started.returncode}, {stderr}")
            traces = [path for path in Path(out).glob("*.trace.zst")
                      if path.name.split(".")[0].endswith(f"-{started.pid}")]
            text = self.dump(traces[0]) if traces else []
            objects = [json.loads(line) for line in self.dump(traces[0], "--json")] \
                if traces else []
            return output.splitlines(), text, objects, len(list(Path(out).iterdir()))

    def dump(self, path, *options):
        done = subprocess.run([self.program, "dump", *options, path], capture_output=True,
                              encoding="utf-8", check=True)
        return done.stdout.splitlines()


def story(events):
    words = {"phase_push": "push", "phase_pop": "pop", "mark": "mark"}
    return [f"{words[event['kind']]} {event['name']}" for event in events
            if event["kind"] in words]


def the_program(runner):
    command = [runner.folder / "nvtx_program", runner.folder / "nvtx_library.so"]
    output, text, events, _ = runner.run("program", command)
    expect("program", "answers", output, ANSWERS)
    expect("program", "events", story(events), STORY + ENDER + ["pop outer"])
    # A range that another thread ended ends on the thread that began it.
    threads = {event["name"]: event["thread"] for event in events if event["kind"] == "phase_push"}
    ends = {event["name"]: event["thread"] for event in events if event["kind"] == "phase_pop"}
    expect("program", "threads", ends, threads)
    for event, name in (("outer", "the main one"), ("on another thread", "ender")):
        line = next((line for line in text if event in line), "")
        if name not in line:
            failures.append(f"program: the thread of {event!r} is not {name!r}: {line}")
    output, _, events, _ = runner.run("fork", [*command, "fork"])
    expect("fork", "answers", output, ANSWERS)
    expect("fork", "events", story(events), STORY + ENDER + ["pop outer"])


def nobody_listens(runner):
    command = [runner.folder / "nvtx_program", runner.folder / "nvtx_library.so"]
    for settings in ({"MEMTRACE_OUTPUT": ""}, {"MEMTRACE_PHASES": "torch"}):
        output, _, _, files = runner.run("switched off", command, **settings)
        expect("switched off", "answers", output, DEAF)
        expect("switched off", "files", files, 0)


def behind_another_tool(runner):
    command = [runner.folder / "nvtx_program", runner.folder / "nvtx_library.so"]
    output, _, events, _ = runner.run("behind", command,
                                      MEMTRACE_NVTX_NEXT=str(runner.folder / "nvtx_tool.so"))
    expect("behind", "events", story(events), STORY + ENDER + ["pop outer"])
    if "domain push 101" not in output:
        failures.append(f"behind: the other tool's answers did not arrive: {output}")


def with_real_headers(runner, compiler):
    folders = os.environ.get("MEMTRACE_NVTX_HEADERS", "/usr/local/cuda/include").split(":")
    for folder in folders:
        if not (Path(folder) / "nvtx3/nvToolsExt.h").exists():
            continue
        with tempfile.TemporaryDirectory() as out:
            flags = ["-std=c11", "-D_GNU_SOURCE", "-w", f"-isystem{folder}", f"-Wl,-rpath,{out}"]
            subprocess.run([compiler, *flags, "-shared", "-fPIC", "-o", f"{out}/libcopy.so",
                            HERE / "nvtx_real_library.c", "-ldl"], check=True)
            subprocess.run([compiler, *flags, "-o", f"{out}/program",
                            HERE / "nvtx_real_program.c", f"{out}/libcopy.so", "-ldl"], check=True)
            output, _, events, _ = runner.run(folder, [f"{out}/program"],
                                              **thread_sanitizer.preload(runner.inject))
        expect(folder, "answers", output, ANSWERS)
        expect(folder, "events", story(events), STORY + ["pop across threads", "pop outer"])
        print(f"with {folder}")


def main():
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    runner = Runner(*sys.argv[1:4])
    the_program(runner)
    nobody_listens(runner)
    behind_another_tool(runner)
    with_real_headers(runner, sys.argv[4])
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
