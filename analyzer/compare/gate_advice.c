/* Remedies: other options of the allocator, proved by replays of the same requests; otherwise those
 * of the findings. */
#include "gate_advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process_memory.h"
#include "pytorch_config.h"
#include "replay.h"
#include "tune.h"
#include "units.h"
#include "util.h"

/* Above this many events, hundreds of replays are left to `memtrace tune`. */
enum { MAX_EVENTS = 3000000 };

/* Results of the replays, once for all rules. */
struct advice {
    bool has_tuned;
    struct mt_tune_summary tuned;
    bool has_base_peak; /* reserved, under the base's options, if they differ */
    uint64_t base_peak_bytes[MT_MAX_DEVICES];
    char options[512]; /* of the run */
};

static bool is_bad(const struct mt_gate_result *result)
{
    return result->has_actual && (result->state == MT_GATE_FAIL || result->state == MT_GATE_WARN);
}

static bool is_of_reserved(const struct mt_gate_result *result)
{
    return result->metric == MT_METRIC_RESERVED;
}

static bool can_replay(const struct mt_gate_work *work)
{
    const struct mt_report *report = work->check->report;
    uint64_t events = 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        events += report->devices[i].events;
    return !report->is_driver_level && !report->what_if && !report->pytorch_difference &&
           strncmp(report->policy, "pytorch", 7) == 0 && events <= MAX_EVENTS;
}

static bool wants_replays(const struct mt_gate_work *work)
{
    for (size_t i = 0; i < work->gates->count; i++)
        if (is_bad(&work->gates->results[i]) && is_of_reserved(&work->gates->results[i]))
            return can_replay(work);
    return false;
}

static enum mt_status tune(struct mt_gate_work *work, struct advice *advice)
{
    const struct mt_tune_options options = {0};
    struct mt_error error;
    enum mt_status status = mt_tune_run(work->check->source, &options, &advice->tuned, &error);

    advice->has_tuned = status == MT_OK;
    return status == MT_ERR_IO ? status : MT_OK;
}

static enum mt_status replay_base_options(struct mt_gate_work *work, struct advice *advice)
{
    struct mt_replay_summary *summary;
    struct mt_replay_options options = {.no_inferred_limit = true};
    struct mt_error error;
    char policy[MT_POLICY_TEXT];
    enum mt_status status;

    (void)snprintf(policy, sizeof policy, "pytorch:%s", work->check->base->options);
    options.policy = policy;
    summary = mt_memory_zeroed(1, sizeof *summary);
    status = mt_source_rewind(work->check->source, &error);
    if (!status)
        status = mt_replay_run(work->check->source, &options, NULL, summary, &error);
    for (uint16_t i = 0; !status && i < summary->device_count; i++)
        advice->base_peak_bytes[summary->devices[i].device] =
            summary->devices[i].counters.reserved.peak;
    advice->has_base_peak = status == MT_OK;
    free(summary);
    return status == MT_ERR_IO ? status : MT_OK;
}

static enum mt_status replay(struct mt_gate_work *work, struct advice *advice)
{
    const struct mt_baseline *base = work->check->base;
    struct mt_pytorch_config config;
    enum mt_status status;

    if (mt_pytorch_config_recorded(&work->check->source->header, &config, NULL) != MT_OK)
        return MT_OK;
    mt_pytorch_config_spell(&config, advice->options, sizeof advice->options);
    status = MT_OK;
    status = tune(work, advice);
    if (!status && base && base->options && strcmp(base->options, advice->options) != 0)
        status = replay_base_options(work, advice);
    return status;
}

static const char *spelling(const char *options)
{
    return *options ? options : "the defaults";
}

/* With --strict, a peak of a dry run must hold under every order of addresses, but advice is
 * replayed under only one. */
