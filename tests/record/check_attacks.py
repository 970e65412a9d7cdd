#!/usr/bin/env python3
"""check_attacks.py BUILD [CASE...]: `recover`, and `record` at its end, meet files that
are not what they look like. Whatever lies beside a tape, nothing but the trace that
the tape names is replaced; what is not replaced stays byte for byte as it was."""
import os
import shutil
import struct
import sys
import time

import tapes
from support import check, main

GOOD = "run.trace.zst"


def recover(bench, name=GOOD):
    done = bench.run(bench.memtrace, "recover", name)
    check(done.returncode in (0, 3, 4), f"recover {name}: {done}")
    return done


def check_refused(bench, paths, name=GOOD, word=b""):
    """Exit status 3, one line that has `word`, and all files are what they were."""
    before = tapes.bytes_of(*paths)
    left = sorted(bench.work.iterdir())
    done = recover(bench, name)
    check(done.returncode == 3 and done.stderr.count(b"\n") == 1 and word in done.stderr, f"{done}")
    check(tapes.bytes_of(*paths) == before, f"{name}: a file was changed: {done.stderr}")
    check(sorted(bench.work.iterdir()) == left, f"left behind: {sorted(bench.work.iterdir())}")


def text_beside_a_tape(bench):
    """A tape by the name of a file that is no trace."""
    text, tape = bench.work / "report.txt", bench.work / "report.txt.tape"
    text.write_text("precious\n" * 3000)
    for trace_bytes in (16, 0):
        tapes.make(tape, trace_bytes)
        check_refused(bench, [text, tape], "report.txt")
        check_refused(bench, [text, tape], "report.txt.tape")


def links_are_not_followed(bench):
    """The trace is a link: to a file that is no trace, and to the right trace."""
    victim = bench.work / "victim.db"
    victim.write_bytes(b"0123456789" * 1000)
    link, tape = bench.work / "x.trace.zst", bench.work / "x.trace.zst.tape"
    link.symlink_to("victim.db")
    tapes.make(tape, 9)
    check_refused(bench, [victim, tape], "x.trace.zst", b"symbolic link")
    trace, tape = tapes.leave(bench)
    moved = trace.rename(bench.work / "moved.trace.zst")
    trace.symlink_to("moved.trace.zst")
    check_refused(bench, [moved, tape], word=b"symbolic link")


def names_of_temporaries(bench):
    """A link that lies where an earlier version wrote its new trace."""
    trace, _ = tapes.leave(bench)
    other = bench.work / "other.txt"
    other.write_text("precious\n")
    (bench.work / f"{GOOD}.recovered").symlink_to("other.txt")
    check(recover(bench).returncode == 0, "a sound trace")
    check(other.read_text() == "precious\n", "the link was followed")
    check(not trace.is_symlink(), "the trace is a link now")
    bench.check_whole(trace)


def tape_of_another_trace(bench):
    """A stale tape beside a later, good trace."""
    _, tape = tapes.leave(bench)
    kept = tape.rename(bench.work / "kept")
    bench.record(bench.recorded, "exit", "0")
    kept.rename(tape)
    check_refused(bench, [bench.work / GOOD, tape], word=b"another recording")
    bench.check_whole(bench.work / GOOD)


def tape_is_no_file(bench):
    """A link, a pipe, a folder, a device by the name of a tape."""
    trace, tape = tapes.leave(bench)
    moved = tape.rename(bench.work / "moved.tape")
    tape.symlink_to("moved.tape")
    check_refused(bench, [trace, moved])
    tape.unlink()
    tape.symlink_to("/dev/zero")
    check_refused(bench, [trace])
    tape.unlink()
    os.mkfifo(tape)
    check_refused(bench, [trace])
    tape.unlink()
    tape.mkdir()
    check_refused(bench, [trace])


def tape_shrinks(bench):
    """The tape is cut while it is read: an error, not a signal."""
    trace, tape = tapes.leave(bench)
    good = tapes.bytes_of(trace, tape)
    for number in range(40):
        for path, data in zip((trace, tape), good):
            path.write_bytes(data)
        process = bench.start(bench.memtrace, "recover", GOOD)
        time.sleep(0.004 * number)
        try:
            os.truncate(tape, 8192)
        except FileNotFoundError:
            pass
        _, err = process.communicate(timeout=600)
        check(process.returncode in (0, 3), f"{number}: {process.returncode} {err}")
        if process.returncode == 0:
            bench.check_whole(trace)
        else:
            check(trace.read_bytes() == good[0], f"{number}: the trace was changed")


