#!/usr/bin/env python3
"""memtrace-mcp, with the client of the package `mcp` on standard input and output. Skipped without the package."""
import asyncio
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

from support import CAPTURES, PROGRAM, Case, environment, main

from annexes import has_sqlite

SEQ2SEQ = CAPTURES / "seq2seq.pickle.zst"
LEAK = CAPTURES / "leak.pickle.zst"
TOOLS = ["analyze", "live", "diff", "lines", "oom", "sql", "help"]
HAS_MCP = importlib.util.find_spec("mcp") is not None


def program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True).stdout


@unittest.skipUnless(HAS_MCP, "mcp not installed")
class Server(Case):
    def ask(self, *calls, folders=(), **variables):
        """The results of calls (name, arguments) to one server: (whether it is an error, its texts)."""
        return asyncio.run(self.talk(calls, folders, variables))

    async def talk(self, calls, folders, variables):
        async with self.session(folders, variables) as session:
            results = [await session.call_tool(name, arguments) for name, arguments in calls]
        return [(getattr(result, "is_error", getattr(result, "isError", None)), [part.text for part in result.content])
                for result in results]

    @contextlib.asynccontextmanager
    async def session(self, folders=(), variables=()):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "memtrace.mcp_server", *map(str, folders)],
            env=environment(TMPDIR=str(self.temporary()), **dict(variables)), cwd=str(self.work))
        with open(os.devnull, "w", encoding="utf-8") as quiet:
            async with stdio_client(parameters, errlog=quiet) as streams, ClientSession(*streams) as session:
                await session.initialize()
                yield session

    def temporary(self):
        folder = self.work / "temporary"
        folder.mkdir(exist_ok=True)
        return folder

    def test_tools_are_described_by_the_program(self):
        async def tools():
            async with self.session() as session:
                return (await session.list_tools()).tools

        found = {tool.name: tool for tool in asyncio.run(tools())}
        self.assertEqual(list(found), TOOLS)
        for name in TOOLS[:-1]:
            self.assertTrue(found[name].description.startswith(program("help", name).split("\n", 1)[0]), name)
            for word in ("options:", " -", "(-", "beside", "Example"):
                self.assertNotIn(word, found[name].description, name)
        for tool in found.values():
            schema = tool.model_dump(by_alias=True)
            self.assertIn("max_bytes", schema["inputSchema"]["properties"])
            self.assertTrue(schema["annotations"]["readOnlyHint"])

    def test_answers_are_those_of_the_program(self):
        peak = json.loads(program("analyze", SEQ2SEQ, "--json", "-q"))["devices"][0]["summary"]
        path, other = str(SEQ2SEQ), str(LEAK)
        calls = [("analyze", {"path": path}, ["analyze", path]),
                 ("analyze", {"path": path, "all_rows": True, "max_bytes": 10**6}, ["analyze", path, "--all"]),
                 ("live", {"path": path, "at": "end", "by": "role"}, ["live", path, "--at=end", "--by=role"]),
                 ("diff", {"base": other, "new": path, "max_bytes": 10**6}, ["diff", other, path]),
                 ("lines", {"path": path, "max_bytes": 10**6}, ["lines", path]),
                 ("sql", {"path": path, "statement": "-- no option\nSELECT * FROM peaks"},
                  ["sql", "--", path, "-- no option\nSELECT * FROM peaks"]),
                 ("sql", {"path": path, "ask": "largest", "parameters": {"rows": "3"}},
                  ["sql", path, "--ask=largest", "--set=rows=3"])]
        shutil.copy(SEQ2SEQ, self.work)  # the program writes the database of sql beside it
        answers = self.ask(*[call[:2] for call in calls],
                           ("analyze", {"path": path, "format": "json", "part": "devices.0.summary"}))
        for (name, _, words), (failed, texts) in zip(calls, answers):
            with self.subTest(name):
                here = [str(self.work / SEQ2SEQ.name) if word == path and name == "sql" else word for word in words]
                self.assertEqual((failed, texts), (False, [program(here[0], "-q", *here[1:])]))
        self.assertEqual(json.loads(answers[-1][1][0]), peak)

    def test_answers_are_bounded(self):
        path = str(SEQ2SEQ)
        calls = [(name, {"path": path, "max_bytes": 1000, "format": kind, **more}) for kind in ("text", "json")
                 for name, more in (("analyze", {"all_rows": True}), ("live", {"by": "stack"}), ("lines", {}),
                                    ("sql", {"statement": "SELECT * FROM blocks", "rows": 10**6}))]
        for (name, arguments), (failed, texts) in zip(calls, self.ask(*calls, ("help", {"max_bytes": 1}))):
            self.assertFalse(failed, (name, texts))
            self.assertLessEqual(len("".join(texts).encode()), 1300 if name == "sql" else 1000, (name, arguments))
        sizes = json.loads(self.ask(("analyze", {"path": path, "format": "json", "max_bytes": 1000}))[0][1][0])
        self.assertIn("devices", sizes["bytes_of_parts"])
        self.assertGreater(sizes["too_large"], 1000)

    def test_nothing_is_written(self):
        traces = self.work / "traces"
        traces.mkdir()
        path = shutil.copy(LEAK, traces)
        before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in traces.iterdir()}
        hostile = [f"ATTACH '{traces}/other.db' AS o", "DELETE FROM block_rows", f"VACUUM INTO '{traces}/v.db'",
                   "CREATE TABLE t(a)", "SELECT load_extension('x')", "SELECT writefile('x', 'y')"]
        answers = self.ask(*[("sql", {"path": path, "statement": statement}) for statement in hostile],
                           *[("sql", {"path": path, "statement": "SELECT count(*) FROM blocks"})] * 2)
        for statement, (failed, texts) in zip(hostile, answers):
            self.assertTrue(failed, statement)
            self.assertEqual(len(texts[0].splitlines()), 1, texts)
        self.assertEqual(answers[-1], answers[-2])
        self.assertIn("593", answers[-1][1][0])
        self.assertTrue({file: (file.stat().st_mtime_ns, file.read_bytes()) for file in traces.iterdir()} == before)
        self.assertEqual(list(self.temporary().iterdir()), [])  # gone with the server

    def test_only_existing_files_of_the_folders(self):
        inside, outside = self.work / "inside", self.work / "inside-not"
        for folder in (inside, outside):
            folder.mkdir()
            shutil.copy(LEAK, folder)
        (inside / "link").symlink_to(outside / LEAK.name)
        (inside / "-o").symlink_to(inside / LEAK.name)
        os.mkfifo(inside / "fifo")
        wrong = {"missing": "No such file", "": "regular file", "inside": "regular file", "inside/fifo": "regular file",
                 "/dev/zero": "regular file", "-": "No such file", "a\0b": "not a name", "inside/link": "only files in",
                 f"inside-not/{LEAK.name}": "only files in", f"inside/../inside-not/{LEAK.name}": "only files in"}
        answers = self.ask(*[("analyze", {"path": path}) for path in wrong], ("analyze", {"path": "inside/-o"}),
                           ("sql", {"path": "inside/link", "ask": "peak"}), folders=[inside])
        for path, (failed, texts) in zip(wrong, answers):
            self.assertTrue(failed, path)
            self.assertRegex(texts[0], f"^Error executing tool analyze: cannot read '.*{wrong[path]}")
        self.assertFalse(answers[-2][0], answers[-2])
        self.assertTrue(answers[-1][0])

    def test_errors_are_the_line_of_the_program(self):
        path = str(LEAK)
        (self.work / "text").write_text("no trace", encoding="utf-8")
        for (name, arguments), wanted in (
                (("live", {"path": path, "at": "nothing"}), "no phase 'nothing'"),
                (("live", {"path": path, "by": "--output=x"}), "GROUP|group"),
                (("analyze", {"path": "text"}), "cannot read '.*text'"),
                (("analyze", {"path": path, "policy": "none at all"}), "policy"),
                (("analyze", {"path": path, "format": "xml"}), "use text or json"),
                (("analyze", {"path": path, "format": "json", "part": "devices.7"}), "no part"),
                (("oom", {"message": "all is well"}), "no "), (("sql", {"path": path, "statement": "SELEC"}), "syntax"),
                (("help", {"command": "nothing"}), "unknown command")):
            with self.subTest(name=name, arguments=arguments):
                [(failed, texts)] = self.ask((name, arguments))
                self.assertTrue(failed)
                self.assertEqual(len(texts[0].splitlines()), 1)
                self.assertRegex(texts[0], wanted)

    def test_damaged_input_has_an_answer_and_a_note(self):
        subprocess.run([PROGRAM, "import", str(SEQ2SEQ), "-o", self.work / "run.trace", "-q"], check=True)
        whole = (self.work / "run.trace").read_bytes()
        middle = len(whole) // 2
        (self.work / "run.trace").write_bytes(whole[:middle] + bytes(40) + whole[middle + 40:])
        [(failed, texts)] = self.ask(("analyze", {"path": "run.trace"}))
        self.assertFalse(failed, texts)
        self.assertIn("damaged frame", texts[1])

    def test_time_limit(self):
        fake = self.work / "memtrace"
        fake.write_text("#!/bin/sh\n[ $1 = help ] && echo 'memtrace help: x' && exit\necho $$ >pid\nexec sleep 600\n",
                        encoding="utf-8")
        fake.chmod(0o700)
        begin = time.monotonic()
        [(failed, texts)] = self.ask(("analyze", {"path": str(LEAK)}), MEMTRACE_PROGRAM=str(fake),
                                     MEMTRACE_MCP_TIMEOUT="0.5")
        self.assertEqual((failed, texts), (True, ["Error executing tool analyze: memtrace analyze took longer than "
                                                  "0.5 seconds"]))
        self.assertLess(time.monotonic() - begin, 60)
        self.assertFalse(pathlib.Path(f"/proc/{(self.work / 'pid').read_text().strip()}").exists())


