#!/usr/bin/env python3
"""check_ring.py BUILD [CASE...]: `record --ring` keeps the last events, whole, and what was alive
before them, however the program ends; `record --idle` begins with what is alive when it is asked.
ringed.c keeps the book that the traces are compared with."""
import functools
import json
import os
import pathlib
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import time
import types

from ring_book import EXIT, FORK, FORK_TWICE, LARGE, PATIENCE_S, REFUSE, SANDBOX, SMALL, Book, Trace, compare
from support import check, command_of, main, only
from tapes import ASKED, PART, SAVE_REASONS, bytes_of, change, commit_of, is_running

FIXTURES = pathlib.Path(__file__).resolve().parent.parent.parent / "fixtures"
SECOND_NS = 1_000_000_000
THREADS, LIVE = 3, 40


def wait_for(what, process=None, pause=0.01):
    """Until what() is true; not forever, and not if the process has ended."""
    until = time.monotonic() + PATIENCE_S
    while not what():
        check(process is None or process.poll() is None, "it ended")
        check(time.monotonic() < until, f"nothing happened in {PATIENCE_S} s")
        time.sleep(pause)


def wait_for_end(pid):
    wait_for(lambda: not is_running(pid))


def heard(process):
    """What is on standard error so far, which end() returns as a whole."""
    while select.select([process.stderr], [], [], 0)[0]:
        piece = os.read(process.stderr.fileno(), 65536)
        if not piece:
            break
        process.heard = getattr(process, "heard", b"") + piece
    return getattr(process, "heard", b"").decode()


def wait_for_words(process, *words):
    """Until one of them is on standard error."""
    wait_for(lambda: any(word in heard(process) for word in words), process)


def stop(pid):
    """Stops a process, so that nothing changes until it is killed or continued."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: state_of(pid) in "TZX")


def stop_in_part(bench, child):
    """Stops the program while its last part has events of all threads and is shorter than 3 s."""
    stop(child)
    while not 1000 < commit_of(bench.work / "run.trace.zst.tape")[2] < 4000:
        os.kill(child, signal.SIGCONT)
        time.sleep(0.1)
        stop(child)


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


def start(bench, *options, ring="1s", live=LIVE, events=6000, before=()):
    """A recording of ringed that goes on; options may replace -o. ring=None: no ring. before: words before ringed."""
    place = (*(options or ("-o", "run.trace.zst")), *(("--ring", ring) if ring else ()))
    book = Book(bench.work / "book")
    process = bench.start(bench.memtrace, "record", "--no-summary", "--stacks", "none", *place, "--", *before,
                          bench.build / "tests" / "ringed", "book", THREADS, live, events, 0)
    wait_for(lambda: book.ready() >= THREADS, process)
    return book, process


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def part_exists(bench):
    return (bench.work / "run.trace.zst.part").exists()


def newest_part(bench):
    """The highest number of a part, from the headers; 0: none is committed."""
    found = [0]
    for name in ("run.trace.zst", "run.trace.zst.part"):
        try:
            with open(bench.work / name, "rb") as file:
                found += map(int, re.findall(rb"ring_part(\d+)", file.read(8192)))
        except FileNotFoundError:
            pass
    return max(found)


def turn(bench, process, parts=3):
    """Waits until the ring has begun `parts` more parts."""
    wanted = newest_part(bench) + parts
    wait_for(lambda: newest_part(bench) >= wanted, process, 0.02)


def check_trace(bench, book, name="run.trace.zst", live=LIVE, ring_ns=SECOND_NS, exact=False):
    facts = bench.info(bench.work / name)
    check(facts["integrity"]["closed"] and not facts["integrity"]["cut"], f"{name}: {facts['integrity']}")
    check(facts["header"]["starts_in_middle"], f"{name} does not say that it starts in the middle")
    trace = Trace(bench.memtrace, bench.work / name, bench.environment())
    complaints, other = compare(trace, book, THREADS, live)
    check(not complaints, f"{name}: {complaints}")
    check(not exact or not other, f"{name}: {other} blocks differ")
    # the first and the last event are less than the ring apart only if the trace lacks some
    check(trace.times[1] - trace.times[0] >= ring_ns, f"{name}: {trace.times}")
    check(trace.events < book_events(book), f"{name}: nothing was left out")
    # one is the context, and a block whose free is under way has two
    check(trace.initial <= THREADS * (live + 1) + 1, f"{name}: {trace.initial} initial events")
    return trace


def book_events(book, live=LIVE):
    """Events of the driver's calls in the book: an allocation is one event, a free is two."""
    return sum(book.count(thread) * 3 - live for thread in range(THREADS)) // 2


