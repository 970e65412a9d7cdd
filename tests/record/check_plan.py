#!/usr/bin/env python3
"""check_plan.py BUILD [CASE...]: `memtrace plan` on the stand-ins for a GPU: what it runs, what it answers, and what it
takes from its cache."""
import errno
import json
import os
import subprocess
import sys
import time

from support import check, main, refusing

# Allocates the sum of its arguments, in GiB, and notes each run. "fail" fails.
PROGRAM = """
import ctypes, os, sys
open("ran", "a").write(" ".join(sys.argv[2:]) + "\\n")
if "fail" in sys.argv:
    sys.exit(7)
torch = ctypes.CDLL(sys.argv[1] + "/lib/libtorch_cuda.so")
torch.ts_malloc.restype = ctypes.c_void_p
torch.ts_malloc.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
torch.ts_begin()
sys.exit(torch.ts_malloc(0, sum(int(float(word) * (1 << 30)) for word in sys.argv[2:]), 0) is None)
"""


def plan(bench, *words, program=("program.py",), before=None, **more):
    """The options before "--", then the arguments of the program; `before` runs in the new process."""
    at = words.index("--")
    (bench.work / "program.py").write_text(PROGRAM) if not (bench.work / "program.py").exists() else None
    environment = bench.environment(**{"MEMTRACE_DRY_RUN_SITE": "own", "MEMTRACE_ARENA_MIB": "1",
                                       "XDG_CACHE_HOME": str(bench.work / ".cache"), **more})
    return bench.run(bench.memtrace, "plan", *words[:at], "--", sys.executable, *program,
                     bench.build / "standin" / "torch", *words[at + 1:], environment=environment, preexec_fn=before)


def runs(bench):
    """The arguments of each run since the last call."""
    path = bench.work / "ran"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def document(done):
    check(done.stdout, f"{done}")
    return json.loads(done.stdout)


def largest(card):
    return [point["values"] for point in card["front"]]


def search_of_one_range(bench):
    """The largest value of each card, its command and what it leaves, with a fraction of the runs."""
    words = ("--card", "RTX 4090", "--card", "H100", "--try", "batch=1..64", "--", "{batch}", "2")
    done = plan(bench, "--json", "-o", "out", *words)
    answer, ran = document(done), runs(bench)
    check(done.returncode == 0 and answer["schema"] == "memtrace.plan/1" and answer["is_complete"], f"{done}")
    check([largest(card) for card in answer["cards"]] == [[["20"]], [["64"]]], f"{answer['cards']}")
    check(all(card["front"][0]["is_largest"] for card in answer["cards"]), f"{answer['cards']}")
    check(answer["points"] == 64 and answer["dry_runs"] == len(ran) <= 8, f"{answer['dry_runs']} {ran}")
    check({"1 2", "64 2", "20 2", "21 2"} <= set(ran), f"the value that fits, and the next: {ran}")
    point = answer["cards"][0]["front"][0]
    check(point["command"][-2:] == ["20", "2"] and point["need_bytes"] == 23 << 30, f"{point}")
    check(point["spare_bytes"] == answer["cards"][0]["memory_bytes"] - point["need_bytes"], f"{point}")
    check(answer["simulated"]["card"] == "H100 80 GB", "the largest card is simulated")
    left = {path.name for path in (bench.work / "out").iterdir()}
    check({"plan.json", "plan.svg", "batch=20.log", "batch=20.trace.zst"} <= left, f"{left}")
    check(json.loads((bench.work / "out" / "plan.json").read_text()) == answer, "plan.json is another")
    text = plan(bench, *words).stdout.decode()
    check("20" in text and "\n  " + sys.executable in text and len(text.splitlines()) <= 25, text)


def default_is_a_page(bench):
    done = plan(bench, "--try", "batch=1..64*2", "--", "{batch}")
    lines = done.stdout.decode().splitlines()
    check(done.returncode == 0 and len(lines) <= 28, f"{len(lines)} lines: {done.stdout.decode()}")
    check(lines[0] == "5 dry runs for 5 of 7 points on a simulated H200 141 GB", lines[0])


