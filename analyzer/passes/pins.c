#include "pins.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "sorted.h"

/* Index of the first segment that begins above `addr`. */
static uint32_t first_above(const struct mt_pins *pins, uint64_t addr)
{
    return (uint32_t)mt_sorted_count_to(pins->segments, pins->segment_count, sizeof *pins->segments,
                                        addr);
}

static bool is_ordinary(const struct mt_event *event)
{
    return !event->pool &&
           (event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_FREE);
}

void mt_pins_segment(struct mt_pins *pins, const struct mt_event *event)
{
    uint32_t at = first_above(pins, event->addr);
    struct mt_pin_segment *segments;

    if (!is_ordinary(event) || event->seq > pins->event)
        return;
    if (event->kind == MT_EVENT_SEGMENT_FREE) {
        if (at && pins->segments[at - 1].base == event->addr)
            memmove(pins->segments + at - 1, pins->segments + at,
                    (--pins->segment_count - (at - 1)) * sizeof *pins->segments);
        return;
    }
    mt_grow_to(&pins->segments, &pins->segment_capacity, (size_t)pins->segment_count + 1,
               sizeof *pins->segments);
    segments = pins->segments;
    memmove(segments + at + 1, segments + at, (pins->segment_count++ - at) * sizeof *segments);
    segments[at] = (struct mt_pin_segment){event->addr, event->size_bytes, event->size_bytes};
}

void mt_pins_add(struct mt_pins *pins, uint64_t addr, uint64_t bytes, uint32_t stack)
{
    mt_grow_to(&pins->blocks, &pins->block_capacity, (size_t)pins->block_count + 1,
               sizeof *pins->blocks);
    pins->blocks[pins->block_count++] = (struct mt_pin_block){addr, bytes, stack, 0};
}

static int by_address(const void *a, const void *b)
{
    const struct mt_pin_block *x = a, *y = b;

    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Drops blocks outside of ordinary segments, and segments without a block. */
void mt_pins_settle(struct mt_pins *pins)
{
    uint32_t i, at, kept = 0, kept_segments = 0, last = UINT32_MAX;

    if (pins->block_count)
        qsort(pins->blocks, pins->block_count, sizeof *pins->blocks, by_address);
    for (i = 0; i < pins->block_count; i++) {
        struct mt_pin_block block = pins->blocks[i];
        struct mt_pin_segment *segment;
        at = first_above(pins, block.addr);
        segment = at ? &pins->segments[at - 1] : NULL;
        if (!segment || block.addr - segment->base >= segment->bytes ||
            block.bytes > segment->free_bytes)
            continue;
        segment->free_bytes -= block.bytes;
        block.segment = at - 1;
        pins->blocks[kept++] = block;
    }
    pins->block_count = kept;
    for (i = 0; i < kept; i++) { /* blocks are sorted by address, and so are their segments */
        at = pins->blocks[i].segment;
        if (at != last)
            pins->segments[kept_segments++] = pins->segments[at];
        last = at;
        pins->blocks[i].segment = kept_segments - 1;
    }
    pins->segment_count = kept_segments;
    pins->stranded_bytes = 0;
    for (i = 0; i < kept_segments; i++)
        pins->stranded_bytes += pins->segments[i].free_bytes;
}

void mt_pins_release(struct mt_pins *pins)
{
    free(pins->blocks);
    free(pins->segments);
    memset(pins, 0, sizeof *pins);
}
