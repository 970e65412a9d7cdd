"""Section harm: a program that closes descriptors, a recorder without memory, a full disk."""
import os
import pathlib
import shutil
import subprocess
import time

from section_truth import fresh
from session import HERE

RUNS = 10  # each way
WHOLE = {"whole", "recovered"}


def files_of(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def facts(document):
    """States, events and lost events of the traces."""
    traces = document["traces"]
    states = sorted({trace["state"] for trace in traces})
    events = sum(trace.get("events", 0) for trace in traces)
    dropped = sum(trace.get("events_dropped", 0) for trace in traces)
    return f"{len(traces)} traces ({', '.join(states)}), {events} events, {dropped} counted as lost"


def said(done):
    lines = [line for line in done.stderr.splitlines() if line.startswith("memtrace: ")]
    return f"; said: {lines[0]}" if lines else ""


def keeps_files(session, way):
    """Output and files as without memtrace."""
    alone_folder, folder = fresh(session, f"harm_{way}_alone"), fresh(session, f"harm_{way}")
    alone = session.run([session.python, HERE / "harm.py", way, alone_folder], f"harm_{way}_alone.txt", timeout=90)
    done, document = session.record(fresh(session, f"harm_{way}_traces"), [session.python, HERE / "harm.py", way, folder],
                                    log=f"harm_{way}.txt", timeout=90)
    same = (done.returncode, done.stdout) == (alone.returncode, alone.stdout) and alone.returncode == 0
    session.add("harm", f"{way}: output", same, f"{done.stdout.strip()[-60:]} (status {done.returncode}, alone {alone.returncode})")
    ours, theirs = files_of(folder), files_of(alone_folder)
    changed = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    session.add("harm", f"{way}: {len(theirs)} files", bool(theirs) and not changed, f"changed: {changed}" if changed else "as without memtrace")
    states = {trace["state"] for trace in document["traces"]}
    session.add("harm", f"{way}: traces", bool(states) and states <= WHOLE, facts(document) + said(done))


def with_shim(session, log, **environment):
    """A training whose allocations by the recorder are counted, and fail as `environment` says."""
    log.unlink(missing_ok=True)
    folder = fresh(session, "harm_memory")
    return session.record(folder, [session.python, HERE / "harm.py", "train"], log="harm_memory.txt", timeout=120,
                          LD_PRELOAD=str(next(session.build.rglob("fail_alloc.so"))), FAIL_ALLOC_CALLER="libmemtrace-inject",
                          FAIL_ALLOC_THREAD="memtrace", FAIL_ALLOC_PROGRAM="python", FAIL_ALLOC_LOG=str(log), **environment)


def counted(log, word):
    lines = log.read_text().split("\n") if log.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith(word)]


def is_sound(done, document):
    """Every trace is whole, or something says what is missing."""
    states = {trace["state"] for trace in document["traces"]}
    complete = bool(states) and states <= WHOLE and all(trace.get("complete", True) for trace in document["traces"])
    return complete or "memtrace: " in done.stderr


def spread(most, count):
    """`count` numbers from 1 to `most`, denser where small."""
    return sorted({max(1, round(most ** (i / (count - 1)))) for i in range(count)})


def no_memory(session):
    alone = session.run([session.python, HERE / "harm.py", "train"], "harm_train_alone.txt", timeout=90)
    log = session.out / "harm_memory.log"
    done, document = with_shim(session, log)
    total = max(counted(log, "total"), default=0)
    session.add("harm", "allocations of the recorder are counted", total > 100 and done.stdout == alone.stdout,
                f"{total} allocations; status {done.returncode}, {facts(document)}{said(done)}")
    for from_there_on in (False, True):
        wrong, notes, failed = [], set(), 0
        for number in spread(max(total, 1), RUNS):
            extra = {"FAIL_ALLOC": str(number), **({"FAIL_ALLOC_FROM": "1"} if from_there_on else {})}
            done, document = with_shim(session, log, **extra)
            failed += bool(counted(log, "failed"))
            if (done.returncode, done.stdout) != (alone.returncode, alone.stdout) or not is_sound(done, document):
                wrong.append(f"{number}: status {done.returncode}, {facts(document)}{said(done)}")
            notes.add(facts(document).split(",")[0])
        name = "all from n on" if from_there_on else "alone"
        session.add("harm", f"allocation n of the recorder fails, {name}", not wrong and failed >= RUNS - 2,
                    "; ".join(wrong) or f"{failed} runs, n from 1 to {total}: output as without; {', '.join(sorted(notes))}")


def full_disk(session):
    """The trace's disk is full for 3 of 10 seconds, and has room again."""
    folder = fresh(session, "harm_disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=True)
    try:
        process = subprocess.Popen([session.memtrace, "record", "--json", "-o", f"{folder}/", "--", session.python, str(HERE / "harm.py"), "steady", "10"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(folder.glob("*.tape")):
            time.sleep(0.05)
        time.sleep(4)
        subprocess.run(["sh", "-c", f"head -c 1G /dev/zero > {folder}/hog"], stderr=subprocess.DEVNULL, check=False)
        time.sleep(3)
        os.unlink(folder / "hog")
        out, errors = process.communicate(timeout=90)
        traces = list(folder.glob("*.trace.zst"))
        info = session.run([session.memtrace, "info", "--strict", *traces], "harm_disk_info.txt")
        session.add("harm", "full disk: output", out.strip() == "steady True" and process.returncode == 0, f"{out.strip()}, status {process.returncode}")
        lines = [line for line in errors.splitlines() if line.startswith("memtrace: ")]
        session.add("harm", "full disk: trace", info.returncode == 0 and not list(folder.glob("*.tape")), "; ".join(lines)[:300] or "whole")
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def harm(session):
    for way in ("closes", "daemon"):
        keeps_files(session, way)
    no_memory(session)
    full_disk(session)