def damaged_trace(bench):
    """What was written cannot be read: the tape cannot replace it, so both are kept."""
    trace, tape = tapes.leave(bench)
    header_bytes = 8 + struct.unpack_from("<I", trace.read_bytes(), 4)[0]
    size = tapes.commit_of(tape)[0]
    check(size > header_bytes, "no events in the file yet")
    good = trace.read_bytes()
    at = (header_bytes + size) // 2
    tapes.change(trace, at, bytes([good[at] ^ 0x55]))
    check_refused(bench, [trace, tape], word=b"damaged")
    trace.write_bytes(good[:size - 1])
    check_refused(bench, [trace, tape], word=b"shorter")


def counts_differ(bench):
    """The tape says that more events were written than the trace holds."""
    trace, tape = tapes.leave(bench)
    written, at = tapes.commit_of(tape)[2], tapes.commit_of(tape)[4]
    tapes.change(tape, at + 16, struct.pack("<Q", written + 1))
    check_refused(bench, [trace, tape], word=b"of the")
    # the same of a trace that its process closed in order
    tapes.change(tape, at + 16, struct.pack("<Q", written))
    check(recover(bench).returncode == 0, "a sound trace")
    closed = trace.read_bytes()
    trace, tape = tapes.leave(bench)
    tapes.change(tape, tapes.CLOSED, struct.pack("<I", 1))
    check_refused(bench, [trace, tape], word=b"end is missing")
    check(len(closed) > 0, "the trace")


def time_goes_back(bench):
    """What the tape adds would come before what the trace holds: the tape is damaged, and nobody is
    told that its process runs."""
    trace, tape = tapes.leave(bench)
    at = tapes.commit_of(tape)[4]
    tapes.change(tape, at + 32, struct.pack("<Q", 1))
    tapes.change(tape, tapes.DROPPED, struct.pack("<Q", 7))
    check_refused(bench, [trace, tape], word=b"the tape is damaged: event")


def tape_that_stayed(bench):
    """The tape could not be removed after it had been added: nothing is added twice."""
    trace, tape = tapes.leave(bench)
    kept = tape.read_bytes()
    check(recover(bench).returncode == 0, "a sound trace")
    whole = trace.read_bytes()
    tape.write_bytes(kept)
    check(recover(bench).returncode == 0, "a second time")
    check(trace.read_bytes() == whole and not tape.exists(), "it was added twice")


def copied_folder(bench):
    """A trace and its tape that were copied are still each other's."""
    trace, tape = tapes.leave(bench)
    (bench.work / "copy").mkdir()
    for path in (trace, tape):
        shutil.copy(path, bench.work / "copy")
    check(recover(bench, f"copy/{GOOD}").returncode == 0, "a copy")
    bench.check_whole(bench.work / "copy" / GOOD)


def torn_header(bench):
    """The header was being written when the process died: the file itself counts."""
    trace, tape = tapes.leave(bench)
    end = 8 + struct.unpack_from("<I", trace.read_bytes(), 4)[0]
    tapes.change(trace, end - 4, b"torn")
    copy, copied_tape = bench.work / "copy.trace.zst", bench.work / "copy.trace.zst.tape"
    shutil.copy(trace, copy)
    shutil.copy(tape, copied_tape)
    check_refused(bench, [copy, copied_tape], "copy.trace.zst", b"another recording")
    check(recover(bench).returncode == 0, "the file itself")
    bench.check_whole(trace)
    check(bench.info(trace)["header"]["process_id"], "the facts of the header are lost")


def owner_and_mode(bench):
    """The new trace has the mode of the old one; without an old one, its owner's alone."""
    trace, tape = tapes.leave(bench)
    kept = tapes.bytes_of(trace, tape)
    trace.chmod(0o640)
    check(recover(bench).returncode == 0, "a sound trace")
    check(trace.stat().st_mode & 0o7777 == 0o640, f"{trace.stat().st_mode:o}")
    tape.write_bytes(kept[1])
    tapes.change(tape, tapes.commit_of(tape)[4], bytes(tapes.COMMIT_BYTES))  # nothing was written
    trace.unlink()
    check(recover(bench).returncode == 0, "a tape alone")
    check(trace.stat().st_mode & 0o7777 == 0o600, f"{trace.stat().st_mode:o}")
    bench.check_whole(trace)


