#!/usr/bin/env python3
"""check_layout.py PROGRAM [TRACE...]: no text of report.html crosses another, in fonts that are
wider than the one the charts were laid out in, at three widths, in light and dark. No text leaves
its chart or its card or is cut without an ellipsis, no number is cut at all, commands break between
words, the tables of what holds memory are in sight, and the page never scrolls sideways.
Without TRACE, it looks at fixtures. LAYOUT_SHOTS=DIR keeps a picture of each page. Without a
browser it is skipped, but not in CI."""
import os
import pathlib
import subprocess
import sys
import tempfile

import browser as driver
from support.program import fast_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = [ROOT / "fixtures" / name for name in (
    "captures/gpt_split64.pickle.zst", "captures/oom_adam.pickle.zst", "captures/twogpu.pickle.zst",
    "recorded/vllm.trace.zst")]
OPTIONS = ["--max-peak", "reserved=1GiB", "--max-growth", "64KiB/step"]
WIDTHS = (1400, 900, 420)
SCHEMES = ("light", "dark")
FONTS = ("DejaVu Sans", "DejaVu Sans Mono")  # wider than Inter, and much wider

# Texts as boxes in the window, cut by what clips them. What is stuck to the window or to a box
# while that scrolls covers other text on purpose, so it is put where it belongs.
MEASURE = r"""
const [font] = arguments;
const faults = [], texts = [];
const words = (text) => text.trim().replace(/\s+/g, ' ').slice(0, 60);
const say = (what) => { if (faults.length < 12) faults.push(what); };

/* A number that ends in an ellipsis reads as another number. */
for (const name of document.querySelectorAll('.cell:not([data-node]) .name')) {
  if (name.scrollWidth > name.clientWidth + 1) say(`the number "${words(name.textContent)}" is cut`);
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(`body, svg, button, select, input { font-family: "${font}" !important }
  .page-nav, thead th, tfoot td { position: static !important }
  .scroll { max-height: none !important }`);
document.adoptedStyleSheets = [sheet];
scrollTo(0, 0);
const edge = (box) => ({left: box.left, right: box.right, top: box.top, bottom: box.bottom});

/* Of a box that clips: what of `box` can be seen. */
function clipped(box, node) {
  const seen = edge(box);
  for (let at = node; at && at !== document.body; at = at.parentElement) {
    const style = getComputedStyle(at);
    if (style.overflowX === 'visible' && at.tagName !== 'svg') continue;
    const outer = at.getBoundingClientRect();
    seen.left = Math.max(seen.left, outer.left);
    seen.right = Math.min(seen.right, outer.right);
    seen.top = Math.max(seen.top, outer.top);
    seen.bottom = Math.min(seen.bottom, outer.bottom);
  }
  return seen;
}

/* Text that a box cuts at its edge: with an ellipsis, or where one may scroll, it can be read. */
function isCut(box, node) {
  for (let at = node; at && at !== document.body; at = at.parentElement) {
    const style = getComputedStyle(at);
    if (style.textOverflow === 'ellipsis' || /auto|scroll/.test(style.overflowX)) return false;
    if (style.overflowX !== 'hidden' && at.tagName !== 'svg') continue;
    const outer = at.getBoundingClientRect();
    if (box.right > outer.right + 1.5 || box.left < outer.left - 1.5) return true;
  }
  return false;
}

/* Letters are lower than their line: from the top of capitals to the base line. */
function letters(box) {
  const height = box.bottom - box.top;
  return {...edge(box), top: box.top + 0.22 * height, bottom: box.bottom - 0.24 * height};
}

const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  if (!node.data.trim() || parent.closest('script, style, title, desc, option, pre')) continue;
  if (!parent.checkVisibility({visibilityProperty: true})) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  const svg = parent.closest('svg');
  const boxes = svg ? [parent.getBoundingClientRect()] : range.getClientRects();
  for (const whole of boxes) {
    if (svg) {
      const outer = svg.getBoundingClientRect();
      if (whole.left < outer.left - 1 || whole.right > outer.right + 1 ||
          whole.top < outer.top - 2 || whole.bottom > outer.bottom + 2)
        say(`"${words(node.data)}" leaves its chart`);
    } else if (isCut(whole, parent)) {
      say(`"${words(node.data)}" is cut`);
    }
    const turned = svg && parent.hasAttribute('transform');
    const box = clipped(turned ? whole : letters(whole), parent);
    if (box.right - box.left > 1 && box.bottom - box.top > 1)
      texts.push({...box, node, text: words(node.data)});
  }
}

texts.sort((a, b) => a.top - b.top);
texts.forEach((a, i) => {
  for (let j = i + 1; j < texts.length && texts[j].top < a.bottom; j++) {
    const b = texts[j];
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (a.node !== b.node && width > 0.1 && height > 0.1)
      say(`"${a.text}" crosses "${b.text}" by ${width.toFixed(1)} x ${height.toFixed(1)}`);
  }
});

/* A card is a rounded rectangle with text in it, of a chart: its text ends in it. */
for (const card of document.querySelectorAll('svg rect[rx]')) {
  const outer = card.getBoundingClientRect();
  if (outer.height < 12) continue;
  for (const each of texts) {
    if (each.node.parentElement.ownerSVGElement !== card.ownerSVGElement) continue;
    const inside = each.left >= outer.left && each.left < outer.right &&
      each.top >= outer.top - 1 && each.bottom <= outer.bottom + 1;
    if (inside && each.right > outer.right + 1) say(`"${each.text}" leaves its card`);
  }
}

/* Texts of a timeline, which is a canvas: they are drawn again, and each is remembered. */
const timelines = typeof explorers !== 'undefined' ? explorers.map((each) => each.timeline)
  : typeof comparison !== 'undefined' && comparison ? comparison.timelines : [];
for (const timeline of timelines.filter(Boolean)) {
  const {plot, canvas} = (timeline.paint(), timeline), pen = canvas.getContext('2d'), drawn = [];
  pen.fillText = (text, x, y) => {
    const {width} = pen.measureText(text);
    const left = x - (pen.textAlign === 'center' ? width / 2 : pen.textAlign === 'right' ? width : 0);
    drawn.push({text, left, right: left + width, top: y - 8.5, bottom: y});
    CanvasRenderingContext2D.prototype.fillText.call(pen, text, x, y);
  };
  timeline.paint();
  delete pen.fillText;
  if (drawn.length < 5) say(`a timeline has ${drawn.length} texts`);
  drawn.forEach((a, i) => {
    const isInPlot = a.right > plot.x;
    if (a.left < -0.5 || a.right > canvas.clientWidth + 0.5 || a.top < 0 || a.bottom > canvas.clientHeight ||
        (isInPlot && (a.left < plot.x - 0.5 || a.right > plot.x + plot.width + 0.5)))
      say(`"${a.text}" of the timeline is cut`);
    for (const b of drawn.slice(i + 1)) {
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 0.1 && height > 0.1)
        say(`"${a.text}" of the timeline crosses "${b.text}" by ${width.toFixed(1)} x ${height.toFixed(1)}`);
    }
  });
}

for (const aside of document.querySelectorAll('.first > aside'))
  if (aside.checkVisibility() && !aside.innerText.trim()) say(`${aside.id} is an empty box`);

/* A word of a command is whole, except behind its marks and where it is wider than its box. */
for (const word of document.querySelectorAll('.word')) {
  const range = document.createRange();
  range.selectNodeContents(word);
  const pieces = [...word.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
  const tops = (node) => {
    range.selectNodeContents(node);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
  };
  for (const piece of pieces) {
    const isWide = piece.data.length * 7.6 > word.parentElement.parentElement.clientWidth - 60;
    if (tops(piece) > 1 && !isWide) say(`the word "${words(piece.data)}" is broken`);
  }
}
for (const code of document.querySelectorAll('.do code, .proof code, .when code, #rules code')) {
  if (!code.querySelector('.word')) say(`"${words(code.textContent)}" may break anywhere`);
}

/* A number and its unit are on one line. */
for (const cell of document.querySelectorAll('td.number')) {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
  if (lines > 1) say(`the number "${words(cell.textContent)}" takes ${lines} lines`);
}

/* What holds memory is in sight at any width. */
for (const cell of document.querySelectorAll('.live td, .live th, [id^="modules-"] td, [id^="modules-"] th')) {
  if (cell.getBoundingClientRect().right > innerWidth) say(`"${words(cell.textContent)}" is out of sight`);
}
if (document.documentElement.scrollWidth > innerWidth)
  say(`the page is ${document.documentElement.scrollWidth} px wide`);
document.adoptedStyleSheets = [];
return [faults, texts.length];
"""


