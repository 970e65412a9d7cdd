/* Checks the rules that a run must keep, and what would help if it does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card_use.h"
#include "fit.h"
#include "gate_result.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "replay.h"
#include "report_query.h"
#include "trend.h"
#include "tune.h"
#include "units.h"
#include "util.h"

/* Finds remedies for a run that violates a rule, and proves them by replays.
 *
 * Remedies: other options of the allocator, proved by replays of the same requests; otherwise those
 * of the findings. */

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

    (void)snprintf(policy, sizeof policy, "pytorch:%s", work->check->base->options);
    options.policy = policy;
    summary = mt_memory_zeroed(1, sizeof *summary);
    enum mt_status status = mt_source_rewind(work->check->source, &error);
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

    if (mt_pytorch_config_recorded(&work->check->source->header, &config, NULL) != MT_OK)
        return MT_OK;
    mt_pytorch_config_spell(&config, advice->options, sizeof advice->options);
    enum mt_status status = tune(work, advice);
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
    char now[MT_UNITS_TEXT], then[MT_UNITS_TEXT];

    if (tuned->best == MT_TUNE_CURRENT)
        return mt_arena_printf(&work->gates->arena, "none of %zu allocator settings reserves less",
                               tuned->tried);
    const struct mt_tune_row *best = &tuned->front[tuned->best];
    mt_format_bytes_distinct(then, best->reserved_peak_bytes, now,
                             tuned->current.reserved_peak_bytes);
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
    if (!is_of_reserved(result) || !advice->has_tuned) {
        result->advice = of_findings(work, result);
        if (!result->advice && is_of_reserved(result) && !work->check->report->is_driver_level)
            result->advice = "memtrace tune searches for allocator settings that need less";
        return;
    }
    const char *base = of_base(work, result, advice);
    const char *best = of_tune(work, result, advice);
    result->advice = base ? mt_arena_printf(&work->gates->arena, "%s%s", base, best) : NULL;
}

/* Fills the advice of all results that did not pass. Replays the source. */
static enum mt_status gate_describe_advice(struct mt_gate_work *work)
{
    struct advice *advice = mt_memory_zeroed(1, sizeof *advice);
    enum mt_status status = MT_OK;

    if (wants_replays(work))
        status = replay(work, advice);
    for (size_t i = 0; !status && i < work->gates->count; i++)
        if (is_bad(&work->gates->results[i]))
            advise(work, &work->gates->results[i], advice);
    if (status && !work->error->status)
        status = mt_fail_status(work->error, status);
    free(advice);
    return status;
}

__extension__ typedef unsigned __int128 wide;

