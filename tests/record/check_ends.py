#!/usr/bin/env python3
"""check_ends.py BUILD [CASE...]: however a recorded program ends, it ends as it
does without memtrace, and its trace is whole."""
import json
import os
import pathlib
import shlex
import shutil
import signal
import sys

from support import REAL, check, main, only

WAYS = [("exit", "0"), ("exit", "3"), ("exit", "255"), ("quick", "4"), ("abort",), ("segv",),
        ("signal", str(int(signal.SIGTERM))), ("signal", str(int(signal.SIGINT))),
        ("signal", str(int(signal.SIGKILL))), ("exec",), ("threads", "8"), ("fork",),
        ("forkexec",), ("spawn",)]
if REAL:
    WAYS.remove(("fork",)) # CUDA does not work in a forked child of a process that uses it


def every_way(bench):
    """Same status, same output, with and without; nothing but the traces is left."""
    for way in WAYS:
        alone = bench.run(bench.recorded, *way)
        done = bench.record(bench.recorded, *way)
        check(done.returncode == alone.returncode,
              f"{way}: {done.returncode}, without memtrace {alone.returncode}: {done.stderr}")
        check(done.stdout == alone.stdout, f"{way}: standard output differs")
        check(bench.traces(), f"{way}: no trace: {done.stderr.decode()}")
        for trace in bench.traces():
            bench.check_whole(trace, 0 if way[0] == "threads" else 3)
            check(done.stderr.count(trace.name.encode() + b":") >= 1,
                  f"{way}: no line for {trace.name}: {done.stderr}")
            trace.unlink()
        bench.check_left()


def samples_that_cannot_be(bench):
    """However short the process was: without NVML its trace says what it does not have."""
    for _ in range(5):
        done = bench.run(bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded, "exit",
                         "0", environment=bench.environment(MEMTRACE_SIMULATED_NVML="broken"))
        check(done.returncode == 0, f"{done}")
        missing = bench.info(bench.work / "run.trace.zst")["header"].get("not_recorded", "")
        check("is not sampled" in missing, f"not said: {missing}")


def statuses_of_a_shell(bench):
    """What `$?` is behind it."""
    for way, status in ((("exit", "3"), 3), (("signal", "15"), 143), (("abort",), 134),
                        (("segv",), 139), (("signal", "9"), 137)):
        script = f'"{bench.memtrace}" record -o t.trace.zst "{bench.recorded}" {" ".join(way)}; echo $?'
        done = bench.run("sh", "-c", script)
        check(done.stdout.split() == [str(status).encode()], f"{way}: {done.stdout} {done.stderr}")


def commands_that_cannot_run(bench):
    (bench.work / "folder").mkdir()
    (bench.work / "text").write_text("#!/no/such/interpreter\n")
    (bench.work / "plain").write_text("no program\n")
    (bench.work / "text").chmod(0o755)
    before = sorted(path.name for path in bench.work.iterdir())
    for name, status in (("no-such-program", 127), ("./no-such-program", 127), ("./folder", 126),
                         ("./text", 126), ("./plain", 126)):
        done = bench.record(name)
        check(done.returncode == status, f"{name}: {done.returncode}: {done.stderr}")
        check(done.stderr.count(b"\n") == 1 and name.encode() in done.stderr,
              f"{name}: not one line: {done.stderr}")
        bench.check_left(*before)


def folders_of_others(bench):
    """A folder in PATH that this user may not search has no programs, as in a shell. (root may.)"""
    closed = bench.work / "closed"
    closed.mkdir(mode=0)
    path = f"{closed}:{os.environ['PATH']}"
    done = bench.run(bench.memtrace, "record", "no-such-program", environment=bench.environment(PATH=path))
    closed.chmod(0o700)  # the folder of this test can be removed
    check(done.returncode == 127 and b"no such program" in done.stderr, f"{done}")


def scripts(bench):
    """With and without a first line."""
    for first in ("#!/bin/sh\n", ""):
        script = bench.work / "script"
        script.write_text(f'{first}exec "{bench.recorded}" exit 6\n')
        script.chmod(0o755)
        done = bench.record("./script")
        check(done.returncode == 6, f"{done.returncode}: {done.stderr}")
        bench.check_whole(bench.work / "run.trace.zst")
        (bench.work / "run.trace.zst").unlink()


def says_what_to_do_next(bench):
    """The last line, if there is a trace that can be analyzed and nobody asked for silence."""
    done = bench.record(bench.recorded, "exit", "3")
    check(done.stderr.endswith(b"\nmemtrace: next: memtrace analyze run.trace.zst\n"), f"{done}")
    done = bench.run(bench.memtrace, "record", "-o", "a folder/", bench.recorded, "forkexec")
    check(done.stderr.endswith(b"\nmemtrace: next: memtrace fleet 'a folder/'\n"), f"{done}")
    done = bench.run(bench.memtrace, "record", "-o", "a folder/", bench.recorded, "forkexec")
    last = done.stderr.decode().splitlines()[-1]
    words = shlex.split(last.removeprefix("memtrace: next: "))
    check(words[:2] == ["memtrace", "fleet"] and len(words) == 4 and
          all((bench.work / word).is_file() for word in words[2:]),
          f"traces of another run are in the folder: {last}")
    done = bench.run(bench.memtrace, "record", "-o", "diff", bench.recorded, "forkexec")
    check(b"\nmemtrace: next: memtrace fleet ./diff diff-" in done.stderr, f"'diff' is a command of fleet: {done}")
    for option in ("--quiet", "--json"):
        done = bench.run(bench.memtrace, "record", option, "-o", "run.trace.zst", bench.recorded, "exit", "0")
        check(b"next:" not in done.stderr, f"{done}")


