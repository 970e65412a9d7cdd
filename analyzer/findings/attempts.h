/* What a failed attempt leaves behind: the blocks that were made before a request
 * failed, by the same attempt, and that are still there when the program is back at
 * a place which that attempt had passed. Whoever catches an out-of-memory error and
 * lets go of it is rid of them before that; who holds the exception holds the frames
 * of its traceback, and what their names stand for.
 *
 * An attempt begins with a step, or where the last one failed. The program is back if
 * requests of one place (the same frames from the site inwards) have come more often
 * than in the whole step before, together with the failed attempt's; in the first step,
 * twice where the attempt had one.
 */
#ifndef MT_ANALYZER_ATTEMPTS_H
#define MT_ANALYZER_ATTEMPTS_H

#include "analysis.h"
#include "lives.h"

#define MT_MAX_ATTEMPTS 8 /* failures that are looked at */

struct mt_attempt {
    uint64_t oom_event, oom_t_ns;
    uint64_t again_event; /* when the place was come back to; 0 = never */
    uint32_t again_stack;
    /* What was made since that place was passed and is still there when it is come back to. */
    struct mt_life *blocks; /* without their ends and steps */
    uint32_t count, stacks; /* how many, and from how many stacks */
    uint64_t bytes;
    /* Those that ended together: with no request between their ends. */
    uint64_t together_bytes, together_t_ns;
    uint64_t left_bytes; /* there at the end of the trace */
};

struct mt_attempts {
    struct mt_attempt attempts[MT_MAX_ATTEMPTS];
    uint32_t count;
};

/* Reads the source once, from its start to its end, for the failures of the device after which
 * the program went on. *attempts is to be released whatever is returned. */
enum mt_status mt_attempts_read(struct mt_analysis *analysis, const struct mt_device_report *device,
                                struct mt_attempts *attempts) MT_MUST_USE;
void mt_attempts_release(struct mt_attempts *attempts);

#endif