static const char *passes(const struct mt_gate_work *work, const struct mt_gate_result *result,
                          uint64_t reserved_bytes)
{
    bool is_peak = result->rule->kind == MT_GATE_PEAK || result->rule->kind == MT_GATE_REGRESSION;

    return is_peak && !result->may_fail && !(result->has_range && work->check->strict) &&
                   work->check->report->device_count == 1 && result->limit_bytes < INT64_MAX &&
                   reserved_bytes <= (uint64_t)result->limit_bytes
               ? ", which passes"
               : "";
}

static const char *of_base(struct mt_gate_work *work, const struct mt_gate_result *result,
                           const struct advice *advice)
{
    uint64_t bytes = advice->base_peak_bytes[result->device];
    char text[MT_UNITS_TEXT];

    if (!advice->has_base_peak || result->rule->kind != MT_GATE_REGRESSION)
        return "";
    return mt_arena_printf(&work->gates->arena,
                           "the run had %s, the base %s, under which these requests reserve %s%s; ",
                           spelling(advice->options), spelling(work->check->base->options),
                           mt_format_bytes(text, bytes), passes(work, result, bytes));
}

static const char *of_tune(struct mt_gate_work *work, const struct mt_gate_result *result,
                           const struct advice *advice)
{
    const struct mt_tune_summary *tuned = &advice->tuned;
    const struct mt_tune_row *best;
    char now[MT_UNITS_TEXT], then[MT_UNITS_TEXT];

    if (tuned->best == MT_TUNE_CURRENT)
        return mt_arena_printf(&work->gates->arena, "none of %zu allocator settings reserves less",
                               tuned->tried);
    best = &tuned->front[tuned->best];
    mt_format_bytes_apart(then, best->reserved_peak_bytes, now, tuned->current.reserved_peak_bytes);
    if (!*best->conf)
        return mt_arena_printf(
            &work->gates->arena, "without %s these requests reserve %s instead of %s%s",
            advice->options, then, now, passes(work, result, best->reserved_peak_bytes));
    return mt_arena_printf(&work->gates->arena,
                           "PYTORCH_CUDA_ALLOC_CONF=%s reserves %s instead of %s%s (replayed)",
                           best->conf, then, now, passes(work, result, best->reserved_peak_bytes));
}

static const char *of_findings(struct mt_gate_work *work, const struct mt_gate_result *result)
{
    const struct mt_device_report *device = mt_gate_device(work, result);

    for (uint32_t i = 0; i < device->finding_count; i++) {
        const struct mt_finding *finding = &device->findings[i];

        if (result->rule->kind == MT_GATE_GROWTH && strcmp(finding->id, "growth") != 0)
            continue;
        if (result->culprit && strcmp(result->culprit, finding->title) == 0)
            return mt_arena_text(&work->gates->arena, finding->advice, strlen(finding->advice));
        return mt_arena_printf(&work->gates->arena, "%s: %s", finding->title, finding->advice);
    }
    return NULL;
}

static void advise(struct mt_gate_work *work, struct mt_gate_result *result,
                   const struct advice *advice)
{
    const char *base, *best;

    if (!is_of_reserved(result) || !advice->has_tuned) {
        result->advice = of_findings(work, result);
        if (!result->advice && is_of_reserved(result) && !work->check->report->is_driver_level)
            result->advice = "memtrace tune searches for allocator settings that need less";
        return;
    }
    base = of_base(work, result, advice);
    best = of_tune(work, result, advice);
    result->advice = base ? mt_arena_printf(&work->gates->arena, "%s%s", base, best) : NULL;
}

enum mt_status mt_gate_describe_advice(struct mt_gate_work *work)
{
    struct advice *advice = mt_memory_zeroed(1, sizeof *advice);
    enum mt_status status = MT_OK;

    if (wants_replays(work))
        status = replay(work, advice);
    for (size_t i = 0; !status && i < work->gates->count; i++)
        if (is_bad(&work->gates->results[i]))
            advise(work, &work->gates->results[i], advice);
    if (status && !work->error->status)
        status = mt_fail(work->error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    free(advice);
    return status;
}
