/* The state at the start of a history whose beginning is missing: a ring buffer that overflowed, or
 * recording that began late. The first entry of the window about an address shows its state: a
 * block that is freed before it is allocated existed at the start; a block that the window never
 * mentions existed at the start if it exists at the end; all others came later. This is the same
 * state as after undoing the entries from the last to the first, found in one forward pass.
 *
 * Ranges of expandable segments have no such first entry, because maps and unmaps may split them
 * anywhere. Their mapped part at the start is the mapped part at the end, plus unmaps, minus maps
 * in between: a sum over end points. */
#include <stdlib.h>

#include "grow.h"
#include "sorted.h"
#include "torch.h"
#include "torch_events.h"
#include "torch_names.h"
#include "util.h"

/* The state at the start of an incomplete history during its reconstruction: first the blocks, then
 * their sizes. */

/* Both structures begin with the address, because they are searched by address. */
struct start_block {
    uint64_t addr, requested_bytes, size_bytes; /* addr first: sorted.h; size 0: not known yet */
    uint32_t stack, stream;
    uint16_t pool;
    bool pending, freed, expandable, derived;
};

struct start_segment {
    uint64_t addr, size_bytes; /* addr first: sorted.h */
    uint32_t stack, stream;
    uint16_t pool;
    bool expandable;
};

/* An end of a mapped range. At this address, the number of overlapping ranges changes by
 * `change`. */
struct start_edge {
    uint64_t addr;
    const struct mt_torch_segment *segment; /* of the final state, or NULL */
    uint32_t stream;
    int change;
};

struct torch_start {
    struct mt_torch *torch;
    const struct mt_torch_device *device;
    uint16_t device_index, heap, segment_heap; /* of the events; the host has two heaps */
    struct start_block *blocks;
    size_t block_count, block_capacity;
    struct start_segment *segments;
    size_t segment_count, segment_capacity;
    struct start_edge *edges;
    size_t edge_count, edge_capacity;
    struct mt_map seen; /* address -> block index + 1; 0 = allocated within the history */
    struct mt_map seen_segments;
    struct mt_map tags;       /* address -> string id: annotations of initial blocks */
    bool frees_are_requested; /* free_requested entries were recorded */
};

static inline const struct mt_torch_entry *entry_at(const struct torch_start *start, size_t i)
{
    return &start->torch->records.entries[start->device->first + i];
}

/* Determines the sizes of blocks at the start of an incomplete history.
 *
 * Sizes of the blocks that were alive at the start of an incomplete history.
 *
 * The size of a block that was freed in the window is not recorded. It is the rounded request, but
 * a large block in an ordinary segment may include a tail of up to 1 MiB. Free blocks of that size
 * do not exist there, so a gap of at most 1 MiB to the next block or to the end of the segment is
 * such a tail. The same applies to a gap to a block that is allocated in the window while this one
 * is alive. */

/* Of `count` sorted elements of `size` bytes that begin with an address, returns the last one whose
 * address is at most addr; NULL if there is none. */
static void *last_not_after(void *things, size_t count, size_t size, uint64_t addr)
{
    size_t above = mt_sorted_count_to(things, count, size, addr);

    return above ? (unsigned char *)things + (above - 1) * size : NULL;
}

static struct start_segment *segment_of(const struct torch_start *start, uint64_t addr)
{
    struct start_segment *segment =
        last_not_after(start->segments, start->segment_count, sizeof *segment, addr);

    return segment && addr - segment->addr < segment->size_bytes ? segment : NULL;
}

/* A size that follows from the state at the start; 0 if only a later allocation may show it.
 * `next`: start of the next block of the segment, or the segment's end. */
static uint64_t size_at_start(const struct torch_start *start, const struct start_block *block,
                              const struct start_segment *segment, uint64_t next)
{
    const struct mt_torch_options *options = &start->torch->options;
    uint64_t rounded = mt_torch_round_size(options, block->requested_bytes);
    uint64_t room = next - block->addr;

    if (!segment || segment->expandable || rounded <= MT_MIB || rounded > room)
        return rounded;
    /* an oversize block is never split: it fills its segment */
    if (rounded >= options->max_split_bytes && block->addr == segment->addr)
        return segment->size_bytes;
    return room - rounded <= MT_MIB ? room : 0;
}

