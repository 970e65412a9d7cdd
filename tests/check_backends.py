#!/usr/bin/env python3
"""SVG and PNG of one chart show the same picture.

    check_backends.py MEMTRACE FIXTURES

Paints the rectangles and stepped areas of the SVG in their order and compares
the color at many points with the pixel of the PNG there, except for points under
text. Lines and rounded corners make a few differ. Exit 77: built without PNG.
"""

import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from png_file import read_png
from support.program import fast_program

SCALE = 2
POINTS = 4000
MAX_DIFFERENT = 0.03
CHARTS = [("timeline", "seq2seq"), ("timeline", "oom_adam"), ("timeline", "graph"),
          ("icicle", "seq2seq"), ("flamechart", "seq2seq")]


def outline(path):
    """Corners of a stepped, closed path; None for any other."""
    match = re.fullmatch(r"M([-\d.]+) ([-\d.]+)((?:[hv][-\d.]+)*)z", path)
    if not match:
        return None
    x, y = float(match[1]), float(match[2])
    corners = [(x, y)]
    for axis, length in re.findall(r"([hv])([-\d.]+)", match[3]):
        x, y = (x + float(length), y) if axis == "h" else (x, y + float(length))
        x, y = round(x, 1), round(y, 1)
        corners.append((x, y))
    return corners


def is_inside(corners, x, y):
    """Whether a ray to the left crosses the outline an odd number of times."""
    inside = False
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1]):
        if x0 == x1 and x0 < x and min(y0, y1) <= y < max(y0, y1):
            inside = not inside
    return inside


def shapes_of(svg):
    """(corners, color or None for a hatch) of all filled areas, in order."""
    light = svg.split("@media")[0]
    colors = {name: int(rgb, 16) for name, rgb in re.findall(r"\.(f\w+)\{fill:#(\w{6})\}", light)}
    body, shapes = svg[svg.index("</style>"):], []
    body = re.sub(r"<pattern.*?</pattern>", "", body, flags=re.S)
    for element in re.findall(r"<(?:rect|path)[^>]*>", body):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', element))
        fill = next((c for c in attributes["class"].split() if c in colors), None)
        if fill is None and "url(" not in attributes.get("fill", ""):
            continue
        if element.startswith("<rect"):
            x, y = float(attributes.get("x", 0)), float(attributes.get("y", 0))
            w, h = float(attributes["width"]), float(attributes["height"])
            corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]
        else:
            corners = outline(attributes["d"])
        if corners:
            shapes.append((corners, colors.get(fill)))
    return shapes


def texts_of(svg):
    """Generous boxes (left, top, right, bottom) around all text."""
    boxes = []
    for element, text in re.findall(r"(<text[^>]*>)([^<]*)</text>", svg):
        x, y, size = (float(re.search(rf' {name}="([-\d.]+)"', element)[1])
                      for name in ("x", "y", "font-size"))
        width = 0.75 * size * len(text) + 4
        left = x - width * (0.5 if re.search(r'[" ]m[" ]', element) else
                            1 if re.search(r'[" ]e[" ]', element) else 0) - 2
        if "rotate" in element:
            boxes.append((x - size, y - width, x + size, y + width))
        else:
            boxes.append((left, y - size - 2, left + width, y + 0.35 * size + 2))
    return boxes


def color_at(shapes, x, y):
    """Color that was painted last over a point; None where it is not plain."""
    color = None
    for corners, fill in shapes:
        if is_inside(corners, x, y):
            color = fill
    return color


def check(program, fixtures, chart, capture, folder):
    files = {kind: folder / f"{chart}.{kind}" for kind in ("svg", "png")}
    for file in files.values():
        subprocess.run([program, "render", chart, fixtures / "captures" / f"{capture}.pickle.zst",
                        "-o", file, "--quiet"], check=True)
    svg = files["svg"].read_text(encoding="utf-8")
    width, height, rows = read_png(files["png"])
    size = [float(v) for v in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()]
    assert (width, height) == tuple(round(SCALE * v) for v in size), "size"
    shapes, texts, chance = shapes_of(svg), texts_of(svg), random.Random(1)
    compared = different = 0
    while compared < POINTS:
        px, py = chance.randrange(width), chance.randrange(height)
        x, y = (px + 0.5) / SCALE, (py + 0.5) / SCALE
        color = color_at(shapes, x, y)
        if color is None or any(l <= x <= r and t <= y <= b for l, t, r, b in texts):
            continue
        pixel = int.from_bytes(rows[py][3 * px:3 * px + 3], "big")
        compared += 1
        different += pixel != color
    print(f"{chart} of {capture}: {different} of {compared} points differ")
    assert different <= MAX_DIFFERENT * compared, "the two back ends disagree"


def main():
    program, fixtures = fast_program(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        probe = subprocess.run([program, "render", "timeline", "/dev/null", "-o",
                                f"{folder}/probe.png"], capture_output=True, text=True)
        if "without cairo" in probe.stderr:
            sys.exit(77)
        for chart, capture in CHARTS:
            check(program, fixtures, chart, capture, Path(folder))


if __name__ == "__main__":
    main()
