/* Words of gates: verdicts and culprits, one clause each. */
#include "gate_result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process_memory.h"
#include "report_query.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

enum {
    NAMED = 2, /* sites of a culprit */
    MAX_LETTERS = 160
};

static const char *metric_words(enum mt_gate_metric metric)
{
    return metric == MT_METRIC_DEVICE ? "use of the device" : mt_gate_metric_name(metric);
}

/* Names in a trace may have any length; cut between characters. */
static const char *shorten(struct mt_gate_work *work, const char *text)
{
    size_t length = strlen(text);

    if (length <= MAX_LETTERS)
        return text;
    for (length = MAX_LETTERS; length && ((unsigned char)text[length] & 0xc0) == 0x80;)
        length--;
    return mt_arena_printf(&work->gates->arena, "%.*s...", (int)length, text);
}

/* Spelled like the option, with the device if there are several. It has no measured value, because
 * histories identify a rule by its name. */
static const char *name_of(struct mt_gate_work *work, const struct mt_gate_result *result)
{
    const struct mt_gate_rule *rule = result->rule;
    bool has_metric = rule->kind == MT_GATE_PEAK || rule->kind == MT_GATE_REGRESSION;
    const char *metric = has_metric ? mt_gate_metric_name(result->metric) : "";
    const char *limit = rule->limit.text ? rule->limit.text : rule->warn.text;
    struct mt_arena *arena = &work->gates->arena;
    const char *name = mt_arena_printf(
        arena, "%s %s%s%s%s%s", mt_gate_kind_name(rule->kind), metric, *metric ? "=" : "", limit,
        rule->kind == MT_GATE_GROWTH && !strchr(limit, '/') ? "/step" : "",
        rule->limit.text ? "" : " (warning)");

    if (work->check->report->device_count < 2)
        return name;
    return mt_arena_printf(arena, "%s, device %u", name, result->device);
}

/* "peak reserved", "growth", ... */
static const char *subject_of(struct mt_gate_work *work, const struct mt_gate_result *result)
{
    struct mt_arena *arena = &work->gates->arena;
    const char *subject = "smallest limit";

    switch (result->rule->kind) {
    case MT_GATE_PEAK:
    case MT_GATE_REGRESSION:
        subject = mt_arena_printf(arena, "peak %s", metric_words(result->metric));
        break;
    case MT_GATE_GROWTH: subject = "growth"; break;
    case MT_GATE_FRAGMENTATION:
        subject = mt_arena_printf(arena, "fragmentation at the %s",
                                  mt_fragmentation_instant(mt_gate_device(work, result)));
        break;
    case MT_GATE_FITS: break;
    }
    if (!subject || work->check->report->device_count < 2)
        return subject;
    return mt_arena_printf(arena, "device %u: %s", result->device, subject);
}

static const char *per(const struct mt_gate_result *result)
{
    return result->rule->kind == MT_GATE_GROWTH ? " a step" : "";
}

static char *bytes_text(char text[MT_UNITS_TEXT], int64_t bytes)
{
    return bytes < 0 ? mt_format_change(text, bytes) : mt_format_bytes(text, (uint64_t)bytes);
}

static char *count_text(char text[MT_UNITS_TEXT], int64_t value)
{
    char digits[MT_UNITS_TEXT];

    mt_format_count(digits, mt_magnitude(value));
    snprintf(text, MT_UNITS_TEXT, "%s%.40s", value < 0 ? "-" : "", digits);
    return text;
}

