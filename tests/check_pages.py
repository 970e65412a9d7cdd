#!/usr/bin/env python3
"""check_pages.py BUILD [--update] [--torch|--python PYTHON] [--list] [PAGE...]: runs the commands of the user's pages, and
compares their output with the pages; --update writes it into the pages.

A page's commands run in a folder of its own, in the order of the page, with the program of BUILD. A command is a line
"$ ..." of a block ```console; the lines up to the next command, or the end of the block, are its output. A command that
prints nothing is a fault, unless it redirects or ends in `-o NAME`. HTML comments of the page, which readers do not see:

    <!-- files: NAME=FIXTURE ... -->  links NAME to fixtures/FIXTURE in the folder, or to BUILD/FIXTURE
    <!-- file: NAME -->               writes the block below to NAME; Python must at least compile
    <!-- run: WORD ... -->            how the commands of the block below run:
        standin   with the simulated GPU of fixtures/standin
        torch     with the PyTorch of tests/real_wheel; only with --torch or --python
        packages  with the packages that the page names; only with --python PYTHON, which has them
        vary      times, process numbers and temporary names may differ from the page
        fails     the command exits with another status than 0
        gpu       not run: needs a GPU. The options of memtrace's own commands are checked

A block ```python without a `file:` must compile. In a table with the column "command after `memtrace NAME`", the options
must exist. --list prints the commands that need a GPU."""
import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from annexes import has_sqlite
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
OTHER_TESTS = ("cases.md",)  # check_cases.py
PROMPT = "$ "
LIMIT_SECONDS = 900
WORDS = {"standin", "torch", "packages", "vary", "fails", "gpu"}
BY_PYTHON = {"torch", "packages"}
QUIET = re.compile(r" -o \S+$|>>? *\S+$|^(cd|cp|export|mkdir|test) |^mv |^\. ")
# Parts of an output that differ from run to run.
VARYING = [(re.compile(pattern), text) for pattern, text in (
    (r"\b\d[\d,]*(\.\d+)? (ns|µs|ms|s|min)\b", "TIME"),
    (r"-\d{2,}(?=\.(trace|mtsum|tape))", "-PID"),
    (r"\bpid \d+", "pid PID"),
    (r"/tmp/\S+", "/tmp/NAME"),
    (r"(?:/[\w.+-]+)+/(?=bin/python|lib/python)", "PREFIX/"),
)]


class Page:
    """A document, its lines, and the folder where its commands run."""

    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.lines = path.read_text(encoding="utf-8").splitlines(keepends=True)

    def needs_sqlite(self):
        return any(line.startswith("$ memtrace sql ") for line in self.lines)

    def needs_python(self):
        return any(re.match(r"<!-- run:.*\b(torch|packages)\b.*-->", line) for line in self.lines)


def pages():
    found = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "docs" / "skill" / "SKILL.md"]
    return [Page(page) for page in found if page.name not in OTHER_TESTS and
            re.search(r"^```(console|python)$", page.read_text(encoding="utf-8"), re.MULTILINE)]


