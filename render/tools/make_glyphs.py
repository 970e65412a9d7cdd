#!/usr/bin/env python3
"""Writes render/glyphs.txt: outlines and advance widths of the text in pictures.

A maintainer's tool, not a build step: its output is committed, so that every
machine draws the same letters. Needs fontTools and the static OpenType files
of Inter (Debian: fonts-inter).

    python3 render/tools/make_glyphs.py /usr/share/fonts/opentype/inter render/glyphs.txt
"""

import sys

from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTFont

WEIGHTS = [("regular", "Inter-Regular.otf"), ("semibold", "Inter-SemiBold.otf")]
EXTRA = "–—‘’“”„•…‹›←↑→↓−≈≠≤≥Δ"
CHARACTERS = sorted(set(range(0x20, 0x7F)) | set(range(0xA1, 0xAD)) | set(range(0xAE, 0x100))
                    | {ord(c) for c in EXTRA})
MOVE, LINE, CURVE = 0, 1, 2


def outline(glyphs, name):
    """Flat list of numbers: operation, then the points that it takes."""
    pen = DecomposingRecordingPen(glyphs)
    glyphs[name].draw(pen)
    numbers = []
    for operation, points in pen.value:
        flat = [round(v) for point in points for v in point]
        if operation == "moveTo":
            numbers += [MOVE] + flat
        elif operation == "lineTo":
            numbers += [LINE] + flat
        elif operation == "curveTo":
            assert len(flat) == 6, "only cubic curves are expected"
            numbers += [CURVE] + flat
        else:
            assert operation in ("closePath", "endPath"), operation
    return numbers


def table(path):
    font = TTFont(path)
    glyphs, names = font.getGlyphSet(), font.getBestCmap()
    entries = []
    for character in CHARACTERS:
        name = names[character]
        entries.append((character, round(glyphs[name].width), outline(glyphs, name)))
    return font["head"].unitsPerEm, entries


def main():
    folder, target = sys.argv[1:3]
    out = ["# Outlines and advance widths of the text in pictures, from Inter (SIL Open Font License, see",
           "# glyphs.OFL.txt). Written by tools/make_glyphs.py; the build makes a table of C from it",
           "# (cmake/glyphs.cmake). Do not edit. A line: weight, character, advance, outline."]
    for weight, file in WEIGHTS:
        em, entries = table(f"{folder}/{file}")
        for character, advance, shape in entries:
            assert em == 2816 and all(-32768 <= n <= 32767 for n in shape), em
            out.append(" ".join(map(str, [weight, character, advance, *shape])))
    with open(target, "w", encoding="ascii") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
