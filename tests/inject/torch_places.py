#!/usr/bin/env python3
"""What source_torch_versions.c has to know of a release of PyTorch, from its libc10_cuda.so.

    torch_places.py PATH/torch/lib/libc10_cuda.so...

Prints the row of the table: number of virtual functions of the native caching allocator, and the places of those that memtrace
uses; and whether the table has it for the version in PATH/torch/version.py. Exit status 1 if not. Needs the library's symbols
(wheels have them) and readelf. The headers show whether entries have the pool: `mempool_` in struct TraceEntry, which must
begin as described in that file."""

import pathlib, re, subprocess, sys

CLASS = "3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator"
WANTED = {"init": "4initEi", "empty_cache": "10emptyCacheE", "set_fraction": "17setMemoryFractionE",
          "attach_tracker": "27attachAllocatorTraceTrackerE"}


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def symbols(library):
    """(name, value, size) of all of them."""
    for line in readelf("-s", library):
        part = line.split()
        if len(part) == 8 and part[0][:-1].isdigit():
            yield part[7], int(part[1], 16), int(part[2], 0)


def relative_words(library):
    """Address of a word -> the address in the library that the loader stores there."""
    found = {}
    for line in readelf("-r", library):
        match = re.match(r"([0-9a-f]+) +[0-9a-f]+ R_\w+_RELATIVE +([0-9a-f]+)", line)
        if match:
            found[int(match[1], 16)] = int(match[2], 16)
    return found


def row(library):
    table, functions = None, {}
    for name, value, size in symbols(library):
        if name == f"_ZTVN{CLASS}E":
            table = value, size // 8 - 2
        for key, tail in WANTED.items():
            if name.startswith(f"_ZN{CLASS}{tail}") and "." not in name:
                functions[key] = value
    if not table or len(functions) != len(WANTED):
        sys.exit(f"{library}: no symbols of the native caching allocator")
    words = relative_words(library)
    entries = [words.get(table[0] + 16 + 8 * i) for i in range(table[1])]
    return [table[1]] + [entries.index(functions[key]) for key in WANTED]


def table():
    """(major, minor) -> the row that source_torch_versions.c has."""
    source = pathlib.Path(__file__).parents[2] / "collector" / "inject" / "source_torch_versions.c"
    rows = re.findall(r"\{(2), (\d+), ([\d, ]+), (?:true|false)\}", source.read_text())
    return {(int(major), int(minor)): [int(n) for n in places.split(",")] for major, minor, places in rows}


def version_of(library):
    text = (pathlib.Path(library).parent.parent / "version.py").read_text()
    return tuple(map(int, re.search(r"__version__ = '(\d+)\.(\d+)\.", text).groups()))


def main():
    known, agree = table(), True
    for library in sys.argv[1:] or sys.exit(__doc__):
        found, version = row(library), version_of(library)
        same = known.get(version) == found
        agree &= same
        print(library, ".".join(map(str, version)), ", ".join(map(str, found)), "as in the table" if same else "NOT in the table")
    sys.exit(0 if agree else 1)


main()
