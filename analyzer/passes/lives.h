/* What outlives the step that it was born in: the blocks of one device that are
 * there when a later step begins. What is born before the first step is left out.
 * The memory of the program is asked about here, not that of the allocator: a
 * block is gone when the program gave it back. Filled by the pass `blocks`
 * (holders.h), which costs a comparison a block. */
#ifndef MT_ANALYZER_LIVES_H
#define MT_ANALYZER_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "report.h"
#include "status.h"

#define MT_LIVES_MAX (1u << 21) /* of all devices; more are not kept: too_many */

struct mt_life {
    uint64_t addr;
    uint64_t birth_event, end_event; /* UINT64_MAX: it is there at the end */
    uint64_t bytes, requested_bytes;
    uint32_t stack; /* MT_NO_ID = none recorded */
    uint32_t stream;
    uint32_t birth_step; /* index of a step */
    uint32_t end_step;   /* in which it ends: > birth_step; the number of steps if it stays */
    uint16_t heap, pool;
    uint8_t role; /* enum mt_role */
};

struct mt_lives {
    struct mt_life *lives; /* in order of their ends */
    uint32_t count;
    uint64_t *begins; /* of the steps: first event of each */
    uint32_t step_count;
    bool too_many;
    /* PRIVATE: while they are filled */
    uint32_t most, now; /* now: steps that have begun */
    size_t capacity;
};

/* What its allocation says of a block: no end, no steps, no role. */
struct mt_life mt_life_of_event(const struct mt_event *event, uint64_t bytes);

/* Before the pass `blocks`, of the report's phases and the device's steps. Steps are those of the
 * device that the recorded history covers and that begin one after another; they have the indices
 * first_step, first_step + 1, ... of the device's steps. `most`: lives that are kept at most. */
enum mt_status mt_lives_begin(struct mt_lives *lives, const struct mt_report *report,
                              const struct mt_device_report *device, uint32_t first_step,
                              uint32_t most) MT_MUST_USE;

/* Did a step begin between the two events? Asked of ends in the order of events. */
static inline bool mt_lives_outlived(struct mt_lives *lives, uint64_t birth_event,
                                     uint64_t end_event)
{
    while (lives->now < lives->step_count && lives->begins[lives->now] <= end_event)
        lives->now++;
    return lives->now && birth_event < lives->begins[lives->now - 1];
}

/* Records the end of a block for which mt_lives_outlived was true; looks up its steps. */
enum mt_status mt_lives_add(struct mt_lives *lives, const struct mt_life *life) MT_MUST_USE;
void mt_lives_release(struct mt_lives *lives);

#endif
