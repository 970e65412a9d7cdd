#!/usr/bin/env python3
"""check_places.py BUILD [CASE...]: where traces go, and what happens where they
cannot."""
import fcntl
import os
import re
import resource
import signal
import subprocess
import sys
import time

from support import check, command_of, main, only
import tapes
from tapes import is_running


def names(bench):
    """Without -o: the program's name and process."""
    done = bench.run(bench.memtrace, "record", bench.recorded, "exit", "0")
    trace = only(bench.traces())
    check(re.fullmatch(r"recorded-\d+\.trace\.zst", trace.name), trace.name)
    check(f"-{bench.info(trace)['header']['process_id']}." in trace.name, trace.name)
    check(trace.name.encode() in done.stderr, f"{done.stderr}")
    trace.unlink()
    (bench.work / "train.py").write_text(
        f"import subprocess, sys\nsys.exit(subprocess.call(['{bench.recorded}', 'exit', '0']))\n")
    for command, stem in ((["train.py"], "train"), (["-u", "./train.py", "--lr", "3"], "train"),
                          (["-m", "train"], "train")):
        bench.run(bench.memtrace, "record", "python3", *command)
        trace = only(bench.traces())
        check(re.fullmatch(stem + r"-\d+\.trace\.zst", trace.name), f"{command}: {trace.name}")
        trace.unlink()


def a_list_of_traces_with_a_cut_line(bench):
    """A process whose line was cut does not hide the trace of the next one. Its own trace is unknown,
    so the status is not that of a complete recording."""
    script = f'printf "/cut" >>"$MEMTRACE_MANIFEST"; "{bench.recorded}" exit 0'
    done = bench.record("sh", "-c", script)
    trace = only(bench.traces())
    check(done.returncode == 5 and trace.name.encode() in done.stderr, f"{done}")
    check(not list(bench.work.glob("*.tape")), "the tape was left")


LIST = "# traces of a run of memtrace record\n"


def full_list(folder):
    """A list of traces to which nothing can be added: the file system has no larger files."""
    folder.mkdir(parents=True)
    path = folder / ".memtrace-full12"
    path.write_text(LIST)
    possible, too_large = len(LIST), 1 << 63
    while too_large - possible > 1:
        size = (possible + too_large) // 2
        try:
            os.truncate(path, size)
            possible = size
        except OSError:
            too_large = size
    return path


def a_list_of_traces_that_is_full(bench):
    """The process says what to run, since `memtrace record` does not know its trace."""
    full = full_list(bench.work / "lists")
    done = bench.record("sh", "-c", f'MEMTRACE_MANIFEST="{full}" "{bench.recorded}" exit 0')
    check(b"/.memtrace-full12': File too large\nmemtrace: when the program has ended, "
          b"run: memtrace recover /" in done.stderr, f"{done}")
    (bench.work / "file").touch()  # a list that cannot be opened
    done = bench.record("sh", "-c", f'MEMTRACE_MANIFEST="{bench.work}/file/.memtrace-abcdef" "{bench.recorded}" exit 0')
    check(b"file/.memtrace-abcdef': Not a directory\nmemtrace: when the program has ended, run: memtrace recover /"
          in done.stderr, f"{done}")
    deep = full_list(bench.work / ("d" * 200) / ("e" * 200))
    done = bench.record("sh", "-c", f'MEMTRACE_MANIFEST="{deep}" "{bench.recorded}" exit 0')
    lines = done.stderr.splitlines()
    at = next(i for i, line in enumerate(lines) if b"/.memtrace-full12': " in line)
    check(lines[at].endswith(b"': File too large") and
          lines[at + 1].startswith(b"memtrace: when the program has ended, run: memtrace recover /") and
          lines[at + 1].endswith(b".trace.zst"), f"the command is not whole: {lines}")


def files_that_are_not_lists(bench):
    """A process writes to lists of traces only. At its end it removes one that nobody waits for,
    and nothing else that MEMTRACE_MANIFEST may name."""
    folder = bench.work / "lists"  # `record` removes those in the folder of the traces
    folder.mkdir()
    real, linked = folder / ".memtrace-abcdef", folder / ".memtrace-linked"
    twice, again = folder / ".memtrace-twice1", folder / "again"
    notes, named = folder / ".memtrace-notes1", folder / "list.txt"
    pipe = folder / ".memtrace-fifo12"
    for path in (real, twice, named):
        path.write_text(LIST)
    notes.write_text("precious\n")
    before = {path: path.read_text() for path in (real, twice, named, notes)}
    linked.symlink_to(real.name)
    os.link(twice, again)
    os.mkfifo(pipe)
    kept = [linked, twice, again, notes, named, pipe]
    if os.getuid() == 0:
        theirs = folder / ".memtrace-theirs"
        theirs.write_text(LIST)
        os.chown(theirs, 65534, 65534)
        kept.append(theirs)
    for path in kept:
        bench.record("sh", "-c", f'MEMTRACE_MANIFEST="{path}" "{bench.recorded}" exit 0')
        check(os.path.lexists(path), f"{path.name} was removed")
    check(before == {path: path.read_text() for path in before}, "another file was written to")
    bench.record("sh", "-c", f'MEMTRACE_MANIFEST="{real}" "{bench.recorded}" exit 0')
    check(not real.exists(), "a list that nobody waits for was left")


