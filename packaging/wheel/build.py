#!/usr/bin/env python3
"""Builds dist/memtrace_gpu-VERSION-py3-none-manylinux_2_28_x86_64.whl and the sdist.

The wheel runs on every Linux with glibc 2.28 or newer and needs nothing else: zig-cc compiles for
that glibc, and the archives of the other libraries are in the program. This script checks both and
then gives the wheel its platform tag. It does not call `auditwheel repair`, which renames libraries:
the program and the loader find the injected libraries by their names.

--test makes a wheel for the tests, in build/wheel-test/dist: not optimized, in a fraction of the
time, with the compiler cache that CMAKE_C_COMPILER_LAUNCHER names.

Usage: packaging/wheel/build.py [--test | --environment-only]
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import licenses

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
VENV = ROOT / "build/wheel-venv"
BUILD = ROOT / "build/wheel"
DIST = ROOT / "dist"
LOG = ROOT / "build/wheel.log"
FLOOR = (2, 28)
PLATFORM = "manylinux_2_28_x86_64"
LIMIT_BYTES = 8_000_000

# What glibc itself provides on every system that the tag names.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
                    "ld-linux-x86-64.so.2"}
CMAKE_ARGS = ["-DMEMTRACE_STATIC_LIBRARIES=ON", "-DMEMTRACE_ZSTD=STATIC", "-DMEMTRACE_CAIRO=ON",
              "-DMEMTRACE_LIBDW=ON", "-DMEMTRACE_NCURSES=ON", "-DMEMTRACE_SQLITE=ON"]
TEST_ARGS = ["-DMEMTRACE_LTO=OFF", "-DCMAKE_C_FLAGS_RELEASE=-O0"]


class WheelError(Exception):
    """One line for the user."""


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def make_environment():
    """Makes the virtual environment of the build, or brings it up to date."""
    python = VENV / "bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", VENV)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
        "--only-binary", ":all:", "-r", HERE / "requirements.txt")
    return python


def commit_time():
    """The time that all files in the wheel get, so that two builds give the same bytes."""
    try:
        return output("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    except (OSError, subprocess.CalledProcessError):
        return "1577836800"


def zig_of(python):
    """Returns the path of the compiler."""
    return output(python, "-c", "import ziglang; print(ziglang.__path__[0] + '/zig')").strip()


def set_cache(environment, zig):
    """Names the compiler for a compiler cache, which sees only the wrapper zig-cc."""
    wrapper = hashlib.sha256((HERE / "zig-cc").read_bytes()).hexdigest()
    environment["CCACHE_COMPILERCHECK"] = f"string:zig {output(zig, 'version').strip()} {wrapper}"
    environment["CCACHE_COMPILERTYPE"] = "clang"


def build(python, kind, folder, is_test=False):
    """Returns the file that `python -m build` makes: kind is "wheel" or "sdist"."""
    zig = zig_of(python)
    environment = dict(os.environ, MEMTRACE_WHEEL_PYTHON=str(python), MEMTRACE_ZIG=zig,
                       CMAKE_TOOLCHAIN_FILE=str(HERE / "toolchain.cmake"),
                       CMAKE_ARGS=" ".join(CMAKE_ARGS + TEST_ARGS * is_test), CMAKE_GENERATOR="Ninja",
                       SKBUILD_BUILD_DIR=str(BUILD),
                       SOURCE_DATE_EPOCH=commit_time())
    if is_test:
        environment["CFLAGS"] = "-DNDEBUG"  # as in a release
        set_cache(environment, zig)
    else:
        environment.pop("CMAKE_C_COMPILER_LAUNCHER", None)
    with open(LOG, "w", encoding="utf-8") as log:
        run(python, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", folder, ROOT,
            env=environment, stdout=log, stderr=log)
    (made,) = pathlib.Path(folder).iterdir()
    return made


def elf_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            yield path


def check_elf(path):
    """Fails if a file needs a library that is not in glibc, or a newer glibc than the floor."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path)))
    if needed - SYSTEM_LIBRARIES:
        raise WheelError(f"{path.name} needs {', '.join(sorted(needed - SYSTEM_LIBRARIES))}")
    versions = re.findall(r"\bGLIBC_([0-9]+)\.([0-9]+)", output("readelf", "-VW", path))
    newest = max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))
    if newest > FLOOR:
        raise WheelError(f"{path.name} needs glibc {newest[0]}.{newest[1]}")
    return newest


