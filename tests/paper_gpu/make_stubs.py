#!/usr/bin/env python3
"""Builds the libraries of a CUDA toolkit, on paper, that an installed torch wheel asks for.

    make_stubs.py TORCH_LIB_FOLDER OUT_FOLDER CUDA_INCLUDE

Each library gets every function that torch's own libraries need from it: those written by hand in libraries/NAME.c,
and for all others one that answers 0. A function that creates something (its name holds "Create" or "Init") puts a
handle where its first argument points to."""

import glob, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-g", "-fPIC"]
# Where functions without a version come from.
PREFIXES = {"nccl": "libnccl.so.2", "cuFile": "libcufile.so.0", "cusparseLt": "libcusparseLt.so.0"}
# Libraries that are made elsewhere: the runtime beside this file, the driver and CUPTI by the project's stand-ins.
ELSEWHERE = ("libcudart.so", "libcuda.so", "libcupti.so")
TOOLKIT = re.compile(r"lib(cu|nv|nccl|accinj)")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wanted(folder):
    """{library: {function: version or None}} over all libraries of torch."""
    libraries = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if ".so" not in name or not os.path.isfile(path):
            continue
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path)):
            if TOOLKIT.match(needed) and not needed.startswith(ELSEWHERE):
                libraries.setdefault(needed, {})
        files = version_files(path)
        for line in run("nm", "-D", "--undefined-only", path).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            version = version.lstrip("@")
            library = files.get(version) or next((PREFIXES[p] for p in PREFIXES if re.match(p + "[A-Z]", symbol)), None)
            if library and TOOLKIT.match(library) and not library.startswith(ELSEWHERE):
                libraries.setdefault(library, {})[symbol] = version or None
    return libraries


def version_files(path):
    """{version: library that it is asked of}."""
    files, current = {}, None
    for line in run("readelf", "-VW", path).splitlines():
        if found := re.search(r"File: (\S+)", line):
            current = found[1]
        elif (found := re.search(r"Name: (\S+)\s+Flags", line)) and current:
            files[found[1]] = current
    return files


def stub(symbol):
    if "nvrtc" not in symbol and re.search(r"Create(?!d)|Init(?!i)", symbol):
        # An int at least: cufftHandle is one.
        return f"int {symbol}(unsigned *handle) {{ static unsigned count; if (handle) *handle = ++count; return 0; }}"
    return f"int {symbol}(void) {{ return 0; }}"


def build(library, functions, out, include, defines):
    stem = re.match(r"lib(\w+)\.so", library)[1]
    objects, by_hand = [], set()
    source = os.path.join(HERE, "libraries", f"paper_{stem.lower()}.c")
    if os.path.exists(source):
        made = os.path.join(out, f"{stem}_by_hand.o")
        subprocess.run([*FLAGS, "-Wall", "-Wextra", *defines, "-I", include, "-c", source, "-o", made], check=True)
        by_hand = {line.split()[-1] for line in run("nm", "--defined-only", "-g", made).splitlines()}
        objects.append(made)
    generated = os.path.join(out, f"{stem}.c")
    with open(generated, "w") as f:
        f.write("\n".join(stub(s) for s in sorted(set(functions) - by_hand)) + "\n")
    versions = {}
    for symbol in sorted(set(functions) | by_hand):
        versions.setdefault(functions.get(symbol) or next((v for v in functions.values() if v), None), []).append(symbol)
    command = [*FLAGS, "-shared", f"-Wl,-soname,{library}", generated, *objects]
    if None not in versions and versions:
        script = os.path.join(out, f"{stem}.map")
        with open(script, "w") as f:
            for version, symbols in versions.items():
                f.write(f"{version} {{ global: {'; '.join(symbols)}; }};\n")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run([*command, "-o", os.path.join(out, library)], check=True)
    return len(functions) - len(by_hand & set(functions)), len(by_hand)


def versions(folder):
    """What the wheel says that it was built against, as macros for the libraries by hand."""
    found = []
    for path in glob.glob(os.path.join(folder, "..", "..", "torch-*.dist-info", "METADATA")):
        with open(path) as f:
            text = f.read()
        for library, scale in (("cudnn", 10000), ("nccl", 10000)):
            if got := re.search(rf"nvidia-{library}-cu\d+==(\d+)\.(\d+)\.(\d+)", text):
                number = int(got[1]) * scale + int(got[2]) * 100 + int(got[3])
                found.append(f"-DPAPER_{library.upper()}_VERSION={number}")
    return found


def main():
    folder, out, include = sys.argv[1:4]
    os.makedirs(out, exist_ok=True)
    for library, functions in sorted(wanted(folder).items()):
        generated, by_hand = build(library, functions, out, include, versions(folder))
        print(f"{library}: {generated} generated, {by_hand} by hand")


main()
