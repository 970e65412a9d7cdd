/* Records of a snapshot as events: the entries of all devices and the phases, merged by time. The
 * order within a list never changes. */
#include <stdio.h>
#include <string.h>

#include "event.h"
#include "torch.h"
#include "torch_events.h"
#include "torch_names.h"
#include "util.h"

/* The state of an address according to the history so far. */
enum { GONE, ALIVE, ACCOUNTED };

/* Blocks or segments that are allocated and freed. */
struct walk {
    struct mt_map state; /* by address */
    uint64_t taken_missing, given_missing;
    uint64_t alive;
};

static enum mt_status take(struct walk *walk, uint64_t addr)
{
    if (mt_map_get(&walk->state, addr) == ALIVE)
        walk->given_missing++;
    else
        walk->alive++;
    return mt_map_set(&walk->state, addr, ALIVE);
}

static enum mt_status give(struct walk *walk, uint64_t addr)
{
    uint32_t was = mt_map_get(&walk->state, addr);

    if (was == GONE)
        walk->taken_missing++;
    walk->alive -= was == ALIVE;
    return mt_map_set(&walk->state, addr, GONE);
}

/* The block or segment exists at the end. */
static enum mt_status account(struct walk *walk, uint64_t addr)
{
    uint32_t was = mt_map_get(&walk->state, addr);

    if (was == GONE)
        walk->taken_missing++;
    walk->alive -= was == ALIVE;
    return was == MT_MAP_NONE ? MT_OK : mt_map_set(&walk->state, addr, ACCOUNTED);
}

/* An empty list of segments does not show which entries are missing, since some writers do not fill
 * it. A claim of exactness is compared with it nevertheless (add_ends). */
static void note(struct mt_torch *torch, const struct mt_torch_device *device,
                 const struct walk *walk, uint8_t taken, uint8_t given)
{
    torch->missing[taken] += walk->taken_missing;
    torch->missing[given] += walk->given_missing;
    if (device->segment_count)
        torch->missing[given] += walk->alive;
}

/* Walks over the entries of two kinds, one that begins and one that ends a block or segment. */
static enum mt_status walk_entries(const struct mt_torch *torch,
                                   const struct mt_torch_device *device, struct walk *walk,
                                   uint8_t taken, uint8_t given)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < device->count && !status; i++) {
        const struct mt_torch_entry *entry = &torch->records.entries[device->first + i];

        if (entry->kind == taken)
            status = take(walk, entry->addr);
        else if (entry->kind == given)
            status = give(walk, entry->addr);
    }
    return status;
}

/* `given`: the kind of entry that ends a block. */
static enum mt_status walk_blocks(struct mt_torch *torch, const struct mt_torch_device *device,
                                  uint8_t given)
{
    struct walk walk = {.alive = 0};
    enum mt_status status = walk_entries(torch, device, &walk, MT_EVENT_ALLOC, given);

    for (size_t i = 0; i < device->segment_count && !status; i++) {
        const struct mt_torch_segment *segment = &torch->segments[device->first_segment + i];

        for (size_t j = 0; j < segment->block_count && !status; j++) {
            const struct mt_torch_block *block = &torch->records.blocks[segment->first_block + j];
            if (block->state != MT_TORCH_INACTIVE)
                status = account(&walk, block->addr);
        }
    }
    note(torch, device, &walk, MT_EVENT_ALLOC, given);
    mt_map_release(&walk.state);
    return status;
}

/* Segments that are allocated as a whole; expandable ones are mapped in pieces. A segment that was
 * never mentioned existed at the start, unless nothing was alive then and PyTorch has the stack of
 * its allocation, which shows that PyTorch was recording. */
static enum mt_status walk_segments(struct mt_torch *torch, const struct mt_torch_device *device,
                                    bool starts_empty)
{
    struct walk walk = {.alive = 0};
    enum mt_status status =
        walk_entries(torch, device, &walk, MT_EVENT_SEGMENT_ALLOC, MT_EVENT_SEGMENT_FREE);

    for (size_t i = 0; i < device->segment_count && !status; i++) {
        const struct mt_torch_segment *segment = &torch->segments[device->first_segment + i];

        if (segment->expandable)
            continue;
        if (starts_empty && segment->stack != MT_NO_ID &&
            mt_map_get(&walk.state, segment->addr) == MT_MAP_NONE)
            walk.taken_missing++;
        status = account(&walk, segment->addr);
    }
    note(torch, device, &walk, MT_EVENT_SEGMENT_ALLOC, MT_EVENT_SEGMENT_FREE);
    mt_map_release(&walk.state);
    return status;
}

