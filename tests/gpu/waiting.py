#!/usr/bin/env python3
"""Claims of exactness against PyTorch's own counters, on programs whose frees wait for another stream.

    waiting.py record FOLDER [--python PYTHON]   runs fixtures/workloads/waiting.py on a GPU: about a minute
    waiting.py check PROGRAM FOLDER              compares `memtrace analyze` and `replay` with what PyTorch counted

`record` writes FOLDER/waiting_N.zip, each at most 15 MiB, with a snapshot and the counters of each program. `check`
needs no GPU. It reads these archives, and what lies in FOLDER without one, as in fixtures/waiting (there the snapshots
are compressed). It prints a row for each program. It exits with 1 if a claim of exactness is wrong, if the counters of
a whole history differ at a mark, or if a program is not exact."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
WORKLOAD = HERE.parent.parent / "fixtures" / "workloads" / "waiting.py"
LEVELS = ("requested", "allocated", "active", "reserved")
MOST_ZIP_BYTES = 15 << 20


def run_one(python, name, conf, folder):
    environment = os.environ | ({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {})
    try:
        done = subprocess.run([python, WORKLOAD, name, folder / name], capture_output=True, text=True, env=environment, timeout=240)
    except subprocess.TimeoutExpired:
        return f"{name}: did not end within 240 s"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else f"{name}: FAILED, status {done.returncode}: {' / '.join(lines[-3:])}"


def write_zips(folder, out):
    number, archive = 0, None
    for path in sorted(folder.iterdir()):
        if not archive or archive.fp.tell() + path.stat().st_size > MOST_ZIP_BYTES:
            if archive:
                archive.close()
            number += 1
            archive = zipfile.ZipFile(out / f"waiting_{number}.zip", "w", zipfile.ZIP_LZMA)
        archive.write(path, path.name)
    if archive:
        archive.close()
    return number


def record(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    programs = json.loads(subprocess.run([arguments.python, WORKLOAD, "--list"], capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(4) as pool:
        work = [pool.submit(run_one, arguments.python, program, conf, pathlib.Path(name)) for program, conf in programs.items()]
        said = [one.result() for one in work]
        print("\n".join(said))
        print(write_zips(pathlib.Path(name), arguments.folder), "archives")
    return any("FAILED" in line or "did not end" in line for line in said)


def differences(summary, truth, is_ring):
    """Which counters of the report are not PyTorch's: {(name, at): report - PyTorch}."""
    last, found = truth["rows"][-1], {}
    for name in LEVELS:
        found[name, "at the end"] = summary["end"][name] - last[name]
        if not is_ring:  # a ring begins later than PyTorch's peaks
            found[name, "peak"] = summary[f"{name}_peak"]["bytes"] - last[f"{name}_peak"]
    if not is_ring:
        first = truth["rows"][0]
        found["retries", "in all"] = summary["retries"] - (last["num_alloc_retries"] - first["num_alloc_retries"])
        found["OOMs", "in all"] = summary["ooms"] - (last["num_ooms"] - first["num_ooms"])
    return {what: by for what, by in found.items() if by}


def rows_agree(program, path, truth):
    """At how many marks of a whole history the counters agree, as tests/check_accuracy.py compares them."""
    import check_accuracy
    with tempfile.TemporaryDirectory() as folder:
        csv = pathlib.Path(folder, "counters.csv")
        subprocess.run([program, "replay", "-q", "--policy", "pytorch", "--counters", csv, path], capture_output=True, check=False)
        states = [line.split(",") for line in csv.read_text().splitlines()[1:]] if csv.exists() else []
    states = [(int(row[1]) // 1000, *map(int, row[3:])) for row in states if row[2] == "0"]
    return check_accuracy.rows_exact(truth, states)


def check_one(program, folder, name):
    truth = json.loads((folder / f"{name}.truth.json").read_text())
    (path,) = folder.glob(f"{name}.pickle*")
    done = subprocess.run([program, "analyze", "-q", "--json", path], capture_output=True, text=True)
    if done.returncode:
        return False, f"{name}: analyze ends with {done.returncode}: {done.stderr.strip()[-200:]}"
    device = json.loads(done.stdout)["devices"][0]
    verify, summary = device["verify"], device["summary"]
    wrong = differences(summary, truth, name == "ring")
    count = len(truth["rows"])
    rows = rows_agree(program, path, truth) if summary["complete"] else count
    waiting = truth["rows"][-1]["active"] - truth["rows"][-1]["allocated"]
    text = f"{name}: {'exact' if verify['exact'] else 'NOT EXACT'} ({verify['policy']}), {waiting} bytes wait at the end, "
    text += f"{rows} of {count} rows agree" if summary["complete"] else "begins in the middle"
    text += "".join(f"; {name} {at} off by {by}" for (name, at), by in wrong.items())
    if not verify["exact"]:
        text += f"; {verify['first_difference'] or verify['pytorch_first_difference']}"
    covered = verify.get("exact_counters", LEVELS) if verify["exact"] else []
    is_wrong = any(name in covered or (name == "OOMs" and covered) for name, _ in wrong)
    return verify["exact"] and rows == count and not is_wrong, text + ("  <-- WRONG CLAIM" if is_wrong else "")


def check(arguments):
    good = []
    with tempfile.TemporaryDirectory() as name:
        for archive in sorted(arguments.folder.glob("waiting_*.zip")):
            zipfile.ZipFile(archive).extractall(name)
        for truth in sorted([*pathlib.Path(name).glob("*.truth.json"), *arguments.folder.glob("*.truth.json")]):
            is_good, text = check_one(arguments.program, truth.parent, truth.name.removesuffix(".truth.json"))
            good.append(is_good)
            print(text)
    print(f"{len(good)} programs, {good.count(True)} exact as PyTorch counted")
    return not good or not all(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    recording, checking = commands.add_parser("record"), commands.add_parser("check")
    checking.add_argument("program")
    for command in (recording, checking):
        command.add_argument("folder", type=pathlib.Path)
    recording.add_argument("--python", default=sys.executable)
    recording.set_defaults(run=record)
    checking.set_defaults(run=check)
    arguments = parser.parse_args()
    sys.exit(arguments.run(arguments))


if __name__ == "__main__":
    main()
