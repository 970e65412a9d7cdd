"""Sections truth, driver, ranks, frameworks: is what the trace says true?"""
import json
import shutil

from session import HERE, ROOT, WORKLOADS, gib

EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
RUNS = [("seq2seq", "train.py", {}), ("gpt", "train.py", {}), ("leakval", "train.py", {}), ("streams", "train.py", {}),
        ("graph", "train.py", {}), ("churn", "train.py", {}), ("gpt_expandable", "train.py", EXPANDABLE),
        ("churn_expandable", "train.py", EXPANDABLE), ("threads", "pools_and_threads.py", {}), ("mempool", "pools_and_threads.py", {})]


def last_line(done):
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[-1] if lines else f"status {done.returncode}"


def check_peaks(session, name, trace, truth):
    """To the byte, against torch.cuda.memory_stats()."""
    done = session.run([session.memtrace, "analyze", "--json", trace["path"]], f"{name}.analyze.json")
    if done.returncode:
        session.add("truth", f"{name}: peaks", False, f"analyze ends with {done.returncode}")
        return
    summary = json.loads(done.stdout)["devices"][0]["summary"]
    for kind in ("requested", "allocated", "active", "reserved"):
        ours, theirs = summary[f"{kind}_peak"]["bytes"], max(row[f"{kind}_peak"] for row in truth["rows"])
        session.add("truth", f"{name}: peak {kind}", ours == theirs, gib(theirs) if ours == theirs else f"{ours} bytes, PyTorch says {theirs}")


def check_events(session, name, trace, folder, stem):
    """Kind, address, requested bytes and stream of every event, and every row of the truth."""
    compare = ROOT / "tests" / "paper_gpu" / "compare.py"
    done = session.run([session.python, compare, session.memtrace, trace["path"], folder / f"{stem}.pickle", folder / f"{stem}.truth.json"],
                       f"{name}.compare.txt")
    different = [line.strip() for line in done.stdout.splitlines() if "DIFF" in line]
    session.add("truth", f"{name}: events, counters", done.returncode == 0, different[0] if different else last_line(done))


def check_replay(session, name, trace):
    done = session.run([session.memtrace, "replay", "--policy", "pytorch", "--verify", trace["path"]], f"{name}.replay.txt")
    session.add("truth", f"{name}: replay --verify", done.returncode == 0, last_line(done))


def check_trace(session, name, trace, folder, stem):
    truth = json.loads((folder / f"{stem}.truth.json").read_text())
    session.add("truth", f"{name}: size", None, f"{trace['events']} events, {trace['bytes'] / max(1, trace['events']):.2f} bytes an event")
    check_peaks(session, name, trace, truth)
    check_events(session, name, trace, folder, stem)
    check_replay(session, name, trace)


def fresh(session, name):
    folder = session.out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def truth(session):
    for name, script, environment in RUNS:
        folder, workload = fresh(session, name), name.split("_")[0]
        done, document = session.record(folder, [session.python, WORKLOADS / script, workload, folder / workload], log=f"{name}.txt", **environment)
        if done.returncode or len(document["traces"]) != 1:
            session.add("truth", name, False, f"status {done.returncode}, {len(document['traces'])} traces: see {name}.txt")
            continue
        check_trace(session, name, document["traces"][0], folder, workload)


def driver(session):
    done = session.run([HERE / "check_allocations.sh", session.build], "driver.txt")
    session.add("driver", "every way to allocate", done.returncode == 0, last_line(done))


def ranks(session):
    count = session.run([session.python, "-c", "import torch; print(torch.cuda.device_count())"]).stdout.strip()
    if not count.isdigit() or int(count) < 2:
        session.add("ranks", "torchrun", None, f"not run: {count} GPU")
        return
    folder = fresh(session, "ddp")
    command = [session.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", WORKLOADS / "ddp.py"]
    done, document = session.record(folder, command, log="ddp.txt", cwd=WORKLOADS, W=str(folder))
    by_rank = {trace.get("rank"): trace for trace in document["traces"]}
    if done.returncode or set(by_rank) != {0, 1}:
        session.add("ranks", "torchrun", False, f"status {done.returncode}, ranks {sorted(map(str, by_rank))}: see ddp.txt")
        return
    for rank, trace in sorted(by_rank.items()):
        check_trace(session, f"ddp rank {rank}", trace, folder, f"ddp_rank{rank}")


def frameworks(session):
    """Requests to the driver, and what NVML reports beyond them: printed, never dropped."""
    for name in ("jax", "cupy"):
        if session.run([session.python, "-c", f"import {name}"]).returncode:
            session.add("frameworks", name, None, "not installed")
            continue
        alone = session.run([session.python, HERE / "frameworks.py", name])
        done, document = session.record(fresh(session, name), [session.python, HERE / "frameworks.py", name], log=f"{name}.txt")
        same = (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
        session.add("frameworks", f"{name}: as without", same, f"status {done.returncode}")
        for trace in document["traces"]:
            add_residual(session, name, trace)


def add_residual(session, name, trace):
    analyzed = session.run([session.memtrace, "analyze", "--json", trace["path"]], f"{name}.analyze.txt")
    residuals = list(find(json.loads(analyzed.stdout), "residual")) if analyzed.returncode == 0 else []
    for residual in residuals:
        if residual:
            session.add("frameworks", f"{name}: NVML", None, f"{gib(residual['used_by_process_bytes'])} used, {gib(residual['tracked_bytes'])} of it "
                        f"tracked, residual {gib(residual['bytes'])} ({gib(residual['least_bytes'])} to {gib(residual['most_bytes'])})")
    if not any(residuals):
        session.add("frameworks", f"{name}: NVML", False, "no samples")


def find(document, key):
    """Every value of that key, anywhere in it."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == key:
                yield value
            yield from find(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from find(value, key)