def end(process):
    _, err = process.communicate(timeout=600)
    return process.returncode, (getattr(process, "heard", b"") + err).decode()


def after_exit(bench):
    book, process = start(bench)
    turn(bench, process)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0, f"{status} {err}")
    check("earlier events are left out" in err and "recorded for" in err, err)
    trace = check_trace(bench, book, exact=True)
    check(not trace.lost, f"{trace.lost} events are lost")
    bench.check_left("book", "run.trace.zst")


def after_kill(bench):
    """With an even and an odd number of parts."""
    for turns in (2, 3):
        book, process = start(bench)
        turn(bench, process, turns)
        os.kill(command_of(process, "ringed"), signal.SIGKILL)
        status, err = end(process)
        check(status == -signal.SIGKILL and "ended abnormally" in err, f"{status} {err}")
        trace = check_trace(bench, book)
        check(trace.lost <= THREADS, f"{trace.lost} events are lost")
        bench.check_left("book", "run.trace.zst")


def both_killed(bench):
    """The command outlives memtrace and is killed: `recover` puts the parts together."""
    book, process = start(bench)
    turn(bench, process)
    child = command_of(process, "ringed")
    process.kill()
    process.wait(timeout=600)
    os.kill(child, signal.SIGKILL)
    wait_for_end(child)
    hint = bench.run(bench.memtrace, "info", "run.trace.zst").stderr
    check(b"memtrace recover" in hint, f"no hint: {hint}")
    done = bench.run(bench.memtrace, "recover", "run.trace.zst")
    check(done.returncode == 0, f"{done}")
    check_trace(bench, book)
    check(not part_exists(bench), "a part is left")


def launcher_alone_killed(bench):
    """The command ends in order without memtrace: the tape stays for `recover`."""
    book, process = start(bench)
    turn(bench, process)
    child = command_of(process, "ringed")
    process.kill()
    process.wait(timeout=600)
    book.order(EXIT)
    wait_for_end(child)
    done = bench.run(bench.memtrace, "recover", "run.trace.zst")
    check(done.returncode == 0, f"{done}")
    check_trace(bench, book, exact=True)
    bench.check_left("book", "run.trace.zst")


def at_signal(bench):
    """SIGUSR2 to memtrace, not to the program, which would die of it."""
    book, process = start(bench)
    turn(bench, process, 2)
    process.send_signal(signal.SIGUSR2)
    saved = bench.work / "run-saved-1.trace.zst"
    wait_for(saved.exists, process)
    with open(f"/proc/{command_of(process, 'ringed')}/status", encoding="ascii") as file:
        ignored = int(re.search(r"SigIgn:\s*(\w+)", file.read()).group(1), 16)
    check(not ignored >> (signal.SIGUSR2 - 1) & 1, "the program got the disposition of memtrace")
    book.order(EXIT)
    while process.poll() is None:  # also while the parts are put together
        process.send_signal(signal.SIGUSR2)
        time.sleep(0.02)
    status, err = end(process)
    check_trace(bench, book, saved.name)
    check(status == 0 and "run-saved-1.trace.zst: " in err, f"{status} {err}")
    check_trace(bench, book, exact=True)


def at_oom(bench):
    """The program goes on after the refusal, longer than the ring."""
    book, process = start(bench, ring="5s")
    turn(bench, process, 2)
    book.order(REFUSE)
    wait_for((bench.work / "run-saved-1.trace.zst").exists, process)
    turn(bench, process)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0, f"{status} {err}")
    trace = check_trace(bench, book, "run-saved-1.trace.zst", ring_ns=5 * SECOND_NS)
    check(trace.refused == 1, f"{trace.refused} refusals are in the saved trace")
    trace = check_trace(bench, book, ring_ns=5 * SECOND_NS, exact=True)
    check(not trace.refused, "the ring is longer than its time")


def above_a_limit(bench):
    """Each time when a device has more than the limit, also for a moment, at most four times."""
    book, process = start(bench, "--ring-above", "3GiB", "-o", "run.trace.zst", ring="5m")
    saved = [bench.work / f"run-saved-{number}.trace.zst" for number in range(1, 5)]
    for path in saved:
        check(not path.exists(), "it was saved below the limit")
        book.order(LARGE)
        wait_for(path.exists, process)
    book.order(LARGE)
    wait_for_words(process, "was saved 4 times; now only SIGUSR2 saves it")
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and sorted(bench.work.glob("run-saved-*")) == saved, f"{status} {err}")
    for path in saved:
        trace = Trace(bench.memtrace, path, bench.environment())
        complaints, _ = compare(trace, book, THREADS, LIVE)
        check(not complaints, f"{path.name}: {complaints}")
        check(4 << 30 in [size for _, size in trace.threads["ring0"]], f"{path.name}: the large block is missing")