def faults_of(browser, page, width, shots):
    """With the colors of each scheme and each font, in one load of the page."""
    browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900,
                     deviceScaleFactor=1, mobile=False)
    browser.open(page)
    browser.wait("[...document.querySelectorAll('.plot')].every((each) => each.dataset.view)")
    faults = []
    for scheme in SCHEMES:
        browser.devtools("Emulation.setEmulatedMedia", media="",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
        # The page draws again at the next frame.
        browser.run("window.frames_seen = 0; requestAnimationFrame(() => requestAnimationFrame(() => window.frames_seen = 2))")
        browser.wait("window.frames_seen === 2")
        for font in FONTS:
            found, count = browser.run(MEASURE, font)
            faults += [f"{scheme}, {font}: {fault}" for fault in found]
            if count < 10:
                faults.append("there is hardly any text")
        if shots:
            browser.page_screenshot(shots / f"{page.parent.name}-{width}-{scheme}.png")
    return faults


def check(program, traces, folder, shots):
    failures = 0
    with driver.Browser() as browser:
        for number, trace in enumerate(traces):
            page = pathlib.Path(folder) / f"{number}-{trace.name.split('.')[0]}" / "report.html"
            subprocess.run([program, "analyze", "-q", trace, "-o", page.parent, *OPTIONS],
                           stdout=subprocess.DEVNULL, check=False)
            for width in WIDTHS:
                for fault in faults_of(browser, page, width, shots):
                    print(f"FAILED: {trace.name} at {width} px, {fault}")
                    failures += 1
    return failures


def main():
    driver.need()
    traces = [pathlib.Path(name) for name in sys.argv[2:]] or FIXTURES
    shots = pathlib.Path(os.environ["LAYOUT_SHOTS"]) if "LAYOUT_SHOTS" in os.environ else None
    with tempfile.TemporaryDirectory(prefix="memtrace-layout-") as folder:
        failures = check(fast_program(sys.argv[1]), traces, folder, shots)
    print(f"{failures} faults of layout" if failures else
          f"no text crosses text, on {len(traces)} pages at {WIDTHS} px, light and dark")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
