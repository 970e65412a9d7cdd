#!/usr/bin/env python3
"""Checks that documents, comments and messages are plain US English (docs/STYLE.md, Language).

check_language.py            compares the tree with language_baseline.txt, which has the faults that
                             were there before this check; a file with more of them fails
check_language.py FILE...    lists the faults of these files
check_language.py --update   lowers the baseline to what the tree has; it never raises a count

Prose is Markdown without code, and comments and string literals of C, Python and shell. A literal
without a space is a name, not prose. Text between <!-- language: off --> and <!-- language: on -->
is not checked. Dead links are found by check_links.py."""
import bisect
import collections
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "tests" / "language_baseline.txt"
CODESPELL_WORDS = ROOT / "tests" / "codespell_words.txt"
MAX_COLUMNS = 100
# Two files hold the phrases, and one holds glyphs.
NOT_CHECKED = {"tests/check_language.py", "tests/test_check_language.py", "render/glyph_table.c"}

START = r"(?:^|[.;:!?] |\n)"
# (pattern, what to write instead, or why a reader stops there).
PHRASES = [
    (r"(?<!not )\btoo(?=[.,;:)])", "also, before the verb"),
    (r"\bso (?:many|much)\b", "N, this many, that much; a number, if there is one"),
    (r"\b(?:tell|tells|told|telling) of\b", "reports, describes"),
    (r"\bbut for\b", "except"),
    (r"\banew\b", "again"),
    (r"\b(?:who|whom|whoso|whatso)ever\b", "anyone who, a person who"),
    (r"\bas if [\w ]{1,30}\bhad been\b", "say what is done: 'ignores recorded ranges'"),
    (r"\bsome (?:\d|hundreds?\b|thousands?\b|dozens?\b)", "about"),
    (r"\bfrom (?!now on)(?:[\w./%`]+ ){1,9}on(?=[.,;:)])", "since, after, or 'at least N'"),
    (START + r"Said (?:if|from|where|when|only|of)\b", "name the subject: 'Reported if ...'"),
    (START + r"(?:Suspected|Counted|Looked for|Replayed|Assumed|Meant|Claimed|Compared) "
             r"(?:is|are|if|only|where)\b", "subject first: 'The finding looks at ...'"),
    (START + r"Of (?:several|more|many|very many|each|all|those|these|equal|what|two|both|a|an"
             r"|the)\b", "subject first: 'For several devices ...'"),
    (START + r"Who (?:adds|has|sees|reads|wants|calls|needs|does|writes|asks)\b[^?]*?\.",
     "name the person: 'If you add a field, ...'"),
    (r"\b(?:mend|mends|mended|mending)\b", "fix, repair"),
    (r"\bby how much not\b", "by how much it fails"),
    (r"\b(?:stands?|stood) (?:in(?! for)|there|at|on|above|below|beside)\b",
     "is in, is at, precedes"),
    (r"\bheld against\b", "compared with"),
    (r"\bholds? [\w `]{1,40}\bagainst\b", "compares with"),
    (r"\bnobody's\b", "belongs to no one; say what owns it"),
    (r"\bis short for more than one\b", "is ambiguous"),
    (r"\bbe it\b", "whether, even if"),
    (r"\bthe other way round\b", "in reverse, conversely"),
    (r"\bfor ever\b", "forever, permanently"),
    (r"\bnow and then\b", "occasionally"),
    (r"\btill\b", "until"),
    (r"\bat last\b", "finally"),
    (r"\bonce more\b", "again"),
    (r"\bleav(?:e|es|ing) (?:it|them) away\b", "omit"),
    (r"\b(?:at|from|since) (?:its|the|their) begin\b", "start, beginning"),
    (r"\b(?:is|are|was|were|be|been) asked for\b", "requested"),
    (r"\b(?:say|says|said|saying) of\b", "says about, reports for"),
    (r"\bknown of\b", "known about"),
    (r"\b(?:hear|hears|heard) of\b", "is notified of, learns about"),
    (r"\bwho looks on\b", "interactive use"),
    (r"\bof no use\b", "useless; say why"),
    (r"\bby and by\b", "gradually"),
    (r"\bin (?:its|their) turn\b", "then"),
    (r"\bwhat (?:is|are) (?:it|they) of\b", "a clause as a noun: name the thing"),
    (r"\b(?:render|allocators?|collector|analyzer|style) notes\b", "cites a document that is not "
     "in the repository: say what it says"),
    (r"\bDESIGN \d", "cites a document that is not in the repository: say what it says"),
]
IS = r"(?:e|ed|es|ing|er|ers|ation|ations|able)"
# (British, US); checked one way, in words of prose only.
SPELLING = [
    (r"\b(\w*(?:behavi|neighb|col|fav|hon|lab|hum|endeav|harb|vap|rum))our(?!ne)(\w*)\b",
     r"\1or\2"),
    (r"\b(analy|paraly|cataly)s(e|ed|ing|er|ers)\b", r"\1z\2"),
    (r"\b((?:de|un|re)?(?:optim|recogn|initial|normal|serial|summar|synchron|minim|maxim|organ"
     r"|util|real|general|special|final|visual|token|author|custom|categor|character|equal|material"
     r"|memor|modern|parallel|prior|quant|random|standard|stabil|symbol|emphas|apolog|local|central"
     r"|factor|penal|linear|vector|virtual|capital|canonical|regular))is" + IS + r"\b", r"\1iz..."),
    (r"\b(cent|met|lit|fib|theat)re(s?)\b", r"\1er\2"),
    (r"\b(licen|defen|offen|preten)ce(s?|d)\b", r"\1se\2"),
    (r"\b(label|model|cancel|travel|signal|total|marshal|channel|level|fuel|tunnel|initial)"
     r"l(ed|ing)\b", r"\1\2"),
    (r"\bgrey(s|ed|ish)?\b", r"gray\1"),
    (r"\b(artefact|catalogue|dialogue|judgement|acknowledgement|ageing|fulfil|enrol|whilst|amongst"
     r"|learnt|spelt|burnt|programme|sceptic\w*|mould|plough)(s?)\b", "the US form"),
]
PERCENT = re.compile(r"\d %(?![a-zA-Z(])")


