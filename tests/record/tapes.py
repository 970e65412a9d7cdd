"""Tapes for tests: made by hand, or left behind by a process that was killed together
with `memtrace record`. The layout is that of collector/tape/tape.h, which belongs to
one version of memtrace: a change there changes this file."""
import os
import signal
import struct
import time

from support import check, command_of

SLOTS, SLOT_BYTES, PAGE_BYTES, LOG_BYTES = 16, 32768, 4096, 1 << 16
MAGIC, VERSION = 0x31657061746d656d, 4
# offsets in the header
CLOSED, COMMITS, CURRENT, DROPPED, ASKED, NEXT_SEQ = 164, 168, 328, 360, 368, 440
COMMIT_BYTES, PART, SAVE_REASONS, RING, TAPE_VERSION = 80, 40, 56, 72, 8  # PART, SAVE_REASONS: in a commit


def make(path, trace_bytes, next_seq=5, recording_id=4711):
    """A sound, empty tape which says that its trace is `trace_bytes` long."""
    end = PAGE_BYTES + SLOTS * SLOT_BYTES
    header = bytearray(PAGE_BYTES)
    struct.pack_into("<QIIQQQQ", header, 0, MAGIC, VERSION, SLOTS, end + LOG_BYTES, end, LOG_BYTES,
                     PAGE_BYTES)
    struct.pack_into("<QQQQQQ", header, 48, 0, 1_700_000_000_000_000_000, 1, 0, 0, recording_id)
    for which in range(2):
        struct.pack_into("<Q", header, COMMITS + which * COMMIT_BYTES, trace_bytes)
    struct.pack_into("<Q", header, NEXT_SEQ, next_seq)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(end + LOG_BYTES)


def is_running(pid):
    """Not even a zombie without threads: that has closed its files."""
    try:
        if len(os.listdir(f"/proc/{pid}/task")) > 1:
            return True
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_written(tape):
    """All events are in the file: none has come for some periods of the writer."""
    before, after = -1, 0
    while not after or before != after:
        before = after
        time.sleep(0.3)
        after = commit_of(tape)[2]


def leave(bench, name="run.trace.zst"):
    """Kills `memtrace record` and its command: the trace, with its tape beside it, of a
    process that made three allocations."""
    flag = bench.work / "flag"
    flag.touch()
    process = bench.start(bench.memtrace, "record", "-o", name, bench.recorded, "wait", flag)
    trace = bench.work / name
    tape = bench.work / f"{name}.tape"
    while not tape.exists() or not commit_of(tape)[0]:
        check(process.poll() is None, f"it ended: {process.returncode}")
        time.sleep(0.001)
    child = command_of(process, "recorded")
    wait_until_written(tape)
    process.kill()
    process.wait(timeout=600)
    os.kill(child, signal.SIGKILL)
    while is_running(child):
        time.sleep(0.001)
    process.communicate(timeout=600)  # the command held the pipes, too
    flag.unlink()
    for left in bench.work.glob(".memtrace-*"):
        left.unlink()
    return trace, tape


def commit_of(tape):
    """trace_bytes, next_raw, events_written, dropped_written of the last commit, and
    where it is in the file."""
    with open(tape, "rb") as file:
        header = file.read(PAGE_BYTES)
    if len(header) < PAGE_BYTES:
        return (0, 0, 0, 0, COMMITS)
    at = COMMITS + (struct.unpack_from("<I", header, CURRENT)[0] & 1) * COMMIT_BYTES
    return struct.unpack_from("<QQQQ", header, at) + (at,)


def change(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def bytes_of(*paths):
    return [path.read_bytes() for path in paths]
