/* Fills the report with the memory of the device outside of the framework: the driver's memory, the
 * libraries that own it, and the parts of the device.
 *
 * Moves the results of the driver ledger to the report: the driver's memory, and the libraries that
 * own it. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "attributed.h"
#include "communicators.h"
#include "libraries.h"
#include "process_memory.h"
#include "report_parts.h"
#include "report_query.h"
#include "sorted.h"
#include "util.h"

/* Blocks by role, framework segments, other driver memory, and NVML's value beyond these are
 * counted separately. The rest of the device is free, or was not seen. */

static uint64_t role_bytes(const struct mt_device_report *device, const struct mt_snapshot *peak,
                           enum mt_role role)
{
    uint64_t bytes = device->peak_role_bytes[role];

    return bytes - mt_min_u64(bytes, peak->pool_role_bytes[role]);
}

/* Weights, caches and workspaces count as such in any pool. */
static uint64_t pool_bytes(const struct mt_snapshot *peak, const struct mt_driver_level *then)
{
    static const enum mt_role told[] = {MT_ROLE_PARAMETERS, MT_ROLE_KV_CACHE, MT_ROLE_WORKSPACE};
    uint64_t own = 0, all = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(told); i++)
        own += peak->pool_role_bytes[told[i]];
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        all += peak->pool_role_bytes[role];
    /* segments of old traces do not name their pool */
    return mt_max_u64(then->pool_bytes, all) - own;
}

static void fill_blocks(struct mt_device_parts *device_parts, const struct mt_device_report *device,
                        const struct mt_snapshot *peak, const struct mt_driver_level *then)
{
    device_parts->parts[MT_DEVICE_WEIGHTS] = device->peak_role_bytes[MT_ROLE_PARAMETERS];
    device_parts->parts[MT_DEVICE_KV_CACHE] = device->peak_role_bytes[MT_ROLE_KV_CACHE];
    device_parts->parts[MT_DEVICE_WORKSPACES] = device->peak_role_bytes[MT_ROLE_WORKSPACE];
    device_parts->parts[MT_DEVICE_ACTIVATIONS] = role_bytes(device, peak, MT_ROLE_ACTIVATIONS) +
                                                 role_bytes(device, peak, MT_ROLE_TEMPORARIES) +
                                                 role_bytes(device, peak, MT_ROLE_WEIGHT_COPIES) +
                                                 role_bytes(device, peak, MT_ROLE_INPUTS);
    device_parts->parts[MT_DEVICE_OTHER] = role_bytes(device, peak, MT_ROLE_OTHER) +
                                           role_bytes(device, peak, MT_ROLE_GRADIENTS) +
                                           role_bytes(device, peak, MT_ROLE_OPTIMIZER_STATE);
    device_parts->parts[MT_DEVICE_GRAPHS] = pool_bytes(peak, then);
}

/* Sets the rest of `whole` after the first `count` parts; returns false if they exceed it. */
static bool take_rest(struct mt_device_parts *device_parts, int count, uint64_t whole,
                      enum mt_device_part rest)
{
    uint64_t sum = 0;

    for (int i = 0; i < count; i++)
        if (!mt_add_ok(sum, device_parts->parts[i], &sum))
            return false;
    if (sum > whole)
        return false;
    device_parts->parts[rest] = whole - sum;
    return true;
}

/* Growth of the context up to NVML's largest sample: modules are loaded when kernels are called. */
static uint64_t context_growth(const struct mt_device_parts *device_parts,
                               const struct mt_residual *residual)
{
    const uint64_t largest =
        residual->used_bytes - mt_min_u64(residual->used_bytes, residual->tracked_bytes);

    return largest - mt_min_u64(largest, device_parts->parts[MT_DEVICE_CONTEXT]);
}

/* Segments, libraries and the context may later take more than at the allocated peak, and a larger
 * cache must leave room for that. */
