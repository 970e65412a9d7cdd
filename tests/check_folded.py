#!/usr/bin/env python3
"""check_folded.py PROGRAM FIXTURES: folded stacks, drawn by another flame graph
renderer, have the widths that our own icicle of the same blocks has; what
speedscope is told adds up to the same."""
import collections
import html
import json
import pathlib
import re
import sys

from support.program import fast_program, output

WIDTH, MARGIN = 1200, 24
CELL = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*><title>(.*?)</title>')
TITLE = re.compile(r"^(.*): (?:\S+ \S+ \(([\d,]+) B\), \S+ \S+ %|\S+ \S+ \(([\d,]+) B\), .*|([\d,]+) blocks?, .*)$")

CASES = [("seq2seq", []), ("gpt_split64", ["--at", "reserved-peak", "--metric", "requested"]), ("gpt_split64", ["--of", "allocated-total"]),
         ("oom_adam", ["--at", "oom", "--metric", "count"]), ("keeps", ["--of", "grew"]), ("resnet50_cap1900", ["--reverse"]),
         ("gpt_default", ["--of", "kept"]), ("twogpu", ["--device", "1", "--at", "end"]), ("leakval", ["--metric", "count"])]


# ---- another renderer: flamegraph.pl's rules ------------------------------------------------


def flame(folded, width):
    """[(name, depth, value, pixels)] as flamegraph.pl has it: stacks are sorted, equal
    neighbors merge, a frame is as wide as its share of the sum."""
    stacks = []
    for line in folded.splitlines():
        stack, _, value = line.rpartition(" ")
        stacks.append((["all", *stack.split(";")], int(value)))
    total = sum(value for _, value in stacks)
    frames, open_frames, last, at = [], [], [], 0
    for stack, value in [*sorted(stacks), ([], 0)]:
        same = 0
        while same < min(len(last), len(stack)) and last[same] == stack[same]:
            same += 1
        for depth in range(len(last) - 1, same - 1, -1):
            begin = open_frames.pop()
            frames.append((last[depth], depth, at - begin, (at - begin) * width / total))
        open_frames += [at] * (len(stack) - same)
        last, at = stack, at + value
    return frames


# ---- our picture -----------------------------------------------------------------------------


def cells(svg):
    """[(label, y, value, pixels)] of all cells but sums of narrow ones."""
    found = []
    for _, y, width, title in CELL.findall(svg):
        match = TITLE.match(html.unescape(title))
        assert match, title
        if not re.match(r"^\d+ narrow groups?: ", html.unescape(title)):
            value = next(group for group in match.groups()[1:] if group)
            found.append((match.group(1), float(y), int(value.replace(",", "")), float(width)))
    return found


def faults(program, path, options):
    svg = output(program, "render", "icicle", path, *options, "-o", "-", text=True)
    ours = cells(svg)
    if not ours:
        yield "nothing was drawn"
        return
    narrow = re.search(r"narrower than ([\d.]+) px", svg)
    least = float(narrow.group(1)) + 0.1 if narrow else 0
    rows = sorted({y for _, y, _, _ in ours})
    root = ours[0]
    plain = output(program, "export", "folded", path, *options, text=True)
    theirs = flame(plain, WIDTH - 2 * MARGIN)
    if sum(value for _, depth, value, _ in theirs if depth == 0) != root[2]:
        yield f"folded sums to {theirs[-1][2]}, the picture to {root[2]}"
    leaf = re.compile(r"^([\d,]+ × .*|[\d,]+ blocks?), [A-Z].*$")
    frames = collections.defaultdict(list)
    for label, y, value, width in ours[1:]:
        if not leaf.match(label):
            frames[label.replace(";", ":"), rows.index(y), value].append(width)
    seen = 0
    for name, depth, value, pixels in theirs:
        if depth == 0 or pixels < least or depth >= len(rows):
            continue
        drawn = frames.get((name, depth, value))
        if not drawn:
            yield f"{name}: {value} at depth {depth} is not in the picture"
        elif not -0.06 <= pixels - drawn.pop() <= 1.06:
            yield f"{name}: {pixels:.1f} pixels there, another width here"
        seen += 1
    left = [key for key, widths in frames.items() if [width for width in widths if width >= least]]
    if left or not seen:
        yield f"drawn, but not in the folded stacks: {left[:3]}"
    blocks = output(program, "export", "folded", path, *options, "--blocks", text=True)
    if sum(int(line.rpartition(" ")[2]) for line in blocks.splitlines()) != root[2]:
        yield "with leaves it sums to something else"
    yield from speedscope_faults(json.loads(output(program, "export", "speedscope", path, *options, text=True)), plain)


def speedscope_faults(document, folded):
    profile, frames = document["profiles"][0], document["shared"]["frames"]
    stacks = collections.Counter()
    for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
        stacks[tuple(frames[index]["name"].replace(";", ":") for index in sample)] += weight
    wanted = collections.Counter()
    for line in folded.splitlines():
        stack, _, value = line.rpartition(" ")
        wanted[tuple(stack.split(";"))] += int(value)
    if profile["endValue"] != sum(wanted.values()) or sum(stacks.values()) != profile["endValue"]:
        yield "speedscope's document sums to something else"
    # there a line is no part of the name
    shapes = [collections.Counter(), collections.Counter()]
    for shape, counted in zip(shapes, (stacks, wanted)):
        for stack, weight in counted.items():
            shape[len(stack)] += weight
    if shapes[0] != shapes[1]:
        yield "speedscope's stacks are not as deep"


def main(program, fixtures):
    wrong = []
    for capture, options in CASES:
        path = str(fixtures / "captures" / f"{capture}.pickle.zst")
        wrong += [f"{capture} {' '.join(options)}: {fault}" for fault in faults(program, path, options)]
    print("\n".join(wrong) if wrong else f"{len(CASES)} icicles are as wide as flame graphs")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), pathlib.Path(sys.argv[2])))
