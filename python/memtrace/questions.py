"""The commands fit, tune, diff, lines and oom: one function and one document for each."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import program
from .analysis import answer, build, words_of
from .errors import Error

if TYPE_CHECKING:
    from .documents.diff import Diff
    from .documents.estimate_diff import EstimateDiff
    from .documents.fit import Fit
    from .documents.lines import Lines
    from .documents.oom import Oom
    from .documents.tune import Tune


def fit(path: str | os.PathLike[str], *, limit: int | str | None = None,
        policies: Sequence[str] = (), options: Sequence[str] = ()) -> Fit:
    """Returns the smallest memory limits that serve the requests of a trace: `memtrace fit`.

    `limit` is a limit to test, such as "24GiB", and `policies` are allocators to simulate, such as
    "pytorch:expandable_segments:True". A limit that is too small does not raise: see the document."""
    from .documents.fit import Fit

    words = ["fit", program.as_argument(path), "--all", *words_of(limit=limit),
             *[f"--policy={policy}" for policy in policies], *options]
    return answer(Fit.from_json, words)


def tune(path: str | os.PathLike[str], *, limit: int | str | None = None,
         options: Sequence[str] = ()) -> Tune:
    """Returns the settings of PyTorch's allocator that need the least memory: `memtrace tune`."""
    from .documents.tune import Tune

    words = ["tune", program.as_argument(path), *words_of(limit=limit), *options]
    return answer(Tune.from_json, words)


def diff(base: str | os.PathLike[str], new: str | os.PathLike[str], *,
         at: str = "peak", options: Sequence[str] = ()) -> Diff:
    """Returns what differs between two runs at an instant: `memtrace diff`."""
    from .documents.diff import Diff

    words = ["diff", program.as_argument(base), program.as_argument(new), f"--at={at}", "--all",
             *options]
    return answer(Diff.from_json, words)


def estimate_diff(path: str | os.PathLike[str],
                  estimate: str | os.PathLike[str] | Mapping[str, Any], *,
                  at: str | None = None, options: Sequence[str] = ()) -> EstimateDiff:
    """Compares a run with an estimate: `memtrace diff --estimate`.

    `estimate` is a file (memtrace.estimate/1), or its members, such as {"roles": {"parameters":
    1 << 30}}. `at` is the instant, if it is not the peak."""
    import json

    from .documents.estimate_diff import EstimateDiff

    text = None
    if isinstance(estimate, Mapping):
        text = json.dumps({"schema": "memtrace.estimate/1", **estimate})
        estimate = "/dev/stdin"
    words = ["diff", program.as_argument(path), f"--estimate={os.fspath(estimate)}", "--all",
             *words_of(at=at), *options]
    return answer(EstimateDiff.from_json, words, text)


def lines(path: str | os.PathLike[str], *, functions: Sequence[str] = (), source: bool = False,
          all_functions: bool = False, options: Sequence[str] = ()) -> Lines:
    """Returns the memory of each line of code: `memtrace lines`.

    `functions` are names. Without them, the answer has the functions of the model and of your own
    files, or all functions in the stacks with `all_functions`. `source` adds the text of lines in
    files below the current folder."""
    from .documents.lines import Lines

    words = ["lines", program.as_argument(path),
             *(["--all"] if functions or all_functions else []),
             *[f"--function={function}" for function in functions],
             *(["--source"] if source else []), *options]
    return answer(Lines.from_json, words)


def oom(text: str) -> Oom:
    """Explains the last error message about memory in a text, such as str(error) or a log, without
    a trace: `memtrace oom`. Raises Error if there is none."""
    import json

    from .documents.oom import Oom

    output = program.run(["oom", "-", "--json", "--quiet"], text=text)
    try:
        return build(Oom.from_json, json.loads(output.text))
    except ValueError:
        raise Error("memtrace oom printed no JSON document") from None
