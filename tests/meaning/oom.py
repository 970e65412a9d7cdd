#!/usr/bin/env python3
"""oom.py PROGRAM: `memtrace oom` with the messages in fixtures/oom/cases.txt, and with the same messages as
terminals, logs and quotations change them. Prints every difference. The changed messages are for the program of
support/program.py: fuzz.oom changes messages under sanitizers."""
import json
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.program import fast_program  # pylint: disable=wrong-import-position

CASES = pathlib.Path(__file__).resolve().parent.parent.parent / "fixtures" / "oom" / "cases.txt"
MOST_LINES, MOST_COLUMNS = 12, 100


def read_cases():
    for part in CASES.read_text().split("\n=== ")[1:]:
        head, _, text = part.partition("\n")
        name, cause, proved, *words = head.split(" ", 3)
        yield name, cause, proved == "proved", words[0] if words else "", text + "\n"


def wrapped(text, columns):
    """As a terminal of this width shows it: lines break anywhere."""
    return "".join(line[i:i + columns] + "\n" for line in text.splitlines() for i in range(0, max(len(line), 1), columns))


VARIANTS = {
    "as it is": lambda text: text,
    "wrapped": lambda text: wrapped(text, 61),
    "colors": lambda text: "".join(f"\033[31m{line}\033[0m\r\n" for line in text.splitlines()),
    "quoted": lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    "ranks": lambda text: "".join(f"[1,2]<stderr>: {line}\n" for line in text.splitlines()),
    "in a log": lambda text: "step 1 loss 0.5\n" * 3000 + text + "bye\n" * 50,
}


def run(program, text, *options):
    return subprocess.run([program, "oom", *options], input=text.encode(), capture_output=True, timeout=60)


def check_text(answer, words):
    lines = answer.splitlines()
    if len(lines) > MOST_LINES:
        yield f"{len(lines)} lines"
    yield from (f"more than {MOST_COLUMNS} columns: {line}" for line in lines if len(line) > MOST_COLUMNS)
    if not re.match(r"Next: \S", lines[-1]):
        yield f"the last line is {lines[-1]!r}"
    if words and words not in " ".join(line.strip() for line in lines):
        yield f"no {words!r} in\n{answer}"
    rows = [(len(m[1]), int(m[2].replace(",", ""))) for line in lines if (m := re.match(r"( +)\S.* ([\d,]+) MiB$", line))]
    whole = [mib for indent, mib in rows if indent == 2]
    parts = [mib for indent, mib in rows if indent == 4]
    if sum(whole) != sum(parts):
        yield f"{sum(parts)} MiB of parts, and {sum(whole)} MiB of the whole"


def check(program, case, variant):
    name, cause, proved, words, text = case
    if name.startswith("shell_killed") and variant in ("wrapped", "ranks") or name == "none_words" and variant != "as it is":
        return
    done = run(program, VARIANTS[variant](text), "--json")
    if cause == "none":
        if done.returncode != 3 or done.stderr.count(b"\n") != 1:
            yield f"status {done.returncode}: {done.stdout.decode()}{done.stderr.decode()}"
        return
    if done.returncode != 0:
        yield f"status {done.returncode}: {done.stderr.decode()}"
        return
    found = json.loads(done.stdout)
    if (found["cause"], found["proved"]) != (cause, proved):
        yield f"{found['cause']}, proved {found['proved']}: {found['headline']}"
    if found["whole"] and sum(part["bytes"] for part in found["parts"]) == 0:
        yield "no parts"
    if variant == "as it is":
        yield from check_text(run(program, text).stdout.decode(), words)


def check_hostile(program):
    """An escape sequence that a line ends, and a text of 48 MiB without a character."""
    for text, line, options in ((b"\033[\n\033[\nMemoryError\n", 3, ()),
                                (b"\n" * (48 << 20) + b"MemoryError\n", (48 << 20) + 1, ("--max-memory", "200M"))):
        done = subprocess.run([program, "oom", "--json", *options], input=text, capture_output=True, timeout=60)
        found = json.loads(done.stdout)["line"] if done.returncode == 0 else done.stderr.decode()
        if found != line:
            yield f"hostile: {found}, not line {line}"


def main(program):
    cases = list(read_cases())
    jobs = [(case, variant) for case in cases for variant in VARIANTS]
    with ThreadPoolExecutor(4) as pool:
        changed = fast_program(program)
        results = pool.map(lambda job: list(check(program if job[1] == "as it is" else changed, *job)), jobs)
    failures = [f"{case[0]} ({variant}): {line}" for (case, variant), lines in zip(jobs, results) for line in lines]
    failures += check_hostile(program)
    print("\n".join(failures))
    print(f"{len(cases)} cases, {len(jobs)} texts, {len(failures)} failures")
    return 1 if failures or len(cases) < 190 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
