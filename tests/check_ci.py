#!/usr/bin/env python3
"""check_ci.py PROGRAM: what docs/ci.md, the GitHub action and the GitLab template
run does what the documents say, run here as it is, on committed traces; and
whatever a name says, junit.xml stays XML with one case a rule. The workflow of
docs/ci.md is one that GitHub accepts, and memtrace accepts its options.
The project's own pipelines of GitHub and GitLab run the same commands."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile

import yaml

from support import junit_schema
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "fixtures" / "captures"


def run_step(number, folder, settings, **more):
    """Runs a step of the action: its `run`, with its `env` filled in from the settings."""
    step = yaml.safe_load((ROOT / ".ci" / "github" / "action.yml").read_text())["runs"]["steps"][number]
    values = {"inputs.output": "memtrace-report", "github.action_path": str(ROOT / ".ci" / "github"),
              **{f"inputs.{name}": value for name, value in settings.items()}}
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("MEMTRACE")}
    for name, value in step["env"].items():
        environment[name] = values.get(re.fullmatch(r"\$\{\{ (.*) \}\}", value).group(1), "")
    return subprocess.run([step["shell"], "-e", "-c", step["run"]], cwd=folder,
                          env={**environment, **more}, capture_output=True, text=True, check=False)


def run_gate(program, folder, **settings):
    """Runs the action's last step. (status, summary, text)"""
    summary = pathlib.Path(folder, "step_summary")
    summary.write_text("before\n")
    done = run_step(-1, folder, {"program": program, **settings}, GITHUB_STEP_SUMMARY=str(summary))
    return done.returncode, summary.read_text(), done.stdout