def idle(bench, *options, ring=None, before=()):
    """A recording that has not begun, of a program that has made some events."""
    book, process = start(bench, "--idle", *(options or ("-o", "run.trace.zst")), ring=ring, before=before)
    tape = bench.work / "run.trace.zst.tape"
    if not options or before:
        wait_for(lambda: commit_of(tape)[1] > 1000, process)
        check(commit_of(tape)[2] == 0, "it records")
    return book, process, tape


def begin(process, tape, events=1000):
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "recording starts")
    wait_for(lambda: commit_of(tape)[2] > events, process)


def check_late(bench, book):
    """The trace begins with what was alive when the recording began."""
    facts = bench.info(bench.work / "run.trace.zst")
    check(facts["integrity"]["closed"] and facts["header"]["starts_in_middle"], f"{facts}")
    trace = Trace(bench.memtrace, bench.work / "run.trace.zst", bench.environment())
    complaints, _ = compare(trace, book, THREADS, LIVE)
    check(not complaints, f"{complaints}")
    check(trace.initial >= THREADS * LIVE - THREADS, f"{trace.initial} initial events")
    check(trace.events < book_events(book), "nothing was left out")
    return trace


def idle_begins(bench):
    book, process, tape = idle(bench)
    begin(process, tape)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and "not recorded" not in err and "left out" not in err, f"{status} {err}")
    check(not check_late(bench, book).lost, "events are lost")
    bench.check_left("book", "run.trace.zst")


def end_recording(process, tape):
    """Sends the second signal, and waits until the process has closed its trace."""
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "recording stops")
    wait_for(lambda: not tape.exists(), process)


def has_tape(pid):
    """Whether a process has a tape mapped or open."""
    links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return ".tape" in maps.read() + " ".join(links)


def idle_stops(bench):
    """The second signal stops the recording. The trace can be read while the program goes on."""
    book, process, tape = idle(bench)
    begin(process, tape)
    end_recording(process, tape)
    done = bench.run(bench.memtrace, "analyze", "run.trace.zst")
    check(b"a tape exists" not in done.stderr and b"recover" not in done.stderr, f"{done.stderr}")
    first = Trace(bench.memtrace, bench.work / "run.trace.zst", bench.environment())
    more = book.count(0) + 1000
    wait_for(lambda: book.count(0) > more, process)
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "has no effect: the recording was stopped")
    book.order(EXIT)
    status, err = end(process)
    check(status == 0, f"{status} {err}")
    last = check_late(bench, book)
    check(last.events == first.events, f"{last.events} events, {first.events} when it stopped")
    bench.check_left("book", "run.trace.zst")


def idle_stacks(bench):
    """The native stacks of an idle recorder do not use up those of the recording."""
    book, process, tape = idle(bench)
    book.order(SMALL)
    begin(process, tape)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0, f"{status} {err}")
    events = bench.events(bench.work / "run.trace.zst", "alloc")
    found = any(event.get("stack") for event in events if "initial" not in event["flags"])
    check(found == (os.uname().machine in ("x86_64", "aarch64")), f"{events[-1]}")


def forks_after_stop(bench):
    """A child that starts after the recording was stopped does not keep the tape of its parent."""
    book, process, tape = idle(bench)
    begin(process, tape)
    end_recording(process, tape)
    check(has_tape(command_of(process, "ringed")), "this check finds no tape")
    book.order(FORK_TWICE)
    wait_for(book.child, process)
    check(not has_tape(book.child()), "the child has the tape")
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and "not recorded" not in err, f"{status} {err}")
    bench.check_left("book", "run.trace.zst")


def launcher_killed_after_stop(bench):
    """The trace was closed: the program removes its tape and what memtrace left."""
    book, process, tape = idle(bench)
    begin(process, tape)
    end_recording(process, tape)
    child = command_of(process, "ringed")
    process.kill()
    process.wait(timeout=600)
    book.order(EXIT)
    wait_for_end(child)
    bench.check_left("book", "run.trace.zst")
    check_late(bench, book)


