#!/usr/bin/env python3
"""check_rows.py PROGRAM FIXTURES [SEED]: rows of events (CSV, JSON Lines, logs of RMM) against a slow reader: every
event, the curve of live bytes and its peak; captures that become rows and are read again; hooks that write rows."""
import csv
import io
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import types

from support.program import fast_program, output

PROGRAM = fast_program(sys.argv[1])
FIXTURES = pathlib.Path(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
ROUND_TRIPS = ["gpt_ring", "twogpu", "churn_exp_cap", "graph", "streams_cap"]
TEXTS = ["f", "a b", "x;y", "\\", "(p)", " (q", 'say "hi"', "two\nlines", "comma,tab\t", "ünïcode", "f (x:1)", "::", "a\\;b"]


def fail(what, *details):
    sys.exit(f"seed {SEED}: {what}: " + " / ".join(str(detail)[:300] for detail in details))


def expect(what, got, wanted):
    if got != wanted:
        fail(what, f"got {got!r}", f"wanted {wanted!r}")


def dump(path):
    lines = output(PROGRAM, "dump", "--json", "--stacks", path).decode().splitlines()
    return [event for event in map(json.loads, lines) if event["kind"] != "end"]


def counters(path, folder, policy="recorded"):
    file = folder / "counters.csv"
    output(PROGRAM, "replay", path, "-p", policy, "--counters", file, "--force")
    with open(file, encoding="utf-8") as lines:
        return [{key: int(value) for key, value in row.items()} for row in csv.DictReader(lines)]


# ---- texts of stacks


def escape(text, more=""):
    return "".join("\\" + c if c in "\\;(" + more else c for c in text)


def frame_text(function, file, line):
    """As memtrace prints a frame."""
    return function if file is None else f"{function} ({file}:{line})"


def stack_cell(frames):
    """Outermost frame first."""
    return ";".join(escape(function) if file is None else f"{escape(function)} ({escape(file)}:{line})"
                    for function, file, line in frames)


# ---- random rows


def random_events(dice):
    """What rows say, as dictionaries with the names of `memtrace dump`."""
    live, events, t_ns = {}, [], dice.randrange(1 << 60)
    stacks = [[(dice.choice(TEXTS), dice.choice([None, *TEXTS]), dice.randrange(1 << 20)) for _ in range(dice.randrange(1, 5))]
              for _ in range(6)]
    for _ in range(dice.randrange(1, 400)):
        t_ns += dice.choice([0, 1, 1000, 10 ** 9])
        event = {"t_ns": t_ns, "device": dice.choice([0, 0, 3]), "stream": dice.choice([0, 1, 0x7f0012345678]), "size": 0,
                 "aux": 0, "addr": 0, "thread": dice.randrange(3), "name": None, "frames": [], "pool": [0, dice.choice([0, 2])]}
        kind = dice.random()
        if live and kind < 0.45:
            device, addr = dice.choice(list(live))
            del live[device, addr]
            event.update(kind="free_requested", device=device, addr=addr)
        elif kind < 0.9:
            addr = dice.randrange(1, 1 << 47)
            if (event["device"], addr) in live:
                continue
            event.update(kind="alloc", addr=addr, size=dice.choice([1, 512, dice.randrange(1, 1 << 34)]),
                         frames=dice.choice(stacks))
            event["aux"] = event["size"] + 511 & ~511
            live[event["device"], addr] = event["aux"]
        else:
            event.update(kind=dice.choice(["mark", "phase_push", "phase_pop", "empty_cache"]), name=dice.choice(TEXTS))
        events.append(event)
    return events


def number(dice, value):
    return dice.choice([str(value), hex(value), f"{value}.0"])


def time_cells(dice, t_ns, unit):
    digits = {"t_ns": 0, "t_us": 3, "t_s": 9}[unit]
    text = str(t_ns).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}" if digits else text