def write_wheel(folder):
    """A wheel that pip installs without an index: `memtrace` prints a line."""
    info = "memtrace_gpu-0.dist-info"
    files = {"memtrace/__init__.py": "def main():\n    print('the program')\n",
             f"{info}/METADATA": "Metadata-Version: 2.1\nName: memtrace-gpu\nVersion: 0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/entry_points.txt": "[console_scripts]\nmemtrace = memtrace:main\n"}
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = pathlib.Path(folder, "memtrace_gpu-0-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return str(path)


def check_install(folder):
    """The action's first step, with the python3 of this system: it installs into the folder of the
    job, puts only the program on the path, and takes nothing for an option of pip."""
    folder = pathlib.Path(folder, "a job")
    folder.mkdir()
    added = folder / "path"
    runner = {"RUNNER_TEMP": str(folder), "GITHUB_PATH": str(added), "PIP_NO_INDEX": "1",
              "PATH": f"/usr/bin:/bin:{os.environ['PATH']}"}
    done = run_step(0, folder, {"install": write_wheel(folder)}, **runner)
    if done.returncode != 0:
        return [f"action.yml does not install: {done.stdout}{done.stderr}"]
    binaries = pathlib.Path(added.read_text().strip())
    complaints = []
    if [path.name for path in binaries.iterdir()] != ["memtrace"] or folder not in binaries.parents:
        complaints.append(f"action.yml adds {binaries} with {os.listdir(binaries)} to the path")
    if subprocess.run([binaries / "memtrace"], capture_output=True, check=False).stdout != b"the program\n":
        complaints.append("action.yml installs a program that does not run")
    if run_step(0, folder, {"install": "--help"}, **runner).returncode == 0:
        complaints.append("action.yml passes an option to pip")
    return complaints


def example_budget():
    """The budget of docs/ci.md, verbatim."""
    text = (ROOT / "docs" / "ci.md").read_text()
    return re.search(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL).group(1)


def check_junit(path, wanted):
    """wanted: {name: tag of what is in the case}"""
    root = xml.etree.ElementTree.parse(path).getroot()
    suite = root.find("testsuite")
    found = {case.get("name"): case[0].tag for case in suite.findall("testcase")}
    properties = {entry.get("name"): entry.get("value") for entry in suite.iter("property")}
    report = json.loads(path.with_name("report.json").read_text())
    peaks = {f"device{device['device']}.peak.{which}.bytes":
             str(device["summary"][f"{which}_peak"]["bytes"])
             for device in report["devices"] for which in ("allocated", "reserved")}
    complaints = junit_schema.complaints(root)
    if properties != {"trace.sha256": report["input"]["sha256"], **peaks}:
        complaints.append(f"junit.xml has the properties {properties}")
    failures = sum(tag == "failure" for tag in found.values())
    if found != wanted:
        complaints.append(f"junit.xml has {found}, wanted {wanted}")
    if int(suite.get("failures")) != failures or int(suite.get("tests")) != len(found):
        complaints.append(f"junit.xml counts {suite.attrib}")
    for failure in root.iter("failure"):
        if failure.get("message") not in failure.text:
            complaints.append("the body of a failure lacks its message")
    return complaints


def check(program, folder):
    memory = pathlib.Path(folder, "memory")
    memory.mkdir()
    (memory / "budget.toml").write_text(example_budget())
    subprocess.run([program, "analyze", CAPTURES / "gpt_default.pickle.zst", "--write-baseline",
                    memory / "main.baseline.json"], check=True, capture_output=True)
    rules = ["max-peak reserved=10GiB", "max-growth 1MiB/step",
             "max-regression allocated=2%,64MiB", "max-regression reserved=2%,64MiB"]
    complaints = []
    for name, status, failing in [("gpt_default", 0, []), ("gpt_split64", 1, [rules[0], rules[3]])]:
        found, summary, text = run_gate(program, folder, trace=str(CAPTURES / f"{name}.pickle.zst"),
                                        budget="memory/budget.toml")
        if found != status:
            complaints.append(f"{name}: exit status {found}, wanted {status}")
        verdict = "FAIL: " if status else "pass"
        if not summary.startswith(f"before\n### memtrace: {verdict}"):
            complaints.append(f"{name}: summary begins {summary[:80]!r}")
        if not text.startswith("FAIL: peak reserved 19.3 GiB" if status else "PASS: "):
            complaints.append(f"{name}: text begins {text[:80]!r}")
        complaints += check_junit(pathlib.Path(folder, "memtrace-report", "junit.xml"),
                                  {rule: "failure" if rule in failing else "system-out"
                                   for rule in rules})
    # nothing of an input is shell, nothing of the run before is left
    found, summary, _ = run_gate(program, folder, trace="$(touch evil)`touch evil`;touch evil",
                                 budget="memory/budget.toml")
    if found != 3 or summary != "before\n" or pathlib.Path(folder, "evil").exists():
        complaints.append(f"a trace that is not there: exit status {found}, summary {summary!r}")
    mine = pathlib.Path(folder, "memtrace-report", "summary.md")
    mine.write_text("a file of the user\n")
    found, summary, _ = run_gate(program, folder, trace=str(CAPTURES / "gpt_default.pickle.zst"))
    if found != 4 or summary != "before\n" or mine.read_text() != "a file of the user\n":
        complaints.append(f"a file that memtrace did not write: exit status {found}, summary {summary!r}")
    mine.unlink()
    return complaints


def check_action():
    """What GitHub demands of a composite action: its metadata, a shell for each step, and no
    expression that names an input that is not declared, or that a shell would read."""
    action = yaml.safe_load((ROOT / ".ci" / "github" / "action.yml").read_text())
    complaints = [f"action.yml lacks {key}" for key in ("name", "description", "inputs", "runs")
                  if key not in action]
    if action["runs"].get("using") != "composite":
        complaints.append("action.yml is not composite")
    for name, facts in action["inputs"].items():
        if "description" not in facts or set(facts) - {"description", "required", "default"}:
            complaints.append(f"action.yml: input {name} has {sorted(facts)}")
    for step in action["runs"]["steps"]:
        if "run" not in step or "shell" not in step or "${{" in step["run"]:
            complaints.append(f"action.yml: step {step}")
        for value in step.get("env", {}).values():
            name = re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", str(value))
            if name and name.group(1) not in action["inputs"]:
                complaints.append(f"action.yml: no input {name.group(1)}")
    return complaints


def differing_jobs(github, gitlab):
    """Jobs of both pipelines run the same commands of ./dev, with the same variables."""
    complaints = []
    for name in sorted(set(github) & set(gitlab)):
        steps = [step["run"] for step in github[name]["steps"] if step.get("run", "").startswith("./dev ")]
        scripts = [line for line in gitlab[name]["script"] if line.startswith("./dev ")]
        if steps != scripts or not steps:
            complaints.append(f"job {name}: GitHub runs {steps}, GitLab {scripts}")
        if github[name].get("env") != gitlab[name].get("variables"):
            complaints.append(f"job {name}: the variables of GitHub and GitLab differ")
    if set(github) - set(gitlab) != {"build"}:
        complaints.append(f"jobs only of GitHub: {sorted(set(github) - set(gitlab))}")
    return complaints


def check_workflows():
    """The project's own pipelines parse, and call commands of ./dev that exist."""
    known = set(re.findall(r"^dev_(\w+)\(\)", (ROOT / "dev").read_text(), re.MULTILINE))
    complaints = []
    github = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    gitlab = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
    lines = [step["run"] for job in github["jobs"].values() for step in job["steps"] if "run" in step]
    lines += [line for job in gitlab.values() if isinstance(job, dict) for line in job.get("script", [])]
    called = set(re.findall(r"\./dev (\w+)", "\n".join(lines)))
    for name in ("test", "packages"):
        names = [step.get("name", step.get("uses", "")) for step in github["jobs"][name]["steps"]]
        if "git" not in names or not any(word.startswith("actions/checkout@") for word in names[names.index("git"):]):
            complaints.append(f"job {name} has no git before it checks out the tree, so tests cannot list the files")
    if not any("install" in line and "git" in line for line in gitlab["default"]["before_script"]):
        complaints.append("the jobs of GitLab have no git, so tests cannot list the files")
    complaints += differing_jobs(github["jobs"], gitlab)
    if not called <= known:
        complaints.append(f"pipelines call ./dev {called - known}")
    if not {"test", "wheel", "docs", "fuzz"} <= called:
        complaints.append(f"pipelines call only ./dev {called}")
    return complaints


def check_pins():
    """The project's own workflow names the actions of others by commit: a tag can be moved."""
    lines = (ROOT / ".github" / "workflows" / "ci.yml").read_text().splitlines()
    used = [line.partition("uses: ")[2] for line in lines if "uses: " in line]
    return [f"ci.yml uses {name}, which names no commit and tag" for name in used
            if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", name)]


def check_template():
    """The template runs the same script, and keeps what docs/ci.md says."""
    job = yaml.safe_load((ROOT / ".ci" / "gitlab" / "memtrace.yml").read_text())[".memtrace"]
    wanted = {"when": "always", "paths": ["$MEMTRACE_OUTPUT/"],
              "reports": {"junit": "$MEMTRACE_OUTPUT/junit.xml"}}
    if job["script"] != [".ci/gate.sh"] or job["artifacts"] != wanted:
        return [f".ci/gitlab/memtrace.yml: {job}"]
    return []


def lines_of_documents():
    """{where: shell lines} of what docs/ci.md gives to paste, except its workflow."""
    lines = {}
    for text in re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "ci.md").read_text(),
                           re.MULTILINE | re.DOTALL):
        document = yaml.safe_load(text)
        if isinstance(document, list):
            for step in document:
                lines[step["name"]] = step["run"]
        elif "jobs" not in document:
            for name, job in document.items():
                lines[name] = "\n".join(job["script"])
    return lines


