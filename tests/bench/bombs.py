"""Inputs that are made to cost as much as possible: traces (of make_bomb), pickles, compressed
files, settings and tables. INPUTS is name -> (n, commands, make); make(folder, n) writes an input
and returns the words that stand for TRACE in a command."""
import pathlib
import random
import struct
import subprocess

READ = ("analyze", "json", "info")
EVERY = ("analyze", "json", "folder", "replay", "fit", "tune", "diff", "lines", "folded",
         "speedscope", "live", "dump", "info", "import", "icicle", "blocks")
LEAK = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "captures" / "leak.pickle.zst"

# n is the middle size: each input is made with n / 2, n and 2 n things.
TRACES = {
    "live_blocks": (100_000, EVERY), "churn": (100_000, EVERY), "flood": (40_000, EVERY),
    "sizes": (20_000, EVERY), "holes": (40_000, EVERY), "deep": (20_000, EVERY),
    "deep_one": (40_000, EVERY), "deep_leaves": (20_000, EVERY), "sites": (40_000, EVERY),
    "lines": (40_000, EVERY), "names_long": (400, EVERY), "phases": (20_000, EVERY),
    "phases_same": (20_000, EVERY), "nested": (20_000, EVERY), "nested_names": (20_000, EVERY),
    "ends": (40_000, EVERY), "steps": (10_000, EVERY), "steps_leak": (10_000, EVERY),
    "streams": (20_000, EVERY), "devices": (20_000, EVERY), "pools": (8_000, EVERY),
    "heaps": (8_000, EVERY), "threads": (20_000, EVERY), "segments": (20_000, EVERY),
    "mapped": (20_000, EVERY), "segments_given_back": (20_000, EVERY), "samples": (40_000, EVERY),
    "marks": (40_000, EVERY), "contexts": (40_000, READ), "reasons": (40_000, READ),
    "ooms": (20_000, EVERY), "failures": (20_000, EVERY), "flushes": (20_000, EVERY),
    "purposes": (40_000, EVERY),
}


def trace(kind):
    def make(maker, folder, n):
        path = folder / f"{kind}.trace.zst"
        subprocess.run([maker, kind, str(n), path], check=True)
        return [path]
    return make


# ---- pickles ----------------------------------------------------------------------------

def text(word):
    data = word.encode()
    return b"\x8c" + bytes([len(data)]) + data


