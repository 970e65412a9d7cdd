"""PNG files as memtrace writes them: 8-bit RGB, rows without filters."""
import struct
import zlib


def read_png(path):
    """(width, height, rows of RGB bytes)."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 2), "8-bit RGB is expected"
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, stride = zlib.decompress(packed), 3 * width + 1
    assert len(raw) == stride * height
    rows = [raw[y * stride:(y + 1) * stride] for y in range(height)]
    assert all(row[0] == 0 for row in rows), "row filter NONE is expected"
    return width, height, [row[1:] for row in rows]
