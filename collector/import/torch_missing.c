#include "torch_missing.h"

#include <stdio.h>
#include <string.h>

#include "event.h"

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

/* `given`: the kind of entry that ends a block. */
static enum mt_status walk_blocks(struct mt_torch *torch, const struct mt_torch_device *device,
                                  uint8_t given)
{
    struct walk walk = {.alive = 0};
    enum mt_status status = MT_OK;
    size_t i, j;

    for (i = 0; i < device->count && !status; i++) {
        const struct mt_torch_entry *entry = &torch->records.entries[device->first + i];

        if (entry->kind == MT_EVENT_ALLOC)
            status = take(&walk, entry->addr);
        else if (entry->kind == given)
            status = give(&walk, entry->addr);
    }
    for (i = 0; i < device->segment_count && !status; i++) {
        const struct mt_torch_segment *segment = &torch->segments[device->first_segment + i];

        for (j = 0; j < segment->block_count && !status; j++) {
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
    enum mt_status status = MT_OK;
    size_t i;

    for (i = 0; i < device->count && !status; i++) {
        const struct mt_torch_entry *entry = &torch->records.entries[device->first + i];

        if (entry->kind == MT_EVENT_SEGMENT_ALLOC)
            status = take(&walk, entry->addr);
        else if (entry->kind == MT_EVENT_SEGMENT_FREE)
            status = give(&walk, entry->addr);
    }
    for (i = 0; i < device->segment_count && !status; i++) {
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

static void count_kinds(const struct mt_torch *torch, uint32_t device, uint64_t of_kind[256])
{
    const struct mt_torch_device *d = &torch->devices[device];

    for (size_t i = 0; i < d->count; i++)
        of_kind[torch->records.entries[d->first + i].kind]++;
}

/* Adds the addresses of the blocks that wait at the end. */
static enum mt_status add_waiting(const struct mt_torch *torch,
                                  const struct mt_torch_device *device, struct mt_map *waiting)
{
    enum mt_status status = MT_OK;
    size_t i, j;

    for (i = 0; i < device->segment_count; i++) {
        const struct mt_torch_segment *segment = &torch->segments[device->first_segment + i];

        for (j = 0; j < segment->block_count && !status; j++) {
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

enum mt_status mt_torch_find_frees(struct mt_torch *torch, const size_t of_kind[256])
{
    struct mt_trace_header *header = &torch->source.header;
    bool some_wait = false, all_wait = true;
    enum mt_status status = MT_OK;

    header->has_free_requested = of_kind[MT_EVENT_FREE_REQUESTED] > 0;
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
    uint64_t of_kind[256] = {0};

    if (!mt_torch_is_host(torch, device))
        return torch->source.header.has_free_requested;
    count_kinds(torch, device, of_kind);
    return of_kind[MT_EVENT_FREE_REQUESTED] > 0;
}

uint8_t mt_torch_end_kind(const struct mt_torch *torch, uint32_t device)
{
    bool completed = torch->source.header.has_free_completed;
    uint64_t of_kind[256] = {0};

    if (mt_torch_is_host(torch, device)) {
        count_kinds(torch, device, of_kind);
        completed = of_kind[MT_EVENT_FREE_COMPLETED] > 0;
    }
    return mt_torch_frees_are_requested(torch, device) && !completed ? MT_EVENT_FREE_REQUESTED
                                                                     : MT_EVENT_FREE_COMPLETED;
}

enum mt_status mt_torch_find_missing(struct mt_torch *torch, uint32_t device, bool starts_empty)
{
    const struct mt_torch_device *d = &torch->devices[device];
    uint64_t of_kind[256] = {0};
    uint8_t end_kind = mt_torch_end_kind(torch, device);
    enum mt_status status;

    if (torch->is_profile)
        return MT_OK;
    count_kinds(torch, device, of_kind);
    if (!mt_torch_frees_are_requested(torch, device)) /* completed frees were requested */
        torch->missing[MT_EVENT_FREE_REQUESTED] += of_kind[MT_EVENT_FREE_COMPLETED];
    if (end_kind == MT_EVENT_FREE_REQUESTED)
        torch->missing[MT_EVENT_FREE_COMPLETED] += of_kind[MT_EVENT_FREE_REQUESTED];
    if (d->complete || !d->count || !torch->has_segments)
        return MT_OK;
    status = walk_blocks(torch, d, end_kind);
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

bool mt_torch_next_missing(struct mt_torch *torch, struct mt_event *event)
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
