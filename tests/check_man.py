#!/usr/bin/env python3
"""check_man.py PROGRAM FOLDER: each command has a man page in FOLDER with all its options, memtrace.1
lists no other command, and groff renders them without a warning. Without groff only options and
commands are checked."""
import pathlib
import re
import shutil
import subprocess
import sys


def main(program, folder):
    commands = set(subprocess.run([program, "--completion-helper"], check=True, capture_output=True,
                                  text=True).stdout.split()) - {"help", "version"}
    faults = []
    for command in sorted(commands):
        path = folder / f"memtrace-{command}.1"
        if not path.exists():
            faults.append(f"{command} has no man page")
            continue
        text = re.sub(r"\\f[BIR]", "", path.read_text(encoding="utf-8")).replace("\\-", "-")
        options = subprocess.run([program, command, "--completion-helper"], check=True, capture_output=True,
                                 text=True).stdout.split()
        # A whole word: "-o" is also a part of "--output", and "--by" of "--bytes".
        faults += [f"{path.name} lacks {option}" for option in options
                   if not re.search(rf"(?<![\w-]){re.escape(option.rstrip('='))}(?![\w-])", text)]
    listed = re.findall(r"memtrace\\-(\S+)\\fR\(1\)", (folder / "memtrace.1").read_text(encoding="utf-8"))
    faults += [f"memtrace.1 lists {name}, which the program lacks" for name in listed
               if name.replace("\\-", "-") not in commands]
    if shutil.which("groff"):
        for path in sorted(folder.glob("*.1")):
            done = subprocess.run(["groff", "-Kutf8", "-Tutf8", "-man", "-ww", "-Wbreak", "-z", path], capture_output=True, text=True,
                                  check=False)
            faults += [f"{path.name}: {line}" for line in done.stderr.splitlines()]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
