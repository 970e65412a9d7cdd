#!/usr/bin/env python3
"""tests/check_language.py finds what it must find, and nothing in good prose."""
import pathlib
import sys
import tempfile

import check_language

BAD = {
    "a.md": [
        ("Blocks are freed, too.\n", ["phrases"]),
        ("It tells\nof blocks.\n", ["phrases"]),
        ("One.\n\nOf several devices\nthe first.\n", ["phrases"]),
        ("The colour is grey.\n", ["spelling", "spelling"]),
        ("About 52 % of it.\n", ["spelling"]),
        ("word " * 25 + "\n", ["columns"]),
        ("- " + "word " * 25 + "\n", ["columns"]),
    ],
    "a.c": [
        ("/* Made\n * anew. */\n", ["phrases"]),
        ("// optimised by hand\n", ["spelling"]),
        ('f("so many "\n  "blocks");\n', ["phrases"]),
        ('f("so "\n  "many blocks");\n', ["phrases"]),
    ],
    "a.py": [
        ("# Mend\nx = 1\n", ["phrases"]),
        ('"""All but for\none."""\n', ["phrases"]),
    ],
    "a.sh": [
        ("true # whoever runs it\n", ["phrases"]),
        ("echo 'analyse the trace'\n", ["spelling"]),
    ],
}
GOOD = {
    "a.md": [
        "Too many blocks are free. Use `colour, too.` as it is. 52% of 1.5 GiB.\n",
        "```\ncolour, too.\n```\n\n    so many blocks\n\n| " + "cell " * 30 + "|\n",
        "<!-- language: off -->\ncolour, too.\n<!-- language: on -->\n",
        "[" + "x" * 120 + "](colour.md)\n",
        "![" + "word " * 30 + "](a.svg)\n",
    ],
    "a.c": ['f("colour");\n', "int colour = 1;\n", "/* What stands in for a driver: `grey`. */\n"],
    "a.py": ["colour = 'grey'\n"],
    "a.sh": ["colour=grey\n"],
}


def kinds(folder, name, text):
    pathlib.Path(folder, name).write_text(text)
    return sorted(kind for _, kind, _ in check_language.faults(name))


def complaints(folder):
    for name, cases in BAD.items():
        for text, wanted in cases:
            found = kinds(folder, name, text)
            if found != wanted:
                yield f"{name}: {text!r} has {found}, wanted {wanted}"
    for name, texts in GOOD.items():
        for text in texts:
            found = kinds(folder, name, text)
            if found:
                yield f"{name}: {text!r} has {found}"
    pathlib.Path(folder, "a.md").write_text("Right.\n\nIt is\nwrong, too.\n")
    lines = [line for line, _, _ in check_language.faults("a.md")]
    if lines != [4]:
        yield f"the line of a fault is {lines}, wanted [4]"


def check_baseline(folder):
    """A count that rises fails, one that falls passes, and --update never raises it."""
    check_language.BASELINE = pathlib.Path(folder, "baseline.txt")
    check_language.write_baseline({("a.md", "phrases"): 2, ("a.c", "phrases"): 0})
    baseline = check_language.read_baseline()
    if baseline != {("a.md", "phrases"): 2}:
        yield f"the baseline is read as {baseline}"
    with check_language.BASELINE.open("a") as file:
        file.write("a.md phrases 3\n")
    if check_language.read_baseline() != baseline:
        yield "of two lines for a file, the lower one must count"
    for count, worse in ((3, True), (2, False), (1, False)):
        counts = check_language.collections.Counter({("a.md", "phrases"): count})
        if bool(check_language.rises(counts, baseline)) != worse:
            yield f"{count} faults after 2 {'pass' if worse else 'fail'}"
        if check_language.lowered(counts, baseline) != {("a.md", "phrases"): min(count, 2)}:
            yield f"--update with {count} faults after 2 is wrong"


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_language.ROOT = pathlib.Path(folder)
        found = [*complaints(folder), *check_baseline(folder)]
    print("\n".join(found) or "all cases are right")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
