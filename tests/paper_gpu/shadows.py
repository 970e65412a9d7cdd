#!/usr/bin/env python3
"""The Python part of a dry run with a real PyTorch, without a GPU (README.md): what programs read from the device
(shadowed.py), and that PyTorch's allocator gets the same requests with it as without.

    shadows.py [--build BUILD] [--out FOLDER] SITE_PACKAGES [CASE...]

Exits with 1 if a case fails. Half a minute."""

import json, os, subprocess, sys

from paper import HERE, ROOT, arguments_of, python_of

# What a case answers; what it answers without shadows is not said where the program then fails or does not end.
CASES = {
    "values": [48, 45, [4, 5, 6, 7, 8, 9], [1, 4, 7], [0, 0, 0, 0, 0, 0, 6, 7, 8, 9], [1, 0, -1, -2, -3, -4, -5, -6, -7, -8],
               [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], 0, [0, 1, 2, 3], [2, 2, 2, 2, 2], [1, 0, 5, 0], True, [4, 3, 3], [1, 2, 2, 3, 3, 3], 2, [0, 2], True, [1, 6], False, [1, 2, 4, 8],
               [0, 1, 2, 3]],
    "numbers": [[0, 0], ["torch.complex64", "torch.complex128"], 3, 4, [1.0, 3.0, 9.0], [0, 1, 2, 3], [1, 1, 1]],
    "unknown": [True, False, True, False, True, True, True, 5, 0, False, False, False, [1, 1, 3]],
    "computed": [True, True, True, True, 2, 6.0],
    "forgotten": [True] * 8,
    "written": [[2, 3, 4], 1, True, True],
    "numbers_agree": [4, True],
    "printed": [0, 1],
    "subclasses": [[1, 2, 3], [7, 8, 9], 24, True, [1, 2, 3], [True, True, False]],
    "sharded": [[[2.0] * 4] * 4],
    "modes": [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 1]],
    "experts": [[2, 4], 14, [2, 4], 14, 1, 128, 128],
    "drawn": [[3990, 5167, 249, 9401], [-9247, -4253, -26438, 1452], 1, [0, 1, 2, 3, 4], 2, 0, ["selection"]],
    "waits": [True],
    "decided": [[[], ["condition"], ["condition"], ["condition"], ["condition"]], 0.5, 3, True, ["condition"]],
    "training": [65536.0, 39],
    "joined": [True],
    "checkpointed": [4 * 512, True],
    "elsewhere": [[0, 2, 4, 6, 8], 6, 22, 38],
    "proposals": [True, 600, True],
    "received": [False, True, 1],
    "conjugated": ["[(1-2j), (3+4j)]", "[-2.0, 4.0]", "[(2+1j), (-4+3j)]", "[(1-2j), (3+4j)]", "[False, False]", False],
    "doubted": [True, True, True, True, [1.0, 1.0, 1.0, 1.0]],
    "parts": [3, 3, 0, [0, 7, 7, 7, 1, 2], 3, 3, [5, 1, 1], [True, True]],
    "later": [3, False, False, True, 3, True, 1.0, -1.0],
    "unread": [[True] * 4, [True] * 6, True, True, True, True],
    "copied": [True, True, 3, True, True, True, True, True, 5],
    "overwritten": [True] * 8 + [0, True],
    "accumulated": [False] * 11 + [[1.0, 2.0, 3.0, 4.0], True],
    "stepped": [True] * 4 + [False] * 6,
    "eight_bits": [],
    "sparse": [True, True, True, [100, 8], [100], [], True, 300, 2],
    "filled_inside": [True, True, False],
    "frozen": [[2.0] * 4, [0.0] * 4, [1.0] * 4, True, True, True, 1],
    "equal": [True, False, False, True, False, 0, True, True, 2, True, True],
    "graphs": [3, 3, 0, 0, 0, 0, 3, 3, 3, 0, ["count"]],
    "graph_backward": [0] * 4 + [3] * 4,
    "ranks": [[[0, 1, 2], 0], [[0, 1, 2], 0], [[0, 1, 2], 0], [[0, 1, 2, 0, 1, 2], 2], [[0, 1, 2], 2], [[0, 2, 4], 2]],
    "compiled": [1, "inductor", False, True],
}
SAME_REQUESTS = ["training", "joined"]


def run(arguments, name, shadows):
    """{"answers": [...], "requests": [...]}, and notes; None and the program's last words if it failed."""
    folder = arguments.out / "shadows"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{name}.notes.*"):
        old.unlink()
    out = folder / f"{name}.{'with' if shadows else 'without'}.json"
    path = [str(ROOT / "simulate" / "python")] + arguments.site["PYTHONPATH"].split(os.pathsep)
    own = arguments.site | {"PYTHONPATH": os.pathsep.join(path), "MEMTRACE_DRY_RUN": "1" if shadows else "0",
                            "MEMTRACE_DRY_RUN_NOTES": str(folder / f"{name}.notes"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python_of(arguments.site_packages), str(HERE / "shadowed.py"), name, str(out)], env=os.environ | own,
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        return None, done.stderr.strip()[-300:]
    return json.loads(out.read_text()), [json.loads(p.read_text()) for p in folder.glob(f"{name}.notes.*")]


def complaints_of(arguments, name):
    found, notes = run(arguments, name, True)
    if found is None:
        return [f"did not end well: {notes}"]
    complaints = [f"failure of the shim: {note['failures']}" for note in notes if note["failures"]]
    if isinstance(found["answers"], str):
        print(f"{name}: {found['answers']}")
    elif found["answers"] != CASES[name]:
        complaints.append(f"answers {found['answers']}, not {CASES[name]}")
    if name in SAME_REQUESTS:
        plain, _ = run(arguments, name, False)
        if plain is None or plain["requests"] != found["requests"]:
            complaints.append(f"{len(found['requests'])} requests to the allocator, without shadows {plain and len(plain['requests'])}")
    return complaints


def main():
    arguments = arguments_of(__doc__, CASES)
    failed = []
    for name in arguments.cases or CASES:
        complaints = complaints_of(arguments, name)
        print(f"{name}: {'; '.join(complaints) or 'as it should be'}", flush=True)
        failed += [name] if complaints else []
    sys.exit(1 if failed else 0)


main()
