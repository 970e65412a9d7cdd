#!/usr/bin/env python3
"""check_text.py PROGRAM FIXTURES: what analyze prints of each fixture has less than
60 lines of at most 100 columns, and says that there is more if there is."""
import pathlib
import sys

from support.program import fast_program, output

MAX_LINES, MAX_COLUMNS, MORE = 59, 100, "(abridged: --all has the rest)"
CHART = "Memory over time"
PASTED = "    Check: "  # a command stays in one line


def analyze(program, path, *options):
    return output(program, "analyze", "-q", path, *options, text=True).splitlines()


def without_chart(lines):
    """What --all has and a pipe does not get otherwise."""
    kept, inside = [], False
    for line in lines:
        inside = line == CHART or (inside and line != "")
        if not inside:
            kept.append(line)
        elif line == CHART:
            kept.pop()
    return kept


def faults(program, path):
    lines = analyze(program, path)
    if len(lines) > MAX_LINES:
        yield f"{path.name}: {len(lines)} lines"
    for line in lines:
        if len(line) > MAX_COLUMNS and not line.startswith(PASTED):
            yield f"{path.name}: {len(line)} columns: {line}"
    if MORE not in lines and lines != without_chart(analyze(program, path, "--all")):
        yield f"{path.name}: does not say that something was left out"


def main(program, fixtures):
    paths = [path for folder in ("captures", "findings", "recorded") for path in sorted((fixtures / folder).glob("*.zst"))
             if path.name.endswith((".pickle.zst", ".trace.zst"))]
    assert paths
    wrong = [fault for path in paths for fault in faults(program, path)]
    print("\n".join(wrong) if wrong else f"{len(paths)} reports")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), pathlib.Path(sys.argv[2])))