def symbols(path, *options):
    lines = output("nm", "--defined-only", *options, path).splitlines()
    return {words[2] for words in map(str.split, lines) if len(words) == 3}


def linked_archives(programs, cache):
    """Yields the archives of which some code is in the programs or libraries."""
    inside = set().union(*(symbols(program) for program in programs))
    configured = re.findall(r"archives of \w+: (.*)", cache)
    for archive in sorted({path for line in configured for path in line.split(";")}):
        if archive.endswith(".a") and symbols(archive, "-g") & inside:
            yield archive


def add_licenses(python, info, programs):
    """Adds the licenses of what is linked to the metadata of the wheel; returns the packages."""
    archives = linked_archives(programs, (BUILD / "archives.txt").read_text())
    packages = sorted({licenses.package_of(archive) for archive in archives})
    terms = licenses.expression(packages)
    zig = output(python, "-c", "import importlib.metadata as m, ziglang; "
                 "print(ziglang.__path__[0]); print(m.version('ziglang'))").splitlines()
    folder = info / "licenses/third-party"
    licenses.copy_texts(packages, pathlib.Path(zig[0]), folder)
    licenses.write_sources(packages, zig[1], info.name.split("-")[1].removesuffix(".dist"),
                           folder / "SOURCES")
    lines = "".join(f"License-File: third-party/{name}\n"
                    for name in sorted(path.name for path in folder.iterdir()))
    replace_in(info / "METADATA", r"^(License-File: LICENSE)\n", r"\1\n" + lines)
    replace_in(info / "METADATA", r"^License-Expression: .*$", f"License-Expression: {terms}")
    return packages


def set_modes(folder):
    """Modes that do not depend on the umask of who builds."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def replace_in(path, pattern, text):
    content = path.read_text()
    changed, count = re.subn(pattern, text, content, flags=re.M)
    if not count:
        raise WheelError(f"{path.name} has no line {pattern}")
    path.write_text(changed)


def finish(python, wheel, folder):
    """Checks the wheel, adds the licenses of what is linked, sets the tag; returns its new path."""
    run(python, "-m", "wheel", "unpack", "--dest", folder / "content", wheel,
        stdout=subprocess.DEVNULL)
    (content,) = (folder / "content").iterdir()
    (info,) = content.glob("*.dist-info")
    newest = max(check_elf(path) for path in elf_files(content))
    # The programs in the wheel have no symbols; those that were built have them.
    names = {path.name for path in elf_files(content)}
    packages = add_licenses(python, info, [path for path in elf_files(BUILD) if path.name in names])
    replace_in(info / "WHEEL", r"^Tag: .*$", f"Tag: py3-none-{PLATFORM}")
    set_modes(content)
    DIST.mkdir(exist_ok=True)
    run(python, "-m", "wheel", "pack", "--dest-dir", DIST, content, stdout=subprocess.DEVNULL,
        env=dict(os.environ, SOURCE_DATE_EPOCH=commit_time()))
    (packed,) = DIST.glob(f"*-py3-none-{PLATFORM}.whl")
    size = packed.stat().st_size
    if size > LIMIT_BYTES:
        raise WheelError(f"{packed.name} has {size:,} bytes; the limit is {LIMIT_BYTES:,}")
    print(f"{packed.relative_to(ROOT)}: {size:,} bytes, needs glibc {newest[0]}.{newest[1]} or newer")
    print(f"linked archives: {', '.join(packages)}")


def main(arguments):
    global BUILD, DIST  # pylint: disable=global-statement
    if arguments not in ([], ["--test"], ["--environment-only"]):
        print(__doc__.rstrip().rpartition("\n")[2], file=sys.stderr)
        return 2
    python = make_environment()
    if arguments == ["--environment-only"]:
        return 0
    is_test = arguments == ["--test"]
    if is_test:
        BUILD = ROOT / "build/wheel-test"
        DIST = BUILD / "dist"
    for old in DIST.glob("memtrace_gpu-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as temporary:
        folder = pathlib.Path(temporary)
        (folder / "built").mkdir()
        made = build(python, "wheel", folder / "built", is_test)
        finish(python, made, folder)
        if not arguments:
            (folder / "sdist").mkdir()
            made = build(python, "sdist", folder / "sdist")
            shutil.copyfile(made, DIST / made.name)
            print(f"dist/{made.name}: {made.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (WheelError, licenses.LicenseError, OSError, subprocess.CalledProcessError) as error:
        print(f"packaging/wheel/build.py: {error}; see {LOG.relative_to(ROOT)}", file=sys.stderr)
        sys.exit(1)
