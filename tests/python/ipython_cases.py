"""ipython_cases.py: the commands of IPython, the line profiler and @memtrace.profile with a real PyTorch
in a dry run, so all sizes are exact. check_libraries.py starts it with a Python that has IPython."""
import base64
import gc
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import traceback
import unittest
import unittest.mock

import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import memtrace
from memtrace import line_table

MIB = 1 << 20
CASES = sys.modules[__name__]  # the shell replaces __main__
shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("%load_ext memtrace")

FUNCTIONS = """
import torch

def ones(mib):
    return torch.ones(mib, 1 << 18, device="cuda")

def step(mib, name=""):
    a = ones(mib)
    b = inner(a)
    del a
    return b

def inner(v):
    r = v * 2
    return r

def each(n):
    for _ in range(n):
        y = ones(2)
        yield y

def down(n):
    z = ones(1)
    if n:
        down(n - 1)

class Net:
    def forward(self, mib):
        x = ones(mib)
        return x

def too_much():
    first = ones(3)
    return ones(1 << 20)
"""


class Ran:
    """What a cell has printed, shown, and returned."""

    def __init__(self, text):
        with capture_output() as captured:
            self.result = shell.run_cell(text, store_history=True)
        self.output = captured.stdout + captured.stderr
        self.shown = captured.outputs
        self.value = shell.user_ns["Out"].get(shell.execution_count - 1)

    @property
    def error(self):
        found = self.result.error_before_exec or self.result.error_in_exec
        return f"{type(found).__name__}: {found}" if found else ""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        shell.run_cell(FUNCTIONS, store_history=True)
        self.addCleanup(self.forget)

    @staticmethod
    def forget():
        """Nothing of a test is left on the simulated GPU."""
        shell.reset(new_session=False)
        shell.run_cell("0")
        sys.last_exc = sys.last_value = sys.last_traceback = shell.InteractiveTB.tb = None
        gc.collect()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_allocated() == 0, torch.cuda.memory_allocated()

    def run_cell(self, text, error=""):
        ran = Ran(text)
        self.assertRegex(ran.error, f"^{error}" if error else "^$", ran.output)
        return ran

    def lines(self, functions, statement, columns=("growth", "active_bytes.all.peak")):
        """The values of the lines that have some, by function and line of code."""
        names = "".join(f"-f {name} " for name in functions.split())
        asked = "".join(f"-c {column} " for column in columns)
        profiler = self.run_cell(f"%mlrun -r -D {asked}{names} {statement}").value
        rows = profiler.table(columns).rows
        return {(row.function, row.code.strip()): tuple(row.values.values()) for row in rows if row.values}


