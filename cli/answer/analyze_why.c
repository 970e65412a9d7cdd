/* Explains in words why memory rose. */
#include "analyze_output.h"
#include "report_rows.h"
#include "wrapped_text.h"
#include "units.h"
#include "util.h"

static const char *number(const struct mt_reporter *reporter, int64_t step)
{
    return mt_reporter_format(reporter, "%lld", (long long)step);
}

static const char *subject_of_left(const struct mt_reporter *reporter,
                                   const struct mt_explanation *why)
{
    const struct mt_phase *phase = &reporter->report->phases[why->phase];

    if (phase->is_step)
        return mt_reporter_format(
            reporter, "Memory is higher at the end of step %s than at the end of step %s,",
            number(reporter, why->step), number(reporter, why->other_step));
    if (why->other_phase != MT_NO_PHASE)
        return mt_reporter_format(reporter,
                                  "Memory is higher after %s than after the %s before it,",
                                  phase->name, phase->name);
    if (why->step == MT_NO_STEP)
        return mt_reporter_format(reporter, "Memory is higher after the first %s than before it,",
                                  phase->name);
    return mt_reporter_format(reporter, "Memory is higher after %s of step %s than before it,",
                              phase->name, number(reporter, why->step));
}

static const char *subject_of_rise(const struct mt_reporter *reporter,
                                   const struct mt_explanation *why)
{
    if (why->phase == MT_NO_PHASE)
        return "The maximum rises outside any phase,";
    return mt_reporter_format(reporter, "The maximum rises in %s,",
                              mt_reporter_where(reporter, why->phase, why->step));
}

static const char *subject(const struct mt_reporter *reporter, const struct mt_explanation *why)
{
    if (why->kind == MT_WHY_STEP_PEAK_ROSE)
        return mt_reporter_format(reporter, "The peak of step %s is higher than that of step %s,",
                                  number(reporter, why->step), number(reporter, why->other_step));
    if (why->kind == MT_WHY_PHASE_LEFT_MORE)
        return subject_of_left(reporter, why);
    return subject_of_rise(reporter, why);
}

static void report_contributions(const struct mt_reporter *reporter,
                                 const struct mt_explanation *why)
{
    const struct mt_parts parts = {why->contributions, why->contribution_count,
                                   reporter->detail->contributions, why->step, 0};

    if (parts.most)
        mt_report_parts(reporter, &parts, 4);
}

/* Appends "mostly optimizer state (+565 MiB) and gradients (+280 MiB)": the role that grew most,
 * and the second if it grew by more than a fifth of that. Appends nothing if the first is
 * "other". */
static void add_roles(struct mt_buf *line, const struct mt_explanation *why)
{
    int64_t bytes[MT_ROLE_COUNT] = {0};
    int first = 0, second = -1;
    char text[MT_UNITS_TEXT];

    for (uint32_t i = 0; i < why->contribution_count; i++)
        if (why->contributions[i].site)
            bytes[why->contributions[i].role] += why->contributions[i].bytes;
    for (int i = 1; i < MT_ROLE_COUNT; i++)
        first = bytes[i] > bytes[first] ? i : first;
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        if (i != first && (second < 0 || bytes[i] > bytes[second]))
            second = i;
    if (bytes[first] <= 0 || first == MT_ROLE_OTHER)
        return;
    mt_buf_printf(line, ", mostly %s (%s)", mt_role_name((enum mt_role)first),
                  mt_format_change(text, bytes[first]));
    if (bytes[second] * 5 > bytes[first])
        mt_buf_printf(line, " and %s (%s)", mt_role_name((enum mt_role)second),
                      mt_format_change(text, bytes[second]));
}

/* Returns the start of the sentence about the first maximum. */
static const char *first_maximum(const struct mt_reporter *reporter,
                                 const struct mt_explanation *why)
{
    if (reporter->device->start.allocated)
        return "Allocated when the trace starts:";
    if (why->phase == MT_NO_PHASE)
        return "Setup, outside any phase, takes";
    return mt_reporter_format(reporter, "Memory rises in %s from 0 to",
                              mt_reporter_where(reporter, why->phase, why->step));
}

/* A step often has a higher peak because the previous step allocated blocks after its own peak. */
static void add_past(struct mt_buf *line, const struct mt_explanation *why)
{
    int64_t bytes = 0;

    for (uint32_t i = 0; i < why->contribution_count; i++)
        if (why->contributions[i].step == why->other_step && why->contributions[i].bytes > 0)
            bytes += why->contributions[i].bytes;
    if (why->kind == MT_WHY_STEP_PEAK_ROSE &&
        bytes * 2 > (int64_t)(why->to_bytes - why->from_bytes))
        mt_buf_printf(line, "; allocated in step %lld, after its peak", (long long)why->other_step);
}

static void report_explanation(const struct mt_reporter *reporter, const struct mt_explanation *why)
{
    char change[MT_UNITS_TEXT], from[MT_UNITS_TEXT], to[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (why->kind == MT_WHY_PHASE_RAISED_PEAK && why->from_bytes == 0)
        mt_buf_printf(&line, "%s %s (%s B)", first_maximum(reporter, why),
                      mt_format_bytes(to, why->to_bytes), mt_format_count(exact, why->to_bytes));
    else
        mt_buf_printf(&line, "%s by %s (%s B), from %s to %s", subject(reporter, why),
                      mt_format_bytes(change, why->to_bytes - why->from_bytes),
                      mt_format_count(exact, why->to_bytes - why->from_bytes),
                      mt_format_bytes(from, why->from_bytes), mt_format_bytes(to, why->to_bytes));
    if (!reporter->report->is_plain)
        add_roles(&line, why);
    add_past(&line, why);
    mt_buf_add_text(reporter->out, "  ");
    if (line.data)
        mt_add_wrapped(reporter->out, line.data, 2, 4);
    mt_buf_add_char(reporter->out, '\n');
    report_contributions(reporter, why);
    mt_buf_release(&line);
}

/* Of explanations with the same bytes, only the last is printed. It is about steps if any of them
 * is. */
static bool is_told_later(const struct mt_device_report *device, uint32_t index)
{
    const struct mt_explanation *why = &device->explanations[index];

    for (uint32_t i = index + 1; i < device->explanation_count; i++)
        if (device->explanations[i].from_bytes == why->from_bytes &&
            device->explanations[i].to_bytes == why->to_bytes &&
            device->explanations[i].kind != why->kind)
            return true;
    return false;
}

static uint64_t size_of(const struct mt_explanation *why)
{
    return why->to_bytes - why->from_bytes;
}

/* Prints the explanations with the most bytes, in their original order. */
void mt_report_explanations(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    uint32_t most = reporter->detail->explanations;
    struct mt_largest largest;
    uint64_t *sizes;
    size_t count = 0;

    if (!device->explanation_count || reporter->report->phase_count == 0 || !most)
        return; /* without phases, the holders of the peak explain it */
    sizes = mt_arena_array(reporter->arena, device->explanation_count, sizeof *sizes);
    for (uint32_t i = 0; i < device->explanation_count; i++)
        if (!is_told_later(device, i))
            sizes[count++] = size_of(&device->explanations[i]);
    largest = mt_largest_of(sizes, count, most);
    mt_reporter_heading(reporter, "Why");
    for (uint32_t i = 0; i < device->explanation_count; i++)
        if (!is_told_later(device, i) && mt_is_large(&largest, size_of(&device->explanations[i])))
            report_explanation(reporter, &device->explanations[i]);
}
