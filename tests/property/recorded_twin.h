/* What `memtrace record` would have made of a run of which there is a snapshot:
 * the same events of PyTorch, and around them those of the driver: a twin for
 * every segment, and random memory of others. */
#ifndef MT_TESTS_RECORDED_TWIN_H
#define MT_TESTS_RECORDED_TWIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dice.h"
#include "trace.h"
#include "util.h"

/* Numbers between two events of the snapshot. */
#define TWIN_STEP  (UINT64_C(1) << 20)
#define TWIN_PAGE  (2 * MT_MIB)
#define TWIN_OTHER UINT64_C(0x300000000000) /* where nothing of PyTorch lies */

enum {
    TWIN_DRIVER,
    TWIN_ASYNC,
    TWIN_MANAGED,
    TWIN_ARRAY,
    TWIN_VIRTUAL,
    TWIN_MAPPED,
    TWIN_HOST,
    TWIN_IMPORTED,
    TWIN_USER,
    TWIN_HEAPS
};
static const char *const twin_names[TWIN_HEAPS] = {
    "driver",        "driver:async", "driver:managed",  "driver:array", "driver:virtual",
    "driver:mapped", "driver:host",  "driver:imported", "user"};

enum { TWIN_DEVICES = 2, TWIN_MAX_LIVE = 256 };

struct twin_block {
    uint64_t addr, bytes;
    int heap;
    uint16_t device;
};

/* What has to come out. */
struct twin_truth {
    uint64_t outside, framework;
    uint64_t peak, peak_framework;
    uint64_t samples;
    int64_t least_residual, most_residual;
    uint64_t failures;
    uint64_t *outside_at; /* by event of the snapshot, right after it */
};

struct twin {
    struct mt_symbols *symbols;
    struct mt_event *events;
    size_t count, capacity;
    uint16_t heaps[TWIN_HEAPS];
    bool names_memory; /* mappings tell which memory they show */
    uint64_t seed, next_addr, next_seq;
    struct twin_block live[TWIN_MAX_LIVE];
    size_t live_count;
    struct twin_truth truth[TWIN_DEVICES];
};

static inline uint64_t twin_below(struct twin *twin, uint64_t bound)
{
    return dice_xorshift(&twin->seed) % bound;
}

static inline void twin_add(struct twin *twin, const struct mt_event *event)
{
    if (twin->count == twin->capacity) {
        twin->capacity = twin->capacity ? 2 * twin->capacity : 4096;
        twin->events = realloc(twin->events, twin->capacity * sizeof *twin->events);
        if (!twin->events)
            abort();
    }
    twin->events[twin->count++] = *event;
}

/* An event of the driver at the time and place of one of PyTorch. */
static inline struct mt_event twin_event(struct twin *twin, const struct mt_event *beside,
                                         uint8_t kind, int heap)
{
    return (struct mt_event){.seq = twin->next_seq++,
                             .t_ns = beside->t_ns,
                             .kind = kind,
                             .heap = twin->heaps[heap],
                             .device = beside->device,
                             .thread = beside->thread,
                             .stack = beside->stack,
                             .name = MT_NO_ID};
}

static inline bool twin_counts(int heap)
{
    return heap <= TWIN_VIRTUAL;
}

static inline void twin_note(struct twin_truth *truth)
{
    if (truth->outside + truth->framework <= truth->peak)
        return;
    truth->peak = truth->outside + truth->framework;
    truth->peak_framework = truth->framework;
}

static inline void twin_alloc(struct twin *twin, const struct mt_event *beside, int heap,
                              uint64_t addr, uint64_t bytes, uint64_t aux)
{
    struct mt_event event = twin_event(twin, beside, MT_EVENT_ALLOC, heap);

    event.addr = addr;
    event.size_bytes = bytes;
    event.aux_bytes = aux;
    twin_add(twin, &event);
}

static inline void twin_free(struct twin *twin, const struct mt_event *beside, int heap,
                             uint64_t addr, uint64_t bytes)
{
    for (int i = 0; i < 2; i++) {
        struct mt_event event =
            twin_event(twin, beside, i ? MT_EVENT_FREE_COMPLETED : MT_EVENT_FREE_REQUESTED, heap);

        event.addr = addr;
        event.size_bytes = bytes;
        twin_add(twin, &event);
    }
}