/* Adds the addresses of the blocks that wait at the end. */
static enum mt_status add_waiting(const struct mt_torch *torch,
                                  const struct mt_torch_device *device, struct mt_map *waiting)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < device->segment_count; i++) {
        const struct mt_torch_segment *segment = &torch->segments[device->first_segment + i];

        for (size_t j = 0; j < segment->block_count && !status; j++) {
            const struct mt_torch_block *block = &torch->records.blocks[segment->first_block + j];
            if (block->state == MT_TORCH_PENDING)
                status = mt_map_set(waiting, block->addr, ALIVE);
        }
    }
    return status;
}

/* Whether blocks wait at the end, and all those whose free was requested. */
static enum mt_status find_waiting(const struct mt_torch *torch,
                                   const struct mt_torch_device *device, bool *some, bool *all)
{
    struct mt_map waiting = {0};
    enum mt_status status = add_waiting(torch, device, &waiting);

    *some |= waiting.count > 0;
    for (size_t i = 0; i < device->count && *all && !status; i++) {
        const struct mt_torch_entry *entry = &torch->records.entries[device->first + i];

        if (entry->kind == MT_EVENT_FREE_REQUESTED)
            *all = mt_map_take(&waiting, entry->addr) == ALIVE;
    }
    mt_map_release(&waiting);
    return status;
}

/* The oldest entry of a history may be the second half of a free whose first half a ring buffer
 * overwrote. */
static bool begins_in_a_free(const struct mt_torch *torch, const struct mt_torch_device *device)
{
    return device->count && torch->records.entries[device->first].kind == MT_EVENT_FREE_COMPLETED;
}

/* `halves`: the number of devices that begin in a free. */
static bool requests_were_recorded(size_t requested, size_t completed, size_t halves)
{
    return requested || (completed && completed == halves);
}

enum mt_status mt_torch_find_frees(struct mt_torch *torch, const size_t *of_kind)
{
    struct mt_trace_header *header = &torch->source.header;
    bool some_wait = false, all_wait = true;
    enum mt_status status = MT_OK;
    size_t halves = 0;

    for (uint32_t i = 0; i < torch->device_count; i++)
        halves += begins_in_a_free(torch, &torch->devices[i]);
    header->has_free_requested = requests_were_recorded(of_kind[MT_EVENT_FREE_REQUESTED],
                                                        of_kind[MT_EVENT_FREE_COMPLETED], halves);
    header->has_free_completed = of_kind[MT_EVENT_FREE_COMPLETED] > 0;
    if (header->has_free_completed)
        return MT_OK;
    for (uint32_t i = 0; i < torch->device_count && !status; i++)
        status = find_waiting(torch, &torch->devices[i], &some_wait, &all_wait);
    header->has_free_completed = some_wait && all_wait;
    return status;
}

bool mt_torch_frees_are_requested(const struct mt_torch *torch, uint32_t device)
{
    const size_t *of_kind = torch->devices[device].of_kind;

    if (!mt_torch_is_host(torch, device))
        return torch->source.header.has_free_requested;
    return requests_were_recorded(of_kind[MT_EVENT_FREE_REQUESTED],
                                  of_kind[MT_EVENT_FREE_COMPLETED],
                                  begins_in_a_free(torch, &torch->devices[device]));
}

uint8_t mt_torch_end_kind(const struct mt_torch *torch, uint32_t device)
{
    bool completed = torch->source.header.has_free_completed;

    if (mt_torch_is_host(torch, device))
        completed = torch->devices[device].of_kind[MT_EVENT_FREE_COMPLETED] > 0;
    return mt_torch_frees_are_requested(torch, device) && !completed ? MT_EVENT_FREE_REQUESTED
                                                                     : MT_EVENT_FREE_COMPLETED;
}

enum mt_status mt_torch_find_missing(struct mt_torch *torch, uint32_t device, bool starts_empty)
{
    const struct mt_torch_device *d = &torch->devices[device];
    uint8_t end_kind = mt_torch_end_kind(torch, device);

    if (torch->is_profile)
        return MT_OK;
    if (!mt_torch_frees_are_requested(torch, device)) /* completed frees were requested */
        torch->missing[MT_EVENT_FREE_REQUESTED] +=
            d->of_kind[MT_EVENT_FREE_COMPLETED] - begins_in_a_free(torch, d);
    if (end_kind == MT_EVENT_FREE_REQUESTED)
        torch->missing[MT_EVENT_FREE_COMPLETED] += d->of_kind[MT_EVENT_FREE_REQUESTED];
    if (d->complete || !d->count || !torch->has_segments)
        return MT_OK;
    enum mt_status status = walk_blocks(torch, d, end_kind);
    return status ? status : walk_segments(torch, d, starts_empty);
}

