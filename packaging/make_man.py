#!/usr/bin/env python3
"""make_man.py VERSION SOURCE FOLDER COMMAND...: writes man pages of SOURCE (docs/reference.md) to
FOLDER: memtrace-COMMAND.1 from each section "memtrace COMMAND", and memtrace.1, which lists them.
Sections that all commands share are part of each page.

The pages use a part of Markdown: headings, paragraphs, lists, tables, code and links. Links become
their text: a terminal has no pages to go to."""
import pathlib
import re
import sys

PREFIX = "memtrace "
SHARED = ("Common options", "Exit status")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)", re.DOTALL)


def escape(text):
    """Text of roff: no line is a request, and signs that roff would change are themselves."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace("`", "\\(ga")
    return re.sub(r"^\.", r"\\&.", text, flags=re.MULTILINE)


def words_of(markdown):
    """A paragraph with code in bold and emphasis in italics."""
    parts = re.split(r"(`[^`]*`)", " ".join(LINK.sub(r"\1", markdown).split()))
    roff = []
    for part in parts:
        if part.startswith("`") and part.endswith("`") and len(part) > 1:
            roff.append(f"\\fB{escape(part[1:-1])}\\fR")
        else:
            part = escape(part)
            part = re.sub(r"\*\*(.+?)\*\*", r"\\fB\1\\fR", part)
            roff.append(re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"\\fI\1\\fR", part))
    return "".join(roff)


def code(lines):
    return [".PP", ".RS 4", ".nf", *(escape(line) for line in lines), ".fi", ".RE"]


def item(text, depth):
    """A list item: an option with its text, or a bullet."""
    option = re.match(r"((?:`-[^`]*`(?:, )?)+): (.*)", text, re.DOTALL)
    inside = [".RS 4"] * depth
    if option:
        return [*inside, ".TP", words_of(option.group(1)), words_of(option.group(2)), *[".RE"] * depth]
    return [*inside, ".IP \\(em 2", words_of(text), *[".RE"] * depth]


def table(lines):
    """Rows as items: the first cell, and the others below it."""
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
    roff = []
    for row in rows[2:]:
        roff += [".TP", words_of(row[0]) or "\\&", words_of("; ".join(cell for cell in row[1:] if cell)) or "\\&"]
    return roff


def blocks(markdown):
    """Yields (kind, lines) in order."""
    lines, kind, block = markdown.split("\n"), None, []
    fenced = False
    for line in [*lines, ""]:
        if line.startswith("```"):
            if fenced:
                yield "code", block
            elif block:
                yield kind, block
            fenced, kind, block = not fenced, None, []
        elif fenced:
            block.append(line)
        else:
            starts = ("heading" if re.match(r"#+ ", line) else "item" if re.match(r" *(- |\d+\. )", line) else
                      "table" if line.startswith("|") else "code" if line.startswith("    ") and kind != "item" else None)
            if block and (not line.strip() or kind == "heading" or
                          starts in ("heading", "item") or (starts == "table") != (kind == "table")):
                if not (kind == "code" and line.startswith("    ")):
                    yield kind, block
                    kind, block = None, []
            if line.strip():
                kind = kind or starts or "text"
                block.append(line)


def sections(reference):
    """{command: its section, with the sections that all commands share after it}"""
    parts = dict(part.split("\n", 1) for part in re.split(r"^## ", reference, flags=re.MULTILINE)[1:])
    shared = "".join(f"## {name}\n{parts[name]}" for name in SHARED)
    return {name.removeprefix(PREFIX): f"# {name}\n" + re.sub(r"^### ", "## ", text, flags=re.MULTILINE) + shared
            for name, text in parts.items() if name.startswith(PREFIX)}


def page(markdown, command, version):
    title = re.search(r"^# (.*)", markdown).group(1)
    body = re.sub(r"<!--.*?-->", "", markdown[len(title) + 3:], flags=re.DOTALL)
    roff, question = [], " ".join(body.strip().split("\n\n")[0].split())
    for kind, lines in blocks(body):
        text = "\n".join(lines)
        if kind == "heading":
            name = re.sub(r"^#+ ", "", text)
            roff += [f".{'SH' if text.startswith('## ') else 'SS'} \"{escape(name.replace('`', '')).replace(chr(34), '')}\""]
        elif kind == "code":
            roff += code([line[4:] if line.startswith("    ") else line for line in lines])
        elif kind == "table":
            roff += table(lines)
        elif kind == "item":
            depth = (len(text) - len(text.lstrip())) // 2
            roff += item(re.sub(r"^ *(- |\d+\. )", "", text), depth)
        else:
            # A paragraph after a heading needs no request.
            after_heading = not roff or roff[-1].startswith((".SH", ".SS"))
            roff += [*([] if after_heading else [".PP"]), words_of(text)]
    name = f"memtrace-{command}"
    return "\n".join([".\\\" Made by packaging/make_man.py from docs/reference.md.",
                      f'.TH {name.upper()} 1 "" "memtrace {version}" "memtrace"', ".SH NAME",
                      f"{escape(name)} \\- {escape(question)}", ".SH DESCRIPTION",
                      *roff, ".SH SEE ALSO",
                      "\\fBmemtrace\\fR(1)", ""]), question


def overview(questions, version):
    roff = ['.\\" Made by packaging/make_man.py.', f'.TH MEMTRACE 1 "" "memtrace {version}" "memtrace"', ".SH NAME",
            "memtrace \\- records and explains the memory of GPU programs", ".SH SYNOPSIS",
            "\\fBmemtrace\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR ...]", ".SH COMMANDS"]
    for command, question in sorted(questions.items()):
        roff += [".TP", f"\\fBmemtrace\\-{escape(command)}\\fR(1)", escape(question)]
    return "\n".join([*roff, ""])


def main(version, source, folder, commands):
    folder.mkdir(parents=True, exist_ok=True)
    questions, text_of = {}, sections(source.read_text(encoding="utf-8"))
    for command in commands:
        roff, questions[command] = page(text_of[command], command, version)
        (folder / f"memtrace-{command}.1").write_text(roff, encoding="utf-8")
    (folder / "memtrace.1").write_text(overview(questions, version), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
