#!/usr/bin/env python3
"""bench_page.py PROGRAM [TRACE]: how fast report.html is in Chromium.

Without TRACE, a trace of about 10 million events is made first, which takes minutes and 3.5 GB of
memory. Prints the size of the page, the time from its navigation until the timeline is painted (best
of some loads), and the frames per second while a mouse moves the zoomed timeline. Chromium draws
without a graphics card, so an idle machine with one is faster."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import browser as driver  # noqa: E402

CAPTURE = HERE.parent.parent / "fixtures" / "captures" / "gpt_default.pickle.zst"
REPEATS = 372  # of 26,868 events
LOADS = 5
GOALS = "goals on two idle cores: 300 ms to the first paint, 30 frames per second, 1,000,000 bytes"

PAINTED = """
const done = arguments[arguments.length - 1];
const look = () => {
  const canvas = document.querySelector('.plot[data-view]');
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  const [page] = performance.getEntriesByType('navigation');
  if (canvas && paint) done([paint.startTime, performance.now(), page.domContentLoadedEventEnd]);
  else requestAnimationFrame(look);
};
look();
"""
# Moves a mouse over the plot once per frame, left and right, and counts the frames.
PANNED = """
const [frames, done] = arguments;
const canvas = document.querySelector('.plot'), box = canvas.getBoundingClientRect();
const move = (type, share) => canvas.dispatchEvent(new PointerEvent(type, {
  pointerId: 1, pointerType: 'mouse', button: 0, buttons: 1, bubbles: true, isPrimary: true,
  clientX: box.left + box.width * share, clientY: box.top + box.height / 3}));
canvas.setPointerCapture = () => {};
const views = new Set(), times = [], costs = [];
const {timeline} = explorers[0], paint = timeline.paint;
timeline.paint = () => {
  const begin = performance.now();
  paint.call(timeline);
  costs.push(performance.now() - begin);
};
const middle = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
move('pointerdown', 0.5);
const step = (now) => {
  times.push(now);
  views.add(canvas.dataset.view);
  if (times.length > frames) {
    move('pointerup', 0.5);
    const gaps = times.slice(1).map((time, at) => time - times[at]);
    done([1000 * frames / (times[frames] - times[0]), middle(gaps), middle(costs), costs[0], views.size]);
  } else {
    move('pointermove', 0.5 + 0.3 * Math.sin(times.length / 10));
    requestAnimationFrame(step);
  }
};
requestAnimationFrame(step);
"""
ZOOM = """
const plus = [...document.querySelectorAll('.timeline .chart-bar button')].find((each) => each.textContent === '+');
for (let i = 0; i < arguments[0]; i++) plus.click();
return document.querySelector('.plot').dataset.view;
"""


def make_trace(program, folder):
    snapshot, trace = folder / "large.pickle", folder / "large.trace"
    subprocess.run([sys.executable, HERE / "make_large.py", CAPTURE, str(REPEATS), snapshot], check=True)
    subprocess.run([program, "import", "--quiet", snapshot, "-o", trace], check=True)
    snapshot.unlink()
    return trace


def first_paint(browser, page):
    """Milliseconds to the first paint of the page, and to a painted timeline: the best of some loads."""
    loads = []
    for _ in range(LOADS):
        browser.open(page)
        loads.append(browser.ask("POST", "/execute/async", {"script": PAINTED, "args": []}))
    return [min(values) for values in zip(*loads)]


def processor_ms(browser, page):
    """Processor time of the page's thread until the timeline is painted, which other programs on the
    machine hardly change: scripts, styles, layout, and all of it."""
    browser.devtools("Performance.enable", timeDomain="threadTicks")
    loads = []
    for _ in range(LOADS):
        browser.open(page)
        browser.ask("POST", "/execute/async", {"script": PAINTED, "args": []})
        found = {each["name"]: 1000 * each["value"] for each in browser.devtools("Performance.getMetrics")["metrics"]}
        loads.append([found[name] for name in ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration",
                                               "TaskDuration")])
    return min(loads, key=lambda load: load[-1])


def pan(browser, page, halves):
    """Frames per second at a view of 1/2^halves of the whole."""
    browser.open(page)
    browser.wait("document.querySelector('.plot[data-view]')")
    browser.run(ZOOM, halves)
    return browser.ask("POST", "/execute/async", {"script": PANNED, "args": [120]})


def main(program, trace):
    driver.need()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        trace = pathlib.Path(trace) if trace else make_trace(program, folder)
        begin = time.monotonic()
        subprocess.run([program, "analyze", "-q", trace, "-o", folder / "out"], stdout=subprocess.DEVNULL,
                       check=False)
        page = folder / "out" / "report.html"
        print(f"analyze: {time.monotonic() - begin:.1f} s; page: {page.stat().st_size:,} bytes")
        with driver.Browser() as browser:
            paint, timeline, parsed = first_paint(browser, page)
            print(f"first paint: {paint:.0f} ms; script done: {parsed:.0f} ms; timeline painted: {timeline:.0f} ms")
            script, style, layout, task = processor_ms(browser, page)
            print(f"processor time of the page's thread: {task:.0f} ms: scripts {script:.0f} ms, "
                  f"styles {style:.0f} ms, layout {layout:.0f} ms")
            for halves in (1, 3, 6):
                rate, median, cost, least, views = pan(browser, page, halves)
                print(f"panning 1/{2 ** halves} of it: {rate:.0f} frames per second, median {median:.1f} ms; "
                      f"script of a drawing: median {cost:.1f} ms, least {least:.1f} ms; {views} views")
        print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; {GOALS}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
