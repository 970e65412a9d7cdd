/* Tables of steps, phases, and blocks at the peak. */
#include <stdlib.h>

#include "analyze_output.h"
#include "foreign_text.h"
#include "report_query.h"
#include "report_rows.h"
#include "site.h"
#include "text_table.h"
#include "units.h"

/* Contents of each pool of PyTorch's allocator: the default pool and those of CUDA graphs and
 * MemPools. */

enum { MAX_POOLS = 16 };

void mt_reporter_pools(const struct mt_reporter *reporter)
{
    struct mt_table table;

    if (!reporter->device->pool_count)
        return;
    mt_reporter_heading(reporter, "Pools of the allocator, at the end");
    mt_table_begin(&table, MT_POOL_TITLES);
    mt_report_rows_add_pools(&table, reporter->device, MAX_POOLS);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

enum { MAX_STEPS = 12, MAX_PHASES = 24, MAX_STACKS = 3 };

static const char not_recorded[] = "before the first recorded event";

/* Returns the name of the main phase that contains the step's peak event. */
static const char *phase_at(const struct mt_reporter *reporter, const struct mt_step_use *step)
{
    const struct mt_report *report = reporter->report;

    for (uint32_t i = (uint32_t)step->phase; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];

        if (phase->begin_event > step->peak_allocated_event)
            break;
        if (report->main_phase[i] && phase->end_event >= step->peak_allocated_event)
            return phase->name;
    }
    return "between phases";
}

/* If there are many steps, the table has only the first and last ones, those with the peaks, and
 * those whose peak rose. */
static bool is_shown(const struct mt_reporter *reporter, uint32_t index)
{
    const struct mt_device_report *device = reporter->device;
    const struct mt_step_use *step = &device->steps[index];
    enum { FIRST = 3, LAST = 2 };

    if (device->step_count <= MAX_STEPS || index < FIRST || index + LAST >= device->step_count)
        return true;
    if (step->step == device->allocated_peak.step || step->step == device->reserved_peak.step)
        return true;
    for (uint32_t i = 0; i < device->explanation_count; i++)
        if (device->explanations[i].step == step->step &&
            device->explanations[i].kind == MT_WHY_STEP_PEAK_ROSE)
            return true;
    return false;
}

static void add_step(const struct mt_reporter *reporter, struct mt_table *table, uint32_t index)
{
    const struct mt_step_use *step = &reporter->device->steps[index];

    if (mt_report_covers(reporter->report, reporter->device, step->end_event)) {
        mt_report_rows_add_step(table, reporter->report, step);
        MT_CELLS(table, MT_TEXT(phase_at(reporter, step)));
        return;
    }
    MT_CELLS(table, MT_INTEGER(step->step));
    mt_table_skip(table, 5);
    MT_CELLS(table, mt_step_length_cell(reporter->report, step), MT_TEXT(not_recorded));
}

static void add_dots(const struct mt_reporter *reporter, struct mt_table *table, uint32_t steps)
{
    char text[MT_UNITS_TEXT];

    MT_CELLS(table, MT_TEXT("…"));
    mt_table_skip(table, 6);
    MT_CELLS(table, MT_TEXT(mt_reporter_format(reporter, "%s",
                                               mt_format_counted(text, steps, "more step"))));
}

/* Adds a line for the hidden steps before `end`. A single hidden step is printed itself, because it
 * takes no more space. */
static void add_hidden(const struct mt_reporter *reporter, struct mt_table *table, uint32_t end,
                       uint32_t hidden)
{
    if (hidden == 1)
        add_step(reporter, table, end - 1);
    else if (hidden)
        add_dots(reporter, table, hidden);
}

