/* See trace_summary.h. Sums live blocks by address. Each heap has its own address space. */
#include "trace_summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "heaps.h"
#include "trace.h"
#include "util.h"
#include "xla_names.h"

/* The sum to which an event of a heap belongs. */
enum account { NOTHING, DEVICE, RESERVED, BLOCKS, ACCOUNT_COUNT };

struct alive {
    struct mt_map entries; /* address in its space -> index of sizes */
    uint64_t *sizes;
    size_t capacity, used;
    uint32_t *unused; /* free indexes */
    size_t unused_capacity, unused_count;
};

struct summing {
    struct mt_source *source;
    struct alive alive;
    uint64_t now_bytes[ACCOUNT_COUNT], peak_bytes[ACCOUNT_COUNT];
    bool seen[ACCOUNT_COUNT];
    uint64_t xla_modules, device_allocations; /* runs of modules; requests to the driver */
    enum account *blocks;                     /* by heap id: the account of its blocks */
    size_t heaps_capacity, heaps;
    struct mt_lost_events lost;
    uint64_t out_of_memory; /* bit N: device N, since its last allocation */
};

static void alive_release(struct alive *alive)
{
    mt_map_release(&alive->entries);
    free(alive->sizes);
    free(alive->unused);
}

static enum mt_status alive_add(struct alive *alive, uint64_t key, uint64_t size_bytes)
{
    uint32_t index;

    if (alive->unused_count)
        index = alive->unused[--alive->unused_count];
    else if (alive->used < UINT32_MAX - 1)
        index = (uint32_t)alive->used++;
    else
        return MT_ERR_MEMORY;
    if (alive->used > alive->capacity &&
        mt_grow(&alive->sizes, &alive->capacity, alive->used, sizeof *alive->sizes) != MT_OK)
        return MT_ERR_MEMORY;
    alive->sizes[index] = size_bytes;
    return mt_map_set(&alive->entries, key, index);
}

/* Returns the size of the block; 0 if it is not known to be alive. */
static enum mt_status alive_take(struct alive *alive, uint64_t key, uint64_t *size_bytes)
{
    uint32_t index = mt_map_take(&alive->entries, key);

    *size_bytes = 0;
    if (index == MT_MAP_NONE)
        return MT_OK;
    *size_bytes = alive->sizes[index];
    if (alive->unused_count == alive->unused_capacity &&
        mt_grow(&alive->unused, &alive->unused_capacity, alive->unused_count + 1,
                sizeof *alive->unused) != MT_OK)
        return MT_ERR_MEMORY;
    alive->unused[alive->unused_count++] = index;
    return MT_OK;
}

static enum account account_of_heap(const struct mt_symbols *symbols, size_t heap)
{
    const char *name = mt_symbols_text(symbols, symbols->heaps[heap].name);

    if (mt_heap_class_of(name).is_device_memory)
        return DEVICE;
    return strcmp(name, "pytorch") == 0 ? BLOCKS : NOTHING;
}

/* Heaps may be defined while events are read. */
static enum mt_status learn_heaps(struct summing *summing)
{
    const struct mt_symbols *symbols = &summing->source->symbols;

    if (summing->heaps >= symbols->heap_count)
        return MT_OK;
    if (mt_grow(&summing->blocks, &summing->heaps_capacity, symbols->heap_count,
                sizeof *summing->blocks) != MT_OK)
        return MT_ERR_MEMORY;
    for (; summing->heaps < symbols->heap_count; summing->heaps++)
        summing->blocks[summing->heaps] = account_of_heap(symbols, summing->heaps);
    return MT_OK;
}

static enum account account_of(const struct summing *summing, const struct mt_event *event)
{
    enum account blocks = event->heap < summing->heaps ? summing->blocks[event->heap] : NOTHING;

    if (!mt_event_is_segment(event))
        return blocks;
    return blocks == BLOCKS ? RESERVED : NOTHING;
}

static void grow_account(struct summing *summing, enum account account, uint64_t size_bytes)
{
    uint64_t *now = &summing->now_bytes[account];

    summing->seen[account] = true;
    if (!mt_add_ok(*now, size_bytes, now))
        *now = UINT64_MAX;
    summing->peak_bytes[account] = mt_max_u64(summing->peak_bytes[account], *now);
}

static void shrink_account(struct summing *summing, enum account account, uint64_t size_bytes)
{
    summing->now_bytes[account] -= mt_min_u64(summing->now_bytes[account], size_bytes);
}

/* Distinguishes blocks and segments of a heap, heaps, and devices. */
static uint64_t key_of(const struct mt_event *event)
{
    uint64_t space = (uint64_t)event->heap << 17 | (uint64_t)event->device << 1 |
                     (uint64_t)(mt_event_is_segment(event) != 0);

    return event->addr ^ mt_hash_u64(space);
}

static void note_oom(struct summing *summing, const struct mt_event *event)
{
    uint64_t device = event->device < 64 ? UINT64_C(1) << event->device : 0;

    if (event->kind == MT_EVENT_OOM)
        summing->out_of_memory |= device;
    else if (event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_SEGMENT_ALLOC ||
             event->kind == MT_EVENT_SEGMENT_MAP)
        summing->out_of_memory &= ~device;
}