def lists_are_in_the_order_of_preference(bench):
    """A later value is on the front only where it allows more; a point that is beaten needs no run of its own."""
    done = plan(bench, "--json", "--no-cache", "--card", "RTX 4090", "--try", "batch=1..16", "--try", "more=4,1,3", "--",
                "{batch}", "{more}")
    answer, ran = document(done), runs(bench)
    check(largest(answer["cards"][0]) == [["16", "4"]], f"{answer}")
    check(not any(line.endswith((" 1", " 3")) for line in ran), f"beaten: {ran}")
    done = plan(bench, "--json", "--no-cache", "-o", "out", "--card", "RTX 4090", "--try", "batch=1..64", "--try", "more=8,1,3", "--",
                "{batch}", "{more}")
    answer, ran = document(done), runs(bench)
    check(largest(answer["cards"][0]) == [["14", "8"], ["21", "1"]], f"{answer['cards']}")
    drawn = (bench.work / "out" / "plan.svg").read_text()
    order = [drawn.index(f"<title>{label}: ") for label in ("1, 8", "14, 8", "15, 1", "21, 1", "15, 3")
             if f"<title>{label}: " in drawn]
    check(len(order) >= 4 and order == sorted(order), f"not by combination: {drawn}")
    check(sum(line.endswith(" 3") for line in ran) == 1, f"one run shows that it is not better: {ran}")


def failures_and_limits(bench):
    """A command that fails marks itself; a combination that only fails ends; --max-runs leaves the answer open."""
    done = plan(bench, "--json", "--no-cache", "--card", "H100", "--try", "batch=1..32", "--try", "how=fail,0", "--",
                "{batch}", "{how}")
    answer, ran = document(done), runs(bench)
    check(done.returncode == 0 and sum("fail" in line for line in ran) == 3, f"{ran}")
    check(answer["combinations"] == [{"name": "how=fail", "is_contradicted": False, "gave_up": True}], f"{answer}")
    check(largest(answer["cards"][0]) == [["32", "0"]], f"{answer['cards']}")
    done = plan(bench, "--no-cache", "--max-runs", "2", "--card", "RTX 4090", "--try", "batch=1..64", "--", "{batch}")
    check(len(runs(bench)) == 2 and b"1 or more" in done.stdout and b"--max-runs" in done.stdout, f"{done}")
    check(b"~ is an estimate" in done.stdout and b"Name the card alone" not in done.stdout, f"it is: {done}")
    done = plan(bench, "--no-cache", "--try", "how=fail", "--", "{how}")
    check(done.returncode == 7 and b"1 point failed: what it needs is not known." in done.stdout, f"nothing finished: {done}")
    done = plan(bench, "--json", "--no-cache", "--card", "RTX 4090", "--card", "H100", "--try", "batch=1..9", "--",
                "-{batch}", "30")
    answer = document(done)
    check(answer["combinations"][0]["is_contradicted"] and answer["dry_runs"] == 9, f"larger values need less: {answer}")


def points_have_ranks(bench):
    """Three ranks of each point run, and the one that needs most decides; fewer devices are better."""
    done = plan(bench, "--json", "--no-cache", "--card", "RTX 4090", "--try", "batch=1..4", "--try", "n=8,2", "--",
                "{batch}", "{n}", "{rank}",
                program=("-m", "torch.distributed.run", "--nproc-per-node", "{n}", "program.py"))
    answer, ran = document(done), set(runs(bench))
    check([name for name in answer["names"]] == ["batch", "n", "rank"], f"{answer['names']}")
    check({"1 8 0", "1 8 4", "1 8 7", "1 2 0", "1 2 1"} <= ran and not ran & {"1 8 1", "1 8 2"}, f"{ran}")
    points = answer["cards"][0]["front"]
    check([(point["values"], point["devices"]) for point in points] == [(["4", "8"], 8), (["4", "2"], 2)], f"{points}")
    check(points[0]["need_bytes"] == 20 << 30, f"rank 7 needs most: {points}")
    check("torch.distributed.run" in points[0]["command"] and "8" in points[0]["command"], f"{points[0]}")


