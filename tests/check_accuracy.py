#!/usr/bin/env python3
"""check_accuracy.py PROGRAM [--update]: measures the tables of docs/evidence/accuracy.md
again, from the captures and from the counters of the allocators of those runs,
and compares (or rewrites) them. Uses only the command line of memtrace."""
import bisect
import collections
import functools
import json
import pathlib
import subprocess
import sys
import tempfile

from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
CAPTURES = FIXTURES / "captures"
PAGE = ROOT / "docs" / "evidence" / "accuracy.md"
LEVELS = ("requested", "allocated", "active", "reserved", "inactive_split")


def ask(program, command, capture, *options):
    """Policies of the JSON answer; status 1 is also an answer."""
    done = subprocess.run([program, command, "--json", "--quiet", CAPTURES / f"{capture}.pickle.zst", *options],
                          stdout=subprocess.PIPE)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} of {capture} failed: {done.returncode}")
    return json.loads(done.stdout)["policies"]


def replay(program, capture, *options):
    return ask(program, "replay", capture, *options)


def replay_with_counters(program, capture, *options):
    """The policies, and {device: [(t_us, level...) after each event]}."""
    counters = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "counters.csv")
        policies = replay(program, capture, "--counters", str(path), *options)
        for line in path.read_text().splitlines()[1:]:
            row = line.split(",")
            counters[int(row[2])].append((int(row[1]) // 1000, *map(int, row[3:])))
    return policies, counters


def matches(row, states, first, last, peaks):
    """Does a row of truth equal the state after one of the events first..last?"""
    for at in range(first, last + 1):
        levels = states[at - 1][1:] if at else (0,) * len(LEVELS)
        now = all(row[name] == levels[i] for i, name in enumerate(LEVELS))
        if now and all(row[f"{name}_peak"] == peaks[at][i] for i, name in enumerate(LEVELS)):
            return True
    return False


def rows_exact(truth, states):
    """How many rows agree in all levels, current and peak. Events that share the
    row's microsecond may have come before or after it."""
    base = truth["rows"][0]
    peaks = [tuple(base[f"{name}_peak"] for name in LEVELS)]
    for state in states:
        peaks.append(tuple(map(max, peaks[-1], state[1:])))
    exact, times = 0, sorted(state[0] for state in states)
    for row in truth["rows"]:
        first = bisect.bisect_left(times, row["time_us"])
        last = bisect.bisect_right(times, row["time_us"])
        exact += matches(row, states, first, last, peaks)
    return exact


def of(part, whole):
    return f"{part} of {whole}"


def exactness(program):
    """A row for all devices of captures of which everything is exact, and one for each other device."""
    lines = ["| recordings | addresses | segment events | OOMs | rows of the allocator's own counters |", "|---|---|---|---|---|"]
    exact, others, blind_off = [], [], []
    for path in sorted(CAPTURES.glob("*.truth.json")):
        capture = path.name.removesuffix(".truth.json")
        truth = json.loads(path.read_text())
        answers, counters = replay_with_counters(program, capture, "--policy", "pytorch", "--verify")
        blind_answers = {answer["device"]: answer for answer in replay(program, capture, "--policy", "pytorch", "--blind")}
        truth_device = min(answer["device"] for answer in answers)  # the first that the capture has events of
        for answer in answers:
            verify, device = answer["verify"], answer["device"]
            counts = [(verify["addresses_exact"], verify["allocations"]),
                      (verify["segment_events_exact"], verify["segment_events"]), (verify["ooms_exact"], verify["ooms"])]
            # The rows of a ring buffer are compared elsewhere, and those of other devices are not recorded.
            has_rows = device == truth_device and not answer["starts_in_middle"]
            counts.append((rows_exact(truth, counters[device]), len(truth["rows"])) if has_rows else (0, 0))
            name = f"{capture}{f', device {device}' if device != truth_device or device else ''}"
            (exact if all(part == whole for part, whole in counts) else others).append((name, counts))
            off = blind_answers[device]["reserved_peak_bytes"] - answer["reserved_peak_bytes"]
            blind_off += [f"{name} {off:+,d} B"] if off else []
    sums = [tuple(map(sum, zip(*(counts[i] for _, counts in exact)))) for i in range(4)]
    for name, counts in [(f"{len(exact)} devices of captures", sums), *others]:
        lines.append(f"| {name} | {' | '.join(f'{part:,} of {whole:,}' for part, whole in counts)} |")
    return [*lines, "", f"Blind, the reserved peak is off for {len(blind_off)} of them.", *(f"- {off}" for off in blind_off)]


def other_options(program):
    """Every case of fixtures/other_options, or the check fails: a prediction that is off is a defect."""
    lines = ["| replayed | under | limit | reserved peak of both | retries of both |", "|---|---|---|---|---|"]
    for case in json.loads((FIXTURES / "other_options" / "cases.json").read_text()):
        limit = ["--limit", f"{case['limit_mib']}MiB"] if "limit_mib" in case else []
        answer = replay(program, case["trace"], "--policy", case["policy"], *limit)[0]
        real = json.loads((FIXTURES / f"{case['truth']}.truth.json").read_text())["rows"][-1]
        if (answer["reserved_peak_bytes"], answer["retries"]) != (real["reserved_peak"], real["num_alloc_retries"]):
            raise SystemExit(f"{case}: replay {answer['reserved_peak_bytes']} B, {answer['retries']} retries; "
                             f"real run {real['reserved_peak']} B, {real['num_alloc_retries']}")
        options = case["policy"].partition(":")[2]
        lines.append(f"| {case['trace']} | {f'`{options}`' if options else 'defaults'} "
                     f"| {limit[1] if limit else 'none'} | {answer['reserved_peak_bytes']} B | {answer['retries']} |")
    return lines


def cuda_async(program):
    """The policy cuda-async, from recordings of the default backend, beside runs with backend:cudaMallocAsync."""
    modes = ("synchronized", "idle", "busy")
    lines = ["| capture | reserved peak, real run | " + " | ".join(f"`gpu={mode}`" for mode in modes) + " |", "|---|---|---|---|---|"]
    for capture, real in json.loads((CAPTURES / "cuda_async_peaks.json").read_text())["reserved_peak_bytes"].items():
        cells = []
        policies = [word for mode in modes for word in ("--policy", f"cuda-async:gpu={mode}")]
        answers = replay(program, capture, *policies)
        if len(answers) != len(modes):
            raise SystemExit(f"{capture}: {len(answers)} answers for {len(modes)} policies of one device")
        for answer in answers:
            peak = answer["reserved_peak_bytes"]
            cells.append(f"{peak} B ({100 * (peak - real) / real:+.1f}%)" if peak != real else f"{peak} B")
        lines.append(f"| {capture} | {real} B | {' | '.join(cells)} |")
    return lines


def limits(program):
    lines = ["| capture | options | real run failed at | replay there | real run passed at | replay there | `fit` |",
             "|---|---|---|---|---|---|---|"]
    for entry in json.loads((CAPTURES / "capacity.json").read_text()).values():
        if not isinstance(entry, dict):
            continue
        for options, bounds in entry.items():
            if options == "trace":
                continue
            said = {}
            for kind, mib in bounds.items():
                answer = replay(program, entry["trace"], "--policy", f"pytorch:{options}", "--limit", f"{mib}MiB")[0]
                said[kind] = "fails" if answer["failed_requests"] else "passes"
            fit = ask(program, "fit", entry["trace"], "--policy", f"pytorch:{options}")[0]["fit_bytes"] >> 20
            lines.append(f"| {entry['trace']} | {f'`{options}`' if options else 'defaults'} "
                         f"| {bounds['fails']} MiB | {said['fails']} | {bounds['fits']} MiB | {said['fits']} "
                         f"| {fit} MiB |")
    return lines


# What the workloads call what memtrace calls otherwise.
FOUND_NAMES = {"validate": "validation"}
# Training runs whose steps and parts the program named; the first five have to agree in all.
ANNOTATED = ("seq2seq", "gpt_default", "leakval", "ddp_rank0", "seq2seq_native", "ddp_rank1", "gpt_cap", "gpt_expandable",
             "gpt_gc", "gpt_seed2", "leak", "resnet50_cap1900", "gpt_ring", "leakval_ring", "oom_adam")
MUST_AGREE = ANNOTATED[:5]


@functools.cache  # two tables need the same answers
def analyze(program, capture, *options):
    done = subprocess.run([program, "analyze", "--json", "--quiet", CAPTURES / f"{capture}.pickle.zst", *options],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["devices"][0]


def blocks_of(program, capture):
    """Numbers of the events that allocate, and of those that allocate or free."""
    done = subprocess.run([program, "dump", "--json", "--quiet", CAPTURES / f"{capture}.pickle.zst"],
                          stdout=subprocess.PIPE, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return ([event["seq"] for event in events if event["kind"] == "alloc"],
            [event["seq"] for event in events if event["kind"] in ("alloc", "free_requested")])


def count_within(numbers, phase):
    """How many are before its begin, and until its end. What was found begins with its first event."""
    found = phase["source"] not in ("annotation", "scopes")
    return (bisect.bisect_left(numbers, phase["begin_event"] + (not found)),
            bisect.bisect_right(numbers, phase["end_event"]))


def compare_phase(named, candidates, allocations):
    """(boundaries within the same allocation, peaks equal, what differs) of a range and the found one that shares most with it."""
    shared = [(min(named["end_event"], found["end_event"]) - max(named["begin_event"], found["begin_event"]), i)
              for i, found in enumerate(candidates)]
    if not shared or max(shared)[0] < 0:
        return False, False, f"{named['path']} not found"
    found = candidates[max(shared)[1]]
    begin, end = (there - here for there, here in zip(count_within(allocations, found), count_within(allocations, named)))
    peak = found["peak"]["allocated"] - named["peak"]["allocated"]
    differs = "" if not (begin or end) else f"{named['path']} begins {begin:+d}, ends {end:+d} allocations"
    return not (begin or end), not peak, differs or (f"{named['path']} peaks {peak:+d} B" if peak else "")


def found_phases(program):
    """Steps and parts that are found with all annotations taken away, beside those that were recorded."""
    lines = ["| captures | steps recorded | found | ranges with events | boundaries within the same allocation | peaks equal | what differs |",
             "|---|---|---|---|---|---|---|"]
    exact, others = [], []
    for capture in ANNOTATED:
        with_names, without = analyze(program, capture), analyze(program, capture, "--unnamed")
        allocations, blocks = blocks_of(program, capture)
        named = [phase for phase in with_names["phases"] if not phase["framework"] and phase["recorded"]]
        named = [phase for phase in named if len(set(count_within(blocks, phase))) == 2]
        rows = []
        for phase in named:
            name = FOUND_NAMES.get(phase["name"], phase["name"])
            rows.append(compare_phase(phase, [found for found in without["phases"] if found["name"] == name or
                                              (found["name"] + name).count("step#") == 2], allocations))
        steps = sum(phase["name"].startswith("step#") for phase in named)
        boundaries, peaks = sum(row[0] for row in rows), sum(row[1] for row in rows)
        if capture in MUST_AGREE and (boundaries, peaks, steps) != (len(rows), len(rows), len(without["steps"])):
            raise SystemExit(f"{capture}: what is found without annotations differs: {[row[2] for row in rows if row[2]]}")
        differs = "; ".join(row[2] for row in rows if row[2])
        counts = (steps, len(without["steps"]), len(rows), boundaries, peaks)
        (others if differs or steps != len(without["steps"]) else exact).append((capture, counts, differs))
    sums = tuple(map(sum, zip(*(counts for _, counts, _ in exact))))
    for name, (steps, found, ranges, boundaries, peaks), differs in [(f"{len(exact)} captures", sums, ""), *others]:
        lines.append(f"| {name} | {steps} | {found} | {ranges} | {of(boundaries, ranges)} | {of(peaks, ranges)} "
                     f"| {differs or 'nothing'} |")
    return lines


# Captures in which something is trained.
TRAINING = sorted({*ANNOTATED, "gpt_large40", "gpt_nonsplit", "gpt_round4", "gpt_split200_cap", "gpt_split64", "graph",
                   "resnet50_cap900", "seq2seq_cap", "twogpu"})


def attributed(program):
    """What the bytes at the peak without a stack are tied to. Less than 2% may be left."""
    lines = ["| capture | with a stack | tied to a parameter | to what forward made | to a library | to a phase alone | to the time before the trace | unattributed |",
             "|---|---|---|---|---|---|---|---|"]
    tied, others = [], []
    for capture in TRAINING:
        for options in ((), ("--unnamed",)):
            device = analyze(program, capture, *options)
            ties, peak = device["frameless_at_peak"], device["summary"]["allocated_peak"]["bytes"]
            if device["unattributed_bytes_at_peak"] * 50 >= peak:
                raise SystemExit(f"{capture} {options}: {device['unattributed_bytes_at_peak']} of {peak} B unattributed")
            if options:
                continue
            shares = [100 * size / peak for size in (peak - sum(ties.values()), ties["parameter"], ties["forward_site"], ties["library"],
                                                     ties["phase"], ties["before"], device["unattributed_bytes_at_peak"])]
            (others if any(shares[4:]) else tied).append((capture, shares))
    for name, rows in [(f"{len(tied)} captures", [shares for _, shares in tied]), *((name, [shares]) for name, shares in others)]:
        ends = [(f"{min(column):.1f}%", f"{max(column):.1f}%") for column in zip(*rows)]
        lines.append(f"| {name} | {' | '.join(low if low == high else f'{low} to {high}' for low, high in ends)} |")
    return lines


def main(program, rewrite):
    text = PAGE.read_text()
    fresh = text
    for name, table in (("exactness", exactness), ("options", other_options), ("limits", limits), ("cuda-async", cuda_async),
                        ("found", found_phases), ("attributed", attributed)):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = fresh.partition(begin)
        _, _, tail = rest.partition(end)
        if not tail:
            raise SystemExit(f"{PAGE}: no place for the table {name}")
        fresh = head + begin + "\n".join(table(program)) + "\n" + end + tail
    if rewrite:
        PAGE.write_text(fresh)
    elif fresh != text:
        for old, new in zip(text.splitlines(), fresh.splitlines()):
            if old != new:
                print(f"- {old}\n+ {new}")
        print("docs/evidence/accuracy.md does not say what was measured: tests/check_accuracy.py PROGRAM --update")
        return 1
    print("docs/evidence/accuracy.md agrees with what was measured")
    return 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), "--update" in sys.argv[2:]))