static double share(int64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static const struct mt_peak *peak_of(const struct mt_device_report *device,
                                     enum mt_gate_metric metric)
{
    switch (metric) {
    case MT_METRIC_REQUESTED: return &device->requested_peak;
    case MT_METRIC_ALLOCATED: return &device->allocated_peak;
    case MT_METRIC_ACTIVE: return &device->active_peak;
    case MT_METRIC_RESERVED: return &device->reserved_peak;
    case MT_METRIC_DEVICE:
    case MT_METRIC_NONE: break;
    }
    return NULL;
}

static const char *place_of(struct mt_gate_work *work, const struct mt_gate_result *result)
{
    const struct mt_device_report *device = mt_gate_device(work, result);
    const struct mt_peak *peak = result->rule->kind == MT_GATE_FRAGMENTATION
                                     ? mt_fragmentation_peak(device)
                                     : peak_of(device, result->metric);

    if (result->rule->kind == MT_GATE_GROWTH || result->rule->kind == MT_GATE_FITS || !peak)
        return "";
    const char *where =
        mt_phase_where(&work->gates->arena, work->check->report->phases, peak->phase, peak->step);
    return peak->phase == MT_NO_PHASE
               ? ""
               : mt_arena_printf(&work->gates->arena, ", in %s", shorten(work, where));
}

/* "exceeds 10.0 GiB by 9.32 GiB (20,749,221,888 > 10,737,418,240 B)" */
static const char *exceeds(struct mt_gate_work *work, const struct mt_gate_result *result,
                           int64_t bound, const char *what)
{
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT], c[MT_UNITS_TEXT], d[MT_UNITS_TEXT];
    char e[MT_UNITS_TEXT];

    return mt_arena_printf(
        &work->gates->arena, "%s %s%s exceeds %s%s%s by %s (%s > %s B)%s", subject_of(work, result),
        bytes_text(a, result->actual_bytes), per(result), what, bytes_text(b, bound), per(result),
        bytes_text(c, result->actual_bytes - bound), count_text(d, result->actual_bytes),
        count_text(e, bound), place_of(work, result));
}

/* Memory may rise although no line leaves blocks behind in consecutive steps. The gate judges only
 * such blocks (growth.c), and says so. */
static const char *unexplained_rise(struct mt_gate_work *work, const struct mt_gate_result *result,
                                    int64_t bound)
{
    char bytes[MT_UNITS_TEXT];

    if (result->rule->kind != MT_GATE_GROWTH || result->rise_bytes <= bound)
        return "";
    return mt_arena_printf(
        &work->gates->arena,
        "; allocated memory rises by %s per step, but no line leaves blocks behind that explain it",
        bytes_text(bytes, result->rise_bytes));
}

static const char *within(struct mt_gate_work *work, const struct mt_gate_result *result)
{
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT], c[MT_UNITS_TEXT];
    int64_t bound = result->limit_bytes < INT64_MAX ? result->limit_bytes : result->warn_bytes;

    const char *rise = unexplained_rise(work, result, bound);

    return rise ? mt_arena_printf(&work->gates->arena, "%s %s%s is within %s%s (%s B)%s",
                                  subject_of(work, result), bytes_text(a, result->actual_bytes),
                                  per(result), bytes_text(b, bound), per(result),
                                  count_text(c, result->actual_bytes), rise)
                : NULL;
}

/* "66.6% exceeds 25% by 41.6 points (13,826,... of 20,749,... B unused)" */
static const char *fragmentation(struct mt_gate_work *work, const struct mt_gate_result *result,
                                 const struct mt_gate_bound *bound, const char *what)
{
    char is[MT_UNITS_TEXT], may[MT_UNITS_TEXT], points[MT_UNITS_TEXT];
    char unused[MT_UNITS_TEXT], whole[MT_UNITS_TEXT];
    double actual = share(result->actual_bytes, result->of_bytes);
    double allowed = (double)bound->millionths / 1e6;
    const char *subject = subject_of(work, result);

    mt_format_percent(is, actual);
    mt_format_percent(may, allowed);
    mt_format_count(unused, (uint64_t)result->actual_bytes);
    mt_format_count(whole, result->of_bytes);
    if (result->state == MT_GATE_PASS)
        return mt_arena_printf(&work->gates->arena, "%s %s is within %s (%s of %s B unused)",
                               subject, is, may, unused, whole);
    mt_format_percent(points, actual - allowed);
    points[strcspn(points, "%")] = '\0'; /* a difference of shares is none of anything */
    return mt_arena_printf(&work->gates->arena,
                           "%s %s exceeds %s%s by %s points (%s of %s B unused)%s", subject, is,
                           what, may, points, unused, whole, place_of(work, result));
}

