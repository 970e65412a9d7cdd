#!/usr/bin/env python3
"""Corpora of fuzz targets: one file a target in the tree, a folder of inputs for
libFuzzer.

    corpus.py unpack FILE.corpus FOLDER    one input a file, named by its hash
    corpus.py pack FOLDER FILE.corpus [BYTES]
                                           the smallest inputs, BYTES at most

A .corpus file has the inputs one after another, each behind its length as four
bytes, little-endian."""
import hashlib
import pathlib
import struct
import sys
import zipfile


def read_packed(path):
    data = pathlib.Path(path).read_bytes()
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        yield data[at + 4:at + 4 + length]
        at += 4 + length


def name_of(data):
    return hashlib.sha1(data).hexdigest()


def unpack(packed, folder):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for data in read_packed(packed):
        (pathlib.Path(folder) / name_of(data)).write_bytes(data)


def pack(folder, packed, most_bytes="65536"):
    inputs = sorted((path.read_bytes() for path in pathlib.Path(folder).iterdir()),
                    key=lambda data: (len(data), data))
    out = bytearray()
    for data in inputs:
        if len(out) + 4 + len(data) > int(most_bytes):
            break
        out += struct.pack("<I", len(data)) + data
    pathlib.Path(packed).write_bytes(out)


def make_zip(packed, inputs):
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted({name_of(data): data for data in inputs}.items()):
            archive.writestr(name, data)


def main():
    commands = {"unpack": unpack, "pack": pack}
    if len(sys.argv) < 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
