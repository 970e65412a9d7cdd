#!/usr/bin/env python3
"""check_page_actions.py PROGRAM: what a person does on the timeline of report.html, with the mouse,
the wheel, fingers and keys of a real browser. After each action the state is compared with `memtrace
live` and `memtrace dump`, or with the data of the page, decoded a second time. Without a browser:
skipped, but not in CI."""
import collections
import copy
import functools
import itertools
import json
import pickle
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

import browser as driver
import check_report
from support.page_data import PageData, document, format_bytes
from support.program import fast_program

CAPTURES = check_report.CAPTURES
TRACE = CAPTURES / "gpt_split64.pickle.zst"
CAPPED = CAPTURES / "gpt_cap.pickle.zst"  # with a limit
RING = CAPTURES / "gpt_ring.pickle.zst"  # its history begins in the middle of the run
ROWS = {"steps": 31, "phases": 51}  # pixels below the plot, in the middle of each row
DEPTHS = (0.2, 0.35, 0.5, 0.6, 0.7, 0.75, 0.8)  # shares of the height, for layers
SLOW_START = CAPTURES / "lines.pickle.zst"  # its first step takes most of the time
REASONS = ("autograd engine", "no stack recorded", "allocated before recording started")
OF_PANEL = {"change", "note", "rows", "sum", "title", "way"}  # hidden while the panel is
SIGNS = {"alloc": 1, "free_requested": -1}  # of the allocated bytes

STATE = """
const device = arguments[0];
const canvas = document.querySelector(`#timeline-${device} .plot`);
const box = canvas.closest('.timeline'), tip = box.querySelector('.tip');
const aside = document.getElementById(`side-${device}`), panel = aside.querySelector('.selection');
const when = document.querySelector(`#device-${device} .when`);
const shown = (list) => [...list].filter((each) => each.checkVisibility());
const parts = new URLSearchParams(location.hash.slice(1));
const table = document.querySelector(`#live-${device}`);
const number = (row) => Number(row.dataset.v);
return {
  device,
  view: canvas.dataset.view.split(' ').map(Number),
  layers: Number(canvas.dataset.layers),
  range: parts.has(`r${device}`) ? parts.get(`r${device}`).split('-').map(Number) : null,
  hash: location.hash,
  event: Number(when.dataset.event), bytes: Number(when.dataset.bytes),
  isOpen: panel.checkVisibility(),
  answers: shown(aside.querySelectorAll('.answers')).length,
  title: panel.querySelector('.title').textContent,
  change: Number(panel.querySelector('.title').dataset.bytes),
  tabs: shown(panel.querySelectorAll('[role=tab]')).map((tab) => tab.textContent),
  tab: shown(panel.querySelectorAll('[aria-selected=true]')).map((tab) => tab.textContent)[0] || null,
  way: panel.querySelector('select').value,
  rows: [...panel.querySelectorAll('.rows tr[tabindex]')].map((row) => ({bytes: number(row),
    blocks: row.cells[2].textContent, name: row.cells[3].textContent, event: row.dataset.event})),
  sum: [...panel.querySelectorAll('.rows tr:not([tabindex])')].map(number)[0],
  note: panel.querySelector('.selection > .small').textContent,
  group: panel.querySelector('.group').checkVisibility() ? {
    title: panel.querySelector('.group strong').textContent,
    words: panel.querySelector('.group div').textContent,
    stack: [...panel.querySelectorAll('.group li')].map((each) => each.textContent)} : null,
  legend: [...box.querySelectorAll('.layers button:not(.all)')].map((key) =>
    [key.textContent, key.getAttribute('aria-pressed') === 'true']),
  tip: tip.checkVisibility() ? [...tip.children].map((each) => each.textContent) : null,
  layersBy: box.querySelector('.chart-bar select').value,
  axis: [...box.querySelectorAll('.chart-bar button')].map((each) => each.textContent)
    .find((text) => text.startsWith('axis')),
  live: [...table.tBodies[0].rows].map((row) => [Number(row.cells[0].dataset.v), row.cells[3].textContent]),
  scrolled: scrollY,
};
"""
# The number of pixels of the plot that have the color of a class, and the color.
COLORED = """
const [device, name] = arguments;
const canvas = document.querySelector(`#timeline-${device} .plot`);
const probe = document.body.appendChild(document.createElement('i'));
probe.className = name;
const color = name.startsWith('--') ? getComputedStyle(document.documentElement).getPropertyValue(name)
  : getComputedStyle(probe).backgroundColor;
probe.remove();
const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
pen.fillStyle = color.trim();
pen.fillRect(0, 0, 1, 1);
const wanted = pen.getImageData(0, 0, 1, 1).data.join();
const [x, y, width, height] = canvas.dataset.plot.split(' ').map((each) => each * devicePixelRatio);
const copy = document.createElement('canvas');
[copy.width, copy.height] = [width, height];
const taken = copy.getContext('2d', {willReadFrequently: true});
taken.drawImage(canvas, -x, -y);
const {data} = taken.getImageData(0, 0, width, height);
let count = 0;
for (let at = 0; at < data.length; at += 4) count += data.slice(at, at + 4).join() === wanted;
return [count, wanted];
"""


def number(text):
    return int(text.replace(",", ""))


def visible(state):
    """The state without what an earlier selection left in the hidden panel."""
    return {key: value for key, value in state.items() if state["isOpen"] or key not in OF_PANEL}


decoded = functools.lru_cache(maxsize=None)(PageData)


class Actions(check_report.Check):
    """The page that is open, its data, and what a person does with it."""

    def __init__(self, *given):
        super().__init__(*given)
        self.page = self.device = None
        self.at_first = {}  # (page, device) -> the state without a link

    def load(self, trace, page, state="", index=0):
        """Shows the page in a state. It is loaded unless it is open and Esc and an empty link lead back to
        what it shows at first. Loading takes most of the time of this test."""
        is_open = page == self.page and self.is_as_loaded()
        self.trace = trace
        self.page = page
        self.data = copy.copy(decoded(page, index))  # each load has its own axis
        self.device = self.data.device
        self.data.set_axis(f"x{self.device}=event" in state or bool(self.data.source["by_event"]))
        if is_open:
            self.browser.run("location.hash = arguments[0]", state)
        else:
            self.open(page, state)
        self.browser.wait("document.querySelectorAll('.plot[data-view]').length > given[0]", index)
        if not state and not is_open:
            self.at_first[page, self.device] = visible(self.state())

    def is_as_loaded(self):
        self.browser.keys("Escape")
        self.browser.run("scrollTo(0, 0); location.hash = ''")
        self.browser.move((1, 1))
        return visible(self.state()) == self.at_first.get((self.page, self.device))

    def open(self, page, state=""):
        self.page = page
        super().open(page, state)

    def state(self):
        self.browser.wait("true")
        return self.browser.run(STATE, self.device)

    @functools.lru_cache(maxsize=None)
    def live_at(self, trace, device, event, by):
        return self.live(trace, {"event": event, "device": device}, by)

    def sums(self, event, by="role", key="group"):
        """Bytes by name at an event, as `memtrace live` prints them."""
        sums = collections.Counter()
        if event is not None:
            for row in self.live_at(self.trace, self.device, event, by)["rows"]:
                sums[row[key] or "no phase"] += row["bytes"]
        return sums

    @functools.lru_cache(maxsize=None)
    def analyze(self, trace, name, *options):
        return super().analyze(trace, name, *options)

    # ---- the hand ----------------------------------------------------------

    def point(self, across, down=0.5, below=0):
        return self.browser.plot_point(across, down, self.device, below)

    def at_position(self, point):
        """The position that a point of the window shows."""
        left, _, x, _, width, _ = self.browser.run(driver.PLOT, self.device)
        begin, end = self.state()["view"]
        return begin + (point[0] - left - x) / width * (end - begin)

    def point_of_column(self, column, down=0.5):
        begin, end = self.state()["view"]
        edges = self.data.x[column], (self.data.x + [self.data.length])[column + 1]
        return self.point((sum(edges) / 2 - begin) / (end - begin), down)

    def button(self, text, within=".timeline .chart-bar"):
        self.browser.run("""[...document.querySelector(`#timeline-${arguments[0]}`)
            .closest('.first, section').querySelectorAll(`${arguments[1]} button`)]
            .find((each) => each.textContent === arguments[2]).click()""", self.device, within, text)

    def choose(self, selector, value):
        self.browser.run("""const select = document.querySelector(arguments[0]);
            select.value = arguments[1]; select.dispatchEvent(new Event('change'));""", selector, value)

    def legend(self, name):
        self.button(name, ".layers")

    def tab(self, name):
        self.button(name, ".tabs")

    def drag(self, start, end):
        self.browser.drag(self.point(start), self.point(end))

    # ---- what must hold ------------------------------------------------------

    def size(self, state):
        return state["view"][1] - state["view"][0]

    def is_whole(self, state):
        return state["view"] == [0, self.data.length]

    def close_to(self, a, b):
        """Within two pixels of the whole axis, or of a view."""
        return abs(a - b) <= 2 / 700 * max(abs(a), abs(b), 1)

    def shows_instant(self, state, what):
        """The panel shows an instant, by role and by site as live prints it."""
        self.expect(state["isOpen"] and not state["answers"] and not state["tabs"],
                    f"{what}: the panel replaces the answers")
        self.expect(f"event {state['event']:,}" in state["title"], f"{what}: {state['title']}")
        for by in ("role", "site"):
            self.choose(f"#side-{self.device} .selection select", by)
            rows = {row["name"]: row["bytes"] for row in self.state()["rows"]}
            wanted = dict(self.sums(state["event"], by))
            self.expect(rows == wanted and state["bytes"] == sum(rows.values()),
                        f"{what}: by {by} {dict(wanted.items() - rows.items())} became "
                        f"{dict(rows.items() - wanted.items())}")

    def inside_window(self, what, selector):
        box = self.browser.run("""const box = document.querySelector(arguments[0]).getBoundingClientRect();
            return [box.left, box.right, innerWidth];""", selector)
        self.expect(0 <= box[0] < box[1] <= box[2], f"{what}: from {box[0]} to {box[1]} of {box[2]} px")

    def same_again(self, what):
        """The link of the page shows the same."""
        before = self.state()
        page, self.page = self.page, None  # it is loaded again
        self.load(self.trace, page, before["hash"],
                  [source["device"] for source in document(page)["devices"]].index(self.device))
        after = self.state()
        # An instant has no change; the attribute keeps that of an earlier range.
        unseen = {"tip", "scrolled"} | ({"change"} if len(set(before["range"] or ())) == 1 else set())
        for key in before.keys() - unseen:
            self.expect(before[key] == after[key],
                        f"the link {before['hash']} of {what}: {key} {before[key]} became {after[key]}")

    def hides_panel(self, state, what):
        self.expect(not state["isOpen"] and state["answers"] == 1 and state["range"] is None,
                    f"{what}: nothing is selected, the answers are there")