static void report_steps(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    struct mt_table table;
    uint32_t hidden = 0;

    mt_reporter_heading(reporter, "Steps");
    mt_table_begin(&table, mt_report_has_times(reporter->report)
                               ? "#step|#before|#peak|#after|#change|#reserved|#time|~peak in"
                               : "#step|#before|#peak|#after|#change|#reserved|#events|~peak in");
    for (uint32_t i = 0; i < device->step_count; i++) {
        if (!is_shown(reporter, i)) {
            hidden++;
            continue;
        }
        add_hidden(reporter, &table, i, hidden);
        hidden = 0;
        add_step(reporter, &table, i);
    }
    add_hidden(reporter, &table, device->step_count, hidden);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void add_phase(const struct mt_reporter *reporter, struct mt_table *table, uint32_t index)
{
    const struct mt_phase *phase = &reporter->report->phases[index];
    const struct mt_phase_use *use = &reporter->device->phase_uses[index];
    uint64_t before = use->enter.allocated, after = use->exit.allocated;

    MT_CELLS(table, MT_TEXT(mt_reporter_where(reporter, (int32_t)index, phase->step)));
    if (!mt_report_covers(reporter->report, reporter->device, phase->end_event)) {
        mt_table_skip(table, 4);
        MT_CELLS(table, mt_length_cell(reporter->report, phase), MT_TEXT(not_recorded));
        return;
    }
    MT_CELLS(table, MT_BYTES(before), MT_BYTES(use->peak.allocated), MT_BYTES(after),
             MT_CHANGE((int64_t)(after - before)), mt_length_cell(reporter->report, phase),
             MT_TEXT(phase->cut         ? "did not end"
                     : use->raises_peak ? "new maximum"
                                        : ""));
}

static bool is_listed(const struct mt_report *report, uint32_t index, int64_t step)
{
    return report->main_phase[index] && (step == MT_NO_STEP || report->phases[index].step == step);
}

/* Prints all phases (step MT_NO_STEP) or those of one step. */
static void report_phase_list(const struct mt_reporter *reporter, int64_t step)
{
    const struct mt_report *report = reporter->report;
    struct mt_table table;

    mt_reporter_heading(
        reporter, step == MT_NO_STEP
                      ? "Phases"
                      : mt_reporter_format(reporter, "Phases of step %lld, which has the peak",
                                           (long long)step));
    mt_table_begin(&table, mt_report_has_times(report)
                               ? "~phase|#before|#peak|#after|#change|#time|"
                               : "~phase|#before|#peak|#after|#change|#events|");
    for (uint32_t i = 0; i < report->phase_count; i++)
        if (is_listed(report, i, step))
            add_phase(reporter, &table, i);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void report_folded_phases(const struct mt_reporter *reporter)
{
    const bool has_times = mt_report_has_times(reporter->report);
    struct mt_phase_sum sums[MAX_PHASES];
    struct mt_table table;
    size_t count;

    mt_report_rows_sum_phases(reporter->report, reporter->device, sums, MAX_PHASES, &count);
    mt_reporter_heading(reporter, "Phases, by name");
    mt_table_begin(&table, has_times ? "~phase|#times|#peak|#total change|#largest|#total time"
                                     : "~phase|#times|#peak|#total change|#largest|");
    for (size_t i = 0; i < count && i < MAX_PHASES; i++)
        MT_CELLS(&table, MT_TEXT(sums[i].name), MT_COUNT(sums[i].instances),
                 MT_BYTES(sums[i].peak_bytes), MT_CHANGE(sums[i].change),
                 MT_CHANGE(sums[i].largest_change),
                 has_times ? MT_TIME(0, sums[i].time_ns) : MT_TEXT(""));
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

void mt_reporter_phases(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;
    uint32_t main_phases = 0;

    for (uint32_t i = 0; i < report->phase_count; i++)
        main_phases += report->main_phase[i];
    if (reporter->device->step_count > 3) {
        report_steps(reporter);
        if (main_phases && reporter->device->allocated_peak.step != MT_NO_STEP)
            report_phase_list(reporter, reporter->device->allocated_peak.step);
    } else if (main_phases > MAX_PHASES) {
        report_folded_phases(reporter);
    } else if (main_phases) {
        report_phase_list(reporter, MT_NO_STEP);
    } else if (reporter->device->step_count) {
        report_steps(reporter);
    }
}

/* Without a framework every block has the same role, so the column is omitted. */
static bool has_roles(const struct mt_reporter *reporter)
{
    return !reporter->report->is_plain;
}

static bool has_phases(const struct mt_reporter *reporter)
{
    return reporter->report->phase_count > 0;
}

static void add_part(const struct mt_reporter *reporter, struct mt_table *table,
                     const struct mt_parts *parts, const struct mt_contribution *part)
{
    uint64_t bytes = (uint64_t)part->bytes;

    if (parts->whole_bytes)
        MT_CELLS(table, MT_BYTES(bytes), MT_SHARE(bytes, parts->whole_bytes),
                 MT_COUNT((uint64_t)part->blocks));
    else
        MT_CELLS(table, MT_CHANGE(bytes),
                 MT_TEXT(mt_reporter_format(reporter, part->blocks < 0 ? "−%lld" : "%lld",
                                            (long long)llabs(part->blocks))));
    if (has_roles(reporter))
        MT_CELLS(table, MT_TEXT(part->site ? mt_role_name(part->role) : ""));
    if (has_phases(reporter))
        MT_CELLS(table, MT_TEXT(part->site ? mt_reporter_birth(reporter, part, parts->step) : ""));
    MT_CELLS(table, part->site ? MT_SITE(part->site) : MT_TEXT("all others together"));
}

static void begin_parts(const struct mt_reporter *reporter, struct mt_table *table, bool is_change)
{
    mt_table_begin(table, is_change ? "#bytes|#blocks" : "#bytes|#share|#blocks");
    if (has_roles(reporter))
        mt_table_columns(table, "role");
    if (has_phases(reporter))
        mt_table_columns(table, "allocated in");
    mt_table_columns(table, is_change ? "~by" : "~site");
}

static void report_parts(const struct mt_reporter *reporter, const struct mt_parts *parts,
                         unsigned indent)
{
    struct mt_contribution others = {0};
    struct mt_table table;
    bool has_others = false;

    begin_parts(reporter, &table, !parts->whole_bytes);
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct mt_contribution *part = &parts->parts[i];

        if (i < parts->most && part->site) {
            add_part(reporter, &table, parts, part);
        } else {
            others.bytes += part->bytes;
            others.blocks += part->blocks;
            has_others = true;
        }
    }
    if (has_others)
        add_part(reporter, &table, parts, &others);
    mt_text_table_add(reporter->out, &table, indent, reporter->style);
}

void mt_reporter_holders(const struct mt_reporter *reporter, const struct mt_instant *instant)
{
    const struct mt_parts parts = {instant->holders, instant->holder_count, UINT32_MAX,
                                   instant->step, instant->bytes.allocated};

    report_parts(reporter, &parts, 2);
}

/* "cross_entropy functional.py:3504 < train train.py:77 < ...", without frames that only forward a
 * call. */
static void report_stack(const struct mt_reporter *reporter, uint32_t stack)
{
    const struct mt_symbols *symbols = reporter->report->symbols;
    struct mt_buf line = {0};

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;

        if (mt_frame_is_plumbing(symbols, frame))
            continue;
        const char *label = mt_frame_label(reporter->arena, symbols, frame);
        if (line.length)
            mt_buf_add_text(&line, " < ");
        mt_buf_add_text(&line, label);
        if (line.length > 400) {
            mt_buf_add_text(&line, " < …");
            break;
        }
    }
    mt_buf_add_text(reporter->out, "      ");
    mt_text_table_add_wrapped(reporter->out, line.data ? line.data : "no stack recorded", 6, 8);
    mt_buf_add_char(reporter->out, '\n');
    mt_buf_release(&line);
}

static void report_stacks(const struct mt_reporter *reporter, const struct mt_instant *instant)
{
    uint32_t told = 0;

    mt_reporter_heading(reporter, mt_is_one_instant(reporter->report, reporter->device)
                                      ? "Largest stacks at that instant"
                                      : "Largest stacks at the peak");
    for (uint32_t i = 0; i < instant->holding_count && told < MAX_STACKS; i++) {
        const struct mt_holding *holding = &instant->holdings[i];
        char bytes[MT_UNITS_TEXT], each[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];

        if (holding->stack == MT_NO_ID)
            continue;
        const char *in = mt_reporter_in_phase(reporter, holding->phase);
        mt_buf_printf(reporter->out, "  %s: %s × %s%s%s%s", mt_format_bytes(bytes, holding->bytes),
                      mt_format_count(blocks, holding->blocks),
                      mt_format_bytes(each, holding->block_bytes), has_roles(reporter) ? ", " : "",
                      has_roles(reporter) ? mt_role_name(holding->role) : "",
                      *in ? ", allocated " : "");
        mt_text_table_add_shortened(reporter->out, in, 50);
        mt_buf_add_char(reporter->out, '\n');
        report_stack(reporter, holding->stack);
        told++;
    }
}

/* Without stacks, sizes and counts are all that is known. */
static void report_sizes(const struct mt_reporter *reporter, const struct mt_instant *instant)
{
    struct mt_table table;

    mt_reporter_heading(reporter, "Largest sizes at that instant");
    mt_table_begin(&table, "#bytes|#blocks|#each");
    for (uint32_t i = 0; i < instant->holding_count; i++) {
        const struct mt_holding *holding = &instant->holdings[i];

        MT_CELLS(&table, MT_BYTES(holding->bytes), MT_COUNT(holding->blocks),
                 MT_BYTES(holding->block_bytes));
    }
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
    mt_reporter_line(reporter, 2,
                     mt_reporter_format(reporter, "all of them: memtrace live %s --by size",
                                        mt_shell_path(reporter->arena, reporter->report->path)));
}

/* True if the fatal out-of-memory error already shows the peak: nothing was freed between them. */
static bool peak_is_told(const struct mt_device_report *device)
{
    const struct mt_oom *oom = mt_fatal_oom(device);

    return oom && oom->then.allocated == device->allocated_peak.bytes;
}

void mt_reporter_sites(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;

    if (!device->peak_site_count)
        return;
    if (!peak_is_told(device)) {
        mt_reporter_heading(reporter, mt_is_one_instant(reporter->report, device)
                                          ? "Held at that instant, by site"
                                          : "Held at the peak, by site");
        mt_reporter_holders(reporter, &device->instants[0]);
    }
    if (device->frameless_peak_bytes < device->allocated_peak.bytes)
        report_stacks(reporter, &device->instants[0]);
    else if (mt_is_one_instant(reporter->report, device))
        report_sizes(reporter, &device->instants[0]);
}

/* Explains in words why memory rose. */

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
    const struct mt_parts parts = {why->contributions, why->contribution_count, UINT32_MAX,
                                   why->step, 0};

    report_parts(reporter, &parts, 4);
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
        mt_text_table_add_wrapped(reporter->out, line.data, 2, 4);
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

void mt_reporter_explanations(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    bool has_heading = false;

    if (reporter->report->phase_count == 0)
        return; /* without phases, the holders of the peak explain it */
    for (uint32_t i = 0; i < device->explanation_count; i++) {
        if (is_told_later(device, i))
            continue;
        if (!has_heading)
            mt_reporter_heading(reporter, "Why");
        has_heading = true;
        report_explanation(reporter, &device->explanations[i]);
    }
}
