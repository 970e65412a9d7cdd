#!/usr/bin/env python3
"""Layers and rooms.

Includes and calls point one way. In the core: base <- trace <- {collector, analyzer},
analyzer <- render, cli sees all. The annexes, simulate and fleet, see the core and not each
other. Inside a layer, a folder may use those that stand before it in FOLDERS. File names are
unique, so that an include by name means one file. Libraries neither print nor exit (a failed
MT_ASSERT of base/check.c does, in builds that have it).

A room is a .c file with its .h file. Rooms that need each other in a circle,
by includes or by calls, cannot be read one after the other: no circle may hold
more than MAX_ROOMS rooms, and there may be at most MAX_CIRCLES circles.

    check_layers.py [--build DIR] [ROOT]

Calls are read with nm from the objects of the build in DIR; without --build only
includes are checked.
"""

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict

FOLDERS = {
    "base": ["", "text", "files", "cards", "database"],
    "trace": [""],
    "collector": ["tape", "inject/collect", "inject/stacks", "inject/cupti", "inject/nvtx",
                  "inject/torch", "inject", "interpose", "import/read", "import/torch", "import/rows",
                  "import", "record"],
    "analyzer": ["data", "allocators", "attribute", "attribute/roles", "optimal", "foresight",
                 "replay", "passes", "models", "whatif", "findings", "compare", "report"],
    "render": ["", "charts", "documents"],
    "cli": ["oom", "output", "perfetto", "tables", "answer", "database", "view", "replays", "compare",
            "record", ""],
    "simulate": ["asker", "driver", "driver/cudnn", "site", "commands"],
    "fleet": ["data", "summary", "merge", "mpi", "answers", "charts", "pages", "job", "commands"],
}
CORE = ["base", "trace", "collector", "analyzer", "render", "cli"]
BELOW = {  # of a layer, or of a folder that may use more
    "base": [],
    "trace": ["base"],
    "collector": ["base", "trace"],
    "analyzer": ["base", "trace"],
    "render": ["base", "trace", "analyzer"],
    "cli": ["base", "trace", "collector", "analyzer", "render"],
    "simulate": ["base", "trace"],
    "simulate/commands": CORE,
    "fleet": ["base", "trace", "analyzer"],
    "fleet/charts": ["base", "trace", "analyzer", "render"],
    "fleet/pages": ["base", "trace", "analyzer", "render"],
    "fleet/job": CORE,
    "fleet/commands": CORE,
}
TABLES = ("cli/annexes.c", "cli/commands.c")  # list what the build links, also of the annexes
MAX_ROOMS = 3
MAX_CIRCLES = 8

