#!/usr/bin/env python3
"""check_view.py PROGRAM FIXTURES: `memtrace view` in a pseudo terminal. What it shows at an instant is
what `memtrace live` prints with the command of the last line; keys, sizes and settings of the
terminal work; and every end, also by a signal, leaves the terminal as it was."""
import codecs
import fcntl
import json
import math
import os
import pathlib
import pickle
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata

import check_hostile_names
from support.program import fast_program

WAIT_SECONDS = 60
SEQUENCE = re.compile(r"\x1b\[([?>]?)([\d;]*)([@-~])|\x1b[()].|\x1b[=>78M]|\x1b\][^\x07]*\x07|\x1b.", re.S)
LEFT, RIGHT, DOWN, FAR_RIGHT = "\x1bOD", "\x1bOC", "\x1bOB", "\x1b[1;2C"
ENTER, ESCAPE = "\r", "\x1b"


def is_visible(letter):
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


class Screen:
    """As much of a terminal as ncurses uses for TERM=xterm."""

    def __init__(self, rows, columns):
        self.rest, self.colors, self.alternate = "", False, False
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns, self.row, self.column, self.region = rows, columns, 0, 0, (0, rows)
        self.cells = [[" "] * columns for _ in range(rows)]

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def feed(self, output):
        text, at = self.rest + self.decoder.decode(output), 0
        while at < len(text):
            if text[at] == "\x1b":
                match = SEQUENCE.match(text, at)
                if not match or match.end() - at == 2 and text[at + 1] == "[":
                    break  # the rest of it comes later
                self.obey(match)
                at = match.end()
            else:
                self.put(text[at])
                at += 1
        self.rest = text[at:]

    def put(self, letter):
        assert letter in "\r\n\b\x07\x0f" or is_visible(letter), f"raw {letter!r}"
        is_one_column = unicodedata.east_asian_width(letter) not in "WF" and not unicodedata.combining(letter)
        assert is_one_column or not self.alternate, letter
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.row = min(self.row + 1, self.rows - 1)
        elif letter == "\b":
            self.column = max(self.column - 1, 0)
        elif is_visible(letter):
            if self.column >= self.columns:
                self.row, self.column = min(self.row + 1, self.rows - 1), 0
            self.cells[self.row][self.column] = letter
            self.column += 1

    def obey(self, match):
        private, words, kind = match.groups()
        if match.group() == "\x1bM":  # up, or down with all lines
            kind = "T" if self.row == self.region[0] else "A"
        if not kind:  # sets of characters, modes of keys
            return
        numbers = [int(word or 0) for word in words.split(";")] if words else []
        first = numbers[0] if numbers else 0
        here = min(self.column, self.columns - 1)
        row = self.cells[self.row]
        if private:
            self.alternate = kind == "h" if 1049 in numbers else self.alternate
        elif kind == "H":
            self.row = min((first or 1) - 1, self.rows - 1)
            self.column = min((numbers[1] if len(numbers) > 1 else 1) - 1, self.columns - 1)
        elif kind == "d":
            self.row = min((first or 1) - 1, self.rows - 1)
        elif kind == "G":
            self.column = (first or 1) - 1
        elif kind in "ABCD":
            step = first or 1
            self.row = min(max(self.row + {"A": -step, "B": step}.get(kind, 0), 0), self.rows - 1)
            self.column = min(max(here + {"C": step, "D": -step}.get(kind, 0), 0), self.columns - 1)
        elif kind == "J":
            self.cells[self.row + 1:] = [[" "] * self.columns for _ in self.cells[self.row + 1:]]
            row[here:] = [" "] * (self.columns - here)
        elif kind == "K":
            row[slice(0, here + 1) if first == 1 else slice(here, None)] = \
                [" "] * (here + 1 if first == 1 else self.columns - here)
        elif kind == "X":
            row[here:here + first] = [" "] * len(row[here:here + first])
        elif kind == "b":
            letter = row[here - 1]
            for _ in range(first):
                self.put(letter)
        elif kind == "P":
            row[here:] = row[here + (first or 1):] + [" "] * (first or 1)
        elif kind == "@":
            row[here:] = ([" "] * (first or 1) + row[here:])[:self.columns - here]
        elif kind == "r":
            self.region = (first or 1) - 1, numbers[1] if len(numbers) > 1 else self.rows
        elif kind in "STLM":  # lines move up (S, M) or down, in the region or below the cursor
            top, bottom = self.region
            ends = [top if kind in "ST" else self.row, bottom - 1]
            out, to = ends if kind in "SM" else ends[::-1]
            for _ in range(first or 1):
                self.cells.pop(out)
                self.cells.insert(to, [" "] * self.columns)
        elif kind == "m":
            self.colors |= any(number in (38, 48) or 30 <= number <= 37 for number in numbers)
        else:
            assert kind in "lht", match.group()


