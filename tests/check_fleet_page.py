#!/usr/bin/env python3
"""check_fleet_page.py PROGRAM WRITE_JOB: the page of `memtrace fleet -o DIR` in a real browser.

A rank can be chosen by number, name, button, key and link, and what is shown then is what fleet.json
says; no request leaves, nothing complains, no text crosses another at three widths in light and dark,
all but single ranks is there without scripts, and whatever a name says, it stays text. Without a
browser: skipped, but not in CI."""
import json
import pickle
import re
import subprocess
import sys
import tempfile

import browser as driver
import check_layout
import check_report
from support.program import fast_program

BIG = ["waves=1", "logs=0", "talk=1", "leak=1023", "die=1022", "miss=100", "cut=5"]
VIEW = """
const fact = (name) => [...document.querySelectorAll('.rank-facts > div')]
  .filter((each) => each.firstChild.textContent === name).map((each) => each.lastChild)[0];
return {
  name: document.querySelector('#rank-view h3').textContent,
  why: (document.querySelector('#rank-view .why') || {}).textContent,
  reserved: fact('reserved peak').firstChild.title,
  ended: fact('ended').textContent,
  timelines: [...document.querySelectorAll('#rank-view .timeline strong')].map((each) => each.textContent),
  sites: [...document.querySelectorAll('#rank-sites tbody tr')].map((row) => row.cells[3].textContent),
  input: document.getElementById('rank-input').value,
  wrong: document.getElementById('rank-input').className,
  answer: document.querySelector('.picker-answer').textContent,
  pressed: [...document.querySelectorAll('[aria-pressed="true"]')].map((each) => each.textContent),
  readout: document.querySelector('#rank-view .hover').textContent,
  levels: shown.runs ? shown.runs.sides.map(({model}) => [model.columnCount, Math.max(...model.totals)]) : [],
  hash: location.hash,
};
"""


class Check(driver.Checks):
    def __init__(self, program, writer, folder, browser):
        super().__init__(program, folder, browser)
        self.writer = writer

    def fleet(self, name, *inputs):
        out = self.folder / name
        subprocess.run([self.program, "fleet", "-q", *inputs, "-o", out], check=True,
                       stdout=subprocess.DEVNULL)
        return out / "report.html"

    def job(self, name, *facts):
        folder = self.folder / f"{name}-job"
        folder.mkdir()
        subprocess.run([self.writer, *facts[:4], folder, *facts[4:]], check=True)
        return self.fleet(name, folder)

    def view(self):
        return self.browser.run(VIEW)

    def type(self, words):
        self.browser.run("""const input = document.getElementById('rank-input');
            input.value = arguments[0]; input.dispatchEvent(new Event('input'));""", words)
        return self.view()


def exact(view):
    return int(re.sub(r"\D", "", view["reserved"]))


def check_picker(check, page):
    peaks = {row["rank"]: row["reserved_peak_bytes"]
             for row in json.loads((page.parent / "fleet.json").read_text())["ranks"]}
    highest = {row["rank"]: row["allocated_peak_bytes"]
               for row in json.loads((page.parent / "fleet.json").read_text())["ranks"]}
    check.open(page)
    view = check.view()
    check.expect(view["name"] == "rank 1022" and "ran out of memory first" in view["why"],
                 f"the page begins with the first death, not {view['name']}")
    for rank in (0, 1, 5, 42, 512, 1022, 1023):
        view = check.type(str(rank))
        check.expect(view["name"] == f"rank {rank}", f"{rank} shows {view['name']}")
        check.expect(rank not in peaks or exact(view) == peaks[rank],
                     f"rank {rank} reserved {view['reserved']}")
        check.expect(view["timelines"] == [f"rank {rank}"], f"rank {rank} has {view['timelines']}")
        (columns, most), = view["levels"]
        check.expect(columns == 512 and (rank not in highest or abs(most - highest[rank]) <= highest[rank] / 1000),
                     f"rank {rank}: {columns} levels of up to {most} B")
        check.expect(view["hash"] == f"#rank={rank}", f"the address is {view['hash']}")
        check.expect(not view["wrong"] and not view["answer"], f"{rank} is found")
    view = check.type("100")
    check.expect("No rank 100 was read" in view["answer"] and view["wrong"] == "wrong",
                 f"a missing rank is said to be missing: {view['answer']}")
    border, other = check.browser.run("""return ['rank-input', 'other-input'].map((name) =>
        getComputedStyle(document.getElementById(name)).borderColor)""")
    check.expect(border != other, f"a missing rank is marked: {border}")
    check.expect(view["name"] == "rank 1023", "what was shown stays")
    check.expect(check.type("train-77.t")["name"] == "rank 77", "a part of a trace's name finds it")
    check.expect("No rank, host or trace" in check.type("]*(")["answer"], "no such name is said")
    check.type("7")
    check.browser.run("[...document.querySelectorAll('#picker .bar button')].at(-1).click()")
    check.expect(check.view()["name"] == "rank 8", "next")
    check.browser.run("[...document.querySelectorAll('#picker .bar button')].at(0).click()")
    check.expect(check.view()["name"] == "rank 7", "previous")
    check.browser.run("[...document.querySelectorAll('.notable button')].at(1).click()")
    view = check.view()
    check.expect(len(view["pressed"]) == 1 and view["pressed"][0].startswith(view["name"] + " "),
                 f"the button of {view['name']} is pressed: {view['pressed']}")
    check.browser.run("document.querySelector('#outlier-0 .to-rank').click()")
    check.expect(check.view()["name"] == "rank 1023", "a rank of a table leads to its course")
    check.is_quiet("picker")


