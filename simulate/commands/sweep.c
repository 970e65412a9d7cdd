#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze_output.h"
#include "card_use.h"
#include "cards.h"
#include "holding.h"
#include "oom_why.h"
#include "report.h"
#include "process_memory.h"
#include "report_query.h"
#include "site.h"
#include "sweep.h"
#include "util.h"

enum { MT_SWEEP_OUTCOMES = MT_SWEEP_TIMED_OUT + 1 };

const char *mt_sweep_column(const struct mt_sweep *sweep)
{
    return sweep->name_count == 1 ? sweep->names[0] : "run";
}

const char *mt_sweep_run_name(const struct mt_sweep *sweep, const struct mt_sweep_run *run)
{
    return sweep->name_count == 1 ? run->values[0] : run->label;
}

const char *mt_sweep_outcome_name(enum mt_sweep_outcome outcome)
{
    static const char *const names[] = {"not run",       "finished", "no device used",
                                        "out of memory", "failed",   "timed out"};
    _Static_assert(MT_ARRAY_LEN(names) == MT_SWEEP_OUTCOMES, "one for each");

    return names[outcome];
}

bool mt_sweep_number(const char *value, uint64_t *number)
{
    size_t digits = 0;

    *number = 0;
    for (; value[digits] >= '0' && value[digits] <= '9' && digits < 18; digits++)
        *number = *number * 10 + (uint64_t)(value[digits] - '0');
    return digits && !value[digits];
}

bool mt_sweep_is_numeric(const struct mt_sweep *sweep)
{
    uint64_t number;

    for (size_t i = 0; i < sweep->run_count; i++)
        if (!mt_sweep_number(sweep->runs[i].values[0], &number))
            return false;
    return sweep->name_count == 1 && sweep->run_count && !sweep->world;
}

bool mt_sweep_depends_on_timing(const struct mt_sweep_result *result)
{
    const struct mt_assumed_peaks *early = &result->assumed[MT_ASSUMED_EARLY];

    return mt_is_undecided(&result->undecided) &&
           (early->outcome != result->outcome ||
            early->allocated_bytes != result->allocated_peak_bytes ||
            early->reserved_bytes != result->reserved_peak_bytes);
}

/* Returns the request of the first device that has one; NULL: none has. */
static const struct mt_oom *fatal_oom(const struct mt_report *report)
{
    const struct mt_oom *oom = NULL;

    for (uint32_t i = 0; !oom && i < report->device_count; i++)
        oom = mt_fatal_oom(&report->devices[i]);
    return oom;
}

bool mt_dry_run_ran_out(const struct mt_report *report)
{
    return fatal_oom(report);
}

bool mt_assumed_has_peaks(const struct mt_assumed_peaks *peaks)
{
    return peaks->outcome == MT_SWEEP_FINISHED || peaks->outcome == MT_SWEEP_OUT_OF_MEMORY;
}

static bool differs(uint64_t first, uint64_t other)
{
    uint64_t difference = first > other ? first - other : other - first;

    return difference > first / 100 * MT_HARMLESS_PERCENT;
}

static bool is_moved(const struct mt_sweep_result *result, const struct mt_assumed_peaks *peaks)
{
    return peaks->outcome != result->outcome ||
           differs(result->allocated_peak_bytes, peaks->allocated_bytes) ||
           differs(result->reserved_peak_bytes, peaks->reserved_bytes) ||
           (result->has_need && peaks->card_bytes &&
            differs(result->card.bytes, peaks->card_bytes));
}

enum mt_guess_weight mt_sweep_guess_weight(const struct mt_sweep_result *result)
{
    const struct mt_assumed_peaks *less = &result->assumed[MT_ASSUMED_LESS];
    const struct mt_assumed_peaks *more = &result->assumed[MT_ASSUMED_MORE];