class Shown:
    """A running view."""

    def __init__(self, program, path, rows=24, columns=80, ignores_hangup=False, **more):
        def prepare():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if ignores_hangup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        self.screen = Screen(rows, columns)
        self.master, self.slave = pty.openpty()
        self.set_size(rows, columns)
        self.modes = termios.tcgetattr(self.slave)
        kept = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS") or name == "PATH"}
        self.child = subprocess.Popen([program, "view", "-q", path], stdin=self.slave, stdout=self.slave,
                                      stderr=self.slave, start_new_session=True,
                                      preexec_fn=prepare,
                                      env={**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **more})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.child.kill()
        self.child.wait()
        os.close(self.master)
        os.close(self.slave)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.set_size(rows, columns)

    def read(self):
        """Reads what there is. Returns false at the end of the output."""
        if not select.select([self.master], [], [], WAIT_SECONDS)[0]:
            raise AssertionError(f"nothing comes after:\n{self.screen.text()}")
        self.screen.feed(os.read(self.master, 65536))

    def has_output(self):
        return bool(select.select([self.master], [], [], 0)[0])

    def is_drawn(self):
        """Whether the program sleeps and has written all of the screen."""
        if self.has_output():
            return False
        state = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text(encoding="ascii").rpartition(") ")[2][0]
        return state in "SZ" and not self.has_output()

    def until(self, pattern, keys=""):
        """Types the keys, and returns the screen when it has the pattern and is complete."""
        if keys:
            os.write(self.master, keys.encode())
        while not (found := re.search(pattern, self.screen.text())) or not self.is_drawn():
            if self.has_output() or not found:
                self.read()
        return self.screen.text()

    def end(self, keys=""):
        """The status after the keys, and whether the terminal is as before."""
        if keys:
            os.write(self.master, keys.encode())
        status = self.child.wait(WAIT_SECONDS)
        while self.has_output():
            self.read()
        assert not self.screen.alternate, "the screen is still the alternate one"
        assert termios.tcgetattr(self.slave) == self.modes, "the modes of the terminal differ"
        return status


def command_of(text):
    return re.search(r"^memtrace live .*$", text, re.M).group()


def live(program, text):
    """The first device that the command of the last line prints."""
    words = shlex.split(command_of(text))[1:]
    done = subprocess.run([program, *words, "--json"], capture_output=True, check=True)
    devices = json.loads(done.stdout)["devices"]
    assert len(devices) == 1, f"{words}: {len(devices)} devices"
    return devices[0]


def bytes_text(count):
    """As the table prints it."""
    unit = next(unit for unit in range(4) if count < 999.5 * 1024 ** unit)
    value = count / 1024 ** unit
    digits = 0 if unit == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    value = math.floor(value * 10 ** digits + 0.5) / 10 ** digits
    return f"{value:.{digits}f} {('B', 'KiB', 'MiB', 'GiB')[unit]}"


