/* The memory that a process took from the driver: by heap, by pool, and at instants. */
#include <stdlib.h>
#include <string.h>

#include "block_store.h"
#include "communicators.h"
#include "counters.h"
#include "driver_ledger.h"
#include "event.h"
#include "grow.h"
#include "heaps.h"
#include "phases.h"
#include "process_memory.h"
#include "replay_view.h"
#include "report.h"
#include "source.h"
#include "status.h"
#include "util.h"

/* No allocation is larger, so sums of sizes in hostile files do not overflow. */
#define LEDGER_MAX_BYTES (UINT64_C(1) << 48)

/* Returns the index of a device, created if missing. */
static void ledger_device_at(struct mt_driver_ledger *ledger, uint16_t number, uint32_t *index)
{
    *index = mt_map_get(&ledger->device_slots, number);
    if (*index != MT_MAP_NONE)
        return;
    *index = (uint32_t)ledger->device_count;
    if (ledger->device_count == ledger->device_capacity)
        mt_grow_to(&ledger->devices, &ledger->device_capacity, ledger->device_count + 1,
                   sizeof *ledger->devices);
    ledger->devices[ledger->device_count++] =
        (struct mt_ledger_device){.device = number, .peak.phase = MT_NO_PHASE};
    mt_map_put(&ledger->device_slots, number, *index);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static void add_sample(struct mt_ledger_samples *samples, const struct mt_event *event,
                       uint64_t tracked, uint64_t wanted_t_ns)
{
    uint64_t used = mt_min_u64(event->size_bytes, LEDGER_MAX_BYTES);
    int64_t residual = (int64_t)used - (int64_t)tracked;
    const struct mt_ledger_sample sample = {event->t_ns, event->seq, used, tracked};

    if (!used) {
        samples->unknown++;
        return;
    }
    if (!samples->count || residual < samples->least_residual)
        samples->least_residual = residual;
    if (!samples->count || residual > samples->most_residual)
        samples->most_residual = residual;
    if (used > samples->largest.used_bytes)
        samples->largest = sample;
    if (residual >= 0 &&
        (!samples->nearest.used_bytes ||
         distance(event->t_ns, wanted_t_ns) < distance(samples->nearest.t_ns, wanted_t_ns)))
        samples->nearest = sample;
    samples->count++;
}

static void take_sample(struct mt_driver_ledger *ledger, const struct mt_event *event)
{
    uint32_t index;

    ledger_device_at(ledger, event->device, &index);
    struct mt_ledger_device *device = &ledger->devices[index];
    add_sample(&device->samples[MT_TRACKED_DRIVER], event, device->bytes, device->wanted_t_ns);
    add_sample(&device->samples[MT_TRACKED_SEGMENTS], event, device->segment_bytes,
               device->wanted_t_ns);
}

void mt_driver_ledger_want(struct mt_driver_ledger *ledger, uint16_t device, uint64_t event,
                           uint64_t t_ns)
{
    uint32_t index;

    ledger_device_at(ledger, device, &index);
    ledger->devices[index].wants_copy = true;
    ledger->devices[index].wanted_event = event;
    ledger->devices[index].wanted_t_ns = t_ns;
}

static bool is_outside(const struct mt_driver_ledger *ledger, const struct mt_ledger_block *block,
                       uint32_t device)
{
    return block->is_live && block->device == device && !block->is_framework &&
           ledger->heaps[block->heap].is.is_device_memory;
}

static void copy(struct mt_driver_ledger *ledger, uint32_t index)
{
    struct mt_ledger_device *device = &ledger->devices[index];
    uint32_t count = 0;

    for (size_t i = 0; i < ledger->block_count; i++)
        count += is_outside(ledger, &ledger->blocks[i], index);
    device->copies = mt_arena_array(ledger->arena, (size_t)count + 1, sizeof *device->copies);
    for (size_t i = 0; i < ledger->block_count; i++) {
        struct mt_ledger_block *block = &ledger->blocks[i];

        if (!is_outside(ledger, block, index))
            continue;
        device->copies[device->copy_count++] =
            (struct mt_holding){.stack = block->stack,
                                .tied = MT_NO_ID,
                                .phase = block->phase,
                                .role = MT_ROLE_OTHER,
                                .block_bytes = block->bytes,
                                .blocks = 1,
                                .bytes = block->bytes,
                                .requested_bytes = block->bytes,
                                .first_birth_t_ns = block->birth_t_ns,
                                .first_birth_event = block->birth_event};
        block->copy = device->copy_count;
    }
}

/* Makes the copies due before event number `seq`. */
static void ledger_copy_due(struct mt_driver_ledger *ledger, uint64_t seq)
{
    ledger->next_wanted = UINT64_MAX;
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        struct mt_ledger_device *device = &ledger->devices[i];

        if (!device->wants_copy || device->has_copy)
            continue;
        if (seq <= device->wanted_event) {
            ledger->next_wanted = mt_min_u64(ledger->next_wanted, device->wanted_event);
            continue;
        }
        device->has_copy = true;
        device->then.bytes = device->bytes;
        device->then.framework_bytes = device->framework_bytes;
        device->then.pool_bytes = device->pool_segment_bytes;
        copy(ledger, i);
    }
}

