#!/usr/bin/env python3
"""check_terminal.py PROGRAM FIXTURES: what analyze --all shows in a terminal: a chart of
memory over time, lines that fit, colors and Unicode only where they work; and
nothing of that in a pipe without --all. And every command of text keeps to 80 columns, with policies
and sites whole."""
import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios

from support.program import fast_program

HEADING = "Memory over time"
BLOCKS, COLOUR = re.compile("[\u2500-\u259f]"), "\033["
PASTED = "Check: "  # a command stays in one line
MAX_LINES = 30  # in 80 columns; check_text.py has 25 of 100


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS") or name == "PATH"}
    return {**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8", **more}


def in_terminal(command, columns, codes=(0,), **more):
    """What the command writes to a terminal of `columns` columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL, env=environment(**more))
    os.close(slave)
    chunks = []
    try:
        while chunk := os.read(master, 65536):
            chunks.append(chunk)
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert child.wait() in codes, command
    return b"".join(chunks).decode().replace("\r\n", "\n")


def chart_of(text):
    """The lines of the chart, None without one."""
    match = re.search(rf"^{HEADING}\n(.*?)\n\n", re.sub("\033\\[\\d*m", "", text), re.S | re.M)
    return match and match.group(1).split("\n")


def faults(program, path, widths):
    """What is wrong with the text of one capture, told as it is."""
    command = [program, "analyze", "-q", "--all", str(path)]
    for columns in widths:
        text = in_terminal(command, columns, NO_COLOR="1")
        lines, chart = text.split("\n"), chart_of(text)
        for line in lines:
            if len(line) > columns and not line.lstrip().startswith(PASTED):
                yield f"{len(line)} columns in a terminal of {columns}: {line}"
        screen = in_terminal([word for word in command if word != "--all"], columns, NO_COLOR="1").split("\n")
        if len(screen) - 1 > MAX_LINES:
            yield f"{len(screen) - 1} lines in a terminal of {columns} columns"
        if COLOUR in text:
            yield "colors in spite of NO_COLOR"
        if not chart or not any("▲" in line for line in chart) or "█" not in "".join(chart):
            yield f"no chart in a terminal of {columns} columns"
        elif max(map(len, chart)) < columns - 1:
            yield f"a chart of {max(map(len, chart))} columns in a terminal of {columns}"


def settings(program, path):
    """The same capture, in every kind of terminal."""
    command = [program, "analyze", "-q", "--all", str(path)]
    colourful = in_terminal(command, 100)
    plain = in_terminal(command, 100, NO_COLOR="1")
    if COLOUR not in colourful or re.sub("\033\\[\\d*m", "", colourful) != plain:
        yield "colors are no decoration"
    if COLOUR in in_terminal(command, 100, TERM="dumb"):
        yield "colors on a dumb terminal"
    for locale in ({"LC_ALL": "C"}, {"LC_ALL": "", "LANG": "de_DE.ISO-8859-1"}, {"LC_ALL": "", "LC_CTYPE": "POSIX", "LANG": "C.UTF-8"}):
        chart = chart_of(in_terminal(command, 100, NO_COLOR="1", **locale))
        if not chart or any(ord(letter) > 126 for line in chart for letter in line) or not any("^" in line for line in chart):
            yield f"no chart of ASCII with {locale}"
        # Steps and stacks are named in ASCII in this capture: all that is left is what memtrace writes.
        if not in_terminal(command, 100, NO_COLOR="1", **locale).isascii():
            yield f"text beyond ASCII with {locale}"
        if b"\xe2" in subprocess.run([program, "dump", str(path)], capture_output=True, check=True, env=environment(**locale)).stdout:
            yield f"a dump beyond ASCII with {locale}"
    for locale in ({"LC_ALL": "", "LANG": "en_US.UTF-8"}, {"LC_ALL": "de_DE.utf8"}):
        if not BLOCKS.search(in_terminal(command, 100, **locale)):
            yield f"no blocks with {locale}"
    if max(map(len, chart_of(in_terminal(command, 100, COLUMNS="60", NO_COLOR="1")))) > 60:
        yield "COLUMNS does not say how wide a terminal is"


def pipes(program, path):
    def ask(*options):
        done = subprocess.run([program, "analyze", "-q", str(path), *options], capture_output=True, check=True, env=environment(COLUMNS="60"))
        return done.stdout.decode()

    if chart_of(ask()) or COLOUR in ask():
        yield "a chart in a pipe"
    if not chart_of(ask("--all")) or max(map(len, chart_of(ask("--all")))) < 99:
        yield "no chart of 100 columns with --all"


def every_command(program, fixtures):
    """No line of a command is longer than a terminal of 80 columns, and what people copy is not cut."""
    policies = ("pytorch:expandable_segments:True,max_split_size_mb:128", "rmm-pool:initial_pool_size=1GiB,maximum_pool_size=64GiB")
    simulated = [word for policy in policies for word in ("-p", policy)]
    first = fixtures / "captures" / "gpt_split64.pickle.zst"
    commands = [["analyze"], ["analyze", "--all"], ["live"], ["live", "--by", "stack"], ["live", "--by", "role"], ["lines"],
                ["info"], ["optimal"], ["tune", "--no-fits"], ["fit", "--limit", "7GiB", *simulated],
                ["replay", "--verify"], ["replay", *simulated]]
    for trace in [first, *(fixtures / "captures" / f"{name}.pickle.zst" for name in ("oom_adam", "churn_exp_cap")),
                  *(fixtures / "recorded" / f"{name}.trace.zst" for name in ("mixed", "driver_only"))]:
        for words in [*([command[0], trace, *command[1:]] for command in commands), ["diff", first, trace]]:
            if words[0] == "tune" and trace.stem == "driver_only.trace":
                continue
            text = in_terminal([program, words[0], "-q", *map(str, words[1:])], 80, codes=(0, 1), NO_COLOR="1")
            told = f"{words[0]} {trace.name} {' '.join(map(str, words[2:]))}"
            for line in text.split("\n"):
                if len(line) > 80 and not line.lstrip().startswith(PASTED):
                    yield f"{told}: {len(line)} columns: {line}"
            if words[0] in ("fit", "replay"):
                yield from (f"{told}: {word} is cut" for word in policies if word in words and word not in text)
            if words[0] == "analyze" and trace.stem == "oom_adam.pickle" and "requested by forward train.py:58" not in text:
                yield f"{told}: who asked is cut"


def short(program, fixtures):
    """In 80 columns the text of several devices, and of a device that is not known, is as short and as narrow."""
    for name in ("recorded/twogpu.trace.zst", "traces/v1-every-kind.zst", "no_history/snapshot.pickle"):
        lines = in_terminal([program, "analyze", "-q", str(fixtures / name)], 80, NO_COLOR="1").split("\n")
        if len(lines) - 1 > MAX_LINES:
            yield f"{name}: {len(lines) - 1} lines"
        yield from (f"{name}: {len(line)} columns: {line}" for line in lines if len(line) > 80 and not line.lstrip().startswith(PASTED))


@contextlib.contextmanager
def with_terminal_for_errors(arguments, stdin=subprocess.DEVNULL):
    """A running command, and the terminal on its standard error."""
    master, slave = pty.openpty()
    child = subprocess.Popen(arguments, stdin=stdin, stdout=subprocess.DEVNULL, stderr=slave, env=environment())
    os.close(slave)
    try:
        yield child, master
    finally:
        child.kill()
        child.wait()
        os.close(master)


def rest_of(terminal):
    said = b""
    try:
        while chunk := os.read(terminal, 65536):
            said += chunk
    except OSError:  # the other end is closed
        pass
    return said


def progress(program, fixtures):
    """A search that goes on for seconds says how far it is, on standard error, and clears the line."""
    command = [program, "optimal", "--time", "2", str(fixtures / "minimalloc" / "D.1048576.csv")]
    with with_terminal_for_errors(command) as (_, terminal):
        said = rest_of(terminal)
    if not re.search(rb"\r\033\[Ksearching +\d+%", said) or not said.endswith(b"\r\033[K"):
        yield f"no progress of optimal: {said!r}"


def progress_of_reading(program, fixtures, options=(), status=0, last=rb"\r\033\[K"):
    """A command that waits for its input says how much it has read. The rest of the input comes only after this line.
    The pieces are small, so the line has 25 seconds: the program may start slowly."""
    text = subprocess.run(["zstd", "-dc", fixtures / "captures" / "leak.pickle.zst"], check=True, stdout=subprocess.PIPE).stdout
    with with_terminal_for_errors([program, "lines", *options, "-"], stdin=subprocess.PIPE) as (child, terminal):
        said, at = b"", 0
        while not re.search(rb"\r\033\[Kreading, [\d.]+ KiB, \d+ s", said) and at < len(text) // 2:
            child.stdin.write(text[at:at + 50])
            child.stdin.flush()
            at += 50
            if select.select([terminal], [], [], 0.02)[0]:
                said += os.read(terminal, 65536)
        told = re.search(rb"\r\033\[Kreading, [\d.]+ KiB, \d+ s", said)  # before the rest came
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(text[at:])
            child.stdin.close()
        said += rest_of(terminal)
        code = child.wait()
    if code != status or not told or not re.search(last + rb"\Z", said):
        yield f"no progress of lines: {said!r}, exit code {code}"


def main(program, fixtures):
    # Lines of output begin with the names that are given: those of the fixtures have ASCII characters.
    program = os.path.abspath(program)
    os.chdir(fixtures)
    fixtures = pathlib.Path()
    captures = fixtures / "captures"
    wrong = []
    for name, widths in (("gpt_split64", (80, 100, 137)), ("oom_adam", (80,)), ("leak", (80, 100)), ("twogpu", (100,))):
        path = captures / f"{name}.pickle.zst"
        wrong += [f"{name}: {fault}" for fault in faults(program, path, widths)]
    for check in (settings, pipes):
        wrong += check(program, captures / "gpt_split64.pickle.zst")
    wrong += every_command(program, fixtures)
    wrong += short(program, fixtures)
    wrong += progress(program, fixtures)
    wrong += progress_of_reading(program, fixtures)
    # the last words of a program without memory also clear the line
    wrong += progress_of_reading(program, fixtures, ("--max-memory", "1500KiB"), 3,
                                 rb"s\r\033\[Kmemtrace: cannot read standard input: needs more memory [^\r\n]*\r\n")
    print("\n".join(wrong) if wrong else "terminals show it")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(fast_program(sys.argv[1]), pathlib.Path(sys.argv[2])))
