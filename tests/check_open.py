#!/usr/bin/env python3
"""check_open.py PROGRAM: `analyze --open` starts the browser with the page, without a shell, and says
where the page is if it cannot."""
import pathlib
import subprocess
import sys
import tempfile
import time

CAPTURE = pathlib.Path(__file__).resolve().parent.parent / "fixtures/captures/seq2seq.pickle.zst"
LIMIT_SECONDS = 10


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
        self.browser.write_text(f'#!/bin/sh\nprintf "%s" "$#:$1" >"{self.given}.new"; mv "{self.given}.new" "{self.given}"\n')
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
        return self.folder / page


def main(program):
    with tempfile.TemporaryDirectory() as name:
        desktop = Desktop(program, pathlib.Path(name))
        said = desktop.analyze("-o", "out", BROWSER=str(desktop.browser))
        check(desktop.page() == desktop.folder / "out/report.html" and "opened" in said, said)
        desktop.analyze(BROWSER="my-browser", PATH=f"{desktop.folder}:/usr/bin:/bin")
        page = desktop.page()
        check(page.is_file() and (desktop.folder / "cache") in page.parents, f"the page is {page}")
        check("no display" in desktop.analyze("-o", "out"), "no display")
        check("no browser was found" in desktop.analyze("-o", "out", BROWSER="/nowhere"), "a missing browser")
        check(not (desktop.folder / "x").exists(), "a shell read the name of the trace")


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()))