static uint64_t spare_bytes(const struct mt_device_parts *device_parts,
                            const struct mt_driver_report *driver)
{
    const uint64_t later = driver->peak.bytes - mt_min_u64(driver->peak.bytes, driver->then.bytes) +
                           context_growth(device_parts, &driver->residual);
    const uint64_t free_bytes = device_parts->parts[MT_DEVICE_FREE];

    return free_bytes - mt_min_u64(free_bytes, later);
}

static bool fill_parts(struct mt_device_parts *device_parts, const struct mt_device_report *device,
                       const struct mt_snapshot *peak, const struct mt_driver_report *driver)
{
    const struct mt_residual *residual = &driver->residual;

    fill_blocks(device_parts, device, peak, &driver->then);
    if (!take_rest(device_parts, MT_DEVICE_UNUSED, driver->then.framework_bytes, MT_DEVICE_UNUSED))
        return false;
    device_parts->parts[MT_DEVICE_LIBRARIES] = driver->then.bytes - driver->then.framework_bytes;
    device_parts->context_is_known = residual->has_peak_sample;
    device_parts->context_t_ns = residual->peak_t_ns;
    device_parts->context_event = residual->peak_event;
    device_parts->samples = residual->samples;
    device_parts->parts[MT_DEVICE_CONTEXT] = residual->peak_bytes;
    if (!take_rest(device_parts, MT_DEVICE_FREE, device_parts->total_bytes, MT_DEVICE_FREE))
        return false;
    device_parts->spare_bytes = spare_bytes(device_parts, driver);
    device_parts->died = mt_fatal_oom(device);
    return true;
}

static uint64_t total_bytes(const struct mt_symbols *symbols, uint16_t device)
{
    return device < symbols->device_count ? symbols->devices[device].total_memory_bytes : 0;
}

void mt_report_fill_device_parts(struct mt_analysis *analysis, const struct mt_snapshot *peak,
                                 struct mt_device_report *out)
{
    const struct mt_report *report = analysis->report;
    const struct mt_driver_report *driver = mt_driver_of(report, out->device);
    struct mt_device_parts device_parts = {.total_bytes =
                                               total_bytes(report->symbols, out->device)};

    if (!peak || !driver || !driver->has_calls || !driver->has_then || report->saw_backward ||
        report->what_if || !out->peak_role_bytes[MT_ROLE_KV_CACHE] || !device_parts.total_bytes ||
        driver->then.framework_bytes > driver->then.bytes ||
        !fill_parts(&device_parts, out, peak, driver))
        return;
    out->device_parts = mt_arena_alloc(&analysis->report->arena, sizeof *out->device_parts);
    *out->device_parts = device_parts;
}

/* Owners of driver memory outside of the framework: libraries, and communicators of NCCL.
 *
 * Native frames name the library, but not the communicator: equal calls have equal stacks. NCCL's
 * own ranges do: each range that makes a communicator is an instance, and its threads are in the
 * range that waits for them. If no native frames were recorded, the range also identifies the
 * library. */

/* Holdings of one stack, in one range of NCCL. */
struct row {
    uint32_t stack;
    int32_t range; /* phase, MT_NO_PHASE */
    uint64_t bytes, blocks;
    struct mt_owner_use use;
};

static const char *nccl_call(const struct mt_attribution *attribution, int32_t phase)
{
    const char *call;

    return mt_libraries_is_nccl_range(attribution->phases->phases[phase].name, &call) ? call : NULL;
}

/* Recorders that did not receive NVTX's payloads missed the ends of ranges of NCCL. Such a range
 * includes later calls, unless the framework's own range around it ended it. */
static bool is_whole(const struct mt_attribution *attribution, int32_t phase)
{
    const struct mt_phase *range = &attribution->phases->phases[phase];

    return !range->cut ||
           (range->parent != MT_NO_PHASE && attribution->phases->phases[range->parent].is_plumbing);
}

