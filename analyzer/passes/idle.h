/* What stays allocated through a phase: the bytes of blocks that were there before
 * it began and are there after its end, by role, and how much of that nothing in the
 * phase uses. Followed by the pass `blocks`, for one instance of each name of the
 * main phases: the one with the highest peak. Costs nothing outside of those, within
 * a comparison for each block that ends. */
#ifndef MT_ANALYZER_IDLE_H
#define MT_ANALYZER_IDLE_H

#include "live_block.h"
#include "survey.h"

#define MT_IDLE_PHASES 32 /* names; the highest, of more */

/* Does nothing in such a phase use blocks of that role? A trace knows births and
 * ends, not uses; but the state of an optimizer is read by its step alone, gradients
 * by backward, zero_grad and that step, and activations by the model, the loss and
 * backward. Of everything else it is not known, and of phases of unknown kind. */
bool mt_role_is_idle_in(enum mt_role role, enum mt_phase_kind kind);

/* Of one device. */
struct mt_idle_watch {
    struct mt_idle_phase {
        int32_t phase;
        bool open, ended;
        uint64_t eve;   /* the last event before it */
        uint32_t kinds; /* bits: its own, and of what lies within */
        uint64_t bytes[MT_ROLE_COUNT];
        /* In a loss: activations that it may read, those that the model's last line
         * made (of that stack). */
        uint32_t output_stack;
        uint64_t output_bytes;
    } phases[MT_IDLE_PHASES]; /* in order of their begins */
    uint32_t count, open_count;
};

/* After the pass `run`; `is_main` is parallel to the phases. */
void mt_idle_choose(struct mt_idle_watch *watch, const struct mt_survey *survey,
                    const struct mt_survey_device *device, const bool *is_main);

/* In the pass `blocks`: a phase begins, when the device has these bytes by role and `blocks` holds,
 * among others, its live blocks; a phase ends; a block is no longer allocated. */
void mt_idle_begin(struct mt_idle_watch *watch, int32_t phase, uint16_t device,
                   const uint64_t role_bytes[MT_ROLE_COUNT], const struct mt_holder *blocks,
                   size_t block_count);
void mt_idle_end(struct mt_idle_watch *watch, int32_t phase);
void mt_idle_leave(struct mt_idle_watch *watch, const struct mt_holder *block);

/* Fills the device's rows. `saw_backward`: without training, roles say nothing about uses. */
enum mt_status mt_idle_fill(const struct mt_idle_watch *watch, struct mt_arena *arena,
                            bool saw_backward, struct mt_device_report *device) MT_MUST_USE;

#endif