# Where a sentence must begin, case tells.
PHRASE_RULES = [(re.compile(pattern, 0 if pattern.startswith(START) else re.IGNORECASE), advice)
                for pattern, advice in PHRASES]
SPELLING_RULES = [(re.compile(pattern, re.IGNORECASE), us) for pattern, us in SPELLING]


def blank(match):
    """As many lines, without text: positions stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def without_code(text):
    """Markdown without fenced and indented code, HTML comments and targets of links."""
    text = re.sub(r"^<!-- language: off -->.*?^<!-- language: on -->", blank, text,
                  flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?:\A|(?<=\n\n))(?: {4}.*\n)+", blank, text)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)\s]*\)", lambda match: "]" + " " * (len(match.group(0)) - 1), text)
    return text


def without_names(text):
    """Prose without what is written in backticks, which are names."""
    return re.sub(r"`[^`\n]*`", lambda match: "`" + "x" * (len(match.group(0)) - 2) + "`", text)


# A comment, a string with those that follow it, or a character.
C_STRING = r'"(?:\\.|[^"\\\n])*"'
C_TOKEN = re.compile(rf"/\*.*?\*/|//[^\n]*|{C_STRING}(?:\s*(?:PRI\w+\s*)?{C_STRING})*"
                     r"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
SHELL_STRING = re.compile(r"""["']([^"'$]*[a-z] [a-z][^"']*)["']""")


def prose_of_c(text):
    for match in C_TOKEN.finditer(text):
        token, line = match.group(0), text.count("\n", 0, match.start()) + 1
        if token.startswith("/"):
            yield line, re.sub(r"^ ?\*+/? ?| *\*+/$|^/[*/]+", " ", token, flags=re.MULTILINE)
        elif token.startswith('"') and re.search(r"[a-z] [a-z]", token):
            joined = re.sub(r'"(\s*)(?:PRI\w+(\s*))?"', r"\1", token)
            yield line, joined.replace("\\n", " ").replace('"', " ")


