#!/usr/bin/env python3
"""check_dry_run.py BUILD [CASE...]: `memtrace dry-run` on the stand-ins for a GPU: what it answers, how it ends, what
it leaves behind."""
import json
import os
import pathlib
import subprocess
import sys
import time

from support import check, main, only

KNOWN = ("MEMTRACE_DRY_RUN", "MEMTRACE_SIMULATED_DEVICE", "MEMTRACE_SIMULATED_DEVICES", "MEMTRACE_SIMULATED_MEMORY")


def dry_run(bench, *words, stdin=b"", **more):
    return bench.run(bench.memtrace, "dry-run", *words, stdin=stdin, environment=bench.environment(MEMTRACE_DRY_RUN_SITE="own", **more))


def plan(bench, *words, **more):
    return bench.run(bench.memtrace, "plan", *words, environment=bench.environment(MEMTRACE_DRY_RUN_SITE="own", **more))


def first_line(done):
    return (done.stdout.decode().splitlines() or [""])[0]


def answer(bench):
    """The trace says what it is, and nobody speaks of its times."""
    done = dry_run(bench, "--device", "rtx-4090", "-o", "d.trace.zst", "--", bench.recorded, "exit", "0")
    check(done.returncode == 0, f"{done}")
    check(first_line(done) == "Dry run on a simulated RTX 4090 24 GB: times and values are meaningless", first_line(done))
    header = bench.info(bench.work / "d.trace.zst")["header"]
    check(header["dry_run"] == {"card": "RTX 4090 24 GB", "devices": 1, "memory_bytes": 25254407700}, f"{header}")
    check(all(event["t_ns"] == 0 for event in bench.events(bench.work / "d.trace.zst")), "there are times")
    again = bench.run(bench.memtrace, "analyze", "d.trace.zst")
    check(again.stdout in done.stdout and again.stdout, "analyze prints something else")
    check(" in 0" not in bench.run(bench.memtrace, "info", "d.trace.zst").stdout.decode(), "info has a time")
    done = bench.run(bench.memtrace, "live", "--at", "3s", "d.trace.zst")
    check(done.returncode == 2 and b"a dry run has no times" in done.stderr, f"{done}")
    for option in ("--from", "--to"):
        done = bench.run(bench.memtrace, "dump", option, "1s", "d.trace.zst")
        check(done.returncode == 2 and b"a dry run has no times" in done.stderr and not done.stdout, f"{done}")
    check(bench.run(bench.memtrace, "dump", "--from", "3", "d.trace.zst").stdout, "no events from a number on")
    check(b"used by the process" not in again.stdout.lower(), f"a sample of a device that is none: {again.stdout}")
    bench.check_left("d.trace.zst")


def no_device(bench):
    """A program that used none says so, and keeps no gate."""
    done = dry_run(bench, "--", "sh", "-c", "exit 0")
    check(done.returncode == 0, f"{done}")
    check(done.stdout.decode() == "Dry run on a simulated H200 141 GB: no recorded process used the device\n", f"{done}")
    done = dry_run(bench, "--max-peak", "reserved=1GiB", "--", "sh", "-c", "exit 0")
    check(done.returncode == 1 and b"was not evaluated" in done.stdout, f"{done}")
    done = dry_run(bench, "--json", "--max-peak", "reserved=1GiB", "--", "sh", "-c", "exit 0")
    check(done.returncode == 1 and json.loads(done.stdout)["verdict"] == "not evaluated", f"{done}")
    done = dry_run(bench, "--max-peak", "reserved=1GiB", "--", "sh", "-c", "exit 7")
    check(done.returncode == 7, f"the command's status comes first: {done}")
    bench.check_left()


def environment_of_the_command(bench):
    script = "import json,os;json.dump(dict(os.environ),open('env','w'))"
    done = dry_run(bench, "--limit", "3GiB", "--devices", "2", "-o", "d.trace.zst", "--", sys.executable, "-c", script)
    seen = json.loads((bench.work / "env").read_text())
    check(done.returncode == 0, f"{done}")
    check([seen[name] for name in KNOWN] == ["1", "H200 141 GB", "2", str(3 << 30)], f"{seen}")
    check(seen["USE_PYTORCH_KERNEL_CACHE"] == "0", "empty kernels get into the user's cache")
    check(not pathlib.Path(seen["MEMTRACE_DRY_RUN_NOTES"]).parent.exists(), "the folder of notes is left")


def status(bench):
    """That of the command, also if it is a signal; its input is its own."""
    done = dry_run(bench, "-o", "d.trace.zst", "--", bench.recorded, "exit", "42")
    check(done.returncode == 42, f"{done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", bench.recorded, "signal", "9")
    check(done.returncode == -9, f"{done}")
    done = bench.run(bench.memtrace, "dry-run", "-q", "--", bench.recorded, "echo", stdin=b"words\n",
                     environment=bench.environment(MEMTRACE_DRY_RUN_SITE="own"))
    check(done.stdout.startswith(b"words\n"), f"{done}")


def gate(bench):
    for limit, code in (("1KiB", 1), ("1GiB", 0)):
        done = dry_run(bench, "--json", "--max-peak", f"allocated={limit}", "-o", "d.trace.zst", "--", bench.recorded,
                       "exit", "0")
        document = json.loads(done.stdout)
        check(done.returncode == code and document["verdict"] == ("fail" if code else "pass"), f"{done}")
    done = dry_run(bench, "--max-peak", "allocated=1KiB", "-o", "d.trace.zst", "--", bench.recorded, "exit", "7")
    check(done.returncode == 7, f"the command's status comes first: {done}")


def json_alone_on_stdout(bench):
    done = dry_run(bench, "--json", "-o", "d.trace.zst", "--", "sh", "-c", f"echo spoken; {bench.recorded} exit 3")
    document = json.loads(done.stdout)
    check(b"spoken" in done.stderr and document["exit_status"] == 3 == done.returncode, f"{done}")
    check([t["path"] for t in document["traces"]] == [str(bench.work / "d.trace.zst")], f"{document}")


def timeout(bench):
    """All of the tree ends, also what ignores TERM and what has a session of its own."""
    script = "trap '' TERM; echo $$ >>pids; (setsid sh -c 'echo $$ >>pids; sleep 3000'; sleep 3000) & sleep 3000; sleep 3000"
    began = time.monotonic()
    done = dry_run(bench, "--timeout", "1s", "--", "sh", "-c", script)
    check(done.returncode == 124 and b"still running after --timeout 1s" in done.stderr, f"{done}")
    check(time.monotonic() - began < 1500, "it took too long")
    for pid in (bench.work / "pids").read_text().split():
        state = pathlib.Path(f"/proc/{pid}/stat")
        check(not state.exists() or state.read_text().split()[2] == "Z", f"{pid} lives")