# ---- the view ------------------------------------------------------------------


def check_wheel(check):
    point = check.point(0.3)
    at = check.at_position(point)
    check.browser.wheel(point, -240)
    check.browser.wait("document.querySelector('.plot').dataset.view !== given[0]", f"0 {check.data.length}")
    near = check.state()
    check.expect(check.size(near) < check.data.length * 0.9, f"wheel up: zoomed in, not {near['view']}")
    check.expect(abs(check.at_position(point) - at) < check.data.length / 300,
                 "wheel up: the position at the pointer stays")
    check.expect(check.browser.wait("location.hash.includes('v0=')"), "wheel up: the link has the view")
    check.expect(near["scrolled"] == check.state()["scrolled"], "wheel up: the page does not scroll")
    check.browser.wheel(point, 120)
    check.browser.wait("document.querySelector('.plot').dataset.view !== given[0]",
                       " ".join(f"{each}" for each in near["view"]))
    wider = check.state()
    check.expect(check.size(near) < check.size(wider) < check.data.length,
                 f"wheel down: {near['view']} becomes {wider['view']}")
    for _ in range(8):
        if not check.is_whole(check.state()):
            check.browser.wheel(point, 240)
    check.expect(check.is_whole(check.state()), "wheel down: in the end all of it")


def check_page_scrolls(check):
    point = check.point(0.5)
    before = check.state()
    check.browser.wheel(point, 200)
    check.expect(check.browser.wait("scrollY > given[0]", before["scrolled"]),
                 "wheel down over the whole: the page scrolls")
    check.expect(check.is_whole(check.state()), "wheel down over the whole: the view stays")


def check_sideways(check):
    check.button("+")
    check.button("+")
    before = check.state()["view"]
    check.browser.wheel(check.point(0.5), 0, 150)
    check.browser.wait("!document.querySelector('.plot').dataset.view.startsWith(given[0])", f"{before[0]}")
    after = check.state()["view"]
    check.expect(after[0] > before[0] and check.close_to(after[1] - after[0], before[1] - before[0]),
                 f"wheel sideways: {before} moves to {after}")


def check_pinch(check):
    middle, half = check.point(0.5), 60
    check.browser.pinch(middle, half, 3 * half)
    state = check.state()
    check.expect(abs(check.size(state) * 3 / check.data.length - 1) < 0.05,
                 f"pinch: a third is visible, not {state['view']}")
    check.hides_panel(state, "pinch")
    check.browser.pinch(middle, 3 * half, half)
    check.expect(check.size(check.state()) > 0.95 * check.data.length, "pinch: back to all of it")


def check_touch_pan(check):
    check.button("+")
    check.button("+")
    before = check.state()
    check.browser.swipe(check.point(0.7), check.point(0.5))
    after = check.state()
    check.expect(abs(after["view"][0] - before["view"][0] - 0.2 * check.size(before)) <
                 check.size(before) / 100, f"finger: {before['view']} moves to {after['view']}")
    check.hides_panel(after, "finger")


def check_pan(check):
    check.button("+")
    check.button("+")
    before = check.state()
    check.drag(0.7, 0.5)
    after = check.state()
    check.expect(abs(after["view"][0] - before["view"][0] - 0.2 * check.size(before)) <
                 check.size(before) / 100, f"drag: {before['view']} moves to {after['view']}")
    check.hides_panel(after, "drag while zoomed")
    for _ in range(5):  # two are enough: a quarter of the whole is visible
        check.drag(0.9, 0.1)
    check.expect(check.close_to(check.state()["view"][1], check.data.length), "drag: not past the end")


def check_drag_selects(check):
    points = check.point(0.2), check.point(0.6)
    wanted = [check.data.column_at(check.at_position(point)) for point in points]
    check.browser.drag(*points)
    state = check.state()
    check.expect(state["range"] == wanted and check.is_whole(state),
                 f"drag over the whole: columns {wanted}, not {state['range']}")
    check.expect(state["isOpen"] and len(state["tabs"]) == 6, f"drag: tabs of a range {state['tabs']}")


def check_shift_drag(check):
    check.button("+")
    points = check.point(0.4), check.point(0.7)
    wanted = [check.data.column_at(check.at_position(point)) for point in points]
    before = check.state()
    check.browser.drag(*points, key="Shift")
    state = check.state()
    check.expect(state["range"] == wanted and state["view"] == before["view"],
                 f"shift and drag: columns {wanted}, not {state['range']}")


def check_double_click(check):
    check.button("+")
    check.button("+")
    check.browser.press(check.point(0.5), times=2)
    state = check.state()
    check.expect(check.is_whole(state), "double click: all of it")
    check.hides_panel(state, "double click")
    check.browser.press(check.point(0.3))
    selected = check.state()["range"]
    check.browser.press(check.point(0.6), times=2)
    check.expect(selected and check.state()["range"] == selected, "double click: what is selected stays")


def check_buttons(check):
    sizes = []
    for text in ("+", "+", "−", "all"):
        check.button(text)
        sizes.append(check.size(check.state()) / check.data.length)
    check.expect(all(abs(a - b) < 1e-6 for a, b in zip(sizes, (0.5, 0.25, 0.5, 1))),
                 f"buttons + + − all: {sizes}")
    peak = check.data.source["peak"]
    side = 0.9 if check.data.position(*peak[:2]) < check.data.length / 2 else 0
    begin = round(side * check.data.length)
    check.load(check.trace, check.page, f"#v0={begin}-{begin + round(0.05 * check.data.length)}&r0=3-9")
    check.button("peak")
    state = check.state()
    check.expect(state["isOpen"] and state["range"][0] == state["range"][1], f"button peak: {state['range']}")
    check.expect([state["event"], state["bytes"]] == peak[1:] and
                 state["view"][0] <= check.data.position(*peak[:2]) <= state["view"][1],
                 f"button peak: {state['event']} in {state['view']}")


