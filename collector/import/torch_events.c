/* Records of a snapshot as events: the entries of all devices and the phases, merged by time. The
 * order within a list never changes. */
#include <string.h>

#include "torch.h"
#include "torch_missing.h"
#include "torch_tags.h"
#include "util.h"

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
    uint32_t i;

    for (i = 0; i < mt_torch_lanes(torch); i++) {
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

/* Makes the event for an entry. Returns false if there is none. An entry at which empty_cache
 * begins is passed twice: first for that mark. */
static bool entry_event(struct mt_torch *torch, const struct mt_torch_entry *entry, uint32_t device,
                        struct mt_event *event)
{
    if (mt_torch_is_host(torch, device))
        return host_event(torch, entry, event);
    if ((entry->flags & MT_TORCH_EMPTY_CACHE) && !torch->half_told) {
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
    const struct mt_torch_entry *entry;
    uint32_t device = 0;

    for (;;) {
        while (torch->next_annotation < torch->annotation_count &&
               !torch->annotations[torch->next_annotation].matched)
            torch->next_annotation++;
        if (torch->next_annotation < torch->annotation_count)
            annotation = &torch->annotations[torch->next_annotation];
        entry = earliest_entry(torch, &device);
        if (annotation && annotation_is_next(annotation, entry)) {
            torch->next_annotation++;
            *event = annotation_event(torch, annotation);
            return true;
        }
        if (!entry)
            return mt_torch_next_missing(torch, event);
        if (entry_event(torch, entry, device, event))
            return true;
    }
}

/* Until this time, only entries of `device` come next. */
static uint64_t others_begin_us(const struct mt_torch *torch, uint32_t device)
{
    uint64_t begin_us = UINT64_MAX;
    uint32_t i;

    if (torch->next_annotation < torch->annotation_count)
        begin_us = torch->annotations[torch->next_annotation].time_us;
    for (i = 0; i < mt_torch_lanes(torch); i++) {
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
    const struct mt_torch_device *d;
    const struct mt_torch_entry *entries;
    uint64_t before_us, seq = torch->next_seq;
    size_t i, count = 0;
    uint32_t device = 0;

    if (!earliest_entry(torch, &device))
        return 0;
    if (mt_torch_is_host(torch, device))
        return 0;
    d = &torch->devices[device];
    entries = torch->records.entries + d->first;
    before_us = others_begin_us(torch, device);
    i = torch->next_entry[device];
    while (count < room && i < d->count && entries[i].time_us < before_us &&
           entries[i].kind >= MT_EVENT_ALLOC && entries[i].kind <= MT_EVENT_OOM &&
           !(entries[i].flags & MT_TORCH_EMPTY_CACHE))
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
    size_t count;

    (void)error;
    count = next_initial(torch, torch->batch, MT_TORCH_BATCH_EVENTS);
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