def write_csv(dice, events, path):
    unit = dice.choice(["t_ns", "t_us", "t_s"])
    columns = ["seq", "op", "addr", "bytes", "block_bytes", "stream", "device", "pool", "thread", "name", "stack", "heap", "unknown",
               unit]
    dice.shuffle(columns)
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=dice.choice(",\t"), lineterminator=dice.choice(["\n", "\r\n"]),
                        quoting=dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    writer.writerow(columns)
    for seq, event in enumerate(events):
        cells = {"seq": seq, "op": "free" if event["kind"] == "free_requested" and dice.random() < 0.5 else event["kind"],
                 "addr": number(dice, event["addr"]), "bytes": number(dice, event["size"]),
                 "block_bytes": number(dice, event["aux"]), "stream": number(dice, event["stream"]),
                 "device": event["device"], "pool": dice.choice(["{0}:{1}", "{1}"]).format(*event["pool"]),
                 "thread": event["thread"], "name": event["name"], "stack": stack_cell(event["frames"]), "heap": "mine",
                 "unknown": dice.choice(TEXTS), unit: time_cells(dice, event["t_ns"], unit)}
        writer.writerow([cells[column] for column in columns])
    bom = dice.choice([b"", b"\xef\xbb\xbf"])
    path.write_bytes(bom + text.getvalue().encode())


def write_json(dice, events, path):
    rows = []
    for seq, event in enumerate(events):
        row = {"seq": seq, "op": event["kind"], "addr": dice.choice([event["addr"], hex(event["addr"])]), "bytes": event["size"],
               "block_bytes": event["aux"], "stream": event["stream"], "device": event["device"], "pool": event["pool"],
               "thread": event["thread"], "name": event["name"], "heap": "mine", "t_ns": event["t_ns"],
               "stack": dice.choice([stack_cell(event["frames"]), None])}
        if row["stack"] is None:
            plain = [frame_text(*frame) for frame in event["frames"]]
            row.update(dice.choice([{"stack": plain}, {"frames": plain[::-1]}]))
        items = list(row.items())
        dice.shuffle(items)
        rows.append(json.dumps(dict(items), ensure_ascii=dice.random() < 0.5))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def check_curve(events, rows):
    """The bytes that are live after each event of memory, and their peak, to the byte."""
    live, sums, wanted = {}, {}, []
    for seq, event in enumerate(events):
        key = event["device"], event["addr"]
        if event["kind"] == "alloc":
            live[key] = event["size"], event["aux"]
        gone = live.pop(key, (0, 0)) if event["kind"] == "free_requested" else None
        requested, allocated = sums.get(event["device"], (0, 0))
        if event["kind"] == "alloc":
            requested, allocated = requested + event["size"], allocated + event["aux"]
        elif gone:
            requested, allocated = requested - gone[0], allocated - gone[1]
        else:
            continue
        sums[event["device"]] = requested, allocated
        wanted.append((seq, event["device"], requested, allocated))
    expect("the curve", [(row["event"], row["device"], row["requested"], row["allocated"]) for row in rows], wanted)


def check_random(dice, folder, write, name):
    events = random_events(dice)
    path = folder / name
    write(dice, events, path)
    got = dump(path)
    expect(f"{name}: events", len(got), len(events))
    for event, wanted in zip(got, events):
        wanted = dict(wanted, frames=[frame_text(*frame) for frame in reversed(wanted["frames"])])
        expect(f"{name}: event {event['seq']}", {key: event[key] for key in wanted}, wanted)
    check_curve(events, counters(path, folder))


# ---- from a trace to rows and back


def plain(events):
    return [{key: value for key, value in event.items() if key != "stack"} for event in events]


def split_frame(text):
    head, separator, tail = text.rpartition(" (")
    file, colon, line = tail[:-1].rpartition(":")
    if separator and colon and tail.endswith(")") and line.isdigit():
        return head, file, int(line)
    return text, None, 0


