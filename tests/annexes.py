"""What a build lacks without an annex (MEMTRACE_DRY_RUN, MEMTRACE_FLEET)."""
import subprocess

# A text that contains one of these words needs the command.
WORDS = {"dry-run": ("dry-run",), "fleet": ("fleet", ".mtsum", "it is a directory")}


def absent_words(program):
    """The words of the commands that the program does not have."""
    known = subprocess.run([program, "--completion-helper"], check=True, capture_output=True,
                           text=True).stdout.split()
    return [word for command, words in WORDS.items() if command not in known for word in words]
