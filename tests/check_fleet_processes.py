#!/usr/bin/env python3
"""`memtrace fleet` by threads, shards, random trees of merges and processes of MPI: the same bytes.

    check_fleet_processes.py PROGRAM FIXTURES [MPIRUN]

Without MPIRUN, what needs MPI is left out, with a word. A process of MPI that dies ends the others.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_SECONDS = 600  # ends what hangs
problems = []


def complain(text):
    problems.append(text)
    print(f"check_fleet_processes: {text}", file=sys.stderr)


def environment():
    """MPI keeps memory until the process ends: no leaks of ours are looked for under it."""
    return {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "NO_COLOR": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_btl": "self,vader"}


def run(*words, expected=0):
    done = subprocess.run(words, capture_output=True, env=environment(), timeout=900, check=False)
    if done.returncode != expected:
        complain(f"{' '.join(words)}: status {done.returncode} instead of {expected}: "
                 f"{done.stderr.decode(errors='replace')[-500:]}")
    return done


def read(path):
    with open(path, "rb") as file:
        return file.read()


def make_job(program, fixtures, folder):
    """Summaries of real traces, as ranks of one job, and a file that is damaged."""
    traces = sorted(name for name in os.listdir(fixtures) if name.endswith(".trace.zst"))[:6]
    for number, name in enumerate(traces):
        shutil.copy(os.path.join(fixtures, name), f"{folder}/run-rank{number}.trace.zst")
    run(program, "fleet", "--summarize", folder)
    for number in range(len(traces)):
        os.remove(f"{folder}/run-rank{number}.trace.zst")
    sound = read(f"{folder}/run-rank0.trace.zst.mtsum")
    with open(f"{folder}/run-rank9.trace.zst.mtsum", "wb") as file:
        file.write(sound[:len(sound) // 2])
    if len(traces) != 6:
        complain(f"only {len(traces)} traces in {fixtures}")


def check_threads(program, folder, place):
    """What one thread writes and prints is what all others have to."""
    first = None
    for threads in ("1", "2", "3", "4"):
        out = f"{place}/threads{threads}.mtsum"
        done = run(program, "fleet", "-j", threads, "-o", out, "--json", folder, expected=3)
        answer = (read(out), done.stdout, done.stderr)
        first = first or answer
        if answer != first:
            complain(f"{threads} threads give other bytes than one")
    if b"run-rank9" not in first[2]:
        complain("the damaged file is not named")
    return first


def merge_in_a_tree(program, parts, place, dice):
    """Two random files become one until one is left."""
    parts = list(parts)
    while len(parts) > 1:
        dice.shuffle(parts)
        count = dice.randint(2, min(3, len(parts)))
        out = f"{place}/merged{dice.getrandbits(48)}.mtsum"
        run(program, "fleet", "--shard", "1/1", "-o", out, *parts[:count])
        parts[:count] = [out]
    return parts[0]


def check_trees(program, folder, place, expected):
    sound = sorted(f"{folder}/{name}" for name in os.listdir(folder) if "rank9" not in name)
    for seed in range(10):
        dice = random.Random(seed)
        merged = merge_in_a_tree(program, sound, place, dice)
        if read(merged) != expected:
            complain(f"tree {seed} of merges gives other bytes")
    parts = []
    for number in (1, 2, 3):
        parts.append(f"{place}/part{number}.mtsum")
        done = subprocess.run([program, "fleet", "--shard", f"{number}/3", "-o", parts[-1], folder],
                              capture_output=True, env=environment(), timeout=900, check=False)
        if done.returncode not in (0, 3):
            complain(f"shard {number} of 3: status {done.returncode}")
    if read(merge_in_a_tree(program, parts, place, random.Random(99))) != expected:
        complain("three shards give other bytes")


def check_mpi(program, folder, place, mpirun, expected):
    start = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n"]
    for count in ("1", "2", "3", "8"):
        out = f"{place}/mpi{count}.mtsum"
        done = run(*start, count, program, "fleet", "-o", out, "--json", folder, expected=3)
        if not os.path.exists(out) or read(out) != expected[0]:
            complain(f"{count} processes give other bytes than one")
        if done.stdout != expected[1]:
            complain(f"{count} processes print another answer than one")
        if b"run-rank9" not in done.stderr:
            complain(f"{count} processes: the damaged file is not named")
    for victim in ("the reader", "another"):
        check_death(program, folder, place, [*start, "3"], victim)


def has_ended(pid):
    """Also if nobody has asked for its status yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def has_open(pid, path):
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # it has ended
        return False
    for number in numbers:
        try:
            if os.readlink(f"/proc/{pid}/fd/{number}") == path:
                return True
        except OSError:  # closed in between
            continue
    return False


