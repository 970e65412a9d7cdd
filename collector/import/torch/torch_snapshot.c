#include "importers.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "sorted.h"
#include "torch.h"
#include "torch_events.h"
#include "torch_names.h"
#include "util.h"

enum { MAX_DEVICES = 1024, ROUNDED_SAMPLE = 256 };

/* Parts of the snapshot's dictionary, NULL = missing. */
struct torch_root {
    const struct mt_pickle_value *segments, *traces, *annotations, *settings;
    const struct mt_pickle_value *host_segments, *host_traces;
};

MT_DEFINE_ORDER(compare_segments, struct mt_torch_segment,
                MT_ASCENDING(device) || MT_ASCENDING(addr))

static enum mt_status take_segments(struct mt_torch *torch, struct mt_pickle *pickle,
                                    const struct mt_pickle_value *list, struct mt_error *error)
{
    size_t count;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, *list, &count);

    if (mt_grow(&torch->segments, &torch->segment_capacity, torch->segment_count + count + 1,
                sizeof *torch->segments))
        return mt_fail_memory(error);
    for (size_t i = 0; i < count && list->kind == MT_PICKLE_LIST; i++) {
        if (items[i].kind != MT_PICKLE_HOST || items[i].host != MT_TORCH_SEGMENT)
            continue;
        const struct mt_torch_segment *segment = &torch->records.segments[items[i].bits];
        if (!segment->addr || !segment->size_bytes)
            return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET,
                           "segment %zu of the snapshot has no %s", i,
                           segment->addr ? "size" : "address");
        torch->segments[torch->segment_count++] = *segment;
    }
    return MT_OK;
}

/* The host's own device number is -1. */
static enum mt_status take_all_segments(struct mt_torch *torch, struct mt_pickle *pickle,
                                        const struct torch_root *root, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    torch->has_segments = root->segments != NULL;
    if (root->segments)
        status = take_segments(torch, pickle, root->segments, error);
    if (torch->segment_count)
        qsort(torch->segments, torch->segment_count, sizeof *torch->segments, compare_segments);
    torch->device_segment_count = torch->segment_count;
    if (status == MT_OK && root->host_segments)
        status = take_segments(torch, pickle, root->host_segments, error);
    if (torch->segment_count > torch->device_segment_count)
        qsort(torch->segments + torch->device_segment_count,
              torch->segment_count - torch->device_segment_count, sizeof *torch->segments,
              compare_segments);
    return status;
}

static enum mt_status take_annotations(struct mt_torch *torch, struct mt_pickle *pickle,
                                       const struct mt_pickle_value *list)
{
    size_t count, unmatched;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, *list, &count);

    torch->annotations = malloc((count + 1) * sizeof *torch->annotations);
    if (!torch->annotations)
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < count && list->kind == MT_PICKLE_LIST; i++) {
        if (items[i].kind == MT_PICKLE_HOST && items[i].host == MT_TORCH_ANNOTATION)
            torch->annotations[torch->annotation_count++] =
                torch->records.annotations[items[i].bits];
    }
    enum mt_status status =
        mt_torch_match_phases(torch->annotations, torch->annotation_count, &unmatched);
    torch->source.integrity.phases_unmatched += unmatched;
    return status;
}

static enum mt_status take_devices(struct mt_torch *torch, struct mt_pickle *pickle,
                                   const struct mt_pickle_value *list)
{
    size_t count = 0, i = 0, traces = 0;
    const struct mt_pickle_value *items = list ? mt_pickle_items(pickle, *list, &traces) : NULL;

    for (i = 0; i < torch->device_segment_count; i++)
        count = mt_max_u64(count, (size_t)torch->segments[i].device + 1);
    count = mt_max_u64(count, traces);
    if (count > MAX_DEVICES)
        return MT_ERR_UNSUPPORTED;
    torch->device_count = (uint32_t)count;
    torch->devices = calloc(count + 2, sizeof *torch->devices);
    torch->next_entry = calloc(count + 2, sizeof *torch->next_entry);
    if (!torch->devices || !torch->next_entry)
        return MT_ERR_MEMORY;
    for (i = 0; i < traces; i++) {
        struct mt_torch_range range;
        if (mt_torch_take(&torch->records, &items[i], MT_TORCH_ENTRIES, &range) != MT_OK)
            return MT_ERR_MEMORY;
        torch->devices[i].first = range.first;
        torch->devices[i].count = range.count;
    }
    for (i = torch->device_segment_count; i-- > 0;) {
        struct mt_torch_device *device = &torch->devices[torch->segments[i].device];
        device->first_segment = i;
        device->segment_count++;
    }
    return count ? mt_symbols_device(&torch->source.symbols, (uint32_t)count - 1, MT_NO_ID, 0)
                 : MT_OK;
}

