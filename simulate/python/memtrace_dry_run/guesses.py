"""Outcomes of guesses, under the assumption of this run.

memtrace runs a command again under other assumptions if its peaks may depend on guesses. The variable has lines:

    share=PERCENT                    of what a mask, a selection, boxes or unique values leave; 50 by default
    inverted                         truth values that the program reads have the other outcome
    other=truth|number 0|1 FILE:LINE    this line reads this value
    other=share 1 FILE:LINE          what this line selects is everything

A condition that decides about an exception only has one outcome in a program that runs. It gets that one if the
statement shows which it is, is not inverted, and counts as a check."""
import ast
import linecache
import os
import sys

from . import notes

VARIABLE = "MEMTRACE_DRY_RUN_GUESSES"
DEFAULT_SHARE = 0.5
MAX_READS = 4096  # places of which the last guess is known
_reads = {}  # (file, line of the function, line, group): value of the last guess; the latest is the last
_GROUPS = ("truth", "number", "share")  # the first is the most likely cause of a failure
_OTHER_CAUSES = (NameError, AttributeError, TypeError, ImportError, SyntaxError, OSError)  # than a value
_checks = {}  # file: {line with the condition of a check: the outcome without an exception, or None}


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
        return _outcome("number", frame, value)
    checks = _checks_of(frame)
    is_check = frame is not None and frame.f_lineno in checks
    notes.made_up("check" if is_check else "condition")
    if is_check:
        passing = checks[frame.f_lineno]
        value = value if passing is None else passing
    return _outcome("truth", frame, value != (_assumption.is_inverted and not is_check))


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


def _checks_of(frame):
    file = frame.f_code.co_filename if frame is not None else "?"
    if file not in _checks:
        _checks[file] = _conditions_of_checks("".join(linecache.getlines(file, frame.f_globals if frame is not None else None)))
    return _checks[file]


def _conditions_of_checks(source):
    """Conditions of `assert`, and of `if` where a branch ends with `raise`."""
    found = {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            _add_check(found, node.test, True)
        elif isinstance(node, ast.If):
            for branch, passing in ((node.body, False), (node.orelse, True)):
                if branch and isinstance(branch[-1], ast.Raise):
                    _add_check(found, node.test, passing)
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
