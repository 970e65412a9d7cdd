/* The course of a run: the largest levels in equal parts of its time, from its first event to its
 * last, pauses included; and what one step requests, as one number. Ranks of a job are compared by
 * it (fleet/summary). */
#ifndef MT_ANALYZER_COURSE_MODEL_H
#define MT_ANALYZER_COURSE_MODEL_H

#include <stdint.h>

/* Part i of n is the time from begin + ceil(i * length / n) on, up to the next part. A part
 * without events holds the levels that last from before. */
struct mt_course_column {
    uint64_t allocated_bytes, reserved_bytes; /* the largest, each for itself */
};

/* The reserved level since a moment, up to the next one of the list. */
struct mt_course_level {
    uint64_t t_ns, reserved_bytes;
};
#define MT_COURSE_LEVELS 2048

struct mt_course {
    struct mt_course_column *columns;
    uint32_t column_count; /* 0: no time passes */
    uint64_t begin_t_ns, end_t_ns;
    /* Every change of the reserved level, the first one at begin_t_ns. A run with more than
     * MT_COURSE_LEVELS of them has none here. */
    struct mt_course_level *levels;
    uint32_t level_count;
    /* FNV-1a, 64 bits, over the sizes that the program requested on the device in the last step
     * that was recorded from its begin to its end, in order, 8 bytes each, the lowest first. 0:
     * there is no such step, or it requests nothing. */
    uint64_t step_hash;
};

#endif
