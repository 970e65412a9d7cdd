#!/usr/bin/env python3
"""check_size.py PROGRAM: compares the size of the project with LIMITS. A figure far below its limit
also fails: lower the limit then. Git lists the files; the test is skipped if it cannot."""
import collections
import pathlib
import re
import subprocess
import sys

from annexes import absent_words
from check_manual import SUBCOMMANDS

# Before you raise a limit, search for what can go. Give the reason in the same commit.
LIMITS = {
    "options": 229,  # long options of all commands, without --help; plan has 13, sql has ten
    ".c files": 552,  # of the product, like the next three; view has six, databases ten; event_window.c: two threads; block_units.c: sizes compressed; relay.c, model_feed.c: charts in a second thread
    ".h files": 408,  # png_pack.h: PNG without libpng; block_units.h; relay.h; ascii.h
    "lines of C": 207179,  # imports 6,400; databases and SQL 2,700; ring 2,100; view 1,800; Perfetto 1,600; shared replays 740; PNG 700
    "% of public functions with one other user": 52,  # .c files that name the function
    "words of documents": 89900,  # README.md, CONTRIBUTING.md, SECURITY.md, docs/**/*.md
}
MAX_FILES = 45  # in one folder
# Folders that have more, and how many. The same rule applies; a subfolder is often the answer.
LARGE_FOLDERS = {
    "fixtures/captures": 95,
    "fixtures/findings": 66,
    "fixtures/meaning": 62,
    "tests": 87,
    "tests/fuzz": 59,
    "tests/fuzz/seeds": 133,
    "tests/golden": 771,
    "tests/inject": 54,
    "tests/property": 53,
    "tests/unit": 173,
}
SLACK = 0.05  # a figure is at least 95% of its limit

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCT = ("base", "trace", "analyzer", "collector", "render", "cli", "fleet", "simulate")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
NOT_CODE = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
PUBLIC = re.compile(r"^(?!static\b|typedef\b)[a-z][\w *]*?\b(mt_\w+)\([^;{}]*\)\s*\{", re.M)


def list_files():
    return subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                          capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def count_options(program):
    """As `memtrace COMMAND --completion-helper` lists them."""
    def ask(*words):
        return subprocess.run([program, *words, "--completion-helper"], capture_output=True, text=True,
                              check=True).stdout.split()

    commands = [[name] for name in ask() if name not in ("help", "version")]
    commands += [[name, sub] for [name] in commands for sub in SUBCOMMANDS.get(name, ())]
    return sum(word.startswith("--") and word != "--help" for command in commands
               for word in ask(*command))


def share_of_one_user(texts):
    """The percentage of public functions that exactly one other .c file names."""
    users, definers = collections.Counter(), {}
    for path, text in texts.items():
        code = NOT_CODE.sub(" ", text)
        users.update(set(re.findall(r"\bmt_\w+", code)))
        definers.update(dict.fromkeys(PUBLIC.findall(code), path))
    return round(100 * sum(users[name] == 2 for name in definers) / len(definers))


def measure(program, files):
    product = [path for path in files if path.startswith(tuple(folder + "/" for folder in PRODUCT))]
    sources = {path: read(path) for path in product if path.endswith(".c")}
    headers = [path for path in product if path.endswith(".h")]
    documents = [path for path in files
                 if path in DOCUMENTS or path.startswith("docs/") and path.endswith(".md")]
    return {
        "options": count_options(program),
        ".c files": len(sources),
        ".h files": len(headers),
        "lines of C": sum(text.count("\n") for text in sources.values())
                      + sum(read(path).count("\n") for path in headers),
        "% of public functions with one other user": share_of_one_user(sources),
        "words of documents": sum(len(read(path).split()) for path in documents),
    }


def check(what, figure, limit, may_be_less=False):
    """Complaints about a figure and its limit."""
    if figure > limit:
        return [f"{what}: {figure}, at most {limit} are allowed. Find what can go; "
                "if nothing can, raise the limit and say why in the same commit"]
    if figure < limit * (1 - SLACK) and not may_be_less:
        return [f"{what}: {figure}, far below the limit {limit}: lower it in tests/check_size.py"]
    return []


def check_folders(files):
    complaints = []
    counts = collections.Counter(path.rpartition("/")[0] for path in files)
    for folder in sorted({*LARGE_FOLDERS, *(name for name in counts if counts[name] > MAX_FILES)}):
        limit = LARGE_FOLDERS.get(folder, MAX_FILES)
        complaints += check(f"files in {folder}", counts[folder], limit)
        if folder in LARGE_FOLDERS and counts[folder] <= MAX_FILES:
            complaints.append(f"{folder} has {counts[folder]} files: remove it from LARGE_FOLDERS")
    return complaints


def main(program):
    if not (ROOT / ".git").exists():  # a source archive
        return 77
    try:
        files = [path for path in list_files() if (ROOT / path).is_file()]
    except (OSError, subprocess.CalledProcessError) as error:  # Git is missing, or refuses the owner
        print(error)
        return 77
    figures = measure(program, files)
    complaints = check_folders(files)
    for what, limit in LIMITS.items():
        # A build without an annex has fewer options.
        complaints += check(what, figures[what], limit,
                            what == "options" and bool(absent_words(program)))
    print("\n".join(f"{figure:8} {what}, limit {LIMITS[what]}" for what, figure in figures.items()))
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