enum mt_status mt_torch_name_missing(struct mt_torch *torch)
{
    struct mt_symbols *symbols = &torch->source.symbols;
    enum mt_status status = MT_OK;

    for (uint8_t kind = MT_EVENT_ALLOC; kind <= MT_EVENT_SEGMENT_FREE && !status; kind++) {
        char text[64];

        if (!torch->missing[kind])
            continue;
        snprintf(text, sizeof text, "%s entries missing from the history",
                 mt_event_kind_name(kind));
        status = mt_symbols_string(symbols, text, strlen(text), &torch->missing_names[kind]);
        torch->source.integrity.events_dropped += torch->missing[kind];
    }
    return status;
}

/* Sets *event to the next event that reports a number of missing entries; returns false after the
 * last. These events follow all others. */
static bool torch_next_missing(struct mt_torch *torch, struct mt_event *event)
{
    while (torch->next_missing <= MT_EVENT_SEGMENT_FREE) {
        uint8_t kind = torch->next_missing++;

        if (!torch->missing[kind])
            continue;
        *event = (struct mt_event){.seq = torch->next_seq++,
                                   .t_ns = torch->latest_ns,
                                   .size_bytes = torch->missing[kind],
                                   .stack = MT_NO_ID,
                                   .name = torch->missing_names[kind],
                                   .kind = MT_EVENT_DROPPED};
        return true;
    }
    return false;
}

static struct mt_event blank_event(struct mt_torch *torch, uint64_t time_us)
{
    return (struct mt_event){
        .seq = torch->next_seq++, .t_ns = time_us * 1000, .stack = MT_NO_ID, .name = MT_NO_ID};
}

static struct mt_event annotation_event(struct mt_torch *torch,
                                        const struct mt_torch_annotation *annotation)
{
    struct mt_event event = blank_event(torch, annotation->time_us);

    event.kind = annotation->end ? MT_EVENT_PHASE_POP : MT_EVENT_PHASE_PUSH;
    event.name = annotation->name;
    event.device = annotation->device;
    return event;
}

/* The purpose of the block, if the file has it. */
static inline uint32_t name_of(const struct mt_torch *torch, const struct mt_torch_entry *entry)
{
    uint32_t tag = 0;

    if (entry->category)
        return torch->records.categories[entry->category];
    if (torch->records.tag_count && entry->kind == MT_EVENT_ALLOC)
        tag = mt_torch_tag(&torch->records, (size_t)(entry - torch->records.entries));
    return tag ? tag : MT_NO_ID;
}

/* Whether the next two entries allocate where this block ends, and free this block: PyTorch does so
 * if the address that the program chose is within a free block. */
static bool is_gap(const struct mt_torch *torch, const struct mt_torch_entry *entry,
                   uint32_t device)
{
    const struct mt_torch_device *d = &torch->devices[device];
    size_t index = (size_t)(entry - torch->records.entries);

    return index >= d->first && index - d->first + 2 < d->count &&
           entry[1].kind == MT_EVENT_ALLOC && (entry[1].flags & MT_TORCH_AT_ADDRESS) &&
           entry[1].addr == entry->addr + entry->size_bytes &&
           entry[2].kind == MT_EVENT_FREE_REQUESTED && entry[2].addr == entry->addr;
}

/* Stores every field in place, exactly once: this is the inner loop of reading a snapshot. */
static inline void put_memory_event(struct mt_event *event, const struct mt_torch *torch,
                                    const struct mt_torch_entry *entry, uint32_t device,
                                    uint64_t seq)
{
    bool oom = entry->kind == MT_EVENT_OOM;
    bool maps = entry->kind == MT_EVENT_SEGMENT_MAP || entry->kind == MT_EVENT_SEGMENT_UNMAP;

    event->seq = seq;
    event->t_ns = (uint64_t)entry->time_us * 1000;
    event->addr = oom ? 0 : entry->addr;
    event->size_bytes = entry->size_bytes;
    event->aux_bytes = oom ? entry->addr : 0;
    event->stack = entry->stack;
    event->name = name_of(torch, entry);
    event->stream = entry->stream;
    event->thread = 0;
    event->device = (uint16_t)device;
    event->heap = torch->heap;
    event->pool = entry->pool;
    event->kind = entry->kind;
    event->flags = maps ? MT_EVENT_EXPANDABLE : 0;
    if (entry->kind == MT_EVENT_ALLOC && (entry->flags & MT_TORCH_AT_ADDRESS))
        event->flags = is_gap(torch, entry, device) ? MT_EVENT_GAP : MT_EVENT_AT_ADDRESS;
    event->reserved[0] = event->reserved[1] = 0;
}

