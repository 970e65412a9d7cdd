/* Result codes, and an error record with the place and the reason for a person to act on. Depends
 * on nothing. */
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

/* 0 is success, negative values are errors, positive values are not errors. */
enum mt_status {
    MT_OK = 0,
    MT_END = 1, /* iterators: no more items */

    MT_ERR_MEMORY = -1,      /* the host has no memory left */
    MT_ERR_IO = -2,          /* the operating system refused to read */
    MT_ERR_FORMAT = -3,      /* the input is damaged, truncated or not what it claims to be */
    MT_ERR_UNSUPPORTED = -4, /* the input is valid, but not supported */
    MT_ERR_USAGE = -5,       /* an option or argument makes no sense */
    MT_ERR_OUTPUT = -6,      /* the operating system refused to write */
    MT_ERR_DEVICE_OOM = -7,  /* a simulated device ran out of memory */
    MT_ERR_INTERNAL = -8     /* a bug: MT_CHECK (check.h) failed */
};

#define MT_NO_OFFSET UINT64_MAX

/* Filled where a person needs the reason. `text` is lower case, without a period, and does not
 * repeat the name of the file. */
struct mt_error {
    enum mt_status status;
    uint64_t offset; /* byte offset in the input, or MT_NO_OFFSET */
    char text[240];
};

/* Sets *error (may be NULL) and returns `status`, for `return mt_fail(error, MT_ERR_FORMAT, at,
 * "checksum mismatch")`. Call it once per operation: the first error is the one to keep. */
enum mt_status mt_fail(struct mt_error *error, enum mt_status status, uint64_t offset,
                       const char *format, ...) MT_PRINTF(4, 5);

/* mt_fail without an offset, with mt_status_text as the reason. */
enum mt_status mt_fail_status(struct mt_error *error, enum mt_status status);

static inline enum mt_status mt_fail_memory(struct mt_error *error)
{
    return mt_fail_status(error, MT_ERR_MEMORY);
}

/* Returns short lower-case words for a code: "out of memory", "damaged input", ... */
const char *mt_status_text(enum mt_status status);

#endif
