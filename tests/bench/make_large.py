#!/usr/bin/env python3
"""make_large.py CAPTURE.pickle.zst REPEATS OUT.pickle

A long snapshot from a short one: the run is repeated in time. Between two
repeats everything that is still alive is freed and the cache is emptied, as a
program that starts to train again would, so that the result replays as exactly as the
original. Steps are numbered on."""
import pickle
import re
import subprocess
import sys

SMALL_SEGMENT_BYTES = 2 << 20


def load(path):
    return pickle.loads(subprocess.run(["zstd", "-dc", path], check=True, stdout=subprocess.PIPE).stdout)


def release_order(segment):
    """As PyTorch empties its cache: large blocks, then small ones, each by stream, size, address."""
    return segment["size"] <= SMALL_SEGMENT_BYTES, segment["stream"], segment["size"], segment["addr"]


def leftovers(trace, time_us):
    """Events that free what is alive at the end of the trace, then all segments."""
    blocks, segments = {}, {}
    for event in trace:
        action, addr = event["action"], event["addr"]
        if action == "alloc":
            blocks[addr] = event
        elif action == "free_completed":
            blocks.pop(addr, None)
        elif action == "segment_alloc":
            segments[addr] = event
        elif action == "segment_free":
            segments.pop(addr, None)
        elif action not in ("free_requested", "oom"):
            raise SystemExit(f"make_large: a capture with '{action}' cannot be repeated")
    events = []
    for action in ("free_requested", "free_completed"):
        events += [dict(block, action=action, time_us=time_us) for block in blocks.values()]
    return events + [dict(segment, action="segment_free", time_us=time_us)
                     for segment in sorted(segments.values(), key=release_order)]


def shifted(events, delta_us):
    """As PyTorch writes them: events of one run that have the same stack share a list of frames, those
    of two runs do not."""
    lists, moved = {}, []
    for event in events:
        event = dict(event, time_us=event["time_us"] + delta_us)
        if "frames" in event:
            event["frames"] = lists.setdefault(id(event["frames"]), list(event["frames"]))
        moved.append(event)
    return moved


def renumbered(annotations, first_step):
    def name(text):
        return re.sub(r"^(step#|ProfilerStep#)(\d+)$",
                      lambda found: found[1] + str(int(found[2]) + first_step), text)
    return [dict(one, name=name(one["name"])) for one in annotations]


def main(capture, repeats, out):
    snapshot = load(capture)
    times = [e["time_us"] for trace in snapshot["device_traces"] for e in trace]
    times += [a["time_us"] for a in snapshot["external_annotations"]]
    end_us, span_us = max(times) + 1, max(times) + 1000 - min(times)
    steps = 1 + max((int(n[1]) for n in (re.match(r"(?:step|ProfilerStep)#(\d+)$", a["name"])
                                         for a in snapshot["external_annotations"]) if n), default=-1)
    once = [trace + (leftovers(trace, end_us) if trace else []) for trace in snapshot["device_traces"]]
    shift = [(span_us * (i - repeats + 1), i) for i in range(repeats)]  # the end stays where it was
    snapshot["device_traces"] = [
        [event for delta, i in shift for event in shifted(whole if i < repeats - 1 else trace, delta)]
        for whole, trace in zip(once, snapshot["device_traces"])]
    snapshot["external_annotations"] = [
        one for delta, i in shift
        for one in renumbered(shifted(snapshot["external_annotations"], delta), i * steps)]
    with open(out, "wb") as file:
        pickle.dump(snapshot, file)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
