#!/usr/bin/env python3
"""check_png.py PROGRAM [--update]: PNGs look as the committed ones, of which there are two: what
charts draw is in the display lists of tests/golden.

Rasterisers differ in edges from version to version: at most one pixel in 200 may differ, and none
by more than 48 of 255. The bytes of a machine are the same every time, whatever locale, time zone
and fonts it has. Exit 77: built without PNG."""
import os
import pathlib
import subprocess
import sys
import tempfile

from png_file import read_png

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "png"
SIZE = "600x400"
PICTURES = [("timeline", "oom_adam"), ("icicle", "seq2seq"), ("flamechart", "seq2seq"), ("blocks", "seq2seq"),
            ("address", "gpt_split64"),
            ("trend", "leakval")]
COMPARED = {"timeline", "address"}  # hatches, halos, turned text; cells, tints
MAX_PIXELS, MAX_LEVELS = 1 / 200, 48
ELSEWHERE = {"LC_ALL": "de_DE.UTF-8", "LANG": "ja_JP.UTF-8", "TZ": "Asia/Tokyo", "FONTCONFIG_FILE": "/dev/null",
             "HOME": "/nowhere", "TERM": "xterm-256color", "COLUMNS": "47"}


def draw(program, chart, capture, path, **more):
    """Whether there is a picture: not without PNG."""
    done = subprocess.run([program, "render", chart, ROOT / "fixtures" / "captures" / f"{capture}.pickle.zst", "-q",
                           "-o", path, "--size", SIZE], env={**os.environ, **more}, capture_output=True, text=True,
                          check=False)
    if "without cairo" in done.stderr:
        sys.exit(77)
    assert done.returncode == 0, f"{chart} of {capture}: {done.stderr}"


def differences(found, wanted):
    """(share of the pixels that differ, largest difference of a channel)"""
    width, height, rows = found
    pixels = most = 0
    for row, other in zip(rows, wanted[2]):
        if row == other:
            continue
        for x in range(0, 3 * width, 3):
            if row[x:x + 3] != other[x:x + 3]:
                pixels += 1
                most = max(most, *(abs(row[x + i] - other[x + i]) for i in range(3)))
    return pixels / (width * height), most


def fault(program, chart, capture, folder, update):
    here, there = folder / "here.png", folder / "there.png"
    golden = GOLDEN / f"{chart}_{capture}.png"
    draw(program, chart, capture, here)
    draw(program, chart, capture, there, **ELSEWHERE)
    if here.read_bytes() != there.read_bytes():
        return "other bytes with another locale, time zone, home and fonts"
    if chart not in COMPARED:
        return None
    if update:
        golden.write_bytes(here.read_bytes())
    if not golden.exists():
        return "there is no golden picture: --update makes it"
    found, wanted = read_png(here), read_png(golden)
    if found[:2] != wanted[:2]:
        return f"{found[0]} x {found[1]} pixels, wanted {wanted[0]} x {wanted[1]}"
    share, most = differences(found, wanted)
    if share > MAX_PIXELS or most > MAX_LEVELS:
        return f"{share:.2%} of the pixels differ, by at most {most}: look at it, then --update"
    return None


def main():
    program, update, failed = str(pathlib.Path(sys.argv[1]).resolve()), "--update" in sys.argv, 0
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for chart, capture in PICTURES:
            wrong = fault(program, chart, capture, pathlib.Path(folder), update)
            failed += wrong is not None
            if wrong:
                print(f"{chart} of {capture}: {wrong}")
    print(f"{len(PICTURES)} pictures, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
