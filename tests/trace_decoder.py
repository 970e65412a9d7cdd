#!/usr/bin/env python3
"""trace_decoder.py TRACE [--stacks]: the events of a memtrace trace as JSON
lines, as `memtrace dump --json` prints them.

A second implementation of docs/internals/trace-format.md, written from that page alone.
It needs Python and the command `zstd`, and trusts the file."""
import json
import struct
import subprocess
import sys
import zlib

KINDS = ("alloc free_requested free_completed segment_alloc segment_free segment_map segment_unmap oom "
         "alloc_failed phase_push phase_pop mark empty_cache context memory_sample dropped end "
         "communicator buffer_registered buffer_deregistered").split()
FLAGS = {1: "initial", 2: "expandable", 4: "size_derived", 8: "at_address", 16: "gap"}
(FORMS, FORM_INDEX, TIMES, ADDRESSES, ADDRESS_INDEX, BACK, SIZES, SIZE_INDEX, AUX_INDEX, STACKS,
 STACK_INDEX, NAMES, NAME_INDEX, SEQ_GAPS, PAYLOADS) = range(1, 16)


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, length):
        if length > self.left():
            raise ValueError("cut short")
        self.at += length
        return self.data[self.at - length:self.at]

    def varint(self):
        value = shift = 0
        for at in range(self.at, len(self.data)):
            byte = self.data[at]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                self.at = at + 1
                return value
        raise ValueError("cut short")

    def optional(self):
        value = self.varint()
        return value - 1 if value else None


def unzigzag(value):
    return value >> 1 ^ -(value & 1)


# ---- the file ---------------------------------------------------------------


def header_pairs(data):
    """The facts of the header, after its checks."""
    magic, length = struct.unpack_from("<II", data)
    payload = data[8:8 + length]
    if magic != 0x184D2A5D or payload[:8] != b"memtrace":
        raise ValueError("no memtrace trace")
    if struct.unpack("<I", payload[-4:])[0] != zlib.crc32(payload[:-4]):
        raise ValueError("header: checksum mismatch")
    if struct.unpack_from("<I", payload, 8)[0] != 1:
        raise ValueError("another version of the format")
    pairs, rest = {}, Bytes(payload[16:-4])
    for _ in range(struct.unpack_from("<I", payload, 12)[0]):
        lengths = struct.unpack("<II", rest.take(8))
        key, value = (rest.take(length).decode("utf-8", "replace") for length in lengths)
        pairs[key] = value
    if rest.left():
        raise ValueError("header: bytes behind the last pair")
    return pairs


def read_header(path):
    with open(path, "rb") as file:
        return header_pairs(file.read())


def unpack(path):
    """All blocks, one behind the other: zstd passes over skippable frames."""
    return subprocess.run(["zstd", "-dcq", "--", path], stdout=subprocess.PIPE, check=True).stdout


def raw_lengths(data):
    """Lengths of the blocks, from the seek table."""
    count, descriptor, magic = struct.unpack("<IBI", data[-9:])
    if magic != 0x8F92EAB1 or descriptor:
        raise ValueError("no seek table")
    entries = data[-9 - 8 * count:-9]
    return [raw for _, raw in struct.iter_unpack("<II", entries) if raw]


# ---- definitions ------------------------------------------------------------


class Symbols:
    def __init__(self):
        self.tables = {table: {} for table in range(1, 10)}
        self.known = {}  # texts of frames, which no block defines again

    def define(self, data):
        while data.left():
            table, first, count, length = (data.varint() for _ in range(4))
            entries = Bytes(data.take(length))
            if table not in self.tables:
                continue
            for own in range(first, first + count):
                entry = self.entry(table, own, entries)
                if table == 6:
                    self.tables[table][own] = entry
                else:
                    self.tables[table].setdefault(own, entry)

    @staticmethod
    def entry(table, own, data):
        if table == 1:
            return data.take(data.varint())
        if table == 2:
            return data.optional(), data.optional(), data.varint()
        if table == 3:
            up, frame = data.varint(), data.varint()
            return own - up if up else None, frame
        if table == 4:
            return data.varint()
        if table == 5:
            return [data.varint(), data.varint()]
        if table == 7:
            return data.optional()
        if table in (6, 8):
            return data.optional(), data.varint()
        place = [data.varint() for _ in range(4)]
        return *place, *(data.optional() for _ in range(3))

    def text(self, string):
        """As the program prints it: up to the first zero byte."""
        raw = self.tables[1][string].split(b"\0")[0]
        return raw.decode("utf-8", "replace")

    def frame_text(self, frame):
        if frame not in self.known:
            function, file, line = self.tables[2][frame]
            text = "" if function is None else self.text(function)
            self.known[frame] = text if file is None else f"{text} ({self.text(file)}:{line})"
        return self.known[frame]

    def stack_texts(self, stack):
        texts = []
        while stack is not None and len(texts) < 256:
            stack, frame = self.tables[3][stack]
            texts.append(self.frame_text(frame))
        return texts


# ---- columns ----------------------------------------------------------------


def planes(data, width):
    """Values of `width` bytes each, from planes that fill the column."""
    count = data.left() // width
    columns = [data.take(count) for _ in range(width)]
    return [int.from_bytes(parts, "little") for parts in zip(*columns)] if columns else [0] * count


