/* Entries that a history must have had and does not have: PyTorch left them out (skip_actions, 2.11
 * and later), or somebody took them out. */
#ifndef MT_COLLECTOR_TORCH_MISSING_H
#define MT_COLLECTOR_TORCH_MISSING_H

#include "torch.h"

/* Adds to torch->missing how many entries of each kind a device's history lacks. The numbers are
 * lower bounds: with that many entries, its blocks, its segments and the state at the end agree.
 * Missing entries of kinds that leave no trace (oom) are not found. Costs a look at the kinds of
 * all entries, and a walk over the history if the state at its start had to be rebuilt;
 * `starts_empty`: no block was in it. */
enum mt_status mt_torch_find_missing(struct mt_torch *torch, uint32_t device,
                                     bool starts_empty) MT_MUST_USE;

/* Which entries end a block's life: MT_EVENT_FREE_COMPLETED, or MT_EVENT_FREE_REQUESTED in a
 * history that has these alone, since all completed frees were left out. Looks at the kinds of all
 * entries.
 */
uint8_t mt_torch_end_kind(const struct mt_torch *torch, uint32_t device);

/* The next event that counts missing entries, false if there is none left. They come last. */
bool mt_torch_next_missing(struct mt_torch *torch, struct mt_event *event);

/* Names those events: after all devices. */
enum mt_status mt_torch_name_missing(struct mt_torch *torch) MT_MUST_USE;

#endif
