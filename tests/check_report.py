#!/usr/bin/env python3
"""check_report.py PROGRAM: report.html does in a real browser what it says. No
request leaves, nothing complains, every number is the one of `memtrace live`, a link
shows what it was taken of, all is there without scripts, and whatever a name says, it
stays text. Without a browser: skipped, but not in CI."""
import json
import pathlib
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile

import browser as driver
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "fixtures" / "captures"
MAX_BYTES = 1_000_000

# What a page shows: the instant, the rows of the table, the cells of the icicle.
VIEW = """
const table = document.querySelector('table.live');
const text = (row) => [...row.cells].map((cell) => cell.textContent);
return {
  device: Number(document.querySelector('section').id.replace('device-', '')),
  when: document.querySelector('.when').textContent,
  event: Number(document.querySelector('.when').dataset.event),
  bytes: Number(document.querySelector('.when').dataset.bytes),
  rows: [...table.tBodies[0].rows].map((row) => [Number(row.cells[0].dataset.v),
    Number(row.cells[2].dataset.v), ...text(row).slice(3)]),
  sum: Number(table.tFoot.rows[0].cells[0].dataset.v),
  cells: [...document.querySelectorAll('.icicle .cell')].map((cell) =>
    [cell.title, cell.style.left, cell.style.width, cell.style.top, cell.className]),
  ruler: [...document.querySelectorAll('.ruler span')].map((tick) => Number(tick.dataset.bytes)),
  hits: document.querySelector('.hits').textContent,
  dark: getComputedStyle(document.body).backgroundColor,
  sorts: [...document.querySelectorAll('th[aria-sort]')].map((head) => head.textContent),
};
"""


