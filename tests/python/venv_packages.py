"""An environment with packages of PyPI for tests that need them."""
import importlib.metadata
import os
import subprocess
import sys

SKIPPED = 77


def quiet(*words, **variables):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, **variables})


def commands(venv):
    """The command that makes the environment, and the first words of its pip. To copy pip into an environment
    takes longer than to use that of this Python, if it is new enough to install elsewhere."""
    try:
        version = tuple(map(int, importlib.metadata.version("pip").split(".")[:2]))
    except (importlib.metadata.PackageNotFoundError, ValueError):
        version = (0, 0)
    python, make = venv / "bin" / "python", [sys.executable, "-m", "venv"]
    if version < (22, 3):
        return [*make, venv], [python, "-m", "pip"]
    return [*make, "--without-pip", venv], [sys.executable, "-m", "pip", "--python", python]


def install(venv, packages):
    """Makes the environment if it is missing. Returns why the packages cannot be installed, or None."""
    python = venv / "bin" / "python"
    has_all = f"from importlib.metadata import version; [version(name) for name in {tuple(packages)}]"
    if python.exists() and quiet(python, "-c", has_all).returncode == 0:
        return None
    make, pip = commands(venv)
    for words in (make, [*pip, "install", "--quiet", "--no-compile", "--timeout=20", *packages]):
        done = quiet(*words)
        if done.returncode:
            return "".join((done.stderr or done.stdout).strip().splitlines()[-1:]) or "no message"
    return None
