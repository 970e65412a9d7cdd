/* What each pass of an analysis read and cost: for developers of memtrace, not part of results. */
#ifndef MT_ANALYZER_PASS_LOG_H
#define MT_ANALYZER_PASS_LOG_H

#include <stdint.h>

#define MT_MAX_PASS_COSTS 48

/* The cost of one part of the analysis. Excludes nested parts that have entries of their own. */
struct mt_pass_cost {
    const char *name;
    uint64_t readings, events; /* of the source, as counted by mt_source */
    uint64_t time_ns;
    uint64_t memory_bytes; /* still allocated when it ends, as far as it is counted; 0 = unknown */
};

/* In order of their start. */
struct mt_pass_log {
    struct mt_pass_cost costs[MT_MAX_PASS_COSTS];
    uint32_t count;
};

#endif