def check_comparison(check, page):
    """A second rank is drawn over the first, and the roles of their peaks add up to the difference."""
    ranks = {row["rank"]: row for row in json.loads((page.parent / "fleet.json").read_text())["ranks"]}
    check.open(page)
    check.type("5")
    check.browser.run("""const input = document.getElementById('other-input');
        input.value = '1022'; input.dispatchEvent(new Event('input'));""")
    rows = check.browser.run("""return [...document.querySelectorAll('#rank-differences tbody tr')]
        .map((row) => [...row.cells].slice(0, 2).map((cell) => cell.firstChild.title))""")
    numbers = [[int(re.sub(r"\D", "", cell)) for cell in row] for row in rows]
    sums = [sum(row[side] for row in numbers[:-1]) for side in (0, 1)]
    check.expect(sums == numbers[-1], f"roles add up: {sums}, {numbers[-1]}")
    for side, rank in enumerate((5, 1022)):
        check.expect(rank not in ranks or numbers[-1][side] == ranks[rank]["allocated_peak_bytes"],
                     f"rank {rank}: {numbers[-1][side]} B at its peak")
    check.expect(check.view()["timelines"] == ["rank 5", "rank 1022"], "each rank has a timeline")
    state = check.browser.run("return location.hash")
    check.open(page, state)
    check.expect(check.view()["timelines"] == ["rank 5", "rank 1022"], f"{state} compares the same ranks")
    check.browser.run("""const shape = [...document.querySelectorAll('#chart-ranks title')]
        .find((title) => title.textContent.startsWith('rank 7:')).parentElement;
        shape.dispatchEvent(new MouseEvent('click', {bubbles: true}));""")
    check.expect(check.view()["name"] == "rank 7", "a click on a rank of the heat map shows it")
    check.is_quiet("comparison")
    check.open(page, "#rank=5&with=1022")
    check.type("1022")
    check.expect(check.browser.run("return document.getElementById('other-input').value") == "",
                 "a rank is not compared with itself")
    check.browser.run("""const input = document.getElementById('other-input');
        input.value = 'none'; input.dispatchEvent(new Event('input'));""")
    wrong = lambda: check.browser.run("return document.getElementById('other-input').className")
    check.expect(wrong() == "wrong", "no rank has this name")
    check.browser.run("document.querySelector('#picker button[data-row]').click()")
    check.expect(wrong() == "", "an empty field is not wrong")


PLOTS = """return [...document.querySelectorAll('#rank-view .plot')].map((plot) => ({
  left: plot.getBoundingClientRect().left, top: plot.getBoundingClientRect().top,
  area: plot.dataset.plot.split(' ').map(Number), view: plot.dataset.view.split(' ').map(Number),
  tip: plot.parentElement.querySelector('.tip').hidden ? '' : plot.parentElement.querySelector('.tip').textContent}))"""


def timelines(check):
    """What the timelines show, after they are drawn."""
    check.browser.wait("document.querySelector('#rank-view .plot[data-view]')")
    return check.browser.run(PLOTS)