/* Handle of the memory behind a page of PyTorch's. */
static inline uint64_t twin_handle(uint64_t page)
{
    return page >> 12 | 7;
}

/* Memory of others: where heaps have addresses of their own kind, those of
 * PyTorch's blocks. */
static inline void twin_outside(struct twin *twin, const struct mt_event *beside, int heap,
                                uint64_t bytes)
{
    struct twin_block block = {.heap = heap, .bytes = bytes, .device = beside->device};
    bool may_overlap = heap == TWIN_ARRAY || heap > TWIN_MAPPED;

    if (heap == TWIN_MAPPED || twin->live_count == TWIN_MAX_LIVE)
        return;
    twin->next_addr += 8 * MT_MIB;
    block.addr = may_overlap && beside->addr ? beside->addr : twin->next_addr;
    for (size_t i = 0; i < twin->live_count; i++)
        if (twin->live[i].addr == block.addr && twin->live[i].heap == heap)
            return;
    twin_alloc(twin, beside, heap, block.addr, bytes, 0);
    twin->live[twin->live_count++] = block;
    if (twin_counts(heap))
        twin->truth[block.device].outside += bytes;
    twin_note(&twin->truth[block.device]);
}

static inline void twin_before(struct twin *twin, const struct mt_event *event)
{
    struct twin_truth *truth = &twin->truth[event->device];

    if (event->kind == MT_EVENT_SEGMENT_ALLOC) {
        twin_alloc(twin, event, TWIN_DRIVER, event->addr, event->size_bytes, 0);
        truth->framework += event->size_bytes;
        twin_note(truth);
    }
    for (uint64_t page = event->addr;
         event->kind == MT_EVENT_SEGMENT_MAP && page < event->addr + event->size_bytes;
         page += TWIN_PAGE) {
        twin_alloc(twin, event, TWIN_VIRTUAL, twin_handle(page), TWIN_PAGE, 0);
        if (twin->names_memory && twin_below(twin, 4) == 0) /* who guesses is wrong */
            twin_outside(twin, event, TWIN_VIRTUAL, TWIN_PAGE);
        twin_alloc(twin, event, TWIN_MAPPED, page, TWIN_PAGE,
                   twin->names_memory ? twin_handle(page) : 0);
        truth->framework += TWIN_PAGE;
        twin_note(truth);
    }
}

static inline void twin_after(struct twin *twin, const struct mt_event *event)
{
    struct twin_truth *truth = &twin->truth[event->device];

    if (event->kind == MT_EVENT_SEGMENT_FREE) {
        twin_free(twin, event, TWIN_DRIVER, event->addr, event->size_bytes);
        truth->framework -= event->size_bytes;
    }
    for (uint64_t page = event->addr;
         event->kind == MT_EVENT_SEGMENT_UNMAP && page < event->addr + event->size_bytes;
         page += TWIN_PAGE) {
        twin_free(twin, event, TWIN_MAPPED, page, TWIN_PAGE);
        twin_free(twin, event, TWIN_VIRTUAL, twin_handle(page), TWIN_PAGE);
        truth->framework -= TWIN_PAGE;
    }
}

static inline void twin_sample(struct twin *twin, const struct mt_event *beside)
{
    struct mt_event event = twin_event(twin, beside, MT_EVENT_MEMORY_SAMPLE, TWIN_DRIVER);
    struct twin_truth *truth = &twin->truth[beside->device];
    int64_t residual = (int64_t)(500 * MT_MIB + twin_below(twin, MT_MIB));

    event.size_bytes = truth->outside + truth->framework + (uint64_t)residual;
    if (!truth->samples || residual < truth->least_residual)
        truth->least_residual = residual;
    if (!truth->samples || residual > truth->most_residual)
        truth->most_residual = residual;
    truth->samples++;
    twin_add(twin, &event);
}