class Runner:
    """Runs the blocks of one page."""

    def __init__(self, build, options, page, folder):
        self.build, self.options, self.page, self.folder = build, options, page, folder
        self.faults, self.not_run, self.commands = [], [], 0

    def fault(self, text):
        self.faults.append(f"{self.page.name}: {text}")

    def environment(self, words):
        binaries = self.folder.parent / "bin"
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("MEMTRACE_", "LD_PRELOAD", "CUDA_", "NVTX_", "PYTORCH_"))}
        kept.update(LC_ALL="C.UTF-8", TERM="dumb", COLUMNS="100", PATH=f"{binaries}:{os.environ['PATH']}",
                    HOME=os.environ.get("HOME", "/"), XDG_CACHE_HOME=str(self.folder.parent / "cache"))
        if "standin" in words:
            kept.update(LD_LIBRARY_PATH=str(self.build / "standin"),
                        MEMTRACE_CUPTI=str(self.build / "standin" / "libcupti.so.13"))
        if self.options.python:
            kept["PYTHONWARNINGS"] = "ignore"  # PyTorch's, which finds no NumPy
            kept["PATH"] = f"{binaries}:{self.options.python.parent}:{os.environ['PATH']}"
        return kept

    def is_left_out(self, words):
        lacks_packages = "packages" in words and self.options.torch
        if "standin" in words and self.options.python:
            return True  # runs without --torch and --python
        return "gpu" in words or lacks_packages or (bool(words & BY_PYTHON) and not self.options.python)

    def check_not_run(self, command, words):
        """What can be said about a command without a GPU: its options exist."""
        if "gpu" not in words:
            return
        self.not_run.append(f"{self.page.name}: {command}")
        for part in re.split(r"&&|\|\|?|;", command):
            self.check_options(part)

    def check_options(self, command):
        given = shlex.split(command.strip())
        while given and ("=" in given[0].split("/")[0] or given[0] in ("sudo", "srun", "mpirun")):
            given.pop(0)
        if len(given) < 2 or given[0] != "memtrace":
            return
        done = subprocess.run([self.build / "memtrace", given[1], "--completion-helper"], capture_output=True,
                              text=True, check=False)
        known = {option.rstrip("=") for option in done.stdout.split()}
        if done.returncode:
            self.fault(f"'{command}': no such command")
        # memtrace's own options end where the recorded command begins
        for word in given[2:given.index("--") if "--" in given else None]:
            if word in ("python", "torchrun", "python3"):
                break
            if word.startswith("-") and word.split("=")[0] not in known:
                self.fault(f"'{command}': no option {word}")

    def check_table(self, lines):
        """The options in a table whose last column has what follows a command."""
        command = None
        for line in lines:
            heading = re.match(r"\| .* \| command after `(memtrace \w+)` \|$", line)
            command = heading.group(1) if heading else command if line.startswith("|") else None
            row = command and re.match(r"\| [^|]* \| `(-.*?)`", line)
            if row:
                self.check_options(f"{command} {row.group(1)}")

    def output_of(self, command, words):
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, env=self.environment(words), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT_SECONDS, check=False)
        self.commands += 1
        if (done.returncode != 0) != ("fails" in words):
            self.fault(f"'{command}' exits with {done.returncode}: {done.stdout[-400:]}")
        if not done.stdout.strip() and not QUIET.search(command):
            self.fault(f"'{command}' prints nothing")
        lines = done.stdout.splitlines(keepends=True)
        # The status of a pipe is that of its last command: an error of the first one is all that is shown.
        if "|" in command and "2>&1" not in command and lines and all(line.startswith("memtrace: ") for line in lines):
            self.fault(f"'{command}' prints only a message")
        return lines

    def refreshed_block(self, lines, words):
        """The lines of a block ```console with what its commands print now."""
        if not lines or not lines[0].startswith(PROMPT):
            self.fault(f"a block of commands does not begin with '{PROMPT}'")
        new = []
        for command, shown in split_commands(lines):
            if self.is_left_out(words):
                self.check_not_run(command, words)
                new += [PROMPT + command + "\n", *shown]
                continue
            printed = self.output_of(command, words)
            if "vary" in words and without_varying(printed) == without_varying(shown):
                printed = shown
            new += [PROMPT + command + "\n", *printed]
        return new

    def take_file(self, name, lines, language):
        text = "".join(lines)
        if language == "python":
            self.check_python(text)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check_python(self, text):
        text = re.sub(r"^[!%].*$", "pass", text, flags=re.MULTILINE)  # of IPython
        try:
            compile(text, self.page.name, "exec")
        except SyntaxError as error:
            self.fault(f"Python that does not compile: {error}: {text[:80]!r}")

    def take_links(self, text):
        for pair in text.split():
            name, target = pair.split("=")
            source = ROOT / "fixtures" / target
            source = source if source.exists() else self.build / target
            if not source.exists():
                self.fault(f"{target} does not exist")
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).symlink_to(source)

    def refreshed(self):
        """The page as it should be."""
        lines, words, name = iter(self.page.lines), set(), None
        for line in lines:
            yield line
            directive = re.match(r"<!-- (files|file|run): (.*?) -->$", line)
            fence = re.match(r"```(\w+)( .*)?$", line)
            if directive and directive.group(1) == "files":
                self.take_links(directive.group(2))
            elif directive and directive.group(1) == "file":
                name = directive.group(2)
            elif directive:
                words = set(directive.group(2).split())
                if not words <= WORDS:
                    self.fault(f"unknown words in '{line.strip()}'")
            elif fence:
                yield from self.refreshed_fence(fence.group(1), lines, words, name)
                words, name = set(), None

    def refreshed_fence(self, language, lines, words, name):
        block, last = [], ""
        for last in lines:
            if last == "```\n":
                break
            block.append(last)
        if name:
            self.take_file(name, block, language)
        elif language == "python":
            self.check_python("".join(block))
        if language == "console":
            block = self.refreshed_block(block, words)
        yield from block
        yield last


