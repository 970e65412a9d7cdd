#!/usr/bin/env python3
"""What commands write, and what they never destroy.

    check_outputs.py PROGRAM FIXTURES MAKE_BOMB

Each command that writes files is run against targets that it must refuse (its input under any
name, files of the user's, links to them), targets that it may replace (its own earlier results),
and a file system that is full.
"""
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from annexes import has_sqlite

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
FIXTURES = pathlib.Path(sys.argv[2]).resolve()
MAKE_BOMB = pathlib.Path(sys.argv[3]).resolve()
CAPTURE = FIXTURES / "captures" / "leak.pickle.zst"
RECORDING = FIXTURES / "recorded" / "mixed.trace.zst"
FOREIGN = b"the user's own words 2026\n"
LIMIT_SECONDS = 900

HAS_PNG = b"without cairo" not in subprocess.run(
    [PROGRAM, "render", "timeline", CAPTURE, "-o", "/dev/null/x.png"], capture_output=True).stderr

# name, arguments; IN is the input, OUT the file.
OUTPUTS = [
    ("trace.out", "import IN -o OUT"),
    ("chart.svg", "render timeline IN -o OUT"),
    ("difference.svg", "diff IN IN -o OUT"),
    ("rendered.svg", "render diff IN IN -o OUT"),
    ("policies.svg", "render policies IN -o OUT"),
    ("stacks.folded", "export folded IN -o OUT"),
    ("stacks.json", "export speedscope IN -o OUT"),
    ("run.pftrace", "export perfetto IN -o OUT"),
    ("baseline.json", "analyze IN --write-baseline OUT"),
    ("counters.csv", "replay IN --counters OUT"),
    ("plan.csv", "optimal IN --time none -o OUT"),
] + ([("chart.png", "render timeline IN -o OUT")] if HAS_PNG else [])
if has_sqlite(PROGRAM):
    OUTPUTS.append(("run.db", "export sqlite IN -o OUT"))

SOME = [row for row in OUTPUTS if row[0] in ("trace.out", "chart.svg", "stacks.folded", "counters.csv")]
KINDS = [row for row in OUTPUTS if row[0] == "trace.out" or not row[0].endswith((".svg", ".png"))]
# Written a band of rows at a time, and only with --force.
HUGE = [("huge.png", "render timeline IN --size 5000x4000 --force -o OUT")] if HAS_PNG else []


def run(arguments, source, target, **how):
    words = [str(source) if word == "IN" else str(target) if word == "OUT" else word
             for word in shlex.split(arguments)]
    how.setdefault("stdin", subprocess.DEVNULL)
    how.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, *words], stderr=subprocess.PIPE, timeout=LIMIT_SECONDS, **how)