def check_round_trip(capture, folder):
    trace = FIXTURES / f"captures/{capture}.pickle.zst"
    events = dump(trace)
    lines = folder / "rows.jsonl"
    lines.write_bytes(output(PROGRAM, "dump", "--json", "--stacks", trace))
    expect(f"{capture}: JSON Lines", plain(dump(lines)), plain(events))
    table = folder / "rows.csv"
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["seq", "op", "addr", "bytes", "block_bytes", "t_ns", "stream", "device", "pool",
                                       "heap", "thread", "name", "stack", "flags"], extrasaction="ignore")
        writer.writeheader()
        for event in events:
            writer.writerow({**event, "op": event["kind"], "bytes": event["size"], "block_bytes": event["aux"],
                             "pool": ":".join(map(str, event["pool"])), "flags": "|".join(event["flags"]),
                             "stack": stack_cell(map(split_frame, reversed(event["frames"])))})
    again = folder / "rows.trace"
    output(PROGRAM, "import", table, "-o", again, "--force")
    expect(f"{capture}: CSV", plain(dump(again)), plain(events))


# ---- other programs


def check_rmm(dice, folder):
    """A log over two midnights: the curve, and policies of RMM."""
    path, live, rows, us = folder / "rmm.csv", {}, [], (86400 - 30) * 10 ** 6
    wanted, used, peak, start = [], 0, 0, us
    for i in range(500):
        us += dice.randrange(500 * 10 ** 6)
        clock = us // 10 ** 6 % 86400
        time = f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}.{us % 10 ** 6:06}"
        stream = dice.choice(["0", "0x2", "0x55aa55aa5500"])
        if live and dice.random() < 0.5:
            addr, size = live.popitem()
            used -= size
            rows.append(f"77,{time},free,{addr:#x},{size},{stream}")
        elif i % 50 == 7:
            rows.append(f"77,{time},allocate failure,(nil),{1 << 40},{stream}")
            rows.append(f"77,{time},allocate,(nil),0,{stream}")
        else:
            addr, size = 0x7f0000000000 + i * 4096, dice.randrange(1, 4096)
            live[addr] = size
            used += size
            rows.append(f"{dice.choice([77, 78])},{time},allocate,{addr:#x},{size},{stream}")
        wanted.append(((us - start), used))
        peak = max(peak, used)
    path.write_text("Thread,Time,Action,Pointer,Size,Stream\n" + "\n".join(rows) + "\n", encoding="utf-8")
    events = dump(path)
    expect("rmm: events", len(events), 500)
    first = events[0]["t_ns"] - wanted[0][0] * 1000
    expect("rmm: times", [(event["t_ns"] - first) // 1000 for event in events], [us for us, _ in wanted])
    expect("rmm: curve", [row["requested"] for row in counters(path, folder)], [used for _, used in wanted])
    answer = json.loads(output(PROGRAM, "replay", path, "--json", "--limit", "1GiB",
                               *"-p rmm-pool -p rmm-arena -p cuda-async".split()))
    peaks = [row["requested_peak_bytes"] for row in answer["policies"]]
    expect("rmm: peaks", peaks, [peak] * 3)


def check_ascend(folder):
    path = folder / "memscope.csv"
    path.write_text(
        "ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr\n"
        '1,MALLOC,HAL,N/A,3,1,9,0,0x0000000000003039,"{allocation_id:1,addr:0x3039,size:4096}"\n'
        '2,MALLOC,PTA,N/A,4,1,9,0,12345,"{allocation_id:2,size:10,owner:PTA@weight,total:10}"\n'
        '3,MALLOC,HOST,N/A,4,1,9,host,12345,"{size:7}"\n'
        '4,ACCESS,READ,aten.add,13,1,9,0,12345,"{size:7}"\n'
        '5,MALLOC,HOST_PINNED,N/A,14,1,9,host,777,"{addr:777,size:100,pinned:1}"\n'
        '6,FREE,PTA,N/A,54,1,9,0,12345,"{allocation_id:2,size:10}"\n', encoding="utf-8")
    expect("msMemScope", [(event["kind"], event["heap"], event["addr"], event["size"], event["name"]) for event in dump(path)],
           [("alloc", "driver", 12345, 4096, None), ("alloc", "PTA", 12345, 10, "PTA@weight"),
            ("alloc", "driver:host", 777, 100, None), ("free_requested", "PTA", 12345, 10, None)])
    unused = json.loads(output(PROGRAM, "info", "--json", path))["header"]["not_used"]
    if "2 rows other than MALLOC or FREE" not in unused:
        fail("msMemScope: rows that are left out", unused)


def check_answers(folder):
    """Without a policy of the user's choice, no allocator's rules are applied to rows."""
    path = folder / "pool.csv"
    path.write_text("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.1,allocate,0x100000,281474976710656,0\n"
                    "1,10:00:00.2,free,0x100000,281474976710656,0\n1,10:00:00.3,allocate failure,(nil),512,0\n",
                    encoding="utf-8")
    screen, everything = (" ".join(output(PROGRAM, "analyze", *more, path).decode().split()) for more in ([], ["--all"]))
    for text in "RUN OUT OF MEMORY", "no OOM", "no request was refused", "do not reproduce", "Reserved peak":
        if text in screen + everything:
            fail("rows: analyze", text, screen)
    for text in "Card at least 256 TiB", "1 request was refused", "the file does not name the allocator's rules":
        if text not in screen:
            fail("rows: analyze lacks", text, screen)
    answer = json.loads(output(PROGRAM, "replay", "--json", path))
    expect("rows: the policy", [row["policy"] for row in answer["policies"]], ["recorded"])
    fit = subprocess.run([PROGRAM, "fit", path], capture_output=True, text=True, check=False)
    if fit.returncode == 0 or "does not name the rules of its allocator: choose some with -p" not in fit.stderr:
        fail("rows: fit", fit.stdout, fit.stderr)
    path.write_text("op,addr,bytes,flags\nalloc,0x100000,1000,initial\n", encoding="utf-8")
    answer = json.loads(output(PROGRAM, "replay", "--json", path))
    expect("an initial block", [row["requested_peak_bytes"] for row in answer["policies"]], [1000])
    if "1,000 B" not in output(PROGRAM, "live", path).decode():
        fail("an initial block: live", output(PROGRAM, "live", path))


def check_chosen_policy(folder):
    """The user may choose PyTorch's rules for rows of a PyTorch trace."""
    trace, path = FIXTURES / "captures/gpt_ring.pickle.zst", folder / "chosen.jsonl"
    path.write_bytes(output(PROGRAM, "dump", "--json", "--stacks", trace))
    peaks = [json.loads(output(PROGRAM, "replay", "--json", "-p", "pytorch", file))["policies"][0]["allocated_peak_bytes"]
             for file in (trace, path)]
    expect("rows of PyTorch: its rules", peaks[1], peaks[0])


def check_cupy_log(folder):
    """6,000 requests of CuPy's own pool, with the bytes in use after each."""
    rows = output("zstd", "-dcq", FIXTURES / "captures/cupy_pool.csv.zst").decode().splitlines()
    path = folder / "cupy.csv"
    words = {"a": "alloc", "f": "free"}
    path.write_text("op,addr,bytes,block_bytes,used,total\n" +
                    "".join(f"{words[row[0]]}{row[1:]}\n" for row in rows), encoding="utf-8")
    expect("CuPy: bytes in use", [row["allocated"] for row in counters(path, folder)],
           [int(row.split(",")[4]) for row in rows])
    answer = json.loads(output(PROGRAM, "replay", "--json", path, "-p", "cupy"))
    expect("CuPy: its policy", answer["policies"][0]["allocated_peak_bytes"],
           max(int(row.split(",")[4]) for row in rows))


# ---- hooks


def run_hook(name, modules):
    """Runs a file of the folder `rows` with imitated modules; returns its names."""
    source = (pathlib.Path(__file__).parent / "rows" / name).read_text(encoding="utf-8")
    hidden = {key: sys.modules.get(key) for key in modules}
    sys.modules.update(modules)
    names = {"__name__": name}
    exec(compile(source, name, "exec"), names)  # pylint: disable=exec-used
    for key, value in hidden.items():
        del sys.modules[key]
        if value:
            sys.modules[key] = value
    return names


def check_hook_file(name, path, wanted):
    expect(name, [(event["kind"], event["addr"], event["size"], event["device"]) for event in dump(path)], wanted)


def check_cupy_hook(folder):
    cuda = types.SimpleNamespace(MemoryHook=object, get_current_stream=lambda: types.SimpleNamespace(ptr=7))
    names = run_hook("cupy_rows.py", {"cupy": types.SimpleNamespace(cuda=cuda)})
    hook = names["Rows"](folder / "hook.csv")
    hook.malloc_postprocess(device_id=1, size=10, mem_size=512, mem_ptr=4096, pmem_id=1)
    hook.malloc_postprocess(device_id=1, size=99, mem_size=512, mem_ptr=0, pmem_id=0)
    hook.free_preprocess(device_id=1, mem_size=512, mem_ptr=4096, pmem_id=1)
    hook.file.close()
    check_hook_file("the hook of CuPy", folder / "hook.csv",
                    [("alloc", 4096, 10, 1), ("alloc_failed", 0, 99, 1), ("free_requested", 4096, 0, 1)])


class NumbaManager:
    """Numba's own manager, as far as the hook uses it."""
    context = types.SimpleNamespace(device=types.SimpleNamespace(id=2))

    def __init__(self):
        self.allocations = {}

    def initialize(self):
        pass

    def memalloc(self, size):
        self.allocations[size] = type("Memory", (), {})()
        return types.SimpleNamespace(device_pointer_value=size * 512)


def check_numba_hook(folder):
    driver = types.SimpleNamespace(NumbaCUDAMemoryManager=NumbaManager)
    names = run_hook("numba_rows.py", {"numba": types.SimpleNamespace(), "numba.cuda": types.SimpleNamespace(),
                                       "numba.cuda.cudadrv": types.SimpleNamespace(), "numba.cuda.cudadrv.driver": driver})
    with open(folder / "hook.csv", "w", encoding="utf-8") as file:
        names["Rows"].file = file
        manager = names["Rows"]()
        manager.initialize()
        manager.memalloc(8)
        manager.memalloc(9)
        del manager.allocations[8]
    check_hook_file("the hook of Numba", folder / "hook.csv",
                    [("alloc", 4096, 8, 2), ("alloc", 4608, 9, 2), ("free_requested", 4096, 0, 2)])


def check_cpp_hook(folder):
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        print("no C++ compiler: its hook is not run")
        return
    program = folder / "hook.cpp"
    program.write_text('#include "rows.hpp"\nint main() { memtrace_rows rows("hook.csv");\n'
                       "rows.alloc((void *)4096, 10); rows.free((void *)4096); }\n", encoding="utf-8")
    subprocess.run([compiler, "-std=c++11", "-Wall", "-Werror", "-I", pathlib.Path(__file__).parent / "rows", program, "-o",
                    folder / "hook"], check=True)
    subprocess.run([folder / "hook"], check=True, cwd=folder)
    check_hook_file("the hook of C++", folder / "hook.csv", [("alloc", 4096, 10, 0), ("free_requested", 4096, 0, 0)])


def main():
    dice = random.Random(SEED)
    print(f"seed {SEED}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for _ in range(6):
            check_random(dice, folder, write_csv, "random.csv")
            check_random(dice, folder, write_json, "random.jsonl")
        for capture in ROUND_TRIPS:
            check_round_trip(capture, folder)
        check_rmm(dice, folder)
        check_ascend(folder)
        check_answers(folder)
        check_chosen_policy(folder)
        check_cupy_log(folder)
        check_cupy_hook(folder)
        check_numba_hook(folder)
        check_cpp_hook(folder)


main()
