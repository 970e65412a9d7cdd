#include "report_parts.h"

#include "analysis.h"
#include "process_memory.h"
#include "report_query.h"
#include "source.h"
#include "xla_names.h"

#include <stdlib.h>
#include <string.h>

/* xla/tsl/framework/bfc_allocator.cc: the function that takes a region from the driver. */
static const char arena_function[] = "BFCAllocator::Extend";

static const struct {
    const char *policy;
    bool preallocated;
} arenas[MT_XLA_ARENAS] = {{"bfc", true}, {"bfc:preallocate=False", false}};

static bool is_of_arena(const struct mt_symbols *symbols, uint32_t stack)
{
    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];

        if (strstr(mt_symbols_text(symbols, frame->function), arena_function))
            return true;
    }
    return false;
}

/* Whether most memory at the device's peak is regions of the arena, according to the stacks. */
static bool holds_arena(const struct mt_report *report, const struct mt_device_report *device)
{
    const struct mt_instant *peak = device->instant_count ? &device->instants[0] : NULL;
    uint64_t bytes = 0;

    for (uint32_t i = 0; peak && i < peak->holding_count; i++)
        if (is_of_arena(report->symbols, peak->holdings[i].stack))
            bytes += peak->holdings[i].bytes;
    return bytes > device->allocated_peak.bytes / 2;
}

static uint64_t pool_requests(const struct mt_driver_report *driver)
{
    for (uint32_t i = 0; driver && i < driver->heap_count; i++)
        if (strcmp(driver->heaps[i].name, MT_XLA_HEAP) == 0)
            return driver->heaps[i].allocations;
    return 0;
}

bool mt_arenas_are_wanted(const struct mt_analysis *analysis)
{
    const struct mt_report *report = analysis->report;

    return report->is_driver_level && !report->what_if;
}

/* Ranges of modules name no device, so they are compared with the requests to all devices
 * together. */
static uint64_t all_allocations(const struct mt_report *report)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        count += report->devices[i].allocations;
    return count;
}

/* *replayed: the trace has the requests of some device. */
static void judge(struct mt_analysis *analysis, bool *replayed)
{
    struct mt_report *report = analysis->report;
    const uint32_t modules = analysis->survey.phases.xla_modules;
    const bool serves_itself = mt_xla_serves_itself(modules, all_allocations(report));

    for (uint32_t i = 0; i < report->device_count; i++) {
        struct mt_device_report *device = &report->devices[i];
        bool is_missing = holds_arena(report, device) || (serves_itself && device->allocations);
        bool is_there = !is_missing && modules && !analysis->options->question &&
                        pool_requests(mt_driver_of(report, device->device));

        if (!is_missing && !is_there)
            continue;
        device->xla = mt_arena_alloc(&report->arena, sizeof *device->xla);
        *device->xla = (struct mt_xla_use){.requests_missing = is_missing};
        *replayed |= is_there;
    }
}

static void keep(struct mt_report *report, uint32_t arena, const struct mt_replay_summary *summary)
{
    for (uint32_t i = 0; i < report->device_count; i++) {
        struct mt_xla_use *xla = report->devices[i].xla;

        for (uint16_t j = 0; xla && !xla->requests_missing && j < summary->device_count; j++) {
            const struct mt_replay_result *result = &summary->devices[j];

            if (result->device != report->devices[i].device)
                continue;
            xla->arenas[xla->arena_count++] =
                (struct mt_xla_arena){.policy = arenas[arena].policy,
                                      .preallocated = arenas[arena].preallocated,
                                      .pool_bytes = result->counters.reserved.peak,
                                      .in_use_bytes = result->counters.allocated.peak,
                                      .requests = result->counters.allocations,
                                      .failures = result->failed_requests,
                                      .address_ties = result->address_ties};
        }
    }
}

static enum mt_status replay(struct mt_analysis *analysis, struct mt_replay_summary *summaries)
{
    struct mt_replay_options options[MT_XLA_ARENAS];
    struct mt_replay_job jobs[MT_XLA_ARENAS];

    for (uint32_t i = 0; i < MT_XLA_ARENAS; i++) {
        options[i] = (struct mt_replay_options){.policy = arenas[i].policy};
        jobs[i] = (struct mt_replay_job){&options[i], NULL, &summaries[i]};
    }
    enum mt_status status =
        mt_replay_run_together(analysis->source, jobs, MT_XLA_ARENAS, NULL, analysis->error);
    for (uint32_t i = 0; i < MT_XLA_ARENAS && !status; i++)
        keep(analysis->report, i, &summaries[i]);
    return status;
}

enum mt_status mt_report_fill_arenas(struct mt_analysis *analysis)
{
    const struct mt_heap_view view = analysis->source->view;
    struct mt_replay_summary *summaries;
    bool replayed = false;
    enum mt_status status = MT_OK;

    judge(analysis, &replayed);
    if (!replayed)
        return MT_OK;
    summaries = mt_memory_zeroed(MT_XLA_ARENAS, sizeof *summaries);
    status = mt_source_rewind(analysis->source, analysis->error);
    if (!status)
        status = mt_heap_view_choose_heap(analysis->source, MT_XLA_HEAP, analysis->error);
    if (!status)
        status = replay(analysis, summaries);
    free(summaries);
    analysis->source->view = view;
    return status ? status : mt_source_rewind(analysis->source, analysis->error);
}
