#include "needs.h"

#include "analysis.h"
#include "fit.h"
#include "report_query.h"
#include "util.h"

#include <stdlib.h>

static void set_need(struct mt_need *need, const struct mt_fit_result *result, uint32_t orders)
{
    const uint64_t bytes = mt_fit_need_bytes(result);

    *need = (struct mt_need){.bytes = bytes,
                             .low_bytes = bytes - (result->high_bytes - result->low_bytes),
                             .order_count = result->order_count,
                             .is_one_of_many = orders == 1 && result->address_ties,
                             .depends_on_memory = mt_fit_depends_on_memory(result)};
}

/* One search for all devices; released by the caller. An empty summary: there is no answer. */
static enum mt_status search(struct mt_analysis *analysis, const char *policy, uint32_t orders,
                             struct mt_fit_summary *summary)
{
    const struct mt_fit_options options = {
        .policy = policy, .orders = orders, .progress = analysis->options->progress};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);

    if (status != MT_OK)
        return status;
    status = mt_fit_run(analysis->source, &options, summary, &error);
    if (status == MT_ERR_USAGE || status == MT_ERR_UNSUPPORTED) {
        summary->device_count = 0; /* a policy that simulates nothing, or cannot */
        return MT_OK;
    }
    if (status != MT_OK)
        *analysis->error = error;
    return status;
}

static const struct mt_fit_result *result_of(const struct mt_fit_summary *summary, uint16_t device)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].device == device && summary->devices[i].fits)
            return &summary->devices[i];
    return NULL;
}

enum mt_status mt_need_under(struct mt_analysis *analysis, const char *policy, uint16_t device,
                             struct mt_need *need, bool *found)
{
    const uint32_t orders = mt_fit_affordable_orders(analysis->survey.events);
    struct mt_fit_summary *summary;
    const struct mt_fit_result *result;
    enum mt_status status;

    *found = false;
    if (!orders)
        return MT_OK;
    summary = calloc(1, sizeof *summary);
    if (!summary)
        return MT_ERR_MEMORY;
    status = search(analysis, policy, orders, summary);
    result = status == MT_OK ? result_of(summary, device) : NULL;
    if (result) {
        set_need(need, result, orders);
        *found = true;
    }
    mt_fit_release(summary);
    free(summary);
    return status;
}

bool mt_needs_are_wanted(const struct mt_analysis *analysis)
{
    const struct mt_report *report = analysis->report;

    return analysis->options->needs && !analysis->options->question &&
           (report->what_if || (!report->is_driver_level && !report->pytorch_difference)) &&
           mt_fit_affordable_orders(analysis->survey.events);
}

/* A run that died did not ask for all that it needs (oom_answers.h). One that recorded a single
 * instant asked for nothing; and what was reserved when the recording began may have been given
 * back under a smaller limit, so that it bounds the answer from below only as long as the recording
 * needs more. */
static bool is_known(const struct mt_device_report *device, const struct mt_fit_result *result)
{
    return device->allocations && !mt_fatal_oom(device) && !device->has_failure &&
           (!device->start.reserved || mt_fit_need_bytes(result) > device->start.reserved);
}

static enum mt_status keep(struct mt_analysis *analysis, const struct mt_fit_summary *summary,
                           uint32_t orders)
{
    struct mt_report *report = analysis->report;

    for (uint32_t i = 0; i < report->device_count; i++) {
        struct mt_device_report *device = &report->devices[i];
        const struct mt_fit_result *result = result_of(summary, device->device);

        if (!result || !is_known(device, result))
            continue;
        device->need = mt_arena_alloc(&report->arena, sizeof *device->need);
        if (!device->need)
            return MT_ERR_MEMORY;
        set_need(device->need, result, orders);
    }
    return MT_OK;
}

enum mt_status mt_fill_needs(struct mt_analysis *analysis)
{
    const uint32_t orders = mt_fit_affordable_orders(analysis->survey.events);
    struct mt_fit_summary *summary = calloc(1, sizeof *summary);
    enum mt_status status;

    if (!summary)
        return MT_ERR_MEMORY;
    status = search(analysis, analysis->options->replay.policy, orders, summary);
    if (status == MT_OK)
        status = keep(analysis, summary, orders);
    mt_fit_release(summary);
    free(summary);
    return status;
}
