/* Result codes and the one error record that carries a place and a reason to
 * the person who has to act on it. Depends on nothing. */
#ifndef MT_BASE_STATUS_H
#define MT_BASE_STATUS_H

#include <stdint.h>

#if defined(__GNUC__)
#define MT_MUST_USE          __attribute__((warn_unused_result))
#define MT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MT_MUST_USE
#define MT_PRINTF(fmt, args)
#endif

/* 0 is success, negative values are errors, positive ones are not errors. */
enum mt_status {
    MT_OK = 0,
    MT_END = 1, /* iterators: nothing is left */

    MT_ERR_MEMORY = -1,      /* the host has no memory left for us */
    MT_ERR_IO = -2,          /* the operating system refused to read */
    MT_ERR_FORMAT = -3,      /* input is damaged, cut or not what it claims */
    MT_ERR_UNSUPPORTED = -4, /* input is sound, but we cannot handle it */
    MT_ERR_USAGE = -5,       /* an option or argument makes no sense */
    MT_ERR_OUTPUT = -6,      /* the operating system refused to write */
    MT_ERR_DEVICE_OOM = -7,  /* a simulated device ran out of memory */
    MT_ERR_INTERNAL = -8     /* the program is wrong: MT_CHECK (check.h) failed */
};

#define MT_NO_OFFSET UINT64_MAX

/* Filled where a human needs the reason. `text` is lower case, has no full
 * stop, and does not repeat the name of the file. */
struct mt_error {
    enum mt_status status;
    uint64_t offset; /* byte offset in the input, or MT_NO_OFFSET */
    char text[240];
};

/* Sets *error (may be NULL) and returns `status`, so that one can write
 * `return mt_fail(error, MT_ERR_FORMAT, at, "checksum mismatch")`. The first
 * error of an operation is the one to keep: call this once. */
enum mt_status mt_fail(struct mt_error *error, enum mt_status status, uint64_t offset,
                       const char *format, ...) MT_PRINTF(4, 5);

/* Short lower-case words for a code: "out of memory", "damaged input", ... */
const char *mt_status_text(enum mt_status status);

#endif
