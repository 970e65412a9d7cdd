/* Finds entries that must have been in a history but are missing: PyTorch skipped them
 * (skip_actions, 2.11 and later), or they were removed from the file. */
#ifndef MT_COLLECTOR_TORCH_MISSING_H
#define MT_COLLECTOR_TORCH_MISSING_H

#include "torch.h"

/* Adds to torch->missing the number of missing entries of each kind in a device's history. The
 * numbers are lower bounds: with that many entries, the history agrees with its blocks, its
 * segments and the state at the end. Missing entries of kinds that leave no trace (oom) are not
 * found. Costs a pass over the kinds of all entries, and over the whole history if the state at
 * its start had to be reconstructed. `starts_empty`: that state has no block. */
enum mt_status mt_torch_find_missing(struct mt_torch *torch, uint32_t device,
                                     bool starts_empty) MT_MUST_USE;

/* Returns the kind of entry that ends a block's life: MT_EVENT_FREE_COMPLETED, or
 * MT_EVENT_FREE_REQUESTED in a history that has only these because all completed frees were
 * skipped. Looks at the kinds of all entries. */
uint8_t mt_torch_end_kind(const struct mt_torch *torch, uint32_t device);

/* Returns the next event that counts missing entries, false after the last. They follow all other
 * events. */
bool mt_torch_next_missing(struct mt_torch *torch, struct mt_event *event);

/* Names those events. Call it after all devices. */
enum mt_status mt_torch_name_missing(struct mt_torch *torch) MT_MUST_USE;

#endif