static int64_t clamp(wide value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t share_of(uint64_t bytes, uint64_t millionths)
{
    return clamp((wide)bytes * millionths / 1000000);
}

/* The largest value that is within a bound; INT64_MAX: there is none. */
static int64_t largest_within(const struct mt_gate_result *result,
                              const struct mt_gate_bound *bound)
{
    if (!bound->text)
        return INT64_MAX;
    if (result->rule->kind == MT_GATE_FRAGMENTATION)
        return share_of(result->of_bytes, bound->millionths);
    if (result->rule->kind != MT_GATE_REGRESSION)
        return clamp(bound->bytes);
    int64_t more = share_of(result->base_bytes, bound->millionths);
    if (clamp(bound->bytes) > more)
        more = clamp(bound->bytes);
    return clamp((wide)result->base_bytes + (uint64_t)more);
}

/* Judges result->actual_bytes. `doubt`: why it may be too small, NULL = it is not; with a doubt
 * only a failure is certain. */
static void judge(struct mt_gate_work *work, struct mt_gate_result *result, const char *doubt)
{
    result->has_actual = true;
    result->limit_bytes = largest_within(result, &result->rule->limit);
    result->warn_bytes = largest_within(result, &result->rule->warn);
    if (result->actual_bytes > result->limit_bytes)
        result->state = MT_GATE_FAIL;
    else if (doubt)
        result->state = MT_GATE_NOT_EVALUATED;
    else if (result->actual_bytes > result->warn_bytes)
        result->state = MT_GATE_WARN;
    else
        result->state = MT_GATE_PASS;
    if (result->state == MT_GATE_NOT_EVALUATED)
        mt_gate_describe_not_evaluated(work, result, doubt);
    else
        mt_gate_describe(work, result);
}

/* Sets the peak of a metric and returns NULL, or returns why it is unknown. */
static const char *peak_of(const struct mt_gate_work *work, const struct mt_gate_result *result,
                           uint64_t *bytes)
{
    const struct mt_report *report = work->check->report;
    const struct mt_device_report *device = mt_gate_device(work, result);
    bool is_sampled;

    switch (result->metric) {
    case MT_METRIC_REQUESTED: *bytes = device->requested_peak.bytes; return NULL;
    case MT_METRIC_ALLOCATED: *bytes = device->allocated_peak.bytes; return NULL;
    case MT_METRIC_ACTIVE: *bytes = device->active_peak.bytes; break;
    case MT_METRIC_RESERVED: *bytes = device->reserved_peak.bytes; break;
    case MT_METRIC_DEVICE:
        return mt_device_peak(report, result->device, bytes, &is_sampled)
                   ? NULL
                   : "neither driver calls nor NVML samples were recorded";
    case MT_METRIC_NONE: break;
    }
    if (!mt_has_allocator(report))
        return "no allocator above the driver was recorded";
    return result->metric == MT_METRIC_RESERVED && !mt_knows_reserved(report)
               ? "reserved memory was not recorded"
               : NULL;
}

static void find_range(const struct mt_peak_orders *orders, struct mt_gate_result *result)
{
    result->has_range =
        orders && (result->metric == MT_METRIC_RESERVED || result->metric == MT_METRIC_ALLOCATED);
    if (!result->has_range)
        return;
    if (result->metric == MT_METRIC_RESERVED) {
        result->low_bytes = clamp(orders->reserved_low_bytes);
        result->high_bytes = clamp(orders->reserved_high_bytes);
    } else {
        result->low_bytes = clamp(orders->allocated_low_bytes);
        result->high_bytes = clamp(orders->allocated_high_bytes);
    }
}

/* A dry run has one order of addresses, a real device another: a value within its limit here may
 * exceed it there. */
static void judge_range(struct mt_gate_work *work, struct mt_gate_result *result)
{
    find_range(mt_gate_device(work, result)->peak_orders, result);
    if (!result->has_range || result->state == MT_GATE_NOT_EVALUATED)
        return;
    result->may_fail = result->state != MT_GATE_FAIL && result->high_bytes > result->limit_bytes;
    if (result->may_fail ||
        (result->state == MT_GATE_FAIL && result->low_bytes <= result->limit_bytes))
        mt_gate_describe_range(work, result);
    if (result->may_fail)
        result->state = work->check->strict ? MT_GATE_FAIL : MT_GATE_WARN;
}

static void check_peak(struct mt_gate_work *work, struct mt_gate_result *result)
{
    const struct mt_device_report *device = mt_gate_device(work, result);
    uint64_t bytes = 0;
    const char *why = peak_of(work, result, &bytes);

    if (why) {
        mt_gate_describe_not_evaluated(work, result, why);
        return;
    }
    result->actual_bytes = clamp(bytes);
    judge(work, result, mt_peaks_doubt(work->check->report, device));
    judge_range(work, result);
}

/* Sets the base's number and returns NULL, or returns why there is none. */
static const char *base_of(const struct mt_gate_work *work, const struct mt_gate_result *result,
                           uint64_t *bytes)
{
    const struct mt_baseline *base = work->check->base;
    const struct mt_baseline_device *device = mt_baseline_device(base, result->device);

    if (!base)
        return "no base was given";
    if (!device)
        return "the base has no such device";
    if (base->doubt) {
        const char *why =
            mt_arena_printf(&work->gates->arena, "the base is uncertain: %.100s", base->doubt);
        return why;
    }
    switch (result->metric) {
    case MT_METRIC_REQUESTED: *bytes = device->requested_peak_bytes; return NULL;
    case MT_METRIC_ALLOCATED: *bytes = device->allocated_peak_bytes; return NULL;
    case MT_METRIC_ACTIVE:
        *bytes = device->active_peak_bytes;
        return *bytes ? NULL : "the base has no allocator above the driver";
    case MT_METRIC_RESERVED: *bytes = device->reserved_peak_bytes; break;
    case MT_METRIC_DEVICE:
        *bytes = device->device_peak_bytes;
        return *bytes ? NULL : "the base has no figures of the whole device";
    case MT_METRIC_NONE: break;
    }
    return device->has_reserved ? NULL : "the base has no reserved memory";
}

static void check_regression(struct mt_gate_work *work, struct mt_gate_result *result)
{
    const char *why = base_of(work, result, &result->base_bytes);

    if (why) {
        mt_gate_describe_not_evaluated(work, result, why);
        return;
    }
    result->has_base = true;
    check_peak(work, result);
}

static void check_fragmentation(struct mt_gate_work *work, struct mt_gate_result *result)
{
    const struct mt_device_report *device = mt_gate_device(work, result);
    const struct mt_bytes *then = &mt_fragmentation_peak(device)->then;
    uint64_t reserved;
    const char *why = peak_of(work, result, &reserved);

    if (!why && !reserved)
        why = "nothing was reserved";
    if (why) {
        mt_gate_describe_not_evaluated(work, result, why);
        return;
    }
    result->actual_bytes = clamp(mt_sub_or_0_u64(then->reserved, then->allocated));
    result->of_bytes = then->reserved;
    judge(work, result, mt_peaks_doubt(work->check->report, device));
}

/* The rise of allocated memory from step to step, 0 if there is none. */
static void find_rise(const struct mt_report *report, const struct mt_device_report *device,
                      int64_t *bytes)
{
    struct mt_trend trend;

    mt_trend_fit(report, device, &trend);
    *bytes = trend.has_slope && trend.bytes_per_step > 0 ? trend.bytes_per_step : 0;
}

/* Memory that each step leaves behind: the estimate of the finding (growth.c). */
static void check_growth(struct mt_gate_work *work, struct mt_gate_result *result)
{
    static const char *const why_not[] = {
        [MT_GROWTH_JUDGED] = NULL,
        [MT_GROWTH_NO_STEPS] = "there are no steps",
        [MT_GROWTH_FEW_STEPS] = "too few steps: eight are needed, two of them to warm up",
        [MT_GROWTH_MANY_BLOCKS] = "too many blocks outlive their step"};
    const struct mt_device_report *device = mt_gate_device(work, result);
    const struct mt_integrity *integrity = &work->check->report->integrity;
    const char *why = why_not[mt_growth_basis(work->check->report, device)];
    const char *doubt = NULL;

    if (why) {
        mt_gate_describe_not_evaluated(work, result, why);
        return;
    }
    find_rise(work->check->report, device, &result->rise_bytes);
    if (integrity->events_dropped || integrity->frames_damaged || integrity->events_invalid)
        doubt = mt_peaks_doubt(work->check->report, device);
    result->actual_bytes = clamp(device->growth.bytes_per_step);
    result->of_bytes = device->growth.steps;
    judge(work, result, doubt);
}

static const struct mt_fit_result *fit_of(const struct mt_fit_summary *summary, uint16_t device)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].device == device)
            return &summary->devices[i];
    return NULL;
}

