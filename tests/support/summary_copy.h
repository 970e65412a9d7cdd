/* mt_summary_decode spends its bytes; this leaves them as they are. */
#ifndef MT_TESTS_SUMMARY_COPY_H
#define MT_TESTS_SUMMARY_COPY_H

#include <stdlib.h>
#include <string.h>

#include "summary_file.h"

static inline enum mt_status decode_copy(const void *bytes, size_t length, struct mt_rank_set *set,
                                         struct mt_error *error)
{
    char *copy = malloc(length); /* without room after it, where sanitizers see a read */

    if (length)
        memcpy(copy, bytes, length);
    enum mt_status status = mt_summary_decode(copy, length, set, error);
    free(copy);
    return status;
}

#endif
