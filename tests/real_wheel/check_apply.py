#!/usr/bin/env python3
"""check_apply.py BUILD: what `memtrace dry-run --apply CHANGE` prints to paste does what it did on paper: small_gpt.py
with the patch in it, in a dry run without --apply, has the same peaks, to the byte. check_real_wheel.py has what it
needs without a change.

Uses the environment of check_real_wheel.py; exits with 77 if it cannot be had."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import check_real_wheel

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from pasted import pasted, variables  # noqa: E402
from program import fast_program  # noqa: E402

# Every change once: each line costs two dry runs. The first of a line lowers the allocated peak, which the changes of the
# optimizer and of segments do not.
CHANGES = ("offload=Block+expandable", "save_on_cpu+fused=True", "checkpoint=Block+chunked-loss=4+foreach=False")


def counters(build, python, program, work, changes=(), environment=()):
    """What PyTorch counted in a dry run, and the answer."""
    path = pathlib.Path(work, "counters.json")
    path.unlink(missing_ok=True)
    options = [word for change in changes for word in ("--apply", change)]
    done = check_real_wheel.run_within(check_real_wheel.MAX_RUN_SECONDS, [
        fast_program(build / "memtrace"), "dry-run", "-q", "--json", "-o", pathlib.Path(work, "t.trace.zst"), *options, "--", python, program, path],
        cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **dict(environment)})
    if done.returncode != 0:
        sys.exit(f"{program} {changes}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(path.read_text(encoding="utf-8"))["counters"], json.loads(done.stdout)


def main(build):
    python = check_real_wheel.python_with_torch()
    check_real_wheel.check_is_for_cuda(python)
    program, wrong = HERE / "small_gpt.py", []
    with tempfile.TemporaryDirectory() as work:
        plain = json.loads((HERE / "h200.json").read_text(encoding="utf-8"))["counters"]
        for change in CHANGES:
            paper, answer = counters(build, python, program, work, [change])
            pieces = [piece for told in answer["applied"] for piece in told["patch"]]
            patched = pathlib.Path(work, "patched.py")
            patched.write_text(pasted(program.read_text(encoding="utf-8"), pieces), encoding="utf-8")
            real, _ = counters(build, python, patched, work, environment=variables(pieces))
            if paper != real:
                wrong.append(f"{change}: on paper {paper}, pasted {real}")
            peak = "allocated_bytes.all.peak"
            if paper[peak] >= plain[peak]:
                wrong.append(f"{change}: the peak stays at {paper[peak]}")
    print("apply:", "\n".join(wrong) or f"{len(CHANGES)} patches need on a device what they needed on paper")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
    except check_real_wheel.Skip as reason:
        print(f"apply: skipped: {reason}")
        sys.exit(77)
