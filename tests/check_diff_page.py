#!/usr/bin/env python3
"""check_diff_page.py PROGRAM: `memtrace diff A B -o DIR` writes a page whose sums are those of
`memtrace diff --json`. A selection in one run selects the same part of the other, an instant one in the same phase. The
icicle has the bytes of both runs, a link shows what it was taken of, all is there without scripts,
no text crosses another, and names stay text. Without a browser: skipped, but not in CI."""
import collections
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile

import browser as driver
from check_hostile_names import snapshot
from check_layout import MEASURE
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
MAX_BYTES = 1_000_000
PAIRS = {  # name: A, B, options
    "options": ("captures/gpt_default.pickle.zst", "captures/gpt_split64.pickle.zst", []),
    "ranks": ("captures/ddp_leak_rank0.pickle.zst", "captures/ddp_leak_rank1.pickle.zst", []),
    "dry_run": ("dry_run/gpt_batch4.trace.zst", "captures/gpt_default.pickle.zst", []),
    "batches": ("dry_run/gpt_batch3.trace.zst", "dry_run/gpt_batch6.trace.zst", []),
    "programs": ("captures/leak.pickle.zst", "captures/keeps.pickle.zst", []),
    "lines": ("captures/gpt_default.pickle.zst", "captures/gpt_seed2.pickle.zst", []),
    "device": ("recorded/twogpu.trace.zst", "captures/twogpu.pickle.zst", ["--device", "1"]),
    "reserved": ("captures/gpt_default.pickle.zst", "captures/gpt_seed2.pickle.zst",
                 ["--at", "reserved-peak"]),
    "end": ("captures/gpt_default.pickle.zst", "captures/gpt_seed2.pickle.zst", ["--at", "end"]),
}

