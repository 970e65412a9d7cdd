"""Reads messages of protocol buffers without their definitions: protobuf.dev/programming-guides/encoding."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a message; a value is a number or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, key
        yield key >> 3, value
    assert at == len(data)


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def message(data):
    """Number of each field: its values."""
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def one(found, number, default=0):
    """The only value of a field."""
    values = found.get(number, [default])
    assert len(values) == 1, (number, values)
    return values[0]
