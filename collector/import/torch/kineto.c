/* A trace of torch.profiler as a trace of memory. Levels are Total Allocated of the file: where
 * events are missing, one block a device, of no known role, takes up the difference. */
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
    TOLD_DEVICES = 64, /* those of which the header has a line */
    DEVICE_NAME = 24,
    MAX_THREADS = UINT16_MAX
};

/* What the events made so far add up to. Sums that no trace can have stop at the most. */
struct level {
    uint64_t known_bytes;
    uint64_t rest_bytes; /* of the block that takes up the difference to the total */
};

/* The start or the end of a named range, in the order of the trace. */
struct mark {
    uint64_t t_ns;
    uint32_t group;
    uint32_t order;
    uint64_t nesting;
    const struct mt_kineto_range *range;
};
/* Of one time: ends where a range of the thread starts, starts, memory events, other ends. Stacks
 * have the same rule. */
enum { ENDS_BEFORE, STARTS, ENDS };

struct making {
    struct mt_kineto profile;
    struct mt_made_trace made;
    struct mt_kineto_totals totals;
    struct level *levels; /* of devices */
    size_t lost_at;       /* next of totals.lost */
    size_t change_at;     /* and of totals.changes */
    struct mark *marks;
    size_t mark_count, mark_capacity;
    struct mt_buf not_used;
    uint32_t gap_name, rest_name, heap;
    uint8_t device_type; /* of the events that are used */
    uint64_t host_events, other_events, first_other_type, threads_lost;
    bool has_other_types;
};

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

        if (!instant->is_oom && (instant->device_type == MT_KINETO_CUDA || type == MT_KINETO_HOST))
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
            making->has_other_types |= type != making->first_other_type;
            making->other_events++;
        }
    }
    profile->instant_count = kept;
}

static enum mt_status thread_of(struct making *making, uint32_t index, uint16_t *id)
{
    struct mt_kineto_thread *thread = &making->profile.threads[index];
    struct mt_symbols *symbols = &making->made.symbols;
    const struct mt_strings *names = &making->profile.names;
    uint32_t name = MT_NO_ID;
    enum mt_status status = MT_OK;

    if (!thread->id && symbols->thread_count >= MAX_THREADS) {
        thread->id = MT_NO_ID;
        making->threads_lost++;
    } else if (!thread->id) {
        if (thread->name != MT_NO_ID)
            status = mt_symbols_string(symbols, names->texts[thread->name],
                                       names->lengths[thread->name], &name);
        if (status == MT_OK)
            status = mt_symbols_thread(symbols, name, thread->os_id, &thread->id);
    }
    *id = thread->id == MT_NO_ID ? 0 : (uint16_t)thread->id;
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

static void change_known(struct level *level, int64_t bytes)
{
    level->known_bytes = bytes < 0 ? mt_sub_or_0_u64(level->known_bytes, mt_magnitude(bytes))
                                   : mt_add_most_u64(level->known_bytes, (uint64_t)bytes);
}

/* Adds a block of which only the size is known, and the address if it is freed. */
static enum mt_status add_unseen(struct making *making, const struct mt_kineto_instant *block,
                                 uint64_t t_ns, uint32_t name, uint8_t flags,
                                 struct mt_error *error)
{
    struct mt_event event = event_of(making, block);

    event.t_ns = t_ns;
    event.kind = MT_EVENT_ALLOC;
    event.flags = flags;
    event.aux_bytes = event.size_bytes;
    event.stack = MT_NO_ID;
    event.name = name;
    return add(making, &event, error);
}

/* Adds the blocks whose allocation is missing before instant `at`. */
static enum mt_status add_lost(struct making *making, int64_t at, uint64_t t_ns,
                               struct mt_error *error)
{
    const struct mt_kineto_totals *totals = &making->totals;
    enum mt_status status = MT_OK;

