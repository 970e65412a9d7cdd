/* Every event has the totals of its device after it. They give the bytes that were in use before
 * the first event, the order of events of equal times, and show where events are missing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "feed.h"
#include "grow.h"
#include "importers.h"
#include "kineto_read.h"
#include "made_trace.h"
#include "map.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

enum {
    DEVICES = 1024,
    TOLD_DEVICES = 64,     /* those of which the header has a line */
    EQUAL_TIMES = 64,      /* events of one time that may change places */
    UNKNOWN_ADDRESS = 512, /* of the block whose place is unknown: no allocator uses it */
    MAX_THREADS = UINT16_MAX
};

struct device {
    bool is_seen, has_totals;
    uint64_t allocated_bytes; /* after the previous event, as the file has it */
    uint64_t start_bytes;     /* in use before the first event */
    uint64_t initial_bytes;   /* part of start_bytes: blocks whose free is in the file */
    uint64_t start_reserved_bytes, reserved_bytes, most_reserved_bytes, reserved_changes;
    uint64_t most_allocated_bytes, gaps;
};

/* The start or the end of a named range, in the order of the trace. */
struct mark {
    uint64_t t_ns;
    uint32_t group; /* ends before starts; a range without a length ends after the memory events */
    uint32_t order;
    uint64_t nesting;
    const struct mt_kineto_range *range;
};
enum { ENDS, STARTS, ENDS_AT_ONCE };

struct making {
    struct mt_kineto profile;
    struct mt_made_trace made;
    struct device *devices;
    struct mt_map alive; /* address and device -> index of the instant */
    uint32_t *initial;   /* instants that free a block of before */
    size_t initial_count, initial_capacity;
    struct mark *marks;
    size_t mark_count, mark_capacity;
    struct mt_buf not_used;
    uint32_t gap_name, rest_name, heap;
    uint8_t device_type; /* of the events that are used */
    uint64_t host_events, other_events, first_other_type;
};

static enum mt_status no_memory(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
}

bool mt_kineto_probe(const void *bytes, size_t length)
{
    static const char *const keys[] = {"\"traceEvents\"", "\"schemaVersion\"",
                                       "\"deviceProperties\"", "\"distributedInfo\""};
    const char *at = bytes, *end = at + length;

    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    for (size_t i = 0; at < end && *at == '{' && i < MT_ARRAY_LEN(keys); i++)
        if (memmem(at, (size_t)(end - at), keys[i], strlen(keys[i])))
            return true;
    return false;
}

/* The devices of one type: CUDA if there are events of it. Host memory only if there is no other
 * type. */
static uint8_t choose_type(const struct mt_kineto *profile)
{
    uint8_t type = MT_KINETO_HOST;

    for (size_t i = 0; i < profile->instant_count && type != MT_KINETO_CUDA; i++) {
        const struct mt_kineto_instant *instant = &profile->instants[i];

        if (instant->device_type == MT_KINETO_CUDA || type == MT_KINETO_HOST)
            type = instant->device_type;
    }
    return type;
}

static void leave_out_others(struct making *making)
{
    struct mt_kineto *profile = &making->profile;
    size_t kept = 0;

    making->device_type = choose_type(profile);
    for (size_t i = 0; i < profile->instant_count; i++) {
        const uint8_t type = profile->instants[i].device_type;

        if (type == making->device_type) {
            profile->instants[kept++] = profile->instants[i];
        } else if (type == MT_KINETO_HOST) {
            making->host_events++;
        } else {
            making->first_other_type = making->other_events ? making->first_other_type : type;
            making->other_events++;
        }
    }
    profile->instant_count = kept;
}

MT_DEFINE_ORDER(by_time, struct mt_kineto_instant,
                MT_ASCENDING(t_ns) || MT_ASCENDING(index) || MT_ASCENDING(order))

/* Whether the total after the event follows from the total before it. */
static bool follows(const struct device *device, const struct mt_kineto_instant *instant)
{
    return !device->is_seen || !device->has_totals || instant->allocated_bytes == MT_NOT_COUNTED ||
           device->allocated_bytes + (uint64_t)instant->bytes == instant->allocated_bytes;
}

