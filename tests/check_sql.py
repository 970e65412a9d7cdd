#!/usr/bin/env python3
"""check_sql.py PROGRAM FIXTURES: `memtrace sql`. The database beside a recording: when it is made, and
what it never replaces. What a database of another program, of a newer memtrace or of nobody is
answered. Limits and forms of answers. docs/sql.md has every table and column."""
import csv
import io
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ABSENT = "this memtrace was built without SQLite"
LIMIT_SECONDS = 100


def check(condition, message):
    if not condition:
        raise SystemExit(f"check_sql: {message}")


class Bench:
    def __init__(self, program, fixtures, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), pathlib.Path(folder)
        self.capture = pathlib.Path(fixtures).resolve() / "captures" / "leak.pickle.zst"
        self.run_path = self.folder / "run.pickle.zst"
        self.kept = self.folder / "run.pickle.zst.memtrace.db"
        self.temporary = self.folder / "temporary"
        self.environment = {**os.environ, "TMPDIR": str(self.temporary), "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        self.clean()

    def clean(self):
        for entry in self.folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        self.temporary.mkdir()
        shutil.copyfile(self.capture, self.run_path)

    def run(self, *words, status=0, **options):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, env=self.environment,
                              capture_output=True, check=False, timeout=LIMIT_SECONDS, **options)
        check(status is None or done.returncode == status, f"{words}: {done}")
        return done

    def sql(self, *words, **options):
        return self.run("sql", *words, **options)

    def ask(self, path, statement, *words):
        """The rows, through JSON."""
        return json.loads(self.sql(path, statement, "--json", "-q", *words).stdout)["rows"]

    def fails(self, words, status, text, **options):
        done = self.sql(*words, status=status, **options)
        said = done.stderr.decode()
        check(not done.stdout and text in said and said.count("\n") == 1, f"{words}: {done}")

    def names(self):
        return sorted(entry.name for entry in self.folder.iterdir())


BOTH = ["run.pickle.zst", "run.pickle.zst.memtrace.db", "temporary"]


def is_made_once(bench):
    first = bench.sql("run.pickle.zst", "SELECT bytes FROM peaks")
    check(b"wrote 'run.pickle.zst.memtrace.db'" in first.stderr, f"{first}")
    check(bench.names() == BOTH, f"{bench.names()}")
    facts = bench.kept.stat()
    check(facts.st_mode & 0o777 == 0o600, f"mode {facts.st_mode:o}")
    second = bench.sql("run.pickle.zst", "SELECT bytes FROM peaks")
    check(second.stdout == first.stdout and not second.stderr, f"{second}")
    check(bench.kept.stat().st_mtime_ns == facts.st_mtime_ns, "it was made again")