def without_cuda(bench):
    """No file, and one line."""
    done = bench.record(bench.recorded, "plain", "3")
    check(done.returncode == 3 and done.stderr.count(b"\n") == 1 and b"no process used CUDA" in
          done.stderr, f"{done}")
    bench.check_left()
    done = bench.run(bench.memtrace, "record", "-q", bench.recorded, "plain", "0")
    check(done.stderr == b"", f"{done}")
    done = bench.run(bench.memtrace, "record", "-o", "traces/", bench.recorded, "plain", "0")
    bench.check_left()
    # No thread either: the shell counts its own.
    done = bench.record("sh", "-c", "ls /proc/$$/task | wc -l")
    check(done.stdout.split() == [b"1"], f"{done}")


def static_program(bench):
    done = bench.record(bench.static, "exit", "4")
    check(done.returncode == 4 and b"statically linked" in done.stderr, f"{done}")
    check(done.stdout == b"hello\n", f"{done}")


def without_the_library(bench):
    environment = bench.environment(MEMTRACE_INJECT="/no/such/library.so")
    done = bench.record(bench.recorded, "exit", "5", environment=environment)
    check(done.returncode == 5 and done.stderr.count(b"\n") == 1, f"{done}")
    check(b"runs without being recorded" in done.stderr, f"{done}")
    (bench.work / "other.so").write_text("not a library")
    environment["MEMTRACE_INJECT"] = str(bench.work / "other.so")
    done = bench.record(bench.recorded, "exit", "5", environment=environment)
    check(done.returncode == 5 and b"runs without being recorded" in done.stderr, f"{done}")


def library_in_a_folder_with_a_space_or_colon(bench):
    """A space is no obstacle. A colon is one for the loader, and the command runs without a recording."""
    for name in ("my programs", "my:programs"):
        folder = bench.work / name
        folder.mkdir()
        library = folder / "libmemtrace-inject.so"
        library.write_bytes((bench.build / "libmemtrace-inject.so").read_bytes())
        done = bench.record(bench.recorded, "exit", "5",
                            environment=bench.environment(MEMTRACE_INJECT=str(library)))
        check(done.returncode == 5, f"{done}")
        check((b"colon or semicolon" in done.stderr) == (":" in name), f"{done}")
        check((bench.work / "run.trace.zst").exists() == (":" not in name), f"{done}")
        for trace in bench.work.glob("*.trace.zst"):
            bench.check_whole(trace)
            trace.unlink()


def standard_input(bench):
    text = bytes(range(256)) * 999
    done = bench.record(bench.recorded, "echo", stdin=text)
    check(done.returncode == 0 and done.stdout == text, "standard input is not what came out")
    bench.check_whole(bench.work / "run.trace.zst")


def json_at_the_end(bench):
    done = bench.run(bench.memtrace, "record", "--json", "-o", "r.trace.zst", bench.recorded,
                     "exit", "3")
    document = json.loads(done.stderr.splitlines()[-1])
    check(document["schema"] == "memtrace.record/1" and document["exit_status"] == 3, f"{document}")
    trace = only(document["traces"])
    check(trace["device_peak_bytes"] == 3000 << 10 << 1 and trace["state"] == "whole"
          and trace["events_dropped"] == 0, f"{trace}")


def summaries(bench):
    """Beside each trace, however its process ended; the status is the program's whatever comes of
    the summary."""
    for way in (("exit", "3"), ("signal", "9"), ("forkexec",)):
        done = bench.run(bench.memtrace, "record", "-o", "traces/", bench.recorded, *way)
        alone = bench.run(bench.recorded, *way)
        check(done.returncode == alone.returncode, f"{way}: {done}")
        traces = bench.traces(bench.work / "traces")
        check(len(traces) == (1 + (way[0] == "forkexec")), f"{way}: {traces}")
        for trace in traces:
            shown = bench.run(bench.memtrace, "info", "--json", f"{trace}.mtsum")
            check(shown.returncode == 0, f"{way}: {shown} {done}")
            record = json.loads(shown.stdout)["records"][0]
            check(record["trace_name"] == trace.name and record["driver_peak_bytes"] == 6000 << 10,
                  f"{way}: {record}")
            pathlib.Path(f"{trace}.mtsum").write_text("mine")
        again = bench.run(bench.memtrace, "record", "--no-summary", "-o", traces[0], bench.recorded,
                          "exit", "5")
        check(again.returncode == 5 and b"summary" not in again.stderr, f"{again}")
        again = bench.run(bench.memtrace, "record", "-o", traces[0], bench.recorded, "exit", "5")
        check(again.returncode == 5 and b"no summary for" in again.stderr, f"{again}")
        check(pathlib.Path(f"{traces[0]}.mtsum").read_text() == "mine", "a file was replaced")
        shutil.rmtree(bench.work / "traces")


if __name__ == "__main__":
    cases = [every_way, summaries, statuses_of_a_shell, commands_that_cannot_run, scripts, without_cuda,
             static_program, without_the_library, library_in_a_folder_with_a_space_or_colon,
             folders_of_others, standard_input, says_what_to_do_next, json_at_the_end]
    if not REAL: # a real NVML works
        cases.append(samples_that_cannot_be)
    sys.exit(main(cases))