class Tools(Case):
    """Without the package: the functions of the tools."""

    def sql(self, *folders, **arguments):
        from memtrace import mcp_server

        scratch = self.work / "scratch"
        scratch.mkdir(exist_ok=True)
        return asyncio.run(mcp_server.Server(folders, str(scratch)).sql(**arguments))

    def test_a_statement_is_no_file(self):
        from memtrace import Error

        inside = self.work / "inside"
        inside.mkdir()
        outside = shutil.copy(LEAK, self.work)
        before = sorted(self.work.iterdir())
        for question in ({"ask": "peak"}, {"ask": "list"}, {}):
            with self.assertRaisesRegex(Error, "a statement needs `path`"):
                self.sql(inside, statement=str(outside), **question)
        self.assertEqual([path for path in sorted(self.work.iterdir()) if path.name != "scratch"], before)
        self.assertIn("largest", self.sql(inside, ask="list")[0])


    def test_two_names_of_a_recording_have_one_database(self):
        """Leaving out the database of the first name must not take that of the second."""
        from memtrace import mcp_server

        for name, capture in (("one.pickle.zst", LEAK), ("other.pickle.zst", SEQ2SEQ)):
            shutil.copyfile(capture, self.work / name)
        os.link(self.work / "one.pickle.zst", self.work / "two.pickle.zst")
        scratch = self.work / "few"
        scratch.mkdir()
        kept = mcp_server.MAX_DATABASES
        mcp_server.MAX_DATABASES = 2

        async def answers():
            server = mcp_server.Server([], str(scratch))
            return [await server.sql(path=str(self.work / f"{name}.pickle.zst"), statement="SELECT count(*) FROM peaks")
                    for name in ("one", "two", "other", "two", "one")]
        try:
            self.assertEqual(len({answer[0] for answer in asyncio.run(answers())}), 1)
        finally:
            mcp_server.MAX_DATABASES = kept
        self.assertEqual(len(list(scratch.iterdir())), 2)

    def test_sql_of_a_damaged_recording_has_a_note(self):
        subprocess.run([PROGRAM, "import", str(LEAK), "-o", self.work / "run.trace", "-q"], check=True)
        trace = bytearray((self.work / "run.trace").read_bytes())
        trace[len(trace) // 2] ^= 0xff
        (self.work / "run.trace").write_bytes(trace)
        for _ in range(2):
            answer, *notes = self.sql(path=str(self.work / "run.trace"), statement="SELECT 1 AS x")
            self.assertEqual(answer, "x\n1\n")
            self.assertRegex(" ".join(notes), "its recording is damaged: the answer lacks a part of the run")


class Start(Case):
    def start(self, *words, **variables):
        return subprocess.run([sys.executable, "-m", "memtrace.mcp_server", *words], cwd=self.work, text=True,
                              env=environment(**variables), capture_output=True, input="", check=False, timeout=60)

    def test_without_the_package(self):
        (self.work / "mcp.py").write_text("raise ImportError('No module named mcp')", encoding="utf-8")
        done = self.start(PYTHONPATH=f"{self.work}:{environment()['PYTHONPATH']}")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "memtrace-mcp: No module named mcp: pip install 'memtrace-gpu[mcp]'\n")

    def test_wrong_folder(self):
        done = self.start("/nowhere")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "memtrace-mcp: '/nowhere' is not a folder; usage: memtrace-mcp [FOLDER...]\n")


def setUpModule():
    if not has_sqlite(PROGRAM):
        raise unittest.SkipTest("this memtrace was built without SQLite")


if __name__ == "__main__":
    main()
