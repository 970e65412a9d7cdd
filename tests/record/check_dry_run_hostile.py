#!/usr/bin/env python3
"""check_dry_run_hostile.py BUILD [CASE...]: `memtrace dry-run` of programs and folders that behave badly: what it answers,
and which files it leaves. The PyTorch is a fake: libraries of the stand-ins, and a Python that says where they are."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from support import LIMIT_SECONDS, check, main

PYTHON = """#!/bin/sh
case "$1 $2" in
"-B -c") cat <<'END'

memtrace-version=3.12
memtrace-executable=%(python)s
%(facts)s
END
;;
*) exec %(real)s "$@" ;;
esac
"""
# What the program imports as PyTorch.
MODULE = """__version__ = "2.11.0"
class version: cuda = None
class UntypedStorage: _free_weak_ref = None
def compile(model=None, **_): raise RuntimeError("Triton wants a device")
class cuda:
    class Event:
        def elapsed_time(self, other): return 1.0
"""
TORCH = ("torch=%(torch)s", "torch-__version__=2.11.0+cu130", "torch-cuda=13.0", "packages=%(folder)s")


class Place:
    """A fake environment with PyTorch, a cache, a folder for temporary files, and the folder of the run."""

    def __init__(self, bench, facts=TORCH):
        self.bench = bench
        self.env, self.cache, self.tmp, self.run_folder = (bench.work / n for n in ("env", "cache", "tmp", "run"))
        self.torch = self.env / "lib" / "torch"
        for folder in (self.env / "bin", self.torch / "lib", self.cache, self.tmp, self.run_folder):
            folder.mkdir(parents=True)
        self.python = self.env / "bin" / "python3"
        for name in ("libc10_cuda.so", "libtorch_cuda.so"):
            shutil.copy(bench.build / "standin" / "lookup_library.so", self.torch / "lib" / name)
        (self.torch / "__init__.py").write_text(MODULE)
        self.say(facts)

    def say(self, facts):
        names = {"torch": self.torch, "folder": self.torch.parent, "python": self.python, "real": sys.executable}
        names["facts"] = "\n".join("memtrace-" + fact % names for fact in facts)
        self.python.write_text(PYTHON % names)
        self.python.chmod(0o755)

    def environment(self, **more):
        kept = {name: value for name, value in self.bench.environment().items()
                if name not in ("LD_LIBRARY_PATH", "MEMTRACE_CUPTI", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")}
        return {**kept, "XDG_CACHE_HOME": str(self.cache), "TMPDIR": str(self.tmp), "PYTHONPATH": str(self.torch.parent),
                "HOME": "/proc/nowhere", "PATH": f"{self.env}/bin:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1", **more}

    def dry_run(self, *words, stdin=b"", **more):
        environment = self.environment(**more)
        return self.bench.run(self.bench.memtrace, "dry-run", *words, stdin=stdin, cwd=self.run_folder,
                              environment={name: value for name, value in environment.items() if value is not None})

    def document(self, *words, **more):
        return json.loads(self.dry_run("--json", *words, **more).stdout)

    def left(self):
        """Files of the run and temporary files."""
        return sorted(str(path.relative_to(self.bench.work)) for folder in (self.run_folder, self.tmp)
                      for path in folder.rglob("*"))

    def sites(self):
        return [path for path in (self.cache / "memtrace").iterdir() if not path.name.startswith("making-")]

    def unfinished(self):
        return [path for path in (self.cache / "memtrace").iterdir() if path.name.startswith("making-")]


def lines(done):
    return done.stdout.decode().splitlines()


def crashes(bench):
    """The status is the command's, the answer says that it is no whole run, a gate does not pass."""
    place = Place(bench)
    for words, status, text in ((("segv",), -signal.SIGSEGV, "Signal 11"), (("abort",), -signal.SIGABRT, "Signal 6"),
                                (("quick", "9"), 9, "status 9"), (("signal", "9"), -signal.SIGKILL, "Signal 9")):
        done = place.dry_run("-o", "d.trace.zst", "--max-peak", "allocated=1GiB", "--", bench.recorded, *words)
        check(done.returncode == status, f"{words}: {done}")
        reason = "the command failed" if words[0] == "quick" else "a signal ended the command"
        check(lines(done)[0].startswith(f"NOT EVALUATED: peak allocated: {reason}; "), f"{words}: {done}")
        check(any(text in line and "may need more" in line for line in lines(done)), f"{words}: {done}")
        bench.check_whole(place.run_folder / "d.trace.zst")
    check(place.left() == ["run/d.trace.zst"] and not place.unfinished(), f"{place.left()}")


