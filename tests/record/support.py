"""What the tests of `memtrace record` share: running it on the stand-ins for a
GPU (with MEMTRACE_TEST_DEVICE=gpu: on a real one), and looking at what it left."""
import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import thread_sanitizer  # pylint: disable=wrong-import-position

LIMIT_SECONDS = 600
REAL = os.environ.get("MEMTRACE_TEST_DEVICE") == "gpu"


class Bench:
    """Programs and folders of one build; `work` is an empty folder of the test."""

    def __init__(self, build, work):
        self.build = pathlib.Path(build)
        self.memtrace = str(self.build / "memtrace")
        self.recorded = str(self.build / "tests" / "recorded")
        self.static = str(self.build / "tests" / "recorded_static")
        self.work = pathlib.Path(work)
        self.preload = thread_sanitizer.preload(self.build / "libmemtrace-inject.so")

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("MEMTRACE_", "LD_PRELOAD", "CUDA_", "NVTX_"))
                or name.startswith("MEMTRACE_STANDIN")}
        if not REAL:
            kept["LD_LIBRARY_PATH"] = str(self.build / "standin")
            kept["MEMTRACE_CUPTI"] = str(self.build / "standin" / "libcupti.so.13")
        kept.update(more)
        return kept

    def run(self, *command, stdin=b"", environment=None, **more):
        words = [str(word) for word in command]
        environment = environment or self.environment()
        if any(sys.executable in word for word in words):
            environment.update(self.preload)
        given = {"input": stdin} if stdin and isinstance(stdin, bytes) else {"stdin": stdin or subprocess.DEVNULL}
        return subprocess.run(words, cwd=more.pop("cwd", self.work), env=environment, **given,
                              capture_output=True, timeout=LIMIT_SECONDS, **more)

    def start(self, *command, **more):
        return subprocess.Popen([str(word) for word in command], cwd=self.work,
                                env=self.environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def record(self, *words, **more):
        """`memtrace record -o FILE words`: what it did, with the trace it left."""
        return self.run(self.memtrace, "record", "--no-summary", "-o", "run.trace.zst", "--", *words,
                        **more)

    def traces(self, folder=None):
        return sorted((folder or self.work).glob("*.trace.zst"))

    def info(self, trace):
        done = self.run(self.memtrace, "info", "--json", trace)
        check(done.returncode == 0, f"info {trace}: {done.stderr.decode()}")
        return json.loads(done.stdout)

    def events(self, trace, kind=None, heap="driver"):
        """Events of a trace, as `dump --json` has them. A cut trace may have none."""
        done = self.run(self.memtrace, "dump", "--json", trace)
        check(done.returncode == 0 or b"before its first event" in done.stderr, f"dump {trace}: {done.stderr.decode()}")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return [e for e in events if (kind is None or e["kind"] == kind)
                and (heap is None or e.get("heap", heap) == heap)]

    def sizes(self, trace):
        return [event["size"] for event in self.events(trace, "alloc")]

    def check_whole(self, trace, allocations=3):
        """The trace is closed, undamaged, and holds what use_gpu() of recorded.c does."""
        facts = self.info(trace)["integrity"]
        check(facts["closed"] and not facts["cut"] and not facts["frames_damaged"]
              and not facts["events_invalid"], f"{trace} is not whole: {facts}")
        wanted = [1000 << 10, 2000 << 10, 3000 << 10]
        check(self.sizes(trace)[:allocations] == wanted[:allocations], f"{trace}: {self.sizes(trace)}")

    def check_left(self, *names):
        """These files, and no others, are in the folder; summaries of traces do not count."""
        found = sorted(path.name for path in self.work.iterdir() if path.suffix != ".mtsum")
        check(found == sorted(names), f"left behind: {found}, wanted {sorted(names)}")


NO_NEW_PRIVILEGES, SET_SECCOMP, SECCOMP_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


def refusing(number, error):
    """For preexec_fn: the system call of this number fails in the child (a seccomp filter), which ends with 77 if
    there is no seccomp."""
    def refuse():
        lines = ((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, REFUSE | error), (0x06, 0, 0, ALLOW))
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
        program = struct.pack("@HP", len(lines), ctypes.addressof(code))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, SECCOMP_FILTER, program, 0, 0):
            os._exit(77)
    return refuse


def command_of(process, name):
    """The process that `memtrace record` runs, once it is the program of that
    name; None before."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        for child in file.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                if comm.read().strip() == name:
                    return int(child)
    return None


class Wrong(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


def only(things):
    things = list(things)
    check(len(things) == 1, f"one was expected: {things}")
    return things[0]


def without_spaces(build, place):
    """A link to the build if its path has a space: scripts of the tests name programs without quotes."""
    link = place / "build"
    if " " in str(build) and not link.is_symlink():
        link.symlink_to(build)
    return link if link.is_symlink() else build


def main(cases):
    """run.py BUILD [CASE...]: runs the cases, each in an empty folder."""
    build, names = sys.argv[1], sys.argv[2:]
    failed = []
    chosen = [case for case in cases if not names or case.__name__ in names]
    with tempfile.TemporaryDirectory() as place:
        for case in chosen:
            with tempfile.TemporaryDirectory() as work:
                try:
                    case(Bench(without_spaces(pathlib.Path(build).resolve(), pathlib.Path(place)), work))
                except Exception as error:  # pylint: disable=broad-except
                    failed.append(case.__name__)
                    print(f"{case.__name__}: {error}")
                    if not isinstance(error, Wrong):
                        traceback.print_exc()
    print(f"{len(chosen)} cases, {len(failed)} failed")
    return 1 if failed or not chosen else 0
