/* All events are made when the profile is opened: first the blocks that were alive before it began,
 * if their ends are in the profile, then regions, blocks and frees in order of time. */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "feed.h"
#include "grow.h"
#include "importers.h"
#include "map.h"
#include "source.h"
#include "util.h"
#include "xplane_read.h"

/* Infers the regions of an arena. A profile does not record them, but the rules of the arena
 * determine them: a block outside of all known regions is the first one of a new region, whose size
 * follows from the regions before it (xla/tsl/framework/bfc_allocator.cc, Extend). */

/* Enough for every arena, because the sizes of regions double. */
#define XPLANE_MAX_REGIONS 128

struct xplane_regions {
    bool preallocated; /* one region, as large as the limit */
    uint64_t limit_bytes;
    uint64_t next_bytes, pool_bytes;
    struct mt_xplane_region {
        uint64_t addr, size_bytes;
    } list[XPLANE_MAX_REGIONS];
    size_t count;
};

/* kMinAllocationSize, relative to the start of a region; the alignment of TensorFlow's regions of
 * host memory (Allocator::kAllocatorAlignment); and the first region of an arena that grows. */
enum { ALIGNMENT = 256, LEAST_ALIGNMENT = 64, FIRST_REGION = 2 * 1024 * 1024 };

static const uint64_t MAX_ADDRESS = (uint64_t)1 << 61;

static void xplane_regions_init(struct xplane_regions *regions, uint64_t limit_bytes,
                                bool preallocated)
{
    *regions = (struct xplane_regions){.preallocated = preallocated, .limit_bytes = limit_bytes};
    regions->next_bytes =
        mt_round_up(preallocated ? limit_bytes : mt_min_u64(limit_bytes, FIRST_REGION), ALIGNMENT);
}

/* Returns 0 if the limit leaves no room. */
static uint64_t size_of_next(struct xplane_regions *regions, uint64_t chunk_bytes)
{
    uint64_t room = mt_round_down(regions->limit_bytes - regions->pool_bytes, ALIGNMENT);
    bool increased = false;

    if (!chunk_bytes || chunk_bytes > room)
        return 0;
    while (chunk_bytes > regions->next_bytes) {
        regions->next_bytes *= 2;
        increased = true;
    }
    uint64_t bytes = mt_min_u64(regions->next_bytes, room);
    if (!increased && regions->next_bytes <= MAX_ADDRESS)
        regions->next_bytes *= 2;
    return bytes;
}

static bool overlaps(const struct mt_xplane_region *region, uint64_t addr, uint64_t bytes)
{
    return addr < region->addr + region->size_bytes && region->addr < addr + bytes;
}

static bool is_free_room(const struct xplane_regions *regions, uint64_t addr, uint64_t bytes)
{
    for (size_t i = 0; i < regions->count; i++)
        if (overlaps(&regions->list[i], addr, bytes))
            return false;
    return true;
}

/* Returns the region that the block touches, or NULL. */
static const struct mt_xplane_region *region_at(const struct xplane_regions *regions,
                                                const struct mt_xplane_record *record)
{
    for (size_t i = 0; i < regions->count; i++)
        if (overlaps(&regions->list[i], record->addr, record->chunk_bytes))
            return &regions->list[i];
    return NULL;
}

/* Adds an allocation, in order. Sets *added if the arena requested a new region, which is then the
 * last of the list. Returns false if no arena of this kind would have put the block at its address.
 * O(regions). */
static bool xplane_regions_add(struct xplane_regions *regions,
                               const struct mt_xplane_record *record, bool *added)
{
    const struct mt_xplane_region *region = region_at(regions, record);

    *added = false;
    if (record->addr > MAX_ADDRESS || record->addr % LEAST_ALIGNMENT ||
        record->chunk_bytes % ALIGNMENT)
        return false;
    if (region)
        return record->addr >= region->addr && (record->addr - region->addr) % ALIGNMENT == 0 &&
               record->addr + record->chunk_bytes <= region->addr + region->size_bytes;
    uint64_t bytes = size_of_next(regions, mt_round_up(record->requested_bytes, ALIGNMENT));
    if (bytes < record->chunk_bytes || regions->count == XPLANE_MAX_REGIONS ||
        !is_free_room(regions, record->addr, bytes))
        return false;
    regions->list[regions->count++] = (struct mt_xplane_region){record->addr, bytes};
    regions->pool_bytes += bytes;
    *added = true;
    return true;
}