/* Threads report events of the same time in any order. Moves the one that follows to place `at`. */
static void order_equal_times(struct making *making, size_t at)
{
    struct mt_kineto_instant *instants = making->profile.instants, found;
    const struct device *device = &making->devices[instants[at].device];
    const size_t end = mt_min_u64(making->profile.instant_count, at + EQUAL_TIMES);
    size_t i = at;

    while (i < end && instants[i].t_ns == instants[at].t_ns &&
           (instants[i].device != instants[at].device || !follows(device, &instants[i])))
        i++;
    if (i == at || i == end || instants[i].t_ns != instants[at].t_ns)
        return;
    found = instants[i];
    memmove(&instants[at + 1], &instants[at], (i - at) * sizeof *instants);
    instants[at] = found;
}

static void follow_reserved(struct device *device, uint64_t reserved_bytes)
{
    if (reserved_bytes == MT_NOT_COUNTED)
        return;
    if (!device->is_seen)
        device->start_reserved_bytes = reserved_bytes;
    else
        device->reserved_changes += reserved_bytes != device->reserved_bytes;
    device->reserved_bytes = reserved_bytes;
    device->most_reserved_bytes = mt_max_u64(device->most_reserved_bytes, reserved_bytes);
}

static void follow_totals(struct making *making, struct mt_kineto_instant *instant)
{
    struct device *device = &making->devices[instant->device];
    const uint64_t allocated_bytes = instant->allocated_bytes;

    instant->is_odd = !follows(device, instant);
    follow_reserved(device, instant->reserved_bytes);
    if (!device->is_seen && allocated_bytes != MT_NOT_COUNTED)
        device->start_bytes = instant->bytes > 0
                                  ? mt_sub_or_0_u64(allocated_bytes, (uint64_t)instant->bytes)
                                  : allocated_bytes + mt_magnitude(instant->bytes);
    device->is_seen = true;
    device->has_totals = allocated_bytes != MT_NOT_COUNTED;
    device->allocated_bytes = allocated_bytes;
    if (device->has_totals)
        device->most_allocated_bytes = mt_max_u64(device->most_allocated_bytes, allocated_bytes);
}

static uint64_t key_of(const struct mt_kineto_instant *instant)
{
    return instant->addr ^ mt_hash_u64(instant->device);
}

/* Finds blocks of before the first event, and events that do not fit the ones before. */
static enum mt_status follow_block(struct making *making, size_t i)
{
    struct mt_kineto_instant *instants = making->profile.instants, *instant = &instants[i];
    struct device *device = &making->devices[instant->device];
    uint32_t before;

    if (instant->bytes > 0) {
        instant->is_odd |= mt_map_find(&making->alive, key_of(instant)) != MT_MAP_NONE;
        return mt_map_set(&making->alive, key_of(instant), (uint32_t)i);
    }
    before = mt_map_take(&making->alive, key_of(instant));
    if (before != MT_MAP_NONE) {
        instant->is_odd |= instants[before].bytes != -instant->bytes;
        return MT_OK;
    }
    if (mt_grow(&making->initial, &making->initial_capacity, making->initial_count + 1,
                sizeof *making->initial))
        return MT_ERR_MEMORY;
    making->initial[making->initial_count++] = (uint32_t)i;
    device->initial_bytes = mt_add_most_u64(device->initial_bytes, mt_magnitude(instant->bytes));
    return MT_OK;
}

static enum mt_status look_at(struct making *making)
{
    struct mt_kineto *profile = &making->profile;
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < profile->instant_count && status == MT_OK; i++) {
        struct mt_kineto_instant *instant = &profile->instants[i];

        order_equal_times(making, i);
        if (!instant->bytes)
            continue;
        follow_totals(making, instant);
        status = follow_block(making, i);
        making->devices[instant->device].gaps += instant->is_odd;
    }
    return status;
}

static enum mt_status thread_of(struct making *making, uint32_t index, uint16_t *id)
{
    struct mt_kineto_thread *thread = &making->profile.threads[index];
    struct mt_symbols *symbols = &making->made.symbols;
    const struct mt_strings *names = &making->profile.names;
    uint32_t name = MT_NO_ID;
    enum mt_status status = MT_OK;

    if (!thread->id && symbols->thread_count < MAX_THREADS) {
        if (thread->name != MT_NO_ID)
            status = mt_symbols_string(symbols, names->texts[thread->name],
                                       names->lengths[thread->name], &name);
        if (status == MT_OK)
            status = mt_symbols_thread(symbols, name, thread->os_id, &thread->id);
    }
    *id = (uint16_t)thread->id;
    return status;
}