    if (!result->sizes_from_data && !result->decisions_from_data)
        return MT_GUESSES_NONE;
    if (less->outcome == MT_SWEEP_NOT_RUN && more->outcome == MT_SWEEP_NOT_RUN)
        return MT_GUESSES_UNTRIED;
    if (!is_moved(result, less) && !is_moved(result, more))
        return MT_GUESSES_HARMLESS;
    return mt_assumed_has_peaks(less) && mt_assumed_has_peaks(more) ? MT_GUESSES_BOUNDED
                                                                    : MT_GUESSES_UNBOUNDED;
}

uint64_t mt_sweep_need_bytes(const struct mt_sweep_result *result)
{
    uint64_t bytes = result->card.bytes;

    for (unsigned i = MT_ASSUMED_LESS; i <= MT_ASSUMED_MORE; i++) {
        if (result->assumed[i].outcome == MT_SWEEP_OUT_OF_MEMORY)
            return UINT64_MAX;
        bytes = mt_max_u64(bytes, result->assumed[i].card_bytes);
    }
    return bytes;
}

/* Ranks the outcome of a point: one rank that does not run is enough. */
static int severity(const struct mt_sweep_result *result)
{
    return result->outcome == MT_SWEEP_OUT_OF_MEMORY ? 2 : !result->has_need;
}

static bool is_worse(const struct mt_sweep_result *a, const struct mt_sweep_result *b)
{
    if (severity(a) != severity(b))
        return severity(a) > severity(b);
    return mt_sweep_need_bytes(a) > mt_sweep_need_bytes(b);
}

void mt_sweep_take_points(const struct mt_sweep *sweep, struct mt_sweep *points)
{
    *points = *sweep;
    points->runs = mt_memory_zeroed(sweep->run_count + 1, sizeof *points->runs);
    points->run_count = 0;
    points->name_count -= sweep->world && sweep->name_count > 1;
    points->world = sweep->name_count > 1 ? 0 : sweep->world;
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        if (!i || !run->rank.world || run[-1].point != run->point)
            points->runs[points->run_count++] = *run;
        else if (is_worse(&run->result, &points->runs[points->run_count - 1].result))
            points->runs[points->run_count - 1] = *run;
        if (run->rank.world && !points->world)
            points->runs[points->run_count - 1].label = run->point_label;
    }
}

static int by_point(const void *key, const void *run)
{
    size_t point = *(const size_t *)key, of_run = ((const struct mt_sweep_run *)run)->point;

    return point < of_run ? -1 : point > of_run;
}

const struct mt_sweep_run *mt_sweep_find_point(const struct mt_sweep *points, size_t point)
{
    return bsearch(&point, points->runs, points->run_count, sizeof *points->runs, by_point);
}

bool mt_sweep_uses_role(const struct mt_sweep *sweep, int role)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.role_bytes[role])
            return true;
    return false;
}

const struct mt_sweep_run *mt_sweep_worst(const struct mt_sweep *sweep)
{
    const struct mt_sweep_run *worst = NULL;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_result *result = &sweep->runs[i].result;

        if (result->is_measured &&
            (!worst || result->reserved_peak_bytes > worst->result.reserved_peak_bytes))
            worst = &sweep->runs[i];
    }
    return worst;
}

static uint64_t size_of_run(const struct mt_sweep_run *run, bool is_numeric)
{
    uint64_t number = 0;

    if (!is_numeric)
        return run->result.card.bytes;
    (void)mt_sweep_number(run->values[0], &number);
    return number;
}

static void take_larger(const struct mt_sweep_run **best, const struct mt_sweep_run *run,
                        bool is_numeric)
{
    if (!*best || size_of_run(run, is_numeric) > size_of_run(*best, is_numeric))
        *best = run;
}

/* Out of memory on a card rules out that card and those with less memory. */
static bool may_fit(const struct mt_sweep *sweep, const struct mt_sweep_result *result,
                    const struct mt_card *card)
{
    if (result->outcome == MT_SWEEP_OUT_OF_MEMORY)
        return card->memory_bytes > sweep->memory_bytes;
    return !result->has_need;
}