/* Host entries are in one list, not in one per device. */
static enum mt_status take_host(struct mt_torch *torch, const struct mt_pickle_value *list)
{
    struct mt_torch_device *host = &torch->devices[torch->device_count];
    struct mt_torch_range range = {0};
    enum mt_status status = MT_OK;

    if (list)
        status = mt_torch_take(&torch->records, list, MT_TORCH_ENTRIES, &range);
    host->first = range.first;
    host->count = range.count;
    host->first_segment = torch->device_segment_count;
    host->segment_count = torch->segment_count - torch->device_segment_count;
    torch->has_host = host->count || host->segment_count;
    if (torch->has_host && !torch->device_count)
        status = MT_ERR_FORMAT; /* the host's events are those of device 0 */
    return status;
}

struct census {
    size_t of_kind[MT_TORCH_ANNOTATE + 1];
    size_t odd_sizes, stacks;
    uint64_t latest_us;
};

/* Raises times so that they never decrease within a device: the order of its list is authoritative.
 * Counts the kinds of entries, and notes how stacks are used. */
static void look_at_entries(struct mt_torch *torch, struct mt_torch_device *device,
                            struct census *census)
{
    static const uint8_t uses[MT_TORCH_ANNOTATE + 1] = {
        [MT_EVENT_ALLOC] = MT_STACK_ALLOCATES, [MT_EVENT_FREE_REQUESTED] = MT_STACK_FREES};
    uint64_t latest_us = 0;

    for (size_t i = 0; i < device->count; i++) {
        struct mt_torch_entry *entry = &torch->records.entries[device->first + i];
        device->of_kind[entry->kind]++;
        if (entry->stack != MT_NO_ID) {
            census->stacks++;
            torch->stack_uses[entry->stack] |= uses[entry->kind];
        }
        census->odd_sizes += entry->kind == MT_EVENT_ALLOC && entry->size_bytes % 512 != 0;
        latest_us = mt_max_u64(latest_us, entry->time_us);
        entry->time_us = latest_us & MT_TORCH_MAX_TIME_US;
    }
    census->latest_us = mt_max_u64(census->latest_us, latest_us);
    for (size_t i = 0; i < MT_ARRAY_LEN(census->of_kind); i++)
        census->of_kind[i] += device->of_kind[i];
}

static void look_at_annotations(struct mt_torch *torch)
{
    uint64_t latest_us = 0;

    for (size_t i = 0; i < torch->annotation_count; i++) {
        struct mt_torch_annotation *annotation = &torch->annotations[i];
        latest_us = mt_max_u64(latest_us, mt_min_u64(annotation->time_us, MT_TORCH_MAX_TIME_US));
        annotation->time_us = latest_us;
        if (annotation->device >= torch->device_count)
            annotation->device = 0;
    }
}

static bool has_private_pools(const struct mt_torch *torch)
{
    for (size_t i = 0; i < torch->device_segment_count; i++)
        if (torch->segments[i].pool)
            return true;
    return false;
}

/* What PyTorch itself counted at the end, for comparison: nothing, on a device without segments. */
static enum mt_status add_ends(struct mt_torch *torch)
{
    bool has_ends = torch->has_segments && !torch->is_profile;
    enum mt_status status = MT_OK;
    uint32_t id;

    for (uint32_t i = 0; i < torch->device_count && has_ends && !status; i++) {
        const struct mt_segment_end nothing = {.device = (uint16_t)i, .heap = torch->heap};

        if (torch->devices[i].count && !torch->devices[i].segment_count)
            status = mt_symbols_end(&torch->source.symbols, &nothing, &id);
    }
    for (size_t i = 0; i < torch->device_segment_count && has_ends && !status; i++) {
        const struct mt_torch_segment *segment = &torch->segments[i];
        const struct mt_segment_end end = {.addr = segment->addr,
                                           .size_bytes = segment->size_bytes,
                                           .allocated_bytes = segment->allocated_bytes,
                                           .active_bytes = segment->active_bytes,
                                           .requested_bytes = segment->requested_bytes,
                                           .device = segment->device,
                                           .heap = torch->heap};
        status = mt_symbols_end(&torch->source.symbols, &end, &id);
    }
    return status;
}

