#!/usr/bin/env python3
"""check_signals.py BUILD [CASE...]: signals reach the command as often as they
would without memtrace."""
import os
import pty
import select
import signal
import sys
import time

from support import check, command_of, main

LIMIT_SECONDS = 600


def wait_until(what, condition):
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    check(False, f"it did not happen: {what}")
    return None


def counts(bench):
    """The count of each signal that `recorded signals` got; None until it has begun."""
    try:
        lines = (bench.work / "counts").read_text().splitlines()
    except FileNotFoundError:
        return None
    return {int(number): int(count) for number, count in (line.split() for line in lines)}


def forwarded(bench):
    """Each is sent to memtrace and arrives once."""
    process = bench.start(bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded,
                          "signals", "counts")
    wait_until("the command runs", lambda: counts(bench))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
                   signal.SIGWINCH):
        process.send_signal(number)
        wait_until(f"{number} arrives", lambda n=number: counts(bench)[n])
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LIMIT_SECONDS)
    check(process.returncode == 5, f"{process.returncode} {out} {err}")
    check(set(counts(bench).values()) == {1}, f"{counts(bench)}")
    bench.check_whole(bench.work / "run.trace.zst")


def sent_to_everybody(bench):
    """To the process group, as timeout and shells do: it also arrives once. A signal for
    memtrace alone is handed on before and after."""
    process = bench.start(bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded,
                          "signals", "counts", start_new_session=True)
    wait_until("the command runs", lambda: counts(bench))
    for times in (1, 2, 3):
        send = os.killpg if times == 2 else os.kill
        send(process.pid, signal.SIGUSR1)
        wait_until("it arrives", lambda n=times: counts(bench)[signal.SIGUSR1] >= n)
        process.send_signal(signal.SIGUSR2) # what came before it has been handed on by then
        wait_until("so does this", lambda n=times: counts(bench)[signal.SIGUSR2] >= n)
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=LIMIT_SECONDS)
    check(process.returncode == 5, f"{process.returncode}")
    got = counts(bench)
    check((got[signal.SIGUSR1], got[signal.SIGUSR2], got[signal.SIGTERM]) == (3, 3, 1), f"{got}")


def by_name(bench):
    """Nobody but memtrace goes by its name."""
    process = bench.start(bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded,
                          "signals", "counts")
    wait_until("the command runs", lambda: counts(bench))
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    lines = [open(f"/proc/{child}/cmdline", "rb").read() for child in children]
    check(not any(b"memtrace" in os.path.basename(line.split(b"\0")[0])
                  or b"record" in line.split(b"\0") for line in lines), f"{lines}")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_SECONDS)
    check(process.returncode == 5, f"{process.returncode}")


def ignored(bench):
    """nohup's SIGHUP stays ignored, for both."""
    process = bench.start(bench.memtrace, "record", "-o", "run.trace.zst", "sleep", "1000",
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    child = wait_until("the command runs", lambda: command_of(process, "sleep"))
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_SECONDS)
    check(process.returncode == -signal.SIGTERM, f"{process.returncode} of {child}")


def masks(bench):
    """Blocked and ignored signals of the command are those it has without us."""
    script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
    alone = bench.run("sh", "-c", script)
    done = bench.record("sh", "-c", script)
    check(done.stdout == alone.stdout, f"{done.stdout}, without memtrace {alone.stdout}")


class Terminal:
    """A terminal with a shell-like leader that runs one foreground job."""

    def __init__(self, bench, command):
        self.told, tell = os.pipe()
        self.leader, self.master = pty.fork()
        if self.leader == 0:
            os.chdir(bench.work)
            try:
                self.lead(command, bench.environment(), tell)
            except BaseException as error: # whatever it is must not get back into the test
                os.write(tell, repr(error).encode())
            os._exit(1)
        os.close(tell)

    @staticmethod
    def lead(command, environment, tell):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execve(command[0], command, environment)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.tcsetpgrp(0, os.getpgrp())
                os.write(tell, b"stopped\n")
                os.read(0, 1) # any key: fg
                os.tcsetpgrp(0, job)
                os.killpg(job, signal.SIGCONT)
            else:
                os.write(tell, b"ended %d\n" % os.waitstatus_to_exitcode(status))
                return

    def press(self, key):
        os.write(self.master, key)

    def expect(self, word):
        heard = self.hear()
        check(heard == word, f"{word} was expected of the job: {heard}")

    def hear(self):
        """The next word of the leader; what the job prints goes away."""
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end:
            ready, _, _ = select.select([self.told, self.master], [], [], 1)
            if self.master in ready:
                try:
                    os.read(self.master, 4096)
                except OSError:
                    pass
            if self.told in ready:
                return os.read(self.told, 100).decode().strip()
        check(False, "the terminal is silent")
        return None


def control_c(bench):
    """Once, not twice: from the terminal, not from us."""
    terminal = Terminal(bench, [bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded,
                                "signals", "counts"])
    wait_until("the command runs", lambda: counts(bench))
    for presses in (1, 2):
        terminal.press(b"\x03")
        wait_until("Ctrl-C arrives", lambda n=presses: counts(bench)[signal.SIGINT] >= n)
    terminal.press(b"\x1c") # Ctrl-\: what came before it has been handed on by now
    wait_until("Ctrl-\\ arrives", lambda: counts(bench)[signal.SIGQUIT])
    path = f"/proc/{terminal.leader}/task/{terminal.leader}/children"
    os.kill(int(open(path, encoding="ascii").read()), signal.SIGTERM)
    terminal.expect("ended 5")
    check(counts(bench)[signal.SIGINT] == 2 and counts(bench)[signal.SIGQUIT] == 1,
          f"{counts(bench)}")


def control_z(bench):
    """memtrace stops with its command, and goes on with it."""
    terminal = Terminal(bench, [bench.memtrace, "record", "-o", "run.trace.zst", bench.recorded,
                                "signals", "counts"])
    wait_until("the command runs", lambda: counts(bench))
    for _ in range(2):
        terminal.press(b"\x1a")
        terminal.expect("stopped")
        terminal.press(b"\n")
        before = (bench.work / "counts").stat().st_mtime_ns
        wait_until("it goes on", lambda n=before: (bench.work / "counts").stat().st_mtime_ns != n)
    path = f"/proc/{terminal.leader}/task/{terminal.leader}/children"
    os.kill(int(open(path, encoding="ascii").read()), signal.SIGTERM)
    terminal.expect("ended 5")


if __name__ == "__main__":
    sys.exit(main([forwarded, sent_to_everybody, by_name, ignored, masks, control_c, control_z]))
