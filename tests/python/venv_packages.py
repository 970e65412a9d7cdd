"""An environment with packages of PyPI for tests that need them."""
import os
import subprocess
import sys

SKIPPED = 77


def quiet(*words, **variables):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, **variables})


def install(venv, packages):
    """Makes the environment if it is missing. Returns why the packages cannot be installed, or None."""
    python = venv / "bin" / "python"
    has_all = f"from importlib.metadata import version; [version(name) for name in {tuple(packages)}]"
    if python.exists() and quiet(python, "-c", has_all).returncode == 0:
        return None
    for words in ([sys.executable, "-m", "venv", venv],
                  [python, "-m", "pip", "install", "--quiet", "--no-compile", "--timeout=20", *packages]):
        done = quiet(*words)
        if done.returncode:
            return "".join((done.stderr or done.stdout).strip().splitlines()[-1:]) or "no message"
    return None
