#!/usr/bin/env python3
"""The recorder's library and other files with code for aarch64 compile for it. Debian's cross compiler only checks the
syntax, so this finds in seconds what `./dev aarch64` finds in minutes. Skipped if that compiler is missing."""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILER = "aarch64-linux-gnu-gcc"
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-D_DEFAULT_SOURCE", '-DMEMTRACE_ZSTD_LIBRARY="libzstd.so.1"', "-fsyntax-only",
         "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def sources():
    found = [*ROOT.glob("collector/inject/**/*.c"), *ROOT.glob("collector/interpose/*.c")]
    found += [path for path in ROOT.glob("collector/record/*.c") if "__aarch64__" in path.read_text(encoding="utf-8")]
    return sorted(found)


def folders_of_headers():
    headers = (path for part in ("base", "collector", "trace") for path in (ROOT / part).rglob("*.h"))
    return sorted({f"-I{path.parent}" for path in headers})


def main():
    if not shutil.which(COMPILER):
        print(f"{COMPILER} is missing: install gcc-aarch64-linux-gnu")
        return 77
    files = sources()
    status = subprocess.run([COMPILER, *FLAGS, *folders_of_headers(), *files], check=False).returncode
    print(f"{len(files)} files, exit status {status}")
    return bool(status)


if __name__ == "__main__":
    sys.exit(main())