static inline void twin_end_other(struct twin *twin, const struct mt_event *beside)
{
    struct mt_event place = *beside;

    if (!twin->live_count)
        return;
    size_t at = twin_below(twin, twin->live_count);
    struct twin_block block = twin->live[at];
    twin->live[at] = twin->live[--twin->live_count];
    place.device = block.device;
    twin_free(twin, &place, block.heap, block.addr, block.bytes);
    if (twin_counts(block.heap))
        twin->truth[block.device].outside -= block.bytes;
}

static inline void twin_anything(struct twin *twin, const struct mt_event *beside)
{
    struct mt_event event;

    switch (twin_below(twin, 12)) {
    case 0:
    case 1:
    case 2:
        twin_outside(twin, beside, (int)twin_below(twin, TWIN_HEAPS),
                     1 + twin_below(twin, 4 * MT_MIB));
        break;
    case 3:
    case 4: twin_end_other(twin, beside); break;
    case 5: twin_sample(twin, beside); break;
    case 6:
        event = twin_event(twin, beside, MT_EVENT_ALLOC_FAILED, TWIN_DRIVER);
        event.size_bytes = MT_GIB;
        twin->truth[beside->device].failures++;
        twin_add(twin, &event);
        break;
    case 7:
        event = twin_event(twin, beside, MT_EVENT_EMPTY_CACHE, TWIN_USER);
        twin_add(twin, &event);
        break;
    default: break;
    }
}

/* `base`: events of a snapshot whose numbers are multiples of TWIN_STEP. Fills
 * twin->events; the symbols get the heaps. */
static inline void twin_make(struct twin *twin, struct mt_symbols *symbols,
                             const struct mt_event *base, size_t count, uint64_t seed,
                             bool names_memory)
{
    memset(twin, 0, sizeof *twin);
    twin->symbols = symbols;
    twin->seed = seed;
    twin->names_memory = names_memory;
    twin->next_addr = TWIN_OTHER;
    for (int i = 0; i < TWIN_HEAPS; i++) {
        uint32_t name, heap;

        if (mt_symbols_string(symbols, twin_names[i], strlen(twin_names[i]), &name) ||
            mt_symbols_heap(symbols, name, &heap))
            abort();
        twin->heaps[i] = (uint16_t)heap;
    }
    for (int i = 0; i < TWIN_DEVICES; i++)
        twin->truth[i].outside_at = calloc(count + 1, sizeof(uint64_t));
    for (size_t i = 0; i < count; i++) {
        twin->next_seq = i ? base[i].seq - TWIN_STEP / 2 : 0;
        if (base[i].device < TWIN_DEVICES && i)
            twin_anything(twin, &base[i]);
        if (base[i].device < TWIN_DEVICES)
            twin_before(twin, &base[i]);
        twin_add(twin, &base[i]);
        for (int d = 0; d < TWIN_DEVICES; d++)
            twin->truth[d].outside_at[i] = twin->truth[d].outside;
        twin->next_seq = base[i].seq + 1;
        if (base[i].device < TWIN_DEVICES)
            twin_after(twin, &base[i]);
    }
}

static inline void twin_unmake(struct twin *twin)
{
    for (int i = 0; i < TWIN_DEVICES; i++)
        free(twin->truth[i].outside_at);
    free(twin->events);
}

/* Events as a trace in memory, malloc'd. */
static inline void *twin_written(const struct mt_trace_header *header,
                                 const struct mt_symbols *symbols, const struct mt_event *events,
                                 size_t count, size_t *length)
{
    FILE *file = tmpfile();
    struct mt_writer *writer = NULL;
    struct mt_error error = {0};

    if (!file || mt_writer_new(fileno(file), header, symbols, NULL, &writer, &error))
        abort();
    for (size_t i = 0; i < count; i++)
        if (mt_writer_add(writer, &events[i], &error))
            abort();
    if (mt_writer_finish(writer, &error))
        abort();
    mt_writer_free(writer);
    *length = (size_t)lseek(fileno(file), 0, SEEK_END);
    uint8_t *bytes = malloc(*length + 1);
    if (!bytes || pread(fileno(file), bytes, *length, 0) != (ssize_t)*length)
        abort();
    fclose(file);
    return bytes;
}

#endif