    for (; making->lost_at < totals->lost_count && totals->lost[making->lost_at].at == at &&
           status == MT_OK;
         making->lost_at++) {
        const struct mt_kineto_instant *instant =
            &making->profile.instants[totals->lost[making->lost_at].instant];

        change_known(&making->levels[instant->device], -instant->bytes);
        status = add_unseen(making, instant, t_ns, MT_NO_ID,
                            at == MT_KINETO_BEFORE ? MT_EVENT_INITIAL : 0, error);
    }
    return status;
}

/* Replaces the block that takes up the difference by one of `bytes`. */
static enum mt_status set_rest(struct making *making, uint16_t device, uint64_t bytes,
                               uint64_t t_ns, uint8_t flags, struct mt_error *error)
{
    struct level *level = &making->levels[device];
    struct mt_kineto_instant rest = {.addr = making->totals.devices[device].unknown_addr,
                                     .device = device,
                                     .t_ns = t_ns,
                                     .stack = MT_NO_ID,
                                     .bytes = -(int64_t)level->rest_bytes};
    struct mt_event event = event_of(making, &rest);
    enum mt_status status = MT_OK;

    if (level->rest_bytes)
        status = add(making, &event, error);
    level->rest_bytes = bytes;
    rest.bytes = (int64_t)bytes;
    return bytes && status == MT_OK
               ? add_unseen(making, &rest, t_ns, making->rest_name, flags, error)
               : status;
}

/* Makes the level of the device `total_bytes`, or as near as the known blocks allow. */
static enum mt_status set_level(struct making *making, const struct mt_kineto_instant *instant,
                                int64_t total_bytes, struct mt_error *error)
{
    const struct level *level = &making->levels[instant->device];
    const uint64_t rest_bytes =
        mt_sub_or_0_u64(total_bytes > 0 ? (uint64_t)total_bytes : 0, level->known_bytes);

    if (instant->allocated_bytes == MT_NOT_COUNTED || rest_bytes == level->rest_bytes)
        return MT_OK;
    return set_rest(making, instant->device, rest_bytes, instant->t_ns, 0, error);
}

/* The sum of the blocks that were alive before is known, which makes the levels correct. Those that
 * are freed in the file are known. The others are one block of no known role. */
static enum mt_status add_all_initial(struct making *making, struct mt_error *error)
{
    uint64_t t_ns = making->profile.instants[0].t_ns;

    if (making->mark_count)
        t_ns = mt_min_u64(t_ns, making->marks[0].t_ns);
    enum mt_status status = add_lost(making, MT_KINETO_BEFORE, t_ns, error);
    for (uint16_t i = 0; i < MT_KINETO_DEVICES && status == MT_OK; i++) {
        const struct mt_kineto_device *device = &making->totals.devices[i];
        const uint64_t rest_bytes = mt_sub_or_0_u64(device->start_bytes, device->initial_bytes);

        making->made.header.starts_in_middle |= device->start_bytes || device->initial_bytes;
        status = set_rest(making, i, rest_bytes, t_ns, MT_EVENT_INITIAL, error);
    }
    return status;
}

static enum mt_status add_gap(struct making *making, const struct mt_kineto_instant *instant,
                              struct mt_error *error)
{
    struct mt_event event = {.t_ns = instant->t_ns,
                             .size_bytes = 1,
                             .stack = MT_NO_ID,
                             .name = making->gap_name,
                             .device = instant->device,
                             .kind = MT_EVENT_DROPPED};

    return add(making, &event, error);
}

/* The file does not have the free memory of the device, so the event only reports that a request
 * was refused. */
static enum mt_status add_out_of_memory(struct making *making,
                                        const struct mt_kineto_instant *instant,
                                        struct mt_event *event, struct mt_error *error)
{
    event->kind = MT_EVENT_ALLOC_FAILED;
    event->addr = 0;
    event->size_bytes = (uint64_t)instant->bytes;
    return add(making, event, error);
}

static int64_t change_of(struct making *making, size_t i)
{
    const struct mt_kineto_totals *totals = &making->totals;

    if (making->change_at < totals->change_count && totals->changes[making->change_at].instant == i)
        return totals->changes[making->change_at++].bytes;
    return making->profile.instants[i].bytes;
}

static enum mt_status add_instant(struct making *making, size_t i, struct mt_error *error)
{
    const struct mt_kineto_instant *instant = &making->profile.instants[i];
    const int64_t total_bytes = (int64_t)instant->allocated_bytes;
    struct mt_event event = event_of(making, instant);
    enum mt_status status = MT_OK;

