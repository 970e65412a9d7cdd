/* Sizes of the blocks that were alive at the start of an incomplete history.
 *
 * The size of a block that was freed in the window is not recorded. It is the rounded request, but
 * a large block in an ordinary segment may include a tail of up to 1 MiB. Free blocks of that size
 * do not exist there, so a gap of at most 1 MiB to the next block or to the end of the segment is
 * such a tail. The same applies to a gap to a block that is allocated in the window while this one
 * is alive. */
#include "torch_sizes.h"

#include "sorted.h"
#include "util.h"

/* Of `count` sorted elements of `size` bytes that begin with an address, returns the last one whose
 * address is at most addr; NULL if there is none. */
static void *last_not_after(void *things, size_t count, size_t size, uint64_t addr)
{
    size_t above = mt_sorted_count_to(things, count, size, addr);

    return above ? (unsigned char *)things + (above - 1) * size : NULL;
}

static struct mt_start_segment *segment_of(const struct mt_torch_start *start, uint64_t addr)
{
    struct mt_start_segment *segment =
        last_not_after(start->segments, start->segment_count, sizeof *segment, addr);

    return segment && addr - segment->addr < segment->size_bytes ? segment : NULL;
}

/* A size that follows from the state at the start; 0 if only a later allocation may show it.
 * `next`: start of the next block of the segment, or the segment's end. */
static uint64_t size_at_start(const struct mt_torch_start *start,
                              const struct mt_start_block *block,
                              const struct mt_start_segment *segment, uint64_t next)
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

static void size_at_once(struct mt_torch_start *start)
{
    size_t i;

    for (i = 0; i < start->block_count; i++) {
        struct mt_start_block *block = &start->blocks[i];
        const struct mt_start_segment *segment = segment_of(start, block->addr);
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
static void learn_size(struct mt_torch_start *start, const struct mt_torch_entry *alloc)
{
    struct mt_start_block *block =
        last_not_after(start->blocks, start->block_count, sizeof *block, alloc->addr);
    const struct mt_start_segment *segment;
    uint64_t distance, rounded;

    if (!block || block->size_bytes || block->freed)
        return;
    rounded = mt_torch_round_size(&start->torch->options, block->requested_bytes);
    distance = alloc->addr - block->addr;
    segment = segment_of(start, block->addr);
    if (distance >= rounded && distance - rounded <= MT_MIB && segment &&
        alloc->addr - segment->addr < segment->size_bytes)
        block->size_bytes = distance;
}

/* Walks the window and removes blocks of the start when they are freed. */
static void learn_sizes(struct mt_torch_start *start)
{
    size_t i, unknown = 0;

    for (i = 0; i < start->block_count; i++) {
        start->blocks[i].freed = false; /* from now on: freed so far */
        unknown += !start->blocks[i].size_bytes;
    }
    for (i = 0; i < start->device->count && unknown; i++) {
        const struct mt_torch_entry *entry = entry_at(start, i);
        struct mt_start_block *block;

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
    for (i = 0; i < start->block_count; i++) {
        struct mt_start_block *block = &start->blocks[i];
        if (!block->size_bytes) {
            block->size_bytes = mt_torch_round_size(&start->torch->options, block->requested_bytes);
            block->derived = true;
        }
    }
}

void mt_torch_size_blocks(struct mt_torch_start *start)
{
    size_at_once(start);
    learn_sizes(start);
}
