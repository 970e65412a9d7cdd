/* The course of a run: the largest levels in equal parts of its time, from its first event to its
 * last, including pauses; and the requests of one step as one number. Ranks of a job can be
 * compared by it. */
#ifndef MT_ANALYZER_LEVEL_OVER_TIME_MODEL_H
#define MT_ANALYZER_LEVEL_OVER_TIME_MODEL_H

#include <stdint.h>

/* Part i of n starts at time begin + ceil(i * length / n) and ends at the next part. A part without
 * events has the last levels from before. */
struct mt_level_over_time_column {
    uint64_t allocated_bytes, reserved_bytes; /* the largest of each */
};

/* The reserved level from a moment until that of the next entry. */
struct mt_level_over_time_entry {
    uint64_t t_ns, reserved_bytes;
};
#define MT_LEVEL_OVER_TIME_ENTRIES 2048

struct mt_level_over_time {
    struct mt_level_over_time_column *columns;
    uint32_t column_count; /* 0: the run has no duration */
    uint64_t begin_t_ns, end_t_ns;
    /* Every change of the reserved level, the first one at begin_t_ns. A run with more than
     * MT_LEVEL_OVER_TIME_ENTRIES changes has none here. */
    struct mt_level_over_time_entry *levels;
    uint32_t level_count;
    /* FNV-1a, 64 bits, over the sizes that the program requested on the device in the last step
     * whose start and end are recorded, in order, 8 bytes each, lowest first. 0: there is no such
     * step, or it has no requests. */
    uint64_t step_hash;
};

#endif