# What the page shows: the title, the rows and the foot of the panel, the icicle, both views.
VIEW = """
const panel = document.querySelector('.selection'), title = panel.querySelector('.title');
const cells = (row) => [...row.cells].slice(1, 4).map((cell) => Number(cell.dataset.v));
return {
  sums: [Number(title.dataset.a), Number(title.dataset.b)],
  title: title.textContent,
  rows: [...panel.querySelectorAll('tbody tr')].map((row) =>
    [...cells(row), row.cells[4].firstChild.data.trim(), row.cells[4].textContent]),
  foot: cells(panel.querySelector('tfoot tr')),
  reserved: [...panel.querySelectorAll('tfoot tr + tr')].map(cells),
  ways: [...panel.querySelectorAll('option')].map((each) => each.value),
  cells: [...document.querySelectorAll('.icicle .cell')].map((cell) => ({
    a: Number(cell.dataset.a), b: Number(cell.dataset.b), title: cell.title, name: cell.className,
    width: parseFloat(cell.style.width), left: parseFloat(cell.style.left),
    top: parseFloat(cell.style.top), node: cell.dataset.node === undefined ? null
      : Number(cell.dataset.node)})),
  views: [...document.querySelectorAll('canvas')].map((each) => each.dataset.view),
  axis: document.querySelector('.axis').value,
  columns: comparison.sides.map((side) => [side.first, side.last, side.at]),
  events: comparison.sides.map(({model, first, last, at}) =>
    [model.beginEvent[first], model.event[last], model.event[at]]),
  before: comparison.sides.map(({model, first}) => first ? model.event[first - 1] : -1),
  totals: comparison.sides.map(({model, at}) => model.totals[at]),
  dark: getComputedStyle(document.body).backgroundColor,
};
"""
# Sums of the whole tree, whatever is too narrow to draw.
LEAVES = """
const sums = [0, 0];
for (const list of comparison.icicle.children.values())
  for (const cell of list) if (cell.node < 0) cell.bytes.forEach((each, i) => { sums[i] += each; });
return sums;
"""
CHOOSE = """
const select = document.querySelector(arguments[0]);
select.value = arguments[1];
select.dispatchEvent(new Event('change'));
"""
# The middle of a step below a timeline, in the window.
STEP = """
const timeline = comparison.timelines[arguments[0]];
timeline.stage.scrollIntoView({block: 'center'});
const box = timeline.canvas.getBoundingClientRect(), {plot} = timeline;
const range = timeline.stepRanges().find((each) => each.name === `step ${arguments[1]}`);
const x = (timeline.pixelOf(range.from) + timeline.pixelOf(range.to)) / 2;
return [box.left + x, box.top + plot.y + plot.height + 30];
"""
PLOT = """
const timeline = comparison.timelines[arguments[0]];
timeline.stage.scrollIntoView({block: 'center'});
const box = timeline.canvas.getBoundingClientRect(), {plot} = timeline;
return [box.left + plot.x, box.top + plot.y + plot.height / 2, plot.width];
"""
SETTLE = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Check(driver.Checks):
    def diff(self, name):
        """The folder that the command writes, and its JSON; the words are those without -o."""
        a, b, options = PAIRS[name]
        command = [self.program, "diff", "-q", FIXTURES / a, FIXTURES / b, *options]
        folder = self.folder / name
        run = lambda *more: subprocess.run([*command, *more], stdout=subprocess.PIPE, text=True,
                                           check=True).stdout
        words = run("-o", folder)
        self.expect(words.startswith(run()), f"{name}: -o changes no word of the answer")
        self.expect("diff.html\n" in words.split("\nFiles\n")[-1], f"{name}: the file is named")
        self.answer = json.loads(run("--json", "--all"))
        devices = self.answer["devices"]
        self.device = max(devices, key=lambda each: each["b"]["instant"]["bytes"]["reserved"]) \
            if len(devices) > 1 else devices[0]
        return folder / "diff.html"

    def view(self):
        self.browser.run(SETTLE)
        return self.browser.run(VIEW)

    def live(self, trace, event, device):
        """Allocated bytes after an event."""
        if event < 0:
            return 0
        done = subprocess.run([self.program, "live", "-q", trace, "--at", str(event), "--device",
                               str(device), "--json"], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["devices"][0]["bytes"]["allocated"]

    def click(self, point):
        self.browser.drag(point, point)


def wanted_rows(device, way):
    """Rows of the JSON: change, bytes of A and B, name."""
    rows = collections.Counter()
    for row in device[f"{way}s"]:
        rows[row["change"], row["a_bytes"], row["b_bytes"], row[way] or "no phase"] += 1
    return rows


def check_sums(check, name, page):
    """By default the panel has the rows of the command, and closes to the byte."""
    check.expect(page.stat().st_size < MAX_BYTES, f"{name}: {page.stat().st_size} B")
    check.open(page)
    allocated = next(row for row in check.device["totals"] if row["what"] == "allocated")
    total = [allocated["a_bytes"], allocated["b_bytes"]]
    reserved = next(row for row in check.device["totals"] if row["what"] == "reserved")
    for way in ("role", "phase", "site", "module"):
        check.browser.run(CHOOSE, ".selection select", way if way in check.view()["ways"] else "role")
        view = check.view()
        check.expect(view["sums"] == total == view["foot"][1:] and view["foot"][0] == total[1] - total[0],
                     f"{name} by {way}: {view['sums']} in all, not {total}")
        check.expect([sum(row[i] for row in view["rows"]) for i in range(3)] == view["foot"],
                     f"{name} by {way}: rows add up to the last one")
        check.expect(view["reserved"] == [[reserved["change"], reserved["a_bytes"], reserved["b_bytes"]]],
                     f"{name} by {way}: {view['reserved']} reserved, not {reserved}")
        changes = [abs(row[0]) for row in view["rows"]]
        check.expect(changes == sorted(changes, reverse=True), f"{name} by {way}: largest change first")
        if way != "module":
            found = collections.Counter(tuple(row[:4]) for row in view["rows"])
            check.expect(found == wanted_rows(check.device, way),
                         f"{name} by {way}: {list(found - wanted_rows(check.device, way))[:3]}")
    check.is_quiet(f"{name}: sums")


RESERVED = """
return [...document.querySelectorAll('#reserved-0 tbody tr')].map((row) => [
  ...[0, 1, 2].map((at) => Number(row.cells[at].dataset.v)), row.cells[5].textContent]);
"""


def check_reserved(check, name):
    """Allocated memory and the unused memory of segments are the reserved memory, to the byte. The page
    is open: the table has no state."""
    found = check.browser.run(RESERVED)
    totals = {row["what"]: [row["change"], row["a_bytes"], row["b_bytes"]] for row in check.device["totals"]}
    unused = check.device["unused"]
    sums = lambda rows: [sum(column) for column in zip(*rows)] or [0, 0, 0]
    check.expect(sums([row["change"], row["a_bytes"], row["b_bytes"]] for row in unused) ==
                 totals["unused"], f"{name}: {unused} is unused, not {totals['unused']}")
    check.expect(all(row["a_segments"] or row["b_segments"] for row in unused), f"{name}: {unused}")
    check.expect(found[-1] == [*totals["reserved"], "in total"] and
                 sums(row[:3] for row in found[:-1]) == found[-1][:3] and
                 found[0] == [*totals["allocated"], "allocated"] and
                 [row[3] for row in found[-1 - len(unused):-1]] == [row["what"] for row in unused],
                 f"{name}: {found} for {unused}")


def check_histories(check, name, page):
    """The same instants, chosen by hand, have the same rows: both histories are exact, and their
    sites match as those of the command do."""
    check.open(page)
    columns = check.view()["columns"]
    if PAIRS[name][2][:1] == ["--at"]:  # the page may have no column for that instant
        return
    at = ".".join(f"{side[2]}-{side[2]}" for side in columns)
    for way in ("role", "phase", "site"):
        check.browser.run("location.hash = arguments[0]", f"#r={at}&m=change.{way}")
        check.browser.wait("true")
        view = check.view()
        wanted = wanted_rows(check.device, way)
        found = collections.Counter(tuple(row[:4]) for row in view["rows"])
        check.expect("selected instants" in view["title"] and found == wanted,
                     f"{name} by {way}, selected: {list((found - wanted))[:3]} for "
                     f"{list((wanted - found))[:3]}")
    check.is_quiet(f"{name}: histories")


def check_icicle(check, name, page):
    check.open(page)
    view = check.view()
    root = view["cells"][0]
    check.expect([root["a"], root["b"]] == view["totals"] == check.browser.run(LEAVES),
                 f"{name}: the icicle has all bytes of both, {root}")
    for cell in view["cells"]:
        change = cell["b"] - cell["a"]
        level = int(next(each for each in cell["name"].split() if each.startswith("change"))[6:])
        check.expect((level > 8) - (level < 8) == (change > 0) - (change < 0),
                     f"{name}: the color of {cell}")
        for value in (cell["a"], cell["b"], abs(change)):
            check.expect(f"{value:,} B" in cell["title"], f"{name}: {value} in {cell['title']!r}")
    for top in {cell["top"] for cell in view["cells"]}:
        row = sorted((cell for cell in view["cells"] if cell["top"] == top),
                     key=lambda cell: cell["left"])
        check.expect(all(a["left"] + a["width"] <= b["left"] + 0.01 for a, b in zip(row, row[1:])),
                     f"{name}: cells of a row do not overlap")
    inner = max((cell for cell in view["cells"] if cell["node"] not in (None, -1) and
                 cell["width"] < 70), key=lambda cell: cell["width"])
    check.browser.run("document.querySelector(`.icicle [data-node='${arguments[0]}']`).click()",
                      inner["node"])
    zoomed = check.view()
    again = next(cell for cell in zoomed["cells"] if cell["node"] == inner["node"])
    check.expect(again["width"] == 100 and (again["a"], again["b"]) == (inner["a"], inner["b"]),
                 f"{name}: a click zooms into {inner}")
    check.browser.run("document.querySelector('.icicle .cell').click()")
    check.expect(check.view()["cells"] == view["cells"], f"{name}: the first cell shows all")
    check.is_quiet(f"{name}: icicle")


def check_selection(check, page):
    """A step, a range and an instant of one run select those of the other."""
    a, b, _ = PAIRS["options"]
    check.open(page)
    data = check.browser.run("return data.devices.map((each) => each.steps)")
    for side, step in ((0, 2), (1, 3)):
        check.click(check.browser.run(STEP, side, step))
        view = check.view()
        for i in (0, 1):
            at = data[i].index(step, 0) if data[i][0] == step else next(
                at for at in range(0, len(data[i]), 5) if data[i][at] == step)
            begin, end = data[i][at + 3:at + 5]
            first, last, _ = view["events"][i]
            check.expect(begin <= last <= end and abs(first - begin) <= (end - begin) / 4,
                         f"step {step} of {'AB'[i]} is {begin} to {end}, not {first} to {last}")
        grew = [check.live(FIXTURES / trace, view["events"][i][1], 0) -
                check.live(FIXTURES / trace, view["before"][i], 0) for i, trace in enumerate((a, b))]
        check.expect(view["sums"] == grew, f"step {step} grew by {view['sums']}, live says {grew}")
        check.browser.run("document.querySelector('[data-view=held]').click()")
        held = check.view()
        check.expect(held["sums"] == held["totals"], "held at the fullest instants")
        check.browser.run("document.querySelector('[data-view=change]').click()")
    for side in (0, 1):
        check.browser.keys("Escape")
        left, middle, width = check.browser.run(PLOT, side)
        check.browser.drag((left + 0.3 * width, middle), (left + 0.6 * width, middle))
        view = check.view()
        edges = check.browser.run("""return comparison.sides.map(({model, first, last}) =>
            [model.x[first], model.x[last + 1], model.length])""")
        check.expect(abs(edges[0][0] - edges[1][0]) < edges[0][2] / 10 and
                     abs(edges[0][1] - edges[1][1]) < edges[0][2] / 10,
                     f"a range of {'AB'[side]} selects the same part of the axis: {edges}")
        check.click((left + 0.5 * width, middle))
        view = check.view()
        check.expect(all(first == last for first, last, _ in view["columns"]) and
                     view["sums"] == view["totals"], f"an instant of both: {view['columns']}")
    check.is_quiet("selection")


def check_matched(check, name, page):
    """A clicked instant selects one of the other run in the same phase of the same step. On an axis
    that is not of steps it selects the same position, and the title says so."""
    check.open(page)
    phases = lambda: check.browser.run("return comparison.sides.map(({model, at}) => model.where[at])")
    clicked = 0
    for side, share in ((0, 0.2), (0, 0.35), (1, 0.5), (1, 0.65), (0, 0.8)):
        left, middle, width = check.browser.run(PLOT, side)
        check.click((left + share * width, middle))
        found, title = phases(), check.view()["title"]
        words = "both in " + found[side].replace(", step", " of step")
        clicked += "," in found[side]
        check.expect("," not in found[side] or (found[0] == found[1] and words in title),
                     f"{name}: a click on {found[side]} of {'AB'[side]} selects {found}, {title!r}")
    check.expect(clicked > 2, f"{name}: {clicked} clicks were in phases of steps")
    check.browser.run(CHOOSE, ".axis", "event")
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        left, middle, width = check.browser.run(PLOT, 0)
        check.click((left + share * width, middle))
        found, title = phases(), check.view()["title"]
        check.expect(found[0] == found[1] or "matched by the number of events since the start" in title,
                     f"{name}: {found} are called {title!r}")
    check.is_quiet(f"{name}: matched")


def check_double_click(check, page):
    """A double click shows all, and takes back what its first click selected."""
    check.open(page)
    before = check.view()
    left, middle, width = check.browser.run(PLOT, 0)
    check.browser.press((left + 0.2 * width, middle), times=2)
    after = check.view()
    for key in ("title", "columns", "views", "sums"):
        check.expect(before[key] == after[key], f"a double click: {key} {before[key]} became {after[key]}")
    check.is_quiet("double click")


def check_linked(check, page):
    """Zoom, pointer and axis are those of both."""
    check.open(page)
    whole = check.view()["views"]
    check.expect(whole[0] == whole[1], f"one axis: {whole}")
    for axis in ("time", "event", "step"):
        check.browser.run(CHOOSE, ".axis", axis)
        check.browser.run("comparison.timelines[1].canvas.focus()")
        check.browser.keys("+", "+")
        views = check.view()["views"]
        check.expect(views[0] == views[1] != whole[0], f"zoom by {axis}: {views}")
        check.browser.keys("0")
    left, middle, width = check.browser.run(PLOT, 0)
    check.browser.ask("POST", "/actions", {"actions": [
        {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": round(left + width / 2), "y": round(middle)}]}]})
    check.browser.run(SETTLE)
    tips = check.browser.run("""return [...document.querySelectorAll('.tip')].map((tip) =>
        tip.hidden ? '' : tip.textContent)""")
    check.expect(all("allocated" in tip for tip in tips) and "from A to B" in tips[1],
                 f"both show what is there: {tips}")
    tops = check.browser.run("return comparison.timelines.map((each) => each.top)")
    check.expect(tops[0] == tops[1], f"one scale: {tops}")
    check.is_quiet("linked")


def check_filter(check, page):
    check.open(page)
    before = check.view()
    check.browser.run("document.querySelector('.layers .layer').click()")
    view = check.view()
    name = check.browser.run("return document.querySelector('.layer[aria-pressed=true]').textContent")
    check.expect([row[3] for row in view["rows"]] == [name] and
                 [row for row in before["rows"] if row[3] == name][0][:3] == view["rows"][0][:3],
                 f"only {name}: {view['rows']}")
    check.expect(any("dim" in cell["name"] for cell in view["cells"]), "other cells are dim")
    check.browser.run("document.querySelector('.layer.all').click()")
    check.expect(check.view()["rows"] == before["rows"], "all again")
    check.is_quiet("filter")


def check_links(check, page):
    check.open(page)
    check.browser.run(CHOOSE, ".axis", "event")
    check.click(check.browser.run(STEP, 0, 1))
    check.browser.run(CHOOSE, ".selection select", "site")
    check.browser.run("""document.querySelector('.selection tbody tr[tabindex]').click();
        document.querySelectorAll('.icicle .cell[data-node]')[2].click();
        document.querySelectorAll('#sites-0 th button')[1].click();
        comparison.timelines[0].zoom(0.5); remember();
        document.querySelector('#tools button').click();""")
    view = check.view()
    state = check.browser.run("return location.hash")
    check.open(page, state)
    again = check.view()
    for key, value in view.items():
        check.expect(again[key] == value, f"{state} shows the same {key}")
    check.browser.keys("Escape")
    check.expect("r=" not in check.browser.run("return location.hash"), "Esc empties the link")
    for wrong in ("#r=9999-1.5-2", "#r=1-2", "#z=99999&m=no.no", "#v=9-1&x=no", "#f.site=[[1]",
                  "#f.role=%5B%22%3Cb%3E%22%5D", "#tables", "#s.sites-0=99-&t=<script>"):
        check.open(page, wrong)
        check.expect(check.view()["foot"] is not None, f"{wrong} is no harm")
    check.is_quiet("links")


def check_still(check, page):
    """Without scripts, and in the dark."""
    browser = check.browser
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    for name in ("timeline-a", "timeline-b", "diff"):
        box = browser.rectangle(f"#{name} svg")
        check.expect(box["width"] > 700 and box["height"] > 200, f"{name} without scripts: {box}")
    for name in ("roles", "phases", "sites"):
        check.expect(browser.rectangle(f"#{name}-0 tbody tr")["height"] > 10, f"{name} without scripts")
    check.expect(not browser.elements("#tools *"), "no buttons that do nothing")
    browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    light, dark = "rgb(255, 255, 255)", "rgb(13, 17, 23)"
    for scheme, color, other in (("light", light, dark), ("dark", dark, light)):
        browser.devtools("Emulation.setEmulatedMedia", media="",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
        check.open(page)
        same = "return getComputedStyle(document.querySelector('.scale .change8')).backgroundColor"
        before = browser.run(same)
        check.expect(check.view()["dark"] == color, f"{scheme}: {check.view()['dark']}")
        browser.run("document.querySelector('#tools button').click()")
        check.expect(check.view()["dark"] == other and browser.run(same) != before,
                     f"{scheme}: the button changes it")
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[])
    check.is_quiet("still")


def check_moved(check, page):
    """Lines moved, so no site and no call of both runs is in only one of them."""
    sites = check.device["sites"]
    check.expect(sum(site["moved"] for site in sites) > 5, "lines moved")
    check.open(page)
    cells = [cell for cell in check.view()["cells"] if cell["node"] not in (None, -1)]
    alone = [cell["title"] for cell in cells if not cell["a"] or not cell["b"]]
    check.expect(cells and not alone, f"calls of both runs: {alone[:3]}")
    check.expect(any("\nin A: " in cell["title"] for cell in cells), "a call has both places")
    check.open(page, "#m=change.site")
    check.browser.run("document.querySelector('.selection tbody tr[tabindex]').click()")
    row = check.view()["rows"]
    check.expect(len(row) == 1 and row[0][1] and row[0][2], f"a site filters both runs: {row}")


def check_layout(check, name, page):
    for width in (1400, 900, 420):
        check.browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900,
                               deviceScaleFactor=1, mobile=False)
        check.open(page, "#m=change.site")
        for font in ("DejaVu Sans", "DejaVu Sans Mono"):
            faults, _ = check.browser.run(MEASURE, font)
            check.expect(not faults, f"{name} at {width} px, {font}: {faults[:3]}")
    check.browser.devtools("Emulation.clearDeviceMetricsOverride")


def check_names(check):
    """Names are text: none becomes an element."""
    markup = ["<img src=x onerror=hacked=1>", "</script><b>", "</title><i>", "\u202egnp", "]]>&amp;"]
    paths = []
    for seed in (1, 2):
        made = snapshot(seed)
        for number, event in enumerate(made["device_traces"][0]):
            for frame in event["frames"]:
                frame["name"] += markup[(number + seed) % len(markup)]
        for mark in made["external_annotations"]:
            mark["name"] += markup[seed]
        paths.append(check.folder / f"<b>{seed}.pickle")
        paths[-1].write_bytes(pickle.dumps(made))
    folder = check.folder / "names"
    subprocess.run([check.program, "diff", "-q", *paths, "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    page = folder / "diff.html"
    check.open(page, "#m=change.site")
    check.browser.run("document.querySelector('.selection tbody tr[tabindex]').click()")
    strange, hacked = check.browser.run("""return [document.querySelectorAll('img, b, body i:not([class]), iframe').length,
        window.hacked || 0]""")
    check.expect(not strange and not hacked, f"names: {strange} elements, {hacked}")
    check.expect("<b>1" in check.browser.run("return document.querySelector('h1').textContent"),
                 "names: the title has the name as text")
    check.is_quiet("names")


def check_nothing(check):
    """Runs without a common device, and a folder that cannot be written."""
    trace = FIXTURES / "captures/gpt_default.pickle.zst"
    other = FIXTURES / "no_history/snapshot.pickle"
    folder = check.folder / "nothing"
    subprocess.run([check.program, "diff", "-q", trace, other, "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    check.open(folder / "diff.html")
    text, timelines = check.browser.run("""return [document.body.innerText,
        document.querySelectorAll('canvas').length]""")
    check.expect("In words" in text and "no history" in text and not timelines,
                 "without a history, no timeline pretends one")
    check.is_quiet("nothing")
    (check.folder / "own").mkdir()
    (check.folder / "own/diff.html").write_text("mine")
    done = subprocess.run([check.program, "diff", trace, trace, "-o", check.folder / "own"],
                          capture_output=True, text=True, check=False)
    check.expect(done.returncode == 4 and not done.stdout and "diff.html" in done.stderr and
                 (check.folder / "own/diff.html").read_text() == "mine",
                 f"a page of another program stays: {done.returncode} {done.stderr}")


def check_all(check):
    pages = {}
    for name in PAIRS:
        page = pages[name] = check.diff(name)
        check_sums(check, name, page)
        check_reserved(check, name)
        check_histories(check, name, page)
        check_icicle(check, name, page)
        if name == "lines":
            check_moved(check, page)
    check_selection(check, pages["options"])
    for name in ("options", "lines", "batches"):
        check_matched(check, name, pages[name])
    check_double_click(check, pages["end"])
    check_linked(check, pages["options"])
    check_filter(check, pages["programs"])
    check_links(check, pages["options"])
    check_still(check, pages["options"])
    for name in ("options", "batches"):
        check_layout(check, name, pages[name])
    check_names(check)
    check_nothing(check)


def main():
    driver.need()
    with tempfile.TemporaryDirectory(prefix="memtrace-diff-") as folder, driver.Browser() as browser:
        check = Check(fast_program(sys.argv[1]), folder, browser)
        check_all(check)
    print("diff.html: as it should be" if not check.failures else f"{len(check.failures)} failures")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
