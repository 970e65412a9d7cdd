#!/usr/bin/env python3
"""check_real_wheel.py BUILD: `memtrace dry-run` with a PyTorch from the package index. What small_gpt.py needs on
paper is what it needed on an H200 (h200.json), to the byte.

The environment is made once, below the user's cache folder: 531 MB are downloaded, 1.4 GB installed; the packages
nvidia-* are left out, because a dry run does not load them. MEMTRACE_TEST_WHEEL_MIB is how much disk space it may take
while it is made (default 2560); 0 leaves the test out.

Where the wheel cannot be had, prints why and exits with 77."""
import fcntl
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TORCH, CUDA = "2.11.0", "13.0"
# What `import torch` imports, and what that imports.
PACKAGES = (f"torch=={TORCH}", "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "sympy",
            "typing_extensions")
NEEDED_MIB = 2560  # the wheel and what is in it, 1,900 MiB, and room to spare
MAX_MAKE_SECONDS = 240
MAX_RUN_SECONDS = 900


class Skip(Exception):
    """Why the wheel cannot be had."""


def run_within(seconds, command, **more):
    """A finished process of COMMAND, which is ended with its children after SECONDS."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, start_new_session=True, **more) as process:
        try:
            output, errors = process.communicate(timeout=max(seconds, 1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1]


def install_step(deadline, folder, what, command):
    """Downloads go to FOLDER: the system's folder for them may be small, or memory."""
    try:
        done = run_within(deadline - time.monotonic(), command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "TMPDIR": folder})
    except subprocess.TimeoutExpired:
        raise Skip(f"{what} took more than {MAX_MAKE_SECONDS} s") from None
    if done.returncode != 0:
        raise Skip(f"{what} failed: {last_line(done.stdout)}")


def allowed_mib():
    text = os.environ.get("MEMTRACE_TEST_WHEEL_MIB") or str(NEEDED_MIB)
    if not text.isdecimal():
        sys.exit(f"MEMTRACE_TEST_WHEEL_MIB is {text!r}, not a number of MiB")
    return int(text)


def check_space(folder, needed_mib):
    free_mib = shutil.disk_usage(folder).free >> 20
    if min(allowed_mib(), free_mib) < needed_mib:
        raise Skip(f"needs {needed_mib} MiB of disk space; {free_mib} MiB are free, "
                   f"MEMTRACE_TEST_WHEEL_MIB allows {allowed_mib()} MiB")


def make(folder, needed_mib, packages, complete):
    """Installs into FOLDER, which appears when it is complete: after complete(its folder until then)."""
    for old in folder.parent.glob("unfinished-*"):
        shutil.rmtree(old)
    check_space(folder.parent, needed_mib)
    deadline = time.monotonic() + MAX_MAKE_SECONDS
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="unfinished-") as unfinished:
        part = pathlib.Path(unfinished, "environment")
        install_step(deadline, unfinished, "python -m venv", [sys.executable, "-m", "venv", part])
        install_step(deadline, unfinished, "pip install", [
            part / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir", "--no-deps",
            "--disable-pip-version-check", "--only-binary", ":all:", "--retries", "1", *packages])
        complete(part)
        part.rename(folder)  # bin/python stays valid; scripts beside it, which do not, are not used


def environment(name, needed_mib, packages, complete=lambda folder: None):
    """The Python of an environment in the cache folder, made if it is not there yet. Concurrent callers wait for
    each other."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "memtrace-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{name}-{sys.implementation.cache_tag}"
    with open(cache / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            make(folder, needed_mib, packages, complete)
    return folder / "bin" / "python"


def python_with_torch():
    return environment(f"torch-{TORCH}", NEEDED_MIB, PACKAGES)


def check_is_for_cuda(python):
    """An index of builds without CUDA has the same name and version for them."""
    path = next(python.parent.parent.glob("lib/python*/site-packages/torch/version.py"))
    found = re.search(r"^cuda\b.*= '(.*)'$", path.read_text(encoding="utf-8"), re.MULTILINE)
    if not found or found.group(1) != CUDA:
        raise Skip(f"pip gives a PyTorch {TORCH} that is not built for CUDA {CUDA}")


def differences(build, python):
    """What of a dry run is not as it was on the H200."""
    with tempfile.TemporaryDirectory() as work:
        counters = pathlib.Path(work, "counters.json")
        done = run_within(MAX_RUN_SECONDS, [
            build / "memtrace", "dry-run", "--json", "-o", pathlib.Path(work, "gpt.trace.zst"),
            "--max-peak", "reserved=24GiB", "--max-peak", "allocated=512MiB", "--",
            python, HERE / "small_gpt.py", counters], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not counters.exists():
            return [f"exit status {done.returncode}", done.stdout, done.stderr]
        counted = json.loads(counters.read_text(encoding="utf-8"))["counters"]
    known = json.loads((HERE / "h200.json").read_text(encoding="utf-8"))["counters"]
    found = [f"{name}: {counted[name]}, on the H200 {known[name]}" for name in known if counted[name] != known[name]]
    answer = json.loads(done.stdout)
    device, gates = answer["devices"][0], {gate["metric"]: gate["state"] for gate in answer["gates"]}
    if (done.returncode, answer["exit_status"], gates) != (1, 0, {"allocated": "fail", "reserved": "pass"}):
        found.append(f"exit status {done.returncode}, the program's {answer['exit_status']}, gates {gates}")
    found += [f"{which} peak: the answer has {device[f'{which}_peak_bytes']}, PyTorch "
              f"{counted[f'{which}_bytes.all.peak']}" for which in ("allocated", "reserved")
              if device[f"{which}_peak_bytes"] != counted[f"{which}_bytes.all.peak"]]
    if "Exception ignored" in done.stderr or "Traceback" in done.stderr:
        found += ["the program's errors:", done.stderr]
    return found


def main(build):
    if allowed_mib() == 0:
        raise Skip("MEMTRACE_TEST_WHEEL_MIB is 0")
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise Skip("dry runs are for Linux on x86-64")
    python = python_with_torch()
    check_is_for_cuda(python)
    found = differences(pathlib.Path(build).resolve(), python)
    print("real wheel:", "\n".join(found) or f"the peaks of PyTorch {TORCH} on paper are those of an H200")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except Skip as reason:
        print(f"real wheel: skipped: {reason}")
        sys.exit(77)