def indexes(data, table_length):
    return iter(planes(data, 2 if table_length > 256 else 1))


def differences(data):
    if not data.left():
        return []
    count, shift, value, values = data.varint(), data.varint(), 0, []
    for _ in range(count):
        value = value + unzigzag(data.varint()) & 0xFFFFFFFFFFFFFFFF
        values.append(value << shift & 0xFFFFFFFFFFFFFFFF)
    return values


def varints(data):
    while data.left():
        yield data.varint()


def table_of_varints(data):
    return [data.varint() for _ in range(data.varint())] if data.left() else []


def times(data, count):
    unit, width = data.varint(), data.varint()
    values = planes(Bytes(data.take(count * width)), width)
    return [(data.varint() if value == 256 ** width - 1 else value) * unit for value in values]


def split_columns(data):
    columns = {column: Bytes(b"") for column in range(1, 16)}
    while data.left():
        column, length = data.varint(), data.varint()
        columns[column] = Bytes(data.take(length))
    return columns


def decode_events(columns, count, seq, t_ns):
    """Events as dictionaries with ids."""
    forms = [tuple(columns[FORMS].varint() for _ in range(8)) for _ in range(columns[FORMS].varint())]
    form_index = indexes(columns[FORM_INDEX], len(forms))
    addresses, sizes = differences(columns[ADDRESSES]), table_of_varints(columns[SIZES])
    stacks, names = differences(columns[STACKS]), differences(columns[NAMES])
    address_index = list(indexes(columns[ADDRESS_INDEX], len(addresses)))
    back = indexes(columns[BACK], len(address_index))
    address_index = iter(address_index)
    size_index, aux_index = indexes(columns[SIZE_INDEX], len(sizes)), indexes(columns[AUX_INDEX], len(sizes))
    stack_index, name_index = indexes(columns[STACK_INDEX], len(stacks)), indexes(columns[NAME_INDEX], len(names))
    gaps = varints(columns[SEQ_GAPS])
    places, place, last_stack = [], None, None
    for elapsed in times(columns[TIMES], count):
        kind, flags, fields, thread, device, heap, pool, stream = forms[next(form_index)]
        seq += next(gaps) if fields & 128 else 0
        t_ns += elapsed
        size = sizes[next(size_index)] if fields & 4 else 0
        address, how = 0, fields & 3
        if how == 1:
            address = addresses[next(address_index)]
            place = len(places)
            places.append((address, size))
        elif how:
            place = len(places) - 1 - next(back) if how == 2 else place
            address = places[place][0]
            size = size if fields & 4 else places[place][1]
        aux = sizes[next(aux_index)] if fields & 8 else 0
        if fields & 16:
            last_stack = stacks[next(stack_index)]
        yield {"seq": seq, "t_ns": t_ns, "kind": kind, "flags": flags, "thread": thread, "device": device,
               "heap": heap, "pool": pool, "stream": stream, "addr": address, "size": size, "aux": aux,
               "stack": last_stack if fields & 48 else None,
               "name": names[next(name_index)] if fields & 64 else None}
        seq += 1
    for column in (form_index, address_index, back, size_index, aux_index, stack_index, name_index, gaps):
        if next(column, None) is not None:
            raise ValueError("a column has values that nobody took")


def decode_block(block, symbols):
    if block[:4] != b"MTKB":
        raise ValueError("no block")
    version, header, seq, t_ns, count, definitions = struct.unpack_from("<HHQQII", block, 4)
    if version != 1:
        raise ValueError("another version of the format")
    symbols.define(Bytes(block[header:header + definitions]))
    if not count:
        return iter(())
    return decode_events(split_columns(Bytes(block[header + definitions:])), count, seq, t_ns)


# ---- as memtrace dump prints it ---------------------------------------------


def line(event, symbols, with_stacks):
    tables = symbols.tables
    heap_name = tables[7][event["heap"]]
    shown = {
        "seq": event["seq"], "t_ns": event["t_ns"], "kind": KINDS[event["kind"] - 1],
        "flags": [word for bit, word in FLAGS.items() if event["flags"] & bit],
        "device": event["device"], "stream": tables[4][event["stream"]], "thread": event["thread"],
        "heap": "?" if heap_name is None else symbols.text(heap_name), "pool": tables[5][event["pool"]],
        "addr": event["addr"], "size": event["size"], "aux": event["aux"],
        "name": None if event["name"] is None else symbols.text(event["name"]), "stack": event["stack"],
    }
    thread_name = tables[8][event["thread"]][0]
    if thread_name is not None:
        shown["thread_name"] = symbols.text(thread_name)
    if with_stacks:
        shown["frames"] = symbols.stack_texts(event["stack"])
    return shown


def decode(path):
    """(event, symbols) one after the other."""
    with open(path, "rb") as file:
        data = file.read()
    header_pairs(data)
    raw, symbols = Bytes(unpack(path)), Symbols()
    for length in raw_lengths(data):
        for event in decode_block(raw.take(length), symbols):
            if 1 <= event["kind"] <= len(KINDS):
                yield event, symbols
    if raw.left():
        raise ValueError("bytes behind the last block")


def main(arguments):
    with_stacks = "--stacks" in arguments
    (path,) = [word for word in arguments if word != "--stacks"]
    for event, symbols in decode(path):
        print(json.dumps(line(event, symbols, with_stacks), ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1:])
