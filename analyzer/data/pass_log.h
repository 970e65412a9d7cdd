/* What each pass of an analysis read and cost: for those who work on memtrace, not for answers. */
#ifndef MT_ANALYZER_PASS_LOG_H
#define MT_ANALYZER_PASS_LOG_H

#include <stdint.h>

#define MT_MAX_PASS_COSTS 48

/* Readings, events and time are its own: what a part with an entry of its own takes is counted
 * there alone. */
struct mt_pass_cost {
    const char *name;
    uint64_t readings, events; /* of the source, as mt_source counts them */
    uint64_t time_ns;
    uint64_t
        memory_bytes; /* what is left of it when it ends, as far as it is counted; 0 = not known */
};

/* In the order in which they began. */
struct mt_pass_log {
    struct mt_pass_cost costs[MT_MAX_PASS_COSTS];
    uint32_t count;
};

#endif