/* "peak reserved 19.3 GiB is 11.8 GiB (156.6%) above the base's 7.53 GiB; allowed: 2%" */
static const char *regression(struct mt_gate_work *work, const struct mt_gate_result *result,
                              const struct mt_gate_bound *bound, bool is_too_much)
{
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT], c[MT_UNITS_TEXT], d[MT_UNITS_TEXT];
    char e[MT_UNITS_TEXT], f[MT_UNITS_TEXT];
    int64_t base = (int64_t)mt_min_u64(result->base_bytes, INT64_MAX);
    int64_t more = result->actual_bytes - base;
    const char *subject = subject_of(work, result),
               *place = is_too_much ? place_of(work, result) : "";

    bytes_text(a, result->actual_bytes);
    mt_format_bytes(b, result->base_bytes);
    count_text(c, result->actual_bytes);
    count_text(d, base);
    if (more == 0)
        return mt_arena_printf(&work->gates->arena, "%s %s equals that of the base (%s B)", subject,
                               a, c);
    mt_format_bytes(e, (uint64_t)(more < 0 ? -more : more));
    mt_format_percent(f, share(more < 0 ? -more : more, result->base_bytes));
    return mt_arena_printf(
        &work->gates->arena, "%s %s is %s (%s) %s the base's %s; %s: %s (%s against %s B)%s",
        subject, a, e, f, more < 0 ? "below" : "above", b,
        result->state == MT_GATE_WARN ? "warning above" : "allowed", bound->text, c, d, place);
}

static const char *no_limit(struct mt_gate_work *work, const struct mt_gate_result *result)
{
    char limit[MT_UNITS_TEXT], smallest[MT_UNITS_TEXT];

    mt_format_bytes(limit, result->rule->limit.bytes);
    if (result->actual_bytes == INT64_MAX)
        return "no limit serves the run";
    if (result->actual_bytes > result->limit_bytes)
        return NULL;
    return mt_arena_printf(
        &work->gates->arena,
        "does not fit in %s although %s fits: there the cache is released at other times", limit,
        bytes_text(smallest, result->actual_bytes));
}

static const char *verdict_of(struct mt_gate_work *work, const struct mt_gate_result *result)
{
    bool warns = result->state == MT_GATE_WARN, fails = result->state == MT_GATE_FAIL;
    const struct mt_gate_bound *bound =
        warns || !result->rule->limit.text ? &result->rule->warn : &result->rule->limit;
    const char *what = warns ? "the warning level " : "";

    if (result->rule->kind == MT_GATE_FRAGMENTATION)
        return fragmentation(work, result, bound, what);
    if (result->rule->kind == MT_GATE_REGRESSION)
        return regression(work, result, bound, warns || fails);
    const char *special =
        fails && result->rule->kind == MT_GATE_FITS ? no_limit(work, result) : NULL;
    if (special)
        return special;
    if (fails || warns)
        return exceeds(work, result, warns ? result->warn_bytes : result->limit_bytes, what);
    return within(work, result);
}

void mt_gate_describe(struct mt_gate_work *work, struct mt_gate_result *result)
{
    result->name = name_of(work, result);
    result->verdict = verdict_of(work, result);
}

void mt_gate_describe_range(struct mt_gate_work *work, struct mt_gate_result *result)
{
    struct mt_arena *arena = &work->gates->arena;
    int64_t bytes = result->may_fail ? result->high_bytes : result->low_bytes;
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    bytes_text(text, bytes);
    count_text(exact, bytes);
    if (!result->verdict)
        return;
    if (!result->may_fail)
        result->verdict =
            mt_arena_printf(arena, "%s; %s (%s B) with another address order is within the limit",
                            result->verdict, text, exact);
    else if (work->check->strict)
        result->verdict = mt_arena_printf(
            arena, "%s, but %s (%s B) with another address order exceeds the limit (--strict)",
            result->verdict, text, exact);
    else
        result->verdict =
            mt_arena_printf(arena, "%s; may fail: %s (%s B) with another address order",
                            result->verdict, text, exact);
}