static enum mt_status add(struct making *making, struct mt_event *event, struct mt_error *error)
{
    event->t_ns += making->profile.base_ns;
    return mt_made_trace_add(&making->made, event, error);
}

static struct mt_event event_of(const struct making *making,
                                const struct mt_kineto_instant *instant)
{
    const uint64_t bytes = mt_magnitude(instant->bytes);

    return (struct mt_event){.t_ns = instant->t_ns,
                             .addr = instant->addr,
                             .size_bytes = bytes,
                             .aux_bytes = instant->bytes > 0 ? bytes : 0,
                             .stack = instant->stack,
                             .name = MT_NO_ID,
                             .device = instant->device,
                             .heap = (uint16_t)making->heap,
                             .kind = instant->bytes > 0 ? MT_EVENT_ALLOC : MT_EVENT_FREE_REQUESTED};
}

static enum mt_status add_initial(struct making *making, const struct mt_kineto_instant *instant,
                                  uint32_t name, struct mt_error *error)
{
    struct mt_event event = event_of(making, instant);

    event.t_ns = making->profile.instants[0].t_ns;
    event.kind = MT_EVENT_ALLOC;
    event.flags = MT_EVENT_INITIAL;
    event.aux_bytes = event.size_bytes;
    event.stack = MT_NO_ID;
    event.name = name;
    return add(making, &event, error);
}

/* The sum of the blocks that were alive before is known, which makes the levels correct. Those that
 * are freed in the file are known. The others are one block of no known role, at an address that no
 * allocator uses. */
static enum mt_status add_all_initial(struct making *making, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < making->initial_count && status == MT_OK; i++)
        status =
            add_initial(making, &making->profile.instants[making->initial[i]], MT_NO_ID, error);
    for (uint16_t i = 0; i < DEVICES && status == MT_OK; i++) {
        const struct device *device = &making->devices[i];
        const struct mt_kineto_instant rest = {
            .addr = UNKNOWN_ADDRESS,
            .device = i,
            .bytes = (int64_t)mt_sub_or_0_u64(device->start_bytes, device->initial_bytes)};

        making->made.header.starts_in_middle |= device->start_bytes || device->initial_bytes;
        if (rest.bytes)
            status = add_initial(making, &rest, making->rest_name, error);
    }
    return status;
}

/* The file does not have the free memory of the device, which an event of this kind needs. */
static enum mt_status add_out_of_memory(struct making *making,
                                        const struct mt_kineto_instant *instant,
                                        struct mt_event *event, struct mt_error *error)
{
    char digits[MT_UNITS_TEXT];
    struct mt_buf name = {0};
    enum mt_status status;

    mt_buf_printf(&name, "out of memory on gpu %u: a request of %s bytes",
                  (unsigned)instant->device, mt_format_count(digits, instant->asked_bytes));
    status = name.failed
                 ? MT_ERR_MEMORY
                 : mt_symbols_string(&making->made.symbols, name.data, name.length, &event->name);
    mt_buf_release(&name);
    if (status != MT_OK)
        return no_memory(error);
    event->kind = MT_EVENT_MARK;
    event->device = event->heap = 0;
    event->addr = 0;
    return add(making, event, error);
}

static enum mt_status add_gap(struct making *making, uint64_t t_ns, struct mt_error *error)
{
    struct mt_event event = {.t_ns = t_ns,
                             .size_bytes = 1,
                             .stack = MT_NO_ID,
                             .name = making->gap_name,
                             .kind = MT_EVENT_DROPPED};

    return add(making, &event, error);
}

static enum mt_status add_instant(struct making *making, const struct mt_kineto_instant *instant,
                                  struct mt_error *error)
{
    struct mt_event event = event_of(making, instant);
    enum mt_status status = MT_OK;

    if (thread_of(making, instant->thread, &event.thread) != MT_OK)
        return no_memory(error);
    if (!instant->bytes)
        return add_out_of_memory(making, instant, &event, error);
    if (instant->is_odd)
        status = add_gap(making, instant->t_ns, error);
    return status == MT_OK ? add(making, &event, error) : status;
}

static enum mt_status add_mark(struct making *making, const struct mark *mark,
                               struct mt_error *error)
{
    const struct mt_strings *names = &making->profile.names;
    const uint32_t name = mark->range->name;
    struct mt_event event = {.t_ns = mark->t_ns,
                             .stack = MT_NO_ID,
                             .kind =
                                 mark->group == STARTS ? MT_EVENT_PHASE_PUSH : MT_EVENT_PHASE_POP};

