#!/usr/bin/env python3
"""summary_decoder.py FILE: the summary of ranks (.mtsum) as JSON, as `memtrace info --json --all`
prints it.

A second implementation of docs/internals/rank-summary.md: its tables of fields are read from that page. It
needs Python and the command `zstd`, and trusts the file."""
import json
import pathlib
import re
import struct
import subprocess
import sys
import zlib

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "internals" / "rank-summary.md"
ROW = re.compile(r"^\| `([\w.]+)` \| (\w+) \|", re.MULTILINE)
LIST = re.compile(r"^`([\w.]+)`: ", re.MULTILINE)


def tables():
    """([(field, type)], {list: [(field, type)]}), in the order of the page."""
    page = PAGE.read_text(encoding="utf-8")
    fields, lists = page.split("### Fields of a record")[1].split("### Lists of a record")
    parts = LIST.split(lists.split("\n## ")[0])[1:]
    return ROW.findall(fields), {
        name: [(field[len(name) + 1:], kind) for field, kind in ROW.findall(text)]
        for name, text in zip(parts[::2], parts[1::2])}


class Payload:
    def __init__(self, data):
        self.data, self.at, self.texts = data, 0, []

    def take(self, length):
        if length > len(self.data) - self.at:
            raise ValueError("cut short")
        self.at += length
        return self.data[self.at - length:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def text(self):
        return self.texts[self.varint()]


def shown(kind, number):
    """As JSON has it."""
    if kind == "path":
        return number - 1 if number else None
    if kind == "bool":
        return bool(number)
    return number - (1 << 64) if kind in ("i64", "i32") and number >> 63 else number


def read_field(payload, kind):
    if kind == "text":
        return payload.text()
    return payload.signed() if kind in ("i64", "i32") else shown(kind, payload.varint())


def read_list(payload, fields):
    numbers, elements = {}, []
    for _ in range(payload.varint()):
        element = {}
        for name, kind in fields:
            if kind == "text":
                element[name] = payload.text()
            else:
                numbers[name] = (numbers.get(name, 0) + payload.signed()) % (1 << 64)
                element[name] = shown(kind, numbers[name])
        elements.append(element)
    return elements


def decompress(frame):
    return subprocess.run(["zstd", "-dcq"], input=frame, stdout=subprocess.PIPE, check=True).stdout


def decode(path):
    """{"records": [...], "paths": [...]}"""
    data = pathlib.Path(path).read_bytes()
    version, checksum, length = struct.unpack_from("<IIQ", data, 8)
    raw = decompress(data[24:])
    if data[:8] != b"MTSUM1\0\0" or version not in (2, 3) or len(raw) != length or zlib.crc32(raw) != checksum:
        raise ValueError("not a summary, or damaged")
    payload, (fields, lists) = Payload(raw), tables()
    payload.texts = [payload.take(payload.varint()).decode("utf-8", "replace")
                     for _ in range(payload.varint())]
    paths, parent = [], 0
    for _ in range(payload.varint()):
        parent += payload.signed()
        paths.append({"parent": shown("path", parent), "frame": payload.text()})
    records = []
    for _ in range(payload.varint()):
        # Records of version 2 lack the last field.
        record = {name: read_field(payload, kind) for name, kind in fields[:len(fields) + version - 3]}
        record.setdefault(fields[-1][0], 0)
        record.update((name, read_list(payload, elements)) for name, elements in lists.items())
        records.append(record)
    if payload.at != len(raw):
        raise ValueError("bytes follow the last record")
    return {"records": records, "paths": paths}


if __name__ == "__main__":
    json.dump(decode(sys.argv[1]), sys.stdout, indent=2)