    if (thread_of(making, instant->thread, &event.thread) != MT_OK)
        return mt_fail_memory(error);
    if (instant->is_oom)
        return add_out_of_memory(making, instant, &event, error);
    if (instant->is_odd)
        status = add_gap(making, instant, error);
    if (status == MT_OK)
        status = add_lost(making, (int64_t)i, instant->t_ns, error);
    if (status == MT_OK && !instant->is_left_out)
        status = set_level(making, instant, total_bytes - instant->bytes, error);
    if (status == MT_OK && !instant->is_left_out)
        status = add(making, &event, error);
    change_known(&making->levels[instant->device], change_of(making, i));
    return status == MT_OK ? set_level(making, instant, total_bytes, error) : status;
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
        return mt_fail_memory(error);
    return add(making, &event, error);
}

MT_DEFINE_ORDER(by_place, struct mark,
                MT_ASCENDING(t_ns) || MT_ASCENDING(group) || MT_ASCENDING(nesting) ||
                    MT_ASCENDING(order))

static uint64_t start_key(uint32_t thread, uint64_t t_ns)
{
    return t_ns ^ mt_hash_u64(thread);
}

/* Where ranges start. One without a length is within the range that ends at its time. */
static enum mt_status find_starts(const struct mt_kineto *profile, struct mt_map *starts)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < profile->range_count && status == MT_OK; i++) {
        const struct mt_kineto_range *range = &profile->ranges[i];

        if (range->kind == MT_KINETO_ANNOTATION && range->start_ns < range->end_ns)
            status = mt_map_set(starts, start_key(range->thread, range->start_ns), 0);
    }
    return status;
}

/* Outer ranges start first and end last. */
static enum mt_status make_marks(struct making *making, const struct mt_map *starts)
{
    const struct mt_kineto *profile = &making->profile;

    for (size_t i = 0; i < profile->range_count; i++) {
        const struct mt_kineto_range *range = &profile->ranges[i];
        const bool is_followed =
            range->start_ns < range->end_ns &&
            mt_map_get(starts, start_key(range->thread, range->end_ns)) != MT_MAP_NONE;

        if (range->kind != MT_KINETO_ANNOTATION)
            continue;
        if (mt_grow(&making->marks, &making->mark_capacity, making->mark_count + 2,
                    sizeof *making->marks))
            return MT_ERR_MEMORY;
        struct mark *mark = &making->marks[making->mark_count];
        mark[0] =
            (struct mark){range->start_ns, STARTS, range->order, UINT64_MAX - range->end_ns, range};
        mark[1] = (struct mark){range->end_ns, is_followed ? ENDS_BEFORE : ENDS,
                                UINT32_MAX - range->order, UINT64_MAX - range->start_ns, range};
        making->mark_count += 2;
    }
    if (making->mark_count)
        qsort(making->marks, making->mark_count, sizeof *making->marks, by_place);
    return MT_OK;
}

static enum mt_status sort_marks(struct making *making)
{
    struct mt_map starts = {0};
    enum mt_status status = find_starts(&making->profile, &starts);

    if (status == MT_OK)
        status = make_marks(making, &starts);
    mt_map_release(&starts);
    return status;
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
                            (mark->t_ns == instant->t_ns && mark->group == ENDS)))
                break;
            status = add_mark(making, mark, error);
        }
        if (instant && status == MT_OK)
            status = add_instant(making, i, error);
    }
    return status;
}

/* "3 events of host memory" */
static void add_sum(struct mt_buf *lines, uint64_t count, const char *unit, const char *what)
{
    char digits[MT_UNITS_TEXT];

    mt_buf_printf(lines, "%s%s %s%s %s", lines->length ? "\n" : "", mt_format_count(digits, count),
                  unit, count == 1 ? "" : "s", what);
}

/* Describes the totals of a device that no event can have. */
static void add_totals(struct mt_buf *lines, const char *name,
                       const struct mt_kineto_device *device)
{
    char n[4][MT_UNITS_TEXT];

    if (device->most_reserved_bytes)
        mt_buf_printf(lines, "%sTotal Reserved of %s: %s bytes at first, %s at most, %s change%s",
                      lines->length ? "\n" : "", name,
                      mt_format_count(n[0], device->start_reserved_bytes),
                      mt_format_count(n[1], device->most_reserved_bytes),
                      mt_format_count(n[2], device->reserved_changes),
                      device->reserved_changes == 1 ? "" : "s");
    if (device->gaps)
        mt_buf_printf(
            lines,
            "%sTotal Allocated of %s: %s bytes at most; %s do%s not follow from "
            "the events before",
            lines->length ? "\n" : "", name, mt_format_count(n[0], device->most_allocated_bytes),
            mt_format_counted(n[1], device->gaps, "event"), device->gaps == 1 ? "es" : "");
}

