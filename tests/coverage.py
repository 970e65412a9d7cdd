#!/usr/bin/env python3
"""Lines of the product that ran, by folder; what a build with the preset `coverage` wrote down.

    coverage.py BUILD [--files] [--zero]

--files lists the files instead of folders, --zero those of which no line ran. The last line has the
number of files of which a line ran, of all, and the lines. Counts add up over runs until --reset."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

LAYERS = ("base", "trace", "collector", "simulate", "analyzer", "fleet", "render", "cli")


def counts_of(build, root):
    """(lines that ran, lines) of every source file of the product."""
    ran, lines = collections.defaultdict(set), collections.defaultdict(set)
    notes = [path for path in build.rglob("*.gcno") if path.relative_to(build).parts[0] in LAYERS]
    if not notes:
        sys.exit(f"no *.gcno in {build}: `./dev coverage` makes such a build")
    for start in range(0, len(notes), 100):
        command = ["gcov", "--json-format", "--stdout", *(str(path.resolve()) for path in notes[start:start + 100])]
        listing = subprocess.run(command, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        for document in listing.splitlines():
            for file in json.loads(document)["files"]:
                path = os.path.relpath(os.path.join(build, file["file"]), root)
                if path.split(os.sep)[0] not in LAYERS:
                    continue
                for line in file["lines"]:
                    lines[path].add(line["line_number"])
                    if line["count"]:
                        ran[path].add(line["line_number"])
    return {path: (len(ran[path]), len(lines[path])) for path in sorted(lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--zero", action="store_true")
    parser.add_argument("--reset", action="store_true", help="forget all runs so far")
    arguments = parser.parse_args()
    if arguments.reset:
        for path in arguments.build.rglob("*.gcda"):
            path.unlink()
        return
    counts = counts_of(arguments.build, pathlib.Path(__file__).resolve().parent.parent)
    rows = collections.defaultdict(lambda: (0, 0))
    for path, (ran, lines) in counts.items():
        if arguments.zero and ran:
            continue
        key = path if arguments.files or arguments.zero else os.path.dirname(path)
        rows[key] = (rows[key][0] + ran, rows[key][1] + lines)
    for name, (ran, lines) in rows.items():
        print(f"{100 * ran / lines:5.1f}%  {ran:6,} of {lines:6,}  {name}")
    sources = {path: pair for path, pair in counts.items() if path.endswith(".c")}
    ran, lines = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    print(f"{100 * ran / lines:5.1f}%  {ran:6,} of {lines:6,}  in {sum(1 for pair in sources.values() if pair[0])} of {len(sources)} .c files")


if __name__ == "__main__":
    main()