def split_commands(lines):
    """[(command, lines shown below it)]"""
    found = []
    for line in lines:
        if line.startswith(PROMPT):
            found.append((line[len(PROMPT):].rstrip("\n"), []))
        elif found:
            found[-1][1].append(line)
    return found


def without_varying(lines):
    text = "".join(lines)
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return re.sub(r"[ \n]+", " ", text)  # a line may be wrapped elsewhere


def check(build, options, page):
    """(faults, commands that need a GPU, number of commands that ran)"""
    with tempfile.TemporaryDirectory() as scratch:
        binaries, folder = pathlib.Path(scratch, "bin"), pathlib.Path(scratch, "work")
        binaries.mkdir()
        folder.mkdir()
        (binaries / "memtrace").symlink_to(fast_program(build / "memtrace"))
        if not options.python:
            (binaries / "python").symlink_to(sys.executable)
        runner = Runner(build, options, page, folder)
        runner.check_table(page.lines)
        new = list(runner.refreshed())
    if new != page.lines:
        if options.update:
            page.path.write_text("".join(new), encoding="utf-8")
        else:
            runner.fault("differs from what is printed now")
        sys.stdout.writelines(list(difflib.unified_diff(page.lines, new, page.name, "printed now", n=1))[:80])
    return runner


def python_of_wheel():
    sys.path.insert(0, str(ROOT / "tests" / "real_wheel"))
    import check_real_wheel  # pylint: disable=import-error,import-outside-toplevel
    try:
        python = check_real_wheel.python_with_torch()
        check_real_wheel.check_is_for_cuda(python)
        return python
    except check_real_wheel.Skip as reason:
        print(f"no PyTorch to run the pages with: {reason}")
        sys.exit(77)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--python", type=lambda path: pathlib.Path(path).absolute())
    for option in ("--update", "--torch", "--list"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    options.python = python_of_wheel() if options.torch else options.python
    chosen = [page for page in pages() if not options.pages or page.path in
              {path.resolve() for path in options.pages}]
    if not has_sqlite(fast_program(options.build.resolve() / "memtrace")):
        chosen = [page for page in chosen if not page.needs_sqlite()]
    assert chosen
    runners = [check(options.build.resolve(), options, page) for page in chosen
               if not options.python or page.needs_python()]
    faults = [fault for runner in runners for fault in runner.faults]
    if options.list:
        print("\n".join(command for runner in runners for command in runner.not_run))
    print("\n".join(faults + [f"{sum(runner.commands for runner in runners)} commands in {len(runners)} pages, "
                              f"{sum(len(runner.not_run) for runner in runners)} need a GPU"]))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