static void size_at_once(struct torch_start *start)
{
    for (size_t i = 0; i < start->block_count; i++) {
        struct start_block *block = &start->blocks[i];
        const struct start_segment *segment = segment_of(start, block->addr);
        uint64_t next = segment ? segment->addr + segment->size_bytes : UINT64_MAX;

        if (i + 1 < start->block_count)
            next = mt_min_u64(next, start->blocks[i + 1].addr);
        block->expandable = segment && segment->expandable;
        if (segment && segment->pool && !block->pool)
            block->pool = segment->pool;
        if (!block->size_bytes)
            block->size_bytes = size_at_start(start, block, segment, next);
    }
}

/* An allocation that begins at most 1 MiB after the rounded end of a block that is still alive
 * shows the real end of that block. */
static void learn_size(struct torch_start *start, const struct mt_torch_entry *alloc)
{
    struct start_block *block =
        last_not_after(start->blocks, start->block_count, sizeof *block, alloc->addr);

    if (!block || block->size_bytes || block->freed)
        return;
    uint64_t rounded = mt_torch_round_size(&start->torch->options, block->requested_bytes);
    uint64_t distance = alloc->addr - block->addr;
    const struct start_segment *segment = segment_of(start, block->addr);
    if (distance >= rounded && distance - rounded <= MT_MIB && segment &&
        alloc->addr - segment->addr < segment->size_bytes)
        block->size_bytes = distance;
}

/* Walks the window and removes blocks of the start when they are freed. */
static void learn_sizes(struct torch_start *start)
{
    size_t unknown = 0;

    for (size_t i = 0; i < start->block_count; i++) {
        start->blocks[i].freed = false; /* from now on: freed so far */
        unknown += !start->blocks[i].size_bytes;
    }
    for (size_t i = 0; i < start->device->count && unknown; i++) {
        const struct mt_torch_entry *entry = entry_at(start, i);
        struct start_block *block;

        if (entry->kind == MT_EVENT_ALLOC)
            learn_size(start, entry);
        if (entry->kind != MT_EVENT_FREE_COMPLETED)
            continue;
        block = last_not_after(start->blocks, start->block_count, sizeof *block, entry->addr);
        if (block && block->addr == entry->addr && !block->freed) {
            block->freed = true;
            unknown -= !block->size_bytes;
        }
    }
    for (size_t i = 0; i < start->block_count; i++) {
        struct start_block *block = &start->blocks[i];
        if (!block->size_bytes) {
            block->size_bytes = mt_torch_round_size(&start->torch->options, block->requested_bytes);
            block->derived = true;
        }
    }
}

/* Fills size_bytes, pool and flags of all blocks. Blocks and segments must be sorted by address. */
static void torch_size_blocks(struct torch_start *start)
{
    size_at_once(start);
    learn_sizes(start);
}

struct balance {
    uint64_t segment_bytes, live_bytes; /* modulo 2^64: only zero matters */
    uint64_t segments, live;
};

static void weigh_entries(const struct torch_start *start, uint8_t end_kind,
                          struct balance *balance)
{
    for (size_t i = 0; i < start->device->count; i++) {
        const struct mt_torch_entry *entry = entry_at(start, i);
        uint64_t size = entry->size_bytes;

        if (entry->kind == end_kind)
            balance->live--, balance->live_bytes -= size;
        switch (entry->kind) {
        case MT_EVENT_ALLOC: balance->live++, balance->live_bytes += size; break;
        case MT_EVENT_SEGMENT_ALLOC: balance->segments++; /* fall through */
        case MT_EVENT_SEGMENT_MAP: balance->segment_bytes += size; break;
        case MT_EVENT_SEGMENT_FREE: balance->segments--; /* fall through */
        case MT_EVENT_SEGMENT_UNMAP: balance->segment_bytes -= size; break;
        default: break;
        }
    }
}

/* A block whose free is pending is alive, unless only requested frees are known. */
static void weigh_final_state(const struct torch_start *start, uint8_t end_kind,
                              struct balance *balance)
{
    bool requested_known = true;
    uint64_t requested = 0;

    for (size_t i = 0; i < start->device->segment_count; i++) {
        const struct mt_torch_segment *segment =
            &start->torch->segments[start->device->first_segment + i];
        balance->segments -= !segment->expandable;
        balance->segment_bytes -= segment->size_bytes;
        for (size_t j = 0; j < segment->block_count; j++) {
            const struct mt_torch_block *block =
                &start->torch->records.blocks[segment->first_block + j];
            if (block->state == MT_TORCH_INACTIVE ||
                (block->state == MT_TORCH_PENDING && end_kind == MT_EVENT_FREE_REQUESTED))
                continue;
            balance->live--;
            requested += block->requested_bytes;
            requested_known &= block->requested_bytes != MT_NOT_COUNTED;
        }
    }
    balance->live_bytes = requested_known ? balance->live_bytes - requested : 0;
}

