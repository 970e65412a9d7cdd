"""The data of report.html (report_page.h), decoded a second time: what tests compare the page with."""
import bisect
import collections
import decimal
import itertools
import json
import re

GROUP_NUMBERS, STEP_NUMBERS, PHASE_NUMBERS, KIND_NUMBERS = 9, 5, 6, 8
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def document(page):
    return json.loads(re.search(r'id="mt-data">(.*?)</script>', page.read_text(), re.DOTALL).group(1))


def parts(values, size):
    return [values[at:at + size] for at in range(0, len(values), size)]


def format_bytes(size):
    """As formatBytes of page.js."""
    value, unit = decimal.Decimal(size), 0
    if size < 1000:
        return f"{size} B"
    while value >= decimal.Decimal("999.5"):
        value, unit = value / 1024, unit + 1
    decimals = 2 if value < decimal.Decimal("9.995") else 1 if value < decimal.Decimal("99.95") else 0
    rounded = value.quantize(decimal.Decimal(1).scaleb(-decimals), decimal.ROUND_HALF_UP)
    return f"{rounded} {UNITS[unit]}"


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
Block = collections.namedtuple("Block", "address event bytes is_older group end_event wait")


def numbers(text):
    """The numbers of a text in base 64, as source maps have them, the sign still in the lowest bit."""
    value = shift = 0
    for digit in map(DIGITS.index, text):
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            yield value
            value = shift = 0


def blocks_of(source):
    """The single blocks of a device. wait: 0 = none, 1 = to the end of the trace, otherwise in events."""
    kinds, addresses = parts(source["kinds"], KIND_NUMBERS), collections.Counter()
    signed = lambda value: ~(value >> 1) if value & 1 else value >> 1
    stream, event, blocks = numbers(source["blocks"]), 0, []
    for kind in stream:
        addresses[kind] += signed(next(stream))
        next(stream)  # phase and step
        event += signed(next(stream))
        next(stream)  # time
        life = next(stream)
        wait = 0
        if life:
            next(stream)  # time
            wait = next(stream)
        if wait > 1:
            next(stream)
        size, _, _, _, _, _, group, is_older = kinds[kind]
        blocks.append(Block(addresses[kind] % 2 ** 64 * source["address_unit"], event, size, bool(is_older), group,
                            event + life if life else None, wait))
    return blocks


class PageData:
    """One device of a page. Positions are those of the axis: busy nanoseconds, or events."""

    def __init__(self, page, index=0):
        whole = document(page)
        self.roles = whole["roles"]
        self.source = source = whole["devices"][index]
        self.device = source["device"]
        self.begin = list(itertools.accumulate(source["begin"]))
        self.begin_event = list(itertools.accumulate(source["begin_event"]))
        self.event = [begin + after for begin, after in zip(self.begin_event, source["event"])]
        self.count = len(self.begin)
        self.exact = {column for first, count in parts(source["exact"], 2)
                      for column in range(first, first + count)}
        self.steps = [tuple(step) for step in parts(source["steps"], STEP_NUMBERS)]
        self.phases = [(source["strings"][phase[0]], *phase[2:])
                       for phase in parts(source["phases"], PHASE_NUMBERS)]
        self.blocks = blocks_of(source)
        self.set_axis(bool(source["by_event"]))

    def set_axis(self, by_event):
        self.by_event = by_event
        first, last = self.source["events"]
        spans = parts(self.source["spans"], 2)
        self.length = last + 1 - first if by_event else max(1, sum(end - begin for begin, end in spans))
        self.x = [0] + [self.position(t, event) for t, event in zip(self.begin, self.begin_event)][1:]

    def position(self, t_ns, event):
        if self.by_event:
            return min(max(event - self.source["events"][0], 0), self.length)
        return sum(max(0, min(t_ns, end) - begin) for begin, end in parts(self.source["spans"], 2))

    def column_at(self, position):
        return max(0, bisect.bisect_right(self.x, position) - 1)

    def column_of_event(self, event):
        return max(0, bisect.bisect_right(self.begin_event, event) - 1)

    def event_before(self, column):
        """The event of the state that a column changes; None: the state before all columns."""
        return self.event[column - 1] if column else None

    def longest_exact(self):
        """The first column and the number of columns of the longest run with single events."""
        return max(parts(self.source["exact"], 2), key=lambda run: run[1])