INCLUDE = re.compile(r'^ *# *include *"([^"]+)"', re.M)
NOT_CODE = re.compile(  # comments, strings and characters
    r"""/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.S)
OUTPUT = re.compile(
    r"(?:^|[^a-z_])(?:printf|puts|putchar|perror|exit|_exit|abort) ?\(|\bstd(?:out|err)\b")
PRINTERS = ("cli/", "fleet/job/", "fleet/commands/", "simulate/commands/",
            "collector/record/", "base/check.c",  # programs' own folder; MT_ASSERT
            "base/memory_end.c",  # out of memory
            "simulate/site/wheel.c")  # a forked child

problems = []


def complain(text):
    problems.append(text)
    print(f"check_layers: {text}", file=sys.stderr)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def find_files(root):
    """Every source file of the layers: name -> path."""
    files = {}
    for layer in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, layer)):
            for name in sorted(names):
                if not name.endswith((".c", ".h", ".def")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                if name in files:
                    complain(f"two files have one name: {files[name]} and {path}")
                files[name] = path
    return files


def place_of(path):
    """(layer, folder) of a file."""
    layer, _, rest = os.path.dirname(path).partition("/")
    return layer, rest


def may_use(user, used):
    """May a file at `user` use one at `used`?"""
    (layer, folder), (other, other_folder) = place_of(user), place_of(used)
    if layer != other:
        return user in TABLES or other in BELOW.get(f"{layer}/{folder}", BELOW[layer])
    if used in TABLES:
        return True
    order = FOLDERS[layer]
    if folder not in order or other_folder not in order:
        return folder == other_folder
    return order.index(other_folder) <= order.index(folder)


def room_of(name):
    return os.path.splitext(os.path.basename(name))[0]


def check_includes(root, files):
    """Includes between rooms: room -> rooms."""
    uses = defaultdict(set)
    for name, path in files.items():
        for include in INCLUDE.findall(read(root, path)):
            used = files.get(os.path.basename(include))
            if not used:
                complain(f"{path} includes {include}, which is in no layer")
            elif not may_use(path, used):
                complain(f"{path} must not include {used}")
            elif room_of(used) != room_of(name) and path not in TABLES:
                uses[room_of(name)].add(room_of(used))
    return uses


def check_output(root, files):
    for path in files.values():
        if path.startswith(PRINTERS) or path == "base/check.h":
            continue
        code = NOT_CODE.sub(" ", read(root, path))
        if OUTPUT.search(code.replace("__attribute__((format(printf", "")):
            complain(f"{path} is part of a library: it must not print or exit")


def symbols_of(build, files):
    """Defined and undefined symbols by source file."""
    objects, defined, needed = [], defaultdict(list), defaultdict(set)
    for folder, _, names in os.walk(build):
        if f"{os.sep}tests" in folder[len(build):]:
            continue
        for name in names:
            source = files.get(name[:-2]) if name.endswith(".c.o") else None
            # A build folder may hold objects of files that have moved since.
            if source and os.path.basename(os.path.dirname(source)) in folder.split(os.sep):
                objects.append(os.path.join(folder, name))
    # One program for all objects: nm loads plugins when it starts, which takes longer than reading.
    listing = subprocess.run(["xargs", "-0", "nm", "-A", "-P"], input="\0".join(objects), text=True,
                             capture_output=True, check=True).stdout if objects else ""
    for line in listing.splitlines():
        path, _, columns = line.partition(".o: ")
        user, (symbol, kind) = os.path.basename(path), columns.split()[:2]
        if kind == "U":
            needed[user].add(symbol)
        elif kind.isupper():
            defined[symbol].append(user)
    return defined, needed


def definer_of(symbol, user, defined, files):
    """The file that a call means: programs and libraries may use one name twice."""
    # The interposer library and the asker define functions of the C library for others.
    names = [name for name in defined.get(symbol, ())
             if place_of(files[name]) not in (("collector", "interpose"), ("simulate", "asker"))]
    layer = place_of(files[user])[0]
    return next((name for name in names if place_of(files[name])[0] == layer),
                names[0] if names else None)


def check_calls(build, files):
    """Calls between rooms: room -> rooms."""
    defined, needed = symbols_of(build, files)
    uses = defaultdict(set)
    if not defined:
        complain(f"no objects with symbols in {build}")
    for name, symbols in needed.items():
        for symbol in sorted(symbols):
            used = definer_of(symbol, name, defined, files)
            if not used:
                continue
            if not may_use(files[name], files[used]):
                complain(f"{files[name]} must not call {symbol} of {files[used]}")
            elif room_of(used) != room_of(name) and files[name] not in TABLES:
                uses[room_of(name)].add(room_of(used))
    return uses


def find_circles(uses):
    """Strongly connected components of more than one room (Tarjan), largest first."""
    index, low, stack, on_stack, circles = {}, {}, [], set(), []

    def visit(room):
        work = [(room, iter(sorted(uses.get(room, ()))))]
        index[room] = low[room] = len(index)
        stack.append(room)
        on_stack.add(room)
        while work:
            at, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(uses.get(other, ())))))
                    break
                if other in on_stack:
                    low[at] = min(low[at], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    circle = []
                    while not circle or circle[-1] != at:
                        circle.append(stack.pop())
                        on_stack.discard(circle[-1])
                    if len(circle) > 1:
                        circles.append(sorted(circle))

    for room in sorted(uses):
        if room not in index:
            visit(room)
    return sorted(circles, key=lambda circle: (-len(circle), circle))


def check_circles(uses):
    circles = find_circles(uses)
    for circle in circles:
        if len(circle) > MAX_ROOMS:
            complain(f"a circle of {len(circle)} rooms: {', '.join(circle)}")
    if len(circles) > MAX_CIRCLES:
        listing = "; ".join(" ".join(circle) for circle in circles)
        complain(f"{len(circles)} circles of rooms, {MAX_CIRCLES} are allowed: {listing}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build")
    parser.add_argument("root", nargs="?", default=os.path.join(os.path.dirname(__file__), ".."))
    arguments = parser.parse_args()
    files = find_files(arguments.root)
    uses = check_includes(arguments.root, files)
    check_output(arguments.root, files)
    if arguments.build:
        for room, others in check_calls(arguments.build, files).items():
            uses[room] |= others
    check_circles(uses)
    return 1 if problems else 0


sys.exit(main())