class Outputs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memtrace-outputs-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.capture = self.folder / "in.pickle.zst"
        shutil.copy(CAPTURE, self.capture)
        os.chdir(self.folder)

    def each(self, outputs=OUTPUTS):
        return [(self.folder / name, arguments) for name, arguments in outputs]

    def assert_nothing_is_left(self):
        self.assertEqual([str(path) for path in self.folder.rglob(".memtrace-*")], [])

    def assert_fails(self, done, status, words):
        self.assertIn(words, done.stderr.decode())
        self.assertEqual(done.returncode, status, done.stderr)
        self.assert_nothing_is_left()

    def assert_done(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assert_nothing_is_left()

    # ---- inputs ------------------------------------------------------------

    def test_no_output_replaces_its_input(self):
        before = self.capture.read_bytes()
        for target, arguments in self.each():
            with self.subTest(arguments):
                link, hard = self.folder / f"link-{target.name}", self.folder / f"hard-{target.name}"
                link.symlink_to(self.capture)
                os.link(self.capture, hard)
                for name in (link, hard):
                    for force in ("", " --force"):
                        self.assert_fails(run(arguments + force, self.capture, name), 2,
                                          "it is an input of this command")
                        self.assertEqual(self.capture.read_bytes(), before)
                link.unlink()
                hard.unlink()

    def test_the_base_and_the_budget_are_inputs(self):
        base, budget = self.folder / "base.json", self.folder / "budget.toml"
        self.assert_done(run("analyze IN --write-baseline OUT", self.capture, base))
        before = base.read_bytes()
        self.assert_fails(run("analyze IN --base base.json --write-baseline OUT", self.capture,
                              base), 2, "it is an input of this command")
        budget.write_text('base = "base.json"\nmax-regression = "1%"\n')
        for path in (base, budget):
            self.assert_fails(run("analyze IN --budget budget.toml --write-baseline OUT --force", self.capture,
                                  path), 2, "it is an input of this command")
        self.assertEqual(base.read_bytes(), before)

    def test_standard_input_is_an_input(self):
        with open(self.capture, "rb") as stream:
            self.assert_fails(run("import - -o OUT --force", "", self.capture, stdin=stream), 2,
                              "it is an input of this command")
        self.assertEqual(self.capture.read_bytes(), CAPTURE.read_bytes())

    # ---- what exists -------------------------------------------------------

    def test_a_command_runs_twice(self):
        for target, arguments in self.each(OUTPUTS + HUGE):
            with self.subTest(arguments):
                self.assert_done(run(arguments, self.capture, target))
                first = target.read_bytes()
                self.assertTrue(first)
                target.chmod(0o640)
                self.assert_done(run(arguments, self.capture, target))
                self.assertEqual(target.read_bytes(), first)
                self.assertEqual(target.stat().st_mode & 0o777, 0o640)

    def test_files_of_the_user_stay(self):
        for target, arguments in self.each():
            with self.subTest(arguments):
                target.write_bytes(FOREIGN)
                self.assert_fails(run(arguments, self.capture, target), 4, "it exists and is not")
                self.assertEqual(target.read_bytes(), FOREIGN)
                self.assert_done(run(arguments + " --force", self.capture, target))
                self.assertNotEqual(target.read_bytes(), FOREIGN)

    def test_results_of_another_kind_stay(self):
        kinds = self.each(KINDS)
        for target, arguments in kinds:
            self.assert_done(run(arguments, self.capture, target))
        for target, arguments in kinds:
            for other, _ in kinds:
                with self.subTest(arguments + " over " + other.name):
                    name = other.with_suffix(target.suffix)
                    shutil.copy(other, self.folder / "copy")
                    os.replace("copy", name.with_stem("copy"))
                    done = run(arguments, self.capture, name.with_stem("copy"))
                    same = other == target
                    self.assertEqual(done.returncode, 0 if same else 4, done.stderr)

    def test_an_empty_file_is_free(self):
        for target, arguments in self.each():
            with self.subTest(arguments):
                target.touch()
                self.assert_done(run(arguments, self.capture, target))

    def test_a_recording_is_not_replaced_by_an_import(self):
        target = self.folder / "run.trace.zst"
        shutil.copy(RECORDING, target)
        self.assert_fails(run("import IN -o OUT", self.capture, target), 4,
                          "it exists and is not a trace that 'memtrace import' wrote")
        self.assertEqual(target.read_bytes(), RECORDING.read_bytes())

    def test_an_import_that_fails_keeps_the_old_trace(self):
        target = self.folder / "run.trace"
        self.assert_done(run("import IN -o OUT", self.capture, target))
        before = target.read_bytes()
        cut = self.folder / "cut.pickle.zst"
        cut.write_bytes(CAPTURE.read_bytes()[:CAPTURE.stat().st_size // 2])
        self.assertNotEqual(run("import IN -o OUT", cut, target).returncode, 0)
        self.assertEqual(target.read_bytes(), before)
        self.assert_nothing_is_left()

    def test_an_imported_trace_is_private(self):
        os.umask(0o022)
        self.assert_done(run("import IN -o OUT", self.capture, "run.trace"))
        self.assertEqual(os.stat("run.trace").st_mode & 0o777, 0o600)
        self.assert_done(run("export folded IN -o OUT", self.capture, "stacks"))
        self.assertEqual(os.stat("stacks").st_mode & 0o777, 0o644)

    # ---- links, folders, what is no file -----------------------------------------

    def test_links(self):
        for target, arguments in self.each(SOME):
            with self.subTest(arguments):
                real, link, elsewhere = (target.with_name(f"{word}-{target.name}")
                                         for word in ("real", "link", "elsewhere"))
                real.write_bytes(FOREIGN)
                link.symlink_to(real.name)
                self.assert_fails(run(arguments, self.capture, link), 4, "it is a symbolic link to")
                self.assert_done(run(arguments + " --force", self.capture, link))
                self.assertEqual(real.read_bytes(), FOREIGN)
                self.assertFalse(link.is_symlink())
                os.replace(link, real)
                link.symlink_to(real.name)
                self.assert_done(run(arguments, self.capture, link))
                self.assertTrue(link.is_symlink())
                link.unlink()
                link.symlink_to(elsewhere.name)
                self.assert_fails(run(arguments, self.capture, link), 4, "does not exist")
                self.assertFalse(elsewhere.exists())

    def test_missing_folders_are_made(self):
        for target, arguments in self.each():
            with self.subTest(arguments):
                self.assert_done(run(arguments, self.capture,
                                     self.folder / "a" / target.stem / "b" / target.name))

    def test_pipes(self):
        for target, arguments in self.each(SOME):
            with self.subTest(arguments):
                self.assert_done(run(arguments, self.capture, target))
                wanted = target.read_bytes()
                pipe = target.with_stem("pipe")
                os.mkfifo(pipe)
                with open("read", "wb") as file:
                    reader = subprocess.Popen(["cat", pipe], stdout=file)
                self.assert_done(run(arguments, self.capture, pipe))
                self.assertEqual(reader.wait(LIMIT_SECONDS), 0)
                self.assertEqual(pathlib.Path("read").read_bytes(), wanted)
                pipe.unlink()

    def test_standard_output(self):
        for name, arguments in [("trace", "import IN -o OUT"), ("csv", "replay IN --counters OUT"),
                                ("folded", "export folded IN -o OUT"),
                                ("plan", "optimal IN --time none -o OUT"),
                                ("svg", "render timeline IN -o OUT")]:
            with self.subTest(arguments):
                target = self.folder / ("file." + name)
                self.assert_done(run(arguments, self.capture, target))
                done = run(arguments, self.capture, "-")
                self.assert_done(done)
                self.assertEqual(done.stdout, target.read_bytes())
        with open("answer", "wb") as answer:
            done = run("replay IN --counters /dev/stdout", self.capture, "", stdout=answer)
        self.assert_done(done)
        answer = pathlib.Path("answer").read_bytes()
        self.assertTrue(answer.startswith(pathlib.Path("file.csv").read_bytes()))
        self.assertIn(b"peak reserved", answer)
        with open("answer", "ab") as answer:
            self.assert_fails(run("replay IN --counters OUT", self.capture, "answer",
                                  stdout=answer), 2, "standard output")

    def test_documents_beside_standard_output(self):
        for arguments in ("import IN -o - --json", "replay IN --counters - --json",
                          "optimal IN -o - --json", "render timeline IN -o - --json"):
            self.assert_fails(run(arguments, self.capture, ""), 2, "standard output")
        self.assert_fails(run("analyze IN --write-baseline -", self.capture, ""), 2, "a file")

    # ---- faults ------------------------------------------------------------------

    def test_a_full_disk_keeps_the_earlier_result(self):
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        for target, arguments in self.each(OUTPUTS + HUGE):
            with self.subTest(arguments):
                self.assert_done(run(arguments, self.capture, target))
                before = target.read_bytes()
                self.assert_fails(run(arguments, self.capture, target, preexec_fn=small), 4,
                                  "disk I/O error" if target.suffix == ".db" else "File too large")
                self.assertEqual(target.read_bytes(), before)

    def test_a_document_about_a_file_that_cannot_be_printed(self):
        for target, arguments in self.each(row for row in OUTPUTS if row[1].startswith("export ")):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = run(arguments + " --json", self.capture, target, stdout=full)
                self.assert_fails(done, 4, "cannot write standard output")
                self.assertTrue(target.exists())

    def test_signals_leave_nothing_behind(self):
        big = FIXTURES / "captures" / "seq2seq.pickle.zst"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                child = subprocess.Popen([PROGRAM, "replay", big, "--counters", "counters.csv",
                                          "-p", "pytorch"], stdout=subprocess.DEVNULL)
                while child.poll() is None and not list(self.folder.glob(".memtrace-*")):
                    time.sleep(0.001)
                child.send_signal(number)
                child.wait(LIMIT_SECONDS)
                if child.returncode == 0:
                    self.skipTest("the replay was faster than the signal")
                self.assertEqual(child.returncode, -number)
                self.assert_nothing_is_left()
                self.assertFalse(pathlib.Path("counters.csv").exists())

    # ---- folders of results ------------------------------------------------------------

    def test_a_folder_of_results(self):
        rules = "analyze IN -o OUT --max-peak reserved=10GiB"
        report = self.folder / "new" / "report"
        self.assert_done(run(rules, self.capture, report))
        first = {path.name: path.read_bytes() for path in report.iterdir()}
        self.assertIn("report.html", first)
        self.assert_done(run(rules, self.capture, report))
        self.assertEqual(first, {path.name: path.read_bytes() for path in report.iterdir()})
        for name in sorted(first):
            with self.subTest(name):
                (report / name).write_bytes(FOREIGN)
                self.assert_fails(run(rules, self.capture, report), 4, "it exists and is not")
                self.assertEqual((report / name).read_bytes(), FOREIGN)
                (report / name).write_bytes(first[name])
        for path in report.iterdir():
            path.write_bytes(FOREIGN)
        self.assert_done(run(rules + " --force", self.capture, report))
        self.assertEqual(first, {path.name: path.read_bytes() for path in report.iterdir()})

    def test_a_folder_is_written_whole_or_not_at_all(self):
        """A picture of the user's is in the way: found before the documents are written."""
        for name, more in (("icicle.svg", ""), ("diff.svg", f" --base {shlex.quote(str(CAPTURE))}")):
            with self.subTest(name):
                report = self.folder / f"report-{name}"
                report.mkdir()
                (report / name).write_bytes(FOREIGN)
                self.assert_fails(run("analyze IN -o OUT" + more, self.capture, report), 4,
                                  "it exists and is not")
                self.assertEqual([path.name for path in report.iterdir()], [name])

    def test_only_files_that_are_written_are_in_the_way(self):
        report = self.folder / "report"
        report.mkdir()
        (report / "junit.xml").write_bytes(FOREIGN)
        self.assert_done(run("analyze IN -o OUT", self.capture, report))
        self.assertEqual((report / "junit.xml").read_bytes(), FOREIGN)

    def test_a_folder_of_many_devices_is_bounded(self):
        report = self.folder / "report"
        trace = self.folder / "devices.trace.zst"
        subprocess.run([MAKE_BOMB, "devices", "40", trace], check=True)
        done = run("analyze IN -o OUT", trace, report)
        self.assert_done(done)
        self.assertEqual(len(list(report.glob("timeline.device*.svg"))), 16)
        for text in (done.stdout.decode(), (report / "summary.md").read_text(),
                     (report / "report.html").read_text()):
            self.assertRegex(text, "16 of 40 devices")

    def test_a_full_disk_leaves_no_half_file_in_a_folder(self):
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
        report = self.folder / "report"
        self.assert_done(run("analyze IN -o OUT", self.capture, report))
        first = {path.name: path.read_bytes() for path in report.iterdir()}
        self.assert_fails(run("analyze IN -o OUT", self.capture, report, preexec_fn=small), 4,
                          "File too large")
        self.assertEqual(first, {path.name: path.read_bytes() for path in report.iterdir()})
        other = self.folder / "other"
        done = run("analyze IN -o OUT", self.capture, other, preexec_fn=small)
        self.assert_fails(done, 4, "File too large")
        for path in other.iterdir():
            self.assertEqual(path.read_bytes(), first[path.name])
        files = done.stdout.decode().split("\nFiles\n")[1].split()
        named = [path for path in files if path.startswith("/")]
        named += [str(pathlib.Path(path).with_suffix(".png"))
                  for path, word in zip(files, files[1:]) if word == "and"]
        self.assertEqual(sorted(named), sorted(str(path) for path in other.iterdir()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