enum { PIECE_BYTES = 256 * 1024, BATCH_EVENTS = 1024, DEVICES = 1024, UNKNOWN_ADDRESS = 256 };

/* How an arena allocates from the driver: more and more regions, or everything at once. */
enum { GROWING, PREALLOCATED, KINDS };

/* The known facts about the arena of one GPU. */
struct arena {
    uint64_t limit_bytes, start_bytes; /* start: in use before the first event */
    uint64_t lowest, highest;          /* addresses of its blocks */
    uint64_t in_use_bytes;             /* after the previous event */
    uint64_t initial_bytes;            /* part of start_bytes: blocks whose end is in the profile */
    bool seen;
    struct xplane_regions *regions; /* for each kind, the first region; NULL: unknown */
    bool explains[KINDS];           /* the kind explains the addresses of all blocks */
};

struct profile {
    struct mt_source source; /* first */
    struct mt_xplane_records records;
    struct arena *arenas; /* for each of the DEVICES */
    struct mt_event *events;
    size_t count, capacity, next;
    struct mt_event batch[BATCH_EVENTS];
    struct mt_buf settings;
    uint16_t heap;
    uint64_t begin_t_ns; /* Unix time of the profile's time 0 */
};

/* An XSpace begins with a plane. The plane begins with its number and its name, or with the
 * name. */
bool mt_xplane_probe(const void *bytes, size_t length)
{
    const uint8_t *at = bytes, *end = at + mt_min_u64(length, 32);

    if (length < 4 || *at++ != 0x0a)
        return false;
    while (at < end && *at >= 0x80)
        at++;
    if (at < end)
        at++;
    if (end - at > 2 && *at == 0x08) {
        for (at++; at < end && *at >= 0x80;)
            at++;
        if (at < end)
            at++;
    }
    return end - at > 2 && at[0] == 0x12 && at[1] > 0 && at[1] < 0x80 &&
           (at[2] == '/' || (at[2] >= 'A' && at[2] <= 'Z'));
}

static struct mt_event *add_event(struct profile *profile, const struct mt_xplane_record *record)
{
    if (mt_grow(&profile->events, &profile->capacity, profile->count + 1, sizeof *profile->events))
        return NULL;
    struct mt_event *event = &profile->events[profile->count];
    *event = (struct mt_event){.seq = profile->count++,
                               .t_ns = record->t_ns + profile->begin_t_ns,
                               .addr = record->addr,
                               .size_bytes = record->requested_bytes,
                               .stack = MT_NO_ID,
                               .name = MT_NO_ID,
                               .thread = record->thread,
                               .device = record->device,
                               .heap = profile->heap};
    return event;
}

/* The operation of TensorFlow replaces a stack. */
static enum mt_status stack_of(struct profile *profile, uint32_t operation, uint32_t *stack)
{
    struct mt_symbols *symbols = &profile->source.symbols;
    uint32_t frame;

    *stack = MT_NO_ID;
    if (operation == MT_NO_ID)
        return MT_OK;
    profile->source.header.has_stacks = true;
    if (mt_symbols_frame(symbols, operation, 0, 0, &frame))
        return MT_ERR_MEMORY;
    return mt_symbols_stack(symbols, MT_NO_ID, frame, stack);
}

static enum mt_status add_block(struct profile *profile, const struct mt_xplane_record *record,
                                uint8_t flags)
{
    struct mt_event *event = add_event(profile, record);

    if (!event)
        return MT_ERR_MEMORY;
    event->kind = MT_EVENT_ALLOC;
    event->flags = flags;
    event->aux_bytes = record->chunk_bytes;
    return stack_of(profile, record->operation, &event->stack);
}

static enum mt_status add_region(struct profile *profile, const struct mt_xplane_record *record,
                                 const struct mt_xplane_region *region)
{
    struct mt_event *event = add_event(profile, record);

    if (!event)
        return MT_ERR_MEMORY;
    event->kind = MT_EVENT_SEGMENT_ALLOC;
    event->addr = region->addr;
    event->size_bytes = region->size_bytes;
    return MT_OK;
}

