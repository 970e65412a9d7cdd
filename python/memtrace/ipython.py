"""IPython and Jupyter: %%memtrace, %mlrun, %%mlrun and %memtrace_live."""
from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from IPython.core import magic, magic_arguments
from IPython.core.error import UsageError

from .errors import Error
from .history import History
from .line_table import DEFAULT_COLUMNS, check_columns
from .pages import preformatted
from .profiling import LineProfiler
from .program import run
from .recording import HISTORY, record
from .report import Report, analyze

_DAMAGED_OR_INCOMPLETE = (0, 3, 5)


class Text:
    """Text that a notebook shows with a fixed width."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return preformatted(self.text)


def _method() -> str | None:
    """All cells of a notebook are recorded in one way as soon as PyTorch is loaded, so that their
    numbers can be compared. Without PyTorch, the collector records the first one."""
    return HISTORY if "torch" in sys.modules else None


@magic.magics_class
class Magics(magic.Magics):  # type: ignore[misc,unused-ignore]
    """The commands of `%load_ext memtrace`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._history: History | None = None

    @magic_arguments.magic_arguments()
    @magic_arguments.argument("-o", "--output", metavar="FILE", help="keep the trace")
    @magic_arguments.argument("-q", "--quiet", action="store_true",
                              help="show nothing; with -v, only assign")
    @magic_arguments.argument("-v", "--variable", metavar="NAME",
                              help="assign the memtrace.Report to this variable")
    @magic.cell_magic
    def memtrace(self, line: str, cell: str) -> Any:
        """Runs the cell, and shows what holds its peak of GPU memory and a timeline."""
        arguments = magic_arguments.parse_argstring(self.memtrace, line)
        with tempfile.TemporaryDirectory(prefix="memtrace-") as folder:
            path = arguments.output or os.path.join(folder, "cell.trace.zst")
            try:
                recorder = record(path, method=_method(), clear_history=True, quiet=True)
                with recorder as recording:
                    self.shell.run_cell(cell)
            except Error as error:
                raise UsageError(str(error)) from None
            if recording.trace is None:
                return Text(_nothing(recording.method))
            report = analyze(recording.trace)
            shown = Shown(report)  # reads the trace, which the end of this block may remove
        if arguments.variable:
            self.shell.user_ns[arguments.variable] = report
        return None if arguments.quiet else shown

    @magic.line_cell_magic
    def mlrun(self, line: str, cell: str | None = None) -> Any:
        """Runs a statement or the cell, and shows the GPU memory of each line of functions.

            %mlrun -f train_step -f Model.forward train_step(batch)

        -f, --function FUNC   a function whose lines to show; repeatable
        -c, --column COLUMN   another column, as in torch.cuda.memory_stats; repeatable
        -D, --no_default_columns   only the columns of -c
        -g, --gpu N           the device to show; default: the first that the functions use
        -q, --quiet           show nothing
        -r, --return-profiler return the memtrace.LineProfiler
        -T, --dump-profile FILE   write the table as text to a new file
        """
        options, statement = self.parse_options(line, _SHORT, *_LONG, list_all=True)
        asked = _Mlrun(options)
        if cell is None and not statement.strip():
            raise UsageError("%mlrun needs a statement, such as: %mlrun -f train_step train_step()")
        try:
            profiler = LineProfiler(*[self._function(name) for name in asked.functions])
            check_columns(asked.columns)
            with profiler:
                self._run(statement, cell)
            table = profiler.table(asked.columns, asked.device)
        except Error as error:
            raise UsageError(str(error)) from None
        if asked.file:
            _write_new(asked.file, table.text() + "\n")
        if asked.returns_profiler:
            return profiler
        return None if asked.is_quiet else table

    def _run(self, statement: str, cell: str | None) -> None:
        """Runs the cell, or the statement without the value that a cell would show. An exception
        is shown, and the table follows: running out of memory is a reason to profile."""
        if cell is not None:
            self.shell.run_cell(cell)
            return
        try:
            exec(compile(statement, "<mlrun>", "exec"), self.shell.user_ns)
        except Exception:  # pylint: disable=broad-exception-caught
            self.shell.showtraceback()

    def _function(self, name: str) -> Any:
        try:
            return eval(name, self.shell.user_ns)  # pylint: disable=eval-used
        except Exception as error:  # pylint: disable=broad-exception-caught
            raise UsageError(f"there is no function '{name}': {error}") from None

    @magic_arguments.magic_arguments()
    @magic_arguments.argument("state", nargs="?", choices=("on", "off"),
                              help="begin or end to keep call stacks of new blocks")
    @magic_arguments.argument("--by", default="site",
                              choices=("site", "stack", "role", "size", "phase", "module"))
    @magic.line_magic
    def memtrace_live(self, line: str) -> Any:
        """Shows the blocks of PyTorch's allocator that are alive now. Call sites are known for
        blocks that were allocated after `%memtrace_live on`, or in cells with %%memtrace."""
        arguments = magic_arguments.parse_argstring(self.memtrace_live, line)
        try:
            if arguments.state:
                return self._keep(arguments.state == "on")
            return Text(_live(arguments.by))
        except Error as error:
            raise UsageError(str(error)) from None

    def _keep(self, on: bool) -> None:
        if on and self._history is None:
            self._history = History(None)
        elif not on and self._history is not None:
            self._history.stop()
            self._history = None


_SHORT = "f:c:Dg:qrT:"
_LONG = ("function=", "column=", "no_default_columns", "gpu=", "quiet", "return-profiler",
         "dump-profile=")


class _Mlrun:
    """The options of %mlrun, which have the names of those of pytorch_memlab."""

    def __init__(self, options: Mapping[str, list[str]]) -> None:
        def values(short: str, long: str) -> list[str]:
            return [*options.get(short, []), *options.get(long, [])]

        self.functions = values("f", "function")
        own = values("c", "column")
        is_bare = "D" in options or "no_default_columns" in options
        self.columns = own if is_bare else [*DEFAULT_COLUMNS, *own]
        gpu = values("g", "gpu")
        if gpu and not gpu[-1].isdigit():
            raise UsageError(f"'{gpu[-1]}' is not the number of a device")
        self.device = int(gpu[-1]) if gpu else None
        self.is_quiet = "q" in options or "quiet" in options
        self.returns_profiler = "r" in options or "return-profiler" in options
        self.file = (values("T", "dump-profile") or [""])[-1]


class Shown:
    """A report as text and as HTML, made while its trace exists."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._text = report.text().rstrip()
        self._html = report._repr_html_()

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self._html


def _nothing(method: str) -> str:
    if method == "memtrace record":
        return "memtrace started this process: its trace has this cell"
    return "the cell did not use the GPU"


def _write_new(path: str, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror}") from None


def _live(by: str) -> str:
    history = History.existing()
    with tempfile.TemporaryDirectory(prefix="memtrace-") as folder:
        path = os.path.join(folder, "live.trace.zst")
        history.write_trace(path)
        return run(["live", path, "--at=end", f"--by={by}", "--quiet"],
                   _DAMAGED_OR_INCOMPLETE).text.rstrip()
