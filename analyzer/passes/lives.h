/* Blocks of one device that outlive the step in which they were allocated: they exist when a later
 * step begins. Blocks from before the first step are excluded. This concerns the memory of the
 * program, not of the allocator: a block ends when the program frees it. Filled by the pass
 * `blocks` (live_blocks.h), at one comparison per block. */
#ifndef MT_ANALYZER_LIVES_H
#define MT_ANALYZER_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "report.h"
#include "status.h"

#define MT_LIVES_MAX (1u << 21) /* over all devices; more set too_many */

struct mt_life {
    uint64_t addr;
    uint64_t birth_event, end_event; /* UINT64_MAX: it exists at the end */
    uint64_t bytes, requested_bytes;
    uint32_t stack; /* MT_NO_ID = none recorded */
    uint32_t stream;
    uint32_t birth_step; /* index of a step */
    uint32_t end_step;   /* > birth_step; the number of steps if it stays */
    uint16_t heap, pool;
    uint8_t role; /* enum mt_role */
};

struct mt_lives {
    struct mt_life *lives; /* sorted by end */
    uint32_t count;
    uint64_t *begins; /* first event of each step */
    uint32_t step_count;
    bool too_many;
    /* PRIVATE: while lives are being added */
    uint32_t most, now; /* now: steps that have begun */
    size_t capacity;
};

/* The facts in the allocation event of a block: no end, no steps, no role. */
struct mt_life mt_life_of_event(const struct mt_event *event, uint64_t bytes);

/* Call it before the pass `blocks`, with the report's phases and the device's steps. Steps are
 * those of the device that the recorded history covers and that are consecutive; they have the
 * indices first_step, first_step + 1, ... of the device's steps. `most`: maximum number of
 * lives. */
void mt_lives_begin(struct mt_lives *lives, const struct mt_report *report,
                    const struct mt_device_report *device, uint32_t first_step, uint32_t most);

/* Whether a step began between the two events. Ends must come in the order of events. */
static inline bool mt_lives_outlived(struct mt_lives *lives, uint64_t birth_event,
                                     uint64_t end_event)
{
    while (lives->now < lives->step_count && lives->begins[lives->now] <= end_event)
        lives->now++;
    return lives->now && birth_event < lives->begins[lives->now - 1];
}

/* Records the end of a block for which mt_lives_outlived was true; looks up its steps. */
void mt_lives_add(struct mt_lives *lives, const struct mt_life *life);
void mt_lives_release(struct mt_lives *lives);

#endif
