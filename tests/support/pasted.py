"""Puts the patch of `memtrace dry-run --apply --json` into a program, as a person would."""

import re

LINE = re.compile(r"after line (\d+) of ")


def pasted(program, pieces):
    """The text PROGRAM with the PIECES, {"place", "text"}, of a patch in it. Pieces for the shell stay out (variables())."""
    lines = program.split("\n")
    top, below = [], {}
    for piece in pieces:
        found = LINE.search(piece["place"])
        if found:
            below.setdefault(int(found.group(1)), []).append(piece["text"])
        elif "top" in piece["place"]:
            top.append(piece["text"])
    for number in sorted(below, reverse=True):
        lines[number:number] = below[number]
    return "\n".join(top + lines)


def variables(pieces):
    """The variables that pieces for the shell set."""
    words = [piece["text"].split()[1] for piece in pieces if "shell" in piece["place"]]
    return dict(word.split("=", 1) for word in words)
