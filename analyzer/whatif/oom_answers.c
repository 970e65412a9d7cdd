/* Possible remedies: the smallest limit under the run's own settings and under those that PyTorch's
 * error message and its defaults suggest (fit.h). */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "fit.h"
#include "oom_answers.h"
#include "process_memory.h"
#include "report_query.h"
#include "status.h"
#include "util.h"

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

static enum mt_oom_cause cause_of(const struct mt_oom_answer *answer)
{
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
    answer->cause = cause_of(answer);
    if (analysis->report->pytorch_difference || !mt_fit_affordable_orders(analysis->survey.events))
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