def launcher_killed_after_begin(bench):
    """Processes that start later are recorded, after other processes have ended."""
    book, process, _ = idle(bench, "-o", "traces/")
    traces = bench.work / "traces"
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "recording starts")
    program = command_of(process, "ringed")
    process.kill()
    process.wait(timeout=600)
    for count in (2, 3):
        book.order(FORK)
        wait_for(lambda count=count: len(bench.traces(traces)) == count)
        for trace in bench.traces(traces):
            if pid_of(trace) != program:
                wait_for_end(pid_of(trace))
                check(bench.sizes(trace) == [12345], f"{trace}")
    book.order(EXIT)
    wait_for_end(program)
    done = bench.run(bench.memtrace, "record", "-o", "traces/", "true")
    left = [path.name for path in traces.iterdir() if not path.name.endswith(".trace.zst")]
    check(done.returncode == 0 and not left, f"{left} {done}")


def outlived(bench):
    """The program goes on after the command has ended. Its trace is whole, unless it has not begun."""
    for stops in (True, False):
        options = ("--json", "--redact", "--strict", "-o", "run.trace.zst")
        shell = ("sh", "-c", '"$@" & while [ ! -e end ]; do sleep 0.1; done', "sh")
        book, process, tape = idle(bench, *options, before=shell)
        if stops:
            process.send_signal(signal.SIGUSR2)
            wait_for(lambda: commit_of(tape)[2] > 1000, process)
            process.send_signal(signal.SIGUSR2)
            wait_for(lambda: not tape.exists(), process)
        program = command_of(types.SimpleNamespace(pid=command_of(process, "sh")), "ringed")
        (bench.work / "end").touch()
        status, err = process.wait(), heard(process)  # the program keeps standard error open
        trace = only(json.loads(err)["traces"])
        check(is_running(program), "it has ended")
        check((status, trace["state"], trace["complete"]) == ((0, "whole", True) if stops else (5, "idle", False)), err)
        check(("redaction_error" in trace) == (not stops), err)
        check(not stops or bench.sizes(bench.work / "run.trace.zst"), "it has no blocks")
        book.order(EXIT)
        wait_for_end(program)
        bench.check_left("book", "end", "run.trace.zst")
        (bench.work / "end").unlink()


def stopped_before_it_began(bench):
    """Both signals come while the process cannot look at its tape: the recording begins and stops."""
    book, process, tape = idle(bench)
    child = command_of(process, "ringed")
    stop(child)
    for words in ("recording starts", "recording stops"):
        process.send_signal(signal.SIGUSR2)
        wait_for_words(process, words)
    os.kill(child, signal.SIGCONT)
    wait_for(lambda: not tape.exists(), process)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and "not recorded" not in err, f"{status} {err}")
    check(bench.sizes(bench.work / "run.trace.zst"), "it has no blocks")


def idle_killed(bench):
    """Before the recording began, after it, and after the request to begin."""
    for when, lack in (("before", "everything: the recording was off while this process ran; SIGUSR2"), ("after", ""),
                       ("asked", "everything: this process ended before its recording began")):
        book, process, tape = idle(bench)
        child = command_of(process, "ringed")
        if when == "after":
            begin(process, tape)
        if when == "asked":
            stop(child)
            process.send_signal(signal.SIGUSR2)
            wait_for(lambda tape=tape: struct.unpack_from("<Q", tape.read_bytes(), ASKED)[0], process)
        os.kill(child, signal.SIGKILL)
        status, err = end(process)
        check(status == -signal.SIGKILL, f"{status} {err}")
        check(lack in err and ("everything: " in err) == bool(lack), err)
        if when == "after":
            check_late(bench, book)
        else:
            check(not bench.events(bench.work / "run.trace.zst", "alloc"), "it has events")
        bench.check_left("book", "run.trace.zst")


def idle_lacks_two(bench):
    """Another reason does not hide that the recording was off."""
    bench.environment = functools.partial(bench.environment, MEMTRACE_SIMULATED_CUPTI_HOLDER="Nsight")
    _, process = start(bench, "--idle", "-o", "run.trace.zst", ring=None)
    wait_for(lambda: b"no driver events" in (bench.work / "run.trace.zst.tape").read_bytes(), process)
    os.kill(command_of(process, "ringed"), signal.SIGKILL)
    _, err = end(process)
    lacks = bench.info(bench.work / "run.trace.zst")["header"]["not_recorded"].split("\n")
    check(len(lacks) == 2 and "no driver events" in lacks[0] and lacks[1].startswith("everything: "), f"{lacks} {err}")


