#!/usr/bin/env python3
"""python_libraries.py: an environment with the libraries that the Python package works with: IPython, the kernel of
Jupyter, pytest, pandas, Transformers, Lightning and Accelerate. Prints its Python.

It is made once, beside the PyTorch of check_real_wheel.py, which it uses. tests/python/libraries.txt has the versions
of all packages; a change of this file makes a new environment."""
import hashlib
import pathlib
import sys

import check_real_wheel as wheel

LIST = pathlib.Path(__file__).resolve().parent.parent / "python" / "libraries.txt"
NEEDED_MIB = 768  # the wheels and what is in them, 480 MiB, and room to spare


def python_with_libraries():
    """The Python of the environment. Raises Skip if the packages cannot be had."""
    torch = wheel.python_with_torch()
    wheel.check_is_for_cuda(torch)
    (packages_of_torch,) = torch.parent.parent.glob("lib/python*/site-packages")

    def add_torch(folder):
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "torch.pth").write_text(f"{packages_of_torch}\n", encoding="utf-8")

    name = f"libraries-{hashlib.sha256(LIST.read_bytes()).hexdigest()[:12]}"
    return wheel.environment(name, NEEDED_MIB, ("-r", LIST), add_torch)


if __name__ == "__main__":
    try:
        print(python_with_libraries())
    except wheel.Skip as reason:
        sys.exit(f"skipped: {reason}")