static enum mt_status add_event(struct summing *summing, const struct mt_event *event)
{
    enum account account = account_of(summing, event);
    uint64_t size_bytes = event->size_bytes;
    enum mt_status status;

    if (account == NOTHING)
        return MT_OK;
    note_oom(summing, event);
    switch (event->kind) {
    case MT_EVENT_ALLOC:
        grow_account(summing, account, size_bytes);
        return alive_add(&summing->alive, key_of(event), size_bytes);
    case MT_EVENT_FREE_REQUESTED:
    case MT_EVENT_FREE_COMPLETED: /* has no effect after a request */
        status = alive_take(&summing->alive, key_of(event), &size_bytes);
        shrink_account(summing, account, size_bytes);
        return status;
    case MT_EVENT_SEGMENT_ALLOC:
    case MT_EVENT_SEGMENT_MAP: grow_account(summing, account, event->size_bytes); break;
    case MT_EVENT_SEGMENT_FREE:
    case MT_EVENT_SEGMENT_UNMAP: shrink_account(summing, account, event->size_bytes); break;
    default: break;
    }
    return MT_OK;
}

static void count_xla(struct summing *summing, const struct mt_event *event)
{
    const char *module;
    size_t length;

    if (event->kind == MT_EVENT_PHASE_PUSH)
        summing->xla_modules +=
            mt_xla_range_of(mt_symbols_text(&summing->source->symbols, event->name), &module,
                            &length) == MT_XLA_MODULE;
    else if (event->kind == MT_EVENT_ALLOC)
        summing->device_allocations += account_of(summing, event) == DEVICE;
}

static enum mt_status add_batch(struct summing *summing, const struct mt_event_batch *batch,
                                struct mt_trace_summary *summary)
{
    enum mt_status status = learn_heaps(summing);
    size_t i;

    if (!summary->events)
        summary->begin_ns = batch->events[0].t_ns;
    for (i = 0; i < batch->count && status == MT_OK; i++) {
        mt_lost_events_add(&summing->lost, &batch->events[i]);
        count_xla(summing, &batch->events[i]);
        status = add_event(summing, &batch->events[i]);
    }
    summary->events += batch->count;
    summary->end_ns = batch->events[batch->count - 1].t_ns;
    return status;
}

/* A reason with 0 events means that names are missing. */
static void name_lost(const struct summing *summing, struct mt_trace_summary *summary)
{
    const struct mt_lost_events *lost = &summing->lost;
    const size_t most = MT_ARRAY_LEN(summary->lost);
    size_t i;

    summary->lost_count = mt_min_u64(lost->count, most);
    for (i = 0; i < lost->count; i++) {
        struct mt_lost_text *text = &summary->lost[mt_min_u64(i, most - 1)];
        const char *why =
            i < most ? mt_lost_events_why(lost, i, &summing->source->symbols) : "other reasons";
        text->events += lost->reasons[i].events;
        snprintf(text->why, sizeof text->why, "%s", why ? why : "");
    }
}

static void finish(const struct summing *summing, struct mt_trace_summary *summary)
{
    const struct mt_source *source = summing->source;
    const char *sources = source->header.sources, *missed = source->header.not_recorded;

    summary->bytes = source->input_bytes;
    summary->process_id = source->header.process_id;
    summary->rank = source->header.rank;
    summary->device_known = summing->seen[DEVICE];
    summary->reserved_known = summing->seen[RESERVED];
    summary->blocks_known = summing->seen[BLOCKS];
    summary->device_peak_bytes = summing->peak_bytes[DEVICE];
    summary->reserved_peak_bytes = summing->peak_bytes[RESERVED];
    summary->died_of_oom = summing->out_of_memory != 0;
    summary->blocks_rounded = source->header.sizes_rounded;
    summary->blocks_peak_bytes = summing->peak_bytes[BLOCKS];
    summary->xla_requests_missing =
        mt_xla_serves_itself(summing->xla_modules, summing->device_allocations);
    summary->dropped = source->integrity.events_dropped;
    summary->damaged = source->integrity.frames_damaged + source->integrity.events_invalid;
    summary->closed = source->integrity.closed && !source->integrity.cut;
    name_lost(summing, summary);
    snprintf(summary->sources, sizeof summary->sources, "%s", sources ? sources : "");
    snprintf(summary->not_recorded, sizeof summary->not_recorded, "%s", missed ? missed : "");
}

enum mt_status mt_trace_summarize(const char *path, struct mt_trace_summary *summary,
                                  struct mt_error *error)
{
    struct summing summing = {0};
    struct mt_event_batch batch;
    enum mt_status status;

    memset(summary, 0, sizeof *summary);
    status = mt_trace_open(path, &summing.source, error);
    if (status != MT_OK)
        return status;
    while ((status = mt_source_next(summing.source, &batch, error)) == MT_OK) {
        status = add_batch(&summing, &batch, summary);
        if (status != MT_OK) {
            mt_fail(error, status, MT_NO_OFFSET, "out of memory");
            break;
        }
    }
    if (status == MT_END)
        finish(&summing, summary);
    alive_release(&summing.alive);
    free(summing.blocks);
    mt_source_close(summing.source);
    return status == MT_END ? MT_OK : status;
}
