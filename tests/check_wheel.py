#!/usr/bin/env python3
"""check_wheel.py BUILD: the wheel, installed where only Python is.

It is built as `./dev wheel` builds it, but not optimized. The build downloads a compiler
(packaging/wheel/requirements.txt). Where the package index cannot be reached, prints why and exits
with 77. BUILD has the stand-ins for a GPU and the recorded program."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "packaging/wheel"))

import licenses

CAPTURE = ROOT / "fixtures/captures/seq2seq.pickle.zst"
PNG_MARK = b"\x89PNG\r\n\x1a\n"
SKIP = 77
# Bytes that are in the code of each library: they show what is linked.
MARKS = {
    "libbrotli-dev": b"timedownlifeleft", "libbz2-dev": b"bzip2/libbzip2: internal error",
    "libcairo2-dev": b"CAIRO_STATUS_LAST_STATUS", "libdw-dev": b"no DWARF information",
    "libelf-dev": b"invalid size of source operand",
    "libexpat1-dev": b"XML or text declaration not at start", "libfontconfig-dev": b"Fontconfig error",
    "libfreetype-dev": b"FREETYPE_PROPERTIES",
    "libncurses-dev": b"TERMINFO_DIRS",
    "liblzma-dev": bytes.fromhex("6f5fa703be4c2eb3"),  # of the table of CRC64
    "libpixman-1-dev": b"PIXMAN_DISABLE", "libpng-dev": b"libpng version",
    "libsqlite3-dev": b"unable to delete/modify collation sequence",
    "libzstd-dev": b"Cannot create Dictionary from provided", "zlib1g-dev": b" inflate 1.",
}
# Words of the text of each license.
WORDS = {
    "BSD-3-Clause": "Neither the name of",
    "FTL": "The FreeType Project LICENSE",
    "GCC-exception-2.0": "unlimited permission to link the compiled version of this file",
    "GPL-2.0-only": "GNU GENERAL PUBLIC LICENSE Version 2",
    "GPL-2.0-or-later": "GNU GENERAL PUBLIC LICENSE Version 2",
    "HPND-sell-variant": "Permission to use, copy, modify, distribute, and sell this software",
    "LGPL-2.1-only": "GNU LESSER GENERAL PUBLIC LICENSE Version 2",
    "LGPL-2.1-or-later": "GNU LESSER GENERAL PUBLIC LICENSE Version 2",
    "LGPL-3.0-or-later": "GNU LESSER GENERAL PUBLIC LICENSE Version 3",
    "LicenseRef-Public-Domain": "put in the public domain",
    "MIT": "Permission is hereby granted, free of charge",
    "MPL-1.1": "MOZILLA PUBLIC LICENSE",
    "X11-distribute-modifications-variant": "distribute, distribute with modifications",
    "Zlib": "Altered source versions must be plainly marked",
    "bzip2-1.0.6": "The name of the author may not be used to endorse",
    "libpng-2.0": "PNG Reference Library License version 2",
}


def check(condition, message):
    if not condition:
        raise SystemExit(f"check_wheel: {message}")


def index_is_reached():
    """Also brings the environment of the build up to date."""
    done = subprocess.run([ROOT / "packaging/wheel/build.py", "--environment-only"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        print(f"wheel: left out: {(done.stdout.strip().splitlines() or ['no message'])[-1]}")
    return done.returncode == 0


def build_wheel():
    done = subprocess.run([ROOT / "packaging/wheel/build.py", "--test"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    check(done.returncode == 0, done.stdout)
    (wheel,) = (ROOT / "build/wheel-test/dist").glob("memtrace_gpu-*.whl")
    return wheel


def check_names(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("memtrace/bin/memtrace", "memtrace/py.typed"):
        check(name in names, f"{name} is not in {wheel.name}")
    check(any(name.endswith("libmemtrace-inject.so") for name in names), "no injected library")
    for name in ("LICENSE", "NOTICE", "render/glyphs.OFL.txt"):
        check(any(found.endswith(f"licenses/{name}") for found in names), f"{name} is not in {wheel.name}")


def third_party(archive):
    """{name: text} of the licenses of what is linked."""
    return {name.rpartition("/")[2]: archive.read(name).decode("utf-8", "replace")
            for name in archive.namelist() if "licenses/third-party/" in name}


def identifiers(*expressions):
    """The licenses and exceptions that SPDX expressions name."""
    return set(re.findall(r"[\w.-]+", " ".join(expressions))) - {"AND", "OR", "WITH"}


def check_terms(expression, texts):
    """The license expression names the terms of each text, and the texts have the words of each
    license that it names."""
    terms = identifiers(expression)
    check(set(licenses.OWN) <= terms, f"our own license is not in {expression}")
    wanted = {**licenses.PACKAGES, **licenses.COMPILER}
    unnamed = {name for name in wanted if name in texts and not identifiers(*wanted[name]) <= terms}
    check(not unnamed, f"the terms of {sorted(unnamed)} are not in {expression}")
    everything = re.sub(r"\s+([.*]\s+)?", " ", "\n".join(texts.values()))
    missing = {term for term in terms - set(licenses.OWN) if WORDS[term] not in everything}
    check(not missing, f"the wheel lacks the text of {sorted(missing)}")


def check_licenses(wheel):
    """Each linked library has its license, the metadata name it, and no license is only a path of
    the system that built."""
    with zipfile.ZipFile(wheel) as archive:
        texts = third_party(archive)
        (metadata,) = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA")]
        binaries = b"".join(archive.read(name) for name in archive.namelist()
                            if name.startswith(("memtrace/bin/", "memtrace/libexec/")))
    linked = {name for name, mark in MARKS.items() if mark in binaries}
    check({"libzstd-dev", "zlib1g-dev", "libcairo2-dev", "libdw-dev", "libncurses-dev",
           "libsqlite3-dev"} <= linked, f"the marks of {sorted(linked)} only")
    check(linked <= set(texts), f"{sorted(linked - set(texts))} have no license")
    named = {name.rstrip(".") for text in texts.values() for name in re.findall(r"common-licenses/([\w.+-]+)", text)}
    check(named <= set(texts), f"the text of {sorted(named - set(texts))} is missing")
    listed = set(re.findall(r"^License-File: third-party/(.*)$", metadata, re.MULTILINE))
    check(listed == set(texts), f"METADATA lists {sorted(listed ^ set(texts))}")
    check_terms(re.search(r"^License-Expression: (.*)$", metadata, re.MULTILINE).group(1), texts)


def check_same_everywhere(wheel):
    """Nothing in the wheel depends on who builds it: modes, times, the place of the sources."""
    with zipfile.ZipFile(wheel) as archive:
        # `wheel pack` writes RECORD itself, always with the same mode.
        modes = {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()
                 if not entry.filename.endswith(".dist-info/RECORD")}
        times = {entry.date_time for entry in archive.infolist()}
        inside = [name for name in archive.namelist() if str(ROOT).encode() in archive.read(name)]
    check(modes <= {0o644, 0o755}, f"modes {[oct(mode) for mode in modes]}")
    check(len(times) == 1, f"times {times}")
    check(not inside, f"{inside} contain the folder of the sources")


def install(wheel, folder):
    """Returns the folder of the programs of a new environment with only the wheel in it."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv/bin"
    subprocess.run([programs / "pip", "install", "--quiet", "--no-index", wheel], check=True)
    return programs