void mt_pool_ledger_release(struct mt_pool_ledger *ledger)
{
    free(ledger->rows);
    memset(ledger, 0, sizeof *ledger);
}

/* Returns the row of a pool, created if missing. */
static struct mt_pool_row *row_of(struct mt_pool_ledger *ledger, uint16_t pool)
{
    while (ledger->row_count <= pool) {
        mt_grow_to(&ledger->rows, &ledger->row_capacity, (size_t)ledger->row_count + 1,
                   sizeof *ledger->rows);
        ledger->rows[ledger->row_count++] = (struct mt_pool_row){.first_stack = MT_NO_ID};
    }
    return &ledger->rows[pool];
}

void mt_pool_ledger_alloc(struct mt_pool_ledger *ledger, const struct mt_event *event,
                          const struct mt_replay_view *view)
{
    struct mt_pool_row *row = row_of(ledger, view->pool);

    if (!row->allocations) {
        row->first_event = event->seq;
        row->first_t_ns = event->t_ns;
    }
    if (row->first_stack == MT_NO_ID)
        row->first_stack = event->stack;
    row->is_used = true;
    row->allocations++;
    mt_level_add(&row->allocated, view->block_bytes);
}

/* A damaged trace may free more than was allocated. */
static void sub(struct mt_level *level, uint64_t bytes)
{
    mt_level_sub(level, mt_min_u64(level->now, bytes));
}

void mt_pool_ledger_free(struct mt_pool_ledger *ledger, const struct mt_replay_view *view)
{
    if (view->pool < ledger->row_count)
        sub(&ledger->rows[view->pool].allocated, view->block_bytes);
}

void mt_pool_ledger_segment(struct mt_pool_ledger *ledger, const struct mt_event *event,
                            const struct mt_replay_view *view)
{
    struct mt_pool_row *row = row_of(ledger, view->pool);

    row->is_used = true;
    if (event->kind == MT_EVENT_SEGMENT_FREE || event->kind == MT_EVENT_SEGMENT_UNMAP)
        sub(&row->reserved, event->size_bytes);
    else if (event->size_bytes <= UINT64_MAX - row->reserved.now)
        mt_level_add(&row->reserved, event->size_bytes);
    row->segments += event->kind == MT_EVENT_SEGMENT_ALLOC;
    row->segments -= event->kind == MT_EVENT_SEGMENT_FREE && row->segments;
}

/* How many allocations back to search for the memory of a mapping that does not name it. */
#define LOOK_BACK 64

static uint64_t key_of(uint16_t heap, uint16_t device, uint64_t addr)
{
    return addr ^ heap * UINT64_C(0x9E3779B97F4A7C15) ^ device * UINT64_C(0xD6E8FEB86659FD93);
}

/* The set of places identifies blocks only by their address. */
static struct mt_free_entry place_of(const struct mt_ledger_block *block, uint32_t index)
{
    return (struct mt_free_entry){.size_bytes = block->addr, .addr = index, .block = index};
}