    if (mt_symbols_string(&making->made.symbols, names->texts[name], names->lengths[name],
                          &event.name) ||
        thread_of(making, mark->range->thread, &event.thread))
        return no_memory(error);
    return add(making, &event, error);
}

MT_DEFINE_ORDER(by_place, struct mark,
                MT_ASCENDING(t_ns) || MT_ASCENDING(group) || MT_ASCENDING(nesting) ||
                    MT_ASCENDING(order))

/* Outer ranges start first and end last. */
static enum mt_status make_marks(struct making *making)
{
    const struct mt_kineto *profile = &making->profile;

    for (size_t i = 0; i < profile->range_count; i++) {
        const struct mt_kineto_range *range = &profile->ranges[i];
        const bool at_once = range->start_ns == range->end_ns;
        struct mark *mark;

        if (range->kind != MT_KINETO_ANNOTATION)
            continue;
        if (mt_grow(&making->marks, &making->mark_capacity, making->mark_count + 2,
                    sizeof *making->marks))
            return MT_ERR_MEMORY;
        mark = &making->marks[making->mark_count];
        mark[0] =
            (struct mark){range->start_ns, STARTS, range->order, UINT64_MAX - range->end_ns, range};
        mark[1] = (struct mark){range->end_ns, at_once ? ENDS_AT_ONCE : ENDS,
                                UINT32_MAX - range->order, UINT64_MAX - range->start_ns, range};
        making->mark_count += 2;
    }
    if (making->mark_count)
        qsort(making->marks, making->mark_count, sizeof *making->marks, by_place);
    return MT_OK;
}

static enum mt_status add_events(struct making *making, struct mt_error *error)
{
    const struct mt_kineto *profile = &making->profile;
    enum mt_status status = add_all_initial(making, error);
    size_t at = 0;

    for (size_t i = 0; i <= profile->instant_count && status == MT_OK; i++) {
        const struct mt_kineto_instant *instant =
            i < profile->instant_count ? &profile->instants[i] : NULL;

        for (; at < making->mark_count && status == MT_OK; at++) {
            const struct mark *mark = &making->marks[at];

            if (instant && (mark->t_ns > instant->t_ns ||
                            (mark->t_ns == instant->t_ns && mark->group == ENDS_AT_ONCE)))
                break;
            status = add_mark(making, mark, error);
        }
        if (instant && status == MT_OK)
            status = add_instant(making, instant, error);
    }
    return status;
}

static void add_count(struct mt_buf *lines, uint64_t count, const char *what)
{
    char digits[MT_UNITS_TEXT];

    mt_buf_printf(lines, "%s%s event%s of %s", lines->length ? "\n" : "",
                  mt_format_count(digits, count), count == 1 ? "" : "s", what);
}

/* Describes the totals of a device that no event can have. */
static void add_totals(struct mt_buf *lines, unsigned number, const struct device *device)
{
    char n[4][MT_UNITS_TEXT];

    if (device->most_reserved_bytes)
        mt_buf_printf(
            lines, "%sTotal Reserved of gpu %u: %s bytes at first, %s at most, %s change%s",
            lines->length ? "\n" : "", number, mt_format_count(n[0], device->start_reserved_bytes),
            mt_format_count(n[1], device->most_reserved_bytes),
            mt_format_count(n[2], device->reserved_changes),
            device->reserved_changes == 1 ? "" : "s");
    if (device->gaps)
        mt_buf_printf(lines,
                      "%sTotal Allocated of gpu %u: %s bytes at most; %s event%s do%s not follow "
                      "from those before",
                      lines->length ? "\n" : "", number,
                      mt_format_count(n[0], device->most_allocated_bytes),
                      mt_format_count(n[1], device->gaps), device->gaps == 1 ? "" : "s",
                      device->gaps == 1 ? "es" : "");
}

