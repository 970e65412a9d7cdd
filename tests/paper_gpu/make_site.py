#!/usr/bin/env python3
"""A Python path on which an installed torch wheel finds a GPU that is not there.

    make_site.py SITE_PACKAGES OUT

OUT/torch holds links to the wheel's files: its libraries look for CUDA's beside the folder that they were opened from
($ORIGIN/../../nvidia/cu13/lib), so they find those that this makes in OUT/nvidia/cu13/lib:
- the runtime, from cudart/; the driver, CUPTI and NVML: the project's stand-ins (fixtures/standin);
- every other library that torch's own need: the functions written by hand in libraries/, and for all others one that
  answers 0. A function that creates something (its name holds "Create" or "Init") puts a number where its first
  argument points to.
Headers: of the toolkit in $CUDA_HOME (/usr/local/cuda), or of the vendor's wheels in SITE_PACKAGES."""

import glob, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
STANDIN = os.path.join(HERE, "..", "..", "fixtures", "standin")
COMPILE = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-g", "-fPIC", "-Wall", "-Wextra"]
# Where functions without a version come from.
NVML = "libnvidia-ml.so.1"
PREFIXES = {"nccl": "libnccl.so.2", "cuFile": "libcufile.so.0", "cusparseLt": "libcusparseLt.so.0"}
TOOLKIT = re.compile(r"lib(cu|nv|nccl)")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def link_wheel(site_packages, out):
    wheel = os.path.join(site_packages, "torch")
    for folder in ("", "lib"):
        os.makedirs(os.path.join(out, "torch", folder), exist_ok=True)
        for name in os.listdir(os.path.join(wheel, folder)):
            at = os.path.join(out, "torch", folder, name)
            if os.path.join(folder, name) not in ("lib", "__pycache__") and not os.path.lexists(at):
                os.symlink(os.path.join(os.path.abspath(wheel), folder, name), at)


def version_files(path):
    """{version: library that it is asked of}."""
    files, current = {}, None
    for line in run("readelf", "-VW", path).splitlines():
        if found := re.search(r"File: (\S+)", line):
            current = found[1]
        elif (found := re.search(r"Name: (\S+)\s+Flags", line)) and current:
            files[found[1]] = current
    return files


def wanted(folder):
    """{library: {function: version or None}} over all libraries of torch."""
    libraries = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.so*"))):
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path)):
            if TOOLKIT.match(needed):
                libraries.setdefault(needed, {})
        files = version_files(path)
        for line in run("nm", "-D", "--undefined-only", path).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            version = version.lstrip("@")
            library = files.get(version) or next((PREFIXES[p] for p in PREFIXES if re.match(p + "[A-Z]", symbol)), None)
            if library and TOOLKIT.match(library):
                libraries.setdefault(library, {})[symbol] = version or None
    with open(os.path.join(folder, "libc10_cuda.so"), "rb") as f: # what it looks up by name
        libraries[NVML] = {name.decode(): None for name in set(re.findall(rb"\0(nvml[A-Z]\w+)(?=\0)", f.read()))}
    return libraries


def macros(site_packages):
    """What the wheel says that it was built against, for the libraries written by hand."""
    found = []
    for path in glob.glob(os.path.join(site_packages, "torch-*.dist-info", "METADATA")):
        with open(path) as f:
            text = f.read()
        for library in "cudnn", "nccl":
            if got := re.search(rf"nvidia-{library}-cu\d+==(\d+)\.(\d+)\.(\d+)", text):
                number = int(got[1]) * 10000 + int(got[2]) * 100 + int(got[3])
                found.append(f"-DPAPER_{library.upper()}_VERSION={number}")
    return found


def includes(site_packages):
    toolkit = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
    folders = [toolkit, *glob.glob(os.path.join(site_packages, "nvidia", "*", "include"))]
    return [f"-I{folder}" for folder in folders if os.path.isdir(folder)] + [f"-I{STANDIN}"]


def sources(library):
    """What is written by hand of a library."""
    stem = re.match(r"lib([\w-]+)\.so", library)[1]
    if library == NVML:
        return [os.path.join(STANDIN, "nvml_standin.c"), os.path.join(HERE, "libraries", "paper_nvml.c")]
    if stem == "cudart":
        return glob.glob(os.path.join(HERE, "cudart", "*.c"))
    if stem == "cuda":
        return glob.glob(os.path.join(STANDIN, "driver_*.c"))
    if stem == "cupti":
        return [os.path.join(STANDIN, "cupti_standin.c")]
    return glob.glob(os.path.join(HERE, "libraries", f"paper_{stem.lower()}.c"))


def stub(symbol):
    if symbol.startswith("nvml"):
        return f"int {symbol}(void) {{ return 3; }}" # not supported
    if not symbol.startswith("nvrtc") and re.search(r"Create(?!d)|Init(?!i)", symbol):
        return f"int {symbol}(unsigned *made) {{ static unsigned count; if (made) *made = ++count; return 0; }}"
    return f"int {symbol}(void) {{ return 0; }}"


def build(library, functions, out, flags):
    work = os.path.join(out, "made", library)
    os.makedirs(work, exist_ok=True)
    by_hand, objects = set(), []
    for source in sources(library):
        objects.append(os.path.join(work, os.path.basename(source) + ".o"))
        subprocess.run([*COMPILE, "-fvisibility=default", *flags, "-c", source, "-o", objects[-1]], check=True)
        by_hand |= {line.split()[-1] for line in run("nm", "--defined-only", "-g", objects[-1]).splitlines()}
    generated = os.path.join(work, "generated.c")
    with open(generated, "w") as f:
        f.write("".join(stub(symbol) + "\n" for symbol in sorted(set(functions) - by_hand)))
    version = next((v for v in functions.values() if v), None)
    script = os.path.join(work, "symbols.map")
    with open(script, "w") as f:
        names = "; ".join(sorted(set(functions) | by_hand))
        f.write(f"{version or ''} {{ global: {names}; local: *; }};\n" if names else "{ local: *; };\n")
    subprocess.run([*COMPILE, "-w", "-shared", f"-Wl,-soname,{library},--version-script={script}", generated, *objects,
                    "-o", os.path.join(out, "nvidia", "cu13", "lib", library)], check=True)
    return len(set(functions) - by_hand), len(by_hand)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make_site.py SITE_PACKAGES OUT")
    site_packages, out = sys.argv[1:]
    os.makedirs(os.path.join(out, "nvidia", "cu13", "lib"), exist_ok=True)
    link_wheel(site_packages, out)
    flags = [*includes(site_packages), *macros(site_packages)]
    for library, functions in sorted(wanted(os.path.join(site_packages, "torch", "lib")).items()):
        generated, by_hand = build(library, functions, out, flags)
        print(f"{library}: {by_hand} functions by hand, {generated} generated")


main()
