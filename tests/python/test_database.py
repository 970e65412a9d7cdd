#!/usr/bin/env python3
"""memtrace.read: the database of a recording as data frames. Cases whose package is absent are skipped."""
import copy
import gc
import importlib.util
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import threading
import unittest
import unittest.mock

from support import CAPTURES, PROGRAM, Case, main

import memtrace
from annexes import has_sqlite

LEAK = CAPTURES / "leak.pickle.zst"
SEQ2SEQ = CAPTURES / "seq2seq.pickle.zst"
FRAMES = ("pandas", "polars", "pyarrow")
LARGE = (-(2**63), 2**53 + 1, 2**63 - 1, None)


def installed(name):
    return importlib.util.find_spec(name) is not None


def needs(*names):
    absent = [name for name in names if not installed(name)]
    return unittest.skipIf(absent, f"{', '.join(absent)} not installed")


def columns_of(frame):
    """A frame of any kind as {column: values}; None for what is missing."""
    if hasattr(frame, "to_pydict"):
        return frame.to_pydict()
    if hasattr(frame, "get_columns"):
        return frame.to_dict(as_series=False)
    return {name: [None if missing else value for value, missing in zip(frame[name], frame[name].isna())]
            for name in frame.columns}


def folders():
    """The folder of each database that lives in a temporary one."""
    return {path for path in pathlib.Path(os.environ.get("TMPDIR", "/tmp")).glob("memtrace-*/run.db")}


