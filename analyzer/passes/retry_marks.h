/* Times at which an allocator emptied its cache and tried again: a list of bounded length. */
#ifndef MT_ANALYZER_RETRY_MARKS_H
#define MT_ANALYZER_RETRY_MARKS_H

#include <stdint.h>

#include "report.h"
#include "status.h"

#define MT_MAX_RETRY_MARKS 256

/* Zeroed at the start. */
struct mt_retry_marks {
    struct mt_retry_mark *marks; /* in order of time */
    uint32_t count;
    uint64_t retries; /* the sum of the marks */
};

/* Takes `retries` so far, after an event; in order. O(1) on average. A full list merges pairs of
 * marks: no retry is lost. */
void mt_retry_marks_add(struct mt_retry_marks *list, uint64_t t_ns, uint64_t event,
                        uint64_t retries);
void mt_retry_marks_release(struct mt_retry_marks *list);

#endif