static uint64_t key_of(const struct mt_xplane_record *record)
{
    return record->addr ^ mt_hash_u64(record->device);
}

/* Adds blocks whose end is in the profile and whose beginning is not. */
static enum mt_status add_ended(struct profile *profile)
{
    struct mt_xplane_records *records = &profile->records;
    struct mt_map alive = {0};
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < records->count && !status; i++) {
        const struct mt_xplane_record *record = &records->list[i];
        uint64_t *initial_bytes = &profile->arenas[record->device].initial_bytes;
        struct mt_xplane_record first = *record;

        if (!record->is_free) {
            status = mt_map_set(&alive, key_of(record), 1);
        } else if (mt_map_take(&alive, key_of(record)) == MT_MAP_NONE) {
            first.t_ns = records->list[0].t_ns;
            *initial_bytes = mt_add_most_u64(*initial_bytes, record->chunk_bytes);
            status = add_block(profile, &first, MT_EVENT_INITIAL);
        }
    }
    mt_map_release(&alive);
    return status;
}

/* Adds the other bytes that were in use when the profile began. Their sum is known, which makes the
 * levels correct; their blocks are unknown. They are one block, at an address that no arena
 * uses. */
static enum mt_status add_unknown(struct profile *profile, uint32_t device)
{
    const struct arena *arena = &profile->arenas[device];
    struct mt_xplane_record rest = {.t_ns = profile->records.list[0].t_ns,
                                    .addr = UNKNOWN_ADDRESS,
                                    .device = (uint16_t)device,
                                    .operation = MT_NO_ID};

    if (!arena->seen || arena->start_bytes <= arena->initial_bytes)
        return MT_OK;
    rest.requested_bytes = rest.chunk_bytes = arena->start_bytes - arena->initial_bytes;
    return add_block(profile, &rest, MT_EVENT_INITIAL);
}

static enum mt_status add_initial(struct profile *profile)
{
    enum mt_status status = add_ended(profile);

    for (uint32_t i = 0; i < DEVICES && !status && profile->records.count; i++)
        status = add_unknown(profile, i);
    return status;
}

static enum mt_status add_record(struct profile *profile, const struct mt_xplane_record *record)
{
    const struct arena *arena = &profile->arenas[record->device];
    enum mt_status status = MT_OK;
    bool added = false;

    if (record->is_free) {
        struct mt_event *event = add_event(profile, record);
        if (!event)
            return MT_ERR_MEMORY;
        event->kind = MT_EVENT_FREE_REQUESTED;
        return MT_OK;
    }
    if (arena->regions && xplane_regions_add(arena->regions, record, &added) && added)
        status = add_region(profile, record, &arena->regions->list[arena->regions->count - 1]);
    return status ? status : add_block(profile, record, 0);
}

/* Checks the bytes in use after an event against those before it. If they differ, events are
 * missing. */
static void follow_use(struct profile *profile, struct arena *arena,
                       const struct mt_xplane_record *record)
{
    uint64_t before = record->is_free ? record->in_use_bytes + record->chunk_bytes
                                      : record->in_use_bytes -
                                            mt_min_u64(record->in_use_bytes, record->chunk_bytes);

    if (!arena->seen)
        arena->start_bytes = before;
    else if (arena->in_use_bytes != before)
        profile->source.integrity.events_dropped++;
    arena->in_use_bytes = record->in_use_bytes;
    arena->seen = true;
}

static void look_at(struct profile *profile)
{
    for (size_t i = 0; i < profile->records.count; i++) {
        const struct mt_xplane_record *record = &profile->records.list[i];
        struct arena *arena = &profile->arenas[record->device];

        if (!arena->seen)
            arena->lowest = record->addr;
        follow_use(profile, arena, record);
        arena->limit_bytes = record->limit_bytes;
        arena->lowest = mt_min_u64(arena->lowest, record->addr);
        arena->highest = mt_max_u64(arena->highest, record->addr + record->chunk_bytes);
    }
}