def point_of(plot, across, down=0.6):
    x, y, width, height = plot["area"]
    return plot["left"] + x + across * width, plot["top"] + y + down * height


def check_timeline(check, page):
    """The timeline of a rank zooms, moves and shows levels at the pointer; two do so together."""
    check.open(page, "#rank=1022")
    check.browser.run("document.querySelector('#rank-view').scrollIntoView()")
    [plot] = timelines(check)
    whole = plot["view"]
    check.browser.move(point_of(plot, 0.5))
    [plot] = timelines(check)
    check.expect(re.search(r"step \d+.*allocated of [\d.]+ GiB reserved.*allocated", plot["tip"]),
                 f"the pointer shows the levels: {plot['tip']}")
    check.browser.wheel(point_of(plot, 0.5), -240)
    [plot] = timelines(check)
    near = plot["view"]
    check.expect(whole[0] < near[0] and near[1] < whole[1], f"the wheel zooms: {whole}, {near}")
    check.browser.drag(point_of(plot, 0.5), point_of(plot, 0.4))
    [plot] = timelines(check)
    check.expect(plot["view"][0] > near[0], f"a drag moves: {near}, {plot['view']}")
    check.browser.run("remember()")
    state = check.browser.run("return location.hash")
    check.open(page, state)
    check.expect(abs(timelines(check)[0]["view"][0] - plot["view"][0]) < 2, f"{state} shows the same part")
    check.open(page, "#rank=5&with=1022")
    check.browser.run("document.querySelector('#rank-view').scrollIntoView()")
    both = timelines(check)
    check.expect(both[0]["view"] == both[1]["view"], f"one axis: {[each['view'] for each in both]}")
    check.browser.wheel(point_of(both[0], 0.1), -240)
    check.browser.move(point_of(both[0], 0.2))
    both = timelines(check)
    check.expect(both[0]["view"] == both[1]["view"], f"both zoom: {[each['view'] for each in both]}")
    check.expect("from rank 5 to rank 1022 here" in both[1]["tip"], f"the difference: {both[1]['tip']}")
    check.is_quiet("timeline")


def check_keys(check, page):
    check.open(page)
    check.browser.keys("/", *"1023")
    view = check.view()
    check.expect(view["name"] == "rank 1023" and view["input"] == "1023", f"typed: {view['name']}")
    check.browser.keys("Up")
    check.expect(check.view()["name"] == "rank 1022", "an arrow in the box leads to the rank before")
    check.browser.run("document.querySelector('.plot').focus()")
    first = check.view()["readout"]
    check.browser.keys("Left")
    second = check.view()["readout"]
    check.expect(re.match(r"[\d.]+ m?s \u00b7 step \d+ \u00b7 allocated [\d.]+ GiB \u00b7 reserved [\d.]+ GiB$", first),
                 f"the readout says {first}")
    check.expect(first != second, "arrows move along the timeline")
    name = check.view()["name"]
    check.expect(name == "rank 1022", f"arrows of the course leave the rank: {name}")
    check.is_quiet("keys")


def check_links(check, page):
    check.open(page, "#rank=512&t=dark")
    view = check.view()
    check.expect(view["name"] == "rank 512", f"a link shows its rank, not {view['name']}")
    dark = check.browser.run("return getComputedStyle(document.body).backgroundColor")
    check.browser.run("document.querySelector('#tools button').click()")
    light = check.browser.run("return getComputedStyle(document.body).backgroundColor")
    check.expect(dark != light and "t=light" in check.view()["hash"], "light and dark")
    for wrong in ("#rank=99999999", "#rank=-1", "#row=x", "#row=1e9", "#rank=<b>&t=<script>", "#steps",
                  "#rank=100", "#="):
        check.open(page, wrong)
        check.expect(check.view()["name"], f"{wrong} is no harm")
    check.is_quiet("links")


def check_sort(check, page):
    check.open(page)
    column = """return [...document.querySelector('#rank-rows-0').tBodies[0].rows]
        .map((row) => Number(row.cells[3].dataset.v));"""
    before = check.browser.run(column)
    check.browser.run("document.querySelectorAll('#rank-rows-0 th button')[3].click()")
    check.browser.run("document.querySelectorAll('#rank-rows-0 th button')[3].click()")
    after = check.browser.run(column)
    check.expect(after == sorted(before) != before, "ranks sorted by their allocated peak")


