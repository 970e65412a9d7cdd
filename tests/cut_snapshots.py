#!/usr/bin/env python3
"""cut_snapshots.py PROGRAM [--case CAPTURE:CUT[:bare]]... [--table]

Cuts the front off histories of our own captures, as if recording had begun late,
and compares the roles of blocks with what the whole history says at the same
event: the allocated peak of what is left.

The cuts: model (the loop begins), warmup (two steps are over), forward and
backward (in the middle of that part of the second step), and ringN (a ring
buffer of N entries). After the first four the blocks of the snapshot's segments
that were born before have no frames, as in a recording that was switched on
late; a ring buffer keeps them. `bare` also drops all ranges but PyTorch's own.

--table measures every capture and cut and prints a row for each; without it,
the cases given have to keep the limits below. A history that is cut so late that
it makes no block ("exit") shows the end of the program alone: nothing in it tells
what the blocks are for, and all of them have to stay unknown."""
import argparse
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile

from support.program import fast_program

CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "captures"
CUTS = ("model", "warmup", "forward", "backward", "ring1000", "ring3000", "ring10000", "ring100000")
FRAMEWORK_RANGES = ("Optimizer.", "nccl:")
MAX_DIFFERENCE = 0.03  # of one role, as a share of what is allocated
MAX_TAILS = 0.01
MAX_UNKNOWN = 0.03  # where a whole training step follows the cut


