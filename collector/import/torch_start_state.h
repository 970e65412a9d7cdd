/* The state at the start of an incomplete history during its reconstruction: torch_start.c finds
 * the blocks, torch_sizes.c their sizes. */
#ifndef MT_COLLECTOR_TORCH_START_STATE_H
#define MT_COLLECTOR_TORCH_START_STATE_H

#include "torch.h"

/* Both structures begin with the address, because torch_sizes.c searches them by address. */
struct mt_start_block {
    uint64_t addr, requested_bytes, size_bytes; /* addr first: sorted.h; size 0: not known yet */
    uint32_t stack, stream;
    uint16_t pool;
    bool pending, freed, expandable, derived;
};

struct mt_start_segment {
    uint64_t addr, size_bytes; /* addr first: sorted.h */
    uint32_t stack, stream;
    uint16_t pool;
    bool expandable;
};

/* An end of a mapped range. At this address, the number of overlapping ranges changes by
 * `change`. */
struct mt_start_edge {
    uint64_t addr;
    const struct mt_torch_segment *segment; /* of the final state, or NULL */
    uint32_t stream;
    int change;
};

struct mt_torch_start {
    struct mt_torch *torch;
    const struct mt_torch_device *device;
    uint16_t device_index, heap, segment_heap; /* of the events; the host has two heaps */
    struct mt_start_block *blocks;
    size_t block_count, block_capacity;
    struct mt_start_segment *segments;
    size_t segment_count, segment_capacity;
    struct mt_start_edge *edges;
    size_t edge_count, edge_capacity;
    struct mt_map seen; /* address -> block index + 1; 0 = allocated within the history */
    struct mt_map seen_segments;
    struct mt_map tags;       /* address -> string id: annotations of initial blocks */
    bool frees_are_requested; /* free_requested entries were recorded */
};

static inline const struct mt_torch_entry *entry_at(const struct mt_torch_start *start, size_t i)
{
    return &start->torch->records.entries[start->device->first + i];
}

#endif