static bool may_be_more(const struct mt_sweep *sweep, const struct mt_card *card,
                        const struct mt_sweep_fit *fit)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (may_fit(sweep, &sweep->runs[i].result, card) &&
            (!fit->fits || size_of_run(&sweep->runs[i], true) > size_of_run(fit->fits, true)))
            return true;
    return false;
}

struct mt_card_use mt_sweep_need_on(const struct mt_sweep_result *result,
                                    const struct mt_card *simulated, const struct mt_card *card)
{
    const struct mt_card_cost *cost =
        result->cuda_major ? mt_card_cost(card->name, result->cuda_major, result->cuda_kind) : NULL;
    struct mt_card_use use = result->card;

    use.bytes = mt_sweep_need_bytes(result);
    if (card == simulated)
        return use;
    if (!cost) {
        use.cuda_from = MT_CUDA_ASSUMED;
        return use;
    }
    use.bytes = mt_add_most_u64(mt_sub_or_0_u64(use.bytes, use.cuda_bytes), cost->most_bytes);
    use.cuda_bytes = cost->most_bytes;
    return use;
}

bool mt_sweep_is_estimate(const struct mt_card_use *use, const struct mt_card *simulated,
                          const struct mt_card *card)
{
    return use->cuda_from != MT_CUDA_TABLE ||
           card->capability_major != simulated->capability_major ||
           card->capability_minor != simulated->capability_minor;
}

struct mt_sweep_fit mt_sweep_fit_of(const struct mt_sweep *sweep, const struct mt_card *card)
{
    struct mt_sweep_fit fit = {.fits = NULL};
    bool is_numeric = mt_sweep_is_numeric(sweep);

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];

        if (!run->result.has_need)
            continue;
        fit.known_count++;
        struct mt_card_use use = mt_sweep_need_on(&run->result, sweep->card, card);
        if (!mt_card_use_fits(&use, card))
            continue;
        fit.fit_count++;
        take_larger(&fit.fits, run, is_numeric);
    }
    fit.may_be_more = is_numeric && may_be_more(sweep, card, &fit);
    return fit;
}

struct point {
    uint64_t value, bytes;
};

/* By value; among equal values the first is used. */
static size_t collect_points(const struct mt_sweep *sweep,
                             uint64_t (*bytes_of)(const struct mt_sweep_result *),
                             struct point *points)
{
    size_t count = 0;

    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct mt_sweep_run *run = &sweep->runs[i];
        struct point point;
        size_t at = count;

        if (run->result.outcome != MT_SWEEP_FINISHED || !run->result.is_measured ||
            !mt_sweep_number(run->values[0], &point.value))
            continue;
        point.bytes = bytes_of(&run->result);
        while (at && points[at - 1].value > point.value)
            at--;
        if (at && points[at - 1].value == point.value)
            continue;
        for (size_t j = count++; j > at; j--)
            points[j] = points[j - 1];
        points[at] = point;
    }
    return count;
}

/* Rounds towards minus infinity. */
static int64_t floor_of(int64_t rise, int64_t run)
{
    return rise / run - (rise % run != 0 && rise < 0);
}

struct mt_sweep_slope mt_sweep_slope_of(const struct mt_sweep *sweep,
                                        uint64_t (*bytes_of)(const struct mt_sweep_result *))
{
    struct mt_sweep_slope slope = {.is_exact = true};
    struct point *points;

    if (!mt_sweep_is_numeric(sweep))
        return slope;
    points = mt_memory_zeroed(sweep->run_count, sizeof *points);
    slope.points = collect_points(sweep, bytes_of, points);
    for (size_t i = 1; i < slope.points; i++) {
        int64_t rise = (int64_t)(points[i].bytes - points[i - 1].bytes);
        int64_t run = (int64_t)(points[i].value - points[i - 1].value);
        int64_t low = floor_of(rise, run), high = low + (rise % run != 0);

        slope.least_bytes = i == 1 || low < slope.least_bytes ? low : slope.least_bytes;
        slope.most_bytes = i == 1 || high > slope.most_bytes ? high : slope.most_bytes;
    }
    slope.is_exact = slope.least_bytes == slope.most_bytes;
    if (slope.points) {
        slope.from = points[0].value;
        slope.to = points[slope.points - 1].value;
    }
    free(points);
    return slope;
}