static void classify(struct mt_ledger_heap *heap, const struct mt_symbols *symbols)
{
    const char *name = mt_heap_name(symbols, heap->heap);

    heap->is = mt_heap_class_of(name);
    heap->is_virtual = !strcmp(name, "driver:virtual");
    heap->is_mapped = !strcmp(name, "driver:mapped");
    heap->is_reserved = !strcmp(name, "driver:reserved");
    heap->has_addresses = heap->is_mapped || (heap->is.is_device_memory && !heap->is_virtual &&
                                              strcmp(name, "driver:array") != 0);
}

static void heap_at(struct mt_driver_ledger *ledger, const struct mt_event *event, uint32_t *index)
{
    const uint64_t key = (uint64_t)event->device << 16 | event->heap;
    struct mt_ledger_heap heap = {.heap = event->heap};

    *index = mt_map_get(&ledger->heap_slots, key);
    if (*index != MT_MAP_NONE)
        return;
    ledger_device_at(ledger, event->device, &heap.device);
    classify(&heap, &ledger->source->symbols);
    *index = (uint32_t)ledger->heap_count;
    if (ledger->heap_count == ledger->heap_capacity)
        mt_grow_to(&ledger->heaps, &ledger->heap_capacity, ledger->heap_count + 1,
                   sizeof *ledger->heaps);
    ledger->heaps[ledger->heap_count++] = heap;
    mt_map_put(&ledger->heap_slots, key, *index);
}

static void take_slot(struct mt_driver_ledger *ledger, uint32_t *index)
{
    if (ledger->block_free) {
        *index = ledger->block_free - 1;
        ledger->block_free = ledger->blocks[*index].next_free;
        return;
    }
    if (ledger->block_count >= UINT32_MAX - 1)
        mt_memory_end();
    if (ledger->block_count == ledger->block_capacity)
        mt_grow_to(&ledger->blocks, &ledger->block_capacity, ledger->block_count + 1,
                   sizeof *ledger->blocks);
    *index = (uint32_t)ledger->block_count++;
}

static void drop(struct mt_driver_ledger *ledger, uint32_t index)
{
    struct mt_ledger_block *block = &ledger->blocks[index];
    struct mt_ledger_heap *heap = &ledger->heaps[block->heap];
    struct mt_ledger_device *device = &ledger->devices[block->device];

    heap->use.live_blocks--;
    heap->use.live_bytes -= block->bytes;
    if (heap->is.is_device_memory) {
        device->bytes -= block->bytes;
        if (block->is_framework)
            device->framework_bytes -= block->bytes;
    }
    if (heap->has_addresses)
        (void)mt_free_set_remove(&device->places, place_of(block, index));
    block->is_live = false;
    block->next_free = ledger->block_free;
    ledger->block_free = index + 1;
}

/* Returns the live block of an event, or MT_MAP_NONE. */
static uint32_t find(const struct mt_driver_ledger *ledger, uint32_t heap, uint64_t addr)
{
    const struct mt_ledger_heap *of = &ledger->heaps[heap];
    uint32_t index =
        mt_map_get(&ledger->slots, key_of(of->heap, ledger->devices[of->device].device, addr));

    if (index == MT_MAP_NONE || ledger->blocks[index].heap != heap ||
        ledger->blocks[index].addr != addr)
        return MT_MAP_NONE;
    return index;
}

static void forget(struct mt_driver_ledger *ledger, uint32_t index, const struct mt_event *event)
{
    (void)mt_map_take(&ledger->slots, key_of(event->heap, event->device, event->addr));
    drop(ledger, index);
}

static void note_unmapped(struct mt_driver_ledger *ledger, uint32_t block)
{
    struct mt_ledger_device *device = &ledger->devices[ledger->blocks[block].device];

    if (device->unmapped_count == device->unmapped_capacity)
        mt_grow_to(&device->unmapped, &device->unmapped_capacity, device->unmapped_count + 1,
                   sizeof *device->unmapped);
    device->unmapped[device->unmapped_count++] =
        (struct mt_unmapped){block, ledger->blocks[block].birth_event};
}