def is_made_again(bench):
    """If the time, the size, the inode, memtrace or the tables differ, or if it is damaged in its header."""
    def changed(change):
        bench.sql("run.pickle.zst", "SELECT 1", "-q")
        before = bench.kept.stat()
        change()
        bench.sql("run.pickle.zst", "SELECT 1", "-q")
        after = bench.kept.stat()
        return (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns)

    def setting(name, value):
        with sqlite3.connect(bench.kept) as database:
            database.execute("UPDATE settings SET value = ? WHERE name = ?", (value, name))
        database.close()

    def version():
        with sqlite3.connect(bench.kept) as database:
            database.execute("PRAGMA user_version = 1")
        database.close()

    def other_inode():
        facts = bench.run_path.stat()
        shutil.copyfile(bench.run_path, bench.folder / "copy")
        os.replace(bench.folder / "copy", bench.run_path)
        os.utime(bench.run_path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    check(not changed(lambda: None), "nothing changed")
    facts = bench.run_path.stat()
    check(changed(lambda: os.utime(bench.run_path, ns=(0, facts.st_mtime_ns + 1))), "a nanosecond later")
    check(changed(other_inode), "another inode")
    check(changed(lambda: setting("input_bytes", 1)), "another size")
    check(changed(lambda: setting("memtrace", "0.0.1")), "another memtrace")
    check(changed(version), "other tables")
    if not os.geteuid():
        check(changed(lambda: os.chown(bench.kept, 12345, -1)), "a database of another user")
    check(bench.ask("run.pickle.zst", "SELECT count(*) FROM settings WHERE name LIKE 'input\\_%' ESCAPE '\\'") == [[3]],
          "the stamp")


def never_replaces(bench):
    """A file of somebody, a link, a folder: the answer comes from a temporary file."""
    answer = bench.sql("run.pickle.zst", "SELECT * FROM peaks", "-q").stdout
    bench.kept.rename(bench.folder / "own.db")

    def foreign():
        bench.kept.write_bytes(b"somebody's")

    def foreign_database():
        with sqlite3.connect(bench.kept) as database:
            database.execute("CREATE TABLE settings(name, value)")
        database.close()

    for make in (foreign, foreign_database, lambda: bench.kept.symlink_to("own.db"),
                 lambda: bench.kept.symlink_to("nothing"), bench.kept.mkdir):
        make()
        before = None if bench.kept.is_dir() or not bench.kept.exists() else bench.kept.read_bytes()
        links = os.readlink(bench.kept) if bench.kept.is_symlink() else None
        done = bench.sql("run.pickle.zst", "SELECT * FROM peaks")
        check(done.stdout == answer and b"cannot keep 'run.pickle.zst.memtrace.db'" in done.stderr, f"{done}")
        check(before is None or bench.kept.read_bytes() == before, "it was replaced")
        check(links == (os.readlink(bench.kept) if bench.kept.is_symlink() else None), "the link was replaced")
        check(not list(bench.temporary.iterdir()), f"left: {list(bench.temporary.iterdir())}")
        if bench.kept.is_dir() and not links:
            bench.kept.rmdir()
        else:
            bench.kept.unlink()


def without_a_folder(bench):
    """Standard input, pipes, and a folder that cannot be written."""
    answer = bench.sql("run.pickle.zst", "SELECT * FROM peaks", "-q").stdout
    bench.kept.unlink()
    with open(bench.run_path, "rb") as stream:
        check(bench.sql("-", "SELECT * FROM peaks", stdin=stream).stdout == answer, "standard input")
    done = subprocess.run(["bash", "-c", '"$0" sql <(cat run.pickle.zst) "SELECT * FROM peaks"', bench.program],
                          cwd=bench.folder, env=bench.environment, capture_output=True, check=False)
    check(done.stdout == answer and not done.returncode, f"a pipe: {done}")
    check(bench.names() == ["run.pickle.zst", "temporary"], f"{bench.names()}")
    if os.geteuid():
        bench.folder.chmod(0o500)
        done = bench.sql("run.pickle.zst", "SELECT * FROM peaks")
        bench.folder.chmod(0o700)
        check(done.stdout == answer and b"cannot keep" in done.stderr, f"{done}")
    check(not list(bench.temporary.iterdir()), f"left: {list(bench.temporary.iterdir())}")


def at_the_same_time(bench):
    command = [bench.program, "sql", "run.pickle.zst", "SELECT * FROM peaks", "-q"]
    running = [subprocess.Popen(command, cwd=bench.folder, env=bench.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for _ in range(4)]
    done = [process.communicate(timeout=LIMIT_SECONDS) + (process.returncode,) for process in running]
    check(len(set(done)) == 1 and done[0][2] == 0 and not done[0][1], f"{done}")
    check(bench.names() == BOTH, f"{bench.names()}")


def killed(bench):
    """Nothing half is under the final name, whenever the process dies."""
    for number, wait in ((signal.SIGKILL, 0.0), (signal.SIGKILL, 0.02), (signal.SIGTERM, 0.02), (signal.SIGKILL, 0.05),
                         (signal.SIGINT, 0.05), (signal.SIGKILL, 0.1)):
        process = subprocess.Popen([bench.program, "sql", "run.pickle.zst", "SELECT 1", "-q"], cwd=bench.folder,
                                   env=bench.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(number)
        process.wait(LIMIT_SECONDS)
        if bench.kept.exists():
            database = sqlite3.connect(f"file:{bench.kept}?mode=ro", uri=True)
            check(database.execute("PRAGMA integrity_check").fetchone() == ("ok",), "half a database")
            check(database.execute("SELECT count(*) FROM peaks").fetchone()[0], "an empty database")
            database.close()
            bench.kept.unlink()
        if number != signal.SIGKILL:
            check(not [name for name in bench.names() if name.startswith(".memtrace-")], f"{bench.names()}")
        for left in bench.folder.glob(".memtrace-*"):
            left.unlink()


def full_disk(bench):
    """A file that reaches its limit is an error, and nothing is left."""
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    done = bench.sql("run.pickle.zst", "SELECT 1", "-q", status=4, preexec_fn=small)
    check(b"cannot write 'run.pickle.zst.memtrace.db'" in done.stderr and not done.stdout, f"{done}")
    check(bench.names() == ["run.pickle.zst", "temporary"], f"{bench.names()}")
    done = bench.run("export", "sqlite", "run.pickle.zst", "-o", "run.db", status=4, preexec_fn=small)
    check(bench.names() == ["run.pickle.zst", "temporary"], f"{done} {bench.names()}")


def databases(bench):
    """Those of export, of others, of a newer version; a changed one; a damaged one."""
    bench.run("export", "sqlite", "run.pickle.zst", "-o", "run.db")
    path = bench.folder / "run.db"
    before = path.read_bytes()
    check(bench.ask("run.db", "SELECT * FROM peaks") == bench.ask("run.pickle.zst", "SELECT * FROM peaks"), "peaks")
    for words in (("SELECT * FROM live",), ("DELETE FROM peaks",), ("PRAGMA journal_mode = WAL",),
                  ("ATTACH 'x.db' AS x",)):
        bench.sql("run.db", *words, status=None)
    check(path.read_bytes() == before, "the database changed")
    bench.kept.unlink()
    check(bench.names() == ["run.db", "run.pickle.zst", "temporary"], f"{bench.names()}")
    for name in ("run.db-wal", "run.db-journal"):
        (bench.folder / name).write_bytes(b"x")
        bench.fails(("run.db", "SELECT 1"), 3, "a change by another program is not complete")
        (bench.folder / name).unlink()
    other = sqlite3.connect(bench.folder / "other.db")
    other.execute("CREATE TABLE peaks(x)")
    other.commit()
    other.close()
    bench.fails(("other.db", "SELECT 1"), 3, "cannot read 'other.db': it is a database of SQLite that memtrace did not write")
    for version, words in ((1, ", this memtrace makes version"), (9, " and are from a newer memtrace")):
        other = sqlite3.connect(path)
        other.execute(f"PRAGMA user_version = {version}")
        other.commit()
        other.close()
        bench.fails(("run.db", "SELECT 1"), 3, f"its tables have version {version}{words}")
    path.write_bytes(before[:5000])
    bench.fails(("run.db", "SELECT count(*) FROM block_rows"), 3, "malformed: export the recording again")
    (bench.folder / "empty").write_bytes(b"")
    bench.fails(("empty", "SELECT 1"), 3, "cannot read 'empty'")
    bench.fails(("missing", "SELECT 1"), 3, "cannot read 'missing'")


def damaged(bench):
    """What is left of a recording is answered, and the exit status says that it is damaged, as in `analyze`."""
    bench.run("import", "run.pickle.zst", "-o", "run.trace", "--no-summary", "-q")
    trace = bytearray((bench.folder / "run.trace").read_bytes())
    trace[len(trace) // 2] ^= 0xff
    (bench.folder / "run.trace").write_bytes(trace)
    check(bench.run("analyze", "run.trace", status=3).stdout, "no answer of analyze")
    for said in (b"1 damaged frame was skipped", b"it is damaged: the answer lacks a part of the run"):
        done = bench.sql("run.trace", "SELECT name FROM settings WHERE name = 'is_damaged'", "--csv", status=3)
        check(done.stdout == b"name\r\nis_damaged\r\n" and said in done.stderr, f"{done}")
    done = bench.run("export", "sqlite", "run.trace", "-o", "run.db", status=3)
    check((bench.folder / "run.db").exists(), f"{done}")
    done = bench.sql("run.db", "SELECT 1 AS x", "--csv", status=3)
    check((done.stdout, done.stderr.count(b"\n")) == (b"x\r\n1\r\n", 1) and
          b"'run.db': its recording is damaged: the answer lacks a part of the run" in done.stderr, f"{done}")


def names_are_suggested(bench):
    bench.sql("run.pickle.zst", "SELECT 1", "-q")
    bench.fails(("run.pickle.zst", "SELECT * FROM peeks"), 2,
                "no such table: peeks; did you mean 'peaks'?; the tables are block_0, block_rows, blocks, ")
    bench.fails(("run.pickle.zst", "SELECT byts FROM blocks"), 2, "no such column: byts; did you mean 'bytes'?")
    bench.fails(("run.pickle.zst", "--ask", "largezt"), 2, "there is no question 'largezt'; did you mean 'largest'?")
    bench.fails(("run.pickle.zst", "--ask", "largest", "--set", "row=1"), 2, "the statement has no parameter :row")
    bench.fails(("run.pickle.zst", "--ask", "largest", "--set", "rows"), 2, "needs NAME=VALUE")
    bench.fails(("run.pickle.zst", "--ask", "largest", "SELECT 1"), 2, "--ask is a question of its own")
    bench.fails(("run.pickle.zst",), 2, "there is no question")
    bench.fails(("run.pickle.zst", "SELECT 1", "--csv", "--json"), 2, "exclude each other")
    bench.fails(("run.pickle.zst", "SELECT 1", "--timeout", "1", "--set", "a=1"), 2, "no parameter :a")


def limits(bench):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT "
    path = "run.pickle.zst"
    bench.sql(path, "SELECT 1", "-q")
    done = bench.sql(path, endless + "x FROM c", "--rows", 2)
    check(done.stdout == b"x\n1\n2\n... at least 1,000,000 more rows: --rows N\n", f"{done}")
    done = json.loads(bench.sql(path, "VALUES (1), (2), (3)", "--rows", 2, "--json").stdout)
    check((done["rows"], done["rows_omitted"], done["truncated"]) == ([[1], [2]], 1, True), f"{done}")
    done = json.loads(bench.sql(path, "VALUES (1), (2), (3)", "--json").stdout)
    check("rows_omitted" not in done and not done["truncated"], f"{done}")
    wide = "SELECT hex(zeroblob(1000)) AS x FROM blocks LIMIT 100"
    for form in ("--csv", "--json", "--markdown", "-q"):
        done = bench.sql(path, wide, form, "--bytes", "20kB")
        said = done.stdout + done.stderr
        check(len(done.stdout) < 20500 and (b"more rows: --bytes BYTES" in said or b'"truncated": true' in said),
              f"{form}: {len(done.stdout)} {said[-200:]}")
    for statement in (endless + "count(*) FROM c", "SELECT printf('%.900000000c', 'x')"):
        begin = time.monotonic()
        done = bench.sql(path, statement, "--timeout", 1, status=2)
        check(b"--timeout" in done.stderr and time.monotonic() - begin < 20, f"{done}")


def forms(bench):
    path = "run.pickle.zst"
    statement = "SELECT 1 AS 'a,b', 'x\"y', NULL, '', char(27) || '[31m', 0.5, x'ff00', 'é', 9e999, -1 AS \"c\nd\""
    bench.sql(path, "SELECT 1", "-q")
    text = bench.sql(path, statement, "--csv").stdout.decode()
    check(text.count("\r\n") == 2 and ',,"",\x1b[31m,0.5,\\xff\\x00,é,Inf,-1\r\n' in text, f"{text!r}")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    check(rows[0][0] == "a,b" and rows[0][-1] == "c\nd" and rows[1][:4] == ["1", 'x"y', "", ""], f"{rows}")
    raw = bench.sql(path, statement, "--json").stdout
    check(b"\x1b" not in raw, f"{raw}")
    answer = json.loads(raw)
    check(answer["rows"][0][:6] == [1, 'x"y', None, "", "\x1b[31m", 0.5] and answer["rows"][0][8] == float("inf"),
          f"{answer}")
    check((answer["path"], answer["database"]) == (path, path + ".memtrace.db"), f"{answer}")
    text = bench.sql(path, statement).stdout
    check(b"\\x1b[31m" in text and b"\x1b" not in text and b" - " in text, f"{text}")
    text = bench.sql(path, "SELECT 'a|b' AS \"<b>\", 5 AS n", "--markdown").stdout.decode().splitlines()
    check(text[1] == "|---|--:|" and "<b>" not in text[0] and text[2].count("|") == 3, f"{text}")
    check(bench.sql(path, "SELECT 1 WHERE 0").stdout == b"no rows\n", "no rows")
    done = bench.sql(path, "SELECT * FROM events")
    check(b"the table 'events' of" in done.stderr and b"--events" in done.stderr, f"{done}")
    bench.run("export", "sqlite", path, "--events", "-o", "run.db")
    check(not bench.sql("run.db", "SELECT count(*) FROM events").stderr, "a note about events")


def questions(bench):
    """Every named question is answered, and shells complete its name."""
    listed = json.loads(bench.sql("--ask", "list", "--json").stdout)
    names = [row[0] for row in listed["rows"]]
    files = sorted(path.stem for path in (ROOT / "cli" / "database" / "questions").glob("*.sql"))
    check(names == files and {"peak", "largest"} <= set(names), f"{names}")
    for name in names:
        done = bench.sql("run.pickle.zst", "--ask", name, "-q")
        check(not done.stderr, f"{name}: {done}")
    offered = bench.sql("--completion-helper", "--ask", "").stdout.decode().split()
    check(sorted(offered) == sorted(["list", *names]), f"{offered}")
    largest = bench.sql("run.pickle.zst", "--ask", "largest", "--set", "rows=2", "--csv").stdout.decode()
    check(len(largest.splitlines()) == 3, f"{largest}")
    check(bench.ask("run.pickle.zst", "SELECT :a, :b, :c", "--set", "a=1", "--set", "b=x", "--set", ":c=null",
                    "--set", "a=2") == [[2, "x", None]], "parameters")


def numbers(bench):
    """The peak and its blocks are those of `analyze`."""
    report = json.loads(bench.run("analyze", "run.pickle.zst", "--json").stdout)["devices"][0]
    peak = report["summary"]["allocated_peak"]["bytes"]
    check(bench.ask("run.pickle.zst", "SELECT bytes FROM peaks WHERE size = 'allocated'") == [[peak]], "the peak")
    check(bench.ask("run.pickle.zst", "SELECT sum(bytes) FROM live_at_peak") == [[peak]], "blocks at the peak")


def document(bench):
    """docs/sql.md describes every table and view of schema.sql, and every column, and no others."""
    text = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text[text.index("\n## Tables"):], re.M | re.S))
    database = sqlite3.connect(":memory:")
    database.executescript((ROOT / "cli" / "database" / "schema.sql").read_text(encoding="utf-8"))
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    check(set(sections) == tables, f"{set(sections) ^ tables}")
    columns = {name: {row[1] for row in database.execute(f"PRAGMA table_info({name})")} for name in tables}
    for name, section in sections.items():
        cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.M)
        described = set(re.findall(r"`(\w+)`", " ".join(cells)))
        if "all columns of `blocks`" in section:
            described |= columns["blocks"]
        check(described == columns[name], f"{name}: {described ^ columns[name]}")
    database.close()


CASES = [document, is_made_once, is_made_again, never_replaces, without_a_folder, at_the_same_time, killed, full_disk,
         databases, damaged, names_are_suggested, limits, forms, questions, numbers]


def main(program, fixtures, *wanted):
    with tempfile.TemporaryDirectory(prefix="memtrace-sql-") as folder:
        bench = Bench(program, fixtures, folder)
        done = bench.sql("run.pickle.zst", "SELECT 1", status=None)
        if ABSENT in done.stderr.decode():
            check(done.returncode == 3 and done.stderr.count(b"\n") == 1 and
                  b"largest" in bench.sql("--ask", "list").stdout, f"{done}")
            return
        for case in CASES:
            if not wanted or case.__name__ in wanted:
                bench.clean()
                case(bench)


if __name__ == "__main__":
    main(*sys.argv[1:])
