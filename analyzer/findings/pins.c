#include "pins.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "map.h"

struct reading {
    struct mt_alloc_log *log;
    struct mt_pins *pins;
    struct mt_map slots; /* address -> block */
    size_t block_capacity, segment_capacity;
    uint16_t device;
    bool completes_at_request; /* the trace has no free_completed */
};

/* ---- segments ------------------------------------------------------------------ */

/* Number of the first segment that begins above `addr`. */
static uint32_t first_above(const struct mt_pins *pins, uint64_t addr)
{
    uint32_t low = 0, high = pins->segment_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pins->segments[middle].base <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_ordinary(const struct mt_event *event)
{
    return !event->pool &&
           (event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_FREE);
}

static enum mt_status on_segment(struct reading *reading, const struct mt_event *event)
{
    struct mt_pins *pins = reading->pins;
    uint32_t at = first_above(pins, event->addr);
    struct mt_pin_segment *segments;
    enum mt_status status;

    if (event->kind == MT_EVENT_SEGMENT_FREE) {
        if (at && pins->segments[at - 1].base == event->addr)
            memmove(pins->segments + at - 1, pins->segments + at,
                    (--pins->segment_count - (at - 1)) * sizeof *pins->segments);
        return MT_OK;
    }
    status = mt_grow(&pins->segments, &reading->segment_capacity, pins->segment_count + 1u,
                     sizeof *pins->segments);
    if (status != MT_OK)
        return status;
    segments = pins->segments;
    memmove(segments + at + 1, segments + at, (pins->segment_count++ - at) * sizeof *segments);
    segments[at] = (struct mt_pin_segment){event->addr, event->size_bytes, event->size_bytes};
    return MT_OK;
}

/* ---- blocks -------------------------------------------------------------------- */

static enum mt_status remove_block(struct reading *reading, uint64_t addr)
{
    struct mt_pins *pins = reading->pins;
    uint32_t slot = mt_map_take(&reading->slots, addr);

    if (slot == MT_MAP_NONE)
        return MT_OK;
    pins->blocks[slot] = pins->blocks[--pins->block_count];
    if (slot == pins->block_count)
        return MT_OK;
    return mt_map_set(&reading->slots, pins->blocks[slot].addr, slot);
}

static enum mt_status on_alloc(struct reading *reading, const struct mt_event *event)
{
    struct mt_pins *pins = reading->pins;
    enum mt_status status;
    uint64_t bytes;
    uint8_t role;

    if (!mt_alloc_log_next(reading->log, &bytes, &role) || !bytes ||
        event->device != reading->device)
        return MT_OK;
    status = remove_block(reading, event->addr); /* its free was lost */
    if (status == MT_OK)
        status = mt_grow(&pins->blocks, &reading->block_capacity, pins->block_count + 1u,
                         sizeof *pins->blocks);
    if (status != MT_OK)
        return status;
    pins->blocks[pins->block_count] = (struct mt_pin_block){event->addr, bytes, event->stack, 0};
    return mt_map_set(&reading->slots, event->addr, pins->block_count++);
}

static enum mt_status on_event(struct reading *reading, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_ALLOC)
        return on_alloc(reading, event); /* of every device: the log has them all */
    if (event->device != reading->device)
        return MT_OK;
    if (event->kind == MT_EVENT_FREE_COMPLETED ||
        (event->kind == MT_EVENT_FREE_REQUESTED && reading->completes_at_request))
        return remove_block(reading, event->addr);
    return is_ordinary(event) ? on_segment(reading, event) : MT_OK;
}

/* ---- the instant ---------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const struct mt_pin_block *x = a, *y = b;

    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Drops blocks that lie in no ordinary segment, and segments without a block. */
static void settle(struct mt_pins *pins)
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
    for (i = 0; i < kept; i++) { /* in order of address: so are their segments */
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

enum mt_status mt_pins_read(struct mt_source *source, struct mt_alloc_log *log, uint16_t device,
                            uint64_t event, struct mt_pins *pins, struct mt_error *error)
{
    struct reading reading = {.log = log, .pins = pins, .device = device};
    enum mt_status status = mt_source_rewind(source, error);
    struct mt_event_batch batch;
    size_t i;

    memset(pins, 0, sizeof *pins);
    mt_alloc_log_rewind(log);
    reading.completes_at_request = !source->header.has_free_completed;
    while (status == MT_OK && (status = mt_source_next(source, &batch, error)) == MT_OK) {
        for (i = 0; status == MT_OK && i < batch.count; i++)
            if (batch.events[i].seq <= event)
                status = on_event(&reading, &batch.events[i]);
    }
    mt_map_release(&reading.slots);
    if (status != MT_OK && status != MT_END)
        return status;
    settle(pins);
    return MT_OK;
}

void mt_pins_release(struct mt_pins *pins)
{
    free(pins->blocks);
    free(pins->segments);
    memset(pins, 0, sizeof *pins);
}