def prose_of_python(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! ")
        elif token.type == tokenize.STRING and re.search(r"[a-z] [a-z]", token.string):
            yield token.start[0], re.sub(r"^\w*[\"']{1,3}|[\"']{1,3}$", " ", token.string)


def joined_comments(pieces):
    """Comments of successive lines are one text."""
    text, first, last = None, 0, 0
    for line, piece in pieces:
        if text is not None and line == last + 1 and "\n" not in piece:
            text += "\n" + piece
        else:
            if text is not None:
                yield first, text
            text, first = piece, line
        last = line + piece.count("\n")
    if text is not None:
        yield first, text


def prose_of_shell(text):
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.search(r"(?:^|\s)#(?!!)(.*)", line)
        if comment:
            yield number, comment.group(1)
        else:
            yield from ((number, literal) for literal in SHELL_STRING.findall(line))


READERS = {".c": prose_of_c, ".h": prose_of_c, ".py": prose_of_python, ".sh": prose_of_shell}


def long_lines(text):
    """Lines of Markdown that could be broken: no tables, pictures or headings, no code."""
    for number, line in enumerate(without_code(text).split("\n"), 1):
        original = text.split("\n")[number - 1]
        if not line.strip() or re.match(r"\s*(\||!\[|#)", line) or len(original) <= MAX_COLUMNS:
            continue
        if " " in re.sub(r"^\s*(?:[-*]|\d+\.)? *", "", original)[:MAX_COLUMNS]:
            yield number, "columns", f"{len(original)} columns, {MAX_COLUMNS} are the limit"


def flattened(text):
    """The text with one space between words and one line a paragraph; where its words are from."""
    flat, origins, offset = [], [], 0
    for line in text.split("\n"):
        words = " ".join(line.split())
        if words and flat and flat[-1] != "\n":
            flat.append(" ")
            offset += 1
        origins.append(offset)
        flat.append(words or "\n")
        offset += len(flat[-1])
    return "".join(flat), origins


def faults_of_prose(first, text):
    flat, origins = flattened(text)
    for rules, kind in ((PHRASE_RULES, "phrases"), (SPELLING_RULES, "spelling")):
        for rule, advice in rules:
            for match in rule.finditer(flat):
                line = first + bisect.bisect_right(origins, match.end() - 1) - 1
                instead = match.expand(advice) if kind == "spelling" else advice
                yield line, kind, f"'{match.group(0).strip()}': {instead}"


def faults(path):
    """(line, kind, what is wrong) for each fault of a file."""
    text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
    if path.endswith(".md"):
        prose = without_names(without_code(text))
        yield from long_lines(text)
        yield from faults_of_prose(1, prose)
        for match in PERCENT.finditer(prose):
            line = prose.count("\n", 0, match.start()) + 1
            yield line, "spelling", f"'{match.group(0)}': no space"
        return
    reader = READERS.get(pathlib.Path(path).suffix, prose_of_shell)
    pieces = reader(text)
    for line, piece in joined_comments(pieces) if reader is not prose_of_c else pieces:
        yield from faults_of_prose(line, without_names(piece))


def is_shell(path):
    with open(ROOT / path, "rb") as file:
        return re.match(rb"#!.*\b(?:sh|bash)\b", file.readline()) is not None


def checked_files():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, check=False).stdout.decode().split("\0")
    for path in sorted(filter(None, listed)):
        suffix = pathlib.PurePath(path).suffix
        if path in NOT_CHECKED or not (ROOT / path).is_file():
            continue
        if suffix in READERS or suffix == ".md" or not suffix and is_shell(path):
            yield path


def counts_of(paths):
    return collections.Counter((path, kind) for path in paths for _, kind, _ in faults(path))


def read_baseline():
    """The lowest count of each file and kind: a merge keeps the lines of both sides."""
    if not BASELINE.exists():
        return None
    baseline = {}
    for line in BASELINE.read_text().splitlines():
        if not line.startswith("#"):
            path, kind, count = line.split()
            baseline[path, kind] = min(int(count), baseline.get((path, kind), int(count)))
    return baseline


def write_baseline(counts):
    rows = [f"{path} {kind} {count}\n" for (path, kind), count in sorted(counts.items()) if count]
    BASELINE.write_text("# FILE KIND COUNT: faults from before tests/check_language.py was a test. "
                        "Counts may only fall.\n" + "".join(rows))


def misspelled(paths):
    """Complaints of codespell; nothing if it is not installed."""
    if not shutil.which("codespell"):
        print("codespell is not installed (Debian package codespell): spelling is not checked")
        return []
    done = subprocess.run(["codespell", "--ignore-words", CODESPELL_WORDS, *paths], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def print_faults(path, kind=None):
    for line, found, text in faults(path):
        if kind in (None, found):
            print(f"{path}:{line}: {text}")


def rises(counts, baseline):
    return [key for key in sorted(counts) if counts[key] > baseline.get(key, 0)]


def lowered(counts, baseline):
    return {key: min(count, counts[key]) for key, count in baseline.items()}


def compare(paths, counts, baseline):
    """Prints what is worse than the baseline; true if something is."""
    worse = rises(counts, baseline)
    for path, kind in worse:
        print_faults(path, kind)
        print(f"{path}: {counts[path, kind]} faults of {kind}, the baseline has "
              f"{baseline.get((path, kind), 0)}: fix the new ones (docs/STYLE.md, Language)\n")
    wrong = misspelled(paths)
    if wrong:
        print("\n".join(wrong) + "\ncodespell: fix these, or add the word to "
              "tests/codespell_words.txt")
    lower = sum(count > counts[key] for key, count in baseline.items())
    if lower:
        print(f"{lower} counts of the baseline are too high: tests/check_language.py --update")
    return bool(worse or wrong)


def main():
    arguments = sys.argv[1:]
    if arguments and arguments != ["--update"]:
        for path in arguments:
            print_faults(str(pathlib.Path(path).resolve().relative_to(ROOT)))
        return 0
    paths = list(checked_files())
    if not paths:
        print("no checkout of git: nothing to check")
        return 77
    counts, baseline = counts_of(paths), read_baseline()
    if arguments:
        write_baseline(counts if baseline is None else lowered(counts, baseline))
        return 0
    if compare(paths, counts, baseline or {}):
        return 1
    print(f"{len(paths)} files; {sum(counts.values())} old faults are left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