class PlainUnpickler(pickle.Unpickler):
    """Containers, numbers and texts; anything that names code is refused."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def load(path):
    data = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout
    return PlainUnpickler(io.BytesIO(data)).load()


def ranges_of(snapshot):
    """[(name, begin_us, end_us)] in order of their begin, ranges of the program only."""
    done, open_ranges = [], []
    for mark in snapshot.get("external_annotations", ()):
        if mark["name"].startswith(FRAMEWORK_RANGES):
            continue
        if mark["stage"] == "START":
            open_ranges.append((mark["name"], mark["time_us"]))
            continue
        for i in reversed(range(len(open_ranges))):
            if open_ranges[i][0] == mark["name"]:
                name, begin_us = open_ranges.pop(i)
                done.append((name, begin_us, mark["time_us"]))
                break
    return sorted(done, key=lambda one: one[1])


def steps_of(snapshot):
    return [one for one in ranges_of(snapshot) if one[0].startswith(("step#", "request"))]


def middle_us(snapshot, begin_us, end_us):
    """The time of the middle one of the entries in between."""
    times = sorted(entry["time_us"] for trace in snapshot["device_traces"] for entry in trace
                   if begin_us <= entry["time_us"] < end_us)
    return times[len(times) // 2] if times else None


def cut_us(snapshot, cut):
    """The time at which the history of a late recording begins; None: there is no such moment."""
    steps = steps_of(snapshot)
    if cut == "model":
        return steps[0][1] if steps else None
    if cut == "warmup":
        return steps[2][1] if len(steps) > 2 else None
    if len(steps) < 2:
        return None
    for name, begin_us, end_us in ranges_of(snapshot):
        if name == cut and steps[1][1] <= begin_us < steps[1][2]:
            return middle_us(snapshot, begin_us, end_us)
    return None


def first_entries(snapshot, cut):
    """For each device, how many entries are lost; None: nothing is lost."""
    traces = snapshot["device_traces"]
    if cut.startswith("ring"):
        return [max(0, len(trace) - int(cut[4:])) for trace in traces]
    begin_us = cut_us(snapshot, cut)
    if begin_us is None:
        return None
    return [sum(entry["time_us"] < begin_us for entry in trace) for trace in traces]


def forget_frames(snapshot, traces):
    """Blocks that no entry of `traces` allocated have no frames."""
    for segment in snapshot["segments"]:
        born = {entry["addr"] for entry in traces[segment["device"]] if entry["action"] == "alloc"}
        address = segment["address"]
        for block in segment["blocks"]:
            if block.get("address", address) not in born:
                block["frames"] = []
            address = block.get("address", address) + block["size"]


def cut_front(path, cut, bare):
    """(snapshot, whether a whole step follows); None if the cut takes nothing away."""
    snapshot = load(path)
    lost = first_entries(snapshot, cut)
    if not lost or not any(lost):
        return None
    steps = steps_of(snapshot)
    traces = [trace[count:] for trace, count in zip(snapshot["device_traces"], lost)]
    if not any(traces):
        return None
    begin_us = min(trace[0]["time_us"] for trace in traces if trace)
    if not cut.startswith("ring"):
        begin_us = min(begin_us, cut_us(snapshot, cut))
        forget_frames(snapshot, traces)
    snapshot["device_traces"] = traces
    snapshot["external_annotations"] = [
        mark for mark in snapshot.get("external_annotations", ())
        if mark["time_us"] >= begin_us and (not bare or mark["name"].startswith(FRAMEWORK_RANGES))]
    return snapshot, any(step[1] >= begin_us for step in steps)


def ask(program, command, path, *options):
    done = subprocess.run([program, command, "--json", "--quiet", str(path), *options],
                          stdout=subprocess.PIPE)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} of {path} failed: {done.returncode}")
    return json.loads(done.stdout)


def makes_blocks(snapshot, device):
    """Does the history have an allocation on that device? None: the program only exits."""
    return any(entry["action"] == "alloc" for entry in snapshot["device_traces"][device])


def marks_after(marks, t_us):
    """How many ends and begins of ranges that have both come after an event at that time."""
    begun, pairs = [], []
    for mark in marks:
        if mark["stage"] == "START":
            begun.append(mark)
            continue
        for i in reversed(range(len(begun))):
            if begun[i]["name"] == mark["name"]:
                pairs += [begun.pop(i), mark]
                break
    return sum(mark["time_us"] > t_us or (mark["stage"] == "END" and mark["time_us"] == t_us)
               for mark in pairs)


def roles_at(program, path, event):
    """Bytes by role of each device."""
    answer = ask(program, "live", path, "--by", "role", "--at", str(event))
    return {device["device"]: {row["role"]: row["bytes"] for row in device["rows"]}
            for device in answer["devices"]}


def measure(program, path, cut, bare):
    """[(device, unknown share, largest difference, its role, what the history has, cut's instant)];
    it has a whole step, an exit alone, or something between"""
    made = cut_front(path, cut, bare)
    if not made:
        return []
    results = []
    with tempfile.TemporaryDirectory() as folder:
        cut_path = pathlib.Path(folder, "cut.pickle")
        cut_path.write_bytes(pickle.dumps(made[0], protocol=4))
        answer = ask(program, "analyze", cut_path)
        before = ask(program, "live", path, "--by", "role")["input"]["events_read"]
        marks, cut_marks = (one.get("external_annotations", ()) for one in (load(path), made[0]))
        for device in answer["devices"]:
            peak = device["summary"]["allocated_peak"]
            event, t_us = peak["event"], peak["t_ns"] // 1000
            has = "exit" if not makes_blocks(made[0], device["device"]) else "step" if made[1] else ""
            shift = before - answer["input"]["events_read"]  # both end with the same event
            shift -= marks_after(marks, t_us) - marks_after(cut_marks, t_us)
            cut_roles = roles_at(program, cut_path, event).get(device["device"], {})
            whole_roles = roles_at(program, path, event + shift).get(device["device"], {})
            total = sum(whole_roles.values())
            # the tails of blocks that end in the history are derived, up to 1 MiB too small
            if not total or abs(sum(cut_roles.values()) - total) > MAX_TAILS * total:
                results.append((device["device"], None, None, "not the same instant", has, event))
                continue
            gaps = {role: cut_roles.get(role, 0) - whole_roles.get(role, 0)
                    for role in {*cut_roles, *whole_roles}}
            role = max(sorted(gaps), key=lambda one: abs(gaps[one]))
            results.append((device["device"], cut_roles.get("other", 0) / total,
                            gaps[role] / total, role, has, event))
    return results


def row_of(name, cut, bare, result):
    device, unknown, difference, role, has, event = result
    place = f"{name}:{cut}{':bare' if bare else ''}"
    if unknown is None:
        return f"{place:34} {device:2} {role}"
    return (f"{place:34} {device:2} {100 * unknown:6.1f}% {100 * difference:+7.1f}% {role:16}"
            f" {has}")


def whole_captures():
    for path in sorted(CAPTURES.glob("*.pickle.zst")):
        name = path.name.removesuffix(".pickle.zst")
        if not name.endswith("_ring"):
            yield name, path


def print_table(program, only, bare):
    worst = []
    print(f"{'capture:cut':34} dev unknown    most  role")
    for name, path in whole_captures():
        if only and not any(one in name for one in only):
            continue
        for cut in CUTS:
            for result in measure(program, path, cut, bare):
                print(row_of(name, cut, bare, result), flush=True)
                worst.append(result)
    known = [one for one in worst if one[1] is not None]
    off = sum(abs(one[2]) > MAX_DIFFERENCE for one in known)
    exits = [one for one in known if one[4] == "exit"]
    named = sum(one[1] < 1 - MAX_UNKNOWN for one in exits)
    off_at_exit = sum(abs(one[2]) > MAX_DIFFERENCE for one in exits)
    unknown = sum(one[1] > MAX_UNKNOWN for one in known if one[4] == "step")
    print(f"{len(known)} cuts: {off} with a role off by more than {MAX_DIFFERENCE:.0%}, {off_at_exit} of"
          f" them with nothing but the program's exit; {len(exits)} such exits, {named} with roles;"
          f" {sum(one[4] == 'step' for one in known)} with a whole step, {unknown} of them with more than"
          f" {MAX_UNKNOWN:.0%} unknown; {len(worst) - len(known)} not compared")


def check(program, case):
    name, cut, *rest = case.split(":")
    results = measure(program, CAPTURES / f"{name}.pickle.zst", cut, "bare" in rest)
    failures = [] if results else [f"{case}: nothing was cut"]
    for result in results:
        unknown, difference, _, has = result[1:5]
        if has == "exit" and unknown is not None:
            unknown, difference = 0, 1 - unknown  # what cannot be known must not be named
        if (unknown is None or abs(difference) > MAX_DIFFERENCE
                or (has == "step" and unknown > MAX_UNKNOWN)):
            failures.append(row_of(name, cut, "bare" in rest, result))
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--bare", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print_table(arguments.program, arguments.only, arguments.bare)
        return
    program = fast_program(arguments.program)
    failures = [line for case in arguments.case for line in check(program, case)]
    print("\n".join(failures) or f"{len(arguments.case)} cut histories keep the limits")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