static void fill_header(struct mt_torch *torch, const struct census *census)
{
    struct mt_trace_header *header = &torch->source.header;
    const size_t *of_kind = census->of_kind;

    header->framework = torch->has_host_parts ? "PyTorch 2.14 or later" : "PyTorch";
    header->sources = torch->is_profile ? MT_SOURCES_PROFILE : MT_SOURCES_SNAPSHOT;
    header->allocator_options = torch->allocator_options.data;
    header->settings = torch->settings.data;
    header->not_used = torch->not_used.data;
    header->rank = header->world_size = -1;
    for (uint32_t i = 0; i < torch->device_count; i++)
        header->starts_in_middle |= !torch->devices[i].complete;
    /* the profiler reports the sizes of blocks, and those of tensors in host memory are odd */
    header->sizes_rounded =
        torch->is_profile || (of_kind[MT_EVENT_ALLOC] >= ROUNDED_SAMPLE && !census->odd_sizes);
    header->has_stacks = census->stacks > 0;
    header->has_segments = (torch->device_segment_count && !torch->is_profile) ||
                           of_kind[MT_EVENT_SEGMENT_ALLOC] || of_kind[MT_EVENT_SEGMENT_MAP] ||
                           of_kind[MT_EVENT_SEGMENT_FREE] || of_kind[MT_EVENT_SEGMENT_UNMAP];
    header->never_refused = !of_kind[MT_EVENT_OOM] && !of_kind[MT_EVENT_SEGMENT_FREE] &&
                            !of_kind[MT_EVENT_SEGMENT_UNMAP];
    torch->source.integrity.events_unknown += of_kind[MT_TORCH_UNKNOWN];
}

/* A profile that torch.cuda._memory_viz converted has the purpose of tensors and entries for times
 * without events. Its segments cover the lowest to the highest address. The last device is the
 * host. */
static enum mt_status look_for_profile(struct mt_torch *torch, const struct census *census)
{
    struct mt_symbols *symbols = &torch->source.symbols;
    uint32_t name;

    torch->is_profile = torch->records.category_count && !census->latest_us &&
                        !census->of_kind[MT_EVENT_SEGMENT_ALLOC] &&
                        !census->of_kind[MT_EVENT_SEGMENT_MAP];
    if (!torch->is_profile)
        return MT_OK;
    enum mt_status status = mt_symbols_string(symbols, "host memory", strlen("host memory"), &name);
    return status ? status : mt_symbols_device(symbols, torch->device_count - 1, name, 0);
}

static enum mt_status infer(struct mt_torch *torch)
{
    struct census census, of_host;
    size_t unmatched;
    uint32_t i;

    memset(&census, 0, sizeof census);
    memset(&of_host, 0, sizeof of_host);
    torch->stack_uses = calloc((size_t)torch->source.symbols.stack_count + 1, 1);
    if (!torch->stack_uses)
        return MT_ERR_MEMORY;
    for (i = 0; i < torch->device_count; i++)
        look_at_entries(torch, &torch->devices[i], &census);
    if (torch->has_host) /* its times also have to ascend; the rest applies only to devices */
        look_at_entries(torch, &torch->devices[i], &of_host);
    look_at_annotations(torch);
    enum mt_status status = look_for_profile(torch, &census);
    if (status != MT_OK)
        return status;
    if (census.of_kind[MT_TORCH_USER_DEFINED]) {
        status = mt_torch_inline_phases(torch, &unmatched);
        if (status != MT_OK)
            return status;
        torch->source.integrity.phases_unmatched += unmatched;
    }
    if (census.of_kind[MT_EVENT_SEGMENT_FREE] || census.of_kind[MT_EVENT_SEGMENT_UNMAP])
        mt_torch_find_empty_cache(torch);
    if (has_private_pools(torch) && (status = mt_torch_route_pools(torch)) != MT_OK)
        return status;
    status = mt_torch_find_frees(torch, census.of_kind);
    if (status == MT_OK)
        status = mt_torch_find_start(torch);
    if (status == MT_OK)
        status = mt_torch_name_missing(torch);
    if (status == MT_OK)
        status = add_ends(torch);
    torch->latest_ns = mt_max_u64(census.latest_us, of_host.latest_us) * 1000;
    if (torch->annotation_count)
        torch->latest_ns = mt_max_u64(
            torch->latest_ns, torch->annotations[torch->annotation_count - 1].time_us * 1000);
    if (status == MT_OK)
        fill_header(torch, &census);
    torch->source.symbols_complete = true; /* readings name nothing */
    if (!torch->annotation_count && !census.of_kind[MT_TORCH_USER_DEFINED] && !torch->has_host)
        torch->source.stack_uses = torch->stack_uses;
    return status;
}

