/* Growable byte string with a sticky out-of-memory flag: write as much as you
 * like, look once at the end. Number formatting ignores the locale. */
#ifndef MT_BASE_BUF_H
#define MT_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory is an empty buffer. `data` is NUL-terminated whenever it is
 * not NULL (the NUL is not counted in `length`). */
struct mt_buf {
    char *data;
    size_t length, capacity;
    bool failed;   /* the host had no memory: contents are incomplete */
    bool is_fixed; /* `data` is the caller's, of `capacity` bytes: it never grows, is never freed */
};

void mt_buf_add(struct mt_buf *buf, const void *bytes, size_t length);
/* NULL stands for a text that could not be made without memory: it sets `failed`. */
void mt_buf_add_text(struct mt_buf *buf, const char *text);
void mt_buf_add_char(struct mt_buf *buf, char c);
/* A Unicode character, which is no surrogate and below 0x110000, as UTF-8. */
void mt_buf_add_utf8(struct mt_buf *buf, uint32_t c);

/* printf; only integers, strings and characters: '%f' obeys the locale. */
void mt_buf_printf(struct mt_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mt_buf_vprintf(struct mt_buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

void mt_buf_add_u64(struct mt_buf *buf, uint64_t value);
void mt_buf_add_i64(struct mt_buf *buf, int64_t value);

/* `value` with at most `digits` (0..6) decimals, rounded half away from zero,
 * trailing zeros dropped, '.' in every locale, never "-0". NaN and values
 * beyond 1e15 are written as 0: callers check first. */
void mt_buf_add_decimal(struct mt_buf *buf, double value, int digits);

/* Room for `length` more bytes; NULL if there is none. Write, then add what
 * you wrote to buf->length. */
char *mt_buf_reserve(struct mt_buf *buf, size_t length);

/* Empties the buffer and keeps its memory. `failed` stays: a caller that reuses
 * one buffer for many parts may look at it once, after the last part. */
void mt_buf_reset(struct mt_buf *buf);
/* Frees the memory; the buffer is as new, `failed` included. */
void mt_buf_release(struct mt_buf *buf);

#endif
