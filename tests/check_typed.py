#!/usr/bin/env python3
"""check_typed.py PROGRAM [CASE...]: what the first screen of `analyze` prints is accepted as input. For each snapshot
of fixtures/captures, types back every time, event, step, size and card, and compares the bytes of peaks."""
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from support.program import fast_program

CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "captures"
PEAK = re.compile(r"^Peak .*?(?=; reserved|$)", re.M)
INSTANTS = (re.compile(r" in (.*?),? at "), re.compile(r"at ([\d.,]+ [mµn]?s)\b"), re.compile(r"event [\d,]*\d"))
STEP = re.compile(r"step \d+(?:, (?:forward|backward|optimizer|loss))?")
SIZE = re.compile(r"(?<![\d.,])[\d,]+(?:\.\d+)? (?:B|KiB|MiB|GiB|TiB|GB)\b")
MOST_SIZES = 8  # of a screen


def ask(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True)


def live_bytes(program, path, instant):
    """{device: allocated bytes}; a text if the instant is refused."""
    done = ask(program, "live", path, "--at", instant, "--json")
    if done.returncode:
        return done.stderr
    return {device["device"]: device["bytes"]["allocated"] for device in json.loads(done.stdout)["devices"]}


def screens_of(text):
    """(device or None, text) of each device."""
    parts = re.split(r"^Device (\d+)\b", text, flags=re.M)
    return [(None, parts[0])] + [(int(parts[i]), parts[i + 1]) for i in range(1, len(parts), 2)]


def instants_of(screen):
    """Instants of the line Peak, with the lines joined that were wrapped."""
    peak = PEAK.search(re.sub(r"\n {8}", " ", screen))
    found = [pattern.search(peak[0]) for pattern in INSTANTS] if peak else []
    return [one[one.lastindex or 0] for one in found if one]


def check_limit(program, text):
    done = ask(program, "replay", "--policies", "--limit", text)
    return [] if done.returncode == 0 else [f"'{text}' is not a limit: {done.stderr.strip()}"]


def check(program, path, cards):
    done = ask(program, "analyze", "--quiet", path)
    complaints, typed = [], 0
    if done.returncode:
        return [f"{path.name}: status {done.returncode}: {done.stderr}"], 0
    peaks = live_bytes(program, path, "peak")
    screen = re.sub(r"\n {8}", " ", done.stdout)
    for instant in sorted({word for pattern in (STEP, *INSTANTS[1:]) for word in pattern.findall(screen)}):
        found, typed = live_bytes(program, path, instant), typed + 1
        complaints += [f"{path.name}: {found}"] if isinstance(found, str) else []
    for device, screen in screens_of(done.stdout):
        for instant in instants_of(screen):
            found, typed = live_bytes(program, path, instant), typed + 1
            devices = [device] if device is not None else list(peaks) if len(peaks) == 1 else []
            if isinstance(found, str) or any(found.get(one) != peaks[one] for one in devices):
                complaints.append(f"{path.name}: at {instant}: {found}, not {peaks}")
    sizes = [size for size in dict.fromkeys(SIZE.findall(done.stdout)) if not size.startswith("0")]
    words = sizes[:MOST_SIZES] + [card for card in cards if card in done.stdout]
    for word in words:
        complaints += [f"{path.name}: {one}" for one in check_limit(program, word)]
    return complaints, typed


def main():
    program = fast_program(sys.argv[1])
    cards = ask(program, "fit", "--completion-helper", "--limit", "").stdout.splitlines()
    complaints = [one for card in cards for one in check_limit(program, card)]
    paths = sorted(path for path in CAPTURES.glob("*.pickle.zst") if not sys.argv[2:] or path.name in sys.argv[2:])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: check(program, path, cards), paths))
    complaints += [one for result in results for one in result[0]]
    typed = sum(result[1] for result in results)
    print(f"{len(paths)} inputs, {typed} instants, {len(cards)} cards")
    for one in complaints:
        print(one)
    return 1 if complaints or typed < len(paths) else 0


if __name__ == "__main__":
    sys.exit(main())