/* Regions are only reported for an arena that was recorded since its first block. */
static enum mt_status begin_regions(struct arena *arena)
{
    if (!arena->seen || arena->start_bytes)
        return MT_OK;
    arena->regions = malloc(KINDS * sizeof *arena->regions);
    if (!arena->regions)
        return MT_ERR_MEMORY;
    for (int kind = 0; kind < KINDS; kind++) {
        xplane_regions_init(&arena->regions[kind], arena->limit_bytes, kind == PREALLOCATED);
        arena->explains[kind] = true;
    }
    return MT_OK;
}

/* Checks for each kind whether an arena of it would have placed all blocks at their addresses. One
 * walk handles all devices. */
static void try_kinds(struct profile *profile)
{
    bool added;

    for (size_t i = 0; i < profile->records.count; i++) {
        const struct mt_xplane_record *record = &profile->records.list[i];
        struct arena *arena = &profile->arenas[record->device];

        for (int kind = 0; kind < KINDS && arena->regions && !record->is_free; kind++)
            arena->explains[kind] =
                arena->explains[kind] && xplane_regions_add(&arena->regions[kind], record, &added);
    }
}

/* Returns whether the arena was preallocated. If so, its regions must be found again, together with
 * the blocks, by the rule of that kind. */
static bool choose_kind(struct arena *arena)
{
    bool preallocated = arena->highest - arena->lowest <= arena->limit_bytes;

    if (arena->regions && (arena->explains[GROWING] || arena->explains[PREALLOCATED])) {
        preallocated = !arena->explains[GROWING];
        xplane_regions_init(arena->regions, arena->limit_bytes, preallocated);
    } else {
        free(arena->regions);
        arena->regions = NULL;
    }
    return preallocated;
}

static void fill_header(struct profile *profile, bool preallocated)
{
    struct mt_trace_header *header = &profile->source.header;

    mt_buf_printf(&profile->settings, "policy=bfc:memory_fraction=1,preallocate=%s",
                  preallocated ? "True" : "False");
    header->framework = header->has_stacks ? "TensorFlow" : "XLA";
    header->sources = MT_SOURCES_XPLANE;
    header->settings = profile->settings.data;
    header->rank = header->world_size = -1;
    header->has_free_requested = true;
    header->start_t_ns = profile->count ? profile->events[0].t_ns : 0;
}

/* Names a device that the profile does not describe, or the host if the arena is in host memory. */
static enum mt_status name_device(struct profile *profile, uint32_t device)
{
    struct mt_symbols *symbols = &profile->source.symbols;
    uint32_t name = MT_NO_ID;

    if (profile->records.list[0].is_host &&
        mt_symbols_string(symbols, MT_HOST_MEMORY, strlen(MT_HOST_MEMORY), &name))
        return MT_ERR_MEMORY;
    return mt_symbols_device(symbols, device, name, 0);
}

static enum mt_status make_arenas(struct profile *profile)
{
    struct mt_trace_header *header = &profile->source.header;
    bool preallocated = true, has_segments = true;
    const size_t count = profile->records.count;
    enum mt_status status = MT_OK;

    /* profiles of older versions already have Unix times */
    if (count && profile->records.list[count - 1].t_ns < profile->records.start_t_ns)
        profile->begin_t_ns = profile->records.start_t_ns;
    look_at(profile);
    for (uint32_t i = 0; i < DEVICES && !status; i++)
        status = begin_regions(&profile->arenas[i]);
    if (!status)
        try_kinds(profile);
    for (uint32_t i = 0; i < DEVICES && !status; i++) {
        struct arena *arena = &profile->arenas[i];

        if (!arena->seen)
            continue;
        preallocated &= choose_kind(arena);
        has_segments &= arena->regions != NULL;
        header->starts_in_middle |= arena->start_bytes > 0;
        header->memory_limit_bytes = mt_max_u64(header->memory_limit_bytes, arena->limit_bytes);
        if (i >= profile->source.symbols.device_count)
            status = name_device(profile, i);
    }
    header->has_segments = has_segments && count;
    if (!status)
        status = add_initial(profile);
    for (size_t i = 0; i < count && !status; i++)
        status = add_record(profile, &profile->records.list[i]);
    fill_header(profile, preallocated);
    return status;
}

static enum mt_status next_batch(struct mt_source *source, struct mt_event_batch *batch,
                                 struct mt_error *error)
{
    struct profile *profile = (struct profile *)source;
    size_t left = profile->count - profile->next;

