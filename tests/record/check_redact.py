#!/usr/bin/env python3
"""check_redact.py BUILD [CASE...]: a redacted trace has the same events and nothing that
names a person, a machine or a folder."""
import errno
import json
import os
import pathlib
import pickle
import random
import re
import signal
import string
import subprocess
import sys

from support import check, main, only, refusing

HOME = "/home/alice/acme"


def contents(bench, trace):
    """Everything that a trace says: header, events and stacks."""
    dump = bench.run(bench.memtrace, "dump", "--json", "--stacks", trace)
    check(dump.returncode == 0, f"{dump}")
    info = bench.run(bench.memtrace, "info", "--json", trace)
    return [json.loads(line) for line in dump.stdout.splitlines()], info.stdout.decode()


def secrets(bench, trace):
    done = bench.run(bench.memtrace, "info", "--secrets", "--json", trace)
    check(done.returncode == 0, f"{done}")
    return {kind["name"]: kind for kind in json.loads(done.stdout)["kinds"]}


def without_names(events):
    names = ("frames", "name", "thread_name", "stack")
    return [{key: value for key, value in event.items() if key not in names} for event in events]


def snapshot():
    files = [f"{HOME}/train.py", f"{HOME}/lib/model.py", f"{HOME}/train.py",
             "/home/alice/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", "train.py"]
    trace = [{"action": "alloc", "addr": (i + 1) << 24, "size": 512, "stream": 0, "time_us": 1000 + i,
              "frames": [{"filename": path, "name": "forward", "line": 1 + i % 2}]} for i, path in enumerate(files)]
    marks = [{"name": f"load {HOME}/data.bin", "stage": stage, "device": 0, "time_us": time}
             for stage, time in (("START", 1000), ("END", 1003))]
    return {"segments": [], "device_traces": [trace], "external_annotations": marks}


def imported(bench):
    """import --redact, of a snapshot and of a trace."""
    (bench.work / "a.pickle").write_bytes(pickle.dumps(snapshot()))
    for source, target, flags in (("a.pickle", "plain.trace", ()), ("a.pickle", "b.trace", ("--redact",)),
                                  ("plain.trace", "c.trace", ("--redact",)), ("b.trace", "d.trace", ("--redact",))):
        done = bench.run(bench.memtrace, "import", source, "-o", target, *flags)
        check(done.returncode == 0, f"{done}")
    plain, _ = contents(bench, "plain.trace")
    found = secrets(bench, "plain.trace")
    check(found["user_names"]["examples"] == ["alice"] and found["file_paths"]["distinct"] == 3, f"{found}")
    check(found["paths_in_names"]["distinct"] == 1, f"{found}")
    for name in ("b.trace", "c.trace", "d.trace"):
        events, facts = contents(bench, name)
        text = json.dumps(events) + facts
        check("alice" not in text and "acme" not in text, f"{name}: {text}")
        check(without_names(events) == without_names(plain), f"{name}: the events are the same")
        check("/redacted/site-packages/torch/nn/modules/linear.py" in text, f"{name}: packages stay")
        frames = [event["frames"][0].rpartition(":")[0] for event in events if event.get("frames")]
        check(frames[0] == frames[2] != frames[1] and frames[0].endswith("/train.py"), f"equal stays equal: {frames}")
        check(not any(kind["distinct"] for kind in secrets(bench, name).values() if kind["redacted"]), name)
    check(contents(bench, "b.trace")[0] == contents(bench, "d.trace")[0], "twice is as once")
    check(contents(bench, "b.trace")[0] != contents(bench, "c.trace")[0], "each import draws its own salt")


SECRET = "quxzvwjkq"  # no piece of four letters occurs in other text
BEFORE = [*string.punctuation, *string.digits, *"xZ_", "", "-I", "a+", "key=", "step ", "\u00a0", "\u200b", "\u2192",
          "\u201c", "\u00ab", "\u00e9", "\u6f22"]
