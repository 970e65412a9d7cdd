"""Section cost: alternating runs of the same loops. One round runs every mode once, one after the other; a mode's cost in a round is its time over that of the round's run
without a tool, so that whatever slows the machine for a while slows both."""
import json
import shutil
import statistics

from session import HERE

LOOPS = ("gpu_bound", "allocation_bound", "empty", "launches")
MODES = {
    "none": None,
    "record, no stacks": ["--stacks", "none"],
    "record": ["--stacks", "python"],
    "record, ring": ["--stacks", "python", "--ring", "20s"],
    "record, idle": ["--stacks", "python", "--idle"],
    "record, native too": ["--stacks", "both"],
    "PyTorch's history, python": "python",
    "PyTorch's history, all": "all",
}
# The least that is promised of `record` with Python stacks, in percent.
CONTRACTS = {"gpu_bound": 1.0, "allocation_bound": 5.0, "launches": 1.0}


def one_run(session, mode, how):
    command = [session.python, HERE / "loops.py", *LOOPS]
    folder = session.out / "cost"
    shutil.rmtree(folder, ignore_errors=True)
    if isinstance(how, list):
        done, document = session.record(folder, command, how, "cost.txt")
        trace = document["traces"][0] if document["traces"] else {}
    else:
        done, trace = session.run([*command, *(["--history", how] if how else [])], "cost.txt"), {}
    if done.returncode:
        session.add("cost", mode, False, f"status {done.returncode}: see cost.txt")
        return None
    return {"mode": mode, "seconds": json.loads(done.stdout.splitlines()[-1]), "events": trace.get("events"), "bytes": trace.get("bytes"),
            "dropped": trace.get("events_dropped")}


def cost(session):
    path = session.out / "cost.jsonl"
    for _ in range(session.rounds):
        runs = [one_run(session, mode, how) for mode, how in MODES.items()]
        if None in runs:
            return
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(runs) + "\n")
    summarize(session, [json.loads(line) for line in path.read_text().splitlines()])


def summarize(session, rounds):
    """Medians over all rounds that there are, with their spread."""
    for loop in LOOPS:
        base = [runs[0]["seconds"][loop] for runs in rounds]
        session.add("cost", f"{loop}: no tool", None, f"{statistics.median(base):.3f} s ({min(base):.3f} to {max(base):.3f}), {len(rounds)} rounds")
        for place, mode in list(enumerate(MODES))[1:]:
            percent = [100 * (runs[place]["seconds"][loop] / runs[0]["seconds"][loop] - 1) for runs in rounds]
            median, most = statistics.median(percent), CONTRACTS.get(loop)
            good = median <= most if mode == "record" and most else None
            session.add("cost", f"{loop}: {mode}", good, f"{median:+.2f} % ({min(percent):+.2f} to {max(percent):+.2f})")
    for place, mode in enumerate(MODES):
        last = rounds[-1][place]
        if last["events"]:
            session.add("cost", f"{mode}: trace", last["dropped"] == 0,
                        f"{last['events']} events, {last['bytes'] / last['events']:.2f} bytes an event, {last['dropped']} dropped")