def idle_ring(bench):
    """The first signal begins the recording, later ones save the ring, also if the process has not begun yet."""
    book, process, _ = idle(bench, ring="1s")
    child = command_of(process, "ringed")
    stop(child)
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "recording starts; SIGUSR2 now saves the ring")
    process.send_signal(signal.SIGUSR2)
    time.sleep(0.5)  # the launcher sees the second signal
    os.kill(child, signal.SIGCONT)
    wait_for((bench.work / "run-saved-1.trace.zst").exists, process)
    turn(bench, process, 2)
    process.send_signal(signal.SIGUSR2)
    wait_for((bench.work / "run-saved-2.trace.zst").exists, process)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and "nothing was saved" not in err, f"{status} {err}")
    for name in ("run-saved-2.trace.zst", "run.trace.zst"):
        check_trace(bench, book, name)


def above_while_idle(bench):
    """A rise before the recording begins is saved when it begins."""
    book, process, tape = idle(bench, "--ring-above", "3GiB", "-o", "run.trace.zst", ring="5m")
    book.order(LARGE)
    wait_for(lambda: struct.unpack_from("<Q", tape.read_bytes(), commit_of(tape)[4] + SAVE_REASONS)[0], process)
    time.sleep(0.5)  # the launcher sees it
    check(not (bench.work / "run-saved-1.trace.zst").exists(), "it was saved while idle")
    begin(process, tape)
    wait_for((bench.work / "run-saved-1.trace.zst").exists, process)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0, f"{status} {err}")


def pid_of(trace):
    """Its name is HOST-PID.trace.zst."""
    return int(trace.name.split(".")[0].rpartition("-")[2])


def idle_processes(bench):
    """A process that ends before the recording begins has no events; one that starts later has all."""
    book, process, _ = idle(bench, "-o", "traces/")
    traces = bench.work / "traces"
    only(traces.glob(".memtrace-??????")).chmod(0o700)  # the mode of each file where there are no modes
    book.order(FORK)
    wait_for(lambda: len(bench.traces(traces)) == 2, process)
    early = set(bench.traces(traces))
    for trace in early:
        if pid_of(trace) != command_of(process, "ringed"):
            wait_for_end(pid_of(trace))
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "recording starts")
    book.order(FORK)
    wait_for(lambda: len(bench.traces(traces)) == 3, process)
    child = only(set(bench.traces(traces)) - early)
    wait_for_end(pid_of(child))
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "recording stops")
    book.order(FORK)
    wait_for(lambda: len(bench.traces(traces)) == 4, process)
    wait_for_end(pid_of(only(set(bench.traces(traces)) - early - {child})))
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and err.count("the recording was off while this process ran") == 2
          and err.count("; SIGUSR2 to memtrace record starts it") == 1, f"{status} {err}")
    check(bench.sizes(child) == [12345], "the child's trace")
    check(not bench.info(child)["header"]["starts_in_middle"], "the child was idle")
    check(sorted(len(bench.sizes(trace)) > 0 for trace in early) == [False, True], "the first two traces")


def never_begun(bench):
    book, process, _ = idle(bench)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and "not recorded: everything: the recording was off" in err, f"{status} {err}")
    check(not bench.events(bench.work / "run.trace.zst", heap=None)[:-1] and "next: " not in err, f"it has events {err}")
    done = bench.run(bench.memtrace, "analyze", "run.trace.zst")
    check(done.stdout.startswith(b"No memory events were recorded.\nnot recorded: everything: the recording was off"),
          f"{done}")
    bench.check_left("book", "run.trace.zst")


def stopped_saver(bench, process):
    """A process that has not saved yet. It waits 0.3 s for the writer before it saves."""
    saved = bench.work / "run-saved-1.trace.zst"
    before = set(children(process.pid))
    while True:
        saved.unlink(missing_ok=True)
        process.send_signal(signal.SIGUSR2)
        wait_for(lambda: set(children(process.pid)) - before or saved.exists(), process, 0.001)
        for pid in set(children(process.pid)) - before:
            stop(pid)
            if state_of(pid) == "T" and not saved.exists():
                return pid
            if state_of(pid) == "T":
                os.kill(pid, signal.SIGCONT)
        wait_for(lambda: saved.exists() and set(children(process.pid)) == before, process)  # it was too late


def saver_dies(bench):
    """Each save that fails gets a line: the name is too long, and the process that saves is killed."""
    long = "r" * 238 + ".trace.zst"  # has room for .part, and not for -saved-1
    book, process = start(bench, "-o", long)
    process.send_signal(signal.SIGUSR2)
    wait_for_words(process, "could not be saved")
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and err.count("could not be saved") == 1 and "File name too long" in err
          and "nothing was saved" not in err, f"{status} {err}")
    (bench.work / long).unlink()
    book, process = start(bench)
    os.kill(stopped_saver(bench, process), signal.SIGKILL)
    wait_for_words(process, "could not be saved")
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and err.count("could not be saved") == 1, f"{status} {err}")
    check(not (bench.work / "run-saved-1.trace.zst").exists(), "it was saved")


