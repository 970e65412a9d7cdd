"""The stacks that the collector reads, against those that Python tells.

    check_python_stacks.py PROBE [SCENARIO...]

PROBE is the shared library made from python_probe.c. Runs under the
interpreter that is to be tested, any since 3.9; each scenario in a process
of its own.
"""
import asyncio
import contextlib
import ctypes
import functools
import os
import random
import struct
import subprocess
import sys
import threading

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import thread_sanitizer  # pylint: disable=wrong-import-position

ABSENT, UNCHECKED, CHECKED, OFF = range(4)
STACK_MAX = 512


class Probe:
    def __init__(self, path):
        self.free = ctypes.CDLL(path)  # calls without the lock
        self.held = ctypes.PyDLL(path)  # calls with it
        self.held.probe_facts.restype = self.held.probe_said.restype = ctypes.c_char_p
        self.free.probe_bench.restype = ctypes.c_double
        self.free.probe_bench.argtypes = [ctypes.c_long]
        self.local = threading.local()

    def buffer(self):
        if not hasattr(self.local, "buffer"):
            self.local.buffer = ctypes.create_string_buffer(1 << 20)
        return self.local.buffer

    def state(self):
        return self.held.probe_state()

    def said(self):
        return self.held.probe_said().decode()


probe = None
compared = 0


def told(frame):
    """Python's own view of the stack, outermost first."""
    frames = []
    while frame:
        code = frame.f_code
        name = code.co_qualname if hasattr(code, "co_qualname") else code.co_name
        file = code.co_filename.encode("utf-8", "surrogatepass")
        frames.append((file, name, frame.f_lineno or 0))
        frame = frame.f_back
    return frames[::-1][-STACK_MAX:]


def read(library):
    buffer = probe.buffer()
    count, expected = library.probe_stack(buffer, len(buffer)), told(sys._getframe())
    frames = buffer.value.decode("utf-8").split("\x1e")[:-1]
    assert len(frames) == count, (count, len(frames))
    return [tuple(frame.split("\x1f")) for frame in frames], expected


def same(frames, expected):
    return frames == [(lone_to_replacement(file), name, str(line)) for file, name, line in expected]


def lone_to_replacement(file):
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in file.decode("utf-8", "surrogatepass"))


def check():
    """At any place: both ways of calling, equal to what Python says."""
    global compared
    for library in (probe.free, probe.held):
        frames, expected = read(library)
        if not same(frames, expected):
            for ours, theirs in zip(frames[::-1], expected[::-1]):
                print("ours", ours, "python", theirs, file=sys.stderr)
            raise AssertionError(f"{len(frames)} frames, Python says {len(expected)}")
        compared += 1
    return True


def checked_key(value):
    check()
    return value


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        check()
        return function(*args, **kwargs)

    return wrapper


def functions():
    def inner(depth):
        check(); check()
        if depth:
            inner(depth - 1)
        return [
            check(),

            check(),
        ]

    inner(3)
    (lambda: check())()
    (lambda: (lambda x: x and check())(
        1
    ))()
    decorated(inner)(1)
    sorted([3, 1, 2], key=checked_key)
    list(map(checked_key, range(3)))
    functools.reduce(lambda a, b: check() and b, range(3))
    functools.partial(inner, 1)()
    try:
        check()
        raise ValueError
    except ValueError:
        check()
    finally:
        check()
    with contextlib.ExitStack() as stack:
        stack.callback(check)
        with contextlib.suppress(KeyError):
            check()
            raise KeyError
    for _ in range(300):  # specialized, where there is such a thing
        inner(0)


class Metaclass(type):
    def __new__(cls, name, bases, members):
        check()
        return super().__new__(cls, name, bases, members)


def classes():
    class Body(metaclass=Metaclass):
        check()
        values = [check() for _ in range(2)]

        def __init__(self):
            check()

        def __del__(self):
            check()

        def __getattr__(self, name):
            return check()

        @property
        def held(self):
            return check()

        @staticmethod
        def static():
            check()

        @classmethod
        def of_class(cls):
            check()

        def __call__(self):
            check()

        def __add__(self, other):
            return check()

        def __eq__(self, other):
            return check()

    body = Body()
    body.held, body.missing, body.static(), body.of_class(), body(), body + 1, body == 2
    del body