def check_pasted(program, folder):
    """What docs/ci.md gives to paste, run as it is on a committed trace that fails its budget."""
    binaries = pathlib.Path(folder, "bin")
    binaries.mkdir()
    (binaries / "memtrace").symlink_to(program)
    trace = pathlib.Path(folder, "memory", "run.trace.zst")
    subprocess.run([program, "import", CAPTURES / "gpt_split64.pickle.zst", "-o", trace],
                   check=True, capture_output=True)
    summary = pathlib.Path(folder, "pasted_summary")
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}",
                   "GITHUB_STEP_SUMMARY": str(summary)}
    wanted = {"gate": 1, "summary": 0, "memory": 1}
    found = {name: subprocess.run(["sh", "-e", "-c", text], cwd=folder, env=environment,
                                  capture_output=True, check=False).returncode
             for name, text in lines_of_documents().items()}
    if found != wanted:
        return [f"the lines of docs/ci.md exit with {found}, wanted {wanted}"]
    if not summary.read_text().startswith("### memtrace: FAIL: "):
        return [f"the summary of docs/ci.md begins {summary.read_text()[:80]!r}"]
    return []


def dry_run_steps():
    """The steps of the workflow in docs/ci.md."""
    text = re.findall(r"^```yaml\n(name: .*?)^```$", (ROOT / "docs" / "ci.md").read_text(),
                      re.MULTILINE | re.DOTALL)
    document = yaml.safe_load("\n".join(text))
    # YAML 1.1 reads the key `on` as true
    assert len(text) == 1 and set(document) == {"name", True, "permissions", "jobs"}, document
    return [step for job in document["jobs"].values() for step in job["steps"]]


def check_dry_run_workflow(program, folder):
    """Its steps are steps, conditions name steps before them, and its gate is a gate: with a `python`
    that uses no device it is not evaluated, which fails."""
    complaints, ids = [], set()
    for step in dry_run_steps():
        if ("uses" in step) == ("run" in step):
            complaints.append(f"docs/ci.md: step {step}")
        if not set(re.findall(r"steps\.(\w+)\.", step.get("if", ""))) <= ids:
            complaints.append(f"docs/ci.md: {step['name']} names a step that is not before it")
        ids.add(step.get("id"))
    binaries = pathlib.Path(folder, "memtrace", "bin")
    binaries.mkdir(parents=True)
    (binaries / "memtrace").symlink_to(program)
    (binaries / "python").write_text("#!/bin/sh\nexit 0\n")
    (binaries / "python").chmod(0o755)
    done = subprocess.run(["sh", "-e", "-c", dry_run_steps()[-1]["run"]], cwd=folder,
                          env={**os.environ, "HOME": folder, "MEMTRACE_DRY_RUN_SITE": "own",
                               "PATH": f"{binaries}:{os.environ['PATH']}"},
                          capture_output=True, text=True, check=False)
    if done.returncode != 1 or "was not evaluated" not in done.stdout:
        complaints.append(f"docs/ci.md: the last step says {done}")
    return complaints


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        program = str(pathlib.Path(program).resolve())
        complaints = check(program, folder) + check_pasted(program, folder)
        complaints += check_dry_run_workflow(program, folder) + check_install(folder)
    complaints += check_action() + check_template() + check_workflows() + check_pins()
    print("\n".join(complaints) or "the gates of docs/ci.md do what they say")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1])))
