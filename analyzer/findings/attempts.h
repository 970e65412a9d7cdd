/* Memory that a failed attempt leaves behind: blocks that the attempt allocated before a request
 * failed, and that still exist when the program returns to a place that the attempt had passed. A
 * program that catches an out-of-memory error and drops it has freed these blocks by then. A
 * program that keeps the exception also keeps the frames of its traceback, with their local
 * variables.
 *
 * An attempt begins with a step, or where the previous attempt failed. A place is a stack reduced
 * to the frames from its site inward. The program has returned to a place if it made more requests
 * from there, in the failed attempt and after it, than in the whole previous step. In the first
 * step, only places with one request in the attempt count, and the next request is the return. */
#ifndef MT_ANALYZER_ATTEMPTS_H
#define MT_ANALYZER_ATTEMPTS_H

#include "analysis.h"
#include "lives.h"

#define MT_MAX_ATTEMPTS 8 /* maximum number of failures */

struct mt_attempt {
    uint64_t oom_event, oom_t_ns;
    uint64_t again_event; /* event at which the program returned to the place; 0 = never */
    uint32_t again_stack;
    /* Blocks that were allocated after the first pass of that place, and exist when the program
     * returns. */
    struct mt_life *blocks; /* without their ends and steps */
    uint32_t count, stacks; /* number of blocks, and of their stacks */
    uint64_t bytes;
    /* Those of them that ended together, without a request between their ends. */
    uint64_t together_bytes, together_t_ns;
    uint64_t left_bytes; /* bytes of `blocks` that still exist at the end of the trace */
};

struct mt_attempts {
    struct mt_attempt attempts[MT_MAX_ATTEMPTS];
    uint32_t count;
};

/* Reads the source once, from its start to its end, for the failures of the device after which the
 * program continued. Release *attempts even after an error. */
enum mt_status mt_attempts_read(struct mt_analysis *analysis, const struct mt_device_report *device,
                                struct mt_attempts *attempts) MT_MUST_USE;
void mt_attempts_release(struct mt_attempts *attempts);

#endif