void mt_gate_describe_not_evaluated(struct mt_gate_work *work, struct mt_gate_result *result,
                                    const char *why)
{
    const char *subject = subject_of(work, result);
    char text[MT_UNITS_TEXT];

    result->state = MT_GATE_NOT_EVALUATED;
    result->name = name_of(work, result);
    if (result->has_actual && result->rule->kind != MT_GATE_FRAGMENTATION)
        result->verdict =
            mt_arena_printf(&work->gates->arena, "%s: %s; at least %s%s was seen", subject, why,
                            bytes_text(text, result->actual_bytes), per(result));
    else
        result->verdict = mt_arena_printf(&work->gates->arena, "%s: %s", subject, why);
}

static const enum mt_role no_role = (enum mt_role)MT_ROLE_COUNT;

/* Adds "forward train.py:47, in forward (1.20 GiB, activations)" to `before`. */
static const char *name_holder(struct mt_gate_work *work, const char *before,
                               const struct mt_site_use *use, const char *sign)
{
    const bool has_phase = use->phase && *use->phase, has_role = use->role != no_role;
    char text[MT_UNITS_TEXT];

    return mt_arena_printf(&work->gates->arena, "%s%s%s%s%s (%s%s%s%s)", before,
                           *before ? "; " : "",
                           use->site && *use->site ? shorten(work, use->site) : "no call site",
                           has_phase ? ", in " : "", has_phase ? shorten(work, use->phase) : "",
                           sign, mt_format_bytes(text, use->bytes), has_role ? ", " : "",
                           has_role ? mt_role_name(use->role) : "");
}

static const char *holders_of_peak(struct mt_gate_work *work, const struct mt_device_report *device)
{
    const char *text = "";

    for (uint32_t i = 0; i < device->peak_site_count && i < NAMED; i++)
        text = name_holder(work, text, &device->peak_sites[i], "");
    return *text ? mt_arena_printf(&work->gates->arena, "most at the allocated peak: %s", text)
                 : NULL;
}

/* Unused memory has no site; live blocks keep it from being released. */
static const char *holders_of_reserved(struct mt_gate_work *work,
                                       const struct mt_device_report *device)
{
    const struct mt_peak *peak = &device->reserved_peak;
    const struct mt_instant *instant = NULL;
    const char *text = "";
    char unused[MT_UNITS_TEXT];

    for (uint32_t i = 0; i < device->instant_count; i++)
        if (device->instants[i].kind == MT_INSTANT_PEAK_RESERVED)
            instant = &device->instants[i];
    for (uint32_t i = 0; instant && i < instant->holder_count && i < NAMED; i++) {
        const struct mt_contribution *is = &instant->holders[i];
        const struct mt_site_use use = {is->site, .phase = is->phase, .role = is->role,
                                        .bytes = (uint64_t)is->bytes};
        text = name_holder(work, text, &use, "");
    }
    if (!*text)
        return holders_of_peak(work, device);
    return mt_arena_printf(
        &work->gates->arena, "held at the reserved peak: %s; unused: %s", text,
        mt_format_bytes(unused, mt_sub_or_0_u64(peak->bytes, peak->then.allocated)));
}

MT_DEFINE_POINTER_ORDER(by_place, struct mt_site_use,
                        MT_BY_TEXT(site) || MT_BY_TEXT(phase) || MT_BY_PLACE)

static bool is_at(const struct mt_site_use *use, const char *site, const char *phase)
{
    return strcmp(use->site, site) == 0 && strcmp(use->phase, phase) == 0;
}

/* A site has a row for each role. Bases of older versions have one row, so the sums are compared.
 */
static uint64_t base_bytes_of(const struct mt_baseline_device *base, const struct mt_site_use *use)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < base->site_count; i++)
        if (is_at(use, base->sites[i].site, base->sites[i].phase))
            bytes += base->sites[i].bytes;
    /* a base with more sites than it lists: the others are at most as large as the last */
    return bytes || base->all_sites || !base->site_count ? bytes
                                                         : base->sites[base->site_count - 1].bytes;
}