/* The range of NCCL around a phase: the one that makes a communicator, otherwise the innermost. */
static int32_t range_of(const struct mt_attribution *attribution, int32_t phase)
{
    int32_t found = MT_NO_PHASE;

    for (; phase != MT_NO_PHASE; phase = attribution->phases->phases[phase].parent) {
        const char *call = is_whole(attribution, phase) ? nccl_call(attribution, phase) : NULL;

        if (call && (mt_makes_communicator(call) || mt_makes_communicators(call)))
            return phase;
        if (call && found == MT_NO_PHASE)
            found = phase;
    }
    return found;
}

static const int32_t MADE_TWICE = MT_NO_COMMUNICATOR - 1;

/* The ranges that make communicators, in order, and NCCL's reports about them. */
struct communicators {
    uint32_t *ranges;
    uint32_t count;
    bool is_unknown; /* the number is unknown: a call made one for each of its devices */
    const struct mt_communicators *told;
    int32_t *orders; /* index in `ranges` for each of those; MT_NO_COMMUNICATOR */
};

static void find_communicators(const struct mt_attribution *attribution,
                               struct communicators *found)
{
    uint32_t phases = attribution->phases->count;

    found->ranges = mt_memory_zeroed((size_t)phases + 1, sizeof *found->ranges);
    for (uint32_t i = 0; i < phases; i++) {
        const char *call = nccl_call(attribution, (int32_t)i);

        if (call && mt_makes_communicator(call))
            found->ranges[found->count++] = i;
        found->is_unknown |= call && mt_makes_communicators(call);
    }
}

/* Number of those that began before `range`. */
static uint32_t made_before(const struct communicators *communicators, int32_t range)
{
    return (uint32_t)mt_sorted_count_below_u32(communicators->ranges, communicators->count,
                                               (uint32_t)range);
}

/* NCCL 2.28 reports the id of a child of ncclCommSplit only after the call that makes it. If
 * exactly one such call and one id without a call remain, they belong together. */
static void match_the_last(struct communicators *found)
{
    size_t orphan = SIZE_MAX, orphans = 0, makers = 0;
    int32_t maker = MT_NO_COMMUNICATOR;

    for (uint32_t i = 0; i < found->count; i++)
        if (!mt_communicator_of(found->told, (int32_t)found->ranges[i])) {
            maker = (int32_t)i;
            makers++;
        }
    for (size_t i = 0; i < found->told->count; i++)
        if (found->orders[i] == MT_NO_COMMUNICATOR) {
            orphan = i;
            orphans++;
        }
    if (orphans == 1 && makers == 1)
        found->orders[orphan] = maker;
}

/* Two calls that make a communicator with one id make two ranks of it in this process: reports
 * about the id apply to either. */
static void match_makers(struct communicators *found)
{
    const struct mt_communicators *told = found->told;

    for (uint32_t i = 0; i < found->count; i++) {
        const struct mt_communicator *of = mt_communicator_of(told, (int32_t)found->ranges[i]);
        int32_t *order = of ? &found->orders[of - told->list] : NULL;

        if (order)
            *order = *order == MT_NO_COMMUNICATOR ? (int32_t)i : MADE_TWICE;
    }
}

static void order_told(struct communicators *found, const struct mt_communicators *told)
{
    found->told = told;
    found->orders = mt_memory_zeroed(told->count + 1, sizeof *found->orders);
    for (size_t i = 0; i < told->count; i++)
        found->orders[i] = MT_NO_COMMUNICATOR;
    if (found->is_unknown)
        return;
    match_makers(found);
    match_the_last(found);
    for (size_t i = 0; i < told->count; i++)
        if (found->orders[i] == MADE_TWICE)
            found->orders[i] = MT_NO_COMMUNICATOR;
}