def check_still(check, page):
    """Without scripts, and on paper."""
    check.browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    check.browser.open(page)
    for selector in ("#verdict", ".answers", "#axis-0 tbody tr", "#site-0 tbody tr", "#rank-rows-0 tbody tr",
                     "noscript p"):
        box = check.browser.rectangle(selector)
        check.expect(box["width"] > 100 and box["height"] > 10, f"{selector} without scripts: {box}")
    for figure in check.browser.elements("figure.chart svg"):
        check.expect(figure, "a chart without scripts")
    check.browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    check.browser.devtools("Emulation.setEmulatedMedia", media="print", features=[])
    check.open(page)
    check.browser.devtools("Emulation.setEmulatedMedia", media="", features=[])
    check.is_quiet("without scripts")


def check_layout_of(check, pages):
    for page in pages:
        for width in check_layout.WIDTHS:
            for fault in check_layout.faults_of(check.browser, page, width, None):
                check.expect(False, f"{page.parent.name} at {width} px: {fault}")
        check.browser.devtools("Emulation.clearDeviceMetricsOverride")
    check.is_quiet("layout")


def check_hostile(check):
    """Names of functions, files, traces and the job."""
    inputs = []
    for number, file in enumerate(("<img src=x onerror=window.hacked=1>.pickle", "'\"&lt;\x1b[31m.pickle")):
        path = check.folder / file
        path.write_bytes(pickle.dumps(check_report.made_up(check_report.HOSTILE, 400, number)))
        inputs.append(path)
    job = check.folder / "hostile-job"
    job.mkdir()
    name = "</script><script>window.hacked=1</script><b>"
    subprocess.run([check.writer, "1", "2", "1", "2", job, f"job={name}"], check=True)
    for page in (check.fleet("hostile", *inputs), check.fleet("hostile-name", job)):
        check.open(page)
        for _ in range(3):
            check.browser.run("[...document.querySelectorAll('#picker .bar button')].at(-1).click()")
        check.expect(check.view()["sites"] != [], "holders are listed")
        check.expect(check.browser.run("return window.hacked === undefined"), f"{page}: names are text")
        check.expect(check.browser.run("return document.querySelectorAll('img, b > b, iframe').length") == 0,
                     f"{page}: no element comes of a name")
        check.is_quiet("hostile names")
    title = check.browser.run("return document.querySelector('h1').textContent")
    check.expect(title == name, f"the job's name is shown as it is: {title}")


def check_gaps(check):
    """On the open page of 8 ranks, one is missing and one is cut."""
    before = check.view()["name"]
    view = check.type("3")
    check.expect("No rank 3 was read" in view["answer"] and view["name"] == before,
                 f"the missing rank of 8: {view['answer']}, {view['name']}")
    view = check.type("5")
    check.expect(view["name"] == "rank 5" and "cut" in view["ended"].lower(),
                 f"the cut rank of 8: {view['name']}, {view['ended']}")
    view = check.type("6")
    check.expect("cut" not in view["ended"].lower(), f"a whole rank of 8: {view['ended']}")
    chart = check.browser.run("return document.querySelector('figure.chart svg').textContent")
    check.expect("7 of 8" in chart and "Missing" in chart, "the first chart shows the missing rank")


def check_all(program, writer, folder, browser):
    check = Check(program, writer, folder, browser)
    page = check.job("big", "8", "16", "8", "8", *BIG)
    small = check.job("small", "2", "4", "1", "8", "logs=0", "miss=3", "cut=5")
    for each in (check_picker, check_comparison, check_timeline, check_keys, check_links, check_sort, check_still):
        each(check, page)
    check.open(small)
    check.expect("There is no curve" in check.browser.run("return document.querySelector('#rank-view .omitted').textContent"),
                 "a rank without columns says so")
    check_gaps(check)
    check_layout_of(check, (page, small))
    check_hostile(check)
    return check.failures


def main():
    driver.need()
    with tempfile.TemporaryDirectory(prefix="memtrace-fleet-page-") as folder, driver.Browser() as browser:
        failures = check_all(fast_program(sys.argv[1]), sys.argv[2], folder, browser)
    print(f"{len(failures)} faults" if failures else "the page of a job does what it says")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