def is_equal(program, text):
    """The total and the rows are those of `memtrace live`."""
    device = live(program, text)
    total = bytes_text(device["bytes"]["allocated"])
    assert re.search(rf"^{total} allocated", text, re.M), f"{total} is not in\n{text}"
    sums = {}
    for row in device["rows"]:
        key = (row["role"] if "--by phase" not in text else row["phase"] or "",
               row["phase"] if "--by role" not in text else None,
               row["group"] if "--by" not in text else None)
        sums[key] = sums.get(key, 0) + row["bytes"]
    for (role, _, _), count in sorted(sums.items(), key=lambda item: -item[1])[:3]:
        assert re.search(rf"^ *{bytes_text(count)} .*{role}", text, re.M), f"{bytes_text(count)} {role}:\n{text}"


def keys_work(program):
    path = "captures/gpt_split64.pickle.zst"
    with Shown(program, path) as shown:
        text = shown.until(r"memtrace live .*--at \d+")
        is_equal(program, text)
        assert "▲" in text and "█" in text and "reserved" in text, text
        assert shown.screen.colors
        peak = command_of(text)
        for keys in (LEFT, "HH", "+++", RIGHT, FAR_RIGHT, "0"):
            os.write(shown.master, keys.encode())
        text = shown.until(rf"memtrace live (?!{re.escape(peak[14:])}$).*--at \d+.*--by role", "Hr")
        is_equal(program, text)
        text = shown.until(r"--at \d+ --by phase", "pf")
        assert command_of(text) == peak + " --by phase", text
        shown.until(re.escape(peak) + r"$", "s")
        first = shown.until("role +allocated in")
        shown.until(r"Esc: back[\s\S]*--by stack", ENTER)
        shown.until("q: quit", ESCAPE)
        shown.until(r"go to: optimizer", "goptimizer")
        text = shown.until(r"in step \d+, optimizer", ENTER)
        is_equal(program, text)
        shown.until("did you mean 'peak'", "gpeek" + ENTER)
        shown.until("the instant is after the last event", "g999999999" + ENTER)
        is_equal(program, shown.until(re.escape(peak) + r"$", "gpeak" + ENTER))
        shown.until("no row has this text", "/no such row" + ENTER)
        shown.until("the whole run", "?")
        shown.until("q: quit", ESCAPE)
        assert shown.until("role +allocated in") == first, "not the first screen again"
        shown.resize(40, 60)
        text = shown.until(r"Enter: stacks…\nmemtrace live[^\n]*$")
        assert text.count("\n") == 39 and text.startswith("gpt_split64: peak ") and " role " in text, text
        shown.resize(5, 20)
        shown.until("needs 40 columns")
        shown.resize(24, 80)
        shown.until(re.escape(peak) + r"$")
        assert shown.end("q") == 0
        assert command_of(shown.screen.text()) == peak, "quit prints the command"


def instants(program):
    """Also at the ends, in a trace that starts in the middle, and in a recording."""
    for path in ("captures/churn_ring.pickle.zst", "captures/oom_adam.pickle.zst", "recorded/mixed.trace.zst"):
        with Shown(program, path) as shown:
            text = shown.until(r"--at \d+$")
            for keys in (50 * "H", "L", "r", "f", "s", "gend" + ENTER, "H"):
                before = re.escape(command_of(text)[14:])
                text = shown.until(rf"memtrace live (?!{before}$).*--at", keys)
                is_equal(program, text)
            assert shown.end("q") == 0
    with Shown(program, "no_history/snapshot.pickle", columns=200) as shown:
        shown.until("has no history of memory to show; use: memtrace analyze")
        assert shown.end() == 3


def devices(program):
    with Shown(program, "captures/twogpu.pickle.zst") as shown:
        number = re.search(r"--device (\d)$", shown.until(r"--device \d$")).group(1)
        is_equal(program, shown.until(rf"--device [^{number}]$", "\t"))
        assert shown.end("q") == 0