def run_to_its_end(bench, meanwhile):
    """A process that no `memtrace record` waits for; `meanwhile(tape)` while it runs."""
    flag, tape = bench.work / "flag", bench.work / "run.trace.zst.tape"
    flag.touch()
    process = bench.start(bench.memtrace, "record", "-o", "run.trace.zst", "sh", "-c",
                          f'MEMTRACE_MANIFEST= "{bench.recorded}" wait "{flag}"')
    while not tape.exists() or not tapes.commit_of(tape)[0]:
        check(process.poll() is None, f"it ended: {process.returncode}")
        time.sleep(0.001)
    tapes.wait_until_written(tape)
    meanwhile(tape)
    flag.unlink()
    process.communicate(timeout=600)
    return tape


def a_tape_that_is_another_file(bench):
    """At its end a process removes its tape, and not what has come to that name."""
    def replace(tape):
        tape.rename(bench.work / "moved")
        tape.write_text("precious\n")

    check(not run_to_its_end(bench, lambda tape: None).exists(), "its own tape was left")
    tape = run_to_its_end(bench, replace)
    check(tape.exists() and tape.read_text() == "precious\n", "another file was removed")


def tape_names_in_use(bench):
    """A trace gets another name where a file that is no tape, or the tape of a process that runs,
    lies beside its place. A tape that a dead process left makes way."""
    tape = bench.work / "run.trace.zst.tape"
    tape.write_text("precious\n")
    bench.record(bench.recorded, "exit", "0")
    check(tape.read_text() == "precious\n", "a file that is no tape was removed")
    check(re.fullmatch(r"run-\d+\.trace\.zst", only(bench.traces()).name), f"{bench.traces()}")
    bench.check_whole(only(bench.traces()))
    only(bench.traces()).unlink()
    tape.unlink()

    def record_again(tape):
        (bench.work / "run.trace.zst").unlink()
        before = tape.stat().st_ino
        bench.run(bench.memtrace, "record", "-o", "other.trace.zst", "sh", "-c",
                  f'MEMTRACE_OUTPUT="{bench.work}/run.trace.zst" "{bench.recorded}" exit 0')
        check(tape.exists() and tape.stat().st_ino == before, "the tape of a process is gone")

    run_to_its_end(bench, record_again)
    bench.check_whole(only(bench.traces()))
    only(bench.traces()).unlink()
    trace, tape = tapes.leave(bench)
    trace.unlink()
    bench.record(bench.recorded, "exit", "0")
    bench.check_whole(trace)
    check(not tape.exists(), "the tape of a dead process is in the way")


def tapes_that_were_not_begun(bench):
    """A process that died before it wrote the magic leaves a tape without it: that makes way. A
    file that begins with anything else stays."""
    tape = bench.work / "run.trace.zst.tape"
    for content in (b"", b"\0", bytes(64), bytes(8192)):
        tape.write_bytes(content)
        for _ in range(2):
            bench.record(bench.recorded, "exit", "0")
            check(only(bench.traces()).name == "run.trace.zst",
                  f"a tape of {len(content)} zeros is in the way: {bench.traces()}")
            bench.check_whole(only(bench.traces()))
        only(bench.traces()).unlink()
        bench.check_left()
    tape.write_bytes(b"mine")
    bench.record(bench.recorded, "exit", "0")
    check(tape.read_bytes() == b"mine", "a file that is no tape was removed")


def folders(bench):
    """One file a process, with its rank."""
    script = f'RANK=0 "{bench.recorded}" exit 0 && RANK=1 WORLD_SIZE=2 "{bench.recorded}" exit 0'
    for output in ("traces/", "traces"):
        done = bench.run(bench.memtrace, "record", "-o", output, "sh", "-c", script)
        check(done.returncode == 0, f"{done}")
        found = bench.traces(bench.work / "traces")
        host = os.uname().nodename
        for trace, rank in zip(sorted(found, key=lambda path: path.name[-12:]), range(2)):
            check(re.fullmatch(re.escape(host) + rf"-\d+-rank{rank}\.trace\.zst", trace.name),
                  f"{trace.name}")
            check(bench.info(trace)["header"]["rank"] == rank, "the rank in the header")
            trace.unlink()
        check(len(found) == 2, f"{found}")
        left = [path.name for path in (bench.work / "traces").iterdir() if path.suffix != ".mtsum"]
        check(not left, f"more than traces was left: {left}")


