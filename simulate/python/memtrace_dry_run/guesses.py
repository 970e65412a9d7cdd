"""Outcomes of guesses, under the assumption of this run.

memtrace runs a command again under other assumptions if its peaks may depend on guesses. The variable has lines:

    share=PERCENT                    of what a mask, a selection, boxes or unique values leave; 50 by default
    inverted                         truth values that the program reads, and its comparisons of numbers that it read,
                                     have the other outcome
    other=truth|number 0|1 FILE:LINE    this line reads this value
    other=share 1 FILE:LINE          what this line selects is everything

A condition that decides about an exception only has one outcome in a program that runs. It gets that one if the
statement shows which it is, is not inverted, and counts as a check."""
import ast
import linecache
import os
import sys
import threading

from . import notes

VARIABLE = "MEMTRACE_DRY_RUN_GUESSES"
DEFAULT_SHARE = 0.5
MAX_READS = 4096  # places of which the last guess is known
_reads = {}  # (file, line of the function, line, group): value of the last guess; the latest is the last
_GROUPS = ("truth", "number", "share")  # the first is the most likely cause of a failure
_OTHER_CAUSES = (NameError, AttributeError, TypeError, ImportError, SyntaxError, OSError)  # than a value
_tests = {}  # file: its _Tests
_always = {}  # place: what it read last, and how often it had read that before
MAX_SAME = 1000  # so often a line reads the same truth value before it counts as one that waits for the other one


class _Assumption:
    def __init__(self, text):
        self.share, self.is_inverted, self.others = DEFAULT_SHARE, False, {}
        for line in text.splitlines():
            name, _, value = line.partition("=")
            if name == "share" and value.isdecimal():
                self.share = min(int(value), 100) / 100
            elif name == "inverted":
                self.is_inverted = True
            elif name == "other":
                group, _, rest = value.partition(" ")
                outcome, _, place = rest.partition(" ")
                self.others[group, place] = outcome == "1"

    def other(self, group, frame):
        """The outcome that a guess of GROUP has in FRAME because another one made the program fail; None: as always."""
        return self.others.get((group, _name(frame.f_code.co_filename, frame.f_lineno))) if self.others else None


class _Here(threading.local):
    number = None  # the last number that was read
    is_marked = False  # whether the number that is read next keeps a mark


class _Tests:
    """Lines of a file: those with the condition of a check, with the outcome without an exception, or None; and those where
    values are compared, None if the source is not there."""

    def __init__(self, checks, comparisons):
        self.checks, self.comparisons = checks, comparisons


here = _Here()
_assumption = _Assumption(os.environ.get(VARIABLE, ""))


def share():
    return _assumption.share


def is_default():
    return _assumption.share == DEFAULT_SHARE


def read(value):
    """What the program gets, which reads VALUE, a guess."""
    frame = notes.innermost()
    if not isinstance(value, bool):
        notes.made_up("number" if isinstance(value, float) else "count")
        value = _outcome("number", frame, value)
        return _read_number(frame, value) if isinstance(value, float) else value
    checks = _tests_of(frame).checks
    is_check = frame is not None and frame.f_lineno in checks
    notes.made_up("check" if is_check else "condition")
    if is_check:
        passing = checks[frame.f_lineno]
        value = value if passing is None else passing
    return _outcome("truth", frame, value != (_assumption.is_inverted and not is_check))


def _read_number(frame, value):
    """A number without a mark, which the line that reads it compares, is smaller each time if decisions are inverted."""
    here.number = value
    if here.is_marked or frame is None or not is_comparison(frame) or frame.f_lineno in _tests_of(frame).checks:
        return value
    notes.made_up("condition")
    place = (frame.f_code.co_filename, frame.f_lineno, "number")
    before = _always[place][1] + 1 if place in _always else 0
    _always[place] = (value, before)
    if _assumption.is_inverted:
        return value / 2.0 ** min(before + 1, MAX_SAME)
    return 0.0 if before >= MAX_SAME and before % 2 else value


def other_if_always(value):
    """VALUE, a truth value that the running line reads; a loop that waits for the other one gets it."""
    place = notes.place()
    last, same = _always.get(place, (value, 0))
    same = same + 1 if last == value else 0
    _always[place] = (value, same)
    return not value if same >= MAX_SAME and same % 2 else value


def is_comparison(frame):
    """Whether the running line of FRAME compares values, or its source is not there."""
    comparisons = _tests_of(frame).comparisons
    return comparisons is None or frame.f_lineno in comparisons


def share_selected():
    """The share that a selection by the running line leaves."""
    return float(_outcome("share", notes.innermost(), _assumption.share))


def _outcome(group, frame, value):
    if frame is None:
        return value
    other = _assumption.other(group, frame)
    value = value if other is None else type(value)(other)
    key = (frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_lineno, group)
    _reads.pop(key, None)
    if len(_reads) >= MAX_READS:
        _reads.pop(next(iter(_reads)))
    _reads[key] = value
    return value


def _name(file, line):
    return "%s:%d" % (file, line)


def _tests_of(frame):
    file = frame.f_code.co_filename if frame is not None else "?"
    if file not in _tests:
        _tests[file] = _find_tests("".join(linecache.getlines(file, frame.f_globals if frame is not None else None)))
    return _tests[file]


def _find_tests(source):
    """Conditions of `assert`, and of `if` where a branch ends with `raise`; comparisons of values."""
    found = _Tests({}, set())
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if not source or tree is None:
        return _Tests({}, None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            _add_check(found.checks, node.test, True)
        elif isinstance(node, ast.If):
            for branch, passing in ((node.body, False), (node.orelse, True)):
                if branch and isinstance(branch[-1], ast.Raise):
                    _add_check(found.checks, node.test, passing)
        elif isinstance(node, ast.Compare) and not all(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            found.comparisons.update(range(node.lineno, node.end_lineno + 1))
    return found


def _add_check(found, test, passing):
    lines = range(test.lineno, test.end_lineno + 1)
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, passing = test.operand, not passing
    is_plain = isinstance(test, (ast.Compare, ast.BinOp, ast.Call, ast.Name, ast.Attribute, ast.Subscript)) and len(getattr(test, "ops", "1")) == 1
    found.update(dict.fromkeys(lines, passing if is_plain else None))


def suspect(error, trace):
    """The guess that may have made the program fail with ERROR, as {place, other, error}; None if there is none.

    It was read in a line of the traceback, the innermost one first, or it is the last one of the function that raised."""
    if not isinstance(error, Exception) or isinstance(error, _OTHER_CAUSES) or type(error).__name__ == "OutOfMemoryError":
        return None
    frames = []
    while trace is not None:
        if not notes.is_own(trace.tb_frame):
            frames.insert(0, (trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    for code, line in frames:
        for group in _GROUPS:
            key = (code.co_filename, code.co_firstlineno, line, group)
            if key in _reads:
                return _suspect(key, error)
    for key in reversed(list(_reads)):
        if frames and key[:2] == (frames[0][0].co_filename, frames[0][0].co_firstlineno):
            return _suspect(key, error)
    return None


def _suspect(key, error):
    file, _, line, group = key
    other = 1 if group == "share" or not _reads[key] else 0
    return {"place": _name(file, line), "other": "%s %d %s" % (group, other, _name(file, line)),
            "error": ("%s: %s" % (type(error).__name__, error))[:200]}


def note_failure():
    """At the end of the interpreter, which keeps the exception that ended the program."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        found = suspect(error, getattr(sys, "last_traceback", None))
        if found:
            notes.fact("suspect", found)
