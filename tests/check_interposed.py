#!/usr/bin/env python3
"""The widths of arguments in interposed_list.h against the vendor's own structures.

    check_interposed.py

MEMTRACE_CUPTI_HEADERS: folders that hold generated_cuda_meta.h, with colons
between them. Without any: status 77.
"""
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOUR = {"int", "unsigned int", "CUdevice", "CUmemAllocationType", "CUmemAllocationHandleType",
        "CUmemAllocationHandleType_enum"}
EIGHT = {"size_t", "CUdeviceptr", "CUstream", "CUmemoryPool", "CUmemGenericAllocationHandle",
         "CUarray", "CUmipmappedArray", "CUgraph", "CUcontext", "CUgreenCtx", "CUdevResourceDesc",
         "CUexternalMemory", "unsigned long long"}


def table():
    text = (ROOT / "collector/interpose/interposed_list.h").read_text()
    return dict(re.findall(r'^INTERPOSED\((\w+), \w+, "(\w+)"\)$', text, re.M))


def width(member):
    kind = re.sub(r"\bconst\b|\benum\b", "", member.rsplit(" ", 1)[0]).strip()
    if "*" in member:
        return "8"
    if kind in FOUR:
        return "4"
    if kind in EIGHT:
        return "8"
    raise ValueError(f"of unknown width: {member}")


def structures(path):
    found = {}
    for name, body in re.findall(r"typedef struct (\w+)_params_st \{(.*?)\}", path.read_text(),
                                 re.S):
        found[name] = [line.strip() for line in body.strip().split(";") if line.strip()]
    return found


def check(path):
    failures = checked = 0
    theirs = structures(path)
    for name, ours in table().items():
        if name not in theirs:
            continue
        checked += 1
        widths = "".join(width(member) for member in theirs[name])
        if ours.replace("s", "8") != widths:
            print(f"{path}: {name} is {widths}, not {ours}", file=sys.stderr)
            failures += 1
        for place, kind in enumerate(ours):
            if kind == "s" and not theirs[name][place].startswith("CUstream "):
                print(f"{path}: {name}: argument {place} is no stream", file=sys.stderr)
                failures += 1
    print(f"{checked} of {len(table())} functions are in {path}")
    return failures or checked < len(table()) * 3 // 4


def main():
    folders = os.environ.get("MEMTRACE_CUPTI_HEADERS", "/usr/local/cuda/include").split(":")
    paths = [Path(folder) / "generated_cuda_meta.h" for folder in folders]
    paths = [path for path in paths if path.exists()]
    if not paths:
        print("no generated_cuda_meta.h: set MEMTRACE_CUPTI_HEADERS")
        return 77
    return 1 if sum(check(path) for path in paths) else 0


if __name__ == "__main__":
    sys.exit(main())
