#!/usr/bin/env python3
"""check_charts.py PROGRAM [--update]: docs/charts.md shows every chart, as the program draws it.

A line "    memtrace ..." of the page is run among the recordings of fixtures/captures,
fixtures/findings and fixtures/jobs; what it writes is the picture of that name in docs/pictures. A
line "    memtrace fleet JOB -o DIR" draws the pictures CHART_JOB.svg. Such lines also draw README's
pictures."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, PICTURES = ROOT / "docs" / "charts.md", ROOT / "docs" / "pictures"


def charts_of(program):
    """Names in the list of `render --help`."""
    text = subprocess.run([program, "render", "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\w+) +\S", text.split("CHART is\n")[1].split("\n\n")[0], re.MULTILINE)


def draw(program, command, folder):
    binaries = pathlib.Path(folder, "bin")
    binaries.mkdir(exist_ok=True)
    link = binaries / "memtrace"
    if not link.exists():
        link.symlink_to(program)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    return f"{command}: exit {done.returncode}: {done.stderr}" if done.returncode else None


def drawn_by(command, shown):
    """Pictures of the page that a command draws, each with its file among the recordings."""
    output = re.search(r" -o (\S+)", command).group(1)
    job = re.match(r"memtrace fleet (\S+) ", command)
    if not job:
        return {output: output}
    return {name: f"{output}/{name.removesuffix(f'_{job.group(1)}.svg')}.svg"
            for name in sorted(shown) if name.endswith(f"_{job.group(1)}.svg")}


def compare(file, name, update):
    """A complaint if a picture is not what was drawn."""
    picture = PICTURES / name
    if not file.exists():
        return f"nothing drew {name}"
    if update:
        shutil.copy(file, picture)
    elif not picture.exists() or file.read_bytes() != picture.read_bytes():
        return f"docs/pictures/{name} is not what the program draws: look at it, then --update"
    return None


def complaints(program, update):
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"^    (memtrace .*)$", text, re.MULTILINE)
    shown = set(re.findall(r"\]\(pictures/(\S+?)\)", text))
    headings = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    for chart in charts_of(program):
        if chart not in headings or not any(f" {chart} " in command for command in commands):
            yield f"{PAGE.name} does not show {chart}"
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("captures", "findings"):
            for recording in (ROOT / "fixtures" / kind).glob("*.pickle.zst"):
                pathlib.Path(folder, recording.name).symlink_to(recording)
        for job in (ROOT / "fixtures" / "jobs").glob("*/truth.json"):
            pathlib.Path(folder, job.parent.name).symlink_to(job.parent)
        for command in commands:
            drawn = drawn_by(command, shown)
            wrong = draw(program, command, folder)
            if wrong or not drawn or not shown.issuperset(drawn):
                yield wrong or f"{command}: what it draws is not shown"
                continue
            shown.difference_update(drawn)
            wrongs = [compare(pathlib.Path(folder, file), name, update) for name, file in drawn.items()]
            yield from (wrong for wrong in wrongs if wrong)
    yield from (f"nothing on {PAGE.name} draws {name}" for name in sorted(shown))
    used = text + "".join(page.read_text(encoding="utf-8")
                          for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    yield from (f"docs/pictures/{path.name} is not used" for path in PICTURES.iterdir() if path.name not in used)


def main():
    found = list(complaints(str(pathlib.Path(fast_program(sys.argv[1])).resolve()), "--update" in sys.argv))
    print("\n".join(found) or "docs/charts.md shows every chart as it is")
    return len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