static struct mt_event empty_cache_event(struct mt_torch *torch, const struct mt_torch_entry *entry,
                                         uint32_t device)
{
    struct mt_event event = blank_event(torch, entry->time_us);

    event.kind = MT_EVENT_EMPTY_CACHE;
    event.stack = entry->stack;
    event.device = (uint16_t)device;
    event.heap = torch->heap;
    return event;
}

static struct mt_event inline_phase_event(struct mt_torch *torch,
                                          const struct mt_torch_entry *entry, uint32_t device)
{
    struct mt_event event = blank_event(torch, entry->time_us);

    event.kind = entry->kind;
    event.name = (uint32_t)entry->addr;
    event.device = (uint16_t)device;
    return event;
}

static const struct mt_torch_entry *head_of(const struct mt_torch *torch, uint32_t device)
{
    const struct mt_torch_device *d = &torch->devices[device];

    if (torch->next_entry[device] == d->count)
        return NULL;
    return &torch->records.entries[d->first + torch->next_entry[device]];
}

/* Finds the device whose next entry is the earliest; the first one of several. */
static const struct mt_torch_entry *earliest_entry(const struct mt_torch *torch, uint32_t *device)
{
    const struct mt_torch_entry *earliest = NULL;

    for (uint32_t i = 0; i < mt_torch_lanes(torch); i++) {
        const struct mt_torch_entry *head = head_of(torch, i);
        if (head && (!earliest || head->time_us < earliest->time_us)) {
            earliest = head;
            *device = i;
        }
    }
    return earliest;
}

/* Within one microsecond a phase begins before the entries and ends after them. */
static bool annotation_is_next(const struct mt_torch_annotation *annotation,
                               const struct mt_torch_entry *entry)
{
    if (!entry)
        return true;
    return annotation->end ? annotation->time_us < entry->time_us
                           : annotation->time_us <= entry->time_us;
}

/* Pinned memory belongs to the driver, and the part that tensors use to the host allocator. Its
 * blocks are never split, so each segment is a block. Returning memory to the driver takes two
 * events: the request and its completion. */
static bool host_event(struct mt_torch *torch, const struct mt_torch_entry *entry,
                       struct mt_event *event)
{
    bool is_back = entry->kind == MT_EVENT_SEGMENT_FREE;
    bool is_segment = is_back || entry->kind == MT_EVENT_SEGMENT_ALLOC;
    uint8_t kind = entry->kind;

    if (is_segment)
        kind = !is_back           ? MT_EVENT_ALLOC
               : torch->half_told ? MT_EVENT_FREE_COMPLETED
                                  : MT_EVENT_FREE_REQUESTED;
    torch->half_told = is_back && !torch->half_told;
    torch->next_entry[torch->device_count] += !torch->half_told;
    if (kind < MT_EVENT_ALLOC || kind > MT_EVENT_FREE_COMPLETED)
        return false;
    put_memory_event(event, torch, entry, 0, torch->next_seq++);
    event->kind = kind;
    event->heap = is_segment ? torch->pinned_heap : torch->host_heap;
    return true;
}

static inline bool begins_flush(const struct mt_torch_entry *entry)
{
    return (entry->flags & MT_TORCH_EMPTY_CACHE) && entry->kind != MT_EVENT_ALLOC;
}

/* Makes the event for an entry. Returns false if there is none. An entry at which empty_cache
 * begins is passed twice: first for that mark. */
static bool entry_event(struct mt_torch *torch, const struct mt_torch_entry *entry, uint32_t device,
                        struct mt_event *event)
{
    if (mt_torch_is_host(torch, device))
        return host_event(torch, entry, event);
    if (begins_flush(entry) && !torch->half_told) {
        torch->half_told = true;
        *event = empty_cache_event(torch, entry, device);
        return true;
    }
    torch->half_told = false;
    torch->next_entry[device]++;
    if (entry->kind >= MT_EVENT_ALLOC && entry->kind <= MT_EVENT_OOM)
        put_memory_event(event, torch, entry, device, torch->next_seq++);
    else if (entry->kind == MT_EVENT_PHASE_PUSH || entry->kind == MT_EVENT_PHASE_POP)
        *event = inline_phase_event(torch, entry, device);
    else
        return false;
    return true;
}

