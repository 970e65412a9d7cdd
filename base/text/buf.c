#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "buf.h"
#include "process_memory.h"
#include "util.h"

bool mt_decimal_take(const char **at, const char *end, uint64_t *value)
{
    const char *next = *at;

    *value = 0;
    for (; next < end && *next >= '0' && *next <= '9'; next++)
        if (!mt_mul_ok(*value, 10, value) || !mt_add_ok(*value, (uint64_t)(*next - '0'), value))
            return false;
    if (next == *at)
        return false;
    *at = next;
    return true;
}

bool mt_decimal_read(const char *text, size_t length, uint64_t *value)
{
    const char *at = text;

    return mt_decimal_take(&at, text + length, value) && at == text + length;
}

static char *no_memory(struct mt_buf *buf)
{
    mt_memory_failed();
    buf->failed = true;
    return NULL;
}

char *mt_buf_reserve(struct mt_buf *buf, size_t length)
{
    size_t capacity = buf->capacity ? buf->capacity : 256;

    if (buf->failed)
        return NULL;
    if (length >= SIZE_MAX / 2 - buf->length)
        return no_memory(buf);
    if (buf->data && buf->length + length < buf->capacity)
        return buf->data + buf->length;
    if (buf->is_fixed) {
        buf->failed = true;
        return NULL;
    }
    while (capacity <= buf->length + length)
        capacity *= 2;
    char *data = realloc(buf->data, capacity);
    if (!data)
        return no_memory(buf);
    buf->data = data;
    buf->capacity = capacity;
    return data + buf->length;
}

void mt_buf_add(struct mt_buf *buf, const void *bytes, size_t length)
{
    char *end = mt_buf_reserve(buf, length);

    if (!end)
        return;
    if (length)
        memcpy(end, bytes, length);
    end[length] = '\0';
    buf->length += length;
}

void mt_buf_add_text(struct mt_buf *buf, const char *text)
{
    if (text)
        mt_buf_add(buf, text, strlen(text));
    else
        buf->failed = true;
}

void mt_buf_add_char(struct mt_buf *buf, char c)
{
    char *end = mt_buf_reserve(buf, 1);

    if (!end)
        return;
    end[0] = c;
    end[1] = '\0';
    buf->length++;
}

void mt_buf_add_blanks(struct mt_buf *buf, size_t count)
{
    for (; count; count--)
        mt_buf_add_char(buf, ' ');
}

size_t mt_buf_count_lines(const struct mt_buf *buf)
{
    size_t lines = 0;

    for (size_t i = 0; i < buf->length; i++)
        lines += buf->data[i] == '\n';
    return lines;
}

void mt_buf_vprintf(struct mt_buf *buf, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *end =
        length < 0 ? no_memory(buf) : mt_buf_reserve(buf, (size_t)length); /* 2 GiB or more */
    if (end) {
        vsnprintf(end, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
}

void mt_buf_printf(struct mt_buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    mt_buf_vprintf(buf, format, args);
    va_end(args);
}

void mt_buf_add_u64(struct mt_buf *buf, uint64_t value)
{
    size_t length = 1;

    for (uint64_t rest = value; rest >= 10; rest /= 10)
        length++;
    char *end = mt_buf_reserve(buf, length);
    if (!end)
        return;
    buf->length += length;
    end[length] = '\0';
    for (; length; value /= 10)
        end[--length] = (char)('0' + value % 10);
}

void mt_buf_add_i64(struct mt_buf *buf, int64_t value)
{
    if (value < 0) {
        mt_buf_add_char(buf, '-');
        mt_buf_add_u64(buf, 0 - (uint64_t)value);
    } else {
        mt_buf_add_u64(buf, (uint64_t)value);
    }
}

void mt_buf_add_decimal(struct mt_buf *buf, double value, int digits)
{
    static const double scales[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
    bool negative = value < 0;
    double magnitude = negative ? -value : value;

    if (digits < 0 || digits > 6 || !(magnitude <= 1e12))
        digits = 0;
    if (!(magnitude <= 1e15))
        magnitude = 0;
    uint64_t scale = (uint64_t)scales[digits];
    uint64_t scaled = (uint64_t)(magnitude * scales[digits] + 0.5);
    if (negative && scaled)
        mt_buf_add_char(buf, '-');
    mt_buf_add_u64(buf, scaled / scale);
    scaled %= scale;
    if (!scaled)
        return;
    mt_buf_add_char(buf, '.');
    while (scaled) {
        scale /= 10;
        mt_buf_add_char(buf, (char)('0' + scaled / scale));
        scaled %= scale;
    }
}

void mt_buf_reset(struct mt_buf *buf)
{
    buf->length = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

void mt_buf_release(struct mt_buf *buf)
{
    if (!buf->is_fixed)
        free(buf->data);
    memset(buf, 0, sizeof *buf);
}

void mt_buf_add_utf8(struct mt_buf *buf, uint32_t c)
{
    char bytes[4];
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};

    for (size_t i = length; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3F));
    bytes[0] = (char)(leads[length] | c);
    mt_buf_add(buf, bytes, length);
}

const char *mt_buf_take(struct mt_buf *buf, struct mt_arena *arena)
{
    const char *text = mt_arena_text(arena, buf->data ? buf->data : "", buf->length);

    mt_buf_release(buf);
    return text;
}