def run(folder, *command, **more):
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **more}
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, text=True,
                          capture_output=True, check=False)
    check(done.returncode == 0, f"{command}: status {done.returncode}: {done.stderr}")
    return done.stdout


def check_version(programs, folder):
    direct = run(folder, programs / "memtrace", "--version")
    check(direct.startswith("memtrace "), direct)
    check(run(folder, programs / "python", "-m", "memtrace", "--version") == direct, "two versions")
    check(run(folder, programs / "memtrace", "help", "skill").startswith("---\nname: memtrace\n"), "no skill")


def check_analysis(programs, folder):
    run(folder, programs / "memtrace", "analyze", CAPTURE, "-o", "report")
    check((folder / "report/timeline.png").read_bytes().startswith(PNG_MARK), "no picture")
    check((folder / "report/report.html").stat().st_size > 100_000, "no page")


def check_recording(programs, folder, build):
    run(folder, programs / "memtrace", "record", "-o", "run.trace.zst", "--",
        build / "tests/recorded", "exit", "0", LD_LIBRARY_PATH=str(build / "standin"),
        MEMTRACE_CUPTI=str(build / "standin/libcupti.so.13"))
    report = json.loads(run(folder, programs / "memtrace", "analyze", "run.trace.zst", "--json"))
    check("recorded.c" in json.dumps(report), "the trace has no name of a native frame")


def main(build):
    if not index_is_reached():
        return SKIP
    wheel = build_wheel()
    check_names(wheel)
    check_licenses(wheel)
    check_same_everywhere(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        programs = install(wheel, folder)
        check_version(programs, folder)
        check_analysis(programs, folder)
        check_recording(programs, folder, build)
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