PATHS = [
    "/home/§/x", "/home/§", "/§", "/home/§/", "/mnt/§/data", "~§", "~§/x", "~/§/x", "/Users/§/a b/§/x", "/home/§ §/x",
    "C:\\Users\\§\\x", "C:\\§", "d:/§/x.py", "\\\\host\\§\\x", "\\§\\x", "file:///home/§/x.py", "file:/§", "s3://§/§/x",
    "https://§:§@§.com:80/§?a=§/x", "http://§", "ssh://§@host", "§@§.com", "§@10.0.0.1:/x", "§@host:§/x.py",
    "%2Fhome%2F§%2Fx", "%2f§", "%252Fhome%252f§", "%5CUsers%5C§", "$HOME/§/x", "${HOME}/§/x", "./§/x.py", "../§/§",
    "/usr/../§/x.py", "/usr/share/§/x.py", "/usr/local/cuda-§/x.py", "/usr/lib/§", "/lib/§/x.py", "/lib/python3-§/x.py",
    "/lib/python3.12/§/x.py", "/lib/python3.12/../§/x.py", "/a/site-packages/../§/x.py", "/dev/shm/§/x.py", "/dev/§",
    "/redacted/§/x.py", "/redacted/§", "/redacted/0123456789ab/§/x.py", "/redacted/site-packages/../§/x.py",
    "torch/§/x.py", "torch/nn/§/x.py", "/a/torch/_§/x.py", "/c10/§/x.cpp", "aten/src/§/x.cpp", "data/§/x", "§/§/§",
    "§/train.py", "§/§.part", "jit(f)/jit(main)/§/add", "StatefulPartitionedCall/§/Add", "/run/lr=0.1,§/x", "/run/a=§",
    "/run/[§]/x", "/run/a(§)/x", "/run/'§'/x", "/home/§:/opt/§:/usr/bin", "/home/§/`/home/§/x`", "/proc/self/root/§/x"]
AFTER = ["", "", " (cold)", ", 13.0", ":12", "/x", ".", ": failed", " and /home/§/y", " to s3://§"]


def generated(count, seed):
    """Names with a path, each distinct."""
    dice = random.Random(seed)
    names = []
    for i in range(count):
        path = PATHS[i % len(PATHS)]
        before = dice.choice(BEFORE)
        if path == "~§" and before in string.digits + string.ascii_letters:
            before = " "
        names.append(f"n{i} {before}{path}{dice.choice(AFTER)}".replace("§", SECRET))
    return names


def left_over(text, letters=4):
    text = text.decode(errors="replace").lower()
    return [text[max(0, at - 60):at + 60] for piece in (SECRET[i:i + letters] for i in range(len(SECRET) - letters + 1))
            for at in [text.find(piece)] if at >= 0]


def names_of_paths(bench):
    """No piece of a secret in 500 names is in a redacted trace, or in what is made of it."""
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}")
    names = generated(500, seed)
    files = [path.replace("§", SECRET) + "/m.py" for path in PATHS]
    entries = [{"action": "segment_alloc", "addr": 1 << 40, "size": 2 << 20, "stream": 0, "frames": [], "time_us": 1}]
    for i, name in enumerate(names):
        entries.append({"action": "alloc", "addr": (1 << 40) + 512 * i, "size": 512, "stream": 0, "time_us": 2 + 2 * i,
                        "frames": [{"filename": files[i % len(files)], "name": name, "line": i}]})
    marks = [{"name": name, "stage": stage, "device": 0, "time_us": 2 + 2 * i + (stage == "END")}
             for i, name in enumerate(names) for stage in ("START", "END")]
    (bench.work / "a.pickle").write_bytes(pickle.dumps(
        {"segments": [], "device_traces": [entries], "external_annotations": marks,
         "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": f"a:/home/{SECRET}/x"}}))
    found = secrets(bench, "a.pickle")
    check(found["paths_in_names"]["distinct"] >= len(names), f"each name counts: {found}")
    done = bench.run(bench.memtrace, "import", "-q", "--redact", "a.pickle", "-o", "b.trace")
    check(done.returncode == 0, f"{done}")
    (bench.work / "a.pickle").unlink()
    for words in (("dump", "-q", "--stacks"), ("dump", "-q", "--stacks", "--json"), ("analyze", "-q", "--all"),
                  ("analyze", "-q", "--json", "--all"), ("analyze", "-q", "-o", "page"), ("info", "--json"),
                  ("fleet", "-q", "--shard", "1/1", "-o", "b.mtsum")):
        done = bench.run(bench.memtrace, *words, "b.trace")
        check(done.returncode == 0, f"{words}: {done}")
        check(not left_over(done.stdout), f"{words}: {left_over(done.stdout)}")
    made = [path for path in bench.work.rglob("*") if path.is_file()]
    check({"b.trace", "b.mtsum", "report.html", "report.json"} <= {path.name for path in made}, f"{made}")
    for path in made:
        data = path.read_bytes()
        frame = data.index(b"\x28\xb5\x2f\xfd") if path.suffix == ".mtsum" else 0  # behind its header
        unpacked = subprocess.run(["zstd", "-dcqf"], input=data[frame:], stdout=subprocess.PIPE, check=True).stdout
        check(not left_over(data, len(SECRET)), f"{path.name}: the whole secret")
        if path.suffix != ".png":  # in a megabyte of compressed bytes, four letters occur by chance
            check(not left_over(unpacked), f"{path.name}: {left_over(unpacked)}")
    found = secrets(bench, "b.trace")
    check(not any(kind["distinct"] for kind in found.values() if kind["redacted"]), f"{found}")