class Check(driver.Checks):
    # ---- what the program says --------------------------------------------

    def analyze(self, trace, name, *options):
        folder = self.folder / name
        subprocess.run([self.program, "analyze", "-q", trace, "-o", folder, *options],
                       stdout=subprocess.DEVNULL, check=False)
        return folder / "report.html"

    def live(self, trace, view, by="site"):
        done = subprocess.run([self.program, "live", trace, "--at", str(view["event"]), "--by", by,
                               "--device", str(view["device"]), "--json"],
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["devices"][0]

    # ---- what the page shows ----------------------------------------------

    def view(self):
        return self.browser.run(VIEW)

    def same_as_live(self, trace, what, grouped=True):
        """The table is that of `memtrace live` at the same event, to the byte."""
        view = self.view()
        live = self.live(trace, view, "site" if grouped else "role")
        self.expect(view["bytes"] == live["bytes"]["allocated"] == view["sum"],
                    f"{what}: {view['bytes']} B in all, as live says")
        wanted, found = {}, {}
        for row in live["rows"]:
            key = (row["group"], row["phase"] or "", row["role"]) if grouped else row["role"]
            old = wanted.get(key, (0, 0))
            wanted[key] = (old[0] + row["bytes"], old[1] + row["blocks"])
        for size, blocks, role, phase, site in view["rows"]:
            key = (site, phase, role) if grouped else role
            old = found.get(key, (0, 0))
            found[key] = (old[0] + size, old[1] + blocks)
        self.expect(wanted == found, f"{what}: rows as live tells them; "
                    f"{list(wanted.items() - found.items())[:3]} became "
                    f"{list(found.items() - wanted.items())[:3]}")
        return view

    def drag(self, start, end):
        """Over the plot of the timeline; start and end are shares of its width."""
        self.browser.drag(*(self.browser.plot_point(share) for share in (start, end)))


# ---- one by one ---------------------------------------------------------------


def check_brush(check, trace, page):
    check.open(page)
    report = json.loads((page.parent / "report.json").read_text())
    peak = report["devices"][0]["summary"]["allocated_peak"]
    view = check.same_as_live(trace, "at first")
    check.expect((view["event"], view["bytes"]) == (peak["event"], peak["bytes"]),
                 "the page begins with the allocated peak")
    events = {view["event"]}
    for start, end in ((0.05, 0.2), (0.6, 0.9), (0.97, 0.5), (0.4, 0.4)):
        check.drag(start, end)
        view = check.same_as_live(trace, f"brushed from {start} to {end}")
        leaves = sum(cell[4].startswith("cell role") for cell in view["cells"])
        check.expect(leaves > 0, "the icicle has blocks")
        events.add(view["event"])
    check.expect(len(events) > 3, "ranges have instants of their own")
    check.browser.keys("Escape")
    check.expect(check.view()["event"] == peak["event"], "Esc leads back to the peak")
    check.browser.keys("Left")
    check.same_as_live(trace, "an instant before the peak")
    check.is_quiet("brush")


def check_sort(check, page):
    check.open(page)
    for column, key in ((0, 0), (2, 1)):
        check.browser.run("document.querySelectorAll('table.live th button')[arguments[0]].click()",
                          column)
        values = [row[key] for row in check.view()["rows"]]
        check.expect(values == sorted(values, reverse=column == 2), f"sorted by column {column}")
    check.browser.run("document.querySelectorAll('table.live th button')[5].click()")
    sites = [row[4] for row in check.view()["rows"]]
    check.expect(sites == sorted(sites), "sorted by site")
    column = """return [...document.querySelector('#steps-0').tBodies[0].rows].map((row) =>
        Number(row.cells[2].dataset.v));"""
    before = check.browser.run(column)
    check.browser.run("document.querySelectorAll('#steps-0 th button')[2].click()")
    after = check.browser.run(column)
    check.expect(after == sorted(before, reverse=True) != before, "steps sorted by their peak")
    for by in ("role", "phase", "size"):
        check.browser.run("""const select = document.querySelector('caption select');
            select.value = arguments[0]; select.dispatchEvent(new Event('change'));""", by)
        view = check.view()
        check.expect(sum(row[0] for row in view["rows"]) == view["bytes"], f"rows by {by} add up")
    check.is_quiet("sort")


def check_search(check, trace, page):
    """Innermost frames, frames in the middle, several of a stack at once."""
    for text in ("linear.py", "train.py:65", "forward|train", "train*py:65"):
        check.open(page)
        check.browser.keys("/", *text)
        view = check.view()
        frame = re.compile(re.escape(text).replace(r"\|", "|").replace(r"\*", ".*"), re.IGNORECASE)
        wanted = sum(row["bytes"] for row in check.live(trace, view, "stack")["rows"]
                     if frame.search(row["group"]) or frame.search(row["site"]))
        found = int(check.browser.run("return document.querySelector('.hits').dataset.bytes"))
        check.expect(view["bytes"] > found == wanted > 0, f"{text} is found in {wanted} B, not {found}")
        check.expect(sum(row[0] for row in view["rows"]) == wanted, f"rows with {text} add up")
        check.expect(any("dim" in cell[4] for cell in view["cells"]) and
                     any("hit" in cell[4] for cell in view["cells"]), "cells are dimmed and marked")
    check.browser.keys("Escape")
    check.expect(check.view()["hits"] == "", "Esc ends the search")
    check.is_quiet("search")


def check_zoom(check, page):
    check.open(page)
    whole = check.view()
    check.browser.run("""
        const inner = [...document.querySelectorAll('.icicle .cell[data-node]')]
          .filter((cell) => parseFloat(cell.style.width) < 50);
        inner[0].click();""")
    view = check.view()
    size = lambda cell: int(re.search(r"\(([\d,]+) B\)", cell[0]).group(1).replace(",", ""))
    focus = max((cell for cell in view["cells"] if "above" not in cell[4] and cell[2] == "100%"),
                key=size)
    check.expect(size(focus) < whole["bytes"] / 2, "zoomed into less than half")
    check.expect(view["ruler"] and max(view["ruler"]) < size(focus) < max(whole["ruler"]),
                 "the ruler counts bytes of the cell")
    below = [cell for cell in view["cells"]
             if float(cell[3][:-2]) == float(focus[3][:-2]) + 24]
    check.expect(below and sum(map(size, below)) <= size(focus), "children are within")
    check.browser.run("document.querySelector('.icicle').scrollIntoView()")
    check.browser.keys("Up", "Up", "Up", "Up", "Up", "Up", "Up", "Up")
    check.expect(check.view()["cells"] == whole["cells"], "zoomed out, it is as before")
    check.browser.keys("Down", "Down")
    check.expect(check.view()["cells"] != whole["cells"], "arrows zoom in")
    check.browser.keys("Escape")
    check.expect(check.view()["cells"] == whole["cells"], "Esc zooms out")
    check.is_quiet("zoom")


def check_links(check, page):
    check.open(page)
    check.drag(0.55, 0.8)
    check.browser.keys("/", *"forward")
    check.browser.run("""document.activeElement.blur();
        document.querySelectorAll('table.live th button')[2].click();
        document.querySelectorAll('#steps-0 th button')[6].click();
        [...document.querySelectorAll('.icicle .cell[data-node]')].at(3).click();
        document.querySelector('#tools button').click();""")
    view = check.view()
    state = check.browser.run("return location.hash")
    check.open(page, state)
    again = check.view()
    for key, value in view.items():
        check.expect(again[key] == value, f"{state} shows the same {key}")
    check.browser.keys("Escape")
    check.expect(check.browser.run("return location.hash").count("r0") == 0, "Esc empties the link")
    for wrong in ("#r0=9999-1", "#r0=-1-x&z0=99999&s0=%3Cb&g0=no", "#q=(((", "#z0=1e9", "#steps-0",
                  "#s.steps-0=99-&t=<script>"):
        check.open(page, wrong)
        check.expect(check.view()["rows"] is not None, f"{wrong} is no harm")
    check.is_quiet("links")


def check_still(check, page):
    """Without scripts, on paper, and in the dark."""
    browser = check.browser
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    for name in ("timeline", "icicle", "blocks"):
        box = browser.rectangle(f"[data-chart={name}] svg")
        check.expect(box["width"] > 700 and box["height"] > 200, f"{name} without scripts: {box}")
        check.expect(browser.elements(f"[data-chart={name}] svg title"), f"{name} has tooltips")
    check.expect(browser.rectangle("table.live tbody tr")["height"] > 10, "rows without scripts")
    check.expect(not browser.elements("#tools *"), "no buttons that do nothing")
    browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    check.open(page)
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    check.expect(browser.run("return getComputedStyle(document.querySelector('.page-nav')).display")
                 == "none", "no bar on paper")
    check.expect(browser.run("""return [...document.querySelectorAll('.scroll, .chart')].every(
        (each) => getComputedStyle(each).overflow === 'visible')"""), "nothing is cut on paper")
    paper = browser.devtools("Page.printToPDF")["data"]
    check.expect(len(paper) > 50_000, "it prints")
    light, dark = "rgb(255, 255, 255)", "rgb(13, 17, 23)"
    for scheme, color, other in (("light", light, dark), ("dark", dark, light)):
        browser.devtools("Emulation.setEmulatedMedia", media="",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
        check.open(page)
        check.expect(check.view()["dark"] == color, f"{scheme}: {check.view()['dark']}")
        browser.run("document.querySelector('#tools button').click()")
        ground = browser.run("""return getComputedStyle(
            document.querySelector('[data-chart=timeline] svg rect')).fill""")
        check.expect(check.view()["dark"] == ground == other, f"{scheme}: the button changes it")
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[])
    check.is_quiet("still")


COPIES = """
window.copied = [];
navigator.clipboard.writeText = (text) => { copied.push(text); return Promise.resolve(); };
const wanted = [...document.querySelectorAll('.when code, .do code, .proof code, pre')];
for (const each of wanted) each.nextElementSibling.click();
return [wanted.map((each) => each.textContent), copied];
"""
REFUSED = """
window.copied = [];
navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'));
document.execCommand = (command) => {
  copied.push([command, document.activeElement.value || getSelection().toString()]);
  return true;
};
document.querySelector('.when .copy').click();
"""
LINKS = """
const charts = [...document.querySelectorAll('figure.chart')];
const links = [...document.querySelectorAll('nav a[href^="#"]')].map((link) => link.hash.slice(1));
return [
  charts.map((chart) => chart.id || chart.previousElementSibling.id)
    .filter((id) => !links.includes(id)),
  links.filter((id) => !document.getElementById(id) ||
    !document.getElementById(id).checkVisibility()),
  links,
];
"""


def check_navigation(check, trace, page, devices):
    """A link leads to every chart; the first line is about the device of the text's first line."""
    check.open(page)
    missing, dead, links = check.browser.run(LINKS)
    check.expect(not missing and not dead,
                 f"{page.parent.name}: charts without a link {missing}, links to nothing {dead}")
    for part in ("verdict", "blocks-0", "icicle-0", "alive-0", "tables-0"):
        check.expect(part in links, f"{page.parent.name}: a link to {part}")
    check.browser.run("document.querySelector('nav a[href=\"#blocks-0\"]').click()")
    top = check.browser.run(
        "return document.getElementById('blocks-0').getBoundingClientRect().top")
    check.expect(0 <= top < 300, f"{page.parent.name}: a link shows its chart, at {top} px")
    shown, copied = check.browser.run(COPIES)
    check.expect(len(shown) >= 3 and shown == copied,
                 f"{page.parent.name}: {len(shown)} commands are copied as they are shown")
    check.browser.run(REFUSED)
    said, copied = check.browser.run("""return [document.querySelector('.when code').textContent,
                                                copied]""")
    check.expect(copied == [["copy", said]],
                 f"{page.parent.name}: where the clipboard refuses, a command copies {said}: {copied}")
    if devices > 1:
        words = subprocess.run([check.program, "analyze", trace], stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        found = re.match(r"Device (\d+) .*\nCard +(about [\d.]+ \w+)", words)
        verdict = check.browser.run("return document.getElementById('verdict').textContent")
        wanted = found and f"device {found[1]}: card {found[2]}"
        check.expect(wanted and verdict.startswith(wanted),
                     f"{page.parent.name}: the page says {verdict}, the text {words[:60]}")
    check.is_quiet("navigation")


def check_no_history(check):
    """A snapshot without history has no peak: neither a number nor a picture pretends one."""
    page = check.analyze(ROOT / "fixtures/no_history/snapshot.pickle", "no_history")
    summary = (page.parent / "summary.md").read_text()
    check.open(page)
    charts, verdict, text = check.browser.run("""return [
        [...document.querySelectorAll('figure.chart')].map((each) => each.dataset.chart),
        document.getElementById('verdict').textContent,
        document.querySelector('main').innerText.split('The same in words')[0]];""")
    check.expect(verdict.startswith("no history, ") and verdict in summary.replace("&#58;", ":"),
                 f"no history: the page begins with '{verdict}'")
    check.expect(" 0 B" not in text and " 0 B" not in summary and charts == ["address"],
                 f"no history: no peak, no chart of one {charts}")
    check.expect("Alive at that instant" in text and "no stack recorded" in text,
                 "no history: what holds the memory")
    tiles = check.browser.run("""return [...document.querySelectorAll('figure text')]
        .map((each) => each.textContent)""")
    check.expect("40.0%" in tiles and "Mean occupancy" not in tiles, f"no history: {tiles[:12]}")
    check.expect("_record_memory_history" in text, "no history: how to record one")
    check.is_quiet("no_history")


BLOCKS = """
const keys = [...document.querySelectorAll('[data-key]')].map((shape) => shape.dataset.key);
const blocks = blockMaps[0];
return [keys.length, keys.filter((key) => !blocks.has(key)).slice(0, 3),
        [...blocks.values()].map((each) => [each.key, each.bytes, each.requested, each.site, each.node])];
"""
PICK = """
const figure = document.querySelector(`[data-chart=${arguments[0]}]`);
const shape = [...figure.querySelectorAll('[data-key], rect.t')].find((each) =>
  arguments[1] ? each.dataset.key === arguments[1] :
    each.querySelector('title') && each.querySelector('title').textContent.startsWith(arguments[2]));
if (!shape) return null;
shape.dispatchEvent(new MouseEvent('click', {bubbles: true}));
const panel = figure.nextElementSibling;
const facts = {};
for (const name of panel.querySelectorAll('dt'))
  facts[name.textContent] = name.nextElementSibling.textContent;
return {title: panel.querySelector('strong').textContent, facts,
  stack: [...panel.querySelectorAll('.stack li')].map((each) => each.textContent),
  marked: document.querySelectorAll('.mt-picked').length};
"""
VIEW_BOX = "return document.querySelector(`[data-chart=${arguments[0]}] svg`).dataset.view"


def check_blocks(check, trace, page):
    """A click in a chart tells the block's stack, which is that of the trace; an address finds
    the blocks that lay there; charts can be enlarged and moved."""
    check.open(page)
    drawn, strangers, rows = check.browser.run(BLOCKS)
    check.expect(drawn > 800 and not strangers, f"{drawn} shapes have rows, but {strangers}")
    done = subprocess.run([check.program, "dump", trace, "--json"], stdout=subprocess.PIPE,
                          check=True, text=True)
    events = {event["seq"]: event for event in map(json.loads, done.stdout.splitlines())
              if "seq" in event}
    for key, size, asked, _, _ in rows:
        address, birth = key.split(".")
        event = events[int(birth)]
        check.expect((int(address, 16), asked) == (event["addr"], event["size"]) and
                     size >= asked, f"block {key} is event {birth}")
    for chart in ("blocks", "address"):
        keys = check.browser.run("""return [...document.querySelectorAll(
            `[data-chart=${arguments[0]}] [data-key]`)].map((shape) => shape.dataset.key)""", chart)
        row = next(row for row in rows if row[0] in keys and row[4] >= 0)
        key = row[0]
        said = check.browser.run("""return document.querySelector(
            `[data-chart=${arguments[0]}] [data-key="${arguments[1]}"] title`).textContent""", chart, key)
        check.expect(row[3].split(" < ")[0] in said, f"{chart}: the pointer shows {key}: {said}")
        seen = check.browser.run(PICK, chart, key, None)
        check.expect(f"{row[1]:,} B" in seen["facts"]["size"] and seen["facts"]["site"] == row[3] and
                     seen["facts"]["addresses"].startswith(f"0x{key.split('.')[0]}"),
                     f"{chart}: a click shows {key}, not {seen}")
        check.expect(row[3].split(" < ")[0] in seen["stack"] and
                     seen["stack"][-1].startswith("<module>") and seen["marked"] >= 1, f"{chart}: the stack of {key}: {seen['stack']}")
        state = check.browser.run("return location.hash")
        check.open(page, state)
        check.expect(check.browser.run("return document.querySelector('.picked strong, .picked:not("
                                       "[hidden]) strong').textContent") == seen["title"],
                     f"{chart}: {state} shows the same block")
    call = check.browser.run(PICK, "blocks", None, "forward train.py:65")
    check.expect([line.split(":")[0] for line in call["stack"]] == ["forward", "step 1"],
                 f"a call has its callers: {call}")
    check_addresses(check, rows)
    check_enlarged(check)
    check.is_quiet("blocks")


def check_addresses(check, rows):
    key, size = max(rows, key=lambda row: row[1])[:2]
    base = int(key.split(".")[0], 16)
    for address, inside in ((base, True), (base + size - 1, True), (base + size, False)):
        check.browser.keys("Escape", "/", *hex(address))
        expected = sum(int(row[0].split(".")[0], 16) <= address <
                       int(row[0].split(".")[0], 16) + row[1] for row in rows)
        hits, found = check.browser.run("""return [document.querySelector('.hits').textContent,
            [...document.querySelectorAll('.found button')].map((each) => each.textContent)]""")
        check.expect(hits.startswith(f"{expected:,} of") and len(found) == min(expected, 100) and
                     (expected > 0 or not inside), f"{hex(address)}: {hits}, {expected} expected")
    check.browser.keys("Escape", "/", *hex(base))
    check.browser.run("document.querySelector('.found button').click()")
    addresses = check.browser.run("return document.querySelector('aside > .picked').innerText")
    check.expect("0x" in addresses and "freed" in addresses, f"a result shows its block: {addresses}")
    check.browser.keys("Escape")
    check.expect(not check.browser.run("return document.querySelectorAll('.found li').length"),
                 "Esc ends the search")


def check_enlarged(check):
    whole = check.browser.run(VIEW_BOX, "blocks")
    check.browser.run("""const bar = document.querySelector('[data-chart=blocks]').previousSibling;
        bar.querySelector('button').click(); bar.querySelector('button').click();
        document.querySelector('[data-chart=blocks]').scrollIntoView();""")
    x, y, width, height = map(float, check.browser.run(VIEW_BOX, "blocks").split())
    _, _, most, high = map(float, whole.split())
    check.expect((width, height) == (most / 4, high / 4), f"twice enlarged: {width} of {most}")
    check.browser.drag((600, 400), (500, 350))
    moved = list(map(float, check.browser.run(VIEW_BOX, "blocks").split()))
    check.expect(moved[0] > x and moved[1] > y and moved[2] == width, f"dragged to {moved}")
    check.browser.keys("Escape")
    check.expect(check.browser.run(VIEW_BOX, "blocks") == whole, "Esc shows all of it")


# Each would run, or change the page, if the policy allowed it. A name in a trace never gets this
# far; the policy is for the day on which an escape is wrong.
INJECTED = """
<script>window.hacked = 'script'</script>
<script type="module">window.hacked = 'module'</script>
<script src="data:text/javascript,window.hacked='source'"></script>
<img src="data:," onerror="window.hacked = 'handler'">
<svg onload="window.hacked = 'svg'"></svg>
<iframe srcdoc="<script>parent.hacked = 'frame'</script>"></iframe>
<a id="link" href="javascript:window.hacked='link'">link</a>
<style>body { --hacked: style }</style>
<p id="styled" style="--hacked: attribute">text</p>
<base href="https://example.org/">
<form id="form" action="https://example.org/form"><input name="a"></form>
"""
HACKED = """
const style = (node) => getComputedStyle(node).getPropertyValue('--hacked').trim();
document.getElementById('link').click();
document.getElementById('form').submit();
return [window.hacked || '', style(document.body), style(document.getElementById('styled')),
        document.baseURI.startsWith('file:') ? '' : document.baseURI];
"""


def check_policy(check, page):
    """Markup that got into the page neither runs nor styles anything; the page still works."""
    text = page.read_text()
    policy = re.search('Content-Security-Policy" content="([^"]*)"', text).group(1)
    check.expect("unsafe" not in policy, f"the policy lists hashes only: {policy}")
    for directive in ("default-src 'none'", "base-uri 'none'", "form-action 'none'"):
        check.expect(directive in policy, f"the policy has {directive}")
    changed = page.with_name("injected.html")
    changed.write_text(text.replace("<main>", "<main>" + INJECTED, 1))
    check.open(changed)
    hacked = check.browser.run(HACKED)
    check.expect(hacked == ["", "", "", ""], f"what was injected does nothing, not {hacked}")
    complaints = [line for line in check.browser.complaints() if "Content Security Policy" in line]
    check.expect(len(complaints) >= 9, f"the browser refused all of it, not {len(complaints)}: {complaints}")
    check.expect(not any("example.org" in url for url in check.browser.requests()), "no request left")


# ---- traces that somebody made up -----------------------------------------------

HOSTILE = ["</script><script>window.hacked = 1</script>", "<!--<script>", "-->", "]]>", "&lt;b&gt;",
           '"><img src=x onerror="window.hacked=1">', "' onmouseover='window.hacked=1", "\u2028\u2029",
           "${window.hacked=1}", "`", "\\", "\\u003c", "</style>", "</title>", "</pre></main>", "%3Cscript%3E",
           "javascript:window.hacked=1", "__proto__", "constructor", "\x00nul", "\x1b[31m", "\u202egnp.exe",
           "x" * 5000, "𝕏" * 300, "", " ", "a;b", "(.*)*$", "NaN"]


def made_up(names, count, seed):
    """A snapshot of a program whose functions and files have those names."""
    chance = random.Random(seed)
    trace, alive = [], []
    for i in range(count):
        if alive and chance.random() < 0.45:
            old = alive.pop(chance.randrange(len(alive)))
            for action in ("free_requested", "free_completed"):
                trace.append({**old, "action": action, "time_us": 1000 + 10 * i, "frames": []})
            continue
        frames = [{"filename": f"{chance.choice(names)}.py", "name": chance.choice(names),
                   "line": chance.randrange(1, 99)} for _ in range(chance.randrange(1, 6))]
        event = {"action": "alloc", "addr": (i + 1) << 24, "size": 512 * chance.randrange(1, 4000),
                 "stream": 0, "time_us": 1000 + 10 * i, "frames": frames}
        alive.append(event)
        trace.append(event)
    return {"segments": [], "device_traces": [trace], "external_annotations": []}


def check_made_up(check, name, names, count):
    trace = check.folder / f"{name}.pickle"
    trace.write_bytes(pickle.dumps(made_up(names, count, 7)))
    page = check.analyze(trace, name)
    check.expect(page.stat().st_size < MAX_BYTES, f"{name}: {page.stat().st_size} B")
    check.open(page)
    check.same_as_live(trace, name, grouped=False)
    small = check.browser.run("""
        return JSON.parse(document.getElementById('mt-data').textContent).devices[0].small""")
    check.expect((small > 0) == (name == "many"), f"{name}: groups put together below {small} B")
    check.browser.run("""const select = document.querySelector('caption select');
        select.value = 'role'; select.dispatchEvent(new Event('change'));""")
    for start, end in ((0.1, 0.3), (0.3, 0.9)):
        check.drag(start, end)
        view = check.view()
        live = check.live(trace, view, "role")
        check.expect(view["bytes"] == live["bytes"]["allocated"] and
                     {row[4]: row[0] for row in view["rows"]} ==
                     {row["group"]: row["bytes"] for row in live["rows"]},
                     f"{name}: roles at event {view['event']} as live tells them")
    check.expect(check.browser.run("return window.hacked === undefined"), f"{name}: names are text")
    check.is_quiet(name)


def deep_trace(folder):
    """A snapshot with stacks that leave no room for rows of blocks."""
    chance = random.Random(3)
    frames = [[{"filename": f"f{chance.randrange(500)}.py", "name": f"g{chance.randrange(9999)}",
                "line": chance.randrange(1, 9999)} for _ in range(60)] for _ in range(1500)]
    events = [{"action": "alloc", "addr": (i + 1) << 24, "size": 512 * chance.randrange(1, 4000),
               "stream": 0, "time_us": 1000 + 10 * i, "frames": frames[i]} for i in range(1500)]
    trace = folder / "deep.pickle"
    trace.write_bytes(pickle.dumps({"segments": [], "device_traces": [events],
                                    "external_annotations": []}))
    return trace


def check_deep(check):
    """Rows of blocks whose stacks have no room give way to the history, not the reverse."""
    trace = deep_trace(check.folder)
    page = check.analyze(trace, "deep")
    check.open(page)
    check.same_as_live(trace, "deep", grouped=False)
    rows, keys = check.browser.run("""
        const data = JSON.parse(document.getElementById('mt-data').textContent);
        return [blockMaps[0].size, document.querySelectorAll('[data-key]').length];""")
    check.expect(rows == 0 and keys == 0, f"deep: {rows} rows of blocks, {keys} shapes with keys")
    check.expect(page.stat().st_size < MAX_BYTES, f"deep: {page.stat().st_size} B")
    check.is_quiet("deep")


def check_first_device(check):
    """The device that the page is about has rows of blocks, also among many."""
    traces = [[{"action": "alloc", "addr": (i + 1) << 24, "size": (9 - device) << 20, "stream": 0,
                "time_us": 1000 + 10 * i, "frames": []} for i in range(20)] for device in range(4)]
    trace = check.folder / "devices.pickle"
    trace.write_bytes(pickle.dumps({"segments": [], "device_traces": traces, "external_annotations": []}))
    check.open(check.analyze(trace, "devices"))
    rows = check.browser.run("return data.devices.map((each, at) => [each.device, blockMaps[at].size])")
    check.expect(len(rows) == 4 and rows[0] == [0, 20], f"devices: rows of blocks {rows}")


def check_long_path(check):
    """Commands are copied: a long path is whole in them."""
    trace = check.folder / ("n" * 200) / ("m" * 200) / "oom.pickle.zst"
    trace.parent.mkdir(parents=True)
    shutil.copyfile(CAPTURES / "oom_adam.pickle.zst", trace)
    check.open(check.analyze(trace, "long_path"))
    commands = check.browser.run("""return [...document.querySelectorAll('.when code, .proof code')]
        .map((each) => each.textContent)""")
    check.expect(len(commands) > 1 and all(f" {trace} " in f"{each} " for each in commands),
                 f"a long path in commands: {commands}")


def check_without_times(check):
    """A trace of old PyTorch has no times: its page counts events, and says no time."""
    page = check.analyze(ROOT / "fixtures/categories/gpt_profile.pickle.zst", "without_times")
    check.open(page)
    text = check.browser.run("""return document.querySelector('main').textContent
        .split('The same in words')[0];""")
    times = re.findall(r"\b\d[\d.]* (?:ns|µs|ms|s)\b", text)
    check.expect(not times, f"without times: {times[:5]}")
    when = check.browser.run("return document.querySelector('.when').textContent")
    check.expect(re.search(r"at event [\d,]+ ·", when), f"without times: {when}")
    check.expect("event number" in text and "time since" not in text, "without times: the axis")
    check.is_quiet("without_times")


def check_answers(check, page):
    """The first screen says what the device must have, what holds its memory, what to change first."""
    device = json.loads((page.parent / "report.json").read_text())["devices"][0]
    check.open(page)
    cards = check.browser.run("""return [...document.querySelectorAll('.answers > div')]
        .map((card) => [card.querySelector('dt').textContent, card.querySelector('dd').textContent,
                        card.getBoundingClientRect().bottom])""")
    said = {question: answer for question, answer, _ in cards}
    need = check.browser.run("""return document.querySelector('.answers strong').textContent""")
    words = check.browser.run("return document.querySelector('main').textContent")
    check.expect(re.search(rf"^Card +{re.escape(need.strip())} =", words, re.M),
                 f"answers: what a card must have, {need}, is what the words say")
    check.expect(device["findings"][0]["title"] in said["What to change first"],
                 f"answers: what to change first: {said}")
    largest = max(device["peak_roles"].items(), key=lambda role: role[1])[0]
    check.expect(largest in said["What holds the allocated peak"], f"answers: what holds it: {said}")
    check.expect(max(bottom for _, _, bottom in cards) < 900, f"answers: on the first screen: {cards}")
    check.browser.run("document.querySelector('.answers a').click()")
    top = check.browser.run("return document.getElementById('findings').getBoundingClientRect().top")
    check.expect(0 <= top < 200, f"answers: the link leads to the findings, not to {top} px")


def same_place(count):
    """A snapshot in which one address holds `count` blocks, one after the other; the last allocation,
    which is the peak, is made 4.8829 s after the first."""
    trace, event = [], {"addr": 1 << 24, "stream": 0, "frames": []}
    small = [{"filename": "small.py", "name": "less_than_a_tenth_of_a_percent", "line": 1}]
    trace.append({**event, "action": "alloc", "addr": 1 << 29, "size": 8 << 10, "time_us": 1_000_000,
                  "frames": small})
    for i in range(count):
        last = i == count - 1
        at = {"time_us": 5_882_900 if last else 1_000_000 + 100 * i}
        trace.append({**event, **at, "action": "alloc", "size": 4 << 20})
        if not last:
            for action in ("free_requested", "free_completed"):
                trace.append({**event, **at, "action": action, "size": 4 << 20})
        if i == count - 2:
            trace.append({**event, **at, "action": "alloc", "addr": 1 << 28, "size": 8 << 20})
    return {"segments": [], "device_traces": [trace], "external_annotations": []}


def check_same_place(check):
    """What is found and not listed is said; the page and its pictures say the same instant."""
    trace = check.folder / "same_place.pickle"
    trace.write_bytes(pickle.dumps(same_place(150)))
    page = check.analyze(trace, "same_place")
    check_shares(check, page)
    found = check.browser.run("""
        const box = document.querySelector('#tools input');
        box.value = '0x1000000';
        box.dispatchEvent(new Event('input'));
        return [document.querySelector('.hits').textContent,
                document.querySelectorAll('.found button').length];""")
    check.expect(found[0].startswith("150 of") and "the first 100 are listed" in found[0] and
                 found[1] == 100, f"150 blocks at one address: {found}")
    when = check.browser.run("return document.querySelector('.when').textContent")
    label = check.browser.run("""return [...document.querySelectorAll('[data-chart=timeline] text')]
        .map((each) => each.textContent).find((text) => text.includes('t = '))""")
    check.expect("at 4.883 s" in when and "t = 4.883 s" in label,
                 f"the instant of the peak: {when}; in the picture: {label}")


def check_shares(check, page):
    """A share has the same digits with and without scripts."""
    still = re.search(r'<table class="live".*?</tbody>', page.read_text(), re.DOTALL).group(0)
    still = re.findall(r'<td class="number" data-v="(\d+)"[^>]*>([^<]*)</td><td class="number" '
                       r'data-v="\d+">([^<]*%)</td>', still)
    check.open(page)
    shown = check.browser.run("""return [...document.querySelectorAll('table.live tbody tr')]
        .map((row) => [row.cells[0].dataset.v, row.cells[1].textContent])""")
    wanted = {size: share for size, _, share in still}
    differ = [(size, share, wanted[size]) for size, share in shown
              if size in wanted and wanted[size] != share]
    check.expect(len(wanted) > 1 and not differ, f"shares: with and without scripts: {differ}")


def check_costs(check, page):
    """The cost of an advice is beside it, also where the words are short."""
    report = json.loads((page.parent / "report.json").read_text())
    costs = [finding["cost"] for device in report["devices"] for finding in device["findings"]
             if finding["cost"]]
    check.open(page)
    shown = check.browser.run("""return [...document.querySelectorAll('.finding .cost')]
        .map((each) => each.textContent)""")
    check.expect(costs and shown == costs, f"costs: {shown}, not {costs}")


def check_narrow(check, page):
    """On a telephone no line of the words lies below the button that copies them."""
    check.browser.devtools("Emulation.setDeviceMetricsOverride", width=420, height=900,
                           deviceScaleFactor=1, mobile=False)
    check.open(page)
    gap = check.browser.run("""const words = document.querySelector('.copies > pre');
        const range = document.createRange();
        range.selectNodeContents(words);
        return range.getBoundingClientRect().top -
            words.nextElementSibling.getBoundingClientRect().bottom;""")
    check.expect(gap >= 0, f"narrow: the words begin {gap} px below the button")
    check.browser.devtools("Emulation.clearDeviceMetricsOverride")


# Widths that stick out at 420 px: of the page, of the page if each paragraph held a long name, and
# of the tables within their frames.
WIDTHS = """
const page = document.documentElement, before = page.scrollWidth;
const tables = [...document.querySelectorAll('.scroll')]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.querySelector('table').id || each.querySelector('table').className);
for (const each of document.querySelectorAll('main p'))
  each.append('Model/'.repeat(40));
return [before, page.scrollWidth, tables];
"""


# Numbers that are on another line than their unit, in sentences.
BROKEN_QUANTITIES = """
let count = 0;
const broken = [], quantity = /[0-9][ \\u00a0](?:[KMGT]iB|B|%|ms|s)(?![a-zA-Z0-9_])/g;
for (const part of document.querySelectorAll('.verdict, .finding h3, .finding li, .answers dd')) {
  const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const found of texts.currentNode.data.matchAll(quantity)) {
      const range = document.createRange();
      count++;
      range.setStart(texts.currentNode, found.index);
      range.setEnd(texts.currentNode, found.index + found[0].length);
      const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
      if (lines.size > 1) broken.push(found.input.slice(found.index - 8, found.index + 8));
    }
  }
}
return [count, broken];
"""


def check_no_sideways(check, page):
    """On a telephone neither the page nor a table is wider than the screen."""
    def widen(width):
        check.browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900,
                               deviceScaleFactor=1, mobile=False)

    widen(420)
    check.open(page)
    before, after, tables = check.browser.run(WIDTHS)
    check.expect(before <= 420, f"{page.parent.name}: the page is {before} px wide at 420")
    check.expect(after <= 420, f"{page.parent.name}: {after} px wide at 420 with long names")
    check.expect(not tables, f"{page.parent.name}: tables wider than the screen: {tables}")
    check.open(page)  # without the long names
    for width in (*range(320, 760, 40), 420):  # the page is laid out again, not loaded
        widen(width)
        check.expect(check.browser.wait("innerWidth === given[0]", width), f"the window is {width} px wide")
        quantities, broken = check.browser.run(BROKEN_QUANTITIES)
        check.expect(quantities > 0, f"{page.parent.name}: no quantity was found in a sentence")
        check.expect(not broken, f"{page.parent.name}: at {width} px a line ends within {broken[:3]}")
    check.browser.devtools("Emulation.clearDeviceMetricsOverride")


def check_all(check):
    trace = CAPTURES / "gpt_split64.pickle.zst"
    page = check.analyze(trace, "gpt_split64", "--max-peak", "reserved=10GiB")
    check_brush(check, trace, page)
    check_sort(check, page)
    check_search(check, trace, page)
    check_zoom(check, page)
    check_links(check, page)
    check_costs(check, page)
    check_answers(check, page)
    check_same_place(check)
    check_shares(check, page)
    check_narrow(check, page)
    check_still(check, page)
    check_policy(check, page)
    for name in ("oom_adam", "twogpu", "churn_noframes", "leakval_ring"):
        other = check.analyze(CAPTURES / f"{name}.pickle.zst", name)
        check.expect(other.stat().st_size < MAX_BYTES, f"{name}: {other.stat().st_size} B")
        check.open(other)
        check.same_as_live(CAPTURES / f"{name}.pickle.zst", name)
        check.is_quiet(name)
        check_no_sideways(check, other)
    check_no_sideways(check, page)
    check_navigation(check, trace, page, 1)
    check_blocks(check, trace, page)
    check_navigation(check, CAPTURES / "twogpu.pickle.zst", check.folder / "twogpu/report.html", 2)
    check_no_history(check)
    check_deep(check)
    check_first_device(check)
    check_long_path(check)
    check_without_times(check)
    check_made_up(check, "hostile", HOSTILE, 600)
    check_made_up(check, "many", [f"function_{i}" for i in range(400)], 6000)


def main():
    driver.need()
    with tempfile.TemporaryDirectory(prefix="memtrace-report-") as folder, driver.Browser() as browser:
        check = Check(fast_program(sys.argv[1]), folder, browser)
        check_all(check)
    print("report.html: as it should be" if not check.failures else f"{len(check.failures)} failures")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