/* Gets the next event in the total order. Returns false at the end. */
static bool next_event(struct mt_torch *torch, struct mt_event *event)
{
    const struct mt_torch_annotation *annotation = NULL;
    uint32_t device = 0;

    for (;;) {
        while (torch->next_annotation < torch->annotation_count &&
               !torch->annotations[torch->next_annotation].matched)
            torch->next_annotation++;
        if (torch->next_annotation < torch->annotation_count)
            annotation = &torch->annotations[torch->next_annotation];
        const struct mt_torch_entry *entry = earliest_entry(torch, &device);
        if (annotation && annotation_is_next(annotation, entry)) {
            torch->next_annotation++;
            *event = annotation_event(torch, annotation);
            return true;
        }
        if (!entry)
            return torch_next_missing(torch, event);
        if (entry_event(torch, entry, device, event))
            return true;
    }
}

/* Until this time, only entries of `device` come next. */
static uint64_t others_begin_us(const struct mt_torch *torch, uint32_t device)
{
    uint64_t begin_us = UINT64_MAX;

    if (torch->next_annotation < torch->annotation_count)
        begin_us = torch->annotations[torch->next_annotation].time_us;
    for (uint32_t i = 0; i < mt_torch_lanes(torch); i++) {
        const struct mt_torch_entry *head = i == device ? NULL : head_of(torch, i);
        if (head)
            begin_us = mt_min_u64(begin_us, head->time_us);
    }
    return begin_us;
}

/* speed only: consecutive entries of one device, until another event may come. Makes the same
 * events as next_event. */
static size_t next_entries(struct mt_torch *torch, struct mt_event *events, size_t room)
{
    uint64_t seq = torch->next_seq;
    size_t count = 0;
    uint32_t device = 0;

    if (!earliest_entry(torch, &device))
        return 0;
    if (mt_torch_is_host(torch, device))
        return 0;
    const struct mt_torch_device *d = &torch->devices[device];
    const struct mt_torch_entry *entries = torch->records.entries + d->first;
    uint64_t before_us = others_begin_us(torch, device);
    size_t i = torch->next_entry[device];
    while (count < room && i < d->count && entries[i].time_us < before_us &&
           entries[i].kind >= MT_EVENT_ALLOC && entries[i].kind <= MT_EVENT_OOM &&
           !begins_flush(&entries[i]))
        put_memory_event(&events[count++], torch, &entries[i++], device, seq++);
    torch->next_entry[device] = i;
    torch->next_seq = seq;
    return count;
}

static size_t next_initial(struct mt_torch *torch, struct mt_event *events, size_t room)
{
    size_t count = 0;

    while (count < room && torch->next_initial < torch->initial_count) {
        events[count] = torch->initial[torch->next_initial++];
        events[count].seq = torch->next_seq++;
        events[count++].t_ns = torch->source.header.start_t_ns;
    }
    return count;
}

/* Entries are nearly all events, so their share is that of the events. */
static void note_progress(struct mt_torch *torch)
{
    uint64_t passed = 0, all = 0;

    for (uint32_t i = 0; i < mt_torch_lanes(torch); i++) {
        passed += torch->next_entry[i];
        all += torch->devices[i].count;
    }
    if (all)
        torch->source.progress_bytes =
            (uint64_t)((double)torch->source.input_bytes * (double)passed / (double)all);
}

enum mt_status mt_torch_next(struct mt_source *source, struct mt_event_batch *batch,
                             struct mt_error *error)
{
    struct mt_torch *torch = (struct mt_torch *)source;

    (void)error;
    size_t count = next_initial(torch, torch->batch, MT_TORCH_BATCH_EVENTS);
    while (count < MT_TORCH_BATCH_EVENTS) {
        count += next_entries(torch, torch->batch + count, MT_TORCH_BATCH_EVENTS - count);
        if (count == MT_TORCH_BATCH_EVENTS || !next_event(torch, &torch->batch[count]))
            break;
        count++;
    }
    source->integrity.events_read = mt_max_u64(source->integrity.events_read, torch->next_seq);
    note_progress(torch);
    batch->events = torch->batch;
    batch->count = count;
    batch->only_heap = torch->has_host ? 0 : torch->heap + 1u;
    return count ? MT_OK : MT_END;
}

enum mt_status mt_torch_rewind(struct mt_source *source, struct mt_error *error)
{
    struct mt_torch *torch = (struct mt_torch *)source;

    (void)error;
    memset(torch->next_entry, 0, mt_torch_lanes(torch) * sizeof *torch->next_entry);
    torch->next_initial = torch->next_annotation = 0;
    torch->next_seq = 0;
    torch->next_missing = 0;
    torch->half_told = false;
    source->progress_bytes = 0;
    return MT_OK;
}