def folders_around_folders(bench):
    """`-o traces/JOB/` in a script of a scheduler: nobody made traces/ before. What stays empty goes again."""
    done = bench.run(bench.memtrace, "record", "-o", "traces/77//", bench.recorded, "exit", "0")
    check(done.returncode == 0, f"{done}")
    bench.check_whole(only(bench.traces(bench.work / "traces" / "77")))
    done = bench.run(bench.memtrace, "record", "-o", "traces/78/a/", bench.recorded, "plain", "0")
    left = [path.name for path in (bench.work / "traces").iterdir()]
    check(done.returncode == 0 and left == ["77"], f"{done} {left}")


def folders_that_many_ranks_make(bench):
    """All of them at the same time."""
    command = [bench.memtrace, "record", "-q", "-o", "a/b/c/d/e/", bench.recorded, "exit", "0"]
    ranks = [bench.start(*command) for _ in range(7)]
    for rank in ranks:
        said = rank.communicate(timeout=600)
        check(rank.returncode == 0, f"{said}")
    check(len(bench.traces(bench.work / "a/b/c/d/e")) == 7, "a trace is missing")


def folders_that_cannot_be_made(bench):
    """The reason is that of the first one."""
    (bench.work / "file").touch()
    for output, why in (("file/", b"Not a directory"), ("file/a/", b"Not a directory"),
                        ("/proc/a/b/", b"No such file or directory"), (f"a/{'x' * 300}/", b"File name too long"),
                        ("b/" * 3000, b"")):
        done = bench.run(bench.memtrace, "record", "-o", output, bench.recorded, "exit", "0")
        check(done.returncode == 4 and why in done.stderr, f"{done.returncode} {done.stderr}")
    check([path.name for path in bench.work.iterdir()] == ["file"], f"{list(bench.work.iterdir())}")


def more_than_one_process(bench):
    """The first has FILE, the others their process in the name."""
    script = f'"{bench.recorded}" exit 0; "{bench.recorded}" exit 0; exit 9'
    done = bench.record("sh", "-c", script)
    found = bench.traces()
    check(done.returncode == 9 and len(found) == 2, f"{done} {found}")
    check(re.fullmatch(r"run-\d+\.trace\.zst", found[0].name) and found[1].name == "run.trace.zst",
          f"{found}")
    for trace in found:
        bench.check_whole(trace)
        check(trace.name.encode() in done.stderr, f"{trace} is not named: {done.stderr}")


def follow_none(bench):
    done = bench.run(bench.memtrace, "record", "--follow", "none", "-o", "run.trace.zst",
                     bench.recorded, "forkexec")
    bench.check_whole(only(bench.traces()))
    check(done.returncode == 0, f"{done}")


def follow_none_leaves_no_environment(bench):
    """A child that is not recorded passes on the environment that it would have without
    memtrace; the command itself may become another program, and is recorded."""
    words = ("LD_PRELOAD", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "CUDA_INJECTION", "NVTX_INJECTION", "MEMTRACE_")
    for more in ({}, {"ASAN_OPTIONS": "verify_asan_link_order=0",
                      "CUDA_INJECTION64_PATH": "/opt/tool.so"}):
        environment = bench.environment(**more)
        script = "sh -c 'env >found; true'; true"
        bench.run("sh", "-c", script, environment=environment)
        wanted = (bench.work / "found").read_text()
        done = bench.run(bench.memtrace, "record", "--follow", "none", "-o", "run.trace.zst", "--",
                         "sh", "-c", script + f'; exec "{bench.recorded}" exit 0',
                         environment=environment)
        found = (bench.work / "found").read_text()
        of = [{line for line in text.splitlines() if line.startswith(words)}
              for text in (wanted, found)]
        check(of[0] == of[1], f"{of[0] ^ of[1]}")
        check(done.returncode == 0, f"{done}")
        bench.check_whole(only(bench.traces()))