    (void)error;
    if (!left)
        return MT_END;
    batch->count = mt_min_u64(left, BATCH_EVENTS);
    batch->only_heap = 0;
    memcpy(profile->batch, profile->events + profile->next, batch->count * sizeof *profile->batch);
    batch->events = profile->batch;
    profile->next += batch->count;
    source->progress_bytes =
        (uint64_t)((double)source->input_bytes * (double)profile->next / (double)profile->count);
    return MT_OK;
}

static enum mt_status rewind_to_start(struct mt_source *source, struct mt_error *error)
{
    (void)error;
    ((struct profile *)source)->next = 0;
    source->progress_bytes = 0;
    return MT_OK;
}

static void close_profile(struct mt_source *source)
{
    struct profile *profile = (struct profile *)source;

    mt_xplane_records_release(&profile->records);
    for (uint32_t i = 0; profile->arenas && i < DEVICES; i++)
        free(profile->arenas[i].regions);
    free(profile->arenas);
    free(profile->events);
    mt_buf_release(&profile->settings);
    mt_symbols_release(&source->symbols);
    free(profile);
}

static enum mt_status prepare(struct profile *profile)
{
    static const struct mt_source_ops ops = {next_batch, rewind_to_start, NULL, close_profile,
                                             NULL};
    struct mt_symbols *symbols = &profile->source.symbols;
    uint32_t name, heap;

    profile->source.ops = &ops;
    profile->source.format = MT_SOURCES_XPLANE;
    profile->records.symbols = symbols;
    profile->arenas = calloc(DEVICES, sizeof *profile->arenas);
    if (!profile->arenas || mt_symbols_init(symbols) ||
        mt_symbols_string(symbols, "bfc", 3, &name) || mt_symbols_heap(symbols, name, &heap))
        return MT_ERR_MEMORY;
    profile->heap = (uint16_t)heap;
    return MT_OK;
}

static enum mt_status read_all(struct mt_feed *feed, struct mt_buf *bytes, struct mt_error *error)
{
    enum mt_status status = MT_OK;
    size_t got = 1;

    while (!status && got) {
        char *room = mt_buf_reserve(bytes, PIECE_BYTES);

        if (!room)
            return mt_fail_memory(error);
        status = mt_feed_read(feed, room, PIECE_BYTES, &got, error);
        bytes->length += got;
    }
    return status;
}

static enum mt_status read_profile(struct profile *profile, struct mt_feed *feed,
                                   struct mt_error *error)
{
    struct mt_buf bytes = {0};
    const uint8_t *at = NULL;
    enum mt_status status = read_all(feed, &bytes, error);
    struct mt_pb_bytes whole = {(const uint8_t *)bytes.data, bytes.length};

    if (!status) {
        status = mt_xplane_read(whole, &profile->records, &at);
        if (status == MT_ERR_FORMAT)
            (void)mt_fail(error, status, at ? (uint64_t)(at - whole.at) : 0,
                          "the profile is cut or damaged");
        else if (status)
            (void)mt_fail_memory(error);
    }
    profile->source.decoded_bytes = bytes.length;
    profile->source.input_bytes = mt_feed_raw_bytes(feed);
    mt_buf_release(&bytes);
    return status;
}

enum mt_status mt_xplane_open(struct mt_feed *feed, struct mt_source **source,
                              struct mt_error *error)
{
    struct profile *profile = calloc(1, sizeof *profile);

    if (!profile)
        return mt_fail_memory(error);
    enum mt_status status =
        prepare(profile) ? mt_fail_memory(error) : read_profile(profile, feed, error);
    if (!status && make_arenas(profile))
        status = mt_fail_memory(error);
    if (!status && profile->settings.failed)
        status = mt_fail_memory(error);
    if (!status && !profile->count)
        status = mt_fail(
            error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
            "the profile has no memory events of a GPU: XLA and TensorFlow write them only with "
            "host_tracer_level 2 and with their own arena");
    if (status) {
        close_profile(&profile->source);
        return status;
    }
    profile->source.integrity.closed = true;
    profile->source.integrity.events_invalid = profile->records.invalid;
    mt_xplane_records_release(&profile->records);
    *source = &profile->source;
    return MT_OK;
}