class Frames(Case):
    def test_each_kind_is_exact(self):
        for kind in filter(installed, FRAMES):
            with self.subTest(kind):
                run = memtrace.read(SEQ2SEQ, frames=kind)
                self.assertTrue(type(run.blocks).__module__.startswith(kind.replace("pyarrow", "pyarrow.lib")))
                self.compare_tables(run)
                query = " UNION ALL ".join(f"SELECT {'NULL' if value is None else value} AS v" for value in LARGE)
                query = query.replace(str(LARGE[0]), "-9223372036854775807 - 1")
                self.assertEqual(columns_of(run.sql(query))["v"], list(LARGE))

    def compare_tables(self, run):
        """Each frame has what SQLite reports, in every table and view of the database."""
        with sqlite3.connect(run.path) as connection:
            names = [name for name, in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'")]
            self.assertEqual(set(run.tables), set(names))
            self.assertTrue({"blocks", "segments", "phases", "steps", "levels", "peaks", "findings"} <= set(names))
            for name in names:
                cursor = connection.execute(f"SELECT * FROM {name}")
                header, rows = [column[0] for column in cursor.description], cursor.fetchall()
                found = columns_of(getattr(run, name))
                self.assertEqual(list(found), header)
                for at, column in enumerate(header):
                    expected = [row[at] for row in rows]
                    if name == "settings" and column == "value":  # text beside numbers
                        found[column], expected = [list(map(str, values)) for values in (found[column], expected)]
                    # Without assertEqual, which takes minutes to print how long lists differ.
                    self.assertTrue(list(found[column]) == expected, f"{name}.{column}")

    @needs("pandas")
    def test_first_package_and_types(self):
        import pandas

        run = memtrace.read(LEAK)
        self.assertIsInstance(run.blocks, pandas.DataFrame)
        self.assertIs(run.blocks, run.blocks)
        for name in ("address", "free_event", "step"):
            self.assertEqual(str(run.blocks[name].dtype), "Int64")
        self.assertEqual(str(run.events["bytes"].dtype), "Int64")  # no rows, so by its declaration
        self.assertEqual(len(run.events), 0)
        self.assertGreater(len(memtrace.read(LEAK, events=True).events), 0)

    @needs("pandas")
    def test_numbers_of_the_program(self):
        done = subprocess.run([PROGRAM, "analyze", str(SEQ2SEQ), "--json", "-q"], check=True, capture_output=True)
        summary = json.loads(done.stdout)["devices"][0]["summary"]
        run = memtrace.read(SEQ2SEQ, frames="pandas")
        self.assertEqual(run.live_at_peak.bytes.sum(), summary["allocated_peak"]["bytes"])
        found = run.sql("SELECT sum(bytes) AS total, max(bytes) AS most FROM live WHERE kind = :kind AND bytes >= :least",
                        kind="peak_allocated", least=1 << 20)
        blocks = run.blocks
        at = summary["allocated_peak"]["event"]
        alive = blocks[(blocks.birth_event <= at) & (blocks.free_event.isna() | (blocks.free_event > at))]
        self.assertEqual(found.total[0], alive[alive.bytes >= 1 << 20].bytes.sum())

    @needs("pandas", "polars", "pyarrow")
    def test_columns_of_queries(self):
        query = ("SELECT 1 AS a, 2 AS a, 3 AS a_2, NULL AS n, 1.5 AS r, x'00ff' AS b UNION ALL "
                 "SELECT 1, 2, 3, NULL, 2, NULL")
        for kind in FRAMES:
            found = columns_of(memtrace.read(LEAK, frames=kind).sql(query))
            self.assertEqual(list(found), ["a", "a_2", "a_2_2", "n", "r", "b"])
            self.assertEqual(found["n"], [None, None])
            self.assertEqual((found["r"], found["b"]), ([1.5, 2.0], [b"\0\xff", None]))

    @needs("duckdb", "pyarrow")
    def test_duckdb_and_parquet(self):
        import duckdb
        from pyarrow import parquet

        run = memtrace.read(SEQ2SEQ, frames="pyarrow")
        blocks = run.blocks
        file = str(self.work / "blocks.parquet")
        duckdb.sql(f"COPY (FROM blocks) TO '{file}'")
        self.assertTrue(parquet.read_table(file).to_pydict() == blocks.to_pydict())
        found = duckdb.sql(f"SELECT role, sum(bytes) FROM '{file}' GROUP BY role ORDER BY role").fetchall()
        with sqlite3.connect(run.path) as connection:
            self.assertEqual(found, connection.execute(
                "SELECT role, sum(bytes) FROM blocks GROUP BY role ORDER BY role").fetchall())

    @needs("duckdb")
    def test_duckdb_reads_the_database(self):
        import duckdb

        try:
            duckdb.sql("INSTALL sqlite; LOAD sqlite")
        except duckdb.Error as error:
            self.skipTest(f"duckdb's extension for SQLite cannot be installed: {str(error).splitlines()[0]}")
        run, file = memtrace.read(SEQ2SEQ), str(self.work / "blocks.parquet")
        duckdb.sql(f"COPY (FROM sqlite_scan('{run.path}', 'blocks')) TO '{file}'")
        self.assertEqual(duckdb.sql(f"SELECT count(*) FROM '{file}'").fetchall(), [(7615,)])


class Files(Case):
    def database(self, name="run.db"):
        file = self.work / name
        subprocess.run([PROGRAM, "export", "sqlite", LEAK, "-o", file, "-q"], check=True)
        return file

    def test_temporary_database_goes_with_the_object(self):
        before = folders()
        run = memtrace.read(LEAK)
        file = pathlib.Path(run.path)
        self.assertEqual(folders() - before, {file})
        self.assertIn("blocks", dir(run))
        self.assertIn("leak.pickle.zst", repr(run))
        child = os.fork()
        if child == 0:
            try:
                del run
                gc.collect()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.assertTrue(file.exists())
        del run
        gc.collect()
        self.assertFalse(file.parent.exists())
        with self.assertRaises(memtrace.Error):
            memtrace.read(self.work / "missing")
        self.assertEqual(folders(), before)

    def test_database_stays_as_it_is(self):
        file = self.database("-o $(x) ?mode=rwc#.db")
        file.chmod(0o400)
        before, content = file.stat(), file.read_bytes()
        run = memtrace.read(file)
        self.assertEqual(run.path, str(file))
        for query in ("DELETE FROM block_rows", "DROP VIEW blocks", "PRAGMA user_version = 7", "VACUUM", "BEGIN",
                      f"ATTACH '{self.work}/other.db' AS other", "CREATE TEMP TABLE t AS SELECT 1",
                      f"VACUUM INTO '{self.work}/copy.db'"):
            with self.assertRaises(memtrace.Error, msg=query):
                run.sql(query)
        del run
        gc.collect()
        self.assertTrue((file.stat().st_mtime_ns, file.read_bytes()) == (before.st_mtime_ns, content))
        self.assertEqual(self.left(), [file.name])

    def test_wrong_questions(self):
        run = memtrace.read(self.database())
        for query, wanted in (("SELECT * FROM absent", "no such table: absent"), ("SELEC 1", "syntax error"),
                              ("", "empty"), ("SELECT 1; SELECT 2", "one statement"),
                              ("SELECT :a", "supply a value|parameter|Binding"), ("SELECT load_extension('x')", "")):
            with self.subTest(query), self.assertRaisesRegex(memtrace.Error, wanted):
                run.sql(query)
        with self.assertRaisesRegex(memtrace.Error, ""):
            run.sql("SELECT :a", a=2**64)
        with self.assertRaisesRegex(AttributeError, "no table 'nothing'"):
            run.nothing  # pylint: disable=pointless-statement
        self.assertFalse(hasattr(copy.copy(run), "__nothing"))
        with self.assertRaisesRegex(memtrace.Error, "use one of pandas, polars, pyarrow"):
            memtrace.read(LEAK, frames="spark")

    def test_other_files(self):
        foreign = self.work / "foreign.db"
        with sqlite3.connect(foreign) as connection:
            connection.execute("CREATE TABLE t(a)")
        with self.assertRaisesRegex(memtrace.Error, "memtrace did not write"):
            memtrace.read(foreign)
        damaged = self.database()
        damaged.write_bytes(damaged.read_bytes()[:8192])
        with self.assertRaises(memtrace.Error):
            memtrace.read(damaged).blocks  # pylint: disable=expression-not-assigned
        for content in (b"", b"SQLite format 3\0", b"nothing"):
            damaged.write_bytes(content)
            with self.assertRaises(memtrace.Error):
                memtrace.read(damaged)

    def test_a_damaged_recording_is_reported(self):
        subprocess.run([PROGRAM, "import", str(LEAK), "-o", self.work / "run.trace", "-q"], check=True)
        trace = bytearray((self.work / "run.trace").read_bytes())
        trace[len(trace) // 2] ^= 0xff
        (self.work / "run.trace").write_bytes(trace)
        with self.assertWarnsRegex(UserWarning, "damaged frame") as caught:
            run = memtrace.read(self.work / "run.trace")
        self.assertEqual(caught.filename, __file__)
        with self.assertWarnsRegex(UserWarning, "run.db': its recording is damaged: the tables lack a part") as caught:
            memtrace.read(run.path)
        self.assertEqual(caught.filename, __file__)

    @needs("pandas")
    def test_hostile_tables(self):
        file = self.database()
        with sqlite3.connect(file) as connection:
            connection.execute('CREATE TABLE "a ""b"" $(x)"(sql, "path")')
            connection.execute('CREATE TABLE "sql"(a)')
            connection.execute('INSERT INTO "a ""b"" $(x)" VALUES (1, cast(x\'ff\' AS TEXT))')
        run = memtrace.read(file)
        self.assertIn('a "b" $(x)', run.tables)
        with self.assertRaises(memtrace.Error):  # no UTF-8
            getattr(run, 'a "b" $(x)')
        self.assertEqual(len(run.sql('SELECT * FROM "sql"')), 0)  # the method, not the table

    @needs("pandas")
    def test_threads(self):
        run, counts = memtrace.read(LEAK), []
        threads = [threading.Thread(target=lambda: counts.append(len(run.sql("SELECT * FROM blocks")))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counts, [len(run.blocks)] * 4)

    def test_without_packages(self):
        with unittest.mock.patch.dict(sys.modules, dict.fromkeys(FRAMES)):
            run = memtrace.read(LEAK)
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                run.blocks  # pylint: disable=pointless-statement
            for kind in FRAMES:
                with self.assertRaisesRegex(ImportError, kind):
                    memtrace.read(LEAK, frames=kind).blocks  # pylint: disable=expression-not-assigned


def setUpModule():
    if not has_sqlite(PROGRAM):
        raise unittest.SkipTest("this memtrace was built without SQLite")


if __name__ == "__main__":
    main()
