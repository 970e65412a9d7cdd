/* Memory that stays allocated through a phase: blocks that exist before it begins and after it
 * ends, by role, and how many of these bytes nothing in the phase uses. Filled by the pass
 * `blocks`, for one instance of each name of the main phases: the one with the highest peak. Inside
 * of these instances, it costs one comparison per freed block. */
#ifndef MT_ANALYZER_IDLE_H
#define MT_ANALYZER_IDLE_H

#include "block_life.h"
#include "survey.h"

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
    uint32_t count, open_count;
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

#endif
