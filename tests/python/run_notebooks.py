#!/usr/bin/env python3
"""run_notebooks.py OUT [NAME...]: runs the notebooks of docs/notebooks, all or those named, and writes
them with their outputs to the folder OUT. Ends with status 1 at the first cell that fails.

On a machine with a GPU, run it with a Python that has PyTorch, nbclient, ipykernel and pandas:

    PYTHONPATH=python MEMTRACE_PROGRAM=build/release/memtrace python tests/python/run_notebooks.py docs/notebooks

In a dry run (check_notebooks.py) the kernel inherits the simulated GPU."""
import os
import pathlib
import sys
import tempfile

import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "notebooks"
NEEDS_NO_GPU = "without_a_gpu"
LIMIT_SECONDS = 1500


def run(name, out):
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.metadata.clear()
    environment = dict(os.environ)
    if name == NEEDS_NO_GPU:  # it begins its own dry runs: the kernel must not look recorded
        environment.pop("MEMTRACE_OUTPUT", None)
    with tempfile.TemporaryDirectory() as work:
        client = nbclient.NotebookClient(book, timeout=LIMIT_SECONDS, kernel_name="python3", record_timing=False,
                                         resources={"metadata": {"path": work}})
        client.execute(env=environment)
    nbformat.validate(book)
    out.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, out / f"{name}.ipynb")


def main(out, *names):
    for name in names or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        try:
            run(name, pathlib.Path(out))
        except nbclient.exceptions.CellExecutionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