static void add_lines(struct making *making)
{
    struct mt_buf *lines = &making->not_used;
    char type[48];

    if (making->device_type > MT_KINETO_CUDA)
        mt_buf_printf(lines, "Device Type %u: its allocator is taken for that of CUDA",
                      (unsigned)making->device_type);
    if (making->host_events)
        add_count(lines, making->host_events, "host memory (Device Type 0)");
    snprintf(type, sizeof type, "other devices (Device Type %u)",
             (unsigned)making->first_other_type);
    if (making->other_events)
        add_count(lines, making->other_events, type);
    for (unsigned i = 0; i < TOLD_DEVICES; i++)
        add_totals(lines, i, &making->devices[i]);
}

static void fill_header(struct making *making)
{
    struct mt_trace_header *header = &making->made.header;

    add_lines(making);
    header->framework = "PyTorch";
    header->not_recorded = "segments, streams, requested sizes, and when frees were completed";
    header->not_used = making->not_used.data;
    header->has_free_requested = true;
    header->sizes_rounded = making->device_type != MT_KINETO_HOST;
    for (size_t i = 0; i < making->profile.instant_count; i++)
        header->has_stacks |= making->profile.instants[i].stack != MT_NO_ID;
}

/* Devices that the file does not describe have no name. */
static enum mt_status add_devices(struct making *making)
{
    struct mt_symbols *symbols = &making->made.symbols;
    uint32_t name = MT_NO_ID;
    enum mt_status status = MT_OK;

    if (making->device_type == MT_KINETO_HOST) {
        status = mt_symbols_string(symbols, MT_HOST_MEMORY, strlen(MT_HOST_MEMORY), &name);
        return status == MT_OK ? mt_symbols_device(symbols, 0, name, 0) : status;
    }
    for (uint32_t i = symbols->device_count; i < DEVICES && status == MT_OK; i++)
        if (making->devices[i].is_seen)
            status = mt_symbols_device(symbols, i, MT_NO_ID, 0);
    return status;
}

static enum mt_status make_name(struct making *making, const char *text, uint32_t *id)
{
    return mt_symbols_string(&making->made.symbols, text, strlen(text), id);
}

static enum mt_status prepare(struct making *making)
{
    uint32_t heap;

    making->devices = calloc(DEVICES, sizeof *making->devices);
    if (!making->devices || make_name(making, "pytorch", &heap) ||
        mt_symbols_heap(&making->made.symbols, heap, &making->heap) ||
        make_name(making, "other", &making->rest_name))
        return MT_ERR_MEMORY;
    return make_name(making, "Total Allocated or the blocks show that events are missing",
                     &making->gap_name);
}

static bool has_memory(const struct mt_kineto *profile)
{
    for (size_t i = 0; i < profile->instant_count; i++)
        if (profile->instants[i].bytes)
            return true;
    return false;
}

static enum mt_status make_events(struct making *making, struct mt_error *error)
{
    struct mt_kineto *profile = &making->profile;

    if (!has_memory(profile))
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "the trace has no memory events, which torch.profiler writes with "
                       "profile_memory=True; or record a snapshot "
                       "(torch.cuda.memory._record_memory_history and _dump_snapshot)");
    leave_out_others(making);
    if (profile->instant_count >= MT_MAP_NONE)
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "too many memory events");
    if (mt_kineto_set_stacks(profile, &making->made.symbols) != MT_OK)
        return no_memory(error);
    qsort(profile->instants, profile->instant_count, sizeof *profile->instants, by_time);
    if (look_at(making) || add_devices(making) || make_marks(making))
        return no_memory(error);
    return add_events(making, error);
}

static void release(struct making *making)
{
    mt_kineto_release(&making->profile);
    mt_made_trace_release(&making->made);
    mt_map_release(&making->alive);
    mt_buf_release(&making->not_used);
    free(making->devices);
    free(making->initial);
    free(making->marks);
}

enum mt_status mt_kineto_open(struct mt_feed *feed, struct mt_source **source,
                              struct mt_error *error)
{
    struct making making = {.device_type = MT_KINETO_HOST};
    enum mt_status status = mt_made_trace_start(&making.made, error);

    if (status == MT_OK && prepare(&making) != MT_OK)
        status = no_memory(error);
    if (status == MT_OK)
        status = mt_kineto_read(feed, &making.profile, &making.made, error);
    if (status == MT_OK)
        status = make_events(&making, error);
    if (status == MT_OK)
        fill_header(&making);
    if (status == MT_OK && making.not_used.failed)
        status = no_memory(error);
    if (status == MT_OK)
        status = mt_made_trace_finish(&making.made, MT_SOURCES_KINETO, source, error);
    release(&making);
    return status;
}
