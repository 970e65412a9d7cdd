"""Sections ends and beside: does everything stay as it is without us?"""
import os
import pathlib
import random
import signal
import subprocess
import time

from section_truth import fresh
from session import HERE, ROOT, TIMED_OUT, WORKLOADS

TORCH_KILLS = 10
LONGEST_S = 90


def last_words(done):
    return (done.stdout + done.stderr).strip().splitlines()[-1:] or [f"status {done.returncode}"]


def ends(session):
    """The tests of tests/record on the real driver, then PyTorch."""
    for name in ("ends", "places", "processes", "signals", "killed"):
        done = session.run([session.python, ROOT / "tests" / "record" / f"check_{name}.py", session.build], f"ends_{name}.txt",
                           MEMTRACE_TEST_DEVICE="gpu")
        session.add("ends", f"tests/record/check_{name}.py", done.returncode == 0, last_words(done)[0])
    for way in (("exit", "0"), ("exit", "3"), ("quick", "4"), ("segv",), ("abort",), ("error",)):
        compare(session, "ends", way)
    killed = sum(kill_training(session, number) for number in range(TORCH_KILLS))
    session.add("ends", "training killed at random", killed == TORCH_KILLS, f"{killed} of {TORCH_KILLS} traces are whole")


def beside(session):
    for way in ("profiler", "subscriber", "loader", "processes"):
        compare(session, "beside", (way,))
    for way in ("once", "twice"):
        compare(session, "beside", ("profiler", way), TEARDOWN_CUPTI="1")
    # it asks dlsym for CUPTI's functions, so that the place cannot be shared with it
    compare(session, "beside", ("jax's", "profiler"), [session.python, HERE / "frameworks.py", "jax_profiled"], MEMTRACE_CUPTI="none")
    guests(session)


def guests(session):
    """A profiler that is linked to CUPTI, as on the stand-ins (tests/check_guest.py)."""
    found = "import re, torch; torch.cuda.init(); print(*{p.rsplit('/', 1)[0] for p in re.findall('/.*/lib(?:cuda|cupti).so.*', open('/proc/self/maps').read())}, sep=':')"
    libraries = session.run([session.python, "-c", found]).stdout.strip()
    for way in ("before", "after", "v2", "finalize", "threads"):
        compare(session, "beside", ("guest", way), [session.build / "standin" / "guest_program", way], LD_LIBRARY_PATH=libraries)


def compare(session, section, way, command=None, **environment):
    """Same output and status with and without; every trace whole; nothing else left."""
    command = command or [session.python, HERE / "beside.py", *way]
    name = " ".join(way)
    alone = session.run(command, f"{section}_{'_'.join(way)}_alone.txt", timeout=LONGEST_S, **environment)
    if alone.returncode == TIMED_OUT:
        session.add(section, name, None, f"does not end within {LONGEST_S} s, without memtrace")
        return
    folder = fresh(session, f"{section}_{'_'.join(way)}")
    done, document = session.record(folder, command, log=f"{section}_{'_'.join(way)}.txt", timeout=LONGEST_S, **environment)
    session.add(section, f"{name}: as without", (done.returncode, done.stdout) == (alone.returncode, alone.stdout),
                f"status {done.returncode}, without {alone.returncode}; {done.stdout.strip()[-80:]}")
    states = [trace["state"] for trace in document["traces"]]
    left = [path.name for path in folder.iterdir() if not path.name.endswith(".trace.zst")]
    session.add(section, f"{name}: traces", states and set(states) <= {"whole", "recovered"} and not left,
                f"{len(states)} ({', '.join(sorted(set(states)))}), {sum(t.get('events', 0) for t in document['traces'])} events"
                + (f"; left behind: {left}" if left else ""))
    said = [line for line in done.stderr.splitlines() if line.startswith("memtrace: ")]
    if said:
        session.add(section, f"{name}: said", None, said[0])


def kill_training(session, number):
    """One training run, killed with kill -9: is its trace whole?"""
    folder = fresh(session, f"kill{number}")
    process = subprocess.Popen([session.memtrace, "record", "-q", "-o", f"{folder}/", session.python, str(WORKLOADS / "train.py"), "gpt",
                                f"{folder}/gpt", "--no-history"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(folder.glob("*.tape")):
        time.sleep(0.01)
    time.sleep(random.Random(number).uniform(0, 5))
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    process.wait(timeout=120)
    traces = list(folder.glob("*.trace.zst"))
    done = session.run([session.memtrace, "info", "--strict", *traces]) if len(traces) == 1 else None
    return bool(done and done.returncode == 0 and not list(folder.glob("*.tape")))