def notes(bench):
    """What the Python part counted, over all processes."""
    script = ('for p in 1 2; do echo "{\\"version\\": 1, \\"sizes_from_data\\": 2, \\"answers\\": {\\"condition\\": '
              '{\\"count\\": 3}}}" >$MEMTRACE_DRY_RUN_NOTES.$p; done; ' + bench.recorded + " exit 0")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(first_line(done).startswith("Dry run on"), f"no peak moves: {done}")
    done = dry_run(bench, "--once", "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(first_line(done) == "4 sizes and 6 decisions depended on data that a dry run does not have; peaks may differ",
          f"{done}")
    script = ('echo "{\\"version\\": 1, \\"answers\\": {\\"condition\\": {\\"count\\": 48}}}" >$MEMTRACE_DRY_RUN_NOTES.1; '
              + bench.recorded + " exit 0")
    done = dry_run(bench, "--once", "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(first_line(done).startswith("48 decisions depended on data"), f"{done}")
    script = ('echo "{\\"version\\": 1, \\"facts\\": {\\"other_library\\": \\"jax\\"}}" >$MEMTRACE_DRY_RUN_NOTES.1; ' + bench.recorded + " exit 0")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(first_line(done).startswith("The program imported jax, which cannot use the simulated device"), f"{done}")
    script = ('echo "{\\"version\\": 1, \\"answers\\": {\\"compiled\\": {\\"count\\": 1}, \\"eager\\": {\\"count\\": 2}}}" >$MEMTRACE_DRY_RUN_NOTES.1; '
              + bench.recorded + " exit 0")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check("Inductor compiled 1 function:" in first_line(done), f"{done}")
    check(b"\n2 functions of torch.compile ran eagerly" in done.stdout, f"{done}")
    script = ('echo "{\\"version\\": 1, \\"workspaces\\": {\\"measured\\": 7, \\"asked\\": 3, \\"by_rule\\": 2, \\"guessed\\": 1, '
              '\\"most_unsure_bytes\\": %d}}" >$MEMTRACE_DRY_RUN_NOTES.convolutions.1; echo "{" >$MEMTRACE_DRY_RUN_NOTES.convolutions.2.half; '
              + f"{sys.executable} program.py {bench.build}/standin/torch 104857600")
    (bench.work / "program.py").write_text(ALLOCATING)
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script % 5000000)
    check(b"Workspaces" not in done.stdout, f"no peak can be wrong by 5%: {done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script % 6291456)
    check(b"\nWorkspaces of convolutions: 3 planned by the program's cuDNN, 2 by rule, 1 guessed; with one of them more or less: reserved "
          b"94.0 MiB to 106 MiB\n" in done.stdout, f"{done}")
    check("written or read" not in done.stdout.decode(), f"{done}")
    script = ('echo "{\\"version\\": 1, \\"collectives\\": {\\"undecided\\": 12}}" >$MEMTRACE_DRY_RUN_NOTES.collectives.1; '
              + bench.recorded + " exit 0")
    done = dry_run(bench, "--once", "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(first_line(done).startswith("The program did not wait for 12 collectives of NCCL"), f"{done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(first_line(done).startswith("Dry run on"), f"nothing depends on timing: {done}")
    done = dry_run(bench, "--json", "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(json.loads(done.stdout)["depended_on_timing"] == {"collectives": 12, "blocks": 0, "queries": 0}, f"{done}")
    script = ('echo "{\\"version\\": 1, \\"facts\\": {\\"fake_groups\\": 3}}" >$MEMTRACE_DRY_RUN_NOTES.1; ' + bench.recorded + " exit 0; echo $MEMTRACE_DRY_RUN_IMBALANCE >&2")
    done = dry_run(bench, "--imbalance", "1.3", "-o", "d.trace.zst", "--", "sh", "-c", script)
    lines = done.stdout.decode().splitlines()
    check(lines[0].startswith("3 process groups of the program are fake and without NCCL: "), f"{done}")
    check(lines[1].startswith("--imbalance changed nothing") and b"1.3" in done.stderr, f"{done}")
    done = dry_run(bench, "--json", "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(json.loads(done.stdout)["fake_process_groups"] == 3, f"{done}")
    done = dry_run(bench, "--imbalance", "2", "-o", "d.trace.zst", "--", "sh", "-c", script.replace('}}', ', \\"exchanged_counts\\": true}}'))
    check("changed nothing" not in done.stdout.decode(), f"{done}")
    for wrong in ("0.9", "1.", "01", "-2", "1e3", "1.3x"):
        done = dry_run(bench, "--imbalance", wrong, "true")
        check(done.returncode == 2 and b"needs a factor of at least 1" in done.stderr, f"{done}")
    for what, why in (("blocks", "Another stream used 1 block: PyTorch frees such a block"),
                      ("queries", "The program went on without an event or stream that it had queried, 1 time")):
        script = ('echo "{\\"version\\": 1, \\"%s\\": {\\"undecided\\": 1}}" >$MEMTRACE_DRY_RUN_NOTES.%s.1; ' % (what, what)
                  + bench.recorded + " exit 0")
        done = dry_run(bench, "--once", "-o", "d.trace.zst", "--", "sh", "-c", script)
        check(first_line(done).startswith(why), f"{done}")
        check(b"processes did not" not in done.stdout, f"these notes are not of the Python part: {done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", "echo '{' >$MEMTRACE_DRY_RUN_NOTES.1; "
                   f"{bench.recorded} exit 0")
    check("written or read" in first_line(done), f"{done}")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", "echo $MEMTRACE_DRY_RUN_NOTES >notes; "
                   f"cd ${{MEMTRACE_DRY_RUN_NOTES%/*}} && echo '{{' >.notes.1.half; cd - >&2; {bench.recorded} exit 0")
    check("written or read" not in first_line(done), f"{done}")
    folder = pathlib.Path((bench.work / "notes").read_text().strip()).parent
    check(not folder.exists(), "what a killed process left is still there")
    done = dry_run(bench, "-o", "d.trace.zst", "--", bench.recorded, "exit", "0", TMPDIR=str(bench.work / "none"))
    check("written or read" in first_line(done), f"{done}")


def applied(bench):
    """--apply: what the Python part gets, and what the answer prints of its report."""
    pieces = [{"place": "at the top of the program", "text": "import torch\ndef f(cls): pass"},
              {"place": "at the top of the program", "text": "from m import Block\nf(Block)"}]
    change = {"change": "checkpoint=Block", "calls": 72, "copied_bytes": 0, "pieces": pieces, "problem": "", "flops": 300, "recomputed_flops": 93}
    offload = {"change": "offload=Block", "calls": 1024, "copied_bytes": 3 << 30, "pieces": pieces[:1], "problem": ""}

    def reported(*changes, status=0):
        lines = []
        for number, told in enumerate(changes):
            (bench.work / f"note{number}").write_text(json.dumps({"version": 1, "facts": {"applied": told}}))
            lines.append(f"cp note{number} $MEMTRACE_DRY_RUN_NOTES.{number + 1}; ")
        return ("-o", "d.trace.zst", "--", "sh", "-c", "".join(lines) + f"echo $MEMTRACE_DRY_RUN_APPLY >given; {bench.recorded} exit {status}")

    wanted = ("--apply", "checkpoint=Block+none", "--apply", "offload=Block")
    child = dict(change, calls=0, problem="no module of class Block was made", pieces=[])
    done = dry_run(bench, *wanted, *reported([child], [change, offload], [child]))
    text = done.stdout.decode()
    check(done.returncode == 0 and (bench.work / "given").read_text() == "checkpoint=Block+offload=Block\n", f"{done}")
    check(text.startswith("Applied on paper: checkpoint=Block, 72 calls, about 31% more FLOPs\n"
                          "Applied on paper: offload=Block, 1,024 calls, 3.00 GiB to the host and back\n"), text)
    check("\n\nPatch checkpoint=Block\n  at the top of the program:\n    import torch\n    def f(cls): pass\n"
          "    from m import Block\n    f(Block)\n\nPatch offload=Block\n" in text, text)
    done = dry_run(bench, "--json", *wanted, *reported([change, offload]))
    told = json.loads(done.stdout)["applied"]
    check([(c["change"], c["calls"], c["recomputed_percent"]) for c in told] == [("checkpoint=Block", 72, 31), ("offload=Block", 1024, None)], told)
    check(told[0]["patch"] == pieces, told)
    done = dry_run(bench, *wanted, *reported([child]))
    check(done.returncode == 2 and b"option '--apply': no module of class Block was made" in done.stderr and not done.stdout, f"{done}")
    done = dry_run(bench, *wanted, *reported([change, dict(offload, calls=0)]))
    check(b"Applied on paper: offload=Block, calls not counted: torch.compile compiled them, 3" in done.stdout, f"{done}")
    done = dry_run(bench, *wanted, *reported([child], status=7))
    check(done.returncode == 7 and b"Not applied on paper: checkpoint=Block: no module of class Block" in done.stdout, f"{done}")
    done = dry_run(bench, "--sweep", "n=1", "--apply", "offload=Block", "--", "sh", "-c", "echo {n}; " + reported([child])[-1])
    check(done.returncode == 2 and b"not run" in done.stdout and b"no module of class Block" in done.stderr, f"{done}")
    done = dry_run(bench, *wanted, *reported([change]))
    check(done.returncode == 2 and b"did not report all changes" in done.stderr, f"{done}")
    done = dry_run(bench, *wanted, *reported())
    check(done.returncode == 2 and b"did not start" in done.stderr, f"{done}")
    done = dry_run(bench, *reported())
    check(done.returncode == 0 and (bench.work / "given").read_text() == "\n" and b"pplied" not in done.stdout, f"{done}")
    done = dry_run(bench, "--apply", "8bit", "--sweep", "apply=none,expandable", "--", "true")
    check(done.returncode == 2 and b"cannot be combined with --sweep apply" in done.stderr, f"{done}")
    for word, why in (("chekpoint=A", "did you mean 'checkpoint'?"), ("checkpoint", "expected 'checkpoint=CLASS'"), ("foreach=no", "expected 'foreach=False'"),
                      ("chunked-loss=1", "expected 'chunked-loss=8'"), ("expandable=1", "expected 'expandable'"), ("8bit+zzz", "'zzz'; 'memtrace dry-run --help'")):
        done = dry_run(bench, "--apply", word, "--", "sh", "-c", "exit 0")
        check(done.returncode == 2 and why in done.stderr.decode(), f"{word}: {done}")


# Requests to PyTorch's allocator, by a program without PyTorch: `program.py FOLDER BYTES...`.
ALLOCATING = """
import ctypes, sys
torch = ctypes.CDLL(sys.argv[1] + "/lib/libtorch_cuda.so")
torch.ts_malloc.restype = ctypes.c_void_p
torch.ts_malloc.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
torch.ts_begin()
sys.exit(any([torch.ts_malloc(0, int(size), 0) is None for size in sys.argv[2:]]))
"""


def out_of_memory_in_the_smaller_process(bench):
    """The trace that died of it is told, though another has the larger peak."""
    (bench.work / "program.py").write_text(ALLOCATING)
    run = f"{sys.executable} program.py {bench.build}/standin/torch"
    done = dry_run(bench, "--limit", "70GiB", "--", "sh", "-c", f"{run} 100000000; {run} 1000000 999999999999999")
    check(done.returncode == 1 and first_line(done).startswith("OUT OF MEMORY (simulated)"), f"{done}")
    check("this is one that ran out of memory" in done.stdout.decode(), f"{done}")
    done = dry_run(bench, "--json", "--", "sh", "-c", f"{run} 1000000 999999999999999 2000000; {run} 100000000")
    check(json.loads(done.stdout)["devices"][0]["reserved_peak_bytes"] > 100000000, f"it recovered: {done}")


def own_frames_are_left_out(bench):
    """Stacks have the frames that a real run has, not those of the Python part between the program and PyTorch."""
    folder = bench.work / "memtrace_dry_run"
    folder.mkdir()
    (folder / "hooks.py").write_text("def kernel(function, *arguments): return function(*arguments)\n")
    program = ALLOCATING.replace("import ctypes, sys", "import ctypes, sys, importlib.util\n"
                                 "spec = importlib.util.spec_from_file_location('hooks', 'memtrace_dry_run/hooks.py')\n"
                                 "hooks = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(hooks)\n")
    program = program.replace("torch.ts_malloc(0", "hooks.kernel(allocate, 0").replace("sys.exit", "def allocate(*a): return torch.ts_malloc(*a)\nsys.exit")
    (bench.work / "program.py").write_text(program)
    done = dry_run(bench, "-o", "d.trace.zst", "--", sys.executable, "program.py", f"{bench.build}/standin/torch", "104857600")
    check(done.returncode == 0, f"{done}")
    text = bench.run(bench.memtrace, "dump", "--stacks", "d.trace.zst").stdout.decode()
    check("allocate (" in text and "<module> (" in text and "hooks.py" not in text, text)


def gate_of_every_process(bench):
    """One process reserves more, 6 MiB for each block of 4.1, and passes; another one allocates more, and fails."""
    (bench.work / "program.py").write_text(ALLOCATING)
    run = f"{sys.executable} program.py {bench.build}/standin/torch"
    script = f"{run} {10 * '4300800 '}; {run} 52428800"
    for limit, code in (("45MiB", 1), ("50MiB", 0)):
        done = dry_run(bench, "--json", "--max-peak", f"allocated={limit}", "--", "sh", "-c", script)
        document = json.loads(done.stdout)
        peaks = [document["devices"][0][key] for key in ("reserved_peak_bytes", "allocated_peak_bytes")]
        check(peaks == [60 << 20, 43008000], f"{document}")
        check(done.returncode == code and document["verdict"] == ("fail" if code else "pass"), f"{document}")
        failing = [path for path in [document.get("failing_trace")] if path]
        check(failing == ([trace["path"] for trace in document["traces"] if trace["reserved_peak_bytes"] == 50 << 20] if code else []), f"{document}")
    done = dry_run(bench, "--max-peak", "allocated=45MiB", "--", "sh", "-c", script)
    check(first_line(done).startswith("FAIL: peak allocated 50.0 MiB"), f"{done}")
    check("Another process fails; its trace is" in done.stdout.decode(), f"{done}")
    done = dry_run(bench, "--max-peak", "allocated=45MiB", "--sweep", "n=1", "--", "sh", "-c", script + " # {n}")
    check(done.returncode == 1 and "fail" in done.stdout.decode(), f"{done}")


def without_the_python_part(bench):
    """A process with PyTorch's allocator and without notes."""
    (bench.work / "program.py").write_text(ALLOCATING)
    run = f"{sys.executable} program.py {bench.build}/standin/torch 1000000"
    done = dry_run(bench, "--", "sh", "-c", run)
    check(first_line(done).startswith("1 process used PyTorch without the Python part"), f"{done}")
    note = 'echo "{\\"version\\": 1, \\"pid\\": $$}" >$MEMTRACE_DRY_RUN_NOTES.1; exec '
    done = dry_run(bench, "--", "sh", "-c", note + run)
    check(first_line(done).startswith("Dry run on"), f"{done}")


def refusals(bench):
    for words, code, text in ((("--device", "A100", "true"), 2, "A100 80 GB"), (("--device", "H20O", "true"), 2, "H200"),
                              (("--timeout", "soon", "true"), 2, "--timeout"), (("--devices", "9", "true"), 2, "must be at most"),
                              ((), 2, "missing"), (("no-such-command",), 127, "no-such-command")):
        done = dry_run(bench, *words)
        check(done.returncode == code and text in done.stderr.decode(), f"{words}: {done}")
    done = bench.run(bench.memtrace, "dry-run", "--", "no-such-command",
                     environment=dict(bench.environment(), PATH=os.environ["PATH"]))
    check(done.returncode == 127, f"the command comes before its PyTorch: {done}")
    done = bench.run(bench.memtrace, "dry-run", "--", sys.executable, "-S", "-c", "",
                     environment=dict(bench.environment(), PATH=os.environ["PATH"]))
    check(done.returncode in (0, 2), f"{done}")  # with and without a PyTorch in the tests' own Python
    bench.check_left()


def sweep(bench):
    """One run for each value, in the order of the values; files and the status of the first that failed."""
    script = f"echo out-$1; echo err-$1 >&2; cat; sleep 0.$1; exec {bench.recorded} exit $(($1 / 4))"
    done = dry_run(bench, "--json", "--jobs", "3", "--sweep", "n=5,1,9", "--sweep", "m=x/y", "-o", "out", "--", "sh", "-c",
                   script, "{m}", "{n}", MEMTRACE_ARENA_MIB="1")
    document = json.loads(done.stdout)
    check(done.returncode == 1, f"the first that failed: {done}")
    check([run["values"] for run in document["runs"]] == [["5", "x/y"], ["1", "x/y"], ["9", "x/y"]], f"{document}")
    check([run["outcome"] for run in document["runs"]] == ["failed", "finished", "failed"], f"{document}")
    check([run["exit_status"] for run in document["runs"]] == [1, 0, 2], f"{document}")
    check(all(run["allocated_peak_bytes"] == 6144000 for run in document["runs"]), f"{document}")
    check(json.loads((bench.work / "out" / "sweep.json").read_text()) == document, "sweep.json is another")
    for n in "159":
        stem = f"n={n},m=x%2Fy"
        label = stem.replace(",", ", ").replace("%2F", "/")
        check((bench.work / "out" / f"{stem}.log").read_text() == f"# memtrace dry-run: {label}\nout-{n}\nerr-{n}\n", "logs are mixed")
        bench.check_whole(bench.work / "out" / f"{stem}.trace.zst")
    check(b"n=5, m=x/y: the last lines" in done.stderr and b"  err-9" in done.stderr and b"out-1" not in done.stderr,
          f"{done.stderr}")
    done = dry_run(bench, "--sweep", "n=0,1", "-o", "out", "--", bench.recorded, "exit", "{n}")
    check(done.returncode == 1 and b"failed with 1" in done.stdout, f"our own files are replaced: {done}")
    (bench.work / "out" / "sweep.json").write_text("{}")
    done = dry_run(bench, "--sweep", "n=0", "-o", "out", "--", bench.recorded, "exit", "{n}")
    check(done.returncode == 4 and b"--force" in done.stderr, f"{done}")


def sweep_spares_logs_of_others(bench):
    (bench.work / "out").mkdir()
    (bench.work / "out" / "n=0.log").write_text("mine")
    words = ("--sweep", "n=0", "-o", "out", "--", bench.recorded, "exit", "{n}")
    done = dry_run(bench, *words)
    check(done.returncode == 4 and b"--force" in done.stderr, f"{done}")
    check((bench.work / "out" / "n=0.log").read_text() == "mine", "a log of others was replaced")
    (bench.work / "out" / "n=0.log").rename(bench.work / "notes")
    (bench.work / "out" / "n=0.log").symlink_to("../notes")
    done = dry_run(bench, *words)
    check(done.returncode == 4 and (bench.work / "notes").read_text() == "mine", f"through a link: {done}")
    done = dry_run(bench, "--force", *words)
    check(done.returncode == 0 and not (bench.work / "out" / "n=0.log").is_symlink(), f"{done}")
    check((bench.work / "notes").read_text() == "mine", "--force writes through a link")


def sweep_leaves_nothing(bench):
    """Without -o."""
    (bench.work / "tmp").mkdir()
    more = {"TMPDIR": str(bench.work / "tmp"), "MEMTRACE_ARENA_MIB": "1"}
    done = dry_run(bench, "--sweep", "n=0..2", "--", bench.recorded, "exit", "0{n}", **more)
    check(done.returncode == 1, f"{done}")
    done = dry_run(bench, "--json", "--sweep", "n=1,2", "--timeout", "1", "--", "sleep", "{n}0", **more)
    document = json.loads(done.stdout)
    check(done.returncode == 124 and {run["outcome"] for run in document["runs"]} == {"timed out"}, f"{done}")
    done = dry_run(bench, "--max-peak", "allocated=1KiB", "--sweep", "n=0,0x0", "--", bench.recorded, "exit", "{n}", **more)
    check(done.returncode == 1 and done.stdout.count(b"fail") == 2, f"{done}")
    done = dry_run(bench, "--json", "--sweep", "n=true,no-such-command", "--", "{n}", **more)
    check(done.returncode == 127 and "127" in done.stdout.decode() and b"cannot run" in done.stderr, f"{done}")
    check([run["exit_status"] for run in json.loads(done.stdout)["runs"]] == [0, None], f"it was not run: {done}")
    (bench.work / "flag").write_text("")
    done = dry_run(bench, "--sweep", "n=1", "--", "sh", "-c", f"{bench.recorded} wait flag & sleep {{n}}; exec {bench.recorded} exit 0", **more)
    (bench.work / "flag").unlink()
    check(b"In 1 run, a process is missing from the peaks" in done.stdout, f"{done}")
    time.sleep(0.5)
    check(not list((bench.work / "tmp").iterdir()), "there are files in $TMPDIR")
    note = 'echo "{\\"version\\": 1, \\"facts\\": {\\"fake_groups\\": 1}}" >$MEMTRACE_DRY_RUN_NOTES.1; '
    done = dry_run(bench, "--imbalance", "1.3", "--ranks", "0", "--world", "2", "--", "sh", "-c", note + bench.recorded + " exit 0", **more)
    check(b"1 process group of the program is fake" in done.stdout and b"--imbalance changed nothing" in done.stdout, f"{done}")
    (bench.work / "tmp").rmdir()
    bench.check_left()


def without_memory(bench):
    """Before and after the trace is complete: no other answer with status 0."""
    (bench.work / "tmp").mkdir()
    for most in ("500KiB", "1MiB"):
        more = {"TMPDIR": str(bench.work / "tmp"), "MEMTRACE_ARENA_MIB": "1", "MEMTRACE_MAX_MEMORY": most}
        for words in (("--", bench.recorded, "exit", "0"), ("--sweep", "n=0,00", "--", bench.recorded, "exit", "{n}")):
            done = dry_run(bench, *words, **more)
            check(done.returncode == 3 and b"needs more memory than" in done.stderr, f"{most} {words}: {done}")
            check(not list((bench.work / "tmp").iterdir()), f"left behind: {list((bench.work / 'tmp').iterdir())}")


def early_of(run):
    """The peaks of the further run in which memory is freed early."""
    return only(again for again in run["assumed"]["runs"] if again["assumption"] == "early")


def sweep_runs_again_if_timing_matters(bench):
    """The program allocates less where memory is freed early; if nothing is undecided it runs once."""
    (bench.work / "program.py").write_text(ALLOCATING)
    run = f"{sys.executable} program.py {bench.build}/standin/torch"
    note = 'echo "{\\"version\\": 1, \\"blocks\\": {\\"undecided\\": {n}}}" >$MEMTRACE_DRY_RUN_NOTES.blocks.1; '
    script = f'echo {{n}} >>began; {note} if [ "$MEMTRACE_SIMULATED_EARLY_RELEASE" ]; then {run} 52428800; else {run} 104857600; fi'
    words = ("--sweep", "n=0,7", "-o", "out", "--", "sh", "-c", script)
    (bench.work / "out").mkdir()
    mine = [bench.work / "out" / name for name in ("n=7~again-mine.txt", "n=7~again.trace.zst.old")]
    for path in mine:
        path.write_text("a file of the user")
    done = dry_run(bench, "--json", *words)
    runs = json.loads(done.stdout)["runs"]
    check([run["allocated_peak_bytes"] for run in runs] == [104857600] * 2, f"{done}")
    check([run["depended_on_timing"] for run in runs] == [{"collectives": 0, "blocks": n, "queries": 0} for n in (0, 7)], f"{done}")
    check(not runs[0]["assumed"]["runs"] and early_of(runs[1])["allocated_peak_bytes"] == 52428800, f"{done}")
    check(sorted((bench.work / "began").read_text().split()) == ["0", "7", "7"], "a run too many or too few")
    check(sorted((bench.work / "out").glob("*~again*")) == mine, "other files than those of the second run are left")
    done = dry_run(bench, *words)
    table = done.stdout.partition(b"The peaks depend on timing")[2]
    check([line.split()[:4] for line in table.splitlines()[3:4]] == [[b"7", b"finished", b"50.0", b"MiB"]], f"{done}")
    done = dry_run(bench, "--json", *words, MEMTRACE_SIMULATED_EARLY_RELEASE="1")
    runs = json.loads(done.stdout)["runs"]
    check([run["allocated_peak_bytes"] for run in runs] == [104857600] * 2, f"an outer dry run decides: {done}")
    done = dry_run(bench, "--json", *words[:-1], script + '; [ ! "$MEMTRACE_SIMULATED_EARLY_RELEASE" ]')
    check(early_of(json.loads(done.stdout)["runs"][1])["outcome"] == "failed", f"{done}")
    (bench.work / "flag").write_text("")
    outlives = f'if [ "$MEMTRACE_SIMULATED_EARLY_RELEASE" ]; then {bench.recorded} wait flag & sleep 1; fi; '
    done = dry_run(bench, "--json", *words[:-1], outlives + script)
    left = [path for path in (bench.work / "out").glob("*~again*") if path not in mine]
    (bench.work / "flag").unlink()
    check(early_of(json.loads(done.stdout)["runs"][1])["outcome"] == "finished", f"{done}")
    check(not left, f"the trace of a process that outlives the second run is still there: {left}")


PLACE = "{\\\"kind\\\": \\\"selection\\\", \\\"place\\\": \\\"/u/train.py:37\\\", \\\"count\\\": 1, \\\"size\\\": 1024, \\\"of\\\": 2048}"
GUESSING = ('echo run >>began; echo "{\\"version\\": 1, \\"sizes_from_data\\": 1, \\"places\\": [' + PLACE + ']}" >$MEMTRACE_DRY_RUN_NOTES.1; '
            'case "$MEMTRACE_DRY_RUN_GUESSES" in "") n=100;; share=25*) n=%s;; *) n=150;; esac; ')


def guesses_bound_the_peaks(bench):
    """The command runs again with a quarter of the data and with all."""
    (bench.work / "program.py").write_text(ALLOCATING)
    allocate = f"{sys.executable} program.py {bench.build}/standin/torch $((n * 1048576))"
    runs = bench.work / "began"
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", GUESSING % 50 + allocate)
    lines = done.stdout.decode().splitlines()[1:]  # the first is about the Python part
    check(lines[0] == "1 size depended on data that a dry run does not have; peaks depend on it: 1,024 of 2,048 at train.py:37 (selection), "
          "100 MiB of the peak", f"{done}")
    check(lines[1].startswith("  with 25% to 100% of it: allocated 50.0 MiB to 150 MiB, reserved "), f"{done}")
    check(b"running the command again: what if masks and selections leave 25%" in done.stderr, f"{done}")
    check(len(runs.read_text().split()) == 3, "a run too many or too few")
    bench.check_left("d.trace.zst", "program.py", "began")
    done = dry_run(bench, "--json", "-o", "d.trace.zst", "--", "sh", "-c", GUESSING % 50 + allocate)
    assumed = json.loads(done.stdout)["assumed"]
    check(assumed["data"] == "bounded" and assumed["cause"]["place"] == "/u/train.py:37", f"{assumed}")
    check([(run["assumption"], run["outcome"], run["allocated_peak_bytes"] >> 20) for run in assumed["runs"]] ==
          [("less", "finished", 50), ("more", "finished", 150)], f"{assumed}")
    runs.unlink()
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", GUESSING.replace("n=150", "n=100") % 100 + allocate)
    check(b"depended on data" not in done.stdout and len(runs.read_text().split()) == 3, f"the guess is harmless: {done}")
    runs.unlink()
    done = dry_run(bench, "--once", "-o", "d.trace.zst", "--", "sh", "-c", GUESSING % 50 + allocate)
    check(b"; peaks may differ: 1,024 of 2,048 at train.py:37" in done.stdout and len(runs.read_text().split()) == 1, f"{done}")
    script = GUESSING % 50 + allocate + '; [ "$n" != 50 ]'
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(done.stdout.decode().splitlines()[2] == "  how much is not known: with 25% of it the run failed", f"{done}")
    check(done.returncode == 0, f"a run under another assumption decides the status: {done}")
    runs.unlink()
    done = dry_run(bench, "--sweep", "x=1", "--", "sh", "-c", GUESSING.replace("echo run", "echo {x}") % 50 + allocate, MEMTRACE_DRY_RUN_GUESSES="share=25")
    table = done.stdout.partition(b"they leave:\n")[2].decode().splitlines()
    check([line.split()[:5] for line in table[1:3]] == [["1", "25%", "finished", "50.0", "MiB"], ["1", "100%", "finished", "150", "MiB"]], f"{done}")


def a_signal_ends_further_runs(bench):
    """No run starts after a signal: neither in the worker of a sweep nor after a single run, whose answer is printed."""
    (bench.work / "program.py").write_text(ALLOCATING)
    began, waits = bench.work / "began", bench.work / "waits"
    environment = bench.environment(MEMTRACE_DRY_RUN_SITE="own", MEMTRACE_ARENA_MIB="1", **bench.preload)
    waiting = (GUESSING % 50 + 'if [ "$n" = {n} ]; then touch waits; exec sleep 3000; fi; '
               f"{sys.executable} program.py {bench.build}/standin/torch $((n * 1048576))")
    single = ("-o", "d.trace.zst", "--", "sh", "-c")
    for words, at, status, answer in ((("--sweep", "n=1", "--", "sh", "-c", waiting.replace("{n}", "50"), "{n}"), 2, 143, None),
                                      ((*single, waiting.replace("{n}", "50")), 2, 0, b"peaks may differ"),
                                      ((*single, waiting.replace("{n}", "150")), 3, 0, b"with 100% of it the run has no result")):
        process = subprocess.Popen([bench.memtrace, "dry-run", *words], cwd=bench.work, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until = time.monotonic() + 600
        while time.monotonic() < until and not waits.exists():
            time.sleep(0.05)
        process.terminate()
        out, err = process.communicate(timeout=600)
        check(process.returncode == status and (answer in out if answer else not out), f"{process.returncode} {out} {err}")
        check(len(began.read_text().split()) == at, f"a run started after the signal: {err}")
        began.unlink()
        waits.unlink()


def failures_after_a_guess(bench):
    """The command runs again with the other outcome, and the answer says where it guessed."""
    suspect = ('{\\"place\\": \\"/u/ode.py:120\\", \\"error\\": \\"AssertionError: no\\", \\"other\\": \\"truth 1 /u/ode.py:120\\"}')
    script = ('echo run >>began; echo "{\\"version\\": 1, \\"facts\\": {\\"suspect\\": ' + suspect + '}}" >$MEMTRACE_DRY_RUN_NOTES.1; ' +
              bench.recorded + ' exit 0; case "$MEMTRACE_DRY_RUN_GUESSES" in "other=truth 1 /u/ode.py:120"*) ;; *) false;; esac')
    runs = bench.work / "began"
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(done.returncode == 0 and len(runs.read_text().split()) == 2, f"{done}")
    check(first_line(done) == "The dry run's guess at ode.py:120 made the program fail; with the other outcome it runs to its end", f"{done}")
    check(b"failed after a guess of the dry run at /u/ode.py:120; running it again" in done.stderr, f"{done}")
    bench.check_left("d.trace.zst", "began")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script + " && false")
    check(done.returncode == 1 and done.stdout.decode().splitlines()[1:3] == [
        "The dry run's guess at ode.py:120 made the program fail; with the other outcome it fails there again",
        "The failure may be that of the dry run, which guessed at ode.py:120: AssertionError: no"], f"{done}")
    runs.unlink()
    done = dry_run(bench, "--once", "-o", "d.trace.zst", "--", "sh", "-c", script)
    check(done.returncode == 1 and len(runs.read_text().split()) == 1, f"{done}")
    check(done.stdout.decode().splitlines()[1].startswith("The failure may be that of the dry run"), f"{done}")
    runs.unlink()
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", script, stdin=b"words\n")
    check(done.returncode == 1 and len(runs.read_text().split()) == 1, f"a pipe cannot be read again: {done}")
    (bench.work / "given").write_text("words\n")
    done = dry_run(bench, "-o", "d.trace.zst", "--", "sh", "-c", f"cat >>got; {script}", stdin=open(bench.work / "given", "rb"))
    check(done.returncode == 0 and (bench.work / "got").read_text() == "words\nwords\n", f"a file begins again: {done}")
    document = json.loads(dry_run(bench, "--json", "-o", "d.trace.zst", "--", "sh", "-c", script).stdout)
    check(document["failed_after_guess"] == {"retried": ["/u/ode.py:120"], "place": None, "error": None}, f"{document}")


def sweep_is_interrupted(bench):
    """All that was started ends, also what ignores the signal and what has a session of its own."""
    (bench.work / "tmp").mkdir()
    script = "trap '' TERM; echo $$ >>pids; (setsid sh -c 'echo $$ >>pids; sleep 3000'; sleep 3000) & sleep 3000; sleep 3000"
    environment = bench.environment(MEMTRACE_DRY_RUN_SITE="own", TMPDIR=str(bench.work / "tmp"))
    process = subprocess.Popen([bench.memtrace, "dry-run", "-j2", "--sweep", "n=1,2,3", "--", "sh", "-c", script, "{n}"],
                               cwd=bench.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids = bench.work / "pids"
    until = time.monotonic() + 600
    while time.monotonic() < until and (not pids.exists() or len(pids.read_text().split()) < 4):
        time.sleep(0.05)
    process.terminate()
    out, err = process.communicate(timeout=600)
    check(process.returncode == 143 and not out and b"0 of 3 had ended" in err, f"{process.returncode} {out} {err}")
    check(len(pids.read_text().split()) == 4, "a third run was started")
    for pid in pids.read_text().split():
        state = pathlib.Path(f"/proc/{pid}/stat")
        check(not state.exists() or state.read_text().split()[2] == "Z", f"{pid} lives")
    check(not list((bench.work / "tmp").iterdir()), f"left: {list((bench.work / 'tmp').rglob('*'))}")


def sweep_goes_on_after_an_interruption(bench):
    """Its logs are there, its table is not: the same command runs again."""
    words = [bench.memtrace, "dry-run", "-j1", "--sweep", "n=0,1", "-o", "out", "--", "sh", "-c",
             f"touch began-{{n}}; test {{n}} = 0 || test -e again || sleep 50; exec {bench.recorded} exit 0"]
    environment = bench.environment(MEMTRACE_DRY_RUN_SITE="own")
    process = subprocess.Popen(words, cwd=bench.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 600
    while time.monotonic() < until and not (bench.work / "began-1").exists():
        time.sleep(0.05)
    process.terminate()
    process.communicate(timeout=600)
    left = {path.name for path in (bench.work / "out").iterdir()}
    check(process.returncode == 143 and {"n=0.log", "n=1.log"} <= left and "sweep.json" not in left, f"{left}")
    (bench.work / "again").write_text("")
    done = bench.run(*words, environment=environment)
    check(done.returncode == 0 and (bench.work / "out" / "sweep.json").exists(), f"{done}")


def sweep_refusals(bench):
    for words, text in ((("--sweep", "batch=1", "echo", "{bach}"), "did you mean '{bach}'"), (("--sweep", "b=1", "true"), "'{b}'"),
                        (("--sweep", "b=1..65", "echo", "{b}"), "more than 64"),
                        (("--sweep", "b=8..1", "echo", "{b}"), "'8..1' descends; start with the smaller number: 1..8"),
                        (("--sweep", "b=0..8*2", "echo", "{b}"), "'0..8*2' needs a start of at least 1"), (("-j", "2", "true"), "needs --sweep"),
                        (("--sweep", "b", "echo", "{b}"), "NAME=VALUES")):
        done = dry_run(bench, *words)
        check(done.returncode == 2 and text in done.stderr.decode() and not done.stdout, f"{words}: {done}")
    bench.check_left()


def ranks(bench):
    """Each rank alone, with the variables of torchrun; the table, then the answer about the worst."""
    script = f'echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_PORT $MEMTRACE_DRY_RUN_ALONE $1; exec {bench.recorded} exit $(($RANK / 5))'
    more = {"MEMTRACE_ARENA_MIB": "1"}
    done = dry_run(bench, "--json", "--ranks", "0,1,5", "--world", "8", "--devices", "4", "-o", "out", "--", "sh", "-c", script, "sh", "{rank}", **more)
    document = json.loads(done.stdout)
    check(done.returncode == 1 and document["names"] == ["rank"], f"{done}")
    check([document[key] for key in ("world_size", "local_world_size", "largest_reserved_peak")] == [8, 4, "0"], f"{document}")
    check([(run["values"], run["outcome"]) for run in document["runs"]] == [(["0"], "finished"), (["1"], "finished"), (["5"], "failed")], f"{document}")
    check(document["simulated"]["devices"] == 4 and not document["slopes"], f"{document}")
    check(not any(run["has_doubts"] for run in document["runs"]), f"{document}")
    for rank, text in (("0", "0 0 8 4 0 29500 1 0\n"), ("1", "1 1 8 4 0 29500 1 1\n"), ("5", "5 1 8 4 1 29500 1 5\n")):
        check((bench.work / "out" / f"rank={rank}.log").read_text() == f"# memtrace dry-run: rank {rank}\n{text}", f"rank {rank}")
        bench.check_whole(bench.work / "out" / f"rank={rank}.trace.zst")
    header = json.loads(bench.run(bench.memtrace, "info", "--json", bench.work / "out" / "rank=5.trace.zst").stdout)["header"]
    check(header["rank"] == 5 and header["world_size"] == 8, f"{header}")
    planned = bench.info(bench.work / "out" / "rank=5.trace.zst")["identity"]
    check([planned[key] for key in ("rank", "local_rank", "world_size", "is_planned")] == [5, 1, 8, True], f"{planned}")
    uuids = [bench.info(bench.work / "out" / f"rank={rank}.trace.zst")["identity"]["devices"][0]["uuid"] for rank in (0, 5)]
    check(uuids == ["GPU-5d000000-0000-0000-0000-000000000000", "GPU-5d000000-0000-0001-0000-000000000000"], f"{uuids}")
    (bench.work / "tmp").mkdir()
    (bench.work / "torchrun").write_text("#!/usr/bin/env python3\n")
    (bench.work / "torchrun").chmod(0o755)
    done = dry_run(bench, "--ranks", "all", "--", "./torchrun", "--nproc_per_node=2", "--no-python", bench.recorded, "exit", "0",
                   TMPDIR=str(bench.work / "tmp"), **more)
    text = done.stdout.decode()
    check(done.returncode == 0 and "2 of 2 ranks, each simulated alone" in text and "that of rank 0:\nDry run on a simulated H200" in text, f"{done}")
    check(not list((bench.work / "tmp").iterdir()), "there are files in $TMPDIR")


def ranks_of_each_value(bench):
    """A sweep of ranks: each value with each rank; a value fits where all its ranks do."""
    (bench.work / "program.py").write_text(ALLOCATING)
    run = f"exec {sys.executable} program.py {bench.build}/standin/torch $(({{n}} * 10000000000 * (1 + $RANK)))"
    words = ("--ranks", "0,1", "--world", "2", "--sweep", "n=1,3", "-o", "out", "--", "sh", "-c", run)
    done = dry_run(bench, "--json", *words, MEMTRACE_ARENA_MIB="1")
    document = json.loads(done.stdout)
    check(done.returncode == 0 and document["names"] == ["n", "rank"], f"{done}")
    check([run["values"] for run in document["runs"]] == [["1", "0"], ["1", "1"], ["3", "0"], ["3", "1"]], f"{document}")
    check([run["allocated_peak_bytes"] // 10 ** 9 for run in document["runs"]] == [10, 20, 30, 60], f"{document}")
    fits = {card["card"]: (card["fits"], card["runs_that_fit"], card["runs_known"]) for card in document["cards"]}
    check([fits[name] for name in ("T4 16 GB", "RTX 4090 24 GB", "H100 80 GB")] == [(None, 0, 2), ("n=1", 1, 2), ("n=3", 2, 2)],
          f"{fits}")
    check((bench.work / "out" / "n=3,rank=1.trace.zst").exists(), "a trace is missing")
    text = dry_run(bench, *words, MEMTRACE_ARENA_MIB="1").stdout.decode()
    check("n=3, rank 1  finished" in text and "The largest reserved peak is that of n=3, rank 1:" in text, text)


# What each change saves of 20 GB, in GB; a program that gets them as the Python part does, and reports them.
FITTING = ALLOCATING.replace("import ctypes, sys", """
import ctypes, json, os, sys
changes = [change for change in os.environ.get("MEMTRACE_DRY_RUN_APPLY", "").split("+") if change]
saved = {"foreach=False": 2, "save_on_cpu": 10}
sys.argv[2:] = [str(20_000_000_000 - sum(saved.get(change, 0) for change in changes) * 1_000_000_000)]
applied = [{"change": c, "calls": 1, "pieces": [{"place": "p", "text": "paste " + c}], "problem": ""} for c in changes]
with open("%s.%d" % (os.environ["MEMTRACE_DRY_RUN_NOTES"], os.getpid()), "w") as notes:
    json.dump({"version": 1, "pid": os.getpid(), "facts": {"simulated": True, "applied": applied}}, notes)
""")


def fit(bench):
    """plan --fit CARD: the cheapest changes with which a run fits; one that a later one made superfluous goes."""
    (bench.work / "program.py").write_text(FITTING)
    words = (sys.executable, "program.py", f"{bench.build}/standin/torch")
    done = plan(bench, "-q", "--fit", "rtx 3060", "--", *words)
    rows = [line.split("  ") for line in done.stdout.decode().splitlines()]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    check(done.returncode == 0 and rows[0] == ["RTX 3060 12 GB has 11.8 GiB"], f"{done}")
    check(all(row[1].startswith("~") for row in rows[2:7]) and b"\n~ is an estimate: the runs simulate the kernels of H200" in done.stdout, f"{done}")
    check([(row[0], row[2:]) for row in rows[2:7]] == [
        ("none", []), ("and expandable", ["does not lower the peak: 0 B"]), ("and foreach=False", ["1.86 GiB"]),
        ("and save_on_cpu", ["9.31 GiB; fits"]), ("only save_on_cpu", ["fits"])], f"{rows}")
    check(done.stdout.endswith(b"\nFits with save_on_cpu\nApplied on paper: save_on_cpu\n\nPatch save_on_cpu\n  p:\n    paste save_on_cpu\n"), f"{done}")
    done = plan(bench, "-q", "--fit", "b200", "--", *words)
    check(done.returncode == 0 and done.stdout.endswith(b"Fits with no change\n"), f"{done}")
    (bench.work / "program.py").write_text(FITTING.replace('"save_on_cpu": 10', '"save_on_cpu": 0'))
    done = plan(bench, "-q", "--fit", "rtx 3060", "--", *words)
    check(done.returncode == 1 and b"No change that was tried makes the run fit" in done.stdout, f"{done}")
    large = FITTING.replace("20_000_000_000", "200_000_000_000").replace('"save_on_cpu": 10', '"save_on_cpu": 90')
    (bench.work / "program.py").write_text(large.replace("torch = ctypes", """
if int(sys.argv[2]) > int(os.environ["MEMTRACE_SIMULATED_MEMORY"]):
    sys.argv[2:] = [str(1 << 40)]  # which the stand-in for PyTorch refuses
torch = ctypes""", 1))
    done = plan(bench, "-q", "--fit", "b200", "--", *words)
    check(done.returncode == 0 and b"none" in done.stdout and b"187 GiB" in done.stdout, f"the need exceeds an H200: {done}")
    check(done.stdout.partition(b"\nFits with ")[2].startswith(b"save_on_cpu\n"), f"{done}")
    for end, status in (("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)):
        (bench.work / "program.py").write_text(FITTING.replace("sys.exit", "print") + end + "\n")
        done = plan(bench, "-q", "--fit", "rtx 3060", "--", *words)
        check(done.returncode == status and b"No change was tried" in done.stdout, f"{done}")
    for words, why in ((("rtx",), "option '--fit': "), (("rtx 3060", "--json"), "cannot be combined with --try, --card")):
        done = plan(bench, "--fit", *words, "--", "true")
        check(done.returncode == 2 and why in done.stderr.decode(), f"{done}")
    for words in (("-j", "2"), ("--max-runs", "3"), ("--no-cache",)):
        done = plan(bench, "--fit", "rtx 3060", *words, "--", "true")
        check(done.returncode == 2 and b"cannot be combined with --try" in done.stderr, f"{done}")
    for words, name in (((sys.executable, "-m", "torch.distributed.run", "t.py"), b"'torchrun'"), (("accelerate", "launch", "t.py"), b"'accelerate'")):
        done = plan(bench, "--fit", "rtx 3060", "--", *words)
        check(done.returncode == 2 and b"runs one process: omit " + name in done.stderr, f"{done}")
    bench.check_left("program.py")


def rank_of_several_processes(bench):
    """The answer after the table is about the process with the peak, whichever trace that is."""
    (bench.work / "program.py").write_text(ALLOCATING)
    run = f"{sys.executable} program.py {bench.build}/standin/torch"
    for order in (f"{run} 100000000; {run} 300000000", f"{run} 300000000; {run} 100000000"):
        done = dry_run(bench, "--ranks", "0", "--world", "2", "--", "sh", "-c", order, MEMTRACE_ARENA_MIB="1")
        text = done.stdout.decode()
        check(done.returncode == 0 and "that of rank 0:\n" in text, f"{done}")
        check("Peak    286 MiB allocated" in text, f"of another process: {done}")


def rank_refusals(bench):
    for words, text in ((("--ranks", "0", "true"), "needs '--world N'"), (("--world", "8", "true"), "needs --ranks"),
                        (("--ranks", "8", "--world", "8", "true"), "the last of 8 ranks is rank 7"), (("--ranks", "all", "--world", "72", "true"), "more than 64"),
                        (("--ranks", "0", "--world", "9", "--devices", "8", "true"), "9 ranks cannot be divided into nodes of 8"),
                        (("--ranks", "0", "--world", "2", "deepspeed", "train.py"), "name the script"),
                        (("--ranks", "0", "python3", "-m", "torch.distributed.run", "--nproc-per-node=16", "train.py"), "at most 8"),
                        (("--ranks", "0", "--world", "4", "python3", "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "t.py"),
                         "torchrun has 1 node of 2 ranks, which are not 4 ranks")):
        done = dry_run(bench, *words)
        check(done.returncode == 2 and text in done.stderr.decode() and not done.stdout, f"{words}: {done}")
    bench.check_left()


if __name__ == "__main__":
    sys.exit(main([answer, no_device, environment_of_the_command, status, gate, json_alone_on_stdout, timeout, notes, applied, fit,
                   out_of_memory_in_the_smaller_process, gate_of_every_process, own_frames_are_left_out, without_the_python_part, refusals, sweep,
                   sweep_spares_logs_of_others, sweep_leaves_nothing, without_memory, sweep_runs_again_if_timing_matters,
                   guesses_bound_the_peaks, a_signal_ends_further_runs, failures_after_a_guess,
                   sweep_is_interrupted, sweep_goes_on_after_an_interruption, sweep_refusals, ranks, ranks_of_each_value, rank_of_several_processes, rank_refusals]))