def process_that_reads(pids, path):
    """Which of the processes has the file open. Its own open may return later than ours."""
    began = time.monotonic()
    while time.monotonic() - began < LIMIT_SECONDS:
        for pid in pids:
            if has_open(pid, path):
                return pid
        time.sleep(0.1)
    return None


def open_when_read(path, job):
    """The end of a FIFO that writes, once a process waits at the other end. -1: none does."""
    began = time.monotonic()
    while job.poll() is None and time.monotonic() - began < LIMIT_SECONDS:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.1)
    return -1


def wait_for_end(processes, stderr):
    """True once all processes have ended and mpirun has said why.

    mpirun itself is not waited for: that of Open MPI 4.1.4 sometimes waits forever in
    PMIx_server_finalize after it has killed all processes and said so."""
    began = time.monotonic()
    while time.monotonic() - began < LIMIT_SECONDS:
        if all(has_ended(pid) for pid in processes) and b"signal 9" in read(stderr):
            return True
        time.sleep(0.05)
    return False


def end_mpirun(job):
    try:
        job.wait(5)
    except subprocess.TimeoutExpired:
        job.kill()
    return job.wait()


def check_death(program, folder, place, start, victim):
    """One process waits for a file that never ends, the others wait for it. Then one is killed."""
    name = victim.replace(" ", "-")
    fifo, pids, stderr = f"{place}/{name}.mtsum", f"{place}/{name}.pids", f"{place}/{name}.stderr"
    os.mkfifo(fifo)
    os.mkdir(pids)
    script = f'touch {pids}/$$; exec "$@"'
    with open(stderr, "wb") as said, \
            subprocess.Popen([*start, "sh", "-c", script, "sh", program, "fleet", folder, fifo],
                             stdout=subprocess.DEVNULL, stderr=said, env=environment()) as job:
        end = open_when_read(fifo, job)
        processes = [int(pid) for pid in os.listdir(pids)]
        reader = process_that_reads(processes, fifo) if end >= 0 else None
        if reader is None or len(processes) != 3:
            complain(f"no process of {processes} reads {fifo}: {read(stderr)[-500:]!r}")
            job.kill()
            return
        other = next(pid for pid in processes if pid != reader)
        os.kill(reader if victim == "the reader" else other, signal.SIGKILL)
        ended = wait_for_end(processes, stderr)
        os.close(end)
        status = end_mpirun(job)
    if not ended or status == 0:
        complain(f"{victim} was killed; {'' if ended else 'the others did not end; '}status {status}: "
                 f"{read(stderr)[-500:]!r}")


def check_without_mpi(program, folder, place):
    """Several processes without the library that joins them: each says so, and writes nothing."""
    alone = f"{place}/alone"
    os.mkdir(alone)
    shutil.copy(program, f"{alone}/memtrace")
    done = subprocess.run([f"{alone}/memtrace", "fleet", "-o", f"{place}/no.mtsum", folder],
                          capture_output=True, timeout=900, check=False,
                          env={**environment(), "OMPI_COMM_WORLD_SIZE": "2"})
    if done.returncode != 2 or b"--shard" not in done.stderr or os.path.exists(f"{place}/no.mtsum"):
        complain(f"two processes without MPI: status {done.returncode}: {done.stderr.decode()}")


def main():
    program, fixtures = os.path.abspath(sys.argv[1]), sys.argv[2]
    mpirun = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else None
    with tempfile.TemporaryDirectory() as place:
        folder = f"{place}/job"
        os.mkdir(folder)
        make_job(program, fixtures, folder)
        expected = check_threads(program, folder, place)
        check_trees(program, folder, place, expected[0])
        check_without_mpi(program, folder, place)
        if mpirun:
            check_mpi(program, folder, place, mpirun, expected)
        else:
            print("check_fleet_processes: no mpirun: processes of MPI were not tried")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
