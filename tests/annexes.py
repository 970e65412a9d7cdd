"""What a build lacks without an annex (MEMTRACE_DRY_RUN, MEMTRACE_FLEET) or without SQLite."""
import os
import subprocess

# A text that contains one of these words needs the command.
WORDS = {"dry-run": ("dry-run",), "fleet": ("fleet", ".mtsum", "it is a directory")}
SQLITE_WORDS = ["memtrace sql - ", "memtrace export sqlite captures"]


def absent_words(program):
    """The words of the commands that the program does not have."""
    known = subprocess.run([program, "--completion-helper"], check=True, capture_output=True,
                           text=True).stdout.split()
    words = [word for command, words in WORDS.items() if command not in known for word in words]
    return words + ([] if has_sqlite(program) else SQLITE_WORDS)


def has_sqlite(program):
    """Whether the program answers questions in SQL."""
    done = subprocess.run([program, "sql", os.devnull, "SELECT 1"], capture_output=True, check=False)
    return b"built without SQLite" not in done.stderr