/* Returns the newest unmapped memory of that size. */
static uint32_t guess_physical(struct mt_driver_ledger *ledger, struct mt_ledger_device *device,
                               uint64_t bytes)
{
    size_t tries = mt_min_u64(device->unmapped_count, LOOK_BACK);

    for (size_t i = device->unmapped_count; tries--; i--) {
        struct mt_unmapped found = device->unmapped[i - 1];
        const struct mt_ledger_block *block = &ledger->blocks[found.block];
        bool is_gone = !block->is_live || block->birth_event != found.birth_event;

        if (!is_gone && block->bytes != bytes)
            continue;
        memmove(&device->unmapped[i - 1], &device->unmapped[i],
                (device->unmapped_count - i) * sizeof found);
        device->unmapped_count--;
        if (!is_gone)
            return found.block + 1;
    }
    return 0;
}

/* Index + 1 of the memory behind a mapping, 0 = unknown. */
static uint32_t physical_of(struct mt_driver_ledger *ledger, uint32_t heap,
                            const struct mt_event *event)
{
    const uint32_t device = ledger->heaps[heap].device;

    for (uint32_t i = 0; event->aux_bytes && i < ledger->heap_count; i++) {
        uint32_t found = ledger->heaps[i].is_virtual && ledger->heaps[i].device == device
                             ? find(ledger, i, event->aux_bytes)
                             : MT_MAP_NONE;
        if (found != MT_MAP_NONE)
            return found + 1;
    }
    return guess_physical(ledger, &ledger->devices[device],
                          mt_min_u64(event->size_bytes, LEDGER_MAX_BYTES));
}

static void mark(struct mt_driver_ledger *ledger, uint32_t index)
{
    struct mt_ledger_block *block = &ledger->blocks[index];
    struct mt_ledger_device *device = &ledger->devices[block->device];

    if (block->is_framework || !ledger->heaps[block->heap].is.is_device_memory)
        return;
    block->is_framework = true;
    device->framework_bytes += block->bytes;
    if (block->birth_event <= device->peak.event)
        device->peak.framework_bytes += block->bytes;
    if (block->copy) {
        device->then.framework_bytes += block->bytes;
        device->copies[block->copy - 1].bytes = 0;
    }
}

/* The slot may be reused for another, younger block. */
static bool is_behind(const struct mt_ledger_block *physical, const struct mt_ledger_block *mapping)
{
    return physical->is_live && physical->birth_event < mapping->birth_event;
}

static void mark_range(struct mt_driver_ledger *ledger, struct mt_ledger_device *device,
                       uint64_t addr, uint64_t bytes)
{
    uint64_t end = addr + mt_max_u64(bytes, 1) < addr ? UINT64_MAX : addr + mt_max_u64(bytes, 1);
    struct mt_free_cursor at = mt_free_set_find(&device->places, addr, 0);
    struct mt_free_cursor before = mt_free_set_previous(&device->places, at);

    for (at = before.entry ? before : at; at.entry && at.entry->size_bytes < end;
         at = mt_free_set_next(&device->places, at)) {
        const struct mt_ledger_block *block = &ledger->blocks[at.entry->block];

        if (block->addr + mt_max_u64(block->bytes, 1) <= addr)
            continue;
        if (!ledger->heaps[block->heap].is_mapped)
            mark(ledger, at.entry->block);
        else if (block->physical && is_behind(&ledger->blocks[block->physical - 1], block))
            mark(ledger, block->physical - 1);
    }
}

/* After a refusal of address space. */
static void judge_space(struct mt_driver_ledger *ledger, const struct mt_event *event)
{
    uint32_t index;

    if (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_OOM)
        return;
    ledger_device_at(ledger, event->device, &index);
    struct mt_ledger_device *device = &ledger->devices[index];
    if (event->kind == MT_EVENT_ALLOC)
        device->is_out_of_space = false;
    else if (device->is_out_of_space)
        device->no_space_oom = event->seq;
}

