#!/usr/bin/env python3
"""packaging/run_workflow.py runs the steps of a job as GitHub does, and refuses what it does not know."""
import os
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "run_workflow.py"
WORKFLOW = """
on: push
env: {LEVEL: workflow, SHARED: workflow, FLAG: true}
jobs:
  levels:
    strategy: {matrix: {color: [red, "light blue"], size: [1, 2]}}
    env: {LEVEL: job, COLOR: "${{ matrix.color }}"}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/cache@v4
      - name: job
        run: echo "$SHARED/$LEVEL/$COLOR/$FLAG/${{ matrix.size }}"
      - name: step
        env: {LEVEL: "step of ${{ env.LEVEL }}"}
        run: echo "$LEVEL" && cat file
      - name: folder
        working-directory: a/b
        run: basename "$PWD"
      - name: other
        if: matrix.color != 'red'
        run: echo not red
      - name: tool
        run: git config --global user.name nobody && echo "$0"
      - uses: actions/upload-artifact@v4
        with: {path: "a/b/*"}
  container:
    container: debian:12
    steps: [{name: shell, run: echo "$0"}]
  fails:
    steps:
      - {name: no report, if: failure(), run: echo reported}
      - {name: break, run: "false; echo never"}
      - {name: plain, run: echo never}
      - {name: same, if: env.LEVEL == 'workflow', run: echo never}
      - {name: report, if: "${{ failure() }}", run: echo reported}
      - {name: clean, if: always(), run: echo cleaned}
  lacks:
    steps:
      - uses: actions/upload-artifact@v4
        with: {path: "file\\nnowhere"}
  nowhere:
    steps: [{name: nowhere, working-directory: c, run: echo never}]
  nightly:
    if: github.event_name == 'schedule'
    steps: [{name: night, run: echo night}]
  secret:
    steps: [{name: first, run: echo never}, {name: secret, run: "echo ${{ secrets.KEY }}"}]
  shell:
    steps: [{name: first, run: echo never}, {name: snake, shell: python, run: pass}]
  contains:
    steps: [{name: first, run: echo never}, {name: if, if: "contains('a', 'b')", run: echo}]
  exports:
    steps: [{name: first, run: echo never}, {name: export, run: 'echo A=1 >>"$GITHUB_ENV"'}]
  includes:
    strategy: {matrix: {color: [red], include: [{color: green}]}}
    steps: [{name: first, run: echo never}]
  computed:
    strategy: {matrix: "${{ fromJSON('{}') }}"}
    steps: [{name: first, run: echo never}]
  empty:
    strategy: {matrix: {color: []}}
    steps: [{name: first, run: echo never}]
"""
LEVELS = """== actions/checkout@v4: done by the clone
== actions/cache@v4: skipped, because actions are not run here
workflow/job/red/true/1
== job: exit status 0
step of job
content
== step: exit status 0
b
== folder: exit status 0
== other: skipped, because matrix.color != 'red' is false
bash
== tool: exit status 0
== actions/upload-artifact@v4: the files exist
"""
BLUE = (LEVELS.replace("red/true/1", "light blue/true/2").replace("workflow/job", "given/job")
        .replace("== other: skipped, because matrix.color != 'red' is false",
                 "not red\n== other: exit status 0")
        .replace("bash\n== tool: exit status 0", "== tool: skipped, because of --skip"))
FAILS = """== no report: skipped, because failure() is false
== break: exit status 1
== plain: skipped, because success() is false
== same: skipped, because env.LEVEL == 'workflow' is false
reported
== report: exit status 0
cleaned
== clean: exit status 0
"""
# Arguments, exit status, output or part of the error.
CASES = [
    (["levels"], 0, LEVELS),
    (["--skip", "tool", "levels", "color=light blue", "size=2", "SHARED=given"], 0, BLUE),
    (["container"], 0, "sh\n== shell: exit status 0\n"),
    (["fails"], 1, FAILS),
    (["lacks"], 1, "== actions/upload-artifact@v4: missing: nowhere\n"),
    (["nowhere"], 1, "== nowhere: there is no folder 'c'\n"),
    (["--event", "schedule", "nightly"], 0, "night\n== night: exit status 0\n"),
    (["nightly"], 2, "job 'nightly' runs only if github.event_name == 'schedule': choose another --event"),
    (["secret"], 2, "the expression 'secrets.KEY' is not supported"),
    (["shell"], 2, "step 'snake' has 'shell', which is not supported"),
    (["contains"], 2, "the condition 'contains('a', 'b')' is not supported"),
    (["exports"], 2, "step 'export' uses GITHUB_ENV, which is not supported"),
    (["includes"], 2, "the matrix of job 'includes' is not lists of values, which is not supported"),
    (["computed"], 2, "the matrix of job 'computed' is not lists of values, which is not supported"),
    (["empty"], 2, "the matrix of job 'empty' is not lists of values, which is not supported"),
    (["levels", "color=green"], 2, "'green' is not a value of color: red, light blue"),
    (["levels", "shape=round"], 2, "neither a matrix nor an env has shape"),
    (["--skip", "nothing", "levels"], 2, "job 'levels' has no step 'nothing'"),
    (["absent"], 2, "there is no job 'absent'"),
    (["--in", ".", "levels"], 2, "exists and is not an empty folder"),
]


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True,
                   capture_output=True)


def make_repository(folder):
    workflow = folder / ".github" / "workflows" / "ci.yml"
    for path, text in ((workflow, WORKFLOW), (folder / "file", "content\n"), (folder / "a" / "b" / "c", "")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return workflow


def run(workflow, words):
    environment = {**os.environ, "HOME": str(workflow.parent)}
    environment.pop("GIT_CONFIG_GLOBAL", None)
    return subprocess.run([sys.executable, SCRIPT, "--workflow", workflow, *words], cwd=workflow.parent,
                          env=environment, capture_output=True, text=True, check=False)


def output_of(done):
    """Without the times, and the line about another image."""
    lines = [line.partition(" after ")[0] for line in done.stdout.splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith("the job wants "))


def complaints(workflow):
    for words, status, wanted in CASES:
        done = run(workflow, words)
        if status == 2:
            right = wanted in done.stderr and done.stderr.count("\n") == 1 and not done.stdout
        else:
            right = output_of(done) == wanted
        if done.returncode != status or not right:
            yield f"{words}: wanted {status}, {wanted!r}: {done}"
    if (workflow.parent / ".gitconfig").exists():
        yield "a step changed the git configuration of the person who runs the script"


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = list(complaints(make_repository(pathlib.Path(folder))))
    print("\n".join(found) or "all cases are right")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