def more_alive_than_events(bench):
    """Most blocks are older than the ring."""
    book, process = start(bench, live=20000, events=900)
    turn(bench, process)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0, f"{status} {err}")
    # events are rare: the first one of the last second may come late
    trace = check_trace(bench, book, live=20000, ring_ns=SECOND_NS * 3 // 4, exact=True)
    check(trace.initial > 10 * trace.events, f"{trace.initial} initial, {trace.events} other events")


def short_run(bench):
    """A run that is shorter than the ring is whole."""
    done = bench.run(bench.memtrace, "record", "--no-summary", "--ring", "5m", "-o", "run.trace.zst", bench.recorded,
                     "exit", "0")
    check(done.returncode == 0 and b"left out" not in done.stderr, f"{done}")
    bench.check_whole(bench.work / "run.trace.zst")
    check(not bench.info(bench.work / "run.trace.zst")["header"]["starts_in_middle"], "it starts in the middle")
    bench.check_left("run.trace.zst")


def saved_early(bench):
    """A save before the ring is full is whole."""
    book, process = start(bench, ring="5m")
    wait_for(lambda: commit_of(bench.work / "run.trace.zst.tape")[2] > 3 * THREADS * LIVE, process)
    process.send_signal(signal.SIGUSR2)
    wait_for((bench.work / "run-saved-1.trace.zst").exists, process)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and "left out" not in err, f"{status} {err}")
    for name in ("run-saved-1.trace.zst", "run.trace.zst"):
        check(not bench.info(bench.work / name)["header"]["starts_in_middle"], f"{name} starts in the middle")
        trace = Trace(bench.memtrace, bench.work / name, bench.environment())
        complaints, _ = compare(trace, book, THREADS, LIVE)
        check(not complaints and not trace.initial, f"{name}: {complaints}, {trace.initial} initial events")


def several_processes(bench):
    book, process = start(bench, "-o", "traces/")
    book.order(FORK)
    wait_for(lambda: len(bench.traces(bench.work / "traces")) == 2, process)
    time.sleep(2.5)
    book.order(EXIT)
    status, err = end(process)
    check(status == 0, f"{status} {err}")
    traces = bench.traces(bench.work / "traces")
    check(len(traces) == 2, f"{traces}")
    middle = [trace for trace in traces if bench.info(trace)["header"]["starts_in_middle"]]
    check_trace(bench, book, only(middle).relative_to(bench.work), exact=True)
    check(bench.sizes(only(set(traces) - set(middle))) == [12345], "the child's trace")
    check(not list((bench.work / "traces").glob("*.part")), "a part is left")


def document(bench):
    book, process = start(bench, "--json", "-o", "run.trace.zst")
    turn(bench, process, 2)
    process.send_signal(signal.SIGUSR2)
    wait_for((bench.work / "run-saved-1.trace.zst").exists, process)
    book.order(EXIT)
    status, err = end(process)
    traces = {os.path.basename(trace["path"]): trace for trace in json.loads(err)["traces"]}
    check(status == 0 and sorted(traces) == ["run-saved-1.trace.zst", "run.trace.zst"], err)
    for trace in traces.values():
        check(trace["ring_ns"] == SECOND_NS and trace["events_left_out"] > 0 and trace["complete"]
              and trace["recorded_ns"] >= trace["duration_ns"] >= SECOND_NS, f"{trace}")
    whole = traces["run.trace.zst"]
    kept = Trace(bench.memtrace, bench.work / "run.trace.zst", bench.environment())
    check(whole["events"] == kept.events + kept.initial, f"{whole} {kept.events} {kept.initial}")
    # contexts, samples and the end are no calls
    others = kept.events + whole["events_left_out"] - book_events(book)
    check(0 < others < 1000, f"{others} events more than in the book: {whole}")


def foreign_part(bench):
    """A file of somebody else with the name of the second part is not changed: any contents, none, and a trace."""
    part = bench.work / "run.trace.zst.part"
    check(bench.run(bench.memtrace, "record", "--no-summary", "-o", "whole.trace.zst", bench.recorded, "exit", "0")
          .returncode == 0, "a trace")
    for contents in (b"mine", b"", (bench.work / "whole.trace.zst").read_bytes()):
        part.write_bytes(contents)
        done = bench.run(bench.memtrace, "record", "--no-summary", "--ring", "1s", "-o", "run.trace.zst",
                         bench.recorded, "exit", "0")
        check(done.returncode == 0, f"{done}")
        check(part.read_bytes() == contents, "it was changed")
        check(len(bench.traces()) == 2 and not (bench.work / "run.trace.zst").exists(), f"{bench.traces()}")
        for trace in set(bench.traces()) - {bench.work / "whole.trace.zst"}:
            trace.unlink()