def check_keys(check):
    sizes = []
    for key in ("+", "=", "-", "0"):
        check.browser.keys(key)
        sizes.append(check.size(check.state()) / check.data.length)
    check.expect(all(abs(a - b) < 1e-6 for a, b in zip(sizes, (0.5, 0.25, 0.5, 1))), f"keys + = - 0: {sizes}")
    peak = check.data.event.index(check.data.source["peak"][1])
    for keys, wanted in ((["Left"], [peak - 1] * 2), (["Left"], [peak - 2] * 2), (["Right"], [peak - 1] * 2),
                         ([("Shift", "Right")], [peak - 1, peak]), ([("Shift", "Right")], [peak - 1, peak + 1]),
                         ([("Shift", "Left")], [peak - 1, peak]), (["p"], [peak] * 2),
                         ([("Shift", "Left")], [peak - 1, peak]), ([("Shift", "Left")], [peak - 2, peak]),
                         ([("Shift", "Right")], [peak - 1, peak])):
        check.browser.keys(*keys)
        state = check.state()
        check.expect(state["range"] == wanted, f"keys {keys}: {wanted}, not {state['range']}")
    check.browser.keys("Left", "+", "/", *"forward")
    check.expect(check.browser.run("return document.querySelector('#tools input').value") == "forward",
                 "key /: the search has the keys")
    check.browser.keys("Escape")
    state = check.state()
    check.hides_panel(state, "key Esc")
    check.expect(check.is_whole(state) and state["hash"] == "", f"key Esc: {state['view']} {state['hash']}")


def check_keys_after_drag(check):
    """Keys extend the range of the pointer, not the earlier one of keys."""
    check.browser.keys("Left", ("Shift", "Right"))
    check.browser.drag(check.point(0.2), check.point(0.6))
    first, last = check.state()["range"]
    check.browser.keys(("Shift", "Right"))
    wanted = [first, last + 1]
    check.expect(check.state()["range"] == wanted, f"drag, then shift and right: not {wanted}")


# ---- the selection ---------------------------------------------------------------


def check_instant(check):
    for across in (0.15, 0.5, 0.85):
        check.load(TRACE, check.page)
        check.browser.press(check.point(across, 0.02))
        state = check.state()
        check.expect(state["range"] and state["range"][0] == state["range"][1], f"click: {state['range']}")
        check.shows_instant(state, f"click at {across}")
    left, right, top, bottom = check.browser.run("""
        const panel = document.querySelector('.selection').getBoundingClientRect();
        const plot = document.querySelector('.plot').getBoundingClientRect();
        return [panel.left, plot.right, panel.top, plot.bottom];""")
    check.expect(left >= right and top < bottom, "click: the panel is beside the timeline")


def near_peak(check, columns):
    """A view of the columns around the peak, on the axis of events."""
    check.data.set_axis(True)
    at = check.data.event.index(check.data.source["peak"][1])
    view = [check.data.x[at - columns], check.data.x[at + columns]]
    check.load(check.trace, check.page, f"#x0=event&v0={view[0]}-{view[1]}")
    return at


def has_stack(check, event, role, frames, whole):
    """Whether live has blocks with these innermost frames, or with all frames. Blocks without a stack
    have a reason instead of an outermost frame."""
    if frames[-1] in REASONS:
        frames = frames[:-1]
    stacks = [row["group"].split(" < ") for row in check.live_at(check.trace, check.device, event, "stack")["rows"]
              if row["role"] in (role, None)]
    return any(frames == (stack if whole else stack[:len(frames)]) for stack in stacks)


def check_layer(check):
    at = near_peak(check, 40)
    seen = set()
    for down in DEPTHS:
        check.browser.press(check.point_of_column(at, down))
        state = check.state()
        check.expect(state["range"] == [at, at], f"click on a layer: {state['range']}, not {at}")
        check.shows_instant(state, "click on a layer")
        group = state["group"]
        if group:
            seen.add(group["title"])
            check.expect(has_stack(check, state["event"], group["words"].split(",")[0], group["stack"], True),
                         f"click on a layer: live has no {group}")
    check.expect(len(seen) > 1, f"layers with stacks: {seen}")


def peak_of(page, row, name, last):
    """The allocated peak of a step, or of a phase that ends with an event, as report.json has it."""
    rows = json.loads((page.parent / "report.json").read_text())["devices"][0][row]
    key, wanted = ("step", name) if row == "steps" else ("end_event", last)
    return next(each["peak"]["allocated"] for each in rows
                if each[key] == wanted and (row == "steps" or each["name"] == name))


def check_range(check, page, row, ranges):
    """A click below the plot selects the columns that have the events of the longest step or phase."""
    name, begin, end, first, last = max(ranges, key=lambda each: each[4] - each[3])
    middle = check.data.position(begin, first), check.data.position(end, last + 1)
    point = check.point(sum(middle) / 2 / check.data.length, 1, ROWS[row])
    check.browser.move(point)
    tip = check.state()["tip"]
    check.expect(tip and tip[0] == (f"step {name}" if row == "steps" else name),
                 f"{row}: the pointer shows {name}: {tip}")
    peak = f"peak {format_bytes(peak_of(page, row, name, last))} allocated"
    check.expect(tip and peak in tip, f"{row}: {name} has the {peak}: {tip}")
    check.browser.press(point)
    shown = check.state()["range"]
    inside = {check.data.column_of_event(event["seq"]) for event in events_of(check.program, check.trace)
              if first <= event["seq"] <= last and event["kind"] in SIGNS and
              event["device"] == check.device}
    columns = range(shown[0], shown[1] + 1)
    strangers = [column for column in columns if column in check.data.exact and
                 not first <= check.data.event[column] <= last]
    check.expect(inside <= set(columns) and not strangers and len(columns) <= max(inside) - min(inside) + 3,
                 f"{row}: {name} is columns {min(inside)} to {max(inside)}, not {shown}, "
                 f"with {strangers} of others")


def check_end(check):
    """The last column has the state at the end of the run, after the program freed what was left."""
    device = json.loads((check.page.parent / "report.json").read_text())["devices"][0]
    shown = check.browser.run("return explorers[0].model.totals.at(-1)")
    check.expect(shown == device["summary"]["end"]["allocated"] < device["steps"][-1]["peak"]["allocated"],
                 f"the end: {shown} B are allocated, not {device['summary']['end']}")


def check_changes_of_steps(check):
    """What a step grew is the difference of the state at its ends, for every step."""
    steps = json.loads((check.page.parent / "report.json").read_text())["devices"][0]["steps"]
    check.load(TRACE, check.page)
    shown = check.browser.run("""const explorer = explorers[0];
        return explorer.timeline.stepRanges().map((range) => {
          explorer.select(...range.columns);
          return Number(explorer.panel.title.dataset.bytes);
        });""")
    wanted = [step["exit"]["allocated"] - step["enter"]["allocated"] for step in steps]
    check.expect(shown == wanted and len(wanted) > 1, f"steps grew by {shown}, not {wanted}")
    check.load(TRACE, check.page)
    points = []
    for _, begin, end, first, last in check.data.steps[1:3]:
        middle = check.data.position(begin, first) + check.data.position(end, last + 1)
        points.append(check.point(middle / 2 / check.data.length, 1, ROWS["steps"]))
    check.browser.press(points[0])
    check.browser.drag(points[1], points[1], key="Shift")
    grew = check.browser.run("return Number(explorers[0].panel.title.dataset.bytes)")
    both = steps[2]["exit"]["allocated"] - steps[1]["enter"]["allocated"]
    check.expect(grew == both, f"shift joins steps 1 and 2: {grew}, not {both}")


def check_steps_and_phases(check):
    check_changes_of_steps(check)
    page = check.analyze(CAPTURES / "leakval_ring.pickle.zst", "leakval_ring")
    for trace, page in ((TRACE, check.page), (CAPTURES / "leakval_ring.pickle.zst", page)):
        for state in ("", "#x0=event"):
            check.load(trace, page, state)
            for row in ROWS:
                check_range(check, page, row, getattr(check.data, row))


# ---- the panel -------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def events_of(program, trace):
    done = subprocess.run([program, "dump", trace, "--json"], stdout=subprocess.PIPE, check=True, text=True)
    return [event for event in map(json.loads, done.stdout.splitlines()) if "seq" in event]