/* True if everything that was allocated and not freed exists at the end. If so, nothing was alive
 * when the window began. */
static bool is_complete(const struct torch_start *start, uint8_t end_kind)
{
    struct balance balance = {0, 0, 0, 0};

    weigh_entries(start, end_kind, &balance);
    weigh_final_state(start, end_kind, &balance);
    return !balance.live && !balance.live_bytes && !balance.segments && !balance.segment_bytes;
}

static enum mt_status add_block(struct torch_start *start, struct start_block block)
{
    if (mt_grow(&start->blocks, &start->block_capacity, start->block_count + 1,
                sizeof *start->blocks) != MT_OK)
        return MT_ERR_MEMORY;
    start->blocks[start->block_count++] = block;
    return MT_OK;
}

/* Handles the first entry of the window about an address, or another one about a block that existed
 * at the start. */
static enum mt_status see_block(struct torch_start *start, const struct mt_torch_entry *entry)
{
    uint32_t known = mt_map_get(&start->seen, entry->addr);
    enum mt_status status = MT_OK;

    if (known == MT_MAP_NONE) {
        bool live = entry->kind != MT_EVENT_ALLOC;
        bool pending = entry->kind == MT_EVENT_FREE_COMPLETED && start->frees_are_requested;
        if (live)
            status = add_block(start, (struct start_block){entry->addr, entry->size_bytes, 0,
                                                           MT_NO_ID, entry->stream, entry->pool,
                                                           pending, false, false, false});
        known = live ? (uint32_t)start->block_count : 0;
        if (status == MT_OK)
            status = mt_map_set(&start->seen, entry->addr, known);
    }
    if (known && entry->kind == MT_EVENT_FREE_COMPLETED)
        start->blocks[known - 1].freed = true;
    /* after that the address belongs to another block */
    if (status == MT_OK && known && entry->kind != MT_EVENT_FREE_REQUESTED)
        status = mt_map_set(&start->seen, entry->addr, 0);
    return status;
}

static enum mt_status see_final_block(struct torch_start *start,
                                      const struct mt_torch_segment *segment,
                                      const struct mt_torch_block *block)
{
    uint32_t known = mt_map_get(&start->seen, block->addr);
    uint64_t requested =
        block->requested_bytes == MT_NOT_COUNTED ? block->size_bytes : block->requested_bytes;

    if (block->state == MT_TORCH_INACTIVE || known == 0)
        return MT_OK;
    if (known != MT_MAP_NONE) { /* freed in the window, but still pending */
        start->blocks[known - 1].size_bytes = block->size_bytes;
        start->blocks[known - 1].stack = block->stack;
        return MT_OK;
    }
    return add_block(start, (struct start_block){block->addr, requested, block->size_bytes,
                                                 block->stack, segment->stream, segment->pool,
                                                 block->state == MT_TORCH_PENDING, false,
                                                 segment->expandable, false});
}

static enum mt_status find_blocks(struct torch_start *start)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < start->device->count && status == MT_OK; i++) {
        const struct mt_torch_entry *entry = entry_at(start, i);
        if (entry->kind >= MT_EVENT_ALLOC && entry->kind <= MT_EVENT_FREE_COMPLETED)
            status = see_block(start, entry);
    }
    for (size_t i = 0; i < start->device->segment_count && status == MT_OK; i++) {
        const struct mt_torch_segment *segment =
            &start->torch->segments[start->device->first_segment + i];
        for (size_t j = 0; j < segment->block_count && status == MT_OK; j++)
            status = see_final_block(start, segment,
                                     &start->torch->records.blocks[segment->first_block + j]);
    }
    return status;
}

static enum mt_status add_segment(struct torch_start *start, struct start_segment segment)
{
    if (mt_grow(&start->segments, &start->segment_capacity, start->segment_count + 1,
                sizeof *start->segments) != MT_OK)
        return MT_ERR_MEMORY;
    start->segments[start->segment_count++] = segment;
    return MT_OK;
}