static void tell_communicators(struct mt_attribution *attribution,
                               const struct communicators *found, struct mt_driver_report *out)
{
    out->communicator_count = found->is_unknown ? 0 : found->count;
    out->communicators =
        mt_arena_array(attribution->arena, found->told->count + 1, sizeof *out->communicators);
    for (size_t i = 0; i < found->told->count; i++) {
        const struct mt_communicator *of = &found->told->list[i];

        out->communicators[out->told_communicator_count++] =
            (struct mt_communicator_use){.communicator = found->orders[i],
                                         .id = of->id,
                                         .ranks = of->ranks,
                                         .rank = of->rank,
                                         .registered_peak_bytes = of->registered_peak_bytes};
    }
}

MT_DEFINE_ORDER(by_key, struct row, MT_ASCENDING(stack) || MT_ASCENDING(range))

static int compare_text(const char *x, const char *y)
{
    return strcmp(x ? x : "", y ? y : "");
}

static int by_words(const void *a, const void *b)
{
    const struct mt_owner_use *x = &((const struct row *)a)->use;
    const struct mt_owner_use *y = &((const struct row *)b)->use;
    int order = compare_text(x->library, y->library);

    if (!order)
        order = (x->communicator > y->communicator) - (x->communicator < y->communicator);
    if (!order)
        order = compare_text(x->what, y->what);
    if (!order)
        order = compare_text(x->call, y->call);
    return order ? order : compare_text(x->site, y->site);
}

MT_DEFINE_ORDER(by_size, struct row, MT_DESCENDING(bytes) || MT_THEN(by_words))

static size_t merge(struct row *rows, size_t count, int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++) {
        if (!kept || order(&rows[kept - 1], &rows[i]) != 0) {
            rows[kept++] = rows[i];
            continue;
        }
        rows[kept - 1].bytes += rows[i].bytes;
        rows[kept - 1].blocks += rows[i].blocks;
    }
    return kept;
}

/* A range may name its communicator. Otherwise, allocations made while there is one communicator
 * belong to that one. */
static void tell_communicator(const struct mt_attribution *attribution,
                              const struct communicators *communicators, struct row *row)
{
    const char *call = nccl_call(attribution, row->range);
    uint32_t before = made_before(communicators, row->range);
    const struct mt_communicator *told = mt_communicator_of(communicators->told, row->range);

    row->use.library = "NCCL";
    row->use.call = call;
    row->use.what = mt_library_what(call);
    if (communicators->is_unknown)
        return;
    if (mt_makes_communicator(call))
        row->use.communicator = (int32_t)before;
    else if (told)
        row->use.communicator = communicators->orders[told - communicators->told->list];
    else if (before == 1)
        row->use.communicator = 0;
}

/* "[libfoo.so.1]" and "/usr/lib/libfoo.so.1 (build id 5e7...)" -> "libfoo.so.1"; a source file
 * keeps its name. */
static const char *file_name(const struct mt_attribution *attribution, uint32_t frame)
{
    const char *place = mt_frame_position(attribution->arena, attribution->symbols, frame);
    size_t length = strlen(place);

    if (*place == '[' && length > 2)
        return mt_arena_text(attribution->arena, place + 1, length - 2);
    return *place ? place : "an unknown file";
}

static void tell_row(struct mt_attribution *attribution, const struct communicators *communicators,
                     struct row *row)
{
    const struct mt_symbols *symbols = attribution->symbols;
    struct mt_stack_owner owner = mt_stack_owner(symbols, row->stack);
    struct mt_holding holding = {.stack = row->stack, .tied = MT_NO_ID, .phase = MT_NO_PHASE};
    struct mt_attributed place = mt_attributed_of(attribution, &holding);
    bool is_native = owner.library || owner.module != MT_NO_ID;

    row->use = (struct mt_owner_use){.library = owner.library,
                                     .what = owner.what,
                                     .site = mt_attributed_site(attribution, &place),
                                     .communicator = MT_NO_COMMUNICATOR};
    if (owner.call != MT_NO_ID)
        row->use.call = mt_frame_function(attribution->arena, symbols, owner.call);
    if (!owner.library && owner.module != MT_NO_ID)
        row->use.library = file_name(attribution, owner.module);
    if (row->range != MT_NO_PHASE &&
        (!is_native || (owner.library && !strcmp(owner.library, "NCCL"))))
        tell_communicator(attribution, communicators, row);
}