def exact_range(check, columns):
    """Selects columns in the middle of those that have single events, with shift and the pointer."""
    first, count = check.data.longest_exact()
    check.data.set_axis(True)
    begin = first + count // 2
    check.load(check.trace, check.page,
               f"#x0=event&v0={check.data.x[begin - 10]}-{check.data.x[begin + columns + 10]}")
    check.browser.drag(check.point_of_column(begin), check.point_of_column(begin + columns), key="Shift")
    state = check.state()
    check.expect(state["range"] == [begin, begin + columns],
                 f"shift and drag from {begin} to {begin + columns}: {state['range']}")
    return begin, begin + columns


def check_grew(check, first, last):
    """The sum is the difference of two instants, and so is each row."""
    check.tab("Grew")
    for by in ("role", "site", "size"):
        check.choose(f"#side-{check.device} .selection select", by)
        state = check.state()
        before = check.sums(check.data.event_before(first), by)
        after = check.sums(check.data.event[last], by)
        wanted = {name: after[name] - before[name] for name in before | after if after[name] != before[name]}
        rows = {row["name"]: row["bytes"] for row in state["rows"]}
        check.expect(rows == wanted and state["sum"] == sum(wanted.values()) == state["change"],
                     f"Grew by {by}: {dict(wanted.items() - rows.items())} became "
                     f"{dict(rows.items() - wanted.items())}")
    return state["sum"]


def steps_of(check, first, last):
    """The change of allocated bytes at each event that has one, as live and dump have them."""
    bytes_at = lambda event: check.live_at(check.trace, check.device, event, "role")["bytes"]["allocated"]
    steps = []
    for event in events_of(check.program, check.trace):
        if event["kind"] in SIGNS and check.data.event[first] <= event["seq"] <= check.data.event[last]:
            change = bytes_at(event["seq"]) - bytes_at(event["seq"] - 1)
            check.expect(change * SIGNS[event["kind"]] >= event["size"], f"live at {event}: {change}")
            steps.append((event["seq"], change))
    return steps


def check_flows(check, first, last):
    """Allocated and Freed, and their difference."""
    grew = check_grew(check, first, last)
    sums = {}
    for tab, sign in (("Allocated", 1), ("Freed", -1)):
        check.tab(tab)
        state = check.state()
        sums[tab] = state["sum"]
        wanted = sum(change for _, change in steps_of(check, first, last) if change * sign > 0)
        check.expect(state["tab"] == tab and state["sum"] == wanted, f"{tab}: {state['sum']}, not {wanted}")
        check.expect("At least" not in state["note"], f"{tab}: an exact range is exact")
    check.expect(sums["Allocated"] + sums["Freed"] == grew, f"{sums} is a growth of {grew}")


def check_survived(check, first, last):
    check.tab("Survived")
    state = check.state()
    begin, end = check.data.begin_event[first], check.data.event[last]
    freed = {}
    for event in events_of(check.program, check.trace):
        if event["kind"] == "alloc":
            freed[event["seq"]] = None
            freed[event["addr"]] = event["seq"]
        elif event["kind"] == "free_requested":
            freed[freed[event["addr"]]] = event["seq"]
    births = [(block.event, block.bytes) for block in check.data.blocks if not block.is_older]
    wanted = sorted(size for birth, size in births
                    if begin <= birth <= end and not (freed[birth] is not None and freed[birth] <= end))
    check.expect(0 < len(wanted) < sum(begin <= birth <= end for birth, _ in births),
                 "Survived: some blocks of the range are freed in it")
    check.expect(sorted(row["bytes"] for row in state["rows"]) == wanted,
                 f"Survived: {len(state['rows'])} blocks, not {len(wanted)}")
    all_of_run = sum(event["kind"] == "alloc" for event in events_of(check.program, check.trace))
    check.expect(state["note"].startswith(f"{len(wanted)} of all {all_of_run:,} blocks of the run"),
                 f"Survived: {state['note']}")
    check.browser.click(f"#side-{check.device} .rows tr")
    title = check.browser.run("return document.querySelector('.picked:not([hidden]) strong').textContent")
    check.expect(title.startswith(format_bytes(max(wanted))), f"Survived: a click shows {title}")


def check_events(check, first, last):
    check.tab("Events")
    state = check.state()
    wanted = steps_of(check, first, last)
    rows = [(int(row["event"]), row["bytes"]) for row in state["rows"]]
    check.expect(rows == wanted and rows, f"Events: {rows[:5]}, not {wanted[:5]}")
    check.browser.click(f"#side-{check.device} .rows tr")
    state = check.state()
    check.expect(state["event"] == wanted[0][0], f"Events: a click shows event {state['event']}")
    check.shows_instant(state, "a click on an event")
    check.expect(state["range"] and state["range"][0] == state["range"][1],
                 f"the address has the event that was clicked, not {state['range']}")


def check_held(check):
    check.tab("Held")
    check.choose(f"#side-{check.device} .selection select", "role")
    state = check.state()
    rows = {row["name"]: row["bytes"] for row in state["rows"]}
    check.expect(rows == dict(check.sums(state["event"])) and state["sum"] == state["bytes"],
                 f"Held: {rows} at event {state['event']}")


def check_exact_flows(check):
    """The page has every block, so what a range allocates and frees is exact between any two instants."""
    begin, end = check.browser.run("""const {model, first, last} = explorers[0], before = model.firstChange(first) - 1;
        return [before < 0 ? model.source.events[0] : model.event[before] + 1, model.event[last]];""")
    born = sum(each.bytes for each in check.data.blocks if not each.is_older and begin <= each.event <= end)
    died = sum(each.bytes for each in check.data.blocks if each.end_event and begin <= each.end_event <= end)
    check.expect(died and born > died, f"flows: {born} B allocated, {died} B freed")
    for tab, wanted in (("Allocated", born), ("Freed", -died), ("Grew", born - died)):
        check.tab(tab)
        shown = int(check.browser.run("return document.querySelector('.rows').dataset.bytes"))
        check.expect(shown == wanted and not check.state()["note"].startswith("At least"),
                     f"{tab}: {shown} B, not {wanted} B, in events {begin} to {end}")
    check.tab("Allocated")


def check_tabs(check):
    first, last = exact_range(check, 16)
    check_flows(check, first, last)
    check_held(check)
    check_events(check, first, last)
    check_survived(check, *exact_range(check, 600))
    check.load(TRACE, check.page)
    check.drag(0.05, 0.6)
    check_grew(check, *check.state()["range"])
    check_exact_flows(check)
    check_held(check)
    check.button("close", ".selection")
    check.hides_panel(check.state(), "button close")


# ---- filters ---------------------------------------------------------------------


def check_lines(check):
    """The legend names the lines over the layers, and the limit."""
    check.load(CAPPED, check.analyze(CAPPED, "capped"))
    names = check.browser.run("""return [...document.querySelectorAll('.layers > span')]
        .map((each) => each.textContent)""")
    check.expect(names == ["reserved", f"limit {format_bytes(check.data.source['limit'])}"], f"lines: {names}")


def check_single_blocks(check):
    """Only an instant has single blocks: rows of a range are sums, and a click on one is kept by the link."""
    check.browser.press(check.point(0.6))
    check.choose(f"#side-{check.device} .selection select", "block")
    check.same_again("single blocks")
    check.drag(0.2, 0.7)
    check.expect(check.state()["way"] == "site", f"single blocks: a range is by {check.state()['way']}")
    check.browser.click(f"#side-{check.device} .rows tr")
    check.expect("f0.site=" in check.state()["hash"], f"single blocks: {check.state()['hash']}")
    check.same_again("sums of a range")


def check_filters(check):
    wanted = check.sums(check.state()["event"])
    first, second = [name for name, _ in wanted.most_common(2)]
    for names in ((first,), (first, second)):
        check.legend(names[-1])
        state = check.state()
        check.expect(sorted(name for name, pressed in state["legend"] if pressed) == sorted(names),
                     f"filter {names}: {state['legend']}")
        check.expect(sum(size for size, _ in state["live"]) == sum(wanted[name] for name in names) and
                     {role for _, role in state["live"]} == set(names), f"filter {names}: the table")
        colored = {role: check.browser.run(COLORED, check.device, f"role{number}")[0]
                   for number, role in enumerate(check.data.roles) if role in wanted}
        check.expect({role for role, count in colored.items() if count > 50} == set(names),
                     f"filter {names}: colors of the canvas {colored}")
    check.drag(0.3, 0.8)
    check.tab("Held")
    check.choose(f"#side-{check.device} .selection select", "role")
    state = check.state()
    check.expect({row["name"] for row in state["rows"]} <= {first, second}, "filter: rows of the panel")
    check.legend(second)
    check.expect([name for name, pressed in check.state()["legend"] if pressed] == [first],
                 "filter: again, it ends")
    check.choose(f"#side-{check.device} .selection select", "site")
    row = check.state()["rows"][0]
    check.browser.click(f"#side-{check.device} .rows tr")
    state = check.state()
    check.expect([each["name"] for each in state["rows"]] == [row["name"]] and state["sum"] == row["bytes"],
                 f"filter by a row: {state['rows']}, not {row}")
    check.expect(row["bytes"] == sum(each["bytes"] for each in check.live_at(
        TRACE, check.device, state["event"], "site")["rows"]
        if each["group"] == row["name"] and each["role"] == first), "filter by a row: as live says")
    check.button("show all", ".layers")
    state = check.state()
    check.expect(not any(pressed for _, pressed in state["legend"]) and "f0." not in state["hash"] and
                 state["sum"] == state["bytes"], f"show all: {state['hash']}")