def program_replaces_its_trace(bench):
    """`record` at its end: the program has put a link where its trace was."""
    victim = bench.work / "victim.db"
    victim.write_bytes(b"0123456789" * 1000)
    before = victim.read_bytes()
    done = bench.record("sh", "-c", f"'{bench.recorded}' signal 9; rm {GOOD}; "
                                    f"ln -s victim.db {GOOD}; exit 7")
    check(done.returncode == 7 and b"symbolic link" in done.stderr, f"{done}")
    check(victim.read_bytes() == before, "the link was followed")


def program_lies_in_the_list(bench):
    """`record` at its end: the program has put other people's files on the list."""
    text, tape = bench.work / "report.txt", bench.work / "report.txt.tape"
    text.write_text("precious\n" * 3000)
    tapes.make(tape, 16)
    before = tapes.bytes_of(text, tape)
    done = bench.record("sh", "-c", f'echo "{text}" >>"$MEMTRACE_MANIFEST"; exit 7')
    check(done.returncode == 7 and b"report.txt" in done.stderr, f"{done}")
    check(tapes.bytes_of(text, tape) == before, "a file on the list was changed")


def tapes_of_any_size(bench):
    """Geometries that no process makes: refused without taking the memory."""
    trace, tape = tapes.leave(bench)
    tapes.make(tape, 16)
    good = tape.read_bytes()[:4096]
    for slots, log in ((16, 1 << 45), (1 << 20, 1 << 16), (65536, 1 << 40)):
        end = 4096 + slots * tapes.SLOT_BYTES
        header = bytearray(good)
        struct.pack_into("<IQQQ", header, 12, slots, end + log, end, log)
        with open(tape, "wb") as file:
            file.write(header)
            try:
                file.truncate(end + log)
            except OSError:  # larger than files of this disk can be
                continue
        before = trace.read_bytes()
        done = recover(bench)
        check(done.returncode == 3 and trace.read_bytes() == before, f"{slots} slots: {done}")


def ring_without_a_part(bench):
    """Tapes of a ring whose current part is none: of no bytes, and a trace to which a tape was added."""
    trace, tape = tapes.leave(bench)
    good = tapes.bytes_of(trace, tape)
    at = tapes.commit_of(tape)[4]
    tapes.change(tape, tapes.RING, struct.pack("<Q", 1_000_000_000))
    tapes.change(tape, at, bytes(tapes.COMMIT_BYTES))
    tapes.change(tape, at + tapes.PART, struct.pack("<Q", 1))
    check_refused(bench, [trace, tape], word=b"damaged")
    tape.write_bytes(good[1])
    check(recover(bench).returncode == 0, "a sound trace")
    part = bench.work / f"{GOOD}.part"
    trace.rename(part)
    trace.write_bytes(good[0])
    tape.write_bytes(good[1])
    tapes.change(tape, tapes.RING, struct.pack("<Q", 1_000_000_000))
    tapes.change(tape, at + tapes.PART, struct.pack("<Q", 1))
    check_refused(bench, [trace, tape, part], word=b"the tape is damaged")
    part.unlink()


def foreign_file_for_a_part(bench):
    """The current part is TRACE.part; a file of somebody else at TRACE is not replaced."""
    trace, tape = tapes.leave(bench)
    at = tapes.commit_of(tape)[4]
    part = trace.rename(bench.work / f"{GOOD}.part")
    trace.write_text("mine")
    tapes.change(tape, tapes.RING, struct.pack("<Q", 1_000_000_000))
    tapes.change(tape, at + tapes.PART, struct.pack("<Q", 1))
    check_refused(bench, [trace, tape, part], word=b"another recording")
    part.unlink()


def tape_of_another_version(bench):
    trace, tape = tapes.leave(bench)
    tapes.change(tape, tapes.TAPE_VERSION, struct.pack("<I", tapes.VERSION - 1))
    check_refused(bench, [trace, tape], word=b"recover it with the memtrace that recorded it")


if __name__ == "__main__":
    sys.exit(main([text_beside_a_tape, links_are_not_followed, names_of_temporaries,
                   tape_of_another_trace, tape_is_no_file, tape_shrinks, damaged_trace,
                   counts_differ, time_goes_back, tape_that_stayed, copied_folder, torn_header, owner_and_mode,
                   program_replaces_its_trace, program_lies_in_the_list, tapes_of_any_size,
                   ring_without_a_part, foreign_file_for_a_part, tape_of_another_version]))
