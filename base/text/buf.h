/* Growable byte string with a sticky out-of-memory flag: append freely and check the flag once at
 * the end. Number formatting ignores the locale. */
#ifndef MT_BASE_BUF_H
#define MT_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_arena;

/* Zeroed memory is an empty buffer. `data` is NUL-terminated whenever it is
 * not NULL (the NUL is not counted in `length`). */
struct mt_buf {
    char *data;
    size_t length, capacity;
    bool failed;   /* the host had no memory: the contents are incomplete */
    bool is_fixed; /* the caller owns `data` of `capacity` bytes: it never grows and is never freed
                    */
};

void mt_buf_add(struct mt_buf *buf, const void *bytes, size_t length);

/* Appends a NUL-terminated text. A NULL `text`, whose allocation failed, sets `failed`. */
void mt_buf_add_text(struct mt_buf *buf, const char *text);
void mt_buf_add_char(struct mt_buf *buf, char c);

void mt_buf_add_blanks(struct mt_buf *buf, size_t count);

/* Appends a Unicode character as UTF-8. It must be below 0x110000 and not a surrogate. */
void mt_buf_add_utf8(struct mt_buf *buf, uint32_t c);

/* Appends formatted text, as printf does. Do not use it for floating point: '%f' obeys the
 * locale. */
void mt_buf_printf(struct mt_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mt_buf_vprintf(struct mt_buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

void mt_buf_add_u64(struct mt_buf *buf, uint64_t value);
void mt_buf_add_i64(struct mt_buf *buf, int64_t value);

/* Appends `value` with at most `digits` (0..6) decimals, rounded half away from zero, without
 * trailing zeros, with '.' in every locale, and never as "-0". NaN and values beyond 1e15 are
 * written as 0, so check for them first. */
void mt_buf_add_decimal(struct mt_buf *buf, double value, int digits);

/* Returns room for `length` more bytes, or NULL if the host has no memory. Write there, then add
 * the number of bytes written to buf->length. */
char *mt_buf_reserve(struct mt_buf *buf, size_t length);

/* Empties the buffer and keeps its memory. `failed` stays set: a caller that reuses one buffer for
 * many parts can check it once, after the last part. */
void mt_buf_reset(struct mt_buf *buf);

/* Frees the memory and resets the buffer, including `failed`. */
void mt_buf_release(struct mt_buf *buf);

/* Returns the number of newlines. */
size_t mt_buf_count_lines(const struct mt_buf *buf);

/* Returns a copy of the contents, "" for an empty buffer, in the arena. Releases the buffer. */
const char *mt_buf_take(struct mt_buf *buf, struct mt_arena *arena);

/* Decimal numbers in texts of files and of the environment. */

/* Reads a text that consists of one or more digits only. Returns false if it is not a uint64_t;
 * *value is then undefined. */
bool mt_decimal_read(const char *text, size_t length, uint64_t *value);

/* Reads the digits at *at and moves *at past them. Returns false, with *at unchanged, if there is
 * no uint64_t. */
bool mt_decimal_take(const char **at, const char *end, uint64_t *value);

#endif
