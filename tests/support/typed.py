"""What the first screen of `analyze` prints is accepted as input: types back every time, event, step, size and card of a
snapshot, and compares the bytes of peaks."""
import json
import re
import subprocess

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


def check(program, path, text, cards):
    """What is wrong with TEXT, which `analyze` printed of PATH."""
    complaints, typed = [], 0
    peaks = live_bytes(program, path, "peak")
    screen = re.sub(r"\n {8}", " ", text)
    for instant in sorted({word for pattern in (STEP, *INSTANTS[1:]) for word in pattern.findall(screen)}):
        found, typed = live_bytes(program, path, instant), typed + 1
        complaints += [f"{path.name}: {found}"] if isinstance(found, str) else []
    for device, screen in screens_of(text):
        for instant in instants_of(screen):
            found, typed = live_bytes(program, path, instant), typed + 1
            devices = [device] if device is not None else list(peaks) if len(peaks) == 1 else []
            if isinstance(found, str) or any(found.get(one) != peaks[one] for one in devices):
                complaints.append(f"{path.name}: at {instant}: {found}, not {peaks}")
    sizes = [size for size in dict.fromkeys(SIZE.findall(text)) if not size.startswith("0")]
    words = sizes[:MOST_SIZES] + [card for card in cards if card in text]
    for word in words:
        complaints += [f"{path.name}: {one}" for one in check_limit(program, word)]
    return complaints if typed else [*complaints, f"{path.name}: no instant"]


def cards(program):
    return ask(program, "fit", "--completion-helper", "--limit", "").stdout.splitlines()


def refused_limits(program, names):
    return [one for name in names for one in check_limit(program, name)]