class Cell(Case):
    def test_the_answer_and_the_picture(self):
        ran = self.run_cell("%%memtrace\nkept = step(5)\n6 * 7")
        self.assertIn("42", ran.output)
        self.assertIn("10.0 MiB allocated", ran.output)
        self.assertRegex(ran.output, r"inner cell\[\d+\]:13")
        page = ran.value._repr_html_()
        self.assertIn("10.0 MiB allocated", page)
        (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
        self.assertEqual(base64.b64decode(picture)[:5], b"<svg ")

    def test_a_cell_is_measured_alone(self):
        self.run_cell("%%memtrace -q\nstep(50); None")
        shell.run_cell("kept = ones(1)")
        self.run_cell("%%memtrace -q -v report\nstep(5); None")
        summary = shell.user_ns["report"].device.summary
        self.assertEqual(summary.allocated_peak.bytes, 11 * MIB)
        self.assertEqual((summary.allocations, summary.start.allocated), (2, MIB))

    def test_a_variable_keeps_its_trace(self):
        ran = self.run_cell("%%memtrace -q -v report\nkept = step(5)")
        self.assertEqual(ran.output, "")
        report = shell.user_ns["report"]
        self.assertEqual(report.device.summary.allocated_peak.bytes, 10 * MIB)
        self.assertEqual(report.picture()[1:4], b"PNG")
        self.assertIn("10.0 MiB", self.run_cell("report").output)
        rows = report.live(at="end").to_dict("records")
        self.assertEqual([row["bytes"] for row in rows], [5 * MIB])
        folder = pathlib.Path(report.path).parent
        self.assertTrue(folder.is_dir())
        del report
        self.forget()
        self.assertFalse(folder.exists())

    def test_a_file(self):
        path = self.work / "kept.trace.zst"
        self.run_cell(f"%%memtrace -o '{path}'\nkept = step(5)")
        self.assertEqual(memtrace.analyze(path).device.summary.allocated_peak.bytes, 10 * MIB)

    def test_no_folder_is_left(self):
        own = self.work / "temporary"  # other processes fill that of the machine
        own.mkdir()
        with (unittest.mock.patch.object(tempfile, "tempdir", str(own)),
              unittest.mock.patch.dict(os.environ, TMPDIR=str(own))):
            self.run_cell("%%memtrace\nkept = step(5)")
            self.run_cell("%%memtrace -o .\nstep(5)", "UsageError: cannot write")
        self.assertEqual([path for path in own.glob("memtrace-*") if not path.name.startswith("memtrace-dry")], [])

    def test_what_a_message_names_exists(self):
        """Only the import of the snapshot failed, so the snapshot is all that there is of the cell."""
        def fail(arguments):
            raise memtrace.Error(f"{arguments[0]} failed")

        with unittest.mock.patch("memtrace.program.run", fail):
            ran = self.run_cell("%%memtrace\nstep(1)", "UsageError: import failed; the snapshot is '")
        snapshot = pathlib.Path(re.search(r"the snapshot is '(.*)'", ran.error).group(1))
        self.assertGreater(snapshot.stat().st_size, 0)
        snapshot.unlink()
        snapshot.parent.rmdir()

    def test_out_of_memory(self):
        ran = self.run_cell("%%memtrace -v report\ntoo_much()", "CellFailed: OutOfMemoryError: CUDA out of")
        self.assertIn("return ones(1 << 20)", ran.output)  # the traceback
        (shown,) = ran.shown
        self.assertIn("OUT OF MEMORY", shown.data["text/plain"])
        self.assertIn("base64,", shown.data["text/html"])
        self.assertEqual(ran.output.count("OutOfMemoryError"), 3)  # two of IPython, one below the answer
        last = traceback.extract_tb(sys.last_traceback)[-1]
        self.assertEqual(last.name, "ones")  # %debug begins there
        (oom,) = shell.user_ns["report"].rows("ooms")
        self.assertEqual((oom.request_bytes, oom.then.allocated), (1 << 40, 3 * MIB))

    def test_an_exception(self):
        ran = self.run_cell("%%memtrace\nkept = step(5)\n1 / 0", "CellFailed: ZeroDivisionError: division by zero")
        self.assertIn("10.0 MiB", ran.shown[0].data["text/plain"])
        ran = self.run_cell("%%memtrace\n1 +", "CellFailed: SyntaxError")
        self.assertEqual(ran.shown, [])

    def test_a_cell_without_events(self):
        ran = self.run_cell("%%memtrace\n2")
        self.assertIn("neither allocated nor freed", ran.output)

    def test_usage(self):
        self.run_cell("%%memtrace --nosuch\n1", "UsageError: .*nosuch")
        self.run_cell("%%memtrace -v 3x\n1", "UsageError: '3x' is not the name of a variable")
        with memtrace.record(self.work / "a.trace.zst", method="pytorch-history", quiet=True):
            self.run_cell("%%memtrace\nnever = 1", "UsageError: .*already being recorded")
        self.assertNotIn("never", shell.user_ns)


class Lines(Case):
    def test_lines_of_nested_calls(self):
        found = self.lines("step inner", "kept = step(4)")
        self.assertEqual(found, {
            ("step", "a = ones(mib)"): (4 * MIB, 4 * MIB),
            ("step", "b = inner(a)"): (4 * MIB, 8 * MIB),
            ("step", "del a"): (-4 * MIB, 8 * MIB),
            ("inner", "r = v * 2"): (4 * MIB, 8 * MIB),
        })

    def test_generator_recursion_and_method(self):
        self.assertEqual(self.lines("each", "kept = list(each(3)); ones(1)"),
                         {("each", "y = ones(2)"): (6 * MIB, 6 * MIB)})
        self.forget()
        shell.run_cell(FUNCTIONS, store_history=True)
        found = self.lines("down", "down(2)", ["active_bytes.all.peak", "allocation.all.allocated"])
        self.assertEqual(found["down", "z = ones(1)"], (3 * MIB, 3))
        self.assertEqual(self.lines("Net.forward", "Net().forward(7)")["Net.forward", "x = ones(mib)"],
                         (7 * MIB, 7 * MIB))

    def test_the_statement_keeps_its_text(self):
        shell.run_cell("factor = 3")
        self.lines("step", "kept = step(1); words = 'a  b', \"$factor {factor}\"")
        self.assertEqual(shell.user_ns["words"], ("a  b", "$factor {factor}"))

    def test_text_and_html(self):
        ran = self.run_cell("%mlrun -f inner kept = step(4)")
        self.assertRegex(ran.output, r"""inner, .*
line      peak  reserved peak     after    growth  allocated  times  code
  12                                                                 def inner\(v\):
  13  8.00 MiB       20.0 MiB  8.00 MiB  4.00 MiB   4.00 MiB      1      r = v \* 2
  14                                                                     return r
""")
        page = ran.value._repr_html_()
        self.assertEqual(page.count("<tr>"), 4)
        self.assertIn("<h4><code>inner</code></h4>", page)
        self.assertIn("#9ecae199 100%", page)
        self.assertRegex(page, r"white-space: nowrap[^>]*>8\.00 MiB</td>")
        self.assertIn(">    r = v * 2</td>", page)

    def test_a_frame(self):
        profiler = self.run_cell("%mlrun -r --function=inner kept = step(4)").value
        frame = profiler.table(["growth"]).to_frame()
        self.assertEqual(list(frame.columns), ["function", "line", "growth", "code"])
        self.assertEqual(frame["growth"].sum(), 4 * MIB)

    def test_columns(self):
        ran = self.run_cell("%mlrun -D -c reserved_bytes.all.current -c requested_bytes.all.peak -f inner "
                            "kept = step(4)")
        self.assertIn("line  reserved_bytes.all.current  requested_bytes.all.peak  code", ran.output)
        self.run_cell("%mlrun -c nosuch -f step step(4)", "UsageError: there is no column 'nosuch'")

    def test_a_cell_and_options(self):
        path = self.work / "table.txt"
        ran = self.run_cell(f"%%mlrun -q -f step -T {path}\nkept = step(4)\n6 * 7")
        self.assertIn("42", ran.output)
        self.assertNotIn("growth", ran.output)
        self.assertIn("del a", path.read_text(encoding="utf-8"))
        self.run_cell(f"%mlrun -q -f step -T {path} kept = step(4)", "UsageError: cannot write .*File exists")
        self.assertIn("no line allocated", self.run_cell("%mlrun -g 7 -f step kept = step(4)").output)

    def test_out_of_memory(self):
        for text in ("%mlrun -f too_much too_much()", "%%mlrun -f too_much\ntoo_much()"):
            ran = self.run_cell(text, "CellFailed: OutOfMemoryError")
            self.assertIn("first = ones(3)", ran.shown[0].data["text/plain"])
            self.assertIn("3.00 MiB", ran.shown[0].data["text/plain"])

    def test_usage(self):
        for text, error in (
            ("%mlrun", "%mlrun needs a statement"),
            ("%mlrun -f step", "%mlrun needs a statement"),
            ("%mlrun step(4)", "name the function"),
            ("%mlrun -f nosuch step(4)", "there is no function 'nosuch'"),
            ("%mlrun -f len step(4)", "the source of .*len.* cannot be read"),
            ("%mlrun -x step(4)", "there is no option -x: use -f"),
            ("%mlrun --functions=step step(4)", "there is no option --functions=step"),
            ("%mlrun -f", "option -f needs a value"),
            ("%mlrun -g a -f step step(4)", "'a' is not the number of a device"),
            ("%%mlrun -f step step(4)\nstep(3)", "%%mlrun runs the cell: move 'step\\(4\\)'"),
        ):
            self.run_cell(text, f"UsageError: {error}")
        self.assertEqual(torch.cuda.memory_allocated(), 0)

    def test_profiler(self):
        step = shell.user_ns["step"]
        profiler = memtrace.LineProfiler(step)
        with profiler:
            with self.assertRaisesRegex(memtrace.Error, "already started"):
                profiler.start()
            step(4)
        self.assertIn("8.00 MiB", str(profiler.table()))
        with profiler:
            step(2)
        self.assertNotIn("8.00 MiB", str(profiler.table()))
        self.assertEqual(str(memtrace.LineProfiler().table()), "no function was profiled")

    def test_functions_with_one_name(self):
        codes = [line_table.Code("Net.forward", "forward", name, 1, [name]) for name in ("one.py", "two.py")]
        table = line_table.LineTable(None, codes)
        self.assertEqual(table.text().count("one.py"), 2)  # in the title and as code
        self.assertEqual(table._repr_html_().count("<td>1</td>"), 2)


class Live(Case):
    def test_call_sites_are_known_while_it_is_on(self):
        shell.run_cell("before = ones(3)")
        self.run_cell("%memtrace_live on")
        shell.run_cell("since = ones(7)")
        ran = self.run_cell("%memtrace_live")
        self.assertRegex(ran.output, r"7\.00 MiB +70\.0% +1 +other +no phase +ones cell\[\d+\]:4")
        self.assertIn("Alive at the end: 10.0 MiB allocated (10,485,760 B)", ran.output)
        self.assertIn("<pre", ran.value._repr_html_())
        self.run_cell("%memtrace_live off")
        self.run_cell("%memtrace_live off")
        shell.run_cell("after = ones(2)")
        self.assertIn("no tag", self.run_cell("%memtrace_live --by tag").output)
        ran = self.run_cell("%memtrace_live --by size")
        self.assertIn("12.0 MiB allocated (12,582,912 B)", ran.output)

    def test_a_cell_between_does_not_end_it(self):
        self.run_cell("%memtrace_live on")
        self.run_cell("%%memtrace -q\nstep(1)")
        shell.run_cell("since = ones(7)")
        self.assertIn("ones cell", self.run_cell("%memtrace_live").output)
        self.run_cell("%memtrace_live off")
        self.assertFalse(torch._C._cuda_isHistoryEnabled())

    def test_usage(self):
        self.run_cell("%memtrace_live maybe", "UsageError: .*maybe")
        self.run_cell("%memtrace_live --by color", "UsageError: .*color")


class Processes(Case):
    """What needs a process of its own; it inherits the simulated GPU."""

    def python(self, code, status=0):
        script = self.work / "program.py"
        script.write_text(textwrap.dedent(code), encoding="utf-8")
        done = subprocess.run([sys.executable, "-B", script], capture_output=True, text=True, timeout=900,
                              cwd=self.work, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_a_decorated_function(self):
        done = self.python("""
            import memtrace, torch

            @memtrace.profile
            def step(mib):
                a = torch.ones(mib, 1 << 18, device="cuda")
                return a.numel()

            @memtrace.profile
            def each():
                yield torch.ones(2, 1 << 18, device="cuda")

            for mib in (3, 5):
                step(mib)
            list(each())
            raise SystemExit(3)
            """, status=3)
        self.assertRegex(done.stdout, r"""
line      peak  reserved peak +after +growth +allocated  times  code
   4 +@memtrace.profile
   5 +def step\(mib\):
   6  5.00 MiB +2\d.0 MiB +5.00 MiB +8.00 MiB +8.00 MiB +2      a = torch.ones""")
        self.assertRegex(done.stdout, r"2.00 MiB +2.00 MiB +1      yield torch.ones")

    def test_a_forked_child(self):
        """It prints no table, and leaves the folder with the recording to its parent."""
        done = self.python("""
            import os, sys
            import memtrace, torch

            @memtrace.profile
            def step(mib):
                return torch.ones(mib, 1 << 18, device="cuda").numel()

            step(3)
            child = os.fork()
            if not child:
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """)
        self.assertEqual(done.stdout.count("def step(mib):"), 1, done.stderr)
        self.assertIn("3.00 MiB", done.stdout)

    def test_without_pytorch(self):
        done = self.python("""
            import memtrace

            @memtrace.profile
            def step(): pass

            step()
            try:
                memtrace.LineProfiler(step).start()
            except memtrace.Error as error:
                print(error)
            """)
        self.assertIn("memtrace started this process: use 'memtrace lines'", done.stdout)
        self.assertIn("no lines are profiled: memtrace started this process", done.stderr)

    def test_a_shell_before_cuda_starts(self):
        done = self.python("""
            from IPython.core.interactiveshell import InteractiveShell
            shell = InteractiveShell.instance(colors="nocolor")
            shell.run_cell("%load_ext memtrace")
            shell.run_cell("%%memtrace\\n1")
            shell.run_cell("%memtrace_live")
            shell.run_cell("import torch")
            shell.run_cell("%memtrace_live")
            shell.run_cell("%%memtrace\\na = torch.ones(5, 1 << 18, device='cuda')")
            """)
        self.assertIn("memtrace started this process: its trace has this cell", done.stdout)
        self.assertIn("UsageError: PyTorch is not loaded", done.stdout + done.stderr)
        self.assertIn("5.00 MiB allocated", done.stdout)


if __name__ == "__main__":
    unittest.main(module=CASES)
