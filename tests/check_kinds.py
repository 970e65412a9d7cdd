#!/usr/bin/env python3
"""check_kinds.py [ROOT]: calls and handlers of kinds that have caused faults (docs/internals/robustness.md, "Kinds
of faults") are only where ALLOWED lists them with a reason. For a new place, read the row of its kind
there, and then add it here with the reason why it is safe."""
import ast
import pathlib
import re
import sys

FOLDERS = ("base", "trace", "collector", "simulate", "analyzer", "fleet", "render", "cli", "python", "packaging")
C = (
    # Removing or replacing by name: what has the name now may be another file, or a link.
    r"(?<![\w.>])(unlink|rename|rmdir|remove|truncate|chmod|chown|symlink|link|mktemp|tmpnam) ?\(",
    # Numbers that may end anywhere, and overflow.
    r"(?<!\w)(atoi|atol|atoll|atof|strtod|strtof) ?\(",
    # A shell reads words of others.
    r"(?<![\w.>])(system|popen) ?\(",
    # Opens what is there, also through a link.
    r"\b(O_CREAT)\b(?!.*O_EXCL)",
    # Depends on the locale, which the interactive view sets: use base/text/ascii.h.
    r"(?<!\w)(is(?:alnum|alpha|digit|lower|print|punct|space|upper|xdigit)|to(?:lower|upper)) ?\(",
)
PYTHON = (
    r"\b(?:os|shutil)\.(unlink|remove|rename|renames|replace|rmdir|removedirs|rmtree|move|truncate|chmod|symlink|link)\(",
    r"\.(isdigit|isnumeric)\(",  # of other scripts; int() does not read all of them
    r"\bos\.(system|popen)\(|(?<=[( ])(shell)=True|\b(pickle)\.loads?\(",
    r"\bos\.(O_CREAT)\b(?!.*O_EXCL)",
)
NOT_CODE = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# (words, why they are safe there). "catches": a handler of every exception that does not raise it again.
ALLOWED = {
    "base/files/io.c": ("rename", "mt_io_rename, for files that O_EXCL made"),
    "base/files/temporary_file.c": ("rmdir unlink", "files that O_EXCL made; an empty folder of mkdtemp"),
    "cli/record/recording.c": ("unlink", "the list of traces: a file of mkostemp"),
    "cli/cmd_import.c": ("link unlink", "link replaces nothing; a file of mkostemp"),
    "simulate/commands/assumption.c": ("unlink", "traces of this run, which another one replaces"),
    "simulate/commands/sweep_runs.c": ("unlink", "traces of this run, in its own folder"),
    "simulate/commands/temporary_folder.c": ("rmdir", "an empty folder of mkdtemp"),
    "collector/record/manifest.c": ("unlink", "a file of mkostemp"),
    "collector/record/probe.c": ("unlink", "a file of mkostemp"),
    "collector/record/probe_python.c": ("rmdir", "an empty folder of mkdtemp"),
    "collector/record/trace_target.c": ("rmdir unlink", "empty folders; a file of mkostemp; a trace that was checked"),
    "collector/tape/own_file.c": ("unlink", "a file of this process: compared with its descriptor first"),
    "collector/tape/tape_file.c": ("unlink", "the tape that was read: compared with its descriptor first"),
    "collector/tape/own_file.c": ("unlink", "a file that is locked: compared with its descriptor first"),
    "python/memtrace/around.py": ("catches", "passes it on to the generator"),
    "python/memtrace/history.py": ("unlink", "the snapshot that it has written"),
    "python/memtrace/holders.py": ("isdigit", "a line number that a person typed"),
    "python/memtrace/host_copies.py": ("replace unlink", "a file of mkstemp gets the name that the user gave"),
    "python/memtrace/mcp_server.py": ("unlink", "a database in its own folder of mkdtemp"),
    "python/memtrace/output.py": ("link replace rmtree unlink", "only a finished trace is replaced; folders of mkdtemp"),
    "python/memtrace/parking.py": ("catches", "raises the interrupt at the end"),
    "python/memtrace/profiling.py": ("rmdir", "an empty folder of mkdtemp"),
    "python/memtrace/recording.py": ("unlink", "its own unfinished trace"),
    "simulate/asker/ask_cudnn.c": ("atoi atol", "names in /proc/self/fd; the argument is from the library"),
    "simulate/driver/driver_contexts.c": ("atoi", "a setting of tests"),
    "simulate/driver/note_file.c": ("rename unlink", "in the folder of the run"),
    "simulate/python/memtrace_dry_run/compiled.py": ("O_CREAT rmtree", "folders of mkdtemp, of this user, locked by nobody"),
    "simulate/python/memtrace_dry_run/objects.py": ("pickle replace", "objects of the program itself, in the folder of the run"),
    "simulate/python/memtrace_dry_run/notes.py": ("replace truncate", "in the folder of the run"),
}


def words_of_text(text, patterns):
    for pattern in patterns:
        for match in re.finditer(pattern, text):
            yield next(word for word in match.groups() if word), text.count("\n", 0, match.start()) + 1


def catches_all(handler):
    names = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    return any(name is None or (isinstance(name, ast.Name) and name.id in ("BaseException", "KeyboardInterrupt"))
               for name in names)


def words_of_handlers(tree):
    """Handlers that lose an interrupt, and exits from `finally`, which lose any exception."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and catches_all(node):
            if not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
                yield "catches", node.lineno
        for inner in getattr(node, "finalbody", []):
            for leaving in ast.walk(inner):
                if isinstance(leaving, (ast.Return, ast.Break, ast.Continue)):
                    yield "catches", leaving.lineno


def words_of(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from words_of_text(text, PYTHON)
        yield from words_of_handlers(ast.parse(text))
    else:
        yield from words_of_text(NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text), C)


def main(root):
    problems, unused = [], {name: set(words.split()) for name, (words, _) in ALLOWED.items()}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        if path.suffix not in (".c", ".h", ".py"):
            continue
        name = str(path.relative_to(root))
        allowed = ALLOWED.get(name, ("",))[0].split()
        for word, line in words_of(path):
            unused.get(name, set()).discard(word)
            if word not in allowed:
                problems.append(f"{name}:{line}: '{word}' is of a kind that has caused faults")
    problems += [f"check_kinds.py: {name} has no '{word}'" for name, words in unused.items() for word in sorted(words)]
    print("\n".join(problems) or "calls of dangerous kinds are where they are expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent))
