#!/usr/bin/env python3
"""check_skill.py PROGRAM: `memtrace help skill` prints docs/skill/SKILL.md, and its text is enough to answer questions.

An agent that knows only this text answers its ten questions about six recordings: it replaces the file in the command
of a question, and reads the column that the line "Answer:" names. The answers must be those of `analyze --json`. That
the commands print what the text shows is checked by check_pages.py."""
import collections
import csv
import io
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from annexes import absent_words, has_sqlite
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "fixtures" / "captures"
RECORDINGS = ("seq2seq", "leakval", "oom_adam", "twogpu", "gpt_default", "leakval_ring")
MAX_LINES = 250
MAX_BYTES = 16_000  # of an answer
MAX_DESCRIPTION = 1024
FAULTS = []


def check(condition, text):
    if not condition:
        FAULTS.append(text)


def run(*words, cwd=None, status=0):
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    check(done.returncode == status, f"{' '.join(map(str, words))}: status {done.returncode}: {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def check_form(program, text):
    check(text == (ROOT / "docs/skill/SKILL.md").read_text(encoding="utf-8"), "help skill is not docs/skill/SKILL.md")
    check(len(text.splitlines()) <= MAX_LINES, f"{len(text.splitlines())} lines, at most {MAX_LINES} are allowed")
    front = re.match(r"---\nname: memtrace\ndescription: >-\n((  .+\n)+)---\n", text)
    check(front and len(front.group(1)) <= MAX_DESCRIPTION, "the front matter")
    check(run(program, "help", "--completion-helper", "sk") == "skill\n", "completion of 'help sk'")
    check("skill" not in run(program, "--completion-helper", ""), "'memtrace skill' is offered")
    check("did you mean 'skill'?" in run(program, "help", "skil", status=2), "'help skil' has no hint")


def check_commands(program, text):
    """Commands and options that the text mentions exist."""
    absent = absent_words(program)
    for command in re.findall(r"^\$ (memtrace .*)$|`(memtrace \w[^`]*)`", text, re.MULTILINE):
        words = shlex.split("".join(command).split(" | ")[0])
        if words[1] == "help" or words[1] in absent:
            continue
        options = {option.rstrip("=") for option in run(program, words[1], "--completion-helper").split()}
        own = words[2:words.index("--") if "--" in words else None]
        unknown = {word.split("=")[0] for word in own if re.match("--?[a-z]", word)} - options
        check(not unknown, f"{' '.join(words)}: no option {', '.join(unknown)}")


class Agent:
    """Knows the text of the skill, and nothing else about memtrace."""

    def __init__(self, text):
        self.questions = re.findall(r"^### (\d+)\. (.*?)$.*?^\$ (memtrace .*?)$.*?^Answer: `(\w+)`", text,
                                    re.MULTILINE | re.DOTALL)

    def answers(self, command, column, program, recording):
        """{device: answer} in the first row of each device."""
        words = [str(recording.name) if word.endswith(".pickle") else word for word in shlex.split(command)]
        output = run(program, *words[1:], cwd=recording.parent)
        check(len(output) <= MAX_BYTES, f"{command}: {len(output)} bytes")
        found = {}
        for row in csv.DictReader(io.StringIO(output)):
            found.setdefault(row["device"], row[column])
        return found


def first_growth(device):
    return next((finding["bytes_per_step"] for finding in device["findings"]
                 if finding["id"] in ("growth", "possible-growth")), None)


def fatal_request(device):
    return next((oom["request_bytes"] for oom in device["ooms"] if oom["fatal"]), None)


def highest(rows, key, answer):
    """The answers of all rows that have the highest key: several may be equally right."""
    most = max(map(key, rows), default=None)
    return {str(row[answer]) for row in rows if key(row) == most}


def unused(device):
    then = device["summary"]["allocated_peak"]["then"]
    return then["reserved"] - then["allocated"]


def by_line(device):
    """Rows of lines, over all roles."""
    found = collections.Counter()
    for row in device["peak_sites"]:
        found[row["site"]] += row["bytes"]
    return [{"site": site, "bytes": size} for site, size in found.items()]


# The right answer to each question, or a set of them, from a device of `analyze --json --all`; None: no row.
EXPECTED = (
    lambda device: device["card"]["bytes"],
    lambda device: device["summary"]["allocated_peak"]["bytes"],
    lambda device: highest(device["roles_at_peak"], lambda row: row["bytes"], "role"),
    lambda device: highest(by_line(device), lambda row: row["bytes"], "site"),
    lambda device: int(device["verify"]["exact"]),
    unused,
    first_growth,
    lambda device: highest(device["steps"], lambda row: row["peak"]["allocated"], "step"),
    fatal_request,
    lambda device: device["findings"][0]["title"] if device["findings"] else None,
)


def check_answers(program, text, folder):
    agent, right = Agent(text), 0
    check([int(number) for number, *_ in agent.questions] == list(range(1, len(EXPECTED) + 1)),
          f"{len(agent.questions)} questions can be read")
    for name in RECORDINGS:
        recording = pathlib.Path(shutil.copy(CAPTURES / f"{name}.pickle.zst", folder / f"{name}.zst"))
        devices = json.loads(run(program, "analyze", recording, "--json", "--all", "-q"))["devices"]
        for (_, question, command, column), expected in zip(agent.questions, EXPECTED):
            wanted = {str(device["device"]): expected(device) for device in devices
                      if expected(device) not in (None, set())}
            found = agent.answers(command, column, program, recording)
            is_right = found.keys() == wanted.keys() and all(
                found[device] in (answer if isinstance(answer, set) else {str(answer)})
                for device, answer in wanted.items())
            check(is_right, f"{name}: {question} {found} instead of {wanted}")
            right += is_right
    print(f"{right} of {len(RECORDINGS) * len(EXPECTED)} answers are right")


def main(program):
    program = pathlib.Path(fast_program(program)).resolve()
    text = run(program, "help", "skill")
    check_form(program, text)
    check_commands(program, text)
    with tempfile.TemporaryDirectory() as work:
        if has_sqlite(program):
            check_answers(program, text, pathlib.Path(work))
    print("\n".join(FAULTS), file=sys.stderr, end="\n" if FAULTS else "")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
