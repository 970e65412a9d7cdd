/* What a run needs of a device: the smallest limit, and the range of its peaks under other orders
 * of addresses. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "fit.h"
#include "needs.h"
#include "process_memory.h"
#include "replay.h"
#include "report.h"
#include "report_query.h"
#include "status.h"
#include "util.h"

/* A run that ended out of memory did not make all its requests (oom_answers.h). A recording of a
 * single instant has none. Memory reserved at the start of the recording may have been released
 * under a smaller limit, so it bounds the answer from below only while the recording needs more. */
static bool is_known(const struct mt_device_report *device, const struct mt_fit_result *result)
{
    return result->fits && device->allocations && !mt_fatal_oom(device) && !device->has_failure &&
           (!result->initial_bytes ||
            result->high_bytes > mt_round_up(result->initial_bytes, MT_MIB));
}

static struct mt_need need_of(const struct mt_fit_result *result, uint32_t orders)
{
    return (struct mt_need){.bytes = mt_fit_need_bytes(result),
                            .low_bytes = result->low_bytes + mt_fit_above_limit_bytes(result),
                            .above_limit_bytes = mt_fit_above_limit_bytes(result),
                            .order_count = result->order_count,
                            .is_one_of_many = orders == 1 && result->address_ties,
                            .depends_on_memory = mt_fit_depends_on_memory(result)};
}

/* One search for all devices; the caller releases the result. An empty summary: there is no
 * answer. */
static enum mt_status search(struct mt_analysis *analysis, const char *policy, uint32_t orders,
                             struct mt_fit_summary *summary)
{
    const struct mt_fit_options options = {.policy = policy,
                                           .orders = orders,
                                           .run =
                                               analysis->report->what_if ? NULL : analysis->summary,
                                           .limits_only = true,
                                           .progress = analysis->options->progress};
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

/* Keeps the results of a summary before the next search. */
static void keep(struct mt_analysis *analysis, const char *policy, uint32_t orders,
                 const struct mt_fit_summary *summary, struct mt_policy_needs **needs)
{
    struct mt_report *report = analysis->report;

    *needs = mt_arena_alloc(&report->arena, sizeof **needs);
    (*needs)->policy = policy;
    for (uint16_t i = 0; i < summary->device_count; i++) {
        const struct mt_fit_result *result = &summary->devices[i];
        const struct mt_device_report *device = mt_report_device(report, result->device);

        if (!device || !is_known(device, result))
            continue;
        (*needs)->of[result->device] = mt_arena_alloc(&report->arena, sizeof(struct mt_need));
        *(*needs)->of[result->device] = need_of(result, orders);
    }
    (*needs)->next = analysis->needs;
    analysis->needs = *needs;
}

static enum mt_status measure(struct mt_analysis *analysis, const char *policy,
                              struct mt_policy_needs **needs)
{
    const uint32_t orders = mt_fit_affordable_orders(analysis->survey.events);
    struct mt_fit_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    enum mt_status status = MT_OK;

    if (orders)
        status = search(analysis, policy, orders, summary);
    if (status == MT_OK)
        keep(analysis, policy, orders, summary, needs);
    mt_fit_release(summary);
    free(summary);
    return status;
}

/* For all devices: each policy is searched once per analysis. */
static enum mt_status needs_under(struct mt_analysis *analysis, const char *policy,
                                  struct mt_policy_needs **needs)
{
    for (*needs = analysis->needs; *needs; *needs = (*needs)->next)
        if ((*needs)->policy == policy ||
            (policy && (*needs)->policy && strcmp((*needs)->policy, policy) == 0))
            return MT_OK;
    return measure(analysis, policy, needs);
}

enum mt_status mt_needs_under(struct mt_analysis *analysis, const char *policy, uint16_t device,
                              const struct mt_need **need)
{
    struct mt_policy_needs *needs;
    enum mt_status status = needs_under(analysis, policy, &needs);

    *need = status == MT_OK && device < MT_MAX_DEVICES ? needs->of[device] : NULL;
    return status;
}

/* Whether an allocator that the replay explains served the whole run, and the trace is short enough
 * for repeated replays. */
static bool run_can_be_replayed(const struct mt_analysis *analysis)
{
    const struct mt_report *report = analysis->report;

    return !analysis->options->question &&
           (report->what_if || (!report->is_driver_level && !report->pytorch_difference)) &&
           mt_fit_affordable_orders(analysis->survey.events);
}

bool mt_needs_are_wanted(const struct mt_analysis *analysis)
{
    return analysis->options->needs && run_can_be_replayed(analysis);
}

enum mt_status mt_needs_fill(struct mt_analysis *analysis)
{
    struct mt_report *report = analysis->report;
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; status == MT_OK && i < report->device_count; i++)
        status = mt_needs_under(analysis, analysis->options->replay.policy,
                                report->devices[i].device, &report->devices[i].need);
    return status;
}

bool mt_peak_orders_are_wanted(const struct mt_analysis *analysis)
{
    const struct mt_analyze_options *options = analysis->options;

    return analysis->report->is_dry_run && (options->needs || options->peak_orders) &&
           run_can_be_replayed(analysis);
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
static void keep_peak_orders(struct mt_report *report, const struct mt_replay_summary *summary)
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

enum mt_status mt_needs_fill_peak_orders(struct mt_analysis *analysis)
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
        keep_peak_orders(analysis->report, summary);
    free(summary);
    return status;
}