def cache(bench):
    """Results stay, for the same program and environment. What cannot be trusted is run again."""
    words = ("--json", "--card", "RTX 4090", "--try", "batch=1..8", "--", "{batch}")
    first, ran = document(plan(bench, *words)), runs(bench)
    check(len(ran) == first["dry_runs"] == 2 and first["from_cache"] == 0, f"{first}")
    second = document(plan(bench, *words))
    check(not runs(bench) and second["from_cache"] == 2 and second["cards"] == first["cards"], f"{second}")
    check(not document(plan(bench, "--json", "--no-cache", *words[1:]))["from_cache"], "--no-cache uses it")
    runs(bench)
    plan(bench, *words, SOME_VARIABLE="1", SHLVL="9")
    check(len(runs(bench)) == 2, "another environment")
    plan(bench, *words, SLURM_JOB_ID="9", SHLVL="9", TERM="x")
    check(not runs(bench), "the noise of a job or terminal")
    (bench.work / "helper.py").write_text("x = 1\n")
    plan(bench, *words)
    check(len(runs(bench)) == 2, "another file of the program")
    (bench.work / "helper.py").unlink()
    sources, linked = bench.work / ".elsewhere", bench.work / "sources"
    sources.mkdir()
    linked.symlink_to(".elsewhere")
    (sources / "loop").symlink_to("..")
    (sources / "started.py").write_text((bench.work / "program.py").read_text())
    (bench.work / "started.py").symlink_to(".elsewhere/started.py")
    for program in ("program.py", "started.py"):
        for content in ("y = 1\n", "y = 10\n"):
            (sources / "model.py").write_text(content)
            plan(bench, *words, program=(program,))
            check(len(runs(bench)) == 2, f"{program}: a changed file in a linked folder")
        plan(bench, *words, program=(program,))
        check(not runs(bench), "nothing changed")
        linked.unlink(missing_ok=True)  # the program itself is a link
    for path in (*sources.iterdir(), bench.work / "started.py"):
        path.unlink()
    sources.rmdir()
    folder = bench.work / ".cache" / "memtrace" / "plans"
    entries = sorted(folder.iterdir())
    check(all(path.stat().st_mode & 0o777 == 0o600 and len(path.name) == 64 for path in entries), f"{entries}")
    whole = {path: path.read_bytes() for path in entries}

    def spoil(change):
        for path, content in whole.items():
            path.unlink(missing_ok=True) if not path.is_dir() else path.rmdir()
            change(path, content)
        answer = document(plan(bench, *words))
        check(len(runs(bench)) == 2 and answer["cards"] == first["cards"], f"{change}: {answer}")

    spoil(lambda path, content: path.write_bytes(content[:-1]))
    spoil(lambda path, content: path.write_bytes(b""))
    spoil(lambda path, content: path.write_bytes(content + b"x"))
    spoil(lambda path, content: path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:]))
    spoil(lambda path, content: path.write_bytes(whole[entries[0] if path != entries[0] else entries[1]]))
    spoil(lambda path, content: path.symlink_to("/dev/zero"))
    spoil(lambda path, content: os.mkfifo(path))
    spoil(lambda path, content: (path.write_bytes(content), path.chmod(0o666)))
    for path in entries:
        path.unlink(missing_ok=True)
        path.mkdir()
    check(document(plan(bench, *words))["cards"] == first["cards"], "folders in place of results")
    for path in entries:
        path.rmdir()
    folder.chmod(0o777)
    check(document(plan(bench, *words))["from_cache"] == 0, "a folder that others can write to")
    check(not list(folder.iterdir()), "a result in a folder of others")


def shards(bench):
    """Each part runs its combinations; then the whole plan runs only what no part had a reason to run, and reads only
    results of combinations that are not beaten."""
    words = ("--json", "--card", "RTX 4090", "--try", "batch=1..16", "--try", "more=8,4,2,1", "--", "{batch}", "{more}")
    needed = 0
    for part in (1, 2):
        answer = document(plan(bench, "--shard", f"{part}/2", *words))
        check(answer["shard"] == f"{part}/2" and not answer["is_complete"], f"{answer}")
        ran = [line.split()[1] for line in runs(bench)]
        check(len(ran) == answer["dry_runs"] and set(ran) <= ({"8", "2"} if part == 1 else {"4", "1"}), f"of other parts: {ran}")
        needed += len([more for more in ran if more in ("8", "4")])
    whole = document(plan(bench, *words))
    check(whole["dry_runs"] == 0 and whole["from_cache"] == needed, f"{whole['dry_runs']} {whole['from_cache']} {needed}")
    check(largest(whole["cards"][0]) == [["14", "8"], ["16", "4"]], f"{whole['cards']}")


def no_process(bench):
    """Runs that could not start are not results from the cache."""
    if os.uname().machine != "x86_64":
        return
    done = plan(bench, "--json", "--try", "batch=1..4", "--", "{batch}", before=refusing(56, errno.EAGAIN),
                ASAN_OPTIONS="detect_leaks=0") # which starts a process
    if done.returncode == 77:
        print("no_process: no seccomp here")
        return
    answer = document(done)
    check(done.returncode == 3 and answer["dry_runs"] == answer["from_cache"] == 0 and not runs(bench), f"{done}")
    check(b"cannot start a process" in done.stderr and {run["outcome"] for run in answer["runs"]} == {"not run"}, f"{done}")


