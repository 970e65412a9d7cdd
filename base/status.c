#include "status.h"

#include <stdarg.h>
#include <stdio.h>

enum mt_status mt_fail(struct mt_error *error, enum mt_status status, uint64_t offset,
                       const char *format, ...)
{
    if (error) {
        va_list args;
        error->status = status;
        error->offset = offset;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

enum mt_status mt_fail_status(struct mt_error *error, enum mt_status status)
{
    return mt_fail(error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
}

const char *mt_status_text(enum mt_status status)
{
    switch (status) {
    case MT_OK: return "ok";
    case MT_END: return "end of input";
    case MT_ERR_MEMORY: return "out of memory";
    case MT_ERR_IO: return "cannot read";
    case MT_ERR_FORMAT: return "damaged input";
    case MT_ERR_UNSUPPORTED: return "not supported";
    case MT_ERR_USAGE: return "wrong usage";
    case MT_ERR_OUTPUT: return "cannot write";
    case MT_ERR_DEVICE_OOM: return "device out of memory";
    case MT_ERR_INTERNAL: return "internal error";
    }
    return "unknown status";
}