static void say_failing_request(struct mt_gate_work *work, struct mt_gate_result *result,
                                const struct mt_fit_failure *failure)
{
    if (failure->known)
        result->culprit = mt_arena_printf(
            &work->gates->arena, "the first request that does not fit: %.200s%s%.200s",
            failure->site ? failure->site : "no stack", failure->where ? ", in " : "",
            failure->where ? failure->where : "");
}

static void judge_fit(struct mt_gate_work *work, struct mt_gate_result *result,
                      const struct mt_fit_result *fit)
{
    const char *doubt = NULL;

    if (!fit) {
        mt_gate_describe_not_evaluated(work, result, "nothing was requested");
        return;
    }
    if (fit->died_at != MT_FIT_NOT_DIED)
        doubt = "the run ended out of memory: its later requests are unknown";
    else
        doubt = mt_peaks_doubt(work->check->report, mt_gate_device(work, result));
    /* A limit that was tried counts, not the order of limits. */
    result->actual_bytes = fit->fits ? clamp(mt_fit_need_bytes(fit)) : INT64_MAX;
    if (fit->limit_fits && result->actual_bytes > clamp(result->rule->limit.bytes))
        result->actual_bytes = clamp(result->rule->limit.bytes);
    judge(work, result, doubt);
    if (result->rule->limit.text && !fit->limit_fits && result->state != MT_GATE_FAIL) {
        result->state = MT_GATE_FAIL;
        mt_gate_describe(work, result);
    }
    if (result->state == MT_GATE_FAIL)
        say_failing_request(work, result,
                            fit->limit_failure.known ? &fit->limit_failure : &fit->first_failure);
}

static void check_fits(struct mt_gate_work *work, struct mt_gate_result *results, size_t count)
{
    const struct mt_gate_rule *rule = results->rule;
    const struct mt_fit_options options = {
        .policy = work->check->policy, .limit_bytes = rule->limit.bytes, .orders = MT_BASE_ORDERS};
    struct mt_fit_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_source_rewind(work->check->source, &error);

    if (!status)
        status = mt_fit_run(work->check->source, &options, summary, &error);
    for (size_t i = 0; i < count; i++) {
        if (status == MT_OK)
            judge_fit(work, &results[i], fit_of(summary, results[i].device));
        else
            mt_gate_describe_not_evaluated(work, &results[i],
                                           *error.text ? error.text : mt_status_text(status));
    }
    mt_fit_release(summary);
    free(summary);
}