def changes_on_paper(bench):
    """The name `apply` needs no placeholder: its values reach the Python part, and the command of a point."""
    (bench.work / "program.py").write_text(PROGRAM.replace("torch = ctypes", """
import json
change = os.environ.get("MEMTRACE_DRY_RUN_APPLY")
if change:
    with open("%s.%d" % (os.environ["MEMTRACE_DRY_RUN_NOTES"], os.getpid()), "w") as notes:
        json.dump({"version": 1, "pid": os.getpid(), "facts": {"simulated": True, "applied": [
            {"change": change, "calls": 1, "pieces": [], "problem": ""}]}}, notes)
    sys.argv[2:] = [str(float(word) / 2) for word in sys.argv[2:]]
torch = ctypes""", 1))
    words = ("-q", "--no-cache", "--card", "T4", "--try", "gib=1..64*2", "--try", "apply=none,checkpoint=Block", "--", "{gib}")
    done = plan(bench, *words)
    rows = [line.split()[3:6] for line in done.stdout.decode().splitlines() if line.startswith("T4 16 GB")]
    check([row[:2] for row in rows] == [["8", "none"], ["16", "checkpoint=Block"]], f"{done}")
    check(b"  memtrace dry-run --apply checkpoint=Block -- " in done.stdout, f"{done}")
    commands = [point["command"] for point in document(plan(bench, "--json", *words))["cards"][0]["front"]]
    check([command[:5] == ["memtrace", "dry-run", "--apply", "checkpoint=Block", "--"] for command in commands] == [False, True], f"{commands}")
    words = ("-q", "--json", "--no-cache", "--card", "T4", "--try", "apply=checkpoint=Block")
    for options, program, ranks in (((), ("-m", "torch.distributed.run", "--nproc-per-node", "2", "program.py"), ["--ranks", "0,1"]),
                                    (("--world", "2"), ("program.py",), ["--ranks", "0,1", "--world", "2"])):
        answer = document(plan(bench, *words, *options, "--", "4", "{rank}", program=program))
        command = answer["cards"][0]["front"][0]["command"]
        check(command[2:command.index("--")] == ["--apply", "checkpoint=Block", *ranks] and command[-1] == "{rank}", f"{command}")
    done = plan(bench, "--try", "apply=checkpont=Block", "--", "1")
    check(done.returncode == 2 and b"did you mean 'checkpoint'" in done.stderr, f"{done}")


def interrupted(bench):
    """All runs end, there is no answer, and what had ended stays in the cache."""
    (bench.work / "program.py").write_text(PROGRAM)
    (bench.work / "slow.py").write_text("import os, sys, time\nif os.environ['RANK'] == '0':\n"
                                        "    os.execv(sys.executable, [sys.executable, 'program.py', *sys.argv[1:]])\n"
                                        "open('began', 'w').close()\ntime.sleep(3000)\n")
    environment = bench.environment(MEMTRACE_DRY_RUN_SITE="own", XDG_CACHE_HOME=str(bench.work / ".cache"),
                                    TMPDIR=str(bench.work))
    process = subprocess.Popen([bench.memtrace, "plan", "-j1", "--world", "2", "--try", "n=1..8", "--",
                                sys.executable, "slow.py", bench.build / "standin" / "torch", "{n}"],
                               cwd=bench.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 600
    while time.monotonic() < until and not (bench.work / "began").exists():
        time.sleep(0.05)
    process.terminate()
    out, err = process.communicate(timeout=600)
    check(process.returncode == 143 and not out and b"1 of 2 had ended; there is no result" in err, f"{err}")
    check(len(list((bench.work / ".cache" / "memtrace" / "plans").iterdir())) == 1, "what ended is lost")
    bench.check_left("slow.py", "program.py", "began", "ran", ".cache")


def refusals(bench):
    for words, text in ((("--try", "b=1..2000", "--", "{b}"), "more than 1024 values"),
                        (("--try", "b=1..1000", "--try", "c=1..1000", "--", "{b}{c}"), "at most 16384 are allowed"),
                        (("--try", "b=1", "--", "x"), "does not contain '{b}'"), (("--card", "H1000", "--", "x"), "option '--card'"),
                        (("--shard", "3/2", "--", "x"), "'--shard' needs"), (("--shard", "1", "--", "x"), "'--shard' needs"),
                        (("--world", "9", "--ranks", "9", "--", "x"), "option '--")):
        done = plan(bench, *words)
        check(done.returncode == 2 and text in done.stderr.decode() and not done.stdout, f"{words}: {done}")
    check(not runs(bench), "something ran")


if __name__ == "__main__":
    sys.exit(main([search_of_one_range, default_is_a_page, lists_are_in_the_order_of_preference, failures_and_limits,
                   points_have_ranks, cache, shards, no_process, changes_on_paper, interrupted, refusals]))
