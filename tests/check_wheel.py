#!/usr/bin/env python3
"""check_wheel.py BUILD: the wheel, built as ./dev wheel builds it, installed where only Python is.

Its build downloads a compiler (packaging/wheel/requirements.txt). Where the package index cannot be
reached, prints why and exits with 77. BUILD has the stand-ins for a GPU and the recorded program."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPTURE = ROOT / "fixtures/captures/seq2seq.pickle.zst"
PNG_MARK = b"\x89PNG\r\n\x1a\n"
SKIP = 77


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
    done = subprocess.run([ROOT / "packaging/wheel/build.py", "--wheel-only"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    check(done.returncode == 0, done.stdout)
    (wheel,) = (ROOT / "dist").glob("memtrace_gpu-*.whl")
    return wheel


def check_names(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("memtrace/bin/memtrace", "memtrace/py.typed"):
        check(name in names, f"{name} is not in {wheel.name}")
    check(any(name.endswith("libmemtrace-inject.so") for name in names), "no injected library")
    check(any(name.endswith("licenses/LICENSE") for name in names), "no license")


def check_licenses(wheel):
    """Each linked library has its license, and no license is only a path of the system that built."""
    with zipfile.ZipFile(wheel) as archive:
        texts = {name.rpartition("/")[2]: archive.read(name).decode("utf-8", "replace")
                 for name in archive.namelist() if "licenses/third-party/" in name}
        (metadata,) = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA")]
    check({"libzstd-dev", "libcairo2-dev", "libdw-dev"} <= set(texts), f"licenses of {sorted(texts)}")
    named = {name.rstrip(".") for text in texts.values() for name in re.findall(r"common-licenses/([\w.+-]+)", text)}
    check(named <= set(texts), f"the text of {sorted(named - set(texts))} is missing")
    listed = set(re.findall(r"^License-File: third-party/(.*)$", metadata, re.MULTILINE))
    check(listed == set(texts), f"METADATA lists {sorted(listed ^ set(texts))}")


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
