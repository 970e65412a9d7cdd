#!/usr/bin/env python3
"""check_cases.py PROGRAM [--update]: runs the commands of docs/cases.md and of README.md, and
compares their output with the pages; --update writes it into the pages.

A command that prints nothing is a fault, also with --update: its filter looks for words that the
program no longer prints. A command is a line "$ ..." of a block ```console; the lines up to the next command, or the end of
the block, are its output. Commands of docs/cases.md run in fixtures/, those of README.md in the root."""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END, PROMPT = "```console\n", "```\n", "$ "


def output_of(program, command, cwd):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "memtrace").symlink_to(pathlib.Path(program).resolve())
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        done = subprocess.run(["sh", "-c", command], cwd=cwd, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, check=False)
    return done.stdout


def refreshed(program, lines, cwd, silent):
    """The page with what its commands print now; `silent` gets commands that print nothing."""
    inside = False
    for line in lines:
        if line == BEGIN:
            inside = True
        elif line == END:
            inside = False
        if inside and line.startswith(PROMPT):
            yield line
            printed = output_of(program, line[len(PROMPT):], cwd)
            if not printed.strip():
                silent.append(line[len(PROMPT):].strip())
            yield from printed.splitlines(keepends=True)
        elif not inside or line == BEGIN:
            yield line


def main(program, update):
    pages = [ROOT / "docs" / "cases.md", ROOT / "README.md"]
    wrong, commands, silent = 0, 0, []
    for page in pages:
        old = page.read_text(encoding="utf-8").splitlines(keepends=True)
        new = list(refreshed(program, old, ROOT if page.parent == ROOT else ROOT / "fixtures", silent))
        commands += sum(line.startswith(PROMPT) for line in new)
        if old == new:
            continue
        wrong += 1
        if update:
            page.write_text("".join(new), encoding="utf-8")
        sys.stdout.writelines(list(difflib.unified_diff(old, new, page.name, "printed now", n=1))[:60])
    for command in silent:
        print(f"prints nothing: {command}")
    print(f"{commands} commands in {len(pages)} pages, {wrong} pages {'rewritten' if update else 'differ'}")
    return bool(silent) or (bool(wrong) and not update)


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), "--update" in sys.argv[2:]))