def check_layers(check):
    """The names of layers are those of the rows at some instant, and the pointer shows their bytes."""
    for way, key in (("site", "group"), ("phase", "phase"), ("size", "group"), ("stack", None), ("role", "group")):
        check.load(TRACE, check.page)
        check.choose(".timeline .chart-bar select", way)
        state = check.state()
        check.expect(state["layersBy"] == way and len(state["legend"]) > 1, f"layers by {way}")
        check.expect(way == "role" or f"l0={way}" in state["hash"], f"layers by {way}: {state['hash']}")
        if key:
            check_tip(check, way, key)


def check_tip(check, way, key):
    """The pointer shows the bytes of each layer that it meets as live prints them."""
    seen = set()
    (across, top), (_, bottom) = check.point(0.62, 0), check.point(0.62, 1)
    for down in range(25, 100, 3):
        check.browser.move((across, top + (bottom - top) * down / 100))
        tip = check.state()["tip"]
        if not tip or len(tip) < 4:
            continue
        event = number(re.search(r"event ([\d,]+)", tip[0])[1])
        live = check.live_at(TRACE, check.device, event, "site" if way == "phase" else way)
        check.expect(tip[2].startswith(f"{format_bytes(live['bytes']['allocated'])} allocated of "
                                       f"{format_bytes(live['bytes']['reserved'])} reserved"),
                     f"tooltip by {way}: {tip[2]}")
        sums = {f"{format_bytes(size)} {name}" for name, size in check.sums(
            event, "site" if way == "phase" else way, key).items()}
        if not re.search(r" \d+ others$", tip[3]):
            seen.add(tip[3])
            check.expect(tip[3] in sums, f"tooltip by {way} at event {event}: {tip[3]} is none of {sums}")
    check.expect(len(seen) > 1, f"tooltip by {way}: the layers {seen}")
    check.browser.move((5, 5))
    check.expect(check.state()["tip"] is None, "tooltip: it leaves with the pointer")


def check_tip_of_group(check):
    """Zoomed in, the pointer shows the stack of a layer, and the bytes that a click shows."""
    at = near_peak(check, 40)
    seen = set()
    for down in DEPTHS:
        point = check.point_of_column(at, down)
        check.browser.move(point)
        tip = check.state()["tip"]
        if not tip or len(tip) < 6:
            continue
        check.inside_window("tooltip of a group", ".tip")
        check.browser.press(point)
        count, size = re.fullmatch(r"([\d,]+) (?:× .*|blocks?)", check.state()["group"]["title"])[1], tip[4]
        each = re.search(r"([\d,]+) B each", size)
        seen.add(tip[3])
        check.expect(not each or tip[3].startswith(format_bytes(number(count) * number(each[1])) + " "),
                     f"tooltip of a group: {tip} of {count} blocks")
        frames = [line for line in tip[6:] if not line.startswith("allocated in ")]
        check.expect(has_stack(check, check.data.event[at], tip[4].split(",")[0], frames, False),
                     f"tooltip of a group: live has no {tip}")
    check.expect(len(seen) > 1, f"tooltip: the groups {seen}")


# ---- axis, search, link, theme -----------------------------------------------------

def check_long_first_step(check):
    """The first step takes most of the time, so the axis has events. Its label says why."""
    check.load(SLOW_START, check.analyze(SLOW_START, "slow_start"))
    steps = check.data.source["steps"]
    width = lambda: (check.data.position(*steps[2:5:2]) - check.data.position(*steps[1:4:2])) / check.data.length
    check.data.set_axis(False)
    in_time = width()
    check.data.set_axis(True)
    words = f"axis: events, because the first step takes {int(100 * in_time)}% of the time"
    state = check.state()
    check.expect(in_time > 0.5 > width() and state["axis"] == words and check.is_whole(state),
                 f"{in_time:.2f} of the time, {width():.2f} of the events, {state['axis']!r}")
    check.button(words)
    check.data.set_axis(False)
    state = check.state()
    check.expect(state["axis"] == "axis: time" and check.is_whole(state) and "x0=time" in state["hash"],
                 f"time is a click away: {state['axis']}, {state['hash']}")



def check_axis(check):
    check.expect(check.state()["axis"] == "axis: time", "the axis is time")
    check.button("axis: time")
    check.data.set_axis(True)
    state = check.state()
    check.expect(state["axis"] == "axis: events" and check.is_whole(state) and "x0=event" in state["hash"],
                 f"axis of events: {state['view']} of {check.data.length}, {state['hash']}")
    point = check.point(0.4)
    wanted = check.data.column_at(check.at_position(point))
    check.browser.press(point)
    state = check.state()
    check.expect(abs(state["range"][0] - wanted) * check.size(state) / check.data.count <
                 check.data.length / 100, f"axis of events: column {wanted}, not {state['range']}")
    check.shows_instant(state, "axis of events")


def check_search(check):
    before = {number: check.browser.run(COLORED, check.device, f"role{number}")[0]
              for number in range(len(check.data.roles))}
    check.browser.keys("/", *"adam")
    state = check.state()
    found = int(check.browser.run("return document.querySelector('.hits').dataset.bytes"))
    wanted = sum(row["bytes"] for row in check.live_at(TRACE, check.device, state["event"], "stack")["rows"]
                 if "adam" in f"{row['group']} {row['site']}".lower())
    after = {number: check.browser.run(COLORED, check.device, f"role{number}")[0] for number in before}
    check.expect(found == wanted > 0 and sum(size for size, _ in state["live"]) == wanted,
                 f"search: {found} B, not {wanted}")
    hits = check.browser.run("return document.querySelector('.hits').textContent")
    check.expect(hits.startswith("“adam” in frames, sites and roles: "), f"search: {hits}")
    check.expect(any(before[number] > 50 and not after[number] for number in before) and
                 any(after.values()), f"search: layers are dimmed, {before} becomes {after}")


def check_sizes(check):
    """A size finds the same blocks in each way to write it."""
    check.load(TRACE, check.page)
    size, count = collections.Counter(block.bytes for block in check.data.blocks
                                      if block.bytes % 2**20 == 0 and block.bytes < 100 * 2**20).most_common(1)[0]
    for texts in ((format_bytes(size), f"{size >> 20} MiB", f"{size >> 20}mib"), (f"{size:,} B", f"{size} B")):
        found = []
        for text in texts:
            check.load(TRACE, check.page, f"#q={urllib.parse.quote(text)}")
            hits = check.browser.run("return document.querySelector('.hits').textContent")
            check.expect(f"the size {text}" in hits, f"{text} is a size: {hits}")
            found.append(number(hits.split(" ")[0]))
        check.expect(len(set(found)) == 1 and found[0] >= count, f"{texts} find {found} blocks, at least {count}")


def check_slow_pattern(check):
    """A link with a regular expression that takes exponential time is a text that is nowhere."""
    begin = time.monotonic()
    for text in ("(a+)+$", "(" * 50000, "*a" * 50000, "a|" * 50000):
        check.load(TRACE, check.page, f"#q={urllib.parse.quote(text)}")
        hits = check.browser.run("return document.querySelector('.hits').textContent")
        check.expect("in frames, sites and roles: " in hits, f"search for {text[:9]}: {hits}")
    check.expect(time.monotonic() - begin < 30, "a search takes a bounded time")


def check_copy(check):
    check.browser.press(check.point(0.4))
    shown, copied = check.browser.run(check_report.COPIES)
    event = check.state()["event"]
    check.expect(shown == copied and any(f"--at {event}" in each for each in copied),
                 f"copy: {copied[:1]} is the command for event {event}")