static void on_framework(struct mt_driver_ledger *ledger, const struct mt_event *event)
{
    uint64_t bytes = mt_min_u64(event->size_bytes, LEDGER_MAX_BYTES);
    uint32_t index;

    if (ledger->was_out_of_space)
        judge_space(ledger, event);
    if (!mt_event_is_segment(event) && (event->kind != MT_EVENT_ALLOC || ledger->has_segments))
        return;
    ledger_device_at(ledger, event->device, &index);
    struct mt_ledger_device *device = &ledger->devices[index];
    if (event->kind == MT_EVENT_SEGMENT_FREE || event->kind == MT_EVENT_SEGMENT_UNMAP) {
        device->segment_bytes -= mt_min_u64(bytes, device->segment_bytes);
        if (event->pool)
            device->pool_segment_bytes -= mt_min_u64(bytes, device->pool_segment_bytes);
        return;
    }
    if (mt_event_is_segment(event)) {
        ledger->has_segments = true;
        device->segment_bytes += bytes;
        if (event->pool)
            device->pool_segment_bytes += bytes;
    }
    mark_range(ledger, device, event->addr, bytes);
}

static void count_block(struct mt_driver_ledger *ledger, const struct mt_ledger_block *block,
                        const struct mt_event *event)
{
    struct mt_ledger_heap *heap = &ledger->heaps[block->heap];
    struct mt_ledger_device *device = &ledger->devices[block->device];

    heap->largest_bytes = mt_max_u64(heap->largest_bytes, block->bytes);
    if (heap->is_reserved && block->bytes >= device->no_space.request_bytes)
        device->is_out_of_space = false;
    heap->use.allocations++;
    heap->use.live_blocks++;
    heap->use.live_bytes += block->bytes;
    if (heap->use.live_bytes > heap->use.peak_bytes) {
        heap->use.peak_bytes = heap->use.live_bytes;
        heap->use.peak_t_ns = event->t_ns;
        heap->use.peak_event = event->seq;
    }
    if (!heap->is.is_device_memory)
        return;
    device->was_refused = false;
    device->bytes += block->bytes;
    if (device->bytes > device->peak.bytes)
        device->peak = (struct mt_driver_level){.bytes = device->bytes,
                                                .framework_bytes = device->framework_bytes,
                                                .t_ns = event->t_ns,
                                                .event = event->seq,
                                                .phase = block->phase};
}

static void on_alloc(struct mt_driver_ledger *ledger, uint32_t heap, const struct mt_event *event)
{
    const struct mt_ledger_heap *of = &ledger->heaps[heap];
    uint32_t index = mt_map_get(&ledger->slots, key_of(event->heap, event->device, event->addr));

    if (index != MT_MAP_NONE) /* its free was lost */
        drop(ledger, index);
    take_slot(ledger, &index);
    mt_map_put(&ledger->slots, key_of(event->heap, event->device, event->addr), index);
    struct mt_ledger_block *block = &ledger->blocks[index];
    *block = (struct mt_ledger_block){.addr = event->addr,
                                      .bytes = mt_min_u64(event->size_bytes, LEDGER_MAX_BYTES),
                                      .birth_t_ns = event->t_ns,
                                      .birth_event = event->seq,
                                      .stack = event->stack,
                                      .phase = mt_phases_current(ledger->phases, event->thread),
                                      .heap = heap,
                                      .device = of->device,
                                      .is_live = true};
    if (of->is_mapped)
        block->physical = physical_of(ledger, heap, event);
    count_block(ledger, block, event);
    if (of->is_virtual) {
        note_unmapped(ledger, index);
        return;
    }
    if (of->has_addresses)
        mt_free_set_insert(&ledger->devices[of->device].places, place_of(block, index));
}

static void on_failure(struct mt_driver_ledger *ledger, uint32_t heap, const struct mt_event *event)
{
    struct mt_ledger_heap *of = &ledger->heaps[heap];
    struct mt_ledger_device *device = &ledger->devices[of->device];
    const struct mt_driver_failure failure = {.device = event->device,
                                              .heap = event->heap,
                                              .t_ns = event->t_ns,
                                              .event = event->seq,
                                              .request_bytes = event->size_bytes,
                                              .held_bytes = of->use.live_bytes,
                                              .stack = event->stack,
                                              .phase =
                                                  mt_phases_current(ledger->phases, event->thread)};

    of->use.failures++;
    if (ledger->failure_count < MT_LEDGER_FAILURES)
        ledger->failures[ledger->failure_count] = failure;
    ledger->failure_count++;
    if (of->is_reserved && !device->is_out_of_space && event->size_bytes <= of->largest_bytes &&
        event->size_bytes % (2 * MT_MIB) == 0) { /* otherwise the request may be invalid */
        device->is_out_of_space = ledger->was_out_of_space = true;
        device->no_space = failure;
    }
    if (!of->is.is_device_memory || device->was_refused)
        return;
    device->was_refused = true;
    device->refused = failure;
}