static void copy_rows(struct mt_attribution *attribution, const struct row *rows, size_t count,
                      struct mt_driver_report *out)
{
    out->owners = mt_arena_array(attribution->arena, count + 1, sizeof *out->owners);
    for (size_t i = 0; i < count; i++) {
        struct mt_owner_use *use = &out->owners[out->owner_count++];

        *use = rows[i].use;
        use->bytes = rows[i].bytes;
        use->blocks = rows[i].blocks;
    }
}

static void fill(struct mt_attribution *attribution, const struct mt_snapshot *outside,
                 const struct mt_communicators *told, struct row *rows,
                 struct mt_driver_report *out)
{
    struct communicators communicators = {0};

    find_communicators(attribution, &communicators);
    size_t count = outside->holding_count;

    order_told(&communicators, told);
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct row){.stack = outside->holdings[i].stack,
                               .range = range_of(attribution, outside->holdings[i].phase),
                               .bytes = outside->holdings[i].bytes,
                               .blocks = outside->holdings[i].blocks};
    count = merge(rows, count, by_key);
    for (size_t i = 0; i < count; i++)
        tell_row(attribution, &communicators, &rows[i]);
    tell_communicators(attribution, &communicators, out);
    free(communicators.ranges);
    free(communicators.orders);
    count = merge(rows, count, by_words);
    qsort(rows, count, sizeof *rows, by_size);
    copy_rows(attribution, rows, count, out);
}

/* Adds the holdings of `outside` as rows of `out`. Bytes and blocks of the rows sum to those of its
 * sites. */
static void fill_owners(struct mt_attribution *attribution, const struct mt_snapshot *outside,
                        const struct mt_communicators *told, struct mt_driver_report *out)
{
    struct row *rows = mt_memory_zeroed((size_t)outside->holding_count + 1, sizeof *rows);

    fill(attribution, outside, told, rows, out);
    free(rows);
}

static void fill_heaps(struct mt_analysis *analysis, struct mt_driver_report *out, uint32_t device)
{
    const struct mt_driver_ledger *ledger = &analysis->ledger;
    const struct mt_symbols *symbols = &analysis->source->symbols;

    out->heaps =
        mt_arena_array(&analysis->report->arena, ledger->heap_count + 1, sizeof *out->heaps);
    for (size_t i = 0; i < ledger->heap_count; i++) {
        const struct mt_ledger_heap *heap = &ledger->heaps[i];

        if (heap->device != device)
            continue;
        struct mt_heap_use *use = &out->heaps[out->heap_count++];
        *use = heap->use;
        use->name = mt_heap_name(symbols, heap->heap);
        use->what = heap->is.what;
        use->is_device_memory = heap->is.is_device_memory;
    }
}

static void fill_failures(struct mt_analysis *analysis, struct mt_driver_report *out)
{
    const struct mt_driver_ledger *ledger = &analysis->ledger;
    size_t kept = mt_min_u64(ledger->failure_count, MT_LEDGER_FAILURES);

    for (uint32_t i = 0; i < out->heap_count; i++)
        out->failures_in_all += out->heaps[i].failures;
    out->failures = mt_arena_array(&analysis->report->arena, kept + 1, sizeof *out->failures);
    for (size_t i = 0; i < kept; i++)
        if (ledger->failures[i].device == out->device)
            out->failures[out->failure_count++] = ledger->failures[i];
}

static void fill_fatal(struct mt_analysis *analysis, struct mt_driver_report *out,
                       const struct mt_ledger_device *device)
{
    struct mt_driver_failure *fatal;

    if (!device->was_refused)
        return;
    fatal = mt_arena_alloc(&analysis->report->arena, sizeof *fatal);
    *fatal = device->refused;
    out->fatal = fatal;
}

