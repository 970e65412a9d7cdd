#!/usr/bin/env python3
"""check_completion.py PROGRAM: what shells complete is what the program accepts, and the scripts of
bash and fish offer it. Scripts for shells that are not installed are left out."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "cli" / "completions"
CAPTURE = str(ROOT / "fixtures" / "captures" / "seq2seq.pickle.zst")
# Command lines in which each value that completion offers for the last word must be accepted.
ACCEPTED = [
    (["render", "timeline", CAPTURE, "-o", "p.svg", "--force", "--by"], 4),
    (["render", "timeline", CAPTURE, "-o", "p.svg", "--force", "--theme"], 3),
    (["render", "timeline", CAPTURE, "-o", "p.svg", "--force", "--x"], 2),
    (["render", "address", CAPTURE, "-o", "p.svg", "--force", "--order"], 5),
    (["live", CAPTURE, "--by"], 6),
    (["live", CAPTURE, "--at"], 10),
    (["live", CAPTURE, "--format"], 3),
    (["replay", CAPTURE, "--policy"], 5),
    (["record", "-q", "--stacks"], 5),
    (["record", "-q", "--follow"], 2),
    (["record", "-q", "--phases"], 3),
]


def check(condition, message):
    if not condition:
        sys.exit(f"check_completion: {message}")


def candidates(program, *words):
    done = subprocess.run([program, words[0], "--completion-helper", *words[1:]], check=True,
                          capture_output=True, text=True)
    check(not done.stderr, f"{words}: {done.stderr}")
    return done.stdout.splitlines()


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
    check(any(one.startswith("phase:step#1") for one in candidates(program, "live", CAPTURE, "--at", "phase:step#1")),
          "phases of the trace")
    for broken in ("/nowhere", "/dev/null", __file__):
        check(candidates(program, "live", broken, "--at", "phase:") == [], f"{broken} has phases")


def bash(program, line):
    script = (f'source "{SCRIPTS}/memtrace.bash"; COMP_LINE=$1 COMP_POINT=${{#1}}; '
              'shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _memtrace; printf "%s\\n" "${COMPREPLY[@]}"')
    words = line.replace("=", " = ").split(" ")
    environment = dict(os.environ, PATH=f"{pathlib.Path(program).parent}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", script, "bash", line, *words], capture_output=True, text=True,
                          env=environment, check=False)
    return done.stdout.split("\n")[:-1]


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


def zsh_script():
    if shutil.which("zsh"):
        done = subprocess.run(["zsh", "-n", SCRIPTS / "_memtrace"], capture_output=True, text=True, check=False)
        check(done.returncode == 0, done.stderr)


def main(program):
    words_at_the_cursor(program)
    with tempfile.TemporaryDirectory() as work:
        values_are_accepted(program, work)
    bash_script(program)
    fish_script(program)
    zsh_script()


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()))