/* The site that grew most since the base, at the allocated peak; NULL = none. */
static const char *growers(struct mt_gate_work *work, const struct mt_device_report *device)
{
    const struct mt_baseline_device *base = mt_baseline_device(work->check->base, device->device);
    const uint32_t count = base ? device->peak_site_count : 0;
    const struct mt_site_use **rows = mt_memory_new((count + (size_t)1) * sizeof(void *));
    struct mt_site_use most = {.role = no_role};

    for (uint32_t i = 0; i < count; i++)
        rows[i] = &device->peak_sites[i];
    qsort(rows, count, sizeof *rows, by_place);
    for (uint32_t i = 0, end, first = 0; i < count; i = end) {
        uint64_t bytes = 0, old = base_bytes_of(base, rows[i]);

        for (end = i; end < count && is_at(rows[i], rows[end]->site, rows[end]->phase); end++)
            bytes += rows[end]->bytes;
        bytes = mt_sub_or_0_u64(bytes, old);
        if (bytes < most.bytes || !bytes || (bytes == most.bytes && rows[i] > rows[first]))
            continue;
        first = i;
        most.site = rows[i]->site;
        most.phase = rows[i]->phase;
        most.bytes = bytes;
    }
    free(rows);
    return most.bytes ? mt_arena_printf(&work->gates->arena,
                                        "more than in the base at the allocated peak: %s",
                                        name_holder(work, "", &most, "+"))
                      : NULL;
}

static const char *owner_or_site(struct mt_gate_work *work, const struct mt_driver_report *driver,
                                 const struct mt_owner_use *owner)
{
    return owner->library ? mt_owner_text(&work->gates->arena, driver, owner) : owner->site;
}

/* Memory of the process on a device outside of the framework, by owner. */
static const char *holders_of_device(struct mt_gate_work *work, uint16_t device)
{
    const struct mt_driver_report *driver = mt_driver_of(work->check->report, device);
    const char *text = "";
    char bytes[MT_UNITS_TEXT];

    if (!driver)
        return NULL;
    for (uint32_t i = 0; i < driver->owner_count && i < NAMED; i++) {
        const struct mt_site_use use = {owner_or_site(work, driver, &driver->owners[i]),
                                        .role = no_role, .bytes = driver->owners[i].bytes};
        text = name_holder(work, text, &use, "");
    }
    if (!*text)
        return NULL;
    if (!driver->residual.samples || driver->residual.most_bytes <= 0)
        return mt_arena_printf(&work->gates->arena, "outside the framework: %s", text);
    return mt_arena_printf(&work->gates->arena, "outside the framework: %s; CUDA itself: up to %s",
                           text, bytes_text(bytes, driver->residual.most_bytes));
}

/* The results outlive the report. */
static const char *finding_of(struct mt_gate_work *work, const struct mt_device_report *device,
                              const char *id)
{
    for (uint32_t i = 0; i < device->finding_count; i++)
        if (strcmp(device->findings[i].id, id) == 0)
            return mt_arena_text(&work->gates->arena, device->findings[i].title,
                                 strlen(device->findings[i].title));
    return NULL;
}

void mt_gate_describe_culprit(struct mt_gate_work *work, struct mt_gate_result *result)
{
    if ((result->state != MT_GATE_FAIL && result->state != MT_GATE_WARN) || result->culprit)
        return;
    const struct mt_device_report *device = mt_gate_device(work, result);
    if (result->rule->kind == MT_GATE_GROWTH) {
        result->culprit = finding_of(work, device, "growth");
    } else if (result->metric == MT_METRIC_RESERVED &&
               (result->rule->kind != MT_GATE_FRAGMENTATION ||
                mt_fragmentation_peak(device) == &device->reserved_peak)) {
        result->culprit = holders_of_reserved(work, device);
    } else {
        if (result->metric == MT_METRIC_DEVICE)
            result->culprit = holders_of_device(work, result->device);
        else if (result->has_base)
            result->culprit = growers(work, device);
        if (!result->culprit)
            result->culprit = holders_of_peak(work, device);
    }
}