def processes(bench):
    """Children that fork, start programs and outlive the command. A fork of a process that uses CUDA cannot use it, as ever."""
    place = Place(bench)
    for way, traces in (("fork", 1), ("forkexec", 2), ("spawn", 2)):
        document = place.document("--", bench.recorded, way)
        check(document["processes"]["with_trace"] == traces and not document["processes"]["still_running"], f"{way}: {document}")
        check((document["exit_status"] == 0) == (way != "fork"), f"{way}: {document}")
    (place.run_folder / "flag").write_text("")
    done = place.dry_run("-o", "d.trace.zst", "--max-peak", "allocated=1GiB", "--", bench.recorded, "daemon", "flag")
    (place.run_folder / "flag").unlink()
    check("1 process still ran" in done.stdout.decode() and done.returncode == 1, f"{done}")


def endless(bench):
    """Ended with its children; what was seen until then is a lower bound."""
    place = Place(bench)
    done = place.dry_run("--timeout", "2s", "-o", "d.trace.zst", "--max-peak", "allocated=1GiB", "--", "sh", "-c",
                         f"touch flag; {bench.recorded} wait flag & echo $! >pid; while :; do :; done")
    check(done.returncode == 124 and "lower bounds" in done.stdout.decode(), f"{done}")
    check(lines(done)[0].startswith("NOT EVALUATED: peak allocated: a timeout ended the run; "), f"{done}")
    later = subprocess.run([bench.memtrace, "analyze", place.run_folder / "d.trace.zst", "--max-peak", "allocated=1GiB"],
                           capture_output=True, check=False)
    check(lines(later)[0].startswith("NOT EVALUATED: ") and later.returncode == 1, f"{later}")
    child = pathlib.Path("/proc") / (place.run_folder / "pid").read_text().strip() / "stat"
    check(not child.exists() or child.read_text().split()[2] == "Z", "a child lives")
    check(not place.unfinished() and not list(place.tmp.iterdir()), f"{place.left()} {place.unfinished()}")