static struct mt_gate_result *add(struct mt_gate_work *work, const struct mt_gate_rule *rule,
                                  enum mt_gate_metric metric, uint16_t device)
{
    struct mt_gate_result *result = &work->gates->results[work->gates->count++];

    result->rule = rule;
    result->metric = metric;
    result->device = device;
    result->limit_bytes = result->warn_bytes = INT64_MAX;
    return result;
}

static void check_device(struct mt_gate_work *work, const struct mt_gate_rule *rule,
                         uint16_t device)
{
    const struct mt_report *report = work->check->report;

    switch (rule->kind) {
    case MT_GATE_PEAK: check_peak(work, add(work, rule, rule->metric, device)); break;
    case MT_GATE_GROWTH: check_growth(work, add(work, rule, MT_METRIC_ALLOCATED, device)); break;
    case MT_GATE_FRAGMENTATION:
        check_fragmentation(work, add(work, rule, MT_METRIC_RESERVED, device));
        break;
    case MT_GATE_REGRESSION:
        if (rule->metric != MT_METRIC_NONE) {
            check_regression(work, add(work, rule, rule->metric, device));
            break;
        }
        check_regression(work, add(work, rule, MT_METRIC_ALLOCATED, device));
        if (mt_knows_reserved(report))
            check_regression(work, add(work, rule, MT_METRIC_RESERVED, device));
        break;
    case MT_GATE_FITS: (void)add(work, rule, MT_METRIC_RESERVED, device); break;
    }
}

static void check_rule(struct mt_gate_work *work, const struct mt_gate_rule *rule)
{
    const struct mt_report *report = work->check->report;
    size_t first = work->gates->count;

    if (!report->device_count)
        mt_gate_describe_not_evaluated(work, add(work, rule, rule->metric, 0),
                                       report->devices_left_out
                                           ? "no memory events of devices 0 to 63"
                                           : "no memory events were recorded");
    for (uint32_t i = 0; i < report->device_count; i++)
        check_device(work, rule, report->devices[i].device);
    if (rule->kind == MT_GATE_FITS && report->device_count) {
        check_fits(work, &work->gates->results[first], work->gates->count - first);
        return;
    }
}

static int rank(const struct mt_gate_result *result)
{
    static const int ranks[] = {
        [MT_GATE_FAIL] = 0, [MT_GATE_NOT_EVALUATED] = 1, [MT_GATE_WARN] = 3, [MT_GATE_PASS] = 4};

    return ranks[result->state] + result->excused;
}

/* Worst first, otherwise in their order; there are few. */
static void sort_and_count(struct mt_gates *gates)
{
    for (size_t i = 0; i < gates->count; i++) {
        struct mt_gate_result result = gates->results[i];
        size_t at = i;

        result.excused = result.state == MT_GATE_NOT_EVALUATED && result.rule->optional;
        if (result.excused)
            gates->excused++;
        else
            gates->states[result.state]++;
        for (; at > 0 && rank(&gates->results[at - 1]) > rank(&result); at--)
            gates->results[at] = gates->results[at - 1];
        gates->results[at] = result;
    }
    gates->verdict = gates->states[MT_GATE_FAIL]            ? MT_GATE_FAIL
                     : gates->states[MT_GATE_NOT_EVALUATED] ? MT_GATE_NOT_EVALUATED
                     : gates->states[MT_GATE_WARN]          ? MT_GATE_WARN
                                                            : MT_GATE_PASS;
}

enum mt_status mt_gates_check(const struct mt_gate_check *check, struct mt_gates *gates,
                              struct mt_error *error)
{
    struct mt_gate_work work = {.check = check, .gates = gates, .error = error};

    memset(gates, 0, sizeof *gates);
    gates->base = check->base ? check->base->name : NULL;
    gates->results = mt_arena_array(
        &gates->arena, check->rules->count * (2 * MT_MAX_DEVICES + 1) + 1, sizeof *gates->results);
    for (size_t i = 0; i < check->rules->count; i++)
        check_rule(&work, &check->rules->rules[i]);
    sort_and_count(gates);
    for (size_t i = 0; i < gates->count; i++)
        mt_gate_describe_culprit(&work, &gates->results[i]);
    return gate_describe_advice(&work);
}

void mt_gates_release(struct mt_gates *gates)
{
    mt_arena_release(&gates->arena);
    memset(gates, 0, sizeof *gates);
}
