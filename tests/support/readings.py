"""How often `analyze` reads each input of fixtures/, as MEMTRACE_DEBUG=passes prints it, compared with the figures of
docs/architecture.md and with the bounds below."""
import pathlib
import re
import statistics

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "architecture.md"
PATTERNS = ("*.zst", "*.pickle", "*.trace")
MOST_IN_MEDIAN, MOST = 12, 60
ROW = re.compile(r"(\S.*?)  +([\d,]+)  +[\d,]+  ")
TABLE_ROW = re.compile(r"^(\| `(.*)` \|) \d+ \| \d+ \| \d+ \|", re.M)
SUMMARY = re.compile(r"For the \d+ inputs in `fixtures`, .* times at most\.")


def inputs(fixtures):
    return sorted(path for pattern in PATTERNS for path in fixtures.rglob(pattern))


def of(errors):
    """{pass: readings} of what one analysis wrote to standard error; the findings together; None if it failed."""
    passes = {}
    for line in errors.splitlines():
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


def check(rows, rewrite):
    """Yields what is wrong with the readings of all inputs, or writes them into the page."""
    page = PAGE.read_text()
    wanted = page_with(page, rows)
    named = {row[2] for row in TABLE_ROW.finditer(page)}
    passes = {name for row in rows for name in row} - {"total"}
    if passes != named:
        yield f"{PAGE.name} has no row for {sorted(passes - named)}, and rows of no pass: {sorted(named - passes)}"
    _, median, most = figures(rows, "total")
    if median > MOST_IN_MEDIAN or most > MOST:
        yield (f"analyze reads {median} times in the median and {most} times at most; "
               f"{MOST_IN_MEDIAN} and {MOST} are allowed")
    if rewrite:
        PAGE.write_text(wanted)
    elif wanted != page:
        yield f"the figures of {PAGE.name} are not those of this program: tests/check_text.py PROGRAM FIXTURES --update"
