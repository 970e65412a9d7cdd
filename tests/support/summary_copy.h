/* mt_summary_decode spends its bytes; this leaves them as they are. */
#ifndef MT_TESTS_SUMMARY_COPY_H
#define MT_TESTS_SUMMARY_COPY_H

#include "buf.h"
#include "summary_file.h"

static inline enum mt_status decode_copy(const void *bytes, size_t length, struct mt_rank_set *set,
                                         struct mt_error *error)
{
    struct mt_buf copy = {0};

    mt_buf_add(&copy, bytes, length);
    enum mt_status status = mt_summary_decode(copy.data, length, set, error);
    mt_buf_release(&copy);
    return status;
}

#endif