static enum mt_status add_edges(struct torch_start *start, uint64_t addr, uint64_t size_bytes,
                                uint32_t stream, const struct mt_torch_segment *segment, int change)
{
    if (!size_bytes || size_bytes > UINT64_MAX - addr)
        return MT_OK;
    for (int end = 0; end < 2; end++) {
        if (mt_grow(&start->edges, &start->edge_capacity, start->edge_count + 1,
                    sizeof *start->edges) != MT_OK)
            return MT_ERR_MEMORY;
        start->edges[start->edge_count++] = (struct start_edge){
            addr + (end ? size_bytes : 0), end ? NULL : segment, stream, end ? -change : change};
    }
    return MT_OK;
}

static enum mt_status see_segment(struct torch_start *start, const struct mt_torch_entry *entry)
{
    if (mt_map_get(&start->seen_segments, entry->addr) != MT_MAP_NONE)
        return MT_OK;
    enum mt_status status = mt_map_set(&start->seen_segments, entry->addr, 0);
    if (status != MT_OK || entry->kind == MT_EVENT_SEGMENT_ALLOC)
        return status;
    return add_segment(start, (struct start_segment){entry->addr, entry->size_bytes, MT_NO_ID,
                                                     entry->stream, entry->pool, false});
}

static enum mt_status see_segment_entry(struct torch_start *start,
                                        const struct mt_torch_entry *entry)
{
    switch (entry->kind) {
    case MT_EVENT_SEGMENT_ALLOC:
    case MT_EVENT_SEGMENT_FREE: return see_segment(start, entry);
    case MT_EVENT_SEGMENT_MAP:
        return add_edges(start, entry->addr, entry->size_bytes, entry->stream, NULL, -1);
    case MT_EVENT_SEGMENT_UNMAP:
        return add_edges(start, entry->addr, entry->size_bytes, entry->stream, NULL, 1);
    default: return MT_OK;
    }
}

static enum mt_status see_final_segment(struct torch_start *start,
                                        const struct mt_torch_segment *segment)
{
    if (segment->expandable)
        return add_edges(start, segment->addr, segment->size_bytes, segment->stream, segment, 1);
    if (mt_map_get(&start->seen_segments, segment->addr) != MT_MAP_NONE)
        return MT_OK;
    return add_segment(start,
                       (struct start_segment){segment->addr, segment->size_bytes, segment->stack,
                                              segment->stream, segment->pool, false});
}

MT_DEFINE_ORDER(compare_edges, struct start_edge, MT_ASCENDING(stream) || MT_ASCENDING(addr))

/* Ranges with more unmaps and final mappings than maps were mapped at the start. */
static enum mt_status sum_edges(struct torch_start *start)
{
    const struct mt_torch_segment *final = NULL;
    enum mt_status status = MT_OK;
    uint64_t begin = 0;
    int64_t coverage = 0;
    size_t i = 0;

    if (start->edge_count)
        qsort(start->edges, start->edge_count, sizeof *start->edges, compare_edges);
    while (i < start->edge_count && status == MT_OK) {
        struct start_edge here = start->edges[i];
        bool was_mapped = coverage > 0;

        for (; i < start->edge_count && compare_edges(&here, &start->edges[i]) == 0; i++) {
            coverage += start->edges[i].change;
            final = start->edges[i].segment ? start->edges[i].segment : final;
        }
        if (!was_mapped && coverage > 0)
            begin = here.addr;
        else if (was_mapped && coverage <= 0)
            status = add_segment(
                start, (struct start_segment){begin, here.addr - begin, MT_NO_ID, here.stream,
                                              final && final->stream == here.stream ? final->pool
                                                                                    : (uint16_t)0,
                                              true});
    }
    return status;
}

MT_DEFINE_ORDER(compare_segments, struct start_segment, MT_ASCENDING(addr))

static enum mt_status find_segments(struct torch_start *start)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < start->device->count && status == MT_OK; i++)
        status = see_segment_entry(start, entry_at(start, i));
    for (size_t i = 0; i < start->device->segment_count && status == MT_OK; i++)
        status =
            see_final_segment(start, &start->torch->segments[start->device->first_segment + i]);
    if (status == MT_OK)
        status = sum_edges(start);
    if (start->segment_count)
        qsort(start->segments, start->segment_count, sizeof *start->segments, compare_segments);
    return status;
}

/* `event.heap` is set. */
static enum mt_status add_event(struct mt_torch *torch, struct mt_event event)
{
    if (mt_grow(&torch->initial, &torch->initial_capacity, torch->initial_count + 1,
                sizeof *torch->initial) != MT_OK)
        return MT_ERR_MEMORY;
    event.flags |= MT_EVENT_INITIAL;
    torch->initial[torch->initial_count++] = event;
    return MT_OK;
}

