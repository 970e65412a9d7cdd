#!/usr/bin/env python3
"""check_readings.py PROGRAM [--update]: counts how often `analyze` reads each input of fixtures/,
with MEMTRACE_DEBUG=passes, and compares (or rewrites) the figures of docs/architecture.md. Fails if
analyses read more often than the bounds below allow."""
import os
import pathlib
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PATTERNS = ("*.zst", "*.pickle", "*.trace")
MOST_IN_MEDIAN, MOST = 12, 60
ROW = re.compile(r"(\S.*?)  +([\d,]+)  +[\d,]+  ")
TABLE_ROW = re.compile(r"^(\| `(.*)` \|) \d+ \| \d+ \| \d+ \|", re.M)
SUMMARY = re.compile(r"For the \d+ inputs in `fixtures`, .* times at most\.")


def readings_of(program, path):
    """{pass: readings} of one input; the findings together; None if it cannot be analyzed."""
    done = subprocess.run([program, "analyze", "--quiet", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "MEMTRACE_DEBUG": "passes"})
    passes = {}
    for line in done.stderr.splitlines():
        row = ROW.match(line)
        if row:
            name = "findings" if row[1].startswith("finding") else row[1]
            passes[name] = passes.get(name, 0) + int(row[2].replace(",", ""))
    return passes if "total" in passes else None


def figures(rows, name):
    """How many inputs the pass reads, and how often in the median and at most."""
    reads = [row[name] for row in rows if row.get(name)]
    return len(reads), int(statistics.median_high(reads or [0])), max(reads or [0])


def page_with(page, rows):
    inputs, median, most = figures(rows, "total")
    page = TABLE_ROW.sub(lambda row: row[1] + " {} | {} | {} |".format(*figures(rows, row[2])), page)
    page, found = SUMMARY.subn(f"For the {inputs} inputs in `fixtures`, it reads {median} times in the median, and {most} "
                               "times at most.", page)
    if found != 1:
        raise SystemExit(f"{PAGE.name} lacks the sentence 'For the N inputs in `fixtures`, ... times at most.'")
    return page


def main():
    program = fast_program(sys.argv[1])
    paths = sorted(path for pattern in PATTERNS for path in (ROOT / "fixtures").rglob(pattern))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = [row for row in pool.map(lambda path: readings_of(program, path), paths) if row]
    page = PAGE.read_text()
    wanted = page_with(page, rows)
    named = {row[2] for row in TABLE_ROW.finditer(page)}
    passes = {name for row in rows for name in row} - {"total"}
    if passes != named:
        raise SystemExit(f"{PAGE.name} has no row for {sorted(passes - named)}, and rows of no pass: {sorted(named - passes)}")
    _, median, most = figures(rows, "total")
    if median > MOST_IN_MEDIAN or most > MOST:
        raise SystemExit(f"analyze reads {median} times in the median and {most} times at most; "
                         f"{MOST_IN_MEDIAN} and {MOST} are allowed")
    if "--update" in sys.argv:
        PAGE.write_text(wanted)
    elif wanted != page:
        raise SystemExit(f"the figures of {PAGE.name} are not those of this program: "
                         "tests/check_readings.py PROGRAM --update")


if __name__ == "__main__":
    main()
