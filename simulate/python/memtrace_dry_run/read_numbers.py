"""Numbers that the program read and nobody knows, with a mark that arithmetic keeps: if the program compares one, it decides.

The mark is lost where only C sees the number (`math`, NumPy), and in `float(tensor)`, for which Python permits no other
class. What is printed, logged or averaged is no decision. Dynamo compiles other functions for other classes, so that there
are no marks in a program that compiles."""
import functools
import math
import weakref

from . import guesses, importing, notes


class ReadNumber(float):
    """A float in all that a program does with it."""

    __slots__ = ()

    def __hash__(self):
        return float.__hash__(self)

    def __reduce_ex__(self, _protocol):
        return float, (float(self),)

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self


def _keeping(name):
    of_float = getattr(float, name)

    @functools.wraps(of_float)
    def computed(self, *others):
        if others and isinstance(others[0], float) and type(others[0]) not in (float, ReadNumber):
            return NotImplemented # a number of NumPy, whose class the result has
        value = of_float(self, *others)
        return ReadNumber(value) if type(value) is float else value

    return computed


def _deciding(name):
    of_float = getattr(float, name)

    @functools.wraps(of_float)
    def compared(self, other):
        value = of_float(self, other)
        return value if value is NotImplemented or not _decides(self, other) else _decided(value)

    return compared


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _full in ("__%s__" % _name, "__r%s__" % _name):
        setattr(ReadNumber, _full, _keeping(_full))
for _full in ("__neg__", "__pos__", "__abs__", "__round__"):
    setattr(ReadNumber, _full, _keeping(_full))
for _full in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(ReadNumber, _full, _deciding(_full))


def _decides(number, other):
    """No number is beyond infinity, and whether one is NaN is no question of its value."""
    return number is not other and (isinstance(other, int) or isinstance(other, float) and math.isfinite(other))


def _decided(value):
    try:
        frame = notes.innermost()
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == "torch" or not guesses.is_comparison(frame): # min, max and sort compare in C
            return value
        return guesses.other_if_always(guesses.read(value))
    except Exception as error:
        notes.failed("comparison of a number", error)
        return value


_is_on = True
_copies = {}  # id of a tensor of the host: a reference to it


def copied(t):
    """T, on the host, gets a number that nobody knows."""
    key = id(t)
    _copies[key] = weakref.ref(t, lambda _: _copies.pop(key, None))


def _is_copy(t):
    found = _copies.get(id(t))
    return found is not None and found() is t


def install(torch):
    """`item` returns marked numbers."""
    item = torch.Tensor.item

    @functools.wraps(item)
    def marked(self):
        if not _is_on:
            return item(self)
        guesses.here.number, guesses.here.is_marked = None, True
        try:
            value = item(self)
        finally:
            guesses.here.is_marked = False
        return ReadNumber(value) if type(value) is float and (guesses.here.number is not None or _is_copy(self)) else value

    torch.Tensor.item = marked
    if hasattr(torch, "compile"):
        torch.compile = _stopping(torch.compile)
    if hasattr(torch.serialization, "add_safe_globals"): # a checkpoint has it as float(0.5)
        torch.serialization.add_safe_globals([float])
    write_as_float()


def _stopping(compiles):
    @functools.wraps(compiles)
    def compile(*arguments, **named):
        global _is_on
        _is_on = False
        return compiles(*arguments, **named)

    return compile


def write_as_float():
    """Libraries that look for the class of a number itself write it as a float."""
    importing.after("yaml", _represent_as_float)
    importing.after("orjson", _convert_by_default)


def _represent_as_float(yaml):
    for kind in (yaml.representer.SafeRepresenter, yaml.representer.Representer):
        kind.add_representer(ReadNumber, lambda representer, number: representer.represent_float(float(number)))


def _convert_by_default(orjson):
    dumps = orjson.dumps

    @functools.wraps(dumps)
    def dumped(value, default=None, option=None):
        def converted(other):
            if isinstance(other, ReadNumber):
                return float(other)
            if default is None:
                raise TypeError("Type is not JSON serializable: %s" % type(other).__name__)
            return default(other)

        return dumps(value, converted, option)

    orjson.dumps = dumped
