/* What a run needs of a device: the smallest limit, the range of its peaks under other orders of
 * addresses, and remedies if it ran out of memory. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "cards.h"
#include "fit.h"
#include "needs.h"
#include "process_memory.h"
#include "replay.h"
#include "report.h"
#include "report_query.h"
#include "status.h"
#include "util.h"

/* A run that ended out of memory did not make all its requests (needs.h). A recording of a
 * single instant has none. What the program needed before the start of the recording is unknown, so
 * what is left of it at the start bounds the answer from below only while the recording needs more.
 */
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
                                           .limits_only = true};
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

/* Possible remedies: the smallest limit under the run's own settings and under those that PyTorch's
 * error message and its defaults suggest (fit.h). */

/* The limit of the run, or the remaining memory of the device, as bounds. */
static void bound_limit(const struct mt_device_report *device, struct mt_oom_answer *answer)
{
    const struct mt_replay_result *replay = &device->replay;
    uint64_t most = answer->oom->then.reserved + answer->oom->device_free_bytes;

    answer->least_limit_bytes = answer->most_limit_bytes = most;
    if (!mt_limit_is_known(replay))
        return;
    answer->least_limit_bytes = mt_min_u64(most, mt_least_limit_bytes(replay));
    answer->most_limit_bytes = mt_min_u64(most, mt_most_limit_bytes(replay));
}

/* Unused memory, and what a limit leaves to be reserved. */
static bool would_hold(const struct mt_oom_answer *answer, uint64_t limit_bytes)
{
    uint64_t reserved = answer->oom->then.reserved;
    uint64_t growth = limit_bytes > reserved ? limit_bytes - reserved : 0;

    return answer->unused_bytes + growth >= answer->oom->request_bytes;
}

static enum mt_oom_cause cause_of(const struct mt_oom_answer *answer,
                                  const struct mt_driver_report *driver)
{
    if (driver && driver->no_space_oom && driver->no_space_oom == answer->oom->event)
        return MT_OOM_ADDRESS_SPACE;
    if (would_hold(answer, answer->least_limit_bytes))
        return MT_OOM_FRAGMENTATION;
    return would_hold(answer, answer->most_limit_bytes) ? MT_OOM_EITHER : MT_OOM_DEMAND;
}

/* The first way has the run's own options, spelled in full; the others as requested, unless they
 * are the same. */
static void add_way(struct mt_oom_answer *answer, struct mt_arena *arena, const char *policy,
                    const struct mt_fit_summary *summary, const struct mt_fit_result *result)
{
    struct mt_oom_way *way = &answer->ways[answer->way_count];
    bool is_own = answer->way_count == 0;

    if (!is_own && !strcmp(answer->ways[0].policy, summary->policy))
        return;
    way->policy = is_own ? mt_arena_text(arena, summary->policy, strlen(summary->policy)) : policy;
    way->fits = result->fits;
    way->fit_bytes = result->high_bytes;
    way->low_bytes = result->low_bytes;
    way->order_count = result->order_count;
    way->smaller_fit_bytes = result->smaller_fit_bytes;
    way->same_limit = result->limit_fits;
    way->approximate = result->address_ties || result->recorded_retries > result->recorded_ooms;
    answer->way_count++;
}

/* One setting on the device of the answer. */
static enum mt_status try_policy(struct mt_analysis *analysis,
                                 const struct mt_device_report *device, const char *policy,
                                 struct mt_fit_summary *summary)
{
    struct mt_oom_answer *answer = device->oom_answer;
    const struct mt_fit_options options = {.policy = policy,
                                           .limit_bytes = answer->least_limit_bytes,
                                           .run = analysis->summary,
                                           .limits_only = true,
                                           .orders =
                                               mt_fit_affordable_orders(analysis->survey.events)};
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);

    if (!status)
        status = mt_fit_run(analysis->source, &options, summary, analysis->error);
    for (uint16_t i = 0; !status && i < summary->device_count; i++)
        if (summary->devices[i].device == device->device)
            add_way(answer, &analysis->report->arena, policy, summary, &summary->devices[i]);
    mt_fit_release(summary);
    return status;
}

static enum mt_status find_ways(struct mt_analysis *analysis, const struct mt_device_report *device)
{
    static const char *const policies[MT_OOM_WAYS] = {
        "pytorch", "pytorch:", "pytorch:expandable_segments:True"};
    struct mt_fit_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    enum mt_status status = MT_OK;

    for (size_t i = 0; !status && i < MT_ARRAY_LEN(policies); i++)
        status = try_policy(analysis, device, policies[i], summary);
    free(summary);
    return status;
}

static enum mt_status answer_for(struct mt_analysis *analysis, struct mt_device_report *device)
{
    const struct mt_oom *oom = mt_fatal_oom(device);
    struct mt_oom_answer *answer;

    if (!oom)
        return MT_OK;
    answer = mt_arena_alloc(&analysis->report->arena, sizeof *answer);
    device->oom_answer = answer;
    answer->oom = oom;
    answer->unused_bytes = oom->then.reserved - mt_min_u64(oom->then.active, oom->then.reserved);
    bound_limit(device, answer);
    answer->cause = cause_of(answer, mt_driver_of(analysis->report, device->device));
    if (answer->cause == MT_OOM_ADDRESS_SPACE || mt_card_exceeds_all(oom->request_bytes) ||
        analysis->report->pytorch_difference || !mt_fit_affordable_orders(analysis->survey.events))
        return MT_OK;
    return find_ways(analysis, device);
}

enum mt_status mt_oom_answers_fill(struct mt_analysis *analysis)
{
    struct mt_report *report = analysis->report;
    enum mt_status status = MT_OK;

    if (report->what_if || report->is_driver_level)
        return MT_OK;
    for (uint32_t i = 0; !status && i < report->device_count; i++)
        status = answer_for(analysis, &report->devices[i]);
    return status;
}