def check_restored(check):
    at = near_peak(check, 40)
    check.browser.drag(check.point_of_column(at - 20), check.point_of_column(at + 20), key="Shift")
    check.tab("Allocated")
    check.choose(f"#side-{check.device} .selection select", "phase")
    check.choose(".timeline .chart-bar select", "site")
    check.browser.click(f"#side-{check.device} .rows tr")
    check.tab("Held")
    check.same_again("a range, a filter and a tab")
    check.load(TRACE, check.page, check.state()["hash"].replace("r0=", "unused=").replace("f0.", "unused."))
    for down in (0.5, 0.7, 0.8):
        check.browser.press(check.point_of_column(at + 3, down))
        if check.state()["group"]:
            break
    check.expect(check.state()["group"], "a layer is selected")
    check.same_again("a layer")
    check.browser.keys("/", *"forward")
    check.same_again("a search")


NAMES = """
const {timeline} = explorers[0], seen = [];
const bottom = timeline.plot.y + timeline.plot.height;
timeline.text = (words, x, y, align, color) => {
  if (y > bottom + 30) seen.push([words, timeline.pen.fillStyle, color]);
};
timeline.paint();
delete timeline.text;
return seen;
"""


def luminance(color):
    parts = [int(color[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check_names(check):
    """Names of steps and phases have the contrast that WCAG 2 asks for."""
    names = check.browser.run(NAMES)
    check.expect({"step 1", "forward"} <= {words for words, _, _ in names}, f"theme: names {names}")
    for words, fill, color in names:
        dark, light = sorted(map(luminance, (fill, color)))
        check.expect((light + 0.05) / (dark + 0.05) >= 4.5, f"theme: {words} is {color} on {fill}")


def check_theme(check):
    seen = []
    for _ in range(3):
        check_names(check)
        inks = [check.browser.run(COLORED, check.device, name) for name in ("role1", "role3", "--grid", "--axis")]
        check.expect(all(count for count, _ in inks[:3]), f"theme: the canvas has its colors {inks}")
        seen.append([color for _, color in inks])
        check.browser.run("""[...document.querySelectorAll('#tools button')].pop().click()""")
        check.browser.wait("true")
    check.expect(seen[0] == seen[2] != seen[1], f"theme: the canvas is drawn again: {seen}")


# ---- small screens, blocks, devices -------------------------------------------------

PHONE = """
const box = (selector) => document.querySelector(selector).getBoundingClientRect();
return [document.documentElement.scrollWidth, box('.plot').bottom, box('aside').top, box('.plot').right];
"""


# ---- single blocks ------------------------------------------------------------------


def lives_of(check, trace):
    """For each device its blocks: (address, event) -> the events of the request to free it and of the
    completion, None if there is none."""
    lives, live = collections.defaultdict(dict), {}
    for event in events_of(check.program, trace):
        key = event["device"], event.get("addr")
        if event["kind"] == "alloc":
            live[key] = event["addr"], event["seq"]
            lives[event["device"]][live[key]] = [None, None]
        elif event["kind"] in ("free_requested", "free_completed") and key in live:
            lives[event["device"]][live[key]][event["kind"] == "free_completed"] = event["seq"]
    return lives


# The groups whose live blocks are not those of the history, at some instants.
STRANGERS = """
const {model} = explorers[0], wrong = [];
for (let at = 0; at < model.columnCount; at += Math.ceil(model.columnCount / 40)) {
  const state = model.stateAt(at), bytes = new Float64Array(model.groups.length);
  for (const block of blocksOf(model)) if (block.isAliveAt(model.event[at])) bytes[block.group] += block.bytes;
  wrong.push(...model.groups.filter((each) => bytes[each.index] !== state.bytes[each.index])
    .map((each) => [at, each.index, each.site, bytes[each.index], state.bytes[each.index]]));
}
return wrong;
"""


def check_all_blocks(check):
    """The page has every block of the run, in the group that counts it."""
    for trace in (TRACE, CAPTURES / "streams.pickle.zst", CAPTURES / "twogpu.pickle.zst"):
        page = check.analyze(trace, trace.name.split(".")[0])
        check.load(trace, page)
        lives = lives_of(check, trace)
        for index, source in enumerate(document(page)["devices"]):
            data = decoded(page, index)
            wanted = {(*block, end) for block, (end, _) in lives[source["device"]].items()}
            found = {(block.address, block.event, block.end_event) for block in data.blocks}
            check.expect(found == wanted and len(data.blocks) == source["blocks_in_all"] == len(wanted),
                         f"{trace.name}: {len(wanted - found)} blocks are missing, {list(found - wanted)[:3]} are none")
        wrong = check.browser.run(STRANGERS)
        check.expect(not wrong, f"{trace.name}: groups of blocks {wrong[:3]}")


def check_waits(check):
    """A block that waits for another stream shows how long, as the two events of its free."""
    trace = CAPTURES / "streams.pickle.zst"
    page = check.analyze(trace, "streams")
    check.load(trace, page)
    lives = lives_of(check, trace)[0]
    waits = {}
    for block in check.data.blocks:
        end, completed = lives[(block.address, block.event)]
        waits[block] = 0 if end is None else 1 if completed is None else max(completed - end, 1) if completed > end + 1 else 0
    check.expect(all(block.wait == wait for block, wait in waits.items()) and
                 sum(wait > 1 for wait in waits.values()) > 9, "waits: as the events of the trace")
    block = max(waits, key=waits.get)
    check.load(trace, page, f"#b=0.{block.address:x}.{block.event}")
    facts = check.browser.run("return document.querySelector('.picked:not([hidden]) dl').textContent")
    check.expect(f"event {lives[(block.address, block.event)][1]:,}: another stream could use it" in facts,
                 f"waits: the block shows {facts}")


def check_filter_of_blocks(check):
    """Single blocks follow the filter of the legend, and a click on a leaf of the icicle shows its blocks."""
    wanted = check.sums(check.state()["event"])
    role, bytes_of_role = wanted.most_common()[1]
    check.legend(role)
    check.button("peak")
    check.choose(f"#side-{check.device} .selection select", "block")
    state = check.state()
    names = {row["name"].split(";")[0] for row in state["rows"]}
    sites = {row["group"] for row in check.live_at(TRACE, check.device, state["event"], "site")["rows"]
             if row["role"] == role}
    check.expect(state["note"].startswith(f"{format_bytes(bytes_of_role)} of ") and names and names <= sites,
                 f"blocks of {role}: {state['note']} of {names - sites}")
    check.load(TRACE, check.page)
    check.drag(0.05, 0.6)
    check.tab("Survived")
    whole = len(check.state()["rows"])
    check.legend("activations")
    check.expect(len(check.state()["rows"]) < whole, "survivors: those of the filter")
    check.load(TRACE, check.page)
    name, size = check.browser.run("""
        const leaf = [...document.querySelectorAll('.icicle .cell[data-group]')]
          .sort((a, b) => Number(b.dataset.bytes) - Number(a.dataset.bytes))[0];
        leaf.click();
        return [leaf.title, Number(leaf.dataset.bytes)];""")
    state = check.state()
    check.expect(state["isOpen"] and state["rows"] and sum(row["bytes"] for row in state["rows"]) == size and
                 state["note"].startswith(f"{format_bytes(size)} of "), f"leaf {name}: {state['note']}")
    check.same_again("a leaf")


def check_steps_of_blocks(check):
    """A survivor of a step leads to the step that frees it, and a block to its twins of other steps."""
    check.load(TRACE, check.page)
    number, _, _, first, last = check.data.steps[2]
    check.browser.run("""explorers[0].select(...explorers[0].timeline.stepRanges()[arguments[0]].columns)""", 2)
    check.tab("Survived")
    later = {block.event: next((step[0] for step in check.data.steps if step[3] <= block.end_event <= step[4]), None)
             for block in check.data.blocks if first <= block.event <= last and block.end_event and block.end_event > last}
    links = check.browser.run("return [...document.querySelectorAll('.rows .link')].map((each) => each.textContent)")
    check.expect(later and sorted(links) == sorted(f"freed in step {step}" for step in later.values() if step is not None),
                 f"survivors of step {number}: {links}, not {later}")
    check.browser.click(".rows .link")
    shown = check.browser.run("return explorers[0].timeline.stepRanges().findIndex((each) => "
                              "each.columns[0] === explorers[0].first && each.columns[1] === explorers[0].last)")
    check.expect(shown >= 0 and f"freed in step {check.data.steps[shown][0]}" == links[0], f"the link {links[0]}: {shown}")
    block = next(each for each in check.data.blocks if first <= each.event <= last and each.bytes > 1 << 20)
    check.load(TRACE, check.page, f"#b=0.{block.address:x}.{block.event}")
    rows = check.browser.run("""return [...document.querySelectorAll('.picked:not([hidden]) dt')]
        .filter((each) => each.textContent.startsWith('step ')).map((each) =>
          [each.textContent, each.nextElementSibling.textContent])""")
    check.expect(len(rows) > 1 and f"step {number}" not in dict(rows), f"twins: {rows}")
    starts = [step[3:] for step in check.data.steps]
    for name, text in rows:
        begin, end = starts[[step[0] for step in check.data.steps].index(int(name.split()[1]))]
        address = int(text.split(",")[0], 16)
        check.expect(any(each.address == address and begin <= each.event <= end and each.bytes == block.bytes
                         for each in check.data.blocks) and
                     ("same address" in text) == (address == block.address), f"twins: {name} has {text}")


def long_run(folder):
    """A snapshot of 13,000 blocks, 1,700 phases and 1,100 steps: more than a page shows of each."""
    events, marks = [], []
    for i in range(13000):
        at = {"addr": (i + 1) << 24, "size": 4096, "stream": 0, "time_us": 1_000_000 + 10 * i, "frames": []}
        events += [{**at, "action": action} for action in ("alloc", "free_requested", "free_completed")]
    for count, length, name in ((1100, 100, "step#{}"), (1700, 20, "range {}")):
        for i in range(count):
            begin = 1_000_001 + (100 * i if length == 100 else 50 * i)
            for stage, time_us in (("START", begin), ("END", begin + (40 if length == 100 else 5))):
                marks.append({"stage": stage, "name": name.format(i), "device": 0, "time_us": time_us})
    trace = folder / "long_run.pickle"
    trace.write_bytes(pickle.dumps({"segments": [], "device_traces": [events],
                                    "external_annotations": sorted(marks, key=lambda mark: mark["time_us"])}))
    return trace


def check_largest(check):
    """The largest holder of the answers is the first row of the table, or one of equal size."""
    for name in ("gpt_default", "twogpu", "resnet50_cap900", "leakval", "churn_noframes"):
        trace = CAPTURES / f"{name}.pickle.zst"
        check.open(check.analyze(trace, name))
        answer, rows = check.browser.run("""
            const rows = [...explorers.find((each) => each.panel.answers.length).table.tBodies[0].rows];
            return [document.querySelectorAll('.answers dd')[1].textContent,
                    rows.filter((row) => row.cells[0].dataset.v === rows[0].cells[0].dataset.v)
                      .map((row) => [0, 3, 5].map((cell) => row.cells[cell].textContent))];""")
        check.expect(any(answer.endswith(f"largest: {'blocks' if role == 'other' else role} of {site}, {size}")
                         for size, role, site in rows), f"{name}: {answer} is not of {rows}")


def check_modules(check):
    """Modules are known at one instant only. The page states why, and the command for another instant."""
    trace = CAPTURES / "gpt_default.pickle.zst"
    check.open(check.analyze(trace, "gpt_default"))
    ways, words, command = check.browser.run("""
        const note = document.querySelector('#modules-0').parentElement.previousElementSibling;
        return [document.querySelector('.timeline select').textContent, note.textContent,
                note.querySelector('code').textContent];""")
    check.expect("module" not in ways and "no layers by module" in words, f"modules: {ways}; {words}")
    command = [word.replace("TRACE", str(trace)).replace("EVENT", "5000") for word in command.split()[1:]]
    done = subprocess.run([check.program, *command], stdout=subprocess.PIPE, text=True, check=False)
    check.expect(done.returncode == 0 and "layer 0" in done.stdout, f"modules: {command} prints {done.stdout[:99]}")


def check_omitted(check):
    """What is too much for a page is counted."""
    trace = long_run(check.folder)
    page = check.analyze(trace, "long_run")
    check.load(trace, page)
    text = check.browser.run("return document.querySelector('.timeline').textContent")
    check.expect("1,100 of 1,100 steps; 200 of 1,700 phases, the shortest" in text, f"omitted: {text[-200:]}")
    check.browser.keys("/", *"4.00 KiB")
    hits = check.browser.run("return document.querySelector('.hits').textContent")
    count = len(check.data.blocks)
    check.expect(f"{count:,} blocks of this page (the other {13000 - count:,} of the run are" in hits and
                 1000 < count < 13000, f"omitted blocks: {hits}")


def check_phone(check):
    check.browser.devtools("Emulation.setDeviceMetricsOverride", width=420, height=900,
                           deviceScaleFactor=2, mobile=False)
    check.load(TRACE, check.page)
    for selected in (False, True):
        width, plot, answers, right = check.browser.run(PHONE)
        check.expect(width <= 420 and right <= 420 and answers >= plot,
                     f"phone: {width} px wide, the answers at {answers}, the plot to {right}, {plot}")
        check.expect(check.state()["isOpen"] == selected, "phone: a tap selects")
        check.browser.tap(check.point(0.6 if selected else 0.5))
    check.shows_instant(check.state(), "a tap")
    name, row = check.browser.run("""return ['.rows .site', '.rows tr'].map((selector) =>
        document.querySelector(selector).getBoundingClientRect().width)""")
    check.expect(name > 0.5 * row, f"phone: a name has {name} of the {row} px of its row")
    check.browser.move(check.point(0.9))
    check.inside_window("tooltip on a phone", ".tip")
    check.browser.devtools("Emulation.clearDeviceMetricsOverride")


SHAPE = """
const figure = document.querySelector('[data-chart=blocks]');
figure.scrollIntoView({block: 'center'});
const of = (shape) => shape.getBoundingClientRect();
const middle = (box) => [box.left + box.width / 2, box.top + box.height / 2];
const list = arguments[0] ? [...figure.querySelectorAll('text')] : [...figure.querySelectorAll('[data-key]')];
const isOnBlock = (shape) => {
  const [x, y] = middle(of(shape)), top = document.elementFromPoint(x, y);
  return top && figure.contains(top) &&
    document.elementsFromPoint(x, y).some((each) => each.closest('[data-key]'));
};
const largest = list.filter(isOnBlock)
  .sort((a, b) => of(b).width * of(b).height - of(a).width * of(a).height)[0];
return largest ? [...middle(of(largest)), largest.textContent] : null;
"""


def check_blocks(check):
    """A click on a block, or on the words in it, shows its facts and marks it."""
    for words in (False, True):
        check.load(TRACE, check.page)
        found = check.browser.run(SHAPE, words)
        check.expect(found, f"blocks: there is something to click, words: {words}")
        check.browser.press(found[:2])
        panel, marked, state = check.browser.run("""
            const panel = document.querySelector('.picked:not([hidden])');
            return [panel && panel.textContent, document.querySelectorAll('.mt-picked').length,
                    location.hash];""")
        check.expect(panel and "allocated" in panel and marked and "b=" in state,
                     f"blocks: a click on {found[2][:80]} shows {panel}, {state}")


def check_devices(check):
    """A selection, a filter and keys are for one device."""
    trace = CAPTURES / "twogpu.pickle.zst"
    page = check.analyze(trace, "twogpu")
    numbers = [source["device"] for source in document(page)["devices"]]
    for index in (0, 1):
        check.load(trace, page, "", index)
        other = numbers[1 - index]
        check.browser.press(check.point(0.6, 0.5))
        check.shows_instant(check.state(), f"device {check.device}")
        check.browser.keys("Left")
        state = check.state()
        check.shows_instant(state, f"device {check.device}, a key")
        check.expect(f"r{check.device}=" in state["hash"] and f"r{other}=" not in state["hash"],
                     f"devices: {state['hash']}")
        check.drag(0.2, 0.7)
        check_grew(check, *check.state()["range"])
        check.same_again(f"device {check.device}")


ENLARGED = """
const picture = pictures.find((each) => each.chart === arguments[0]), {svg, whole} = picture;
const outer = svg.getBoundingClientRect(), shown = (node) => node.checkVisibility();
const texts = [...svg.querySelectorAll('text')].filter(shown).map((node) => {
  const box = node.getBoundingClientRect();
  return {words: node.textContent, high: Math.min(box.height, box.width), left: box.left - outer.left,
    right: box.right - outer.left, y: (box.top + box.bottom) / 2 - outer.top,
    x: (box.left + box.right) / 2 - outer.left, tick: Boolean(node.closest('.mt-axis')),
    inside: Boolean(node.closest('.pane')), bytes: Boolean(node.closest('.mt-axis') === picture.bytes.now)};
});
const scale = svg.getScreenCTM().a;
const blocks = [...svg.querySelectorAll('.pane [data-key]')].map((node) => node.getBoundingClientRect());
return {texts, view: svg.dataset.view.split(' ').map(Number), top: picture.bytes.top,
  ticks: picture.ticks.numbers.slice(1), plot: [whole.x, whole.y, whole.width, whole.height].map((each) => each * scale),
  whole, widest: Math.max(...blocks.map((box) => box.width))};
"""


def check_enlarged_axes(check):
    """An enlarged chart keeps its axes at its edges, with the values of the visible part. Blocks
    become larger and texts do not."""
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1e9, "ms": 1e6, "µs": 1e3}
    for chart in ("blocks", "address"):
        before = check.browser.run(ENLARGED, chart)
        check.browser.run("""const picture = pictures.find((each) => each.chart === arguments[0]);
            const {x, y, width, height} = picture.whole;
            picture.zoom(0.125, {x: x + 0.4 * width, y: y + 0.7 * height});""", chart)
        after = check.browser.run(ENLARGED, chart)
        left, top, width, height = after["view"]
        whole, plot = after["whole"], after["plot"]
        check.expect(abs(width * 8 - whole["width"]) < 1 and after["widest"] > 4 * before["widest"],
                     f"{chart}: enlarged to {after['view']} of {whole}")
        high = max(text["high"] for text in before["texts"])
        check.expect(all(text["high"] <= high + 1 for text in after["texts"]), f"{chart}: a text grew")
        ticks = [text for text in after["texts"] if text["tick"]]
        check.expect(sum(text["bytes"] for text in ticks) > 2 and
                     sum(not text["bytes"] for text in ticks) > 1, f"{chart}: {len(ticks)} ticks")
        spans = [after["ticks"][at:at + 4] for at in range(0, len(after["ticks"]), 4)]
        for text in ticks:
            value, unit = text["words"].split()
            value = float(value.replace(",", "")) * units[unit]
            if text["bytes"]:
                share = (text["y"] - plot[1]) / plot[3]
                wanted = after["top"] * (1 - (top + share * height - whole["y"]) / whole["height"])
                fits = 0 <= share <= 1 and text["right"] < plot[0] and text["left"] >= 0
                slack = after["top"] * height / whole["height"] / 40
            else:
                share = (text["x"] - plot[0]) / plot[2]
                begin, end, first, last = [span for span in spans if span[0] <= left + share * width + 1][-1]
                wanted = first + (left + share * width - begin) / (end - begin) * (last - first)
                fits = 0 <= share <= 1 and text["y"] > plot[1] + plot[3]
                slack = (last - first) * width / (end - begin) / 40
            check.expect(fits and abs(value - wanted) < slack, f"{chart}: {text['words']} at {wanted}")
        check.browser.keys("Escape")
        again = check.browser.run(ENLARGED, chart)
        check.expect([text["words"] for text in again["texts"]] == [text["words"] for text in before["texts"]],
                     f"{chart}: Esc shows all of it")


def check_without_blocks(check):
    """A page that has no room for rows of blocks: sums are exact, and Survived says what it lacks."""
    trace = check_report.deep_trace(check.folder)
    page = check.analyze(trace, "deep")
    check.load(trace, page)
    check.expect(not check.data.blocks, "reduced: no rows of blocks")
    check.drag(0.2, 0.7)
    first, last = check.state()["range"]
    check.choose(f"#side-{check.device} .selection select", "role")
    state = check.state()
    before, after = check.sums(check.data.event_before(first)), check.sums(check.data.event[last])
    check.expect({row["name"]: row["bytes"] for row in state["rows"]} ==
                 {name: after[name] - before[name] for name in after if after[name] != before[name]},
                 f"reduced: Grew {state['rows']}")
    for tab in ("Allocated", "Freed", "Survived", "Events", "Held"):
        check.tab(tab)
        check.expect(check.state()["tab"] == tab, f"reduced: {tab}")
    check.tab("Survived")
    state = check.state()
    check.expect(not state["rows"] and state["note"] == "This page has no room for single blocks.",
                 f"reduced: no block is listed: {state['note']}")
    check.browser.press(check.point(0.9, 0.9))
    check.expect(check.state()["range"][0] == check.state()["range"][1], "reduced: a click")


def check_start(check):
    """Blocks that are older than the history are no changes of a range at its start."""
    check.load(RING, check.analyze(RING, "ring"))
    check.expect(check.data.event_before(1) < check.data.source["events"][0], "ring: the start is a column")
    check.drag(0, 0.7)
    first, last = check.state()["range"]
    check.expect(sum(check.sums(check.data.event_before(first)).values()) > 0, "ring: blocks are older")
    check_grew(check, first, last)
    check.load(RING, check.page, f"#r0=0-{last}")
    check_grew(check, 1, last)


BROKEN = """
const main = document.querySelector('main').cloneNode(true);
main.querySelectorAll('pre').forEach((each) => each.remove());
return [/NaN|undefined|Infinity|\[object|\[native/.test(main.textContent),
  document.querySelectorAll('.layers button').length];
"""


def check_hostile(check):
    """A link may have any text. It selects what exists, or nothing."""
    huge = "9" * 400
    check.load(TRACE, check.page)
    whole = check.state()
    same = [[f"{name}0={value}" for value in ("-5", "1.5", "NaN", huge, "length", "constructor", "__proto__")]
            for name in "pz"]
    same += [[f"v0={huge}-{huge}", f"v0=0-{huge}"], ["l0=constructor", "l0=stream", "l0=__proto__"],
             ["g0=__proto__", "g0=constructor"], ["s0=constructor-", "s.__proto__=0-"], ["b=0.constructor", "b=__proto__.0"],
             ["f0.role=[\"constructor\",1,null]", "f0.role={}", "f0.role=[", "f0.__proto__=[\"a\"]",
              "f0.role=" + json.dumps([f"name {at}" for at in range(20000)])]]
    # A link has one text for each part of the state: the page reads the parts one by one.
    for texts in itertools.zip_longest(*same):
        text = "&".join(filter(None, texts))
        check.load(TRACE, check.page, f"#{text}")
        state = check.state()
        state["hash"] = whole["hash"]
        check.expect(state == whole, f"#{text[:40]}: {[key for key in state if state[key] != whole[key]]}")
        cells = check.browser.run("return document.querySelectorAll('.cell').length")
        check.expect(cells > 9, f"#{text[:40]}: {cells} cells")
    for text in (f"r0={huge}-{huge}", f"r0=9-{huge}", "r0=9-2", "r0=0-9&m0=constructor.__proto__",
                 "r0=0-9&m0=events.stream", "q=constructor", "q=["):
        check.load(TRACE, check.page, f"#{text}")
        broken, layers = check.browser.run(BROKEN)
        check.expect(not broken and layers < 20, f"#{text[:40]}: {layers} layers")


ACTIONS = (check_wheel, check_page_scrolls, check_sideways, check_pinch, check_touch_pan, check_pan,
           check_drag_selects, check_shift_drag, check_double_click, check_buttons, check_keys,
           check_keys_after_drag,
           check_instant, check_layer, check_steps_and_phases, check_tabs, check_filters, check_layers,
           check_tip_of_group, check_axis, check_long_first_step, check_search, check_sizes, check_slow_pattern,
           check_copy,
           check_restored, check_theme,
           check_all_blocks, check_waits, check_filter_of_blocks, check_steps_of_blocks, check_largest,
           check_modules, check_omitted, check_end,
           check_phone, check_blocks, check_enlarged_axes, check_devices, check_without_blocks, check_lines, check_single_blocks,
           check_start, check_hostile)


def main():
    driver.need()
    wanted = sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="memtrace-actions-") as folder, driver.Browser() as browser:
        check = Actions(fast_program(sys.argv[1]), folder, browser)
        page = check.analyze(TRACE, "gpt_split64")
        for action in ACTIONS:
            if wanted and action.__name__ not in wanted:
                continue
            check.load(TRACE, page)
            action(check)
            check.is_quiet(action.__name__)
    print("the timeline: as it should be" if not check.failures else f"{len(check.failures)} failures")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