static enum mt_status add_block_events(struct torch_start *start, const struct start_block *block)
{
    struct mt_event event = {.addr = block->addr,
                             .size_bytes = block->requested_bytes,
                             .aux_bytes = block->size_bytes,
                             .stack = block->stack,
                             .name = mt_map_get(&start->tags, block->addr),
                             .stream = block->stream,
                             .device = start->device_index,
                             .heap = start->heap,
                             .pool = block->pool,
                             .kind = MT_EVENT_ALLOC};
    _Static_assert(MT_MAP_NONE == MT_NO_ID, "no tag is no name");

    event.flags = (uint8_t)((block->expandable ? MT_EVENT_EXPANDABLE : 0) |
                            (block->derived ? MT_EVENT_SIZE_DERIVED : 0));
    enum mt_status status = add_event(start->torch, event);
    if (status != MT_OK || !block->pending)
        return status;
    event.kind = MT_EVENT_FREE_REQUESTED;
    event.flags &= (uint8_t)~MT_EVENT_SIZE_DERIVED;
    event.aux_bytes = 0;
    event.stack = event.name = MT_NO_ID;
    return add_event(start->torch, event);
}

/* For the host, a segment is an allocation of the driver. */
static uint8_t segment_kind(const struct torch_start *start, const struct start_segment *segment)
{
    if (start->segment_heap != start->heap)
        return MT_EVENT_ALLOC;
    return segment->expandable ? MT_EVENT_SEGMENT_MAP : MT_EVENT_SEGMENT_ALLOC;
}

static enum mt_status add_events(struct torch_start *start)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < start->segment_count && status == MT_OK && !start->torch->is_profile;
         i++) {
        const struct start_segment *segment = &start->segments[i];
        status =
            add_event(start->torch,
                      (struct mt_event){.addr = segment->addr,
                                        .size_bytes = segment->size_bytes,
                                        .stack = segment->stack,
                                        .name = MT_NO_ID,
                                        .stream = segment->stream,
                                        .device = start->device_index,
                                        .heap = start->segment_heap,
                                        .pool = segment->pool,
                                        .kind = segment_kind(start, segment),
                                        .flags = segment->expandable ? MT_EVENT_EXPANDABLE : 0});
    }
    for (size_t i = 0; i < start->block_count && status == MT_OK; i++)
        status = add_block_events(start, &start->blocks[i]);
    return status;
}

MT_DEFINE_ORDER(compare_blocks, struct start_block, MT_ASCENDING(addr))

static enum mt_status rebuild(struct torch_start *start)
{
    enum mt_status status = find_blocks(start);

    if (status == MT_OK)
        status = find_segments(start);
    if (status != MT_OK)
        return status;
    if (start->block_count)
        qsort(start->blocks, start->block_count, sizeof *start->blocks, compare_blocks);
    if (start->segment_heap == start->heap) /* the host's blocks have the requested size */
        torch_size_blocks(start);
    return add_events(start);
}

static void start_release(struct torch_start *start)
{
    free(start->blocks);
    free(start->segments);
    free(start->edges);
    mt_map_release(&start->seen);
    mt_map_release(&start->seen_segments);
    mt_map_release(&start->tags);
}

enum mt_status mt_torch_find_start(struct mt_torch *torch)
{
    enum mt_status status = MT_OK;

    for (uint32_t device = 0; device < mt_torch_lanes(torch) && status == MT_OK; device++) {
        bool is_host = mt_torch_is_host(torch, device);
        struct torch_start start = {.torch = torch,
                                    .device = &torch->devices[device],
                                    .device_index = is_host ? 0 : (uint16_t)device,
                                    .heap = is_host ? torch->host_heap : torch->heap,
                                    .segment_heap = is_host ? torch->pinned_heap : torch->heap,
                                    .frees_are_requested =
                                        mt_torch_frees_are_requested(torch, device)};

        torch->devices[device].complete =
            !torch->has_segments || is_complete(&start, mt_torch_end_kind(torch, device));
        status = mt_torch_apply_annotations(torch, device, &start.tags);
        if (status == MT_OK && !torch->devices[device].complete)
            status = rebuild(&start);
        if (status == MT_OK && !is_host)
            status = mt_torch_find_missing(torch, device, !start.block_count);
        start_release(&start);
    }
    return status;
}
