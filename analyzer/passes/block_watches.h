/* What the pass `blocks` also collects: blocks of segments at an instant, memory that is idle
 * through a phase, blocks that outlive their step. */
#ifndef MT_ANALYZER_BLOCK_WATCHES_H
#define MT_ANALYZER_BLOCK_WATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "holding.h"
#include "report_query.h"
#include "survey.h"

/* Blocks and their segments at one instant: the reason why free memory cannot be released to the
 * driver. A segment with a live block stays, and the free bytes in it are stranded. Wholly free
 * segments and the parts that expandable segments can unmap are not stranded. Both are excluded,
 * and so are private pools, whose memory has its own rules. Filled by the pass `blocks`
 * (live_blocks.h): segments until the instant, then the blocks.
 *
 * With `all`, nothing is excluded: the segments are all of the device, and the mapped ranges of
 * expandable ones. */

struct mt_pin_block {
    uint64_t addr, bytes;
    uint32_t stack;   /* MT_NO_ID = none recorded */
    uint32_t segment; /* number of its segment */
};

struct mt_pin_segment {
    uint64_t base, bytes; /* base first: sorted.h */
    uint64_t free_bytes;
    uint64_t served_bytes; /* the largest request that its pool serves, 0 = unknown */
    uint32_t stream;
    uint16_t pool;
};

/* Zeroed memory with `wanted` and `event` set is ready. */
struct mt_pins {
    bool wanted, all;
    uint64_t event;              /* the state after this event */
    struct mt_pin_block *blocks; /* live ones, ascending by address */
    uint32_t block_count;
    struct mt_pin_segment *segments; /* those with such a block, ascending */
    uint32_t segment_count;
    uint64_t stranded_bytes; /* the sum of free_bytes */
    /* PRIVATE */
    size_t block_capacity, segment_capacity;
};

/* Takes memory events of the device that do not concern a block, in order. */
void mt_pins_segment(struct mt_pins *pins, const struct mt_event *event);

/* At the instant: adds a block that is live or waits for streams; call settle after the last
 * one. */
void mt_pins_add(struct mt_pins *pins, uint64_t addr, uint64_t bytes, uint32_t stack);
void mt_pins_settle(struct mt_pins *pins);
void mt_pins_release(struct mt_pins *pins);

/* Memory that stays allocated through a phase: blocks that exist before it begins and after it
 * ends, by role, and how many of these bytes nothing in the phase uses. Filled by the pass
 * `blocks`, for one instance of each name of the main phases: the one with the highest peak. Inside
 * of these instances, it costs one comparison per freed block. */

#define MT_IDLE_PHASES 32 /* number of names; the highest ones if there are more */

/* Returns whether nothing in such a phase uses blocks of that role. A trace has allocations and
 * frees, not uses, so the answer follows from the roles: only the optimizer's step reads its state;
 * only backward, zero_grad and that step use gradients; only the model, the loss and backward use
 * activations. Returns false for all other roles, and for phases of unknown kind. */
bool mt_role_is_idle_in(enum mt_role role, enum mt_phase_kind kind);

/* Of one device. */
struct mt_idle_watch {
    struct mt_idle_phase {
        int32_t phase;
        bool open, ended;
        uint64_t eve;   /* the last event before it */
        uint32_t kinds; /* bits: its own kind, and those of nested phases */
        uint64_t bytes[MT_ROLE_COUNT];
        /* In a loss: activations that it may read, made by the model's last line (with that
         * stack). */
        uint32_t output_stack;
        uint64_t output_bytes;
    } phases[MT_IDLE_PHASES]; /* in order of their starts */
    uint32_t count, open_count, ended_count;
};

/* Call it after the pass `run`; `is_main` is parallel to the phases. */
void mt_idle_choose(struct mt_idle_watch *watch, const struct mt_survey *survey,
                    const struct mt_survey_device *device, const bool *is_main);

/* Call these in the pass `blocks`: mt_idle_begin when a phase begins, with the device's bytes by
 * role and with `blocks`, which includes the device's live blocks; mt_idle_end when a phase ends;
 * mt_idle_leave when a block is freed. */
void mt_idle_begin(struct mt_idle_watch *watch, int32_t phase, uint16_t device,
                   const uint64_t role_bytes[MT_ROLE_COUNT], const struct mt_block_life *blocks,
                   size_t block_count);
void mt_idle_end(struct mt_idle_watch *watch, int32_t phase);
void mt_idle_leave(struct mt_idle_watch *watch, const struct mt_block_life *block);

/* Fills the device's rows. `saw_backward`: without training, roles do not show uses. */
void mt_idle_fill(const struct mt_idle_watch *watch, struct mt_arena *arena, bool saw_backward,
                  struct mt_device_report *device);

/* Blocks of one device that outlive the step in which they were allocated: they exist when a later
 * step begins. Blocks from before the first step are excluded. This concerns the memory of the
 * program, not of the allocator: a block ends when the program frees it. Filled by the pass
 * `blocks` (live_blocks.h), at one comparison per block. */

#define MT_LIVES_MAX (1u << 21) /* over all devices; more set too_many */

/* Up to MT_LIVES_MAX are kept, so they are small: mt_lives_step finds their steps. */
struct mt_life {
    uint64_t addr;
    uint64_t birth_event, end_event; /* UINT64_MAX: it exists at the end */
    uint64_t bytes, requested_bytes;
    uint32_t stack; /* MT_NO_ID = none recorded */
    uint32_t stream;
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

/* Call it before the pass `blocks`, with the report's phases and the steps of mt_judged_steps.
 * `most`: maximum number of lives. */
void mt_lives_begin(struct mt_lives *lives, const struct mt_report *report,
                    struct mt_step_list steps, uint32_t most);

/* Whether a step began between the two events. Ends must come in the order of events. */
static inline bool mt_lives_outlived(struct mt_lives *lives, uint64_t birth_event,
                                     uint64_t end_event)
{
    while (lives->now < lives->step_count && lives->begins[lives->now] <= end_event)
        lives->now++;
    return lives->now && birth_event < lives->begins[lives->now - 1];
}

/* Records the end of a block for which mt_lives_outlived was true. */
void mt_lives_add(struct mt_lives *lives, const struct mt_life *life);

/* Returns the index of the step in which a life begins or ends, from that event: the number of
 * steps for UINT64_MAX. O(log steps). */
uint32_t mt_lives_step(const struct mt_lives *lives, uint64_t event);
void mt_lives_release(struct mt_lives *lives);

#endif
