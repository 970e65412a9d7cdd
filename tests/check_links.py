#!/usr/bin/env python3
"""Documents name what exists: targets of relative links, and files of the source tree in backticks.

A name in backticks counts if it ends in .c, .h or .py and has no wildcard. check_links.py [ROOT]"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
NAME = re.compile(r"`([\w./-]+\.(?:c|h|py))`")
# Files of other people that documents mention.
FOREIGN = re.compile(r"^(train|model|infer|torch|conv|site|nvtx|cuda|cupti|script|main|app|server|job|test_|a|b)\b|snapshot|^\w+\.py$")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    root = root if root.is_dir() else root.parent.parent
    tracked = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True).stdout.split()
    if not tracked:
        return 77
    names = {path.rsplit("/", 1)[-1] for path in tracked}
    problems = []
    for document in (path for path in tracked if path.endswith(".md") and not path.startswith("fixtures/")):
        if document == "CHANGELOG.md":
            continue
        text = (root / document).read_text()
        for target in LINK.findall(text):
            if "://" not in target and not target.startswith("mailto:") and not (root / document).parent.joinpath(target).exists():
                problems.append(f"{document}: a link to {target}, which does not exist")
        for name in NAME.findall(text):
            known = name in tracked or name.rsplit("/", 1)[-1] in names
            if not known and "NAME" not in name and not FOREIGN.search(name):
                problems.append(f"{document}: `{name}` does not exist")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
