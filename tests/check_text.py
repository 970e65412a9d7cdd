#!/usr/bin/env python3
"""check_text.py PROGRAM FIXTURES: what analyze prints of each fixture has at most 25 lines of at most 100 columns."""
import pathlib
import sys

from support.program import fast_program, output

MAX_LINES, MAX_COLUMNS = 25, 100
PASTED = "Check: "  # a command stays in one line


def analyze(program, path, *options):
    return output(program, "analyze", "-q", path, *options, text=True).splitlines()


def faults(program, path):
    lines = analyze(program, path)
    if len(lines) > MAX_LINES:
        yield f"{path.name}: {len(lines)} lines"
    for line in lines:
        if len(line) > MAX_COLUMNS and not line.lstrip().startswith(PASTED):
            yield f"{path.name}: {len(line)} columns: {line}"


def main(program, fixtures):
    paths = [path for folder in ("captures", "findings", "recorded") for path in sorted((fixtures / folder).glob("*.zst"))
             if path.name.endswith((".pickle.zst", ".trace.zst"))]
    assert paths
    wrong = [fault for path in paths for fault in faults(program, path)]
    print("\n".join(wrong) if wrong else f"{len(paths)} reports")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), pathlib.Path(sys.argv[2])))