/* Returns the device that determines the measurements: the one that ran out of memory, otherwise
 * the one that needs the most, otherwise the one with the largest reserved peak. Needs are known
 * only for a run that finished. */
static const struct mt_device_report *worst_device(const struct mt_report *report,
                                                   bool has_finished)
{
    const struct mt_device_report *worst = mt_worst_device(report);

    for (uint32_t i = 0; has_finished && worst && i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];

        if (device->need && worst->need && device->need->bytes > worst->need->bytes)
            worst = device;
    }
    return worst;
}

static void fill_need(struct mt_sweep_result *result, const struct mt_report *report,
                      const struct mt_device_report *device)
{
    const struct mt_card_overhead overhead = mt_card_overhead_of(report, device);

    result->has_need = device->need && mt_card_use_of(report, device, &result->card);
    result->card.why_more = NULL;
    for (uint32_t i = 0; i < overhead.row_count; i++)
        if (overhead.rows[i].cost->kind <= MT_COST_CUDA_WITH_NCCL) {
            result->cuda_major = overhead.cuda_major;
            result->cuda_kind = overhead.rows[i].cost->kind;
        }
}

/* Fills the place in the program where memory ran out. The phase is known even without a stack. */
static void fill_place(struct mt_sweep_result *result, const struct mt_report *report,
                       const struct mt_oom *oom)
{
    struct mt_arena arena = {0};
    struct mt_buf unused = {0};
    const struct mt_reporter reporter = {.out = &unused, .report = report, .arena = &arena};
    const char *site =
        oom->stack == MT_NO_ID ? "" : mt_site_label(&arena, report->symbols, oom->stack, false);

    snprintf(result->oom_site, sizeof result->oom_site, "%s", site);
    snprintf(result->oom_phase, sizeof result->oom_phase, "%s",
             mt_reporter_where(&reporter, oom->phase, oom->step));
    mt_buf_release(&unused);
    mt_arena_release(&arena);
}

/* In the first pass, nothing distinguishes parameters from large inputs that exist before it: they
 * are "other". */
static void fill_roles(struct mt_sweep_result *result, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    const struct mt_oom *oom = mt_fatal_oom(device);

    memcpy(result->role_bytes, device->peak_role_bytes, sizeof result->role_bytes);
    if (!oom || !mt_oom_why_of(report, device, oom).is_first_pass)
        return;
    result->role_bytes[MT_ROLE_OTHER] += result->role_bytes[MT_ROLE_PARAMETERS];
    result->role_bytes[MT_ROLE_PARAMETERS] = 0;
}

void mt_sweep_measure(struct mt_sweep_result *result, const struct mt_report *report)
{
    const struct mt_device_report *device =
        worst_device(report, result->outcome == MT_SWEEP_FINISHED);
    const struct mt_oom *oom = fatal_oom(report);

    if (result->outcome == MT_SWEEP_FAILED && oom) {
        result->outcome = MT_SWEEP_OUT_OF_MEMORY;
        result->oom_request_bytes = oom->request_bytes;
        fill_place(result, report, oom);
    }
    if (!device)
        return;
    result->is_measured = true;
    result->device = device->device;
    result->allocated_peak_bytes = device->allocated_peak.bytes;
    result->reserved_peak_bytes = device->reserved_peak.bytes;
    fill_roles(result, report, device);
    if (result->outcome == MT_SWEEP_FINISHED)
        fill_need(result, report, device);
}