def settings(program):
    """Letters without colors, ASCII without UTF-8, one line where there is no screen."""
    path = "captures/leak.pickle.zst"
    for more in ({"NO_COLOR": "1"}, {"TERM": "vt100"}, {"LC_ALL": "C"}, {"LC_ALL": "", "LANG": "C", "NO_COLOR": "1"}):
        with Shown(program, path, **more) as shown:
            text = shown.until(r"memtrace live .*--at \d+$")
            has_colors = more == {"LC_ALL": "C"}
            assert shown.screen.colors == has_colors, f"{more}: colors"
            assert has_colors or re.search("PPP|AAA", text), f"{more}: no letters\n{text}"
            assert text.isascii() == (more.get("LC_ALL", "x") in ("", "C")), f"{more}:\n{text}"
            assert shown.end("q") == 0
    with Shown(program, path, TERM="unknown-to-all") as shown:
        shown.until("this terminal is unknown")
        assert shown.end() == 2
    for words in ({"stdin": subprocess.DEVNULL}, {}):
        done = subprocess.run([program, "view", path], capture_output=True, check=False, **words)
        assert done.returncode == 2 and not done.stdout, done
        assert done.stderr.decode() == f"memtrace: view needs a terminal; for a file or a pipe use: memtrace live {path}\n", done


def is_left_out(program):
    """Whether the build has no ncurses: then one line states it."""
    with Shown(program, "captures/leak.pickle.zst", columns=200) as shown:
        text = shown.until("memtrace live ")
        is_absent = "this memtrace was built without ncurses; without it use: memtrace live captures" in text
        assert shown.end("" if is_absent else "q") == (2 if is_absent else 0)
    return is_absent


def absent(program):
    """On a machine without ncurses, one line names what to install."""
    folder = pathlib.Path(program).parent
    audit = folder / "tests" / "absent_libraries.so"
    if audit.exists() and (folder / "libmemtrace-terminal.so").exists():
        with Shown(program, "captures/leak.pickle.zst", columns=200, LD_AUDIT=str(audit)) as shown:
            shown.until(r"install ncurses \(Debian: libncursesw6\); without it use: memtrace live")
            assert shown.end() == 2


def signals(program):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV):
        with Shown(program, "captures/leak.pickle.zst") as shown:
            shown.until(r"memtrace live .*--at \d+$")
            shown.child.send_signal(number)
            # AddressSanitizer ends the process after SIGSEGV.
            assert shown.end() in (-number, int(number == signal.SIGSEGV)), f"{number}: {shown.child.returncode}"
    with Shown(program, "captures/leak.pickle.zst") as shown:
        shown.until(r"memtrace live .*--at \d+$")
        assert shown.end("\x03") == -signal.SIGINT
    for ignored, statuses in ((False, (-signal.SIGHUP,)), (True, (0, 4))):  # 4: nobody gets the command
        with Shown(program, "captures/leak.pickle.zst", ignores_hangup=ignored) as shown:
            shown.until(r"memtrace live .*--at \d+$")
            os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), shown.master)
            assert shown.child.wait(WAIT_SECONDS) in statuses, f"hangup: {shown.child.returncode}"


def hostile(program):
    """Names reach the terminal as visible text, one column for each character (Screen.put)."""
    check_hostile_names.NAMES.extend(["\u6f22\u5b57", "e\u0301", "\U0001f600"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "\x1b]0;title\x07 \u6f22.pickle")
        pathlib.Path(path).write_bytes(pickle.dumps(check_hostile_names.snapshot(7)))
        with Shown(program, path, columns=160) as shown:
            shown.until(r"memtrace live ")
            for keys in ("H", "f", "s", DOWN, ENTER):
                shown.until("memtrace live ", keys)
            text = shown.until(r"Esc: back[\s\S]*--by stack")
            assert "\\u6f22" in text or "\\x" in text or "\\u" in text, text
            assert shown.end(ESCAPE + "q") == 0


def main(program, fixtures):
    program = os.path.abspath(program)
    os.chdir(fixtures)
    for check in () if is_left_out(program) else (keys_work, instants, devices, settings, absent, signals, hostile):
        check(program)
    print("the view shows it")


if __name__ == "__main__":
    main(fast_program(sys.argv[1]), pathlib.Path(sys.argv[2]))
