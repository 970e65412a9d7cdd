#!/usr/bin/env python3
"""run_workflow.py [OPTION...] JOB [NAME=VALUE...]: runs the steps of a GitHub job on this machine.

The steps run in a clone of the last commit, on this system and in this environment; a line says if
the job wants another image. NAME=VALUE replaces a value of the job's matrix, whose default is the
first one, or of an `env`. Actions are not run: the clone replaces `actions/checkout`, and the files
of `actions/upload-artifact` must exist.

The exit status is 0 if all steps passed, 1 if a step failed, and 2 if the job cannot run here. The
script refuses a job with keys or expressions that it does not know, before the first step.
"""
import argparse
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import yaml

WORKFLOW = pathlib.Path(__file__).resolve().parent.parent / ".github" / "workflows" / "ci.yml"
WORKFLOW_KEYS = {"name", "on", "permissions", "env", "jobs"}
JOB_KEYS = {"name", "if", "runs-on", "container", "strategy", "timeout-minutes", "env", "steps"}
STEP_KEYS = {"name", "if", "uses", "with", "run", "env", "working-directory"}
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
COMPARISON = re.compile(r"([\w.]+) *(==|!=) *'([^']*)'")
# Files through which a step changes the steps after it.
STEP_FILES = re.compile(r"GITHUB_(ENV|OUTPUT|PATH)\b")


class Refused(Exception):
    """Why this script cannot run the job, in one line."""


def check_keys(what, mapping, known):
    unknown = sorted(set(mapping) - known)
    if unknown:
        raise Refused(f"{what} has '{unknown[0]}', which is not supported")


def name_of(step):
    return step.get("name") or step.get("uses") or step.get("run", "").partition("\n")[0]


def check_step(step):
    check_keys(f"step '{name_of(step)}'", step, STEP_KEYS)
    found = STEP_FILES.search(step.get("run", ""))
    if found:
        raise Refused(f"step '{name_of(step)}' uses {found.group()}, which is not supported")


def has_plain_matrix(job):
    """Whether the matrix has only lists of values, each with at least one."""
    matrix = matrix_of(job)
    return (isinstance(matrix, dict) and not {"include", "exclude"} & set(matrix)
            and all(isinstance(options, list) and options for options in matrix.values()))


def check_job(name, job):
    check_keys(f"job '{name}'", job, JOB_KEYS)
    check_keys(f"the strategy of job '{name}'", job.get("strategy", {}), {"matrix", "fail-fast"})
    if not has_plain_matrix(job):
        raise Refused(f"the matrix of job '{name}' is not lists of values, which is not supported")
    if not isinstance(job.get("container", ""), str):
        raise Refused(f"the container of job '{name}' is more than an image, which is not supported")
    for step in job["steps"]:
        check_step(step)


def matrix_of(job):
    return job.get("strategy", {}).get("matrix", {})


def context_of(job, chosen, event):
    """The names that expressions can use, except those of `env`, and their values."""
    context = {"github.event_name": event}
    for name, options in matrix_of(job).items():
        context[f"matrix.{name}"] = chosen.get(name, options[0])
        if context[f"matrix.{name}"] not in options:
            raise Refused(f"'{chosen[name]}' is not a value of {name}: {', '.join(options)}")
    return context


def expanded(text, context):
    def value_of(found):
        name = found.group(1).strip()
        if name not in context:
            raise Refused(f"the expression '{name}' is not supported")
        return context[name]
    return EXPRESSION.sub(value_of, text)


def holds(condition, context, failed):
    """Whether an `if` is true. Only always() and failure() are true after a step has failed."""
    condition = re.sub(r"^\$\{\{(.*)\}\}$", r"\1", condition).strip()
    states = {"always()": True, "failure()": failed, "success()": not failed}
    if condition in states:
        return states[condition]
    found = COMPARISON.fullmatch(condition)
    if not found or found.group(1) not in context:
        raise Refused(f"the condition '{condition}' is not supported")
    name, operator, text = found.groups()
    equal = context[name].lower() == text.lower()  # GitHub ignores case
    return not failed and equal == (operator == "==")


def environment_of(level, chosen, context):
    """The `env` of a workflow, job or step."""
    return {name: chosen.get(name, expanded(value, context)) for name, value in level.get("env", {}).items()}


def with_environment(context, environment):
    return context | {f"env.{name}": value for name, value in environment.items()}


def planned(workflow, job, chosen, event):
    """The job's image and steps, with all expressions replaced except those of conditions."""
    context = context_of(job, chosen, event)
    environment = environment_of(workflow, chosen, context) | environment_of(job, chosen, context)
    unknown = set(chosen) - set(matrix_of(job)) - set(environment)
    for step in job["steps"]:
        unknown -= set(step.get("env", {}))
    if unknown:
        raise Refused(f"neither a matrix nor an env has {', '.join(sorted(unknown))}")
    context = with_environment(context, environment)
    steps = [planned_step(step, environment, chosen, context) for step in job["steps"]]
    return expanded(job.get("container", ""), context), steps