static void torch_close(struct mt_source *source)
{
    struct mt_torch *torch = (struct mt_torch *)source;

    mt_torch_records_release(&torch->records);
    mt_symbols_release(&source->symbols);
    mt_buf_release(&torch->allocator_options);
    mt_buf_release(&torch->settings);
    mt_buf_release(&torch->not_used);
    free(torch->devices);
    free(torch->segments);
    free(torch->annotations);
    free(torch->initial);
    free(torch->next_entry);
    free(torch->batch);
    free(torch->stack_uses);
    free(torch);
}

static const struct mt_source_ops torch_ops = {mt_torch_next, mt_torch_rewind, NULL, torch_close,
                                               NULL};

static enum mt_status not_a_snapshot(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "a pickle, but not a PyTorch memory snapshot");
}

static void find_parts(struct mt_torch *torch, const struct mt_pickle_value *items, size_t count,
                       struct torch_root *parts)
{
    for (size_t i = 0; i + 1 < count; i += 2) {
        const struct mt_pickle_value *part = &items[i + 1];
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_SEGMENTS: parts->segments = part; break;
        case MT_WORD_DEVICE_TRACES: parts->traces = part; break;
        case MT_WORD_EXTERNAL_ANNOTATIONS: parts->annotations = part; break;
        case MT_WORD_ALLOCATOR_SETTINGS: parts->settings = part; break;
        case MT_WORD_HOST_SEGMENTS: parts->host_segments = part; break;
        case MT_WORD_HOST_TRACES: parts->host_traces = part; break;
        default: mt_torch_note_unused(&torch->records, MT_TORCH_OF_SNAPSHOT, &items[i]); break;
        }
    }
}

static enum mt_status take_lists(struct mt_torch *torch, struct mt_pickle *pickle,
                                 const struct torch_root *parts, struct mt_error *error)
{
    enum mt_status status = take_devices(torch, pickle, parts->traces);

    if (status == MT_OK && parts->annotations)
        status = take_annotations(torch, pickle, parts->annotations);
    if (status == MT_OK)
        status = take_host(torch, parts->host_traces);
    if (status == MT_ERR_UNSUPPORTED)
        return mt_fail(error, status, MT_NO_OFFSET, "more than %d devices", MAX_DEVICES);
    if (status == MT_ERR_FORMAT)
        return mt_fail(error, status, MT_NO_OFFSET, "the snapshot has host memory but no device");
    return status == MT_OK ? MT_OK : mt_fail_memory(error);
}

static enum mt_status take_root(struct mt_torch *torch, struct mt_pickle *pickle,
                                struct mt_pickle_value root, struct mt_error *error)
{
    struct torch_root parts = {0};
    size_t count;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, root, &count);

    if (root.kind == MT_PICKLE_LIST) /* PyTorch 1.12: only the segments */
        parts.segments = &root;
    else if (root.kind == MT_PICKLE_DICT)
        find_parts(torch, items, count, &parts);
    torch->has_host_parts = parts.host_segments || parts.host_traces;
    if (!parts.segments && !parts.traces)
        return not_a_snapshot(error);
    if (parts.settings && parts.settings->kind == MT_PICKLE_DICT) {
        const struct mt_pickle_value *pairs = mt_pickle_items(pickle, *parts.settings, &count);
        mt_torch_read_settings(torch, pickle, pairs, count);
    }
    enum mt_status status = take_all_segments(torch, pickle, &parts, error);
    if (status != MT_OK)
        return status;
    if (root.kind == MT_PICKLE_LIST && !torch->segment_count)
        return not_a_snapshot(error);
    mt_torch_add_unused(&torch->records, pickle, &torch->not_used);
    return take_lists(torch, pickle, &parts, error);
}

