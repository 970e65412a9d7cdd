"""Dry runs of scripts, commands and functions: `memtrace dry-run`."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Union

from . import collector, program
from .analysis import build, words_of
from .errors import Error
from .function_script import IMPORTED_MAIN, source_of_call

if TYPE_CHECKING:
    from .documents.dry_run import DryRun

_SEE = "memtrace: see "  # the line after an error about options
Target = Union[program.Path, Sequence[str], Callable[..., Any]]


def dry_run(target: Target, *arguments: Any, device: str | None = None, devices: int | None = None,
            limit: int | str | None = None, output: str | os.PathLike[str] | None = None,
            max_peak: Mapping[str, int | str] | None = None, timeout: str | None = None,
            quiet: bool = False, options: Sequence[str] = (), **named: Any) -> DryRun:
    """Runs a program on a simulated GPU and returns how much memory it needs: `memtrace dry-run`.

    `target` is the path of a Python script, a command as a list of words, or a function. `arguments`
    are the words after the script, or the arguments of the function (`named` also). A function runs
    in another process: it must not use objects of this process other than modules, functions,
    classes and literals.

    `device`, `devices`, `limit`, `max_peak` and `timeout` are the options of the command with these
    names; `output` keeps the traces. What the program prints goes to sys.stderr, unless `quiet`.
    Raises Error if the program could not run; if the program itself failed, `exit_status` of the
    answer is not 0."""
    from .documents.dry_run import DryRun

    if collector.is_recorded_already():
        raise Error(_nested())
    words = words_of(device=device, devices=devices, limit=limit, timeout=timeout,
                     max_peak=max_peak)
    with tempfile.TemporaryDirectory(prefix="memtrace-") as folder:
        kept = os.path.join(folder, "traces", "") if output is None else program.as_argument(output)
        words = ["dry-run", "--json", *words, "-o", kept, *options, "--"]
        words += _command(target, arguments, named, folder)
        return build(DryRun.from_json, _run(words, folder, quiet))


def _nested() -> str:
    if IMPORTED_MAIN in sys.modules:
        return ("the script calls dry_run also when it is imported: call it below "
                "'if __name__ == \"__main__\":'")
    return "this process is itself in a dry run or a recording"


def _command(target: Target, arguments: Sequence[Any], named: Mapping[str, Any],
             folder: str) -> list[str]:
    if callable(target):
        script = os.path.join(folder, "function.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(source_of_call(target, arguments, named))
        return [sys.executable, script]
    if named:
        raise Error(f"'{next(iter(named))}' is neither an option of dry_run nor an argument of a "
                    f"function")
    if isinstance(target, (str, bytes, os.PathLike)):
        return [sys.executable, program.as_argument(target), *map(str, arguments)]
    return [*map(str, target), *map(str, arguments)]


def _run(words: Sequence[str], folder: str, quiet: bool) -> Any:
    """Runs the command, passes on what the program prints, and returns the document."""
    answer = os.path.join(folder, "answer.json")
    last = ""
    with open(answer, "wb") as file, subprocess.Popen(
        [program.find(), *words], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                text = line.decode("utf-8", "replace")
                if text.startswith("memtrace: ") and not text.startswith(_SEE):
                    last = text[len("memtrace: "):].strip()
                if not quiet:
                    sys.stderr.write(text)
        except BaseException:  # an interrupt: waiting for the program could take hours
            process.terminate()
            raise
    try:
        with open(answer, encoding="utf-8") as done:
            return json.load(done)
    except ValueError:
        raise Error(last or f"memtrace dry-run failed with status {process.returncode}",
                    process.returncode) from None
