#!/usr/bin/env python3
"""check_json_bounds.py PROGRAM MAKE_BOMB: documents stay small, whatever a trace holds.

For traces of thousands of things each document must stay below MAX_BYTES and agree with
its schema, and a list that is cut must say how many rows it lacks. --all must lift the limits."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from support.json_schema import Schemas
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_BYTES = 1_000_000
ROWS, FRAMES, TEXT_BYTES = 1000, 128, 4096

# bomb, its size, command, lists (path from the document) and rows that they have with --all
CASES = [
    ("phases", 5_000, "analyze", [("devices", 0, "phases"), ("devices", 0, "peak_sites")], 5_000),
    ("phases", 5_000, "live", [("devices", 0, "rows")], 5_000),
    ("steps", 3_000, "analyze", [("devices", 0, "steps"), ("devices", 0, "phases")], 3_000),
    ("sites", 3_000, "lines", [("devices", 0, "functions")], 3_000),
    ("heaps", 3_000, "info", [("heaps",)], 3_000),
    ("deep_leaves", 1_200, "analyze", [("devices", 0, "peak_sites")], None),
    ("deep_leaves", 1_200, "live --by stack", [("devices", 0, "rows")], None),
    ("names_long", 20, "lines", [], None),
    ("names_long", 200, "live --by stack", [], None),
    ("names_long", 200, "diff", [], None),
    ("devices", 60, "analyze", [], None),
]


def printed(program, words):
    """(document, its size)"""
    done = subprocess.run([program, *words, "--json", "-q"], capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout), len(done.stdout)


def walk(node, path=()):
    yield path, node
    for key, item in node.items() if isinstance(node, dict) else \
            enumerate(node) if isinstance(node, list) else ():
        yield from walk(item, path + (key,))


def rows(document, path):
    """(rows, rows that are missing) of a list"""
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    return len(parent[path[-1]]), parent.get(f"{path[-1]}_omitted", 0)


def check_limits(document):
    """No list, stack or text is longer than documented."""
    for path, node in walk(document):
        if isinstance(node, str) and len(node.encode()) > TEXT_BYTES + 3:
            yield f"{path}: a text of {len(node.encode())} bytes"
        if isinstance(node, list):
            limit = FRAMES if path[-1] == "stack" else ROWS
            if len(node) > limit:
                yield f"{path}: {len(node)} of at most {limit} rows"


def check(program, trace, command, lists, count, schemas):
    words = [command.split()[0], trace, *([trace] if command == "diff" else []), *command.split()[1:]]
    document, size = printed(program, words)
    name = re.sub(r"^memtrace\.(.*)/1$", r"\1", document["schema"]) + ".json"
    yield from schemas.complaints(document, name)[:3]
    yield from list(check_limits(document))[:3]
    if size > MAX_BYTES:
        yield f"{size:,} bytes, at most {MAX_BYTES:,} are expected"
    for path in lists:
        shown, omitted = rows(document, path)
        if not omitted:
            yield f"{path}: nothing is omitted of {shown} rows"
        if count and shown + omitted != count:
            yield f"{path}: {shown} rows and {omitted} omitted, not {count}"
    if count:
        document, _ = printed(program, [*words, "--all"])
        yield from (f"--all: {path}: {rows(document, path)}" for path in lists
                    if rows(document, path) != (count, 0))
        yield from (f"--all: {path} is there" for path, _ in walk(document)
                    if path and str(path[-1]).endswith("_omitted"))


def check_stacks(program, trace):
    """The end of a stack is kept: the frames that a stack of --all ends with."""
    cut, _ = printed(program, ["live", trace])
    whole, _ = printed(program, ["live", trace, "--all"])
    for ours, theirs in zip(cut["devices"][0]["rows"][:3], whole["devices"][0]["rows"]):
        if ours["stack"] != theirs["stack"][-FRAMES:] or \
                len(ours["stack"]) + ours["stack_omitted"] != len(theirs["stack"]):
            yield "live: a stack is not the end of the whole one"


def main(program, make_bomb):
    schemas = Schemas(ROOT / "docs" / "schema")
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, size, command, lists, count in CASES:
            trace = pathlib.Path(folder, f"{kind}.trace.zst")
            if not trace.exists():
                subprocess.run([make_bomb, kind, str(size), trace], check=True)
            complaints += [f"{kind} {size}: {command}: {complaint}" for complaint in
                           check(program, trace, command, lists, count, schemas)]
        short = pathlib.Path(folder, "short.trace.zst")
        subprocess.run([make_bomb, "deep_leaves", "200", short], check=True)
        complaints += check_stacks(program, short)
    print("\n".join(complaints) or f"{len(CASES)} documents are within their limits")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), sys.argv[2]))
