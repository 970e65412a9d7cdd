"""IPython and Jupyter: %%memtrace, %mlrun, %%mlrun and %memtrace_live."""
from __future__ import annotations

import os
import sys
import tempfile
import weakref
from typing import Any

from IPython.core import magic, magic_arguments
from IPython.core.error import UsageError
from IPython.display import display

from .analysis import Report, analyze
from .errors import Error, first_line
from .history import History
from .line_table import check_columns
from .mlrun_options import MlrunOptions
from .output import remove_folder
from .pages import Text
from .profiling import LineProfiler, keep_if_used
from .program import answered
from .recording import HISTORY, LAUNCHER, Recording, record


class CellFailed(Exception):
    """The code under a magic has raised an exception, which is already shown. This one makes the
    cell fail, so that "Run all" and nbclient stop, and IPython shows one line for it. %debug
    begins where the other one was raised."""

    def __init__(self, error: BaseException) -> None:
        self.has_run = not isinstance(error, SyntaxError)
        kind, text = type(error).__name__, first_line(error)
        super().__init__(f"{kind}: {text}" if text != kind else kind)
        self.__traceback__ = error.__traceback__

    def _render_traceback_(self) -> list[str]:
        return [f"The cell failed, as shown above: {self}"]


def _group(text: str) -> str:
    if not text.startswith("tag.") and text not in (
            "site", "stack", "role", "size", "phase", "module", "tag"):
        raise ValueError(text)
    return text


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
        variable = arguments.variable
        if variable and not variable.isidentifier():
            raise UsageError(f"'{variable}' is not the name of a variable")
        folder = tempfile.mkdtemp(prefix="memtrace-")
        kept: Report | None = None
        has_ended = False
        try:
            path = _unquoted(arguments.output) or os.path.join(folder, "cell.trace.zst")
            with record(path, method=_method(), clear_history=True, quiet=True) as recording:
                failure = self._run_cell(cell)
            has_ended = True
            shown, report = _answer(recording)
            if variable and report is not None:
                self.shell.user_ns[variable] = kept = report
        except Error as error:
            raise UsageError(str(error)) from None
        finally:
            if has_ended:
                _remove_with(kept, folder)
            else:  # a message names what the recording has left in the folder
                keep_if_used(folder)
        return _result(None if arguments.quiet else shown, failure)

    @magic.no_var_expand
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
        try:
            options = MlrunOptions(line)
            _check(options, cell)
            profiler = LineProfiler(*[self._function(name) for name in options.functions])
            check_columns(options.columns)
            with profiler:
                failure = self._run_cell(cell) if cell is not None else self._run(options.statement)
            table = profiler.table(options.columns, options.device)
        except (Error, ValueError) as error:
            raise UsageError(str(error)) from None
        if options.file:
            _write_new(options.file, table.text() + "\n")
        if options.returns_profiler and failure is None:
            return profiler
        return _result(None if options.is_quiet else table, failure)

    def _run_cell(self, cell: str) -> CellFailed | None:
        """Runs a cell, and shows what it shows."""
        result = self.shell.run_cell(cell)
        failure = result.error_before_exec or result.error_in_exec
        return CellFailed(failure) if failure else None

    def _run(self, statement: str) -> CellFailed | None:
        """Runs a statement. Unlike a cell, it shows no value."""
        try:
            exec(compile(statement, "<mlrun>", "exec"), self.shell.user_ns)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.shell.showtraceback()
            return CellFailed(error)
        return None

    def _function(self, name: str) -> Any:
        try:
            return eval(name, self.shell.user_ns)  # pylint: disable=eval-used
        except Exception as error:  # pylint: disable=broad-exception-caught
            raise UsageError(f"there is no function '{name}': {error}") from None

    @magic_arguments.magic_arguments()
    @magic_arguments.argument("state", nargs="?", choices=("on", "off"),
                              help="begin or end to keep call stacks of new blocks")
    @magic_arguments.argument("--by", default="site", type=_group,
                              help="site, stack, role, size, phase, module, tag or tag.MEMBER")
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
            history = History()
            history.start(None)
            self._history = history
        elif not on and self._history is not None:
            self._history.stop()
            self._history = None


class Shown:
    """A report as text and as HTML, made while its trace exists."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._text = report.text
        self._html = report._repr_html_()

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self._html


def _result(shown: Any, failure: CellFailed | None) -> Any:
    """What a magic returns for IPython to show. After a failure the answer is still shown: running
    out of memory is a reason to look at it."""
    if failure is None:
        return shown
    if shown is not None and failure.has_run:
        display(shown)
    raise failure


def _remove_with(report: Report | None, folder: str) -> None:
    """Removes a folder as soon as the report that reads its trace is gone."""
    if report is None:
        remove_folder(folder, os.getpid())
    else:
        weakref.finalize(report, remove_folder, folder, os.getpid())


def _answer(recording: Recording) -> tuple[Any, Report | None]:
    """What to show for a recording, and its report if there is one."""
    if recording.method == LAUNCHER:
        return Text("memtrace started this process: its trace has this cell"), None
    if recording.trace is None:
        return Text("the cell did not use the GPU"), None
    report = analyze(recording.trace)
    if not any(device.summary.events for device in report.devices):
        return Text("the cell neither allocated nor freed GPU memory"), report
    return Shown(report), report


def _check(options: MlrunOptions, cell: str | None) -> None:
    if cell is None and not options.statement:
        raise UsageError("%mlrun needs a statement, such as: %mlrun -f train_step train_step()")
    if cell is not None and options.statement:
        raise UsageError(f"%%mlrun runs the cell: move '{options.statement}' to a line below")
    if not options.functions:
        raise UsageError("name the function whose lines to show: -f FUNCTION")


def _unquoted(path: str | None) -> str:
    """IPython keeps the quotes of words."""
    text = path or ""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


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
        return answered(["live", path, "--at=end", f"--by={by}", "--quiet"]).text.rstrip()