def taken_quietly(bench):
    """The same with --quiet: the tape says so once, however often the ring tries to turn."""
    tape = bench.work / "run.trace.zst.tape"
    book, process = start(bench, "-q", "-o", "run.trace.zst", ring="8s")
    part = bench.work / "run.trace.zst.part"
    check(not part.exists(), "too late")
    part.write_text("mine")
    wait_for(lambda: b"the ring cannot continue" in tape.read_bytes(), process)
    before = commit_of(tape)[1]
    for _ in range(3):
        wait_for(lambda: commit_of(tape)[1] > before, process)
        before = commit_of(tape)[1]
    check(tape.read_bytes().count(b"the ring cannot continue") == 1, "it fills the log")
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and err.count("the ring cannot continue") == 1, f"{status} {err}")


def name_taken(bench):
    """Somebody takes the name of the next part: the ring grows, and memtrace and the trace say so."""
    book, process = start(bench, ring="8s")
    part = bench.work / "run.trace.zst.part"
    check(not part.exists(), "too late")
    part.write_text("mine")
    wait_for_words(process, "the ring cannot continue")
    book.order(EXIT)
    status, err = end(process)
    check(status == 0 and err.count("the ring cannot continue") == 2, f"{status} {err}")
    check("not recorded: the ring cannot continue" in err and "File exists" in err, err)
    check(part.read_text() == "mine", "it was changed")


def no_descriptor(bench):
    """The next file cannot be created: the part before the current one stays."""
    book, process = start(bench)
    turn(bench, process, 2)
    child = command_of(process, "ringed")
    resource.prlimit(child, resource.RLIMIT_NOFILE, (0, resource.prlimit(child, resource.RLIMIT_NOFILE)[1]))
    wait_for_words(process, "the ring cannot continue")
    before = newest_part(bench)
    time.sleep(1.5)
    check(newest_part(bench) == before, "it has turned")
    check((bench.work / "run.trace.zst").exists() and part_exists(bench), "a part is gone")
    os.kill(child, signal.SIGKILL)
    status, err = end(process)
    check(status == -signal.SIGKILL and "not recorded: the ring cannot continue" in err, f"{status} {err}")
    check_trace(bench, book)


def sandboxed(bench):
    """A filter that the program installs ends it if a file is created or removed: it goes on, and the ring grows."""
    book, process = start(bench)
    turn(bench, process, 2)
    book.order(SANDBOX)
    wait_for_words(process, "the program is sandboxed", "no sandbox")
    book.order(EXIT)
    if "no sandbox" in heard(process):
        end(process)
        print("sandboxed: skipped, the kernel refuses filters")
        return
    status, err = end(process)
    check(status == 0 and "the program is sandboxed" in err, f"{status} {err}")
    check_trace(bench, book, exact=True)


def part_of(tape):
    """The number of the part that the last commit names."""
    return struct.unpack_from("<Q", tape.read_bytes(), commit_of(tape)[4] + PART)[0]


def foreign_trace(bench):
    """Somebody's trace, without a recording's number, has the name of the part before the last: it is not replaced."""
    trace, part, tape = (bench.work / f"run.trace.zst{suffix}" for suffix in ("", ".part", ".tape"))
    _, process = start(bench)
    child = command_of(process, "ringed")
    turn(bench, process)
    stop(child)
    while not part_of(tape) & 1:
        os.kill(child, signal.SIGCONT)
        turn(bench, process, 1)
        stop(child)
    process.kill()
    process.wait(timeout=600)
    os.kill(child, signal.SIGKILL)
    wait_for_end(child)
    trace.unlink()
    done = bench.run(bench.memtrace, "import", FIXTURES / "captures" / "cache.pickle.zst", "-o", trace)
    check(done.returncode == 0, f"{done}")
    before = bytes_of(trace, part, tape)
    done = bench.run(bench.memtrace, "recover", trace)
    check(done.returncode == 3 and b"its tape is of another recording" in done.stderr, f"{done}")
    check(bytes_of(trace, part, tape) == before, "a file was changed")