def comprehensions():
    [check() for _ in range(2)]
    {check() for _ in range(2)}
    {i: check() for i in range(2)}
    [[check() for _ in range(2)] for _ in range(2)]
    list(check() for _ in range(2))
    [x for x in range(2) if (lambda: check())()]


def numbers(count):
    for i in range(count):
        check()
        yield i
        check()


def delegated(count):
    yield from numbers(count)
    return (yield from numbers(1))


def generators():
    for _ in numbers(3):
        check()
    for _ in delegated(2):
        check()
    generator = delegated(2)
    next(generator)
    generator.close()

    @contextlib.contextmanager
    def manager():
        check()
        yield
        check()

    with manager():
        check()

    # made by one thread, run by another
    generator = delegated(3)
    next(generator)
    in_thread(lambda: list(generator))


async def coroutine(depth):
    check()
    if depth:
        await coroutine(depth - 1)
    await asyncio.sleep(0)
    check()


async def ticks():
    for i in range(2):
        check()
        yield i
        await asyncio.sleep(0)


async def work():
    await coroutine(3)
    await asyncio.gather(*(coroutine(i) for i in range(3)))
    async for _ in ticks():
        check()
    [check() async for _ in ticks()]


def coroutines():
    asyncio.run(work())


def in_thread(call):
    failed = []

    def body():
        try:
            call()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def threads():
    in_thread(check)
    in_thread(generators)
    others = [threading.Thread(target=functions) for _ in range(4)]
    for thread in others:
        thread.start()
    functions()
    for thread in others:
        thread.join()


def no_python():
    """A thread that Python does not know has no stack; one that calls back has."""
    call = ctypes.CFUNCTYPE(None)(check)
    probe.free.probe_call_elsewhere(call)
    probe.free.probe_call_elsewhere(probe.free.probe_poll)
    check()


def executed():
    exec("check()\n\n\ncheck()")
    eval("check()")
    exec(compile("def f():\n    check()\n\nf()", "a file that is not there", "exec"))
    for i in range(300):  # one after the other, where the last one was
        exec(compile("\n" * (i % 3) + "check()", f"<cell {i:04}>", "exec"))
        names = {}
        exec(f"def function_{i:04}():\n    check()", globals(), names)
        names[f"function_{i:04}"]()
    for i in range(600):  # at two places in turn: the code of a kept stack is replaced
        exec(compile("check()" if i % 2 else "dict()", f"<cell {i:04}>", "exec"))
    # long tables
    exec("\n" * 100000 + "check()\n" + "x = 1\n" * 30000 + "check()")
    exec("x = (" + "1 +\n" * 900 + "check())\ncheck()")


def names():
    for name in ("caf\u00e9", "\u65e5\u672c\u8a9e", "\U00010400\U00010428", "x" * 900):
        exec(compile(f"def {name}():\n    check()\n{name}()", f"/{name}/\U0001f600.py", "exec"))
    exec(compile("check()", b"/not/\xff\xfe/utf8.py", "exec"))
    exec(compile("check()", "", "exec"))


def deep():
    def down(depth):
        if depth:
            return down(depth - 1)
        return check()

    def down_through_c(depth):
        if depth:
            return list(map(down_through_c, [depth - 1]))
        return check()

    sys.setrecursionlimit(3000)
    for depth in (1, 2, 100, 500, 511, 512, 513, 900):
        down(depth)
    for depth in (1, 10, 300):
        down_through_c(depth)


def traced():
    """With a trace and a profile function, as debuggers and coverage have."""

    def tracer(frame, event, argument):
        return tracer

    sys.settrace(tracer)
    sys.setprofile(lambda *event: None)
    try:
        functions()
        executed()
        for _ in delegated(3):
            check()
    finally:
        sys.setprofile(None)
        sys.settrace(None)


