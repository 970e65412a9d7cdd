#!/usr/bin/env python3
"""memtrace.analyze, its tables, and the errors of the program."""
import base64
import dataclasses
import errno
import html
import inspect
import json
import os
import pathlib
import pickle
import pydoc
import re
import shlex
import shutil
import subprocess
import sys
import types
import unittest.mock
import warnings
from xml.etree import ElementTree

from support import CAPTURES, PROGRAM, Case, environment, main

import memtrace
from memtrace import program

GPT = CAPTURES / "gpt_default.pickle.zst"
LEAK = CAPTURES / "leak.pickle.zst"  # small


def without_pandas():
    return unittest.mock.patch.dict(sys.modules, {"pandas": None})


class FakeFrame:
    def __init__(self, rows, columns=None):
        self.rows = rows
        self.columns = columns or list(rows[0])


class Analysis(Case):
    def test_numbers_of_the_program(self):
        done = subprocess.run([PROGRAM, "analyze", str(GPT), "--json", "--all", "-q"], check=True,
                              capture_output=True)
        document = json.loads(done.stdout)
        report = memtrace.analyze(GPT)
        self.assertEqual(report.raw, document)
        self.assertEqual(report.device.summary.allocated_peak.bytes,
                         document["devices"][0]["summary"]["allocated_peak"]["bytes"])
        truth = json.loads((CAPTURES / "gpt_default.truth.json").read_text(encoding="utf-8"))
        self.assertIn(str(report.device.summary.allocated_peak.bytes), json.dumps(truth))
        with without_pandas():
            self.assertEqual(len(report.steps), len(document["devices"][0]["steps"]))
            self.assertEqual(report.steps[3].peak.allocated,
                             document["devices"][0]["steps"][3]["peak"]["allocated"])
            for name in ("phases", "sites", "modules", "roles", "pools", "instants"):
                self.assertIsInstance(getattr(report, name), list)
        self.assertTrue(report.text().startswith("Card    about 8.53 GiB"))

    def test_frames(self):
        report = memtrace.analyze(GPT)
        pandas = types.SimpleNamespace(DataFrame=FakeFrame)
        with unittest.mock.patch.dict(sys.modules, {"pandas": pandas}):
            frames = {name: (getattr(report, name), report.to_frame(name))
                      for name in ("steps", "phases", "sites", "modules", "roles", "pools", "instants")}
            frames.update({name: (report.to_frame(name),) * 2 for name in ("findings", "ooms", "explanations")})
            self.assertLess(len(report.live(by="role").columns), 9)
        steps, whole = frames["steps"]
        self.assertIsInstance(steps, FakeFrame)
        self.assertEqual(steps.columns, ["device", "step", "peak_allocated_bytes", "peak_reserved_bytes",
                                         "end_allocated_bytes", "begin_s", "peak_t_s"])
        first, raw = whole.rows[0], report.raw["devices"][0]["steps"][0]
        self.assertEqual((first["device"], first["index"]), (0, 0))
        self.assertEqual(first["peak_allocated_bytes"], raw["peak"]["allocated"])
        self.assertAlmostEqual(first["peak_t_s"], (raw["peak_t_ns"] - report.raw["input"]["first_t_ns"]) / 1e9)
        for name, (main, whole) in frames.items():
            self.assertLessEqual(len(main.columns), 8 if main is not whole else 99, name)
            self.assertEqual(whole.columns[:len(main.columns)], main.columns, name)
            for column in whole.columns:
                self.assertFalse(column.endswith(("_ns", "allocated", "reserved", "raw")), f"{name}: {column}")
        with without_pandas(), self.assertRaises(ImportError):
            report.to_frame("steps")

    def test_first_screen(self):
        report = memtrace.analyze(GPT)
        device = report.raw["devices"][0]
        self.assertEqual(report.card.raw, device["card"])
        peak = device["summary"]["allocated_peak"]
        self.assertEqual((report.peak.bytes, report.peak.event, report.peak.step, report.peak.phase),
                         (peak["bytes"], 4390, 1, "step#1/backward"))
        self.assertEqual(report.peak.reserved_peak_bytes, device["summary"]["reserved_peak"]["bytes"])
        self.assertEqual(f"{report.peak.t_s:.2f}", "4.02")
        self.assertEqual(next(iter(report.held_by)), "activations")
        self.assertEqual(sum(report.held_by.values()), report.peak.bytes)
        self.assertEqual([finding.title for finding in report.advice], [row["title"] for row in device["findings"]])
        self.assertEqual(report.advice[0].saves_bytes, 1142947840)
        self.assertEqual(repr(report), f"<memtrace.Report of {str(GPT)!r}; card about 8.53 GiB; "
                         f"peak 6.44 GiB in step#1/backward; advice: {report.advice[0].title}>")
        text = report.text
        self.assertLessEqual(len(text.splitlines()), 25)
        self.assertIn("allocated in step 1, backward, at 4.02 s", text)
        self.assertEqual((text, repr(text)), (report.text(), report.text()))

    def test_fullest_device(self):
        """The one that `memtrace analyze` puts first."""
        report = memtrace.analyze(CAPTURES / "twogpu.pickle.zst")
        self.assertIn("Device 1 has the largest reserved peak", report.text)
        self.assertEqual(report.device.device, 1)
        self.assertEqual(report.card, report.devices[1].card)
        self.assertEqual({finding.title for finding in report.advice},
                         {finding.title for finding in report.devices[1].findings})
        first, second = report.devices
        ooms = memtrace.analyze(CAPTURES / "oom_adam.pickle.zst").device.ooms
        died = dataclasses.replace(report.document, devices=(dataclasses.replace(first, ooms=ooms), second))
        self.assertEqual(memtrace.Report("", died).device.device, 0)

    def test_html_is_small(self):
        for path in sorted(CAPTURES.glob("*.pickle.zst")):
            with self.subTest(path.name):
                page = memtrace.Report(path, None)._repr_html_()  # needs no document
                self.assertLess(len(page.encode()), 60000)
                (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
                self.assertIn("svg", ElementTree.fromstring(base64.b64decode(picture)).tag)
                self.assertLessEqual(page.count("\n"), 25)

    def test_a_page_to_explore_is_small_and_in_a_frame(self):
        shown = memtrace.analyze(CAPTURES / "gpt_split64.pickle.zst").explore()._repr_html_()
        self.assertLess(len(shown), 260_000)  # quotes and angles take several bytes each
        self.assertTrue(shown.startswith("<iframe ") and shown.endswith("></iframe>"), shown[:80])
        page = html.unescape(re.search(r'srcdoc="([^"]*)"', shown).group(1))
        self.assertLess(len(page.encode()), 200_000)
        self.assertIn('id="timeline-0"', page)
        self.assertIn('sandbox="allow-scripts"', shown)
        self.assertNotIn("<script", shown)

    def test_html_is_escaped(self):
        copy = self.work / "<b>&amp;.pickle.zst"
        shutil.copy(LEAK, copy)
        page = memtrace.analyze(copy)._repr_html_()
        self.assertIn("&lt;b&gt;&amp;amp;: PyTorch", page)
        self.assertNotIn("<b>", page)

    def test_tables_of_all_devices(self):
        report = memtrace.analyze(CAPTURES / "twogpu.pickle.zst")
        rows = report.rows("sites")
        self.assertEqual({row["device"] for row in rows.columns()}, {0, 1})
        with self.assertRaisesRegex(memtrace.Error, "there is no table 'site'"):
            report.rows("site")

    def test_live(self):
        report = memtrace.analyze(GPT)
        with without_pandas():
            rows = report.live("peak", by="role")
        self.assertEqual(sum(row.bytes for row in rows), report.device.summary.allocated_peak.bytes)

    def test_gates_are_no_errors(self):
        report = memtrace.analyze(GPT, max_peak={"reserved": "1GiB"})
        self.assertEqual(report.verdict, "fail")
        self.assertIn("FAIL", report.text)
        self.assertEqual([gate.state for gate in report.gates], ["fail"])
        self.assertEqual(memtrace.analyze(GPT, fits="100GiB").verdict, "pass")

    def test_message(self):
        found = memtrace.oom("RuntimeError: CUDA out of memory. Tried to allocate 1.20 GiB (GPU 1; 15.90 GiB total "
                             "capacity; 11.32 GiB already allocated; 741.88 MiB free; 2.61 GiB cached)\n\udcff\ud800")
        self.assertEqual((found.cause, found.proved, found.device), ("fragmentation", True, 1))
        self.assertEqual(sum(part.bytes for part in found.parts), found.whole_bytes)
        with self.assertRaisesRegex(memtrace.Error, "no message about memory"):
            memtrace.oom("all is well")

    def test_options(self):
        report = memtrace.analyze(LEAK, policy="expandable_segments:True", limit="80GiB")
        self.assertNotEqual(report.document.policy, memtrace.analyze(LEAK).document.policy)


class Commands(Case):
    def test_words_for_a_shell(self):
        """The command below an answer can be pasted, and is one line, whatever the file is called."""
        for word in ("a b", "it's", "$(touch evil)", "esc\x1b[31m", "new\nline", "\u202egnp", "\udcff", "\\\x01'", ""):
            shown = program.shell_word(word)
            self.assertTrue(shown.isprintable(), shown)
            done = subprocess.run(["bash", "-c", f"printf '%s' {shown}"], capture_output=True, check=True,
                                  env={"LC_ALL": "C"}, cwd=self.work)
            self.assertEqual(done.stdout, os.fsencode(word), shown)
        self.assertEqual(self.left(), [])

    def test_the_first_lines_of_an_answer(self):
        copy = self.work / "it's.pickle.zst"
        shutil.copy(GPT, copy)
        lines = program.first_lines(["analyze", str(copy)]).splitlines()
        self.assertEqual(len(lines), 13)
        done = subprocess.run(["bash", "-c", lines[-1].replace("... memtrace", shlex.quote(PROGRAM), 1)], capture_output=True,
                              check=True, text=True)
        self.assertEqual(done.stdout.splitlines()[:12], lines[:-1])
        self.assertNotIn("...", program.first_lines(["info", str(copy), "--json"])[-40:])
        self.assertIn("the trace could not be analyzed: ", program.first_lines(["analyze", "/nosuch"]))


class Estimates(Case):
    def test_members_and_a_file(self):
        members = {"source": "a formula", "roles": {"parameters": 7, "gradients + other": 8}}
        file = self.work / "estimate.json"
        file.write_text(json.dumps({"schema": "memtrace.estimate/1", **members}), encoding="utf-8")
        for estimate in (members, file):
            found = memtrace.estimate_diff(LEAK, estimate)
            self.assertEqual((found.estimate.source, found.estimate.total_bytes), ("a formula", 15))
            device = found.devices[0]
            self.assertEqual(sum(row.measured_bytes for row in device.roles), device.bytes.allocated)
            self.assertEqual(device.difference, device.bytes.allocated - 15)
        self.assertEqual(memtrace.estimate_diff(LEAK, members, at="end").question.at, "end")

    def test_errors(self):
        with self.assertRaisesRegex(memtrace.Error, "did you mean 'gradients'"):
            memtrace.estimate_diff(LEAK, {"roles": {"gradient": 1}})
        with self.assertRaises(FileNotFoundError):
            memtrace.estimate_diff(LEAK, "missing")


class Errors(Case):
    def test_a_trace_that_is_gone(self):
        copy = self.work / "leak.pickle.zst"
        shutil.copy(LEAK, copy)
        report = memtrace.analyze(copy)
        copy.unlink()
        for question in (lambda: report.text, report.picture, report.live):
            with self.assertRaisesRegex(memtrace.Error, "cannot read '.*leak.pickle.zst': No such file"):
                question()

    def test_line_of_the_program(self):
        with self.assertRaises(memtrace.Error) as caught:
            memtrace.analyze(self.work / "missing")
        self.assertEqual(str(caught.exception),
                         f"cannot read '{self.work}/missing': No such file or directory")
        self.assertEqual(caught.exception.status, 3)
        self.assert_is_missing(caught.exception, self.work / "missing")
        for ask in (lambda: memtrace.analyze(LEAK, base="missing"), lambda: memtrace.live("missing"),
                    lambda: memtrace.diff(LEAK, "missing"), lambda: memtrace.fit("missing")):
            with self.assertRaises(FileNotFoundError) as caught:
                ask()
            self.assert_is_missing(caught.exception, "missing")
        (self.work / "text").write_text("no trace", encoding="utf-8")
        with self.assertRaises(memtrace.Error) as caught:
            memtrace.analyze(self.work / "text")
        self.assertNotIsInstance(caught.exception, OSError)
        with self.assertRaisesRegex(memtrace.Error, "policy") as caught:
            memtrace.analyze(LEAK, policy="no such policy")

    def assert_is_missing(self, error, path):
        for one in (error, pickle.loads(pickle.dumps(error))):
            self.assertIsInstance(one, memtrace.Error)
            self.assertIsInstance(one, FileNotFoundError)
            self.assertEqual((one.errno, one.filename, one.status), (errno.ENOENT, str(path), 3))
            self.assertEqual(str(one), f"cannot read '{path}': No such file or directory")

    def test_damaged_input_warns(self):
        trace = self.work / "cut.trace.zst"
        program.run(["import", str(LEAK), "-o", str(trace), "-q"])
        trace.write_bytes(trace.read_bytes()[:-2000])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            report = memtrace.analyze(trace, options=["--strict"])
            memtrace.live(trace)
        self.assertTrue(report.document.input.cut)
        self.assertIn("cut at byte", str(caught[0].message))
        # The line of the program, not one above or inside the package.
        self.assertEqual({warning.filename for warning in caught}, {__file__})
        for name in ("device", "card", "peak", "held_by", "advice"):
            with self.assertRaisesRegex(memtrace.Error, "no device"):
                getattr(report, name)
        self.assertEqual(repr(report), f"<memtrace.Report of {str(trace)!r}>")

    def test_hostile_names(self):
        folder = os.getcwd()
        os.chdir(self.work)
        self.addCleanup(os.chdir, folder)
        for name in ("-o", "--help", "-", "a b;c", "$(x)`y`", "new\nline", "\x1b[31m",
                     "quote\"'\\", "\udcff\udcfe"):
            with self.subTest(name):
                shutil.copy(LEAK, os.path.join(".", name))
                self.assertTrue(memtrace.analyze(name).devices)
                self.assertTrue(memtrace.analyze(pathlib.Path(name)).devices)
                with without_pandas():
                    self.assertTrue(memtrace.analyze(name).live())
        with self.assertRaisesRegex(memtrace.Error, "null"):
            memtrace.analyze("nul\0byte")

    def test_broken_programs(self):
        fake = self.work / "memtrace"
        for text, wanted in (("#!/bin/sh\necho '{'", "no JSON document"),
                             ("#!/bin/sh\nexit 6", "failed with status 6"),
                             ("#!/bin/sh\nkill -9 $$", "ended by signal 9"),
                             ("#!/bin/sh\necho '[]'", "different versions"),
                             ("#!/bin/sh\necho memtrace: no memory >&2; exit 3", "^no memory$"),
                             ("\x7fELF nothing", "cannot run")):
            fake.write_text(text, encoding="utf-8")
            fake.chmod(0o700)
            with unittest.mock.patch.dict(os.environ, {"MEMTRACE_PROGRAM": str(fake)}):
                with self.subTest(text), self.assertRaisesRegex(memtrace.Error, wanted):
                    memtrace.analyze(LEAK)


class Program(Case):
    def command(self, *words, **variables):
        kept = environment(**variables)
        if "MEMTRACE_PROGRAM" not in variables:
            del kept["MEMTRACE_PROGRAM"]
        return subprocess.run([sys.executable, "-m", "memtrace", *words], env=kept, cwd=self.work,
                              capture_output=True, text=True, check=False)

    def test_becomes_the_program(self):
        done = self.command("analyze", str(LEAK), MEMTRACE_PROGRAM=PROGRAM)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("Card "))
        done = self.command("no-such-command", MEMTRACE_PROGRAM=PROGRAM)
        self.assertEqual(done.returncode, 2)

    def test_on_path_but_never_a_script(self):
        scripts, programs = self.work / "scripts", self.work / "programs"
        for folder in (scripts, programs):
            folder.mkdir()
        script = scripts / "memtrace"
        script.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
        script.chmod(0o700)
        done = self.command("--version", PATH=str(scripts))
        self.assertEqual(done.returncode, 127)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("neither in this package nor on PATH", done.stderr)
        (programs / "memtrace").symlink_to(PROGRAM)
        done = self.command("--version", PATH=f"{scripts}:{programs}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_cannot_run(self):
        done = self.command(MEMTRACE_PROGRAM="/nowhere")
        self.assertEqual((done.returncode, done.stderr),
                         (127, "memtrace: MEMTRACE_PROGRAM is '/nowhere', which is not a program\n"))
        text = self.work / "memtrace"
        text.write_text("\x7fELF", encoding="utf-8")
        text.chmod(0o700)
        done = self.command(MEMTRACE_PROGRAM=str(text))
        self.assertEqual((done.returncode, done.stderr),
                         (126, f"memtrace: cannot run '{text}': Exec format error\n"))

    def test_library_of_the_program(self):
        self.assertEqual(program.library(), str(pathlib.Path(PROGRAM).parent / "libmemtrace-inject.so"))
        with self.assertRaisesRegex(memtrace.Error, "libother.so is not installed"):
            program.library("libother.so")


class Import(Case):
    def test_loads_no_torch_and_nothing_slow(self):
        (self.work / "torch.py").write_text("raise SystemExit('imported')", encoding="utf-8")
        (self.work / "pandas.py").write_text("raise SystemExit('imported')", encoding="utf-8")
        done = self.python("""
            import sys
            import memtrace
            assert not {"torch", "pandas", "ctypes", "subprocess", "json"} & set(sys.modules)
            assert "analyze" in dir(memtrace)
            with memtrace.phase("x"):
                memtrace.step()
            assert "torch" not in sys.modules
            print("done")
        """)
        self.assertEqual(done.stdout, "done\n")

    def test_signatures_have_no_quotes(self):
        shown = [getattr(memtrace, name) for name in memtrace.__all__]
        shown += [part for value in shown if isinstance(value, type) for part in vars(value).values()
                  if inspect.isfunction(part)]
        for value in shown:
            signature = inspect.signature(value)
            for kind in [signature.return_annotation, *(one.annotation for one in signature.parameters.values())]:
                self.assertNotIn("'", inspect.formatannotation(kind), value)
        self.assertIn("fit(path: str | os.PathLike[str], *, limit: int | str | None = None,",
                      pydoc.render_doc(memtrace.fit, renderer=pydoc.plaintext))

    def test_all_names(self):
        for name in memtrace.__all__:
            self.assertIsNotNone(getattr(memtrace, name))
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            memtrace.nothing  # pylint: disable=pointless-statement


if __name__ == "__main__":
    main()
