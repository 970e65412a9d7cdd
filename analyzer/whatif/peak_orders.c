#include "peak_orders.h"

#include "analysis.h"
#include "fit.h"
#include "needs.h"
#include "process_memory.h"
#include "replay_orders.h"
#include "util.h"

#include <stdlib.h>

bool mt_peak_orders_are_wanted(const struct mt_analysis *analysis)
{
    const struct mt_analyze_options *options = analysis->options;

    return analysis->report->is_dry_run && (options->needs || options->peak_orders) &&
           mt_run_can_be_replayed(analysis);
}

/* The run's own peak also counts: its addresses may differ from all orders tried. */
static void fill(struct mt_peak_orders *orders, const struct mt_replay_result *result,
                 const struct mt_device_report *device)
{
    uint64_t reserved = device->reserved_peak.bytes, allocated = device->allocated_peak.bytes;

    *orders = (struct mt_peak_orders){
        .order_count = result->order_count,
        .reserved_low_bytes = mt_min_u64(result->reserved_low_bytes, reserved),
        .reserved_high_bytes = mt_max_u64(result->reserved_high_bytes, reserved),
        .allocated_low_bytes = mt_min_u64(result->allocated_low_bytes, allocated),
        .allocated_high_bytes = mt_max_u64(result->allocated_high_bytes, allocated)};
}

static struct mt_device_report *device_of(struct mt_report *report, uint16_t number)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == number)
            return &report->devices[i];
    return NULL;
}

/* The limit truncated the peaks of a device that ran out of memory. */
static void keep(struct mt_report *report, const struct mt_replay_summary *summary)
{
    for (uint16_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];
        struct mt_device_report *device = device_of(report, result->device);
        struct mt_peak_orders *orders;

        if (!device || device->ooms || device->retries || result->most_failed_requests)
            continue;
        if (result->address_ties && result->order_count < 2) /* too long to try others */
            continue;
        orders = mt_arena_alloc(&report->arena, sizeof *orders);
        fill(orders, result, device);
        device->peak_orders = orders;
    }
}

enum mt_status mt_fill_peak_orders(struct mt_analysis *analysis)
{
    const struct mt_replay_options options = {.policy = analysis->options->replay.policy,
                                              .limit_bytes = analysis->options->replay.limit_bytes,
                                              .blind = true,
                                              .no_inferred_limit = true,
                                              .no_inferred_pools = true};
    struct mt_replay_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);

    if (status == MT_OK)
        status = mt_replay_run(analysis->source, &options, NULL, summary, analysis->error);
    if (status == MT_OK)
        status = mt_replay_orders(analysis->source, &options,
                                  mt_fit_affordable_orders(analysis->survey.events), summary,
                                  analysis->error);
    if (status == MT_OK)
        keep(analysis->report, summary);
    free(summary);
    return status;
}