def large_binary_output(bench):
    """100 MB through a pipe, byte for byte, before the answer."""
    place = Place(bench)
    count = 100_000_000
    script = f"import sys; [sys.stdout.buffer.write(bytes(range(250)) * 4000) for _ in range({count // 1_000_000})]"
    done = place.dry_run("-q", "--", place.python, "-c", script)
    check(done.stdout[:count] == bytes(range(250)) * (count // 250), "other bytes")
    check(done.stdout[count:].startswith(b"Dry run on a simulated"), f"{done.stdout[count:count + 200]}")


def closed_output(bench):
    """A reader that goes away ends the command as ever; the trace is whole, no file is left."""
    place = Place(bench)
    with subprocess.Popen([bench.memtrace, "dry-run", "-o", "d.trace.zst", "--", "sh", "-c", f"{bench.recorded} exit 0; yes"],
                          cwd=place.run_folder, env=place.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        process.stderr.read()
        status = process.wait(LIMIT_SECONDS)
    check(status == 1, f"{status}")  # that of yes, which SIGPIPE does not end
    bench.check_whole(place.run_folder / "d.trace.zst")
    done = bench.run("sh", "-c", f"'{bench.memtrace}' dry-run -o e.trace.zst -- '{bench.recorded}' exit 0 >&-",
                     environment=place.environment(), cwd=place.run_folder)
    check(done.returncode in (0, 4), f"{done}")
    bench.check_whole(place.run_folder / "e.trace.zst")
    check(place.left() == ["run/d.trace.zst", "run/e.trace.zst"] and not place.unfinished(), f"{place.left()}")


def reads_input(bench):
    place = Place(bench)
    data = bytes(range(256)) * 4096
    done = place.dry_run("-q", "-o", "d.trace.zst", "--", bench.recorded, "echo", stdin=data)
    check(done.stdout.startswith(data), "other bytes")


def signals_of_the_user(bench):
    """Ctrl-C, and what a job scheduler or a terminal that goes away sends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(FileNotFoundError):
            for name in ("env", "cache", "tmp", "run"):
                shutil.rmtree(bench.work / name)
        place = Place(bench)
        script = f"{bench.recorded} exit 0; echo ready; exec sleep 50"
        with subprocess.Popen([bench.memtrace, "dry-run", "-o", "d.trace.zst", "--", "sh", "-c", script], text=True,
                              cwd=place.run_folder, env=place.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            check(process.stdout.readline() == "ready\n", "it did not start")
            os.killpg(process.pid, number)
            out, err = process.communicate(timeout=LIMIT_SECONDS)
        check(process.returncode == -number, f"{process.returncode} {out} {err}")
        check(f"Signal {number.value}" in out, f"{out} {err}")
        bench.check_whole(place.run_folder / "d.trace.zst")
        check(place.left() == ["run/d.trace.zst"] and not place.unfinished(), f"{place.left()} {place.unfinished()}")


def foreign_output(bench):
    """A file that is no trace stays, and the command does not run."""
    place = Place(bench)
    (place.run_folder / "d.trace.zst").write_text("mine")
    done = place.dry_run("-o", "d.trace.zst", "--", "touch", "ran")
    check(done.returncode == 4 and (place.run_folder / "d.trace.zst").read_text() == "mine", f"{done}")
    check(place.left() == ["run/d.trace.zst"], f"{place.left()}")


def no_file_elsewhere(bench):
    """Nothing but the trace and the site; the Python part leaves no bytecode beside it."""
    place = Place(bench)
    installed = bench.work / "installed"
    installed.mkdir()
    for name in ("memtrace", "libmemtrace-inject.so", "libmemtrace-simulated-cuda.so"):
        os.link(bench.build / name, installed / name)
    shutil.copytree(bench.build / "memtrace-python", installed / "memtrace-python", ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(installed.rglob("*"))
    script = "import sys, torch, json.tool, mine; print(sys.dont_write_bytecode)"
    (place.run_folder / "mine.py").write_text("")
    for flags, environment, answer in (([], {"PYTHONDONTWRITEBYTECODE": None}, "False"), (["-s", "-B"], {"PYTHONDONTWRITEBYTECODE": None}, "True"),
                                       (["-W", "ignore", "-sB"], {"PYTHONDONTWRITEBYTECODE": None}, "True"), (["-Wignore::Bytes"], {"PYTHONDONTWRITEBYTECODE": None}, "False"),
                                       ([], {"PYTHONDONTWRITEBYTECODE": "1"}, "True"), ([], {"PYTHONDONTWRITEBYTECODE": ""}, "False")):
        shutil.rmtree(place.run_folder / "__pycache__", ignore_errors=True)
        done = bench.run(installed / "memtrace", "dry-run", "-q", "--", place.python, *flags, "-c", script, cwd=place.run_folder,
                         environment={k: v for k, v in place.environment(**environment).items() if v is not None})
        check(lines(done)[0] == answer, f"{flags} {environment}: {done}")
        check((place.run_folder / "__pycache__").exists() == (answer == "False"), f"{flags} {environment}")
        check(sorted(installed.rglob("*")) == before, f"{flags} {environment}: {sorted(installed.rglob('*'))}")
    check(not list(place.tmp.iterdir()) and not place.unfinished(), f"{place.left()} {place.unfinished()}")


def lost_environment(bench):
    """Who removes LD_PRELOAD gets no simulated device: said, with what to do; a real GPU is hidden from it."""
    place = Place(bench)
    script = "import os, torch; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"
    for wrapper, seen, text in (((), "None", "requested no device memory"), (("env", "-u", "LD_PRELOAD"), "-1", "removed LD_PRELOAD"),
                                (("env", "-i"), None, "the environment was cleared"), (("sh", "-c", 'unset LD_PRELOAD; "$@"', "sh"), "-1", "LD_PRELOAD")):
        done = place.dry_run("-q", "--", *wrapper, place.python, "-c", script)
        check(text in done.stdout.decode(), f"{wrapper}: {done}")
        check(seen is None or lines(done)[0] == seen, f"{wrapper}: {done}")
        check(seen != "-1" or str(place.python) in done.stdout.decode(), f"{wrapper}: {done}")
    done = place.dry_run("-q", "--", place.python, "-c", "import torch; import nothing_of_this_name")
    check("ended before PyTorch requested device memory; its own" in done.stdout.decode() and "look for" not in done.stdout.decode(), f"{done}")
    done = place.dry_run("-q", "--", "sh", "-c", f'{bench.recorded} exit 0; env -u LD_PRELOAD {place.python} -c "{script}"')
    check("1 process imported PyTorch without the simulated device" in done.stdout.decode(), f"{done}")


def memtrace_is_killed(bench):
    """The program ends with it: nobody wants its values."""
    place = Place(bench)
    script = f"{bench.recorded} exit 0; echo up; exec sleep {LIMIT_SECONDS}"
    with subprocess.Popen([bench.memtrace, "dry-run", "-q", "-o", "d.trace.zst", "--", "sh", "-c", script],
                          cwd=place.run_folder, env=place.environment(), stdout=subprocess.PIPE) as process:
        check(process.stdout.readline() == b"up\n", "the command does not run")
        process.kill()
        start = time.monotonic()
        check(process.stdout.read() == b"", "an answer")  # to its end: the command holds it open
    check(time.monotonic() - start < LIMIT_SECONDS / 2, "the command outlives memtrace")


def which_python(bench):
    """Said before the run, in the document, and where it is the wrong one."""
    place = Place(bench)
    done = place.dry_run("--", "true")
    check("memtrace: dry run on a simulated H200 141 GB, whose kernels compute nothing\n" in done.stderr.decode(), f"{done}")
    check(f"PyTorch 2.11.0+cu130 of {place.python} (from PATH)" in done.stderr.decode(), f"{done}")
    check("PyTorch" not in place.dry_run("-q", "--", place.python, "-c", "").stderr.decode(), "-q is not quiet")
    document = place.document("--", place.python, "-c", "")
    check(document["python"] == {"path": str(place.python), "chosen_by": "the command", "version": "3.12",
                                 "torch_version": "2.11.0+cu130", "torch_folder": str(place.torch), "cuda_version": "13.0"}, f"{document}")
    place.say(())
    done = place.dry_run("--", "true")
    check(done.returncode == 2 and "this Python comes from PATH" in done.stderr.decode(), f"{done}")
    done = place.dry_run("--", place.python, "-c", "")
    check("pip install torch" in done.stderr.decode() and "comes from" not in done.stderr.decode(), f"{done}")
    place.say([fact.replace("%(torch)s", str(place.env / "other")) for fact in TORCH])
    shutil.copytree(place.torch, place.env / "other")
    done = place.dry_run("-q", "--", place.python, "-c", "import torch")
    check(f"imported the PyTorch in {place.torch}" in done.stdout.decode(), f"{done}")


def environments_that_cannot(bench):
    """One line each, with what to do."""
    place = Place(bench)
    named = ("torch=%(torch)s", "packages=%(folder)s")
    for facts, status, text in (
            ((*named, "torch-__version__=2.11.0+cpu"), 2, "built without CUDA; install a build for CUDA (no GPU is needed): pip install --force-reinstall torch"),
            ((*named, "torch-__version__=2.3.1+cu121", "torch-cuda=12.1"), 2, "too old for a dry run; it needs 2.4 or newer: pip install --upgrade torch"),
            ((*named, "torch-__version__=2.4.0+cu118", "torch-cuda=11.8"), 2, "needs a build for CUDA 12 or newer"),
            ((*named, "torch-__version__=2.11.0+rocm", "torch-hip=7.0"), 2, "another vendor; install a build for CUDA"),
            (("jax=yes",), 2, "has JAX and no PyTorch; a dry run needs PyTorch: pip install torch"),
            ((), 2, "has no PyTorch; a dry run needs PyTorch: pip install torch")):
        place.say(facts)
        done = place.dry_run("--", place.python, "-c", "")
        check(done.returncode == status and text in done.stderr.decode() and not done.stdout, f"{text}: {done}")
        check(len(done.stderr.splitlines()) == 1, f"{text}: {done}")
    place.say(TORCH)
    place.python.write_text(place.python.read_text().replace("version=3.12", "version=3.8"))
    done = place.dry_run("--", place.python, "-c", "")
    check(done.returncode == 2 and "is Python 3.8; a dry run needs 3.9 or newer" in done.stderr.decode(), f"{done}")
    place.say(TORCH)
    program = bytearray((bench.build / "tests" / "recorded").read_bytes())
    program[18:20] = (183).to_bytes(2, "little")  # e_machine: AArch64
    (bench.work / "arm").write_bytes(program)
    (bench.work / "arm").chmod(0o755)
    done = place.dry_run("--", bench.work / "arm")
    check(done.returncode == 2 and b"it is built for another processor; a dry run needs programs for" in done.stderr, f"{done}")
    check(len(done.stderr.splitlines()) == 1 and not done.stdout, f"{done}")
    shutil.copy(bench.build / "tests" / "recorded", bench.work / "setuid")
    if os.geteuid() == 0:
        os.chown(bench.work / "setuid", 65534, 65534)
        (bench.work / "setuid").chmod(0o4755)
        done = place.dry_run("--", bench.work / "setuid", "exit", "0")
        check(done.returncode == 2 and b"put memtrace dry-run after it" in done.stderr, f"{done}")
    shutil.copy(bench.build / "tests" / "recorded", bench.work / "musl")
    (bench.work / "musl").write_bytes((bench.work / "musl").read_bytes().replace(b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-musl-x86_64.so.1\0\0\0"))
    done = place.dry_run("--", bench.work / "musl", "exit", "0")
    check(done.returncode == 2 and b"its C library is not glibc" in done.stderr and not done.stdout, f"{done}")
    check(not place.left() and not (place.cache / "memtrace").exists(), f"{place.left()}")


def failures_of_the_python_part(bench):
    place = Place(bench)
    (place.torch / "__init__.py").write_text(MODULE.replace("class cuda", "class other"))
    script = f"import torch, subprocess; subprocess.call(['{bench.recorded}', 'exit', '0'])"
    done = place.dry_run("-q", "--", place.python, "-c", script)
    check("The Python part of the dry run failed 1 time, first in patch of torch" in done.stdout.decode(), f"{done}")
    check(place.document("--", place.python, "-c", script)["depended_on_data"]["failures"] == 1, "not in the document")


def hopeless(bench):
    """Less than CUDA takes: an answer, also as a document; the command is not run."""
    place = Place(bench)
    done = place.dry_run("--limit", "100MiB", "--", "touch", "ran")
    check(done.returncode == 1 and lines(done)[0].startswith("OUT OF MEMORY (simulated): 100 MiB is less than"), f"{done}")
    done = place.dry_run("--json", "--limit", "100MiB", "--", "touch", "ran")
    document = json.loads(done.stdout)
    check(done.returncode == 1 and document["out_of_memory"] and document["exit_status"] is None, f"{done}")
    check(not place.left(), f"{place.left()}")


def cache_folders(bench):
    """One that cannot be used is passed over or named; the group loses its permission to write."""
    place = Place(bench)
    for mode in (0o775, 0o700):
        (place.cache / "memtrace").mkdir(exist_ok=True)
        (place.cache / "memtrace").chmod(mode)
        done = place.dry_run("--", bench.recorded, "exit", "0")
        check(done.returncode == 0 and (place.cache / "memtrace").stat().st_mode & 0o777 == mode & 0o755, f"{oct(mode)}: {done}")
    real = bench.work / "elsewhere"
    shutil.move(place.cache / "memtrace", real)
    (place.cache / "memtrace").symlink_to(real)
    check(place.document("--", bench.recorded, "exit", "0")["processes"]["with_trace"] == 1, "a link is not followed")
    (place.cache / "memtrace").unlink()
    (place.cache / "memtrace").write_text("")
    done = place.dry_run("--", bench.recorded, "exit", "0")
    check(done.returncode == 0 and [path.name for path in place.tmp.iterdir()] == [f"memtrace-{os.geteuid()}"], f"{done}")
    home = bench.work / "home"
    home.mkdir()
    done = place.dry_run("--", bench.recorded, "exit", "0", HOME=str(home), TMPDIR="/proc/nowhere")
    check(done.returncode == 0 and (home / ".cache" / "memtrace").is_dir(), f"{done}")
    done = place.dry_run("--", bench.recorded, "exit", "0", TMPDIR="/proc/nowhere")
    check(done.returncode == 4 and "XDG_CACHE_HOME" in done.stderr.decode(), f"{done}")
    shutil.rmtree(place.tmp)
    (place.cache / "memtrace").unlink()
    place.tmp.mkdir()
    done = place.dry_run("--", bench.recorded, "exit", "0")
    site, = place.sites()
    if os.geteuid() == 0:  # another user's site is neither used nor changed
        before = sorted(site.iterdir())
        os.chown(site, 65534, 65534)
        site.chmod(0o777)
        done = place.dry_run("--", bench.recorded, "exit", "0")
        check(done.returncode == 4 and f"{site} belongs to another user" in done.stderr.decode(), f"{done}")
        check(sorted(site.iterdir()) == before and not place.unfinished(), f"{sorted(site.iterdir())}")


def documents(bench):
    """A folder of the user, with a file that has a name as memtrace's."""
    folder = bench.work / "documents"
    folder.mkdir(mode=0o700)
    for name in ("thesis.tex", "libmine.so", ".hidden"):
        (folder / name).write_text("years of work")
    return folder


def links_in_the_cache(bench):
    """What they lead to stays: a link in the place of a site, of the user or planted by another one, and one above it."""
    place = Place(bench)
    place.dry_run("--", bench.recorded, "exit", "0")
    site, = place.sites()
    folder = documents(bench)
    names = sorted(folder.iterdir())
    for planted in (False, True):
        shutil.rmtree(site)
        site.symlink_to(folder)
        if planted and os.geteuid() == 0:
            os.lchown(site, 65534, 65534)
            (place.cache / "memtrace").chmod(0o775)
        done = place.dry_run("--", bench.recorded, "exit", "0")
        check(done.returncode == 0 and not site.is_symlink() and site.is_dir(), f"{done}")
        check(sorted(folder.iterdir()) == names, f"{planted}: {sorted(folder.iterdir())}")
    open_to_all = bench.work / "open"
    (open_to_all / "tmp").mkdir(parents=True)
    open_to_all.chmod(0o777)
    done = place.dry_run("--", "touch", "ran", XDG_CACHE_HOME=str(open_to_all), TMPDIR=str(open_to_all / "tmp"))
    check(done.returncode == 4 and not (place.run_folder / "ran").exists(), f"{done}")
    check(done.stderr.decode().endswith(f": other users can write to {open_to_all}; set XDG_CACHE_HOME to a folder that "
                                        "only you can write to\n") and len(done.stderr.splitlines()) == 2, f"{done}")


def data_is_not_run(bench):
    """A file that the command names as data, and whose name is python3; the Python that is run is printed before."""
    place = Place(bench)
    untrusted = bench.work / "untrusted"
    (untrusted / "bin").mkdir(parents=True)
    for path in (untrusted / "python3", untrusted / "bin" / "python3"):
        path.write_text(f"#!/bin/sh\ntouch {bench.work}/was_run\nexit 1\n")
        path.chmod(0o755)
    for name, text in (("tool.py", f"#!{untrusted}/python3\n"), ("train.sh", f"#!/bin/sh\n. {untrusted}/bin/activate\n")):
        (untrusted / name).write_text(text)
        (untrusted / name).chmod(0o755)
    for words in (("ls", "-l", untrusted / "python3"), ("cp", untrusted / "tool.py", "/dev/null"),
                  ("cp", untrusted / "train.sh", "/dev/null"), ("grep", "-r", "x", untrusted / "python3"),
                  ("env", "ls", untrusted / "python3"), ("sh", "-c", "exit 0", untrusted / "python3")):
        done = place.dry_run("--", *words)
        check(f"running {place.python} (from PATH) to find its PyTorch" in done.stderr.decode().splitlines()[0], f"{words}: {done}")
        check(not (bench.work / "was_run").exists(), f"{words}: {done}")
    untrusted.chmod(0o777)
    done = place.dry_run("--", "sh", untrusted / "train.sh")
    check(done.returncode == 2 and f"other users can write to {untrusted}; activate its environment first" in done.stderr.decode(), f"{done}")
    check(not (bench.work / "was_run").exists(), f"{done}")


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def interrupted_early(bench):
    """Ctrl-C while a Python looks for its PyTorch: it ends with memtrace, and so do its children."""
    place = Place(bench)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        pid_file = bench.work / f"pid{number}"
        place.python.write_text(f"#!/bin/sh\nsleep 600 & echo $! >{pid_file}\nwait\n")
        with subprocess.Popen([bench.memtrace, "dry-run", "--", "true"], env=place.environment(), cwd=place.run_folder,
                              start_new_session=True, stderr=subprocess.DEVNULL) as process:
            while not pid_file.exists() or not pid_file.read_text():
                check(process.poll() is None, "it has ended")
                time.sleep(0.01)
            os.killpg(process.pid, number)
            check(process.wait(LIMIT_SECONDS) == -number, f"{process.returncode}")
        end = time.monotonic() + LIMIT_SECONDS
        while is_alive(pid_file.read_text().strip()):
            check(time.monotonic() < end, f"{number}: a child of the Python lives")
    check(not place.left(), f"{place.left()}")


def two_at_once(bench):
    """Both have an answer, one site is there; so after a run that was killed while it made one."""
    place = Place(bench)
    for path in range(40):  # so that it takes a while
        shutil.copy(bench.build / "standin" / "libcuda.so.1", place.torch / "lib" / f"libtorch_{path}.so")
    words = [bench.memtrace, "dry-run", "-q", "--json", "--", bench.recorded, "exit", "0"]
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(subprocess.Popen(words, cwd=place.run_folder, env=place.environment(),
                                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)) for _ in range(4)]
        ended = [process.communicate(timeout=LIMIT_SECONDS) for process in started]
    check(all(json.loads(out)["processes"]["with_trace"] == 1 for out, _ in ended), f"{ended}")
    check(len(place.sites()) == 1 and not place.unfinished(), f"{place.sites()} {place.unfinished()}")
    shutil.rmtree(place.cache / "memtrace")
    with subprocess.Popen(words, cwd=place.run_folder, env=place.environment(), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + LIMIT_SECONDS
        while not (place.cache / "memtrace").exists() or not (place.unfinished() or place.sites()):
            check(time.monotonic() < end, "no site is made")
        process.kill()
    done = place.dry_run("--json", "--", bench.recorded, "exit", "0")
    check(json.loads(done.stdout)["processes"]["with_trace"] == 1 and len(place.sites()) == 1, f"{done}")
    for path in place.unfinished():  # what it left goes when it is a day old
        os.utime(path, (1, 1))
    place.dry_run("--", bench.recorded, "exit", "0")
    check(not place.unfinished(), f"{place.unfinished()}")


if __name__ == "__main__":
    sys.exit(main([crashes, processes, endless, large_binary_output, closed_output, reads_input, signals_of_the_user,
                   foreign_output, no_file_elsewhere, lost_environment, memtrace_is_killed, which_python, environments_that_cannot, failures_of_the_python_part, hopeless,
                   cache_folders, links_in_the_cache, data_is_not_run, interrupted_early, two_at_once]))
