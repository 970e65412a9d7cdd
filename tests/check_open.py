#!/usr/bin/env python3
"""check_open.py PROGRAM: `analyze --open` starts the browser with the page, without a shell, and says
where the page is if it cannot."""
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from support.program import fast_program

CAPTURE = pathlib.Path(__file__).resolve().parent.parent / "fixtures/captures/seq2seq.pickle.zst"
LIMIT_SECONDS = 300


def check(condition, message):
    if not condition:
        sys.exit(f"check_open: {message}")


class Desktop:
    """A folder with a trace of a hostile name, and a browser that writes down what it is given."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.trace = folder / "a 'b' $(touch x);c.pickle.zst"
        self.trace.write_bytes(CAPTURE.read_bytes())
        self.given = folder / "given"
        self.browser = folder / "my-browser"
        self.state = folder / "state"
        # The shell's own descriptors are above 9. Written first, because the test waits for `given`.
        # grep shows the signals that it inherits: a shell that waits for it may block its own.
        self.browser.write_text(f'''#!/bin/sh
{{ ls -l /proc/$$/fd; grep -E "Sig(Ign|Blk)" /proc/self/status; }} >"{self.state}.new"
mv "{self.state}.new" "{self.state}"
printf "%s" "$#:$1" >"{self.given}.new"; mv "{self.given}.new" "{self.given}"
''')
        self.browser.chmod(0o755)

    def analyze(self, *options, **variables):
        environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(self.folder / "cache"), **variables}
        done = subprocess.run([self.program, "analyze", "--quiet", self.trace, "--open", *options], cwd=self.folder,
                              env=environment, capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
        return done.stderr

    def page(self):
        """The page that the browser was started with; it runs in the background."""
        end = time.monotonic() + LIMIT_SECONDS
        while not self.given.exists() and time.monotonic() < end:
            time.sleep(0.01)
        count, _, page = self.given.read_text().partition(":")
        check(count == "1", f"the browser has {count} arguments")
        self.given.unlink()
        check(page.startswith("/"), f"the browser gets {page!r}, which it may read as an option or a URL")
        return pathlib.Path(page)

    def check_state(self):
        """The browser has no terminal, file or ignored signal of memtrace."""
        text = self.state.read_text()
        files = dict(re.findall(r" (\d) -> (.*)", text))
        files.pop("1", None)  # the file of this state
        check(files == {"0": "/dev/null", "2": "/dev/null"}, f"descriptors {files}")
        masks = {name: int(mask, 16) for name, mask in re.findall(r"(Sig\w+):\s*(\w+)", text)}
        for name in (signal.SIGPIPE, signal.SIGXFSZ):
            check(not masks["SigIgn"] >> (name - 1) & 1, f"the browser ignores {name.name}")
        check(masks["SigBlk"] == 0, f"blocked signals: {masks}")


def main(program):
    with tempfile.TemporaryDirectory() as name:
        desktop = Desktop(program, pathlib.Path(name))
        said = desktop.analyze("-o", "out", BROWSER=str(desktop.browser))
        check(desktop.page() == desktop.folder / "out/report.html" and "opened" in said, said)
        desktop.check_state()
        for folder in ("-x", "a:b", "a%20b #c?d \u00e9"):
            desktop.analyze(f"-o{folder}", BROWSER=str(desktop.browser))
            check(desktop.page() == desktop.folder / folder / "report.html", folder)
        desktop.analyze(BROWSER="my-browser", PATH=f"{desktop.folder}:/usr/bin:/bin")
        page = desktop.page()
        check(page.is_file() and (desktop.folder / "cache") in page.parents, f"the page is {page}")
        desktop.trace = desktop.trace.rename(desktop.folder / ("n" * 255))  # the longest name of a file
        desktop.analyze(BROWSER="my-browser", PATH=f"{desktop.folder}:/usr/bin:/bin")
        check(desktop.page().parent.name == "report-" + "n" * 248, "the folder of a trace with a long name")
        check("no display" in desktop.analyze("-o", "out"), "no display")
        check("no browser was found" in desktop.analyze("-o", "out", BROWSER="/nowhere"), "a missing browser")
        check("no browser was found" in desktop.analyze("-o", "out", BROWSER=name), "a folder is not a browser")
        desktop.browser.write_text("no program")
        said = desktop.analyze("-o", "out", BROWSER=str(desktop.browser))
        check("cannot start" in said and "Exec format error" in said, f"a file that cannot be executed: {said}")
        check(not (desktop.folder / "x").exists(), "a shell read the name of the trace")


if __name__ == "__main__":
    main(str(pathlib.Path(fast_program(sys.argv[1])).resolve()))