def forks():
    """Ids of the parent mean nothing in the child."""
    check()
    child = os.fork()
    if child == 0:
        os._exit(0 if check() and functions() is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    check()


def interpreters():
    """Another interpreter in the process: right, or no stack."""
    for module in ("_interpreters", "_xxsubinterpreters"):
        try:
            sub = __import__(module)
            break
        except ImportError:
            continue
    else:
        return
    identity = sub.create()
    source = f"import sys; sys.argv = ['x']; sys.path = {sys.path!r}; import check_python_stacks as c"
    try:
        sub.run_string(identity, f"{source}; c.start({sys.argv[1]!r}); c.read(c.probe.free); c.read(c.probe.held)")
    except Exception as error:  # many modules refuse to be there
        print("sub-interpreter:", error)
    sub.destroy(identity)
    check()


EVERYWHERE = [functions, classes, comprehensions, generators, coroutines, threads, no_python,
              executed, names, deep, traced, forks, interpreters]


def everywhere():
    for scenario in EVERYWHERE:
        scenario()


def before_the_check():
    """Without the lock and before anybody compared: stacks all the same."""
    for _ in range(20):
        frames, expected = read(probe.free)
        assert same(frames, expected), (frames, expected)
    assert probe.state() == UNCHECKED


def by_an_event():
    """The first event of a thread that has the lock compares."""
    before_the_check()
    (lambda: check())()  # with a table of no bytes, in 3.9
    assert probe.state() == CHECKED
    probe.free.probe_poll()
    probe.free.probe_poll()
    assert probe.held.probe_facts() == b"sources=python\nhas_stacks=1\n", probe.held.probe_facts()
    everywhere()


def by_a_pending_call():
    """The writer thread asks, the main thread compares."""
    (lambda: before_the_check())()
    in_thread(before_the_check)
    probe.free.probe_poll()
    (lambda: [probe.state() for _ in range(1000)])()
    assert probe.state() == CHECKED
    everywhere()


def stopped():
    probe.free.probe_stop()
    assert read(probe.free)[0] == [] and read(probe.held)[0] == []
    probe.free.probe_poll()
    assert read(probe.held)[0] == []


def wrong_layouts():
    """However wrong our idea of the layout is: no crash, no stack that was
    checked and is wrong, and one line to the user."""
    right = (ctypes.c_char * 128)()
    probe.held.probe_layout(right, None)
    # numbers of fields in struct mt_python_layout, behind two words: those of
    # the thread and its frames, then those of objects
    small, large = [0, 1, 2, 3, 4], [7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 20]
    generator = random.Random(1)
    off = 0
    for _ in range(400):
        layout = bytearray(right.raw)
        field = generator.choice(small + large)
        value = generator.randrange(0, 120 if field in small else 240, generator.choice((1, 4, 8)))
        struct.pack_into("<H", layout, 8 + 2 * field, value)
        struct.pack_into("<HH", layout, 52, 128, 256)  # the spans
        probe.held.probe_reset()
        probe.held.probe_layout(None, bytes(layout))
        for _ in range(20):
            frames, expected = read(probe.held)
            probe.free.probe_poll()
            if probe.state() in (OFF, CHECKED):
                break
        frames, expected = read(probe.held)
        if probe.state() == CHECKED:
            assert same(frames, expected), (field, value)
        if probe.state() == OFF:
            off += 1
            assert frames == []
            probe.free.probe_poll()
            assert "no Python stacks" in probe.said() or off > 1, probe.said()
    assert off > 100, off
    probe.held.probe_reset()
    probe.held.probe_layout(None, right)
    check()


def ends_while_reading():
    """Threads that read on while the interpreter ends."""
    check()
    for _ in range(3):
        threading.Thread(target=probe.free.probe_spin, daemon=True).start()
    check()


def lines():
    """Every offset of every code object of much of the library."""
    table_of = operator_linetable()
    address_line = ctypes.pythonapi.PyCode_Addr2Line
    address_line.argtypes = [ctypes.py_object, ctypes.c_int]
    version = sys.version_info[0] << 8 | sys.version_info[1]
    ours = (ctypes.c_uint32 * (1 << 18))()
    objects = offsets = 0
    for code in all_codes():
        table = table_of(code)
        count = len(code.co_code)
        if count > len(ours):
            continue
        probe.held.probe_lines(version, code.co_firstlineno, table, len(table), ours, count)
        for offset in range(0, count, 2):
            theirs = max(address_line(code, offset), 0)
            assert ours[offset] == theirs, (code, offset, ours[offset], theirs)
            offsets += 1
        if hasattr(code, "co_lines"):
            for begin, end, line in code.co_lines():
                for offset in range(max(begin, 0), min(end, count), 2):
                    assert ours[offset] == (line or 0), (code, offset, ours[offset], line)
        objects += 1
    print(f"lines: {objects} code objects, {offsets} instructions")
    assert objects > 1000


def operator_linetable():
    if sys.version_info >= (3, 10):
        return lambda code: code.co_linetable
    return lambda code: code.co_lnotab


def all_codes():
    folder = os.path.dirname(os.__file__)
    files = sorted(f for f in os.listdir(folder) if f.endswith(".py"))
    files = [os.path.join(folder, f) for f in files][:60] + [__file__]
    for file in files:
        with open(file, "rb") as source:
            try:
                waiting = [compile(source.read(), file, "exec", dont_inherit=True)]
            except SyntaxError:
                continue
        while waiting:
            code = waiting.pop()
            waiting.extend(c for c in code.co_consts if hasattr(c, "co_code"))
            yield code
    yield compile("\n" * 70000 + "a = 1\n\n" * 400 + "b = 2", "far", "exec")


def kept():
    """A stack that occurs twice in succession is kept until another one does."""
    buffer, too_deep = probe.buffer(), ctypes.c_bool()

    def keeps():
        return probe.held.probe_kept(ctypes.byref(too_deep))

    def take(others):
        for other in others:
            if other:
                probe.held.probe_stack(buffer, len(buffer))
            else:
                probe.held.probe_stack(buffer, len(buffer))
            yield keeps()

    def down(depth):
        return down(depth - 1) if depth else [too_deep.value for _ in take([0] * 9)]

    check()
    if sys.version_info < (3, 12):
        assert list(take([0, 0, 0])) == [0, 0, 0]
        return
    first, *stacks = list(take([0, 0, 0, 1, 0, 1, 0, 1, 0, 1]))[1:]
    assert first and set(stacks) == {first}, (first, stacks)
    assert list(take([1, 1, 0]))[-1] not in (0, first)
    tries = down(400)
    assert tries.count(True) == 1, tries


def bench():
    def down(depth):
        if depth:
            return down(depth - 1)
        return probe.free.probe_bench(1000000)

    check()
    for depth in (7, 27):
        print(f"{sys.version.split()[0]}: {depth} frames: {down(depth - 3):.0f} ns")


SCENARIOS = [by_an_event, by_a_pending_call, stopped, wrong_layouts, ends_while_reading, lines, kept]


def start(path):
    global probe
    os.environ["MEMTRACE_OUTPUT"] = "/nowhere"
    probe = Probe(path)


def main(path, wanted):
    if len(wanted) == 1:
        start(path)
        globals()[wanted[0]]()
        if compared:
            print(f"{wanted[0]}: {compared} stacks compared")
        return 0
    failures = 0
    environment = {**os.environ, **thread_sanitizer.preload(path)}
    for scenario in wanted or [s.__name__ for s in SCENARIOS]:
        run = subprocess.run([sys.executable, *interpreter_options(), __file__, path, scenario],
                             env=environment)
        if run.returncode:
            print(f"{scenario}: exit status {run.returncode}", file=sys.stderr)
            failures += 1
    return failures != 0


def interpreter_options():
    return ["-X", "gil=0"] if "free-threading" in sys.version else []


if __name__ == "__main__":
    sys.modules["check_python_stacks"] = sys.modules["__main__"]
    sys.exit(main(sys.argv[1], sys.argv[2:]))