static enum mt_status read_pickle(struct mt_torch *torch, struct mt_feed *feed, bool no_short_cuts,
                                  struct mt_error *error)
{
    struct mt_pickle_hooks hooks = {.context = &torch->records,
                                    .complete = mt_torch_hook,
                                    .append = mt_torch_append,
                                    .interchangeable = 1u << MT_TORCH_STACK,
                                    .texts = mt_torch_words,
                                    .text_count = MT_WORD_COUNT,
                                    .no_short_cuts = no_short_cuts};
    struct mt_pickle_value root;
    struct mt_pickle *pickle;
    enum mt_status status = mt_pickle_read(feed, &hooks, &pickle, &root, error);

    if (status != MT_OK)
        return status;
    torch->source.decoded_bytes = mt_pickle_bytes(pickle);
    torch->source.input_bytes = mt_feed_raw_bytes(feed);
    status = take_root(torch, pickle, root, error);
    mt_pickle_free(pickle);
    return status;
}

static enum mt_status name_heap(struct mt_symbols *symbols, const char *text, uint16_t *heap)
{
    uint32_t name, id = 0;
    enum mt_status status = mt_symbols_string(symbols, text, strlen(text), &name);

    if (status == MT_OK)
        status = mt_symbols_heap(symbols, name, &id);
    *heap = (uint16_t)id;
    return status;
}

static enum mt_status prepare(struct mt_torch *torch)
{
    enum mt_status status = mt_symbols_init(&torch->source.symbols);

    torch->source.ops = &torch_ops;
    torch->source.format = "pytorch-snapshot";
    torch->source.in_memory = true;
    torch->records.symbols = &torch->source.symbols;
    torch->options.max_split_bytes = UINT64_MAX;
    torch->batch = malloc(MT_TORCH_BATCH_EVENTS * sizeof *torch->batch);
    if (status == MT_OK)
        status = name_heap(&torch->source.symbols, "pytorch", &torch->heap);
    return status == MT_OK && torch->batch ? MT_OK : MT_ERR_MEMORY;
}

static uint64_t first_time_ns(const struct mt_torch *torch)
{
    uint64_t first_us = UINT64_MAX;

    for (uint32_t i = 0; i < mt_torch_lanes(torch); i++) {
        const struct mt_torch_device *device = &torch->devices[i];
        if (device->count)
            first_us = mt_min_u64(first_us, torch->records.entries[device->first].time_us);
    }
    if (torch->annotation_count)
        first_us = mt_min_u64(first_us, torch->annotations[0].time_us);
    return first_us == UINT64_MAX ? 0 : first_us * 1000;
}

static enum mt_status name_host_heaps(struct mt_torch *torch)
{
    struct mt_symbols *symbols = &torch->source.symbols;
    enum mt_status status = name_heap(symbols, "user:pinned", &torch->host_heap);

    return status ? status : name_heap(symbols, "driver:host", &torch->pinned_heap);
}

static enum mt_status finish(struct mt_torch *torch, struct mt_error *error)
{
    if ((torch->has_host && name_host_heaps(torch) != MT_OK) || infer(torch) != MT_OK ||
        torch->settings.failed || torch->allocator_options.failed || torch->not_used.failed)
        return mt_fail_memory(error);
    torch->source.header.start_t_ns = first_time_ns(torch);
    torch->source.integrity.closed = true;
    return MT_OK;
}

enum mt_status mt_torch_open(struct mt_feed *feed, bool no_short_cuts, struct mt_source **source,
                             struct mt_error *error)
{
    struct mt_torch *torch = calloc(1, sizeof *torch);

    if (!torch)
        return mt_fail_memory(error);
    enum mt_status status = prepare(torch) == MT_OK ? MT_OK : mt_fail_memory(error);
    if (status == MT_OK)
        status = read_pickle(torch, feed, no_short_cuts, error);
    if (status == MT_OK)
        status = finish(torch, error);
    if (status != MT_OK) {
        torch_close(&torch->source);
        return status;
    }
    *source = &torch->source;
    return MT_OK;
}

enum mt_status mt_torch_snapshot_open(struct mt_feed *feed, struct mt_source **source,
                                      struct mt_error *error)
{
    return mt_torch_open(feed, false, source, error);
}
