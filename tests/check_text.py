#!/usr/bin/env python3
"""check_text.py PROGRAM FIXTURES [--update]: what analyze prints of each fixture has at most 25 lines of at most 100 columns,
and the same quantity has the same value in the text, in JSON, in fit, and (for a few) in Markdown and on the page. The same
runs show how often analyze reads its input (support/readings.py; --update writes it) and what is typed back
(support/typed.py)."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from support import readings, typed
from support.program import fast_program, output

MAX_LINES, MAX_COLUMNS, DOCUMENTS = 25, 100, 6
PASTED = "Check: "  # a command stays in one line


def words_of(count):
    """A number of bytes as the program prints it."""
    units, value = ["B", "KiB", "MiB", "GiB", "TiB"], count
    while value >= 999.5 and len(units) > 1 or count >= 1000 and units[0] == "B":
        value, units = value / 1024, units[1:]
    if units[0] == "B":
        return f"{count} B"
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{int(value * 10**decimals + 0.5) / 10**decimals:.{decimals}f} {units[0]}"


def layout(name, lines):
    if len(lines) > MAX_LINES:
        yield f"{name}: {len(lines)} lines"
    for line in lines:
        if len(line) > MAX_COLUMNS and not line.lstrip().startswith(PASTED):
            yield f"{name}: {len(line)} columns: {line}"


def fullest(devices):
    return max(devices, key=lambda d: (any(oom["fatal"] for oom in d["ooms"]), d["summary"]["reserved_peak"]["bytes"],
                                       d["summary"]["allocated_peak"]["bytes"], -d["device"]))


def values(program, path, text):
    """Compares the values for the device that the first screen is about."""
    devices = json.loads(output(program, "analyze", "-q", "--json", path))["devices"]
    device = fullest(devices) if devices else None
    if not device or not device["card"]:
        return
    card, peak = device["card"], device["summary"]["allocated_peak"]["bytes"]
    if card["bytes"] != card["allocator_bytes"] + card["libraries_bytes"] + card["cuda_bytes"]:
        yield f"{path.name}: {card} does not add up"
    said = re.search(r"^Card +(?:about|at least) ([\d.]+ \w+) = ", text, re.M)
    if said and said[1] != words_of(card["bytes"]):
        yield f"{path.name}: the text says {said[1]}, JSON {words_of(card['bytes'])}"
    said = re.search(r"^Peak +([\d.]+ \w+) allocated", text, re.M)
    if said and said[1] != words_of(peak):
        yield f"{path.name}: the text says a peak of {said[1]}, JSON {words_of(peak)}"
    if device["need"]:
        fits = json.loads(output(program, "fit", "-q", "--json", "--no-cards", path))["policies"]
        limit = next(fit["fit_bytes"] for fit in fits if fit["device"] == device["device"])
        if limit != device["need"]["limit_bytes"] or \
           card["allocator_bytes"] != limit + device["need"]["above_limit_bytes"]:
            yield f"{path.name}: fit says {limit}, analyze {device['need']} and {card}"


def documents(program, path, text):
    said = re.search(r"^Card +(?:about|at least) ([\d.]+ \w+) = ", text, re.M)
    if not said:
        return
    with tempfile.TemporaryDirectory() as folder:
        output(program, "analyze", "-q", path, "-o", f"{folder}/report")
        report = pathlib.Path(folder, "report")
        for name in ("summary.md", "report.html"):
            plain = re.sub(r"<[^>]*>", "", (report / name).read_text())
            if said[1] not in plain:
                yield f"{path.name}: {name} does not have {said[1]}"


def has_text(path):
    return path.parent.name in ("captures", "findings", "recorded") and path.name.endswith((".pickle.zst", ".trace.zst"))


def check(program, path, cards, with_documents):
    """(what is wrong, the readings of its passes) of one input."""
    done = subprocess.run([program, "analyze", "-q", path], capture_output=True, text=True, check=False,
                          env={**os.environ, "MEMTRACE_DEBUG": "passes"})
    wrong = []
    if has_text(path):
        if done.returncode:
            return [f"{path.name}: status {done.returncode}: {done.stderr}"], None
        wrong += [*layout(path.name, done.stdout.splitlines()), *values(program, path, done.stdout)]
        if with_documents:
            wrong += documents(program, path, done.stdout)
    if path.parent.name == "captures" and path.name.endswith(".pickle.zst"):
        wrong += typed.check(program, path, done.stdout, cards)
    return wrong, readings.of(done.stderr)


def main(program, fixtures, rewrite):
    paths = readings.inputs(fixtures)
    texts = [path for path in paths if has_text(path)]
    assert texts
    shown = set(texts[::len(texts) // DOCUMENTS])
    cards = typed.cards(program)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda path: check(program, path, cards, path in shown), paths))
    wrong = [one for complaints, _ in found for one in complaints] + typed.refused_limits(program, cards)
    wrong += readings.check([row for _, row in found if row], rewrite)
    print("\n".join(wrong) if wrong else f"{len(texts)} reports, readings of {len(paths)} inputs")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), pathlib.Path(sys.argv[2]), "--update" in sys.argv[3:]))
