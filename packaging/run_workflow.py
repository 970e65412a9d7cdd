#!/usr/bin/env python3
"""run_workflow.py [--list] [--in FOLDER] JOB [NAME=VALUE...]: runs the steps of a job of
.github/workflows/ci.yml on this machine, in a clone of the last commit.

NAME=VALUE chooses from the job's matrix; without it, the first value. The image of the job is not
started: the steps run on this system, and a line reports a different one. `actions/checkout` is
the clone, and `actions/upload-artifact` checks that the files are there. --list prints the steps of
all jobs."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
EXPRESSION = re.compile(r"\$\{\{\s*matrix\.(\w+)\s*\}\}")


class Fault(Exception):
    """Why a job cannot run or has failed, in one line."""


def chosen(job, words):
    """The values of the job's matrix: the first ones, except for those in WORDS."""
    matrix = job.get("strategy", {}).get("matrix", {})
    values = {name: options[0] for name, options in matrix.items()}
    for word in words:
        name, _, value = word.partition("=")
        if name not in matrix or value not in matrix[name]:
            raise Fault(f"'{word}' is not in the matrix: {matrix}")
        values[name] = value
    return values


def expanded(text, values):
    return EXPRESSION.sub(lambda found: values[found.group(1)], text)


def system():
    facts = dict(line.split("=", 1) for line in
                 pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line)
    return f"{facts['ID']}:{facts.get('VERSION_ID', '')}".replace('"', "")


def clone(folder):
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder)], check=True)


def run_step(step, values, folder):
    action = step.get("uses", "")
    if action.startswith("actions/checkout@"):
        return
    if action.startswith("actions/upload-artifact@"):
        missing = [path for path in step["with"]["path"].split() if not (folder / path).exists()]
        if missing:
            raise Fault(f"the artifact lacks {', '.join(missing)}")
        return
    if action:
        raise Fault(f"the action {action} is not known here")
    began = time.monotonic()
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", expanded(step["run"], values)],
                          cwd=folder, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, "CI": "true",
                               "GITHUB_WORKSPACE": str(folder)})
    seconds = time.monotonic() - began
    print(f"== {step.get('name', 'step')}: status {done.returncode} after {seconds:.0f} s", flush=True)
    if done.returncode:
        raise Fault(f"step '{step.get('name')}' failed")


def run_job(job, words, folder):
    values = chosen(job, words)
    image = expanded(job.get("container", ""), values)
    if image and image != system():
        print(f"the job runs on {image}; this is {system()}")
    clone(folder)
    for step in job["steps"]:
        run_step(step, values, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--list", action="store_true", help="print the steps of all jobs")
    parser.add_argument("--in", dest="folder", type=pathlib.Path, help="keep the clone here")
    parser.add_argument("job", nargs="?")
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE")
    words = parser.parse_args()
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    if words.list or not words.job:
        for name, job in jobs.items():
            for step in job["steps"]:
                print(f"{name}: {step.get('uses') or expanded(step['run'], chosen(job, [])).strip()}")
        return 0
    try:
        if words.job not in jobs:
            raise Fault(f"there is no job '{words.job}': {', '.join(jobs)}")
        with tempfile.TemporaryDirectory(prefix="memtrace-workflow-") as temporary:
            run_job(jobs[words.job], words.values, words.folder or pathlib.Path(temporary) / "clone")
    except (Fault, subprocess.CalledProcessError) as fault:
        print(f"run_workflow.py: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
