/* Little-endian integers, varints (LEB128) and zigzag: the encoding of numbers in the trace format
 * (docs/internals/trace-format.md, "Numbers"). Readers never read past the given end. */
#ifndef MT_TRACE_BYTES_H
#define MT_TRACE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_VARINT_MAX_BYTES = 10 };

static inline uint8_t *mt_put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static inline uint8_t *mt_put_u64(uint8_t *at, uint64_t value)
{
    return mt_put_u32(mt_put_u32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

static inline uint16_t mt_get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t mt_get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t mt_get_u64(const uint8_t *at)
{
    return mt_get_u32(at) | (uint64_t)mt_get_u32(at + 4) << 32;
}

/* Small differences of either sign become small numbers: 0 -1 1 -2 -> 0 1 2 3.
 * Works modulo 2^64. */
static inline uint64_t mt_zigzag(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t mt_unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

/* Writes a varint at `at`, where there must be room for MT_VARINT_MAX_BYTES. Returns its end. */
static inline uint8_t *mt_put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* A position in bytes from outside. `bad` is sticky: read freely and check it once at the end. */
struct mt_cursor {
    const uint8_t *at, *end;
    bool bad;
};

static inline size_t mt_cursor_left(const struct mt_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* Returns 0 and sets bad if the varint is truncated, longer than 10 bytes or beyond 64 bits. */
static inline uint64_t mt_cursor_varint(struct mt_cursor *cursor)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 70 && cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    cursor->bad = true;
    cursor->at = cursor->end;
    return 0;
}

/* A varint that must be <= limit; otherwise returns 0 and sets bad. */
static inline uint64_t mt_cursor_bounded(struct mt_cursor *cursor, uint64_t limit)
{
    uint64_t value = mt_cursor_varint(cursor);

    if (value <= limit)
        return value;
    cursor->bad = true;
    return 0;
}

/* Returns the next `length` bytes, or NULL and sets bad if there are fewer. */
static inline const uint8_t *mt_cursor_take(struct mt_cursor *cursor, uint64_t length)
{
    const uint8_t *bytes = cursor->at;

    if (length > mt_cursor_left(cursor)) {
        cursor->bad = true;
        cursor->at = cursor->end;
        return NULL;
    }
    cursor->at += length;
    return bytes;
}

/* CRC-32 (IEEE 802.3, as in zlib and PNG). */
uint32_t mt_crc32(const void *bytes, size_t length);

/* The checksum of bytes that follow those of `crc`; 0 for the first ones. */
uint32_t mt_crc32_add(uint32_t crc, const void *bytes, size_t length);

#endif
