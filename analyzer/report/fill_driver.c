/* Moves the results of the driver ledger to the report. */
#include "fill_driver.h"

#include "analysis.h"
#include "fill_owners.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

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
        out->heaps[out->heap_count++] =
            (struct mt_heap_use){.name = mt_heap_name(symbols, heap->heap),
                                 .what = heap->is.what,
                                 .is_device_memory = heap->is.is_device_memory,
                                 .allocations = heap->allocations,
                                 .frees = heap->frees,
                                 .failures = heap->failures,
                                 .live_blocks = heap->live_blocks,
                                 .live_bytes = heap->live_bytes,
                                 .peak_bytes = heap->peak_bytes,
                                 .peak_t_ns = heap->peak_t_ns,
                                 .peak_event = heap->peak_event};
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
    mt_fill_owners(&analysis->attribution, &snapshot, &analysis->ledger.communicators, out);
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
    fill_outside(analysis, out, device);
}

static int by_device(const void *a, const void *b)
{
    const struct mt_driver_report *x = a, *y = b;

    return (int)x->device - (int)y->device;
}

void mt_fill_driver(struct mt_analysis *analysis)
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
