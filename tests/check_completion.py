#!/usr/bin/env python3
"""check_completion.py PROGRAM: what shells complete is what the program accepts, and the scripts of
bash and fish offer it. Scripts for shells that are not installed are left out."""
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "cli" / "completions"
CAPTURE = str(ROOT / "fixtures" / "captures" / "seq2seq.pickle.zst")
# Command lines in which each value that completion offers for the last word must be accepted.
ACCEPTED = [
    (["render", "timeline", CAPTURE, "-o", "p.svg", "--force", "--by"], 4),
    (["render", "timeline", CAPTURE, "-o", "p.svg", "--force", "--theme"], 3),
    (["render", "timeline", CAPTURE, "-o", "p.svg", "--force", "--x"], 2),
    (["live", CAPTURE, "--by"], 6),
    (["live", CAPTURE, "--at"], 10),
    (["replay", CAPTURE, "--policy"], 5),
    (["record", "-q", "--stacks"], 5),
    (["record", "-q", "--follow"], 2),
    (["record", "-q", "--phases"], 3),
]


# Names of phases that do something in a shell, and names that a terminal does not show unchanged.
HOSTILE = ["$(touch${IFS}evil)", "`touch${IFS}evil`", "a;touch${IFS}evil", "x&&y", "it's", "a b", "{a,b}", "~", "*", "a!b",
           "a\\b", "(x)", "a>evil"]
HIDDEN = ["esc\x1b[31m", "nl\n$(touch evil)", "\u202ex"]
BUSY_RETRIES = 60  # the program stops reading a trace after two seconds, however busy the machine is


def check(condition, message):
    if not condition:
        sys.exit(f"check_completion: {message}")


def candidates(program, *words):
    done = subprocess.run([program, words[0], "--completion-helper", *words[1:]], check=True,
                          capture_output=True, text=True)
    check(not done.stderr, f"{words}: {done.stderr}")
    return done.stdout.splitlines()


def phases(program, trace, begin):
    """The offered phases of a trace. Asks again while there are none."""
    for _ in range(BUSY_RETRIES):
        offered = candidates(program, "live", str(trace), "--at", begin)
        if any(one.startswith("phase:") for one in offered):
            break
    return offered


def answer(program, work, words, value):
    """The exit status and the error, without the value: equal for all values that are unknown."""
    command = [program, *words, value, *(["--", "true"] if words[0] == "record" else [])]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.partition(";")[0].replace(value, "")


def values_are_accepted(program, work):
    for words, least in ACCEPTED:
        offered = candidates(program, *words, "")
        check(len(offered) >= least, f"{words}: {offered}")
        unknown = answer(program, work, words, "no-such-value")
        check(unknown[0] == 2, f"{words}: any value is accepted")
        # The fixture has hundreds of phases, which only differ in their names.
        for value in offered[:12]:
            check(answer(program, work, words, value) != unknown, f"{words}: {value} is unknown")


def words_at_the_cursor(program):
    check(candidates(program, "fit", "x", "--policy", "py") == ["pytorch"], "--policy py")
    check(candidates(program, "fit", "x", "--policy=py") == ["--policy=pytorch"], "--policy=py")
    check(candidates(program, "render", "time") == ["timeline"], "a chart")
    check(candidates(program, "export", "fold") == ["folded"], "a format")
    check("--limit=" in candidates(program, "fit", "--l"), "an option")
    check(candidates(program, "fit", "") == [], "files are the shell's")
    check(phases(program, CAPTURE, "phase:step#1"), "phases of the trace")
    for broken in ("/nowhere", "/dev/null", __file__):
        check(candidates(program, "live", broken, "--at", "phase:") == [], f"{broken} has phases")


def bash(program, line):
    script = (f'source "{SCRIPTS}/memtrace.bash"; COMP_LINE=$1 COMP_POINT=${{#1}}; '
              'shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _memtrace; printf "%s\\n" "${COMPREPLY[@]}"')
    words = line.replace("=", " = ").replace(":", " : ")
    words = re.split(r"(?<!\\) ", words)
    environment = dict(os.environ, PATH=f"{pathlib.Path(program).parent}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", script, "bash", line, *words], capture_output=True, text=True,
                          env=environment, check=False)
    return done.stdout.split("\n")[:-1]


def phases_of_bash(program, line):
    for _ in range(BUSY_RETRIES):
        inserted = bash(program, line)
        if inserted:
            break
    return inserted


def snapshot(names, repeated=1):
    """A snapshot of PyTorch with a phase of each name. A repeated event takes two bytes."""
    def event(i, action):
        return {"action": action, "addr": (i + 1) << 12, "size": 512, "stream": 0, "time_us": i, "frames": []}

    events = [event(i, action) for i in range(10 * len(names)) for action in ("alloc", "free_requested", "free_completed")]
    marks = [{"name": name, "stage": stage, "device": 0, "time_us": 10 * i + (9 if stage == "END" else 0)}
             for i, name in enumerate(names) for stage in ("START", "END")]
    return pickle.dumps({"segments": [], "device_traces": [events + events[-3:] * repeated], "external_annotations": marks})


