"""What a build lacks without an annex (MEMTRACE_DRY_RUN, MEMTRACE_FLEET) or without SQLite."""
import subprocess

# A text that contains one of these words needs the command.
WORDS = {"dry-run": ("dry-run",), "fleet": ("fleet", ".mtsum", "it is a directory")}
SQLITE_WORDS = ["memtrace sql - ", "memtrace export sqlite captures"]


def absent_words(program):
    """The words of the commands that the program does not have."""
    known = subprocess.run([program, "--completion-helper"], check=True, capture_output=True,
                           text=True).stdout.split()
    words = [word for command, words in WORDS.items() if command not in known for word in words]
    said = subprocess.run([program, "sql", "-", "SELECT 1"], check=False, capture_output=True,
                          stdin=subprocess.DEVNULL).stderr
    return words + (SQLITE_WORDS if b"built without SQLite" in said else [])
