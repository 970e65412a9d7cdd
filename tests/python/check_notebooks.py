#!/usr/bin/env python3
"""check_notebooks.py BUILD: runs the notebooks of docs/notebooks on a simulated GPU, and looks for the
pictures and tables that they promise. Exits with 77 if the libraries cannot be had."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "real_wheel"))
sys.path.insert(0, str(HERE.parent / "support"))
import check_real_wheel as wheel  # noqa: E402  pylint: disable=wrong-import-position
from program import fast_program  # noqa: E402  pylint: disable=wrong-import-position
import python_libraries  # noqa: E402  pylint: disable=wrong-import-position

LIMIT_SECONDS = 1500
SVG = "data:image/svg+xml;base64,PHN2ZyB4bWxu"
# What the outputs of a notebook have, as text or as HTML, in this order. The bytes are those of the dry
# run. Requests are equal on a GPU, but allocated peaks depend on the order of addresses.
PROMISES = {
    "first_answer": ["824 MiB allocated in step 1, backward", SVG,
                     "peak_allocated", "725785088", "864109056", "optimizer state", "136947712", "blocks"],
    "line_by_line": ["<code>train_step</code>", "loss.backward()", "<code>Block.forward</code>",
                     "allocation.all.allocated", "189890560", "peak", "growth"],
    "who_holds_it": ["embedding.weight", "that no tensor here uses", "Alive at the end", "losses[0]",
                     "MiB freed", "MiB moved", "MiB allocated again"],
    "without_a_gpu": ["needs 776 MiB", "Dry run on a simulated RTX 4090", SVG, "fits in 2 GiB", "True", "False",
                      "pytorch:expandable_segments:True", "conf="],
}


def text_of(output):
    data = output.get("data", {})
    return "".join(["".join(output.get("text", "")), *("".join(data.get(kind, "")) for kind in
                                                       ("text/plain", "text/html"))])


def missing(book, promises):
    """The first promise that is not kept, or None."""
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    if any(cell["execution_count"] is None for cell in cells):
        return "a cell that has not run"
    if any(output["output_type"] == "error" for cell in cells for output in cell["outputs"]):
        return "no cell with an error"
    text, at = "\n".join(text_of(output) for cell in cells for output in cell["outputs"]), 0
    for promise in promises:
        at = text.find(promise, at)
        if at < 0:
            return f"'{promise}'"
    return None


def check_sources():
    """Names of notebooks without promises, and of those that are missing."""
    names = {path.stem for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    return [f"{name}: the list of promises and the folder differ" for name in sorted(names ^ set(PROMISES))]


def main(build):
    if wheel.allowed_mib() == 0:
        raise wheel.Skip("MEMTRACE_TEST_WHEEL_MIB is 0")
    python = python_libraries.python_with_libraries()
    found = check_sources()
    with tempfile.TemporaryDirectory() as work:
        out = pathlib.Path(work, "out")
        program = fast_program(build / "memtrace")
        done = subprocess.run([program, "dry-run", "--quiet", "-o", "traces/", "--", python, "-B",
                               HERE / "run_notebooks.py", out], cwd=work, timeout=LIMIT_SECONDS,
                              capture_output=True, text=True, check=False, env={
                                  **os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
                                  "JUPYTER_RUNTIME_DIR": work, "IPYTHONDIR": work,
                                  "MEMTRACE_PROGRAM": str(program)})
        if done.returncode:
            found += [f"exit status {done.returncode}", done.stdout, done.stderr]
        for name, promises in PROMISES.items():
            path = out / f"{name}.ipynb"
            lost = missing(json.loads(path.read_text(encoding="utf-8")), promises) if path.exists() else "its outputs"
            if lost:
                found.append(f"{name}: the outputs lack {lost}")
    print("\n".join(found) or "the notebooks keep their promises")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
    except wheel.Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