def hostile_phases(program, work):
    """A candidate of bash is one word, and its value is the name of the phase."""
    trace = work / "hostile.pickle"
    trace.write_bytes(snapshot(HOSTILE + HIDDEN))
    offered = phases(program, trace, "phase:")
    check(sorted(offered) == sorted(f"phase:{name}" for name in HOSTILE), f"phases of the trace: {offered}")
    inserted = phases_of_bash(program, f"memtrace live {trace} --at phase:")
    check(len(inserted) == len(HOSTILE), f"bash offers {inserted}")
    for word in inserted:
        done = subprocess.run(["bash", "-c", f"printf '%s\\0' phase:{word}"], cwd=work, capture_output=True, text=True,
                              check=False)
        check(done.stdout.rstrip("\0") in offered, f"bash inserts {word!r}, which it reads as {done.stdout!r}")
    check(not (work / "evil").exists(), "a shell executed the name of a phase")
    check(phases_of_bash(program, f"memtrace live {trace} --at phase:a\\ ") == ["a\\ b"], "a word with a backslash")


def slow_traces(program, work):
    """A trace that takes long to read offers no phases, and standard input is not read."""
    (work / "slow.pickle").write_bytes(snapshot(["x"], 2_500_000))
    offered = candidates(program, "live", str(work / "slow.pickle"), "--at", "")
    check("peak" in offered, f"values that are in no trace: {offered}")
    check(not any(one.startswith("phase:") for one in offered), "phases of a trace that takes long to read")
    (work / "-").write_bytes(b"x")
    reading, writing = os.pipe()
    done = subprocess.run([program, "live", "--completion-helper", "-", "--at", "phase:"], cwd=work, stdin=reading,
                          capture_output=True, text=True, check=True, timeout=600)
    check(not done.stdout, "phases of standard input")
    os.close(reading)
    os.close(writing)


def arguments_of_other_programs(program):
    check("--stacks=" in candidates(program, "record", "--st"), "an option of record")
    check("-o" in candidates(program, "record", "-"), "options of record")
    for words in (["--", "python", "--st"], ["--", "-"], ["python", "--st"], ["-q", "python", "-"]):
        for command in ("record", "dry-run"):
            check(candidates(program, command, *words) == [], f"{command} {words}")
    for word in ("version", "--version", "-V", "--help", "-h"):
        check(candidates(program, word, "") == [], f"{word} prints candidates")


def bash_script(program):
    check(bash(program, "memtrace recor") == ["record"], "a command")
    check(bash(program, "memtrace fit x --policy py") == ["pytorch"], "a value")
    check(bash(program, "memtrace fit x --policy=py") == ["pytorch"], f"{bash(program, 'memtrace fit x --policy=py')}")
    cards = bash(program, "memtrace dry-run --device L4")
    check(cards == ["L4\\ 24\\ GB", "L40S\\ 48\\ GB"], f"names with blanks are quoted: {cards}")


def fish_script(program):
    if not shutil.which("fish"):
        return
    for line, wanted in (("memtrace recor", "record"), ("memtrace fit x --policy py", "pytorch"),
                         ("memtrace render timel", "timeline")):
        with tempfile.TemporaryDirectory() as home:
            environment = dict(os.environ, HOME=home, PATH=f"{pathlib.Path(program).parent}:{os.environ['PATH']}")
            done = subprocess.run(["fish", "-c", f'source "{SCRIPTS}/memtrace.fish"; complete -C "{line}"'],
                                  capture_output=True, text=True, env=environment, check=False)
        check(wanted in done.stdout.split(), f"fish: {line}: {done.stdout}{done.stderr}")


def zsh_script(program):
    """zsh quotes what compadd gets. A function replaces it here."""
    if not shutil.which("zsh"):
        return
    script = (f'compadd() {{ print -rl -- ${{@:#-*}} }}; _files() {{ print files }}; _memtrace() {{ source "{SCRIPTS}/_memtrace" }}; '
              'words=("$@") CURRENT=$#; _memtrace')
    environment = dict(os.environ, PATH=f"{pathlib.Path(program).parent}:{os.environ['PATH']}")
    for words, wanted in ((["memtrace", "recor"], ["record"]), (["memtrace", "fit", "x", "--policy", "py"], ["pytorch"]),
                          (["memtrace", "live", CAPTURE.replace("seq", "\\seq"), "--at", "oo"], ["oom"]),
                          (["memtrace", "fit", ""], ["files"])):
        done = subprocess.run(["zsh", "-fc", script, "zsh", *words], capture_output=True, text=True, env=environment,
                              check=False)
        check(done.stdout.split() == wanted, f"zsh: {words}: {done.stdout}{done.stderr}")


def main(program):
    words_at_the_cursor(program)
    arguments_of_other_programs(program)
    with tempfile.TemporaryDirectory() as work:
        values_are_accepted(program, work)
        hostile_phases(program, pathlib.Path(work))
        slow_traces(program, pathlib.Path(work))
    bash_script(program)
    fish_script(program)
    zsh_script(program)


if __name__ == "__main__":
    main(str(pathlib.Path(fast_program(sys.argv[1])).resolve()))