def recorded(bench):
    """record --redact, of a process that ends and of one that is killed."""
    for words in (("exit", "0"), ("signal", "9")):
        done = bench.run(bench.memtrace, "record", "--redact", "--with-env", "--stacks", "both", "-o", "run.trace.zst",
                         "--", bench.recorded, *words)
        trace = only(bench.traces())
        mode = trace.stat().st_mode & 0o777
        check(mode == 0o600 or words[0] == "signal", f"mode {mode:o}")
        events, facts = contents(bench, trace)
        text = json.dumps(events) + facts.replace(str(trace), "").replace("run.trace.zst", "")
        host = json.loads(facts)["header"]["host"]
        check(re.fullmatch("redacted-host-[0-9a-f]{12}", host), f"{words}: host {host}, {done.stderr}")
        for secret in (str(bench.build), os.path.dirname(bench.recorded)):
            check(secret not in text, f"{words}: {secret} in {text[:2000]}")
        found = secrets(bench, trace)
        check(not any(kind["distinct"] for kind in found.values() if kind["redacted"]), f"{words}: {found}")
        bench.check_whole(trace)
        bench.check_left("run.trace.zst")
        trace.unlink()


# Run by the command when its recording has ended: memtrace, its parent, cannot write files now.
FULL = "import os, resource; resource.prlimit({pid}, resource.RLIMIT_FSIZE, (64, 64))"


def let_writes_fail():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def not_redacted(bench):
    """What redaction cannot write stays as it was; text and JSON say so, and nothing else is wrong."""
    script = f"{bench.recorded} exit 0; {sys.executable} -c '{FULL.format(pid='$PPID')}'".replace("'", '"')
    for flags in ((), ("--json",), ("--strict",)):
        done = bench.run(bench.memtrace, "record", "--redact", *flags, "-o", "run.trace.zst", "--", "sh", "-c", script,
                         preexec_fn=let_writes_fail)
        text = done.stderr.decode()
        check(done.returncode == (5 if "--strict" in flags else 0), f"{done}")
        if "--json" in flags:
            trace = json.loads(text.splitlines()[-1])["traces"][0]
            check(trace["state"] == "whole" and trace["complete"] and trace["events"] and not trace["error"],
                  f"{trace}")
            check("File too large" in trace["redaction_error"], f"{trace}")
        else:
            check("not redacted: File too large" in text and "tape" not in text and " events in " in text, text)
        check(bench.run(bench.memtrace, "info", "run.trace.zst").returncode == 0, "it can be read")
        bench.check_left("run.trace.zst")
        (bench.work / "run.trace.zst").unlink()


def sizes(bench):
    """The size that record says is that of the redacted trace."""
    done = bench.run(bench.memtrace, "record", "--redact", "--with-env", "--json", "-o", "run.trace.zst", "--",
                     bench.recorded, "exit", "0")
    trace = json.loads(done.stderr.splitlines()[-1])["traces"][0]
    check(trace["bytes"] == (bench.work / "run.trace.zst").stat().st_size, f"{trace}")


GETRANDOM = {"x86_64": 318, "aarch64": 278}


def without_random(bench):
    """No salt, no recording: the command does not run, nothing is left."""
    if os.uname().machine not in GETRANDOM:
        return
    for words in (("record", "--redact", "-o", "run.trace.zst", "--", "touch", "ran"),
                  ("import", "--redact", "a.pickle", "-o", "run.trace.zst")):
        (bench.work / "a.pickle").write_bytes(pickle.dumps(snapshot()))
        done = bench.run(bench.memtrace, *words, preexec_fn=refusing(GETRANDOM[os.uname().machine], errno.EPERM))
        if done.returncode == 77:
            print("without_random: no seccomp here")
            return
        check(done.returncode in (2, 3) and b"no random numbers" in done.stderr, f"{done}")
        bench.check_left("a.pickle")


def fixtures(bench):
    """The recordings of this repository name no machine."""
    folder = pathlib.Path(__file__).resolve().parent.parent.parent / "fixtures" / "recorded"
    traces = sorted(folder.glob("*.trace.zst"))
    check(traces, f"recordings in {folder}")
    for trace in traces:
        found = {name: kind["examples"] for name, kind in secrets(bench, trace).items()
                 if kind["redacted"] and kind["distinct"]}
        check(not found, f"{trace.name} holds {found}: memtrace import --redact")


if __name__ == "__main__":
    sys.exit(main([imported, names_of_paths, recorded, not_redacted, sizes, without_random, fixtures]))