static void on_other(struct mt_driver_ledger *ledger, const struct mt_event *event)
{
    bool is_free =
        event->kind == MT_EVENT_FREE_COMPLETED ||
        (event->kind == MT_EVENT_FREE_REQUESTED && !ledger->source->header.has_free_completed);
    uint32_t heap;

    heap_at(ledger, event, &heap);
    /* pinned host memory is the only driver memory in a snapshot */
    ledger->has_driver |= ledger->heaps[heap].is.level == MT_HEAP_DRIVER &&
                          !mt_header_is_snapshot(&ledger->source->header);
    if (event->kind == MT_EVENT_ALLOC) {
        on_alloc(ledger, heap, event);
        return;
    }
    if (event->kind == MT_EVENT_ALLOC_FAILED)
        on_failure(ledger, heap, event);
    if (!is_free)
        return;
    uint32_t index = find(ledger, heap, event->addr);
    if (index != MT_MAP_NONE) {
        ledger->heaps[heap].use.frees++;
        forget(ledger, index, event);
    }
}

void mt_driver_ledger_event(struct mt_driver_ledger *ledger, const struct mt_event *event)
{
    int32_t phase;

    if (mt_event_is_memory(event)) {
        if (event->seq > ledger->next_wanted)
            ledger_copy_due(ledger, event->seq);
        if (ledger->has_framework && event->heap == ledger->framework_heap)
            on_framework(ledger, event);
        else
            on_other(ledger, event);
        return;
    }
    if (event->kind == MT_EVENT_PHASE_PUSH) {
        mt_phases_push(ledger->phases, event, &phase);
        return;
    }
    if (event->kind == MT_EVENT_PHASE_POP)
        mt_phases_pop(ledger->phases, event);
    if (event->kind == MT_EVENT_MEMORY_SAMPLE) {
        take_sample(ledger, event);
        return;
    }
    mt_communicators_event(&ledger->communicators, ledger->phases, event);
}

void mt_driver_ledger_begin(struct mt_driver_ledger *ledger, const struct mt_source *source)
{
    ledger->source = source;
    ledger->has_framework = source->view.level == MT_VIEW_FRAMEWORK;
    ledger->framework_heap = source->view.heap;
    mt_phases_rewind(ledger->phases);
}

void mt_driver_ledger_finish(struct mt_driver_ledger *ledger)
{
    ledger_copy_due(ledger, UINT64_MAX);
}

enum mt_status mt_driver_ledger_read(struct mt_driver_ledger *ledger, struct mt_source *source,
                                     struct mt_error *error)
{
    enum mt_view_level level = source->view.level;
    struct mt_event_batch batch;
    enum mt_status status = mt_source_rewind(source, error);

    mt_driver_ledger_begin(ledger, source);
    source->view.level = MT_VIEW_EVERYTHING;
    while (status == MT_OK) {
        status = mt_source_next(source, &batch, error);
        for (size_t i = 0; status == MT_OK && i < batch.count; i++)
            mt_driver_ledger_event(ledger, &batch.events[i]);
    }
    source->view.level = level;
    if (status == MT_END) {
        mt_driver_ledger_finish(ledger);
        status = MT_OK;
    }
    return status;
}

uint64_t mt_driver_ledger_bytes(const struct mt_driver_ledger *ledger)
{
    return ledger->block_capacity * sizeof *ledger->blocks + mt_map_bytes(&ledger->slots);
}

void mt_driver_ledger_release(struct mt_driver_ledger *ledger)
{
    for (size_t i = 0; i < ledger->device_count; i++) {
        mt_free_set_release(&ledger->devices[i].places);
        free(ledger->devices[i].unmapped);
    }
    mt_communicators_release(&ledger->communicators);
    mt_map_release(&ledger->slots);
    mt_map_release(&ledger->heap_slots);
    mt_map_release(&ledger->device_slots);
    free(ledger->blocks);
    free(ledger->heaps);
    free(ledger->devices);
}