def change_a_byte(content):
    content[len(content) // 2] ^= 0xFF


def cut_the_end(content):
    del content[len(content) * 3 // 4:]


def damage_the_header(content):
    content[24] ^= 0xFF


def forget_the_contents(content):
    """As after a kill between the creation of a part and its header."""
    content.clear()


def damaged_part(bench):
    """The part before the last is damaged: the last one is kept, and the header says so. For both names."""
    for turns in (3, 4):
        book, process = start(bench, ring="3s")
        child = command_of(process, "ringed")
        turn(bench, process, turns)
        stop_in_part(bench, child)
        process.kill()
        process.wait(timeout=600)
        os.kill(child, signal.SIGKILL)
        wait_for_end(child)
        trace, part, tape = (bench.work / f"run.trace.zst{suffix}" for suffix in ("", ".part", ".tape"))
        good = [path.read_bytes() for path in (trace, part, tape)]
        number = part_of(tape)
        for damage in (change_a_byte, cut_the_end, damage_the_header, forget_the_contents):
            for path, content in zip((trace, part, tape), good):
                path.write_bytes(content)
            old = trace if number & 1 else part
            content = bytearray(old.read_bytes())
            damage(content)
            old.unlink()  # the new file is another one
            old.write_bytes(content)
            done = bench.run(bench.memtrace, "recover", "run.trace.zst")
            check(done.returncode in (0, 5) and b"not recorded: a part of the ring" in done.stdout,
                  f"{damage.__name__} of {number}: {done}")
            kept = Trace(bench.memtrace, trace, bench.environment())
            complaints, _ = compare(kept, book, THREADS, LIVE)
            check(not complaints, f"{damage.__name__}: {complaints}")
            check(not part.exists() and not tape.exists(), f"{damage.__name__}: a file is left")
        trace.unlink()
        (bench.work / "book").unlink()


def time_goes_back(bench):
    """Both files hold the same part, and the tape says that they follow each other: a damaged part."""
    book, process = start(bench)
    turn(bench, process)
    child = command_of(process, "ringed")
    stop_in_part(bench, child)
    process.kill()
    process.wait(timeout=600)
    os.kill(child, signal.SIGKILL)
    wait_for_end(child)
    trace, part, tape = (bench.work / f"run.trace.zst{suffix}" for suffix in ("", ".part", ".tape"))
    trace_bytes, _, events, _, at = commit_of(tape)
    number = part_of(tape)
    current = (part if number & 1 else trace).read_bytes()[:trace_bytes]
    for path in (trace, part):
        path.write_bytes(current)
    change(tape, at + PART, struct.pack("<QQQQ", number + 1, events, 0, events))
    done = bench.run(bench.memtrace, "recover", "run.trace.zst")
    check(done.returncode == 3 and b"a part of the ring is damaged: event" in done.stderr
          and b"running" not in done.stderr, f"{done}")
    check(trace.read_bytes() == current and part.exists() and tape.exists() and book.ready(), "a file was changed")


def full_disk(bench):
    """The disk is full while the ring turns: events that do not fit are counted."""
    disk = bench.work / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", disk], check=False,
                      capture_output=True).returncode:
        print("full_disk: skipped, no file system can be mounted")
        return
    try:
        book, process = start(bench, "-o", disk / "run.trace.zst")
        hog = disk / "hog"
        time.sleep(1.5)
        with open(hog, "wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass
        time.sleep(2)
        hog.unlink()
        time.sleep(2.5)
        book.order(EXIT)
        status, err = end(process)
        check(status == 0, f"{status} {err}")
        check_trace(bench, book, "disk/run.trace.zst", exact=True)
        check(sorted(path.name for path in disk.iterdir()) == ["run.trace.zst"], f"{list(disk.iterdir())}")
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def wrong_times(bench):
    for time_text in ("0", "1x", "", "-5s", "10000h", "99999999999999999999"):
        done = bench.run(bench.memtrace, "record", "--ring", time_text, "true")
        check(done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"--ring" in done.stderr, f"{done}")
    done = bench.run(bench.memtrace, "record", "--ring-above", "1GiB", "true")
    check(done.returncode == 2 and b"'--ring-above' needs --ring" in done.stderr, f"{done}")


if __name__ == "__main__":
    sys.exit(main([after_exit, after_kill, both_killed, launcher_alone_killed, at_signal, at_oom, above_a_limit, saver_dies,
                   idle_begins, idle_stops, idle_stacks, forks_after_stop, launcher_killed_after_stop,
                   launcher_killed_after_begin, outlived, stopped_before_it_began,
                   idle_killed, idle_lacks_two, idle_ring, above_while_idle, idle_processes, never_begun,
                   more_alive_than_events, short_run, saved_early, several_processes, document, foreign_part, name_taken, taken_quietly, no_descriptor,
                   sandboxed, foreign_trace, damaged_part, time_goes_back, full_disk, wrong_times]))
