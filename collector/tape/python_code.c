/* Line tables of code objects: see python_code.h. CPython describes them in
 * Objects/lnotab_notes.txt and Objects/locations.md. All of them start at the first line and follow
 * the order of the bytecode. */
#include "python_code.h"

enum { UNIT_BYTES = 2 };

struct cursor {
    const uint8_t *at, *end;
};

static uint32_t as_line(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* 3.9: pairs of (bytes of code, signed lines) to add before the next line begins. The last line
 * extends to the end. */
static uint32_t lnotab_line(struct cursor c, int64_t line, uint32_t offset)
{
    uint64_t begin = 0;

    for (; c.end - c.at >= 2; c.at += 2) {
        begin += c.at[0];
        if (begin > offset)
            break;
        line += (int8_t)c.at[1];
    }
    return as_line(line);
}

/* 3.10: pairs of (bytes of code, signed lines to add before them), -128 for
 * code without a line. */
static uint32_t pep626_line(struct cursor c, int64_t line, uint32_t offset)
{
    uint64_t end = 0;

    for (; c.end - c.at >= 2; c.at += 2) {
        int8_t delta = (int8_t)c.at[1];

        if (delta != INT8_MIN)
            line += delta;
        end += c.at[0];
        if (offset < end)
            return delta == INT8_MIN ? 0 : as_line(line);
    }
    return 0;
}

/* Six bits per byte, low ones first. Bit 6 means that more follow. */
static uint64_t read_varint(struct cursor *c)
{
    uint64_t value = 0;

    for (unsigned shift = 0; c->at < c->end; shift += 6) {
        uint8_t byte = *c->at++;

        if (shift < 64)
            value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

/* The sign is the lowest bit. */
static int64_t read_signed(struct cursor *c)
{
    uint64_t value = read_varint(c);
    int64_t size = (int64_t)(value >> 1 & INT32_MAX);

    return value & 1 ? -size : size;
}

/* 3.11: the first byte of an entry has bit 7 set, four bits of kind and three bits of length in
 * units of code less 1. Columns follow, which are skipped. */
static uint32_t pep657_line(struct cursor c, int64_t line, uint32_t offset)
{
    enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };
    uint64_t end = 0;

    while (c.at < c.end) {
        uint8_t first = *c.at++;
        unsigned kind = first >> 3 & 15;

        end += ((first & 7u) + 1u) * UNIT_BYTES;
        if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2)
            line += kind - ONE_LINE_0;
        else if (kind == NO_COLUMNS || kind == LONG)
            line += read_signed(&c);
        if (offset < end)
            return kind == NO_LOCATION ? 0 : as_line(line);
        while (c.at < c.end && !(*c.at & 128))
            c.at++;
    }
    return 0;
}

uint32_t mt_python_line(const struct mt_code_definition *code, const uint8_t *table,
                        uint32_t offset)
{
    struct cursor c = {table, table + code->table_bytes};

    if (code->python_version <= 0x0309)
        return lnotab_line(c, code->first_line, offset);
    if (code->python_version == 0x030a)
        return pep626_line(c, code->first_line, offset);
    return pep657_line(c, code->first_line, offset);
}