def leftovers(bench):
    """What a killed launcher left goes away with the next run; nothing else does."""
    flag = bench.work / "flag"
    flag.touch()
    process = bench.start(bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded, "wait",
                          flag)
    while not (bench.work / "run.trace.zst.tape").exists():
        time.sleep(0.001)
    child = command_of(process, "recorded")
    process.kill()
    process.wait(timeout=600)
    os.kill(child, signal.SIGKILL)
    while is_running(child):
        time.sleep(0.001)
    process.communicate(timeout=600)
    stale = list(bench.work.glob(".memtrace-??????"))
    claim = only(bench.work.glob(".memtrace-*.tmp"))  # of run.trace.zst
    os.utime(claim, (1, 1))
    check(len(stale) == 1, f"{stale}")
    kept = [bench.work / name for name in (".memtrace-abcdef", ".memtrace-notes", "mine")]
    for path in kept:
        path.write_text("mine\n")
    (bench.work / ".memtrace-linked").symlink_to(stale[0].name)
    held = open(bench.work / ".memtrace-locked", "w+", encoding="utf-8")
    held.write(stale[0].read_text())
    held.flush()
    fcntl.flock(held, fcntl.LOCK_EX)
    unfinished = [bench.work / f".memtrace-{digit * 16}.tmp" for digit in "0123"]
    for path in unfinished:
        path.touch()
    unfinished[2].write_text("<svg")  # of another command, whose kind cannot be told
    in_use = open(unfinished[3], "w", encoding="utf-8")
    fcntl.flock(in_use, fcntl.LOCK_EX)
    for path in unfinished[1:]:
        os.utime(path, (1, 1))
    done = bench.run(bench.memtrace, "record", "-o", "other.trace.zst", bench.recorded, "exit", "0")
    check(done.returncode == 0, f"{done}")
    check(not stale[0].exists(), f"the list of the killed run is left: {stale}")
    check(not claim.exists(), "the claim of the killed run is left")
    check(all(path.read_text() == "mine\n" for path in kept), "a file of the user is gone")
    check((bench.work / ".memtrace-linked").is_symlink(), "a link is gone")
    check((bench.work / ".memtrace-locked").exists(), "a list that is in use is gone")
    check([path.exists() for path in unfinished] == [True, False, True, True], "unfinished files")
    held.close()
    in_use.close()


def replaced_files(bench):
    """A trace is replaced; what is none is not."""
    for status in (3, 4):
        check(bench.record(bench.recorded, "exit", status).returncode == status, "run again")
        bench.check_whole(only(bench.traces()))
    (bench.work / "train.py").write_text("print('precious')\n")
    done = bench.run(bench.memtrace, "record", "-o", "train.py", bench.recorded, "exit", "0")
    check(done.returncode == 4 and b"not a trace" in done.stderr, f"{done}")
    check((bench.work / "train.py").read_text() == "print('precious')\n", "it was overwritten")


def unwritable(bench):
    """Said before the command starts, which then does not start."""
    os.mkfifo(bench.work / "pipe")
    for output in ("/proc/run.trace.zst", "/proc/", "/sys/kernel/run.trace.zst",
                   "missing/run.trace.zst", "pipe", ""):
        done = bench.run(bench.memtrace, "record", "-o", output, "touch", bench.work / "started")
        check(done.returncode == 4, f"'{output}': {done}")
        check(done.stderr.count(b"\n") == 1 and b"cannot write" in done.stderr, f"{done}")
    done = bench.run(bench.memtrace, "record", "touch", bench.work / "started", cwd="/proc")
    check(done.returncode == 4 and b"use -o" in done.stderr, f"{done}")
    bench.check_left("pipe")


def file_size_limit(bench):
    """A limit on files: said before; the program is not killed by SIGXFSZ."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    done = bench.record(bench.recorded, "exit", "0", preexec_fn=limit)
    check(done.returncode == 4 and b"cannot write" in done.stderr, f"{done}")
    bench.check_left()
    # The same limit, hit while the program runs: it goes on.
    script = f'ulimit -f 1024; "{bench.recorded}" exit 6'
    done = bench.record("bash", "-c", script)
    check(done.returncode == 6, f"{done}")


def full_disk(bench):
    """Too little room: said before. Full while it runs: the program goes on."""
    disk = bench.work / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", disk],
                             capture_output=True, check=False).returncode == 0
    if not mounted:
        print("full_disk: not root: skipped")
        return
    try:
        done = bench.run(bench.memtrace, "record", "-o", "disk/a.trace.zst", "sh", "-c",
                         f'cat /dev/zero >disk/filler 2>/dev/null; "{bench.recorded}" exit 6')
        check(done.returncode == 6, f"the program is not itself: {done}")
        check(b"space" in done.stderr, f"nobody says why: {done}")
        done = bench.run(bench.memtrace, "record", "-o", "disk/b.trace.zst", "true")
        check(done.returncode == 4 and b"space" in done.stderr, f"{done}")
    finally:
        subprocess.run(["umount", disk], check=True)


if __name__ == "__main__":
    sys.exit(main([names, folders, folders_around_folders, folders_that_many_ranks_make, folders_that_cannot_be_made,
                   a_list_of_traces_with_a_cut_line,
                   a_list_of_traces_that_is_full, files_that_are_not_lists, a_tape_that_is_another_file,
                   tape_names_in_use, tapes_that_were_not_begun, more_than_one_process,
                   follow_none, follow_none_leaves_no_environment, leftovers, replaced_files,
                   unwritable, file_size_limit, full_disk]))
