/* Counts the entries that are missing in a history, because PyTorch skipped them (skip_actions,
 * 2.11 and later) or because they were removed from the file. */
#ifndef MT_COLLECTOR_TORCH_EVENTS_H
#define MT_COLLECTOR_TORCH_EVENTS_H

#include "torch.h"

/* Adds to torch->missing the number of missing entries of each kind in a device's history. The
 * numbers are lower bounds: the smallest with which the history agrees with its blocks, its
 * segments and the state at the end. Missing entries of kinds that do not change this state (oom)
 * are not counted. Reads the kinds of all entries, and the whole history if the state at its start
 * was reconstructed. `starts_empty`: no block is alive at the start. */
enum mt_status mt_torch_find_missing(struct mt_torch *torch, uint32_t device,
                                     bool starts_empty) MT_MUST_USE;

/* Decides which kinds of frees PyTorch recorded, on all devices alike, and sets them in the header.
 * `of_kind`: the number of entries of each kind on all devices. If the history has only requested
 * frees, completed ones were skipped, unless all blocks with a requested free still wait at the
 * end. If it has only completed frees, requested ones were skipped, unless each is the oldest entry
 * of its device. */
enum mt_status mt_torch_find_frees(struct mt_torch *torch, const size_t *of_kind) MT_MUST_USE;

/* Return whether requested frees were recorded, and the kind of entry that ends a block:
 * MT_EVENT_FREE_COMPLETED, or MT_EVENT_FREE_REQUESTED if completed frees were skipped. Call them
 * after mt_torch_find_frees. They read the kinds of all entries of the host. */
bool mt_torch_frees_are_requested(const struct mt_torch *torch, uint32_t device);
uint8_t mt_torch_end_kind(const struct mt_torch *torch, uint32_t device);

/* Creates the names of these events. Call it after mt_torch_find_missing for all devices. */
enum mt_status mt_torch_name_missing(struct mt_torch *torch) MT_MUST_USE;

#endif