def number(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def dictionary(**items):
    return b"}(" + b"".join(text(key) + value for key, value in items.items()) + b"u"


def entry(i, frames=b"]"):
    return dictionary(action=text("alloc"), addr=number(1 << 32 | i * 512), size=number(512),
                      stream=number(0), time_us=number(i), frames=frames)


def snapshot(entries, segments=b""):
    return (b"\x80\x04}(" + text("segments") + b"](" + segments + b"e" +
            text("device_traces") + b"](](" + entries + b"ee" + b"u.")


def frame(i):
    return dictionary(filename=text("a.py"), name=text("f"), line=number(i))


def entries(n):
    return snapshot(b"".join(entry(i) for i in range(n)))


def one_deep_stack(n):
    """All entries share one list of n frames."""
    first = entry(0, b"](" + b"".join(frame(i) for i in range(n)) + b"e\x94")
    return snapshot(first + b"".join(entry(i, b"h\x00") for i in range(1, n)))


def deep_stacks(n):
    """Each entry has a list of its own of the same 1,000 frames."""
    memo = b"".join(frame(i) + b"\x94" for i in range(200))
    get = b"".join(b"h" + bytes([i]) for i in range(200)) * 5
    first = entry(0, b"](" + memo + b"e")
    return snapshot(first + b"".join(entry(i, b"](" + get + b"e") for i in range(1, n // 100)))


def origins(n):
    """n frames that share one traceback of n lines."""
    trace = 'File "a.py", line 7, in f\n'.encode() * n
    first = b"\x8d" + struct.pack("<Q", len(trace)) + trace + b"\x94"
    return snapshot(b"".join(entry(i, b"](" + dictionary(
        filename=text("b.py"), name=text("g"), line=number(i),
        fx_original_trace=b"h\x00" if i else first) + b"e") for i in range(n)))


def blocks_of_a_segment(n):
    blocks = b"".join(dictionary(address=number(1 << 32 | i * 512), size=number(512),
                                 requested_size=number(1), state=text("active_allocated"),
                                 frames=b"]") for i in range(n))
    return snapshot(b"", dictionary(
        address=number(1 << 32), total_size=number(n * 512), stream=number(0),
        device=number(0), segment_type=text("large"), blocks=b"](" + blocks + b"e"))


def many_segments(n):
    return snapshot(b"", b"".join(dictionary(
        address=number(1 << 40 | i << 21), total_size=number(2 << 20), stream=number(0),
        device=number(0), segment_type=text("large"), blocks=b"]") for i in range(n)))


def chosen_texts(n):
    """Texts of 8 bytes that an unkeyed hash of this project once put into one slot."""
    odd, mask, out = 0x9E3779B97F4A7C15, (1 << 64) - 1, [b"\x80\x04("]
    inverse = pow(odd, -1, 1 << 64)

    def unmix(y):
        x = y
        for _ in range(3):
            x = y ^ (x >> 29)
        x = x * inverse & mask
        return x ^ (x >> 32)
    start = 8 * odd & mask
    for i in range(n):
        word = unmix(unmix((i + 1) << 26) * pow(0xD6E8FEB86659FD93, -1, 1 << 64) & mask) ^ start
        out.append(b"\x8c\x08" + struct.pack("<Q", word))
    return b"".join(out) + b"l."


PICKLES = {
    "entries": (20_000, EVERY, entries),
    "one_deep_stack": (20_000, READ, one_deep_stack),
    "deep_stacks": (40_000, READ, deep_stacks),
    "origins": (40_000, ("info",), origins),
    "blocks_of_a_segment": (20_000, READ, blocks_of_a_segment),
    "many_segments": (20_000, READ, many_segments),
    "chosen_texts": (40_000, ("info",), chosen_texts),
    "texts": (400_000, ("info",), lambda n: b"\x80\x04(" + b"".join(
        text(f"{i:x}") for i in range(n)) + b"l."),
    "lists": (1_000_000, ("info",), lambda n: b"\x80\x04(" + b"]" * n + b"l."),
    "marks_open": (1_000_000, ("info",), lambda n: b"\x80\x04" + b"(" * n),
    "nested_lists": (500_000, ("info",), lambda n: b"\x80\x04" + b"]" * n + b"a" * (n - 1) + b"."),
    "nested_tuples": (1_000_000, ("info",), lambda n: b"\x80\x04N" + b"\x85" * n + b"."),
    "memoized": (1_000_000, ("info",), lambda n: b"\x80\x04N" + b"\x94" * n + b"."),
    "appended": (200_000, ("info",), lambda n: b"\x80\x04]\x94" + b"Na" * n + b"."),
    "got_again": (500_000, ("info",), lambda n: b"\x80\x04]\x94(" + b"h\x00" * n + b"l."),
}


def pickle(make_bytes, compress=False):
    def make(_, folder, n):
        path = folder / "bomb.pickle"
        path.write_bytes(make_bytes(n))
        if not compress:
            return [path]
        packed = folder / "bomb.pickle.zst"
        subprocess.run(["zstd", "-q", "-f", "-19", path, "-o", packed], check=True)
        path.unlink()
        return [packed]
    return make


# ---- others -------------------------------------------------------------------------------

def settings(lines):
    def make(_, folder, n):
        path = folder / "budget.toml"
        path.write_text(lines(n))
        return [LEAK, "--budget", path]
    return make


def long_table(n):
    return "[max-peak." + "a" * n + "]\n" + "".join(f"k{i} = 1\n" for i in range(n // 60))


def baseline(_, folder, n):
    """More sites than any run has."""
    path = folder / "base.json"
    sites = ",".join(f'{{"site":"s{i}","bytes":1,"blocks":1}}' for i in range(n // 60))
    path.write_text('{"schema":"memtrace.baseline/1","devices":[{"device":0,"sites":[%s]}]}' % sites)
    return [LEAK, "--base", path]


def buffers(_, folder, n):
    path = folder / "buffers.csv"
    dice = random.Random(7)
    rows = [f"{i},{dice.randrange(n)},{2 * n},{dice.randrange(1, 1000)}" for i in range(n)]
    path.write_text("id,lower,upper,size\n" + "\n".join(rows) + "\n")
    return [path]


OTHERS = {
    "zstd_zeros": (256 << 20, ("info",), pickle(lambda n: b"\0" * n, True)),
    "zstd_lists": (4_000_000, ("info",), pickle(lambda n: b"\x80\x04(" + b"]" * n + b"l.", True)),
    "budget_long_table": (400_000, ("analyze",), settings(long_table)),
    "budget_keys": (400_000, ("analyze",), settings(
        lambda n: "".join(f"key-{i} = 1\n" for i in range(n // 12)))),
    "baseline_sites": (400_000, ("analyze",), baseline),
    "csv_buffers": (4_000, ("optimal",), buffers),
}

INPUTS = {name: (n, commands, trace(name)) for name, (n, commands) in TRACES.items()}
INPUTS.update({name: (n, commands, pickle(make)) for name, (n, commands, make) in PICKLES.items()})
INPUTS.update(OTHERS)

WORDS = {
    "analyze": ["analyze"], "json": ["analyze", "--json"], "folder": ["analyze", "-o", "{out}"],
    "replay": ["replay"], "fit": ["fit"], "tune": ["tune"], "lines": ["lines"],
    "folded": ["export", "folded"], "speedscope": ["export", "speedscope"], "live": ["live"],
    "dump": ["dump"], "info": ["info"], "import": ["import", "-o", "{out}"],
    "icicle": ["render", "-o", "{out}.svg", "icicle"], "blocks": ["render", "-o", "{out}.svg", "blocks"],
    "optimal": ["optimal"], "diff": ["diff"],
}


def command_words(name, trace_words, out):
    """The words after `memtrace`; TRACE comes twice in a diff."""
    words = [word.format(out=out) for word in WORDS[name]]
    if name == "diff":
        words += trace_words
    return [*words, *map(str, trace_words)]