def planned_step(step, environment, chosen, context):
    own = environment | environment_of(step, chosen, context)
    inner = with_environment(context, own)
    condition = step.get("if", "success()")
    holds(condition, context, False)  # refuses what it does not know
    return {"name": name_of(step), "action": step.get("uses", ""), "env": own, "context": context, "if": condition,
            "run": expanded(step.get("run", ""), inner),
            "folder": expanded(step.get("working-directory", ""), inner),
            "paths": expanded(step.get("with", {}).get("path", ""), inner).splitlines()}


def say(step, what):
    print(f"== {step['name']}: {what}", flush=True)


def run_action(step, workspace):
    """Returns whether the step passed."""
    if step["action"].startswith("actions/checkout@"):
        say(step, "done by the clone")
        return True
    if not step["action"].startswith("actions/upload-artifact@"):
        say(step, "skipped, because actions are not run here")
        return True
    missing = [path for path in step["paths"] if not glob.glob(str(workspace / path.strip()))]
    say(step, f"missing: {', '.join(missing)}" if missing else "the files exist")
    return not missing


def run_command(step, shell, workspace, variables):
    """Returns whether the step passed."""
    folder = workspace / step["folder"]
    if not folder.is_dir():
        say(step, f"there is no folder '{step['folder']}'")
        return False
    began = time.monotonic()
    done = subprocess.run([shell, "-e", "-c", step["run"]], cwd=folder, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, **variables, **step["env"]})
    say(step, f"exit status {done.returncode} after {time.monotonic() - began:.0f} s")
    return done.returncode == 0


def run_steps(steps, left_out, shell, workspace, variables):
    """Returns whether all steps passed. LEFT_OUT are names of steps."""
    failed = False
    for step in steps:
        if step["name"] in left_out:
            say(step, "skipped, because of --skip")
        elif not holds(step["if"], step["context"], failed):
            say(step, f"skipped, because {step['if']} is false")
        elif step["action"]:
            failed |= not run_action(step, workspace)
        else:
            failed |= not run_command(step, shell, workspace, variables)
    return not failed


def clone(repository, folder):
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"'{folder}' exists and is not an empty folder")
    done = subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", repository, folder], check=False)
    if done.returncode:
        raise Refused(f"git cannot clone '{repository}'")


def system():
    lines = pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    facts = dict(line.replace('"', "").split("=", 1) for line in lines if "=" in line)
    return f"{facts['ID']}:{facts.get('VERSION_ID', '')}"


def run_job(options, workflow, job):
    """Returns whether all steps passed."""
    chosen = dict(word.partition("=")[::2] for word in options.values)
    check_job(options.job, job)
    unknown = set(options.skip) - {name_of(step) for step in job["steps"]}
    if unknown:
        raise Refused(f"job '{options.job}' has no step '{unknown.pop()}'")
    image, steps = planned(workflow, job, chosen, options.event)
    if not holds(job.get("if", "success()"), {"github.event_name": options.event}, False):
        raise Refused(f"job '{options.job}' runs only if {job['if']}: choose another --event")
    if image and image != system():
        print(f"the job wants {image}; this is {system()}")
    with tempfile.TemporaryDirectory(prefix="run_workflow-") as temporary:
        workspace = (options.folder or pathlib.Path(temporary, "clone")).resolve()
        clone(options.workflow.resolve().parent.parent.parent, workspace)
        # `git config --global` of a step must not change the files of the person who runs this.
        variables = {"CI": "true", "GITHUB_WORKSPACE": str(workspace),
                     "GIT_CONFIG_GLOBAL": str(pathlib.Path(temporary, "gitconfig"))}
        # GitHub runs the steps of a container with sh, others with bash.
        return run_steps(steps, options.skip, "sh" if image else "bash", workspace, variables)


def print_jobs(jobs):
    for name, job in jobs.items():
        for step in job["steps"]:
            print(f"{name}: {name_of(step)}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the steps of all jobs")
    parser.add_argument("--in", dest="folder", type=pathlib.Path, help="make the clone here and keep it")
    parser.add_argument("--skip", metavar="STEP", action="append", default=[], help="do not run this step")
    parser.add_argument("--event", default="push", help="github.event_name, push by default")
    parser.add_argument("--workflow", type=pathlib.Path, default=WORKFLOW,
                        help="a file in .github/workflows of a git repository, by default that of memtrace")
    parser.add_argument("job", nargs="?")
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE")
    return parser.parse_args()


def main():
    options = arguments()
    # BaseLoader reads each scalar as the text that GitHub puts into expressions and variables.
    workflow = yaml.load(options.workflow.read_text(encoding="utf-8"), yaml.BaseLoader)
    if options.list or not options.job:
        print_jobs(workflow["jobs"])
        return 0
    try:
        check_keys("the workflow", workflow, WORKFLOW_KEYS)
        if options.job not in workflow["jobs"]:
            raise Refused(f"there is no job '{options.job}': {', '.join(workflow['jobs'])}")
        return 0 if run_job(options, workflow, workflow["jobs"][options.job]) else 1
    except Refused as why:
        print(f"run_workflow.py: {why}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