static const char *name_of_device(const struct making *making, unsigned number,
                                  char name[DEVICE_NAME])
{
    if (making->device_type == MT_KINETO_HOST)
        return MT_HOST_MEMORY;
    snprintf(name, DEVICE_NAME, "gpu %u", number);
    return name;
}

static void add_lines(struct making *making)
{
    struct mt_buf *lines = &making->not_used;
    char type[48], name[DEVICE_NAME];

    if (making->device_type > MT_KINETO_CUDA)
        mt_buf_printf(lines, "Device Type %u: read as if it were CUDA's allocator",
                      (unsigned)making->device_type);
    if (making->host_events)
        add_sum(lines, making->host_events, "event", "of host memory (Device Type 0)");
    snprintf(type, sizeof type, "of other devices (Device Type %u%s)",
             (unsigned)making->first_other_type, making->has_other_types ? " and others" : "");
    if (making->other_events)
        add_sum(lines, making->other_events, "event", type);
    if (making->threads_lost)
        add_sum(lines, making->threads_lost, "thread", "too many: their events have no thread");
    if (making->profile.names_cut)
        add_sum(lines, making->profile.names_cut, "name", "longer than 64 KiB: cut there");
    for (unsigned i = 0; i < TOLD_DEVICES; i++)
        add_totals(lines, name_of_device(making, i, name), &making->totals.devices[i]);
}

static void fill_header(struct making *making)
{
    struct mt_trace_header *header = &making->made.header;

    add_lines(making);
    header->framework = "PyTorch";
    header->not_recorded = "segments, streams, requested sizes, and when frees were completed\n"
                           "lines of calls: a Python function has the line where it begins";
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
    for (uint32_t i = symbols->device_count; i < MT_KINETO_DEVICES && status == MT_OK; i++)
        if (making->totals.devices[i].is_used)
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

    making->levels = calloc(MT_KINETO_DEVICES, sizeof *making->levels);
    if (!making->levels || make_name(making, "pytorch", &heap) ||
        mt_symbols_heap(&making->made.symbols, heap, &making->heap) ||
        make_name(making, "other", &making->rest_name))
        return MT_ERR_MEMORY;
    return make_name(making, "Total Allocated or the blocks show that events are missing",
                     &making->gap_name);
}

static bool has_memory(const struct mt_kineto *profile)
{
    for (size_t i = 0; i < profile->instant_count; i++)
        if (!profile->instants[i].is_oom)
            return true;
    return false;
}

static enum mt_status make_events(struct making *making, struct mt_error *error)
{
    struct mt_kineto *profile = &making->profile;

    leave_out_others(making);
    if (!has_memory(profile))
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "the trace has no memory events, which torch.profiler writes with "
                       "profile_memory=True; or record a snapshot "
                       "(torch.cuda.memory._record_memory_history and _dump_snapshot)");
    if (mt_kineto_set_stacks(profile, &making->made.symbols) != MT_OK)
        return mt_fail_memory(error);
    if (mt_kineto_follow(profile, &making->totals) || add_devices(making) || sort_marks(making))
        return mt_fail_memory(error);
    return add_events(making, error);
}

static void release(struct making *making)
{
    mt_kineto_release(&making->profile);
    mt_made_trace_release(&making->made);
    mt_kineto_totals_release(&making->totals);
    mt_buf_release(&making->not_used);
    free(making->levels);
    free(making->marks);
}

enum mt_status mt_kineto_open(struct mt_feed *feed, struct mt_source **source,
                              struct mt_error *error)
{
    struct making making = {.device_type = MT_KINETO_HOST};
    enum mt_status status = mt_made_trace_start(&making.made, error);

    if (status == MT_OK && prepare(&making) != MT_OK)
        status = mt_fail_memory(error);
    if (status == MT_OK)
        status = mt_kineto_read(feed, &making.profile, &making.made, error);
    if (status == MT_OK)
        status = make_events(&making, error);
    if (status == MT_OK)
        fill_header(&making);
    if (status == MT_OK && making.not_used.failed)
        status = mt_fail_memory(error);
    if (status == MT_OK)
        status = mt_made_trace_finish(&making.made, MT_SOURCES_KINETO, source, error);
    release(&making);
    return status;
}