static void fill_no_space(struct mt_analysis *analysis, struct mt_driver_report *out,
                          const struct mt_ledger_device *device)
{
    struct mt_driver_failure *no_space;

    out->no_space_oom = device->no_space_oom;
    if (!device->is_out_of_space)
        return;
    no_space = mt_arena_alloc(&analysis->report->arena, sizeof *no_space);
    *no_space = device->no_space;
    out->no_space = no_space;
}

static void fill_residual(const struct mt_analysis *analysis, struct mt_driver_report *out,
                          const struct mt_ledger_device *device)
{
    enum mt_tracked from = analysis->ledger.has_driver ? MT_TRACKED_DRIVER : MT_TRACKED_SEGMENTS;
    const struct mt_ledger_samples *samples = &device->samples[from];

    out->residual = (struct mt_residual){.tracked_from = from,
                                         .samples = samples->count,
                                         .unknown_samples = samples->unknown,
                                         .t_ns = samples->largest.t_ns,
                                         .event = samples->largest.event,
                                         .used_bytes = samples->largest.used_bytes,
                                         .tracked_bytes = samples->largest.tracked_bytes,
                                         .least_bytes = samples->least_residual,
                                         .most_bytes = samples->most_residual};
    if (!device->wants_copy || !samples->nearest.used_bytes)
        return;
    out->residual.has_peak_sample = true;
    out->residual.peak_t_ns = samples->nearest.t_ns;
    out->residual.peak_event = samples->nearest.event;
    out->residual.peak_bytes = samples->nearest.used_bytes - samples->nearest.tracked_bytes;
}

static void fill_outside(struct mt_analysis *analysis, struct mt_driver_report *out,
                         struct mt_ledger_device *device)
{
    struct mt_snapshot snapshot = {.device = device->device, .holdings = device->copies};

    if (!device->has_copy)
        return;
    out->has_then = true;
    out->then = device->then;
    for (uint32_t i = 0; i < analysis->report->device_count; i++) {
        const struct mt_device_report *of = &analysis->report->devices[i];

        if (of->device != device->device)
            continue;
        out->then.t_ns = of->allocated_peak.t_ns;
        out->then.event = of->allocated_peak.event;
        out->then.phase = of->allocated_peak.phase;
    }
    for (uint32_t i = 0; i < device->copy_count; i++) {
        if (!device->copies[i].bytes)
            continue;
        device->copies[snapshot.holding_count++] = device->copies[i];
        snapshot.bytes += device->copies[i].bytes;
    }
    mt_attribute_sites(&analysis->attribution, &snapshot, &out->outside_sites,
                       &out->outside_site_count);
    fill_owners(&analysis->attribution, &snapshot, &analysis->ledger.communicators, out);
}

static void fill_device(struct mt_analysis *analysis, struct mt_driver_report *out, uint32_t index)
{
    struct mt_ledger_device *device = &analysis->ledger.devices[index];

    fill_heaps(analysis, out, index);
    out->device = device->device;
    out->has_calls = analysis->ledger.has_driver;
    out->peak = device->peak;
    fill_residual(analysis, out, device);
    fill_failures(analysis, out);
    fill_fatal(analysis, out, device);
    fill_no_space(analysis, out, device);
    fill_outside(analysis, out, device);
}

MT_DEFINE_ORDER(by_device, struct mt_driver_report, MT_ASCENDING(device))

void mt_report_fill_driver(struct mt_analysis *analysis)
{
    const struct mt_driver_ledger *ledger = &analysis->ledger;
    struct mt_report *report = analysis->report;

    report->drivers =
        mt_arena_array(&report->arena, ledger->device_count + 1, sizeof *report->drivers);
    analysis->attribution.first_event = 0; /* the driver's history is complete */
    analysis->attribution.is_outside = true;
    for (uint32_t i = 0; i < ledger->device_count; i++)
        fill_device(analysis, &report->drivers[report->driver_count++], i);
    analysis->attribution.is_outside = false;
    qsort(report->drivers, report->driver_count, sizeof *report->drivers, by_device);
}
