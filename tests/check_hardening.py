#!/usr/bin/env python3
"""check_hardening.py PROGRAM LIBRARY...: checks that optimized binaries have the protections of
cmake/hardening.cmake.

A flag that the build drops silently (an option overridden, a file compiled without the common
target) leaves no other trace. Uses readelf, which comes with every gcc."""
import re
import subprocess
import sys

SMALL_BYTES = 8192
ENDBR64 = bytes.fromhex("f30f1efa")


def readelf(path, *options):
    command = ["readelf", "-W", *options, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def section_bytes(path, name):
    for line in readelf(path, "-S").splitlines():
        found = re.search(r"\]\s+" + re.escape(name) + r"\s+PROGBITS\s+\S+\s+(\S+)\s+(\S+)", line)
        if found:
            offset, size = (int(text, 16) for text in found.groups())
            with open(path, "rb") as file:
                file.seek(offset)
                return file.read(size)
    return b""


def faults(path, is_program):
    """What is missing in the file at `path`, as sentences."""
    dynamic, segments, header = readelf(path, "-d"), readelf(path, "-l"), readelf(path, "-h")
    symbols = readelf(path, "--dyn-syms")
    if is_program and "PIE" not in dynamic:
        yield "the program is not position independent (no PIE flag)"
    if "GNU_RELRO" not in segments:
        yield "no GNU_RELRO segment"
    if "BIND_NOW" not in dynamic and not re.search(r"FLAGS_1.*NOW", dynamic):
        yield "symbols are bound lazily: RELRO does not cover the GOT"
    if re.search(r"GNU_STACK\s.*RWE", segments) or "GNU_STACK" not in segments:
        yield "the stack is executable"
    if "RPATH" in dynamic or "RUNPATH" in dynamic:
        yield "it has a RPATH or RUNPATH: libraries come from a folder of the build machine"
    if "TEXTREL" in dynamic:
        yield "it has text relocations"
    if "__stack_chk_fail" not in symbols:
        yield "no stack protector (no __stack_chk_fail)"
    text = section_bytes(path, ".text")
    # A library of few functions may call none that _FORTIFY_SOURCE replaces.
    is_small = len(text) < SMALL_BYTES
    if not is_small and not re.search(r"__(mem|str|v?sn)\w+_chk\b", symbols):
        yield "no _FORTIFY_SOURCE (no __*_chk function)"
    # A module exports a few functions and has pointers to few others: each of the former has one.
    exported = len(re.findall(r"FUNC +GLOBAL +DEFAULT +\d+ ", symbols))
    least = exported if 0 < exported <= 5 else 5 if is_small else 50
    if "X86-64" in header and text.count(ENDBR64) < least:
        yield f"no CET (fewer than {least} endbr64 in .text)"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    bad = False
    for index, path in enumerate(sys.argv[1:]):
        for fault in faults(path, is_program=index == 0):
            print(f"{path}: {fault}")
            bad = True
    if not bad:
        print("hardening: everything is there")
    return bad


if __name__ == "__main__":
    sys.exit(main())
