/* Tables: steps, phases, and what was there at the peak. */
#include "analyze_output.h"
#include "report_query.h"
#include "site.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 12, MAX_PHASES = 24 };

static void cell_bytes(struct mt_text_table *table, uint64_t bytes)
{
    char text[MT_UNITS_TEXT];

    mt_table_cell(table, mt_format_bytes(text, bytes));
}

static void cell_change(struct mt_text_table *table, uint64_t from, uint64_t to)
{
    char text[MT_UNITS_TEXT];

    mt_table_cell(table, mt_format_change(text, (int64_t)(to - from)));
}

static void cell_duration(struct mt_text_table *table, uint64_t begin_ns, uint64_t end_ns)
{
    char text[MT_UNITS_TEXT];

    mt_table_cell(table, mt_format_duration(text, end_ns > begin_ns ? end_ns - begin_ns : 0));
}

static const char not_recorded[] = "before the first recorded event";

static void end_table(const struct mt_teller *teller, struct mt_text_table *table)
{
    mt_table_end(table, teller->out, teller->style->dim, teller->style->reset);
}

/* ---- steps ----------------------------------------------------------------- */

/* Phase that holds an instant of a step, by its event: the innermost main one. */
static const char *phase_at(const struct mt_teller *teller, const struct mt_step_use *step)
{
    const struct mt_report *report = teller->report;

    for (uint32_t i = (uint32_t)step->phase; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];

        if (phase->begin_event > step->peak_allocated_event)
            break;
        if (report->main_phase[i] && phase->end_event >= step->peak_allocated_event)
            return phase->name;
    }
    return "between phases";
}

/* Of many steps: the first, the last, and those that stand out. */
static bool is_shown(const struct mt_teller *teller, uint32_t index)
{
    const struct mt_device_report *device = teller->device;
    const struct mt_step_use *step = &device->steps[index];
    uint32_t most = teller->detail->steps;
    uint32_t first = most / 4, last = first < 3 ? first : 2; /* and the peaks */

    if (device->step_count <= most || index < first || index + last >= device->step_count)
        return true;
    if (step->step == device->allocated_peak.step || step->step == device->reserved_peak.step)
        return true;
    if (most < MAX_STEPS)
        return false;
    for (uint32_t i = 0; i < device->explanation_count; i++)
        if (device->explanations[i].step == step->step &&
            device->explanations[i].kind == MT_WHY_STEP_PEAK_ROSE)
            return true;
    return false;
}

static void add_step(const struct mt_teller *teller, struct mt_text_table *table, uint32_t index)
{
    const struct mt_step_use *step = &teller->device->steps[index];
    bool is_recorded = mt_report_covers(teller->report, teller->device, step->end_event);

    mt_table_cell(table, mt_tell_format(teller, "%lld", (long long)step->step));
    for (int i = 0; !is_recorded && i < 5; i++)
        mt_table_cell(table, "");
    if (!is_recorded) {
        cell_duration(table, step->begin_t_ns, step->end_t_ns);
        mt_table_cell(table, not_recorded);
        return;
    }
    cell_bytes(table, step->enter.allocated);
    cell_bytes(table, step->peak.allocated);
    cell_bytes(table, step->exit.allocated);
    cell_change(table, step->enter.allocated, step->exit.allocated);
    cell_bytes(table, step->peak.reserved);
    cell_duration(table, step->begin_t_ns, step->end_t_ns);
    mt_table_cell(table, phase_at(teller, step));
}

static void add_dots(const struct mt_teller *teller, struct mt_text_table *table, uint32_t steps)
{
    mt_table_cell(table, "…");
    for (int i = 0; i < 6; i++)
        mt_table_cell(table, "");
    mt_table_cell(table, mt_tell_format(teller, "%u steps more", steps));
}

static void tell_steps(const struct mt_teller *teller)
{
    static const struct mt_text_column columns[] = {
        {"step", true, false},  {"before", true, false},  {"peak", true, false},
        {"after", true, false}, {"change", true, false},  {"reserved", true, false},
        {"time", true, false},  {"peak in", false, true}, {NULL, false, false}};
    const struct mt_device_report *device = teller->device;
    struct mt_text_table table;
    uint32_t hidden = 0;

    mt_tell_heading(teller, "Steps");
    mt_table_begin(&table, columns, 2);
    for (uint32_t i = 0; i < device->step_count; i++) {
        if (!is_shown(teller, i)) {
            hidden++;
            continue;
        }
        if (hidden)
            add_dots(teller, &table, hidden);
        hidden = 0;
        add_step(teller, &table, i);
    }
    if (hidden)
        add_dots(teller, &table, hidden);
    end_table(teller, &table);
}

/* ---- phases ---------------------------------------------------------------- */

static const struct mt_text_column phase_columns[] = {
    {"phase", false, true},  {"before", true, false}, {"peak", true, false}, {"after", true, false},
    {"change", true, false}, {"time", true, false},   {"", false, false},    {NULL, false, false}};

static void add_phase(const struct mt_teller *teller, struct mt_text_table *table, uint32_t index)
{
    const struct mt_phase *phase = &teller->report->phases[index];
    const struct mt_phase_use *use = &teller->device->phase_uses[index];

    mt_table_cell(table, mt_tell_where(teller, (int32_t)index, phase->step));
    if (!mt_report_covers(teller->report, teller->device, phase->end_event)) {
        for (int i = 0; i < 4; i++)
            mt_table_cell(table, "");
        cell_duration(table, phase->begin_t_ns, phase->end_t_ns);
        mt_table_cell(table, not_recorded);
        return;
    }
    cell_bytes(table, use->enter.allocated);
    cell_bytes(table, use->peak.allocated);
    cell_bytes(table, use->exit.allocated);
    cell_change(table, use->enter.allocated, use->exit.allocated);
    cell_duration(table, phase->begin_t_ns, phase->end_t_ns);
    mt_table_cell(table, phase->cut ? "did not end" : use->raises_peak ? "new maximum" : "");
}

static bool is_listed(const struct mt_report *report, uint32_t index, int64_t step)
{
    return report->main_phase[index] && (step == MT_NO_STEP || report->phases[index].step == step);
}

static struct mt_largest largest_peaks(const struct mt_teller *teller, int64_t step)
{
    const struct mt_report *report = teller->report;
    uint64_t *peaks = mt_arena_array(teller->arena, report->phase_count, sizeof *peaks);
    size_t count = 0;

    for (uint32_t i = 0; peaks && i < report->phase_count; i++)
        if (is_listed(report, i, step))
            peaks[count++] = teller->device->phase_uses[i].peak.allocated;
    return mt_tell_largest(peaks, count, teller->detail->phases);
}

/* All of them (step MT_NO_STEP), or those of one step; the highest, if some have to
 * be left out. */
static void tell_phase_list(const struct mt_teller *teller, int64_t step)
{
    const struct mt_report *report = teller->report;
    struct mt_largest largest = largest_peaks(teller, step);
    struct mt_text_table table;
    uint32_t left_out = 0;

    mt_tell_heading(
        teller, step == MT_NO_STEP
                    ? "Phases"
                    : mt_tell_format(teller, "Phases of step %lld, the peak's", (long long)step));
    mt_table_begin(&table, phase_columns, 2);
    for (uint32_t i = 0; i < report->phase_count; i++) {
        if (!is_listed(report, i, step))
            continue;
        if (mt_tell_is_large(&largest, teller->device->phase_uses[i].peak.allocated))
            add_phase(teller, &table, i);
        else
            left_out++;
    }
    end_table(teller, &table);
    if (left_out)
        mt_buf_printf(teller->out, "  (and %u lower)\n", left_out);
}

/* All instances of a name together. */
struct fold {
    const char *name;
    uint64_t instances, peak, time_ns;
    int64_t change, largest_change;
};

static struct fold *fold_of(struct fold *folds, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp(folds[i].name, name))
            return &folds[i];
    if (*count == MAX_PHASES)
        return NULL;
    folds[*count] = (struct fold){.name = name};
    return &folds[(*count)++];
}

static size_t fold_phases(const struct mt_teller *teller, struct fold *folds)
{
    const struct mt_report *report = teller->report;
    size_t count = 0;

    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase_use *use = &teller->device->phase_uses[i];
        int64_t change = (int64_t)(use->exit.allocated - use->enter.allocated);
        struct fold *fold;

        if (!report->main_phase[i] ||
            !mt_report_covers(report, teller->device, report->phases[i].end_event))
            continue;
        fold = fold_of(folds, &count, report->phases[i].name);
        if (!fold)
            continue;
        fold->instances++;
        fold->peak = mt_max_u64(fold->peak, use->peak.allocated);
        fold->time_ns += report->phases[i].end_t_ns - report->phases[i].begin_t_ns;
        fold->change += change;
        if (mt_magnitude(change) > mt_magnitude(fold->largest_change))
            fold->largest_change = change;
    }
    return count;
}

static void tell_folded_phases(const struct mt_teller *teller)
{
    static const struct mt_text_column columns[] = {
        {"phase", false, true},   {"times", true, false},
        {"peak", true, false},    {"change in all", true, false},
        {"largest", true, false}, {"time in all", true, false},
        {NULL, false, false}};
    struct fold folds[MAX_PHASES];
    size_t count = fold_phases(teller, folds);
    struct mt_text_table table;
    char text[MT_UNITS_TEXT];

    mt_tell_heading(teller, "Phases, by name");
    mt_table_begin(&table, columns, 2);
    for (size_t i = 0; i < count && i < teller->detail->phases; i++) {
        mt_table_cell(&table, folds[i].name);
        mt_table_cell(&table, mt_format_count(text, folds[i].instances));
        cell_bytes(&table, folds[i].peak);
        mt_table_cell(&table, mt_format_change(text, folds[i].change));
        mt_table_cell(&table, mt_format_change(text, folds[i].largest_change));
        mt_table_cell(&table, mt_format_duration(text, folds[i].time_ns));
    }
    end_table(teller, &table);
}

void mt_tell_phases(const struct mt_teller *teller)
{
    const struct mt_report *report = teller->report;
    uint32_t main_phases = 0;

    if (!teller->detail->phases)
        return;
    for (uint32_t i = 0; i < report->phase_count; i++)
        main_phases += report->main_phase[i];
    if (teller->device->step_count > 3) {
        tell_steps(teller);
        if (main_phases && teller->device->allocated_peak.step != MT_NO_STEP)
            tell_phase_list(teller, teller->device->allocated_peak.step);
    } else if (main_phases > MAX_PHASES) {
        tell_folded_phases(teller);
    } else if (main_phases) {
        tell_phase_list(teller, MT_NO_STEP);
    } else if (teller->device->step_count) {
        tell_steps(teller);
    }
}

/* ---- sites ----------------------------------------------------------------- */

static void add_holder(const struct mt_teller *teller, struct mt_text_table *table,
                       const struct mt_contribution *holder, double total, int64_t spoken_of)
{
    char text[MT_UNITS_TEXT];

    cell_bytes(table, (uint64_t)holder->bytes);
    mt_table_cell(table, mt_format_percent(text, (double)holder->bytes / total));
    mt_table_cell(table, mt_format_count(text, (uint64_t)holder->blocks));
    mt_table_cell(table, holder->site ? mt_role_name(holder->role) : "");
    mt_table_cell(table, holder->site ? mt_tell_birth(teller, holder, spoken_of) : "");
    mt_table_cell(table, holder->site ? holder->site : "all others together");
}

void mt_tell_holders(const struct mt_teller *teller, const struct mt_instant *instant)
{
    static const struct mt_text_column columns[] = {
        {"bytes", true, false}, {"share", true, false},    {"blocks", true, false},
        {"role", false, false}, {"born in", false, false}, {"site", false, true},
        {NULL, false, false}};
    struct mt_contribution others = {0};
    struct mt_text_table table;

    mt_table_begin(&table, columns, 2);
    for (uint32_t i = 0; i < instant->holder_count; i++) {
        const struct mt_contribution *holder = &instant->holders[i];

        if (i < teller->detail->holders && holder->site) {
            add_holder(teller, &table, holder, (double)instant->bytes.allocated, instant->step);
        } else {
            others.bytes += holder->bytes;
            others.blocks += holder->blocks;
        }
    }
    if (others.blocks)
        add_holder(teller, &table, &others, (double)instant->bytes.allocated, instant->step);
    end_table(teller, &table);
}

/* "cross_entropy functional.py:3504 < train train.py:77 < ...", without frames
 * that only call on. */
static void tell_stack(const struct mt_teller *teller, uint32_t stack)
{
    const struct mt_symbols *symbols = teller->report->symbols;
    struct mt_buf line = {0};

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;
        const char *label;

        if (mt_frame_is_plumbing(symbols, frame))
            continue;
        label = mt_frame_label(teller->arena, symbols, frame);
        if (line.length)
            mt_buf_add_text(&line, " < ");
        mt_buf_add_text(&line, label ? label : "?");
        if (line.length > 400) {
            mt_buf_add_text(&line, " < …");
            break;
        }
    }
    mt_buf_add_text(teller->out, "      ");
    mt_add_wrapped(teller->out, line.data ? line.data : "no stack recorded", 6, 8);
    mt_buf_add_char(teller->out, '\n');
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

static int64_t step_of(const struct mt_teller *teller, int32_t phase)
{
    return phase == MT_NO_PHASE ? MT_NO_STEP : teller->report->phases[phase].step;
}

static void tell_stacks(const struct mt_teller *teller, const struct mt_instant *instant)
{
    uint32_t told = 0;

    if (!teller->detail->stacks)
        return;
    mt_tell_heading(teller, "Largest stacks at the peak");
    for (uint32_t i = 0; i < instant->holding_count && told < teller->detail->stacks; i++) {
        const struct mt_holding *holding = &instant->holdings[i];
        char bytes[MT_UNITS_TEXT], each[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];
        const char *in;

        if (holding->stack == MT_NO_ID)
            continue;
        in = mt_tell_in(teller, holding->phase, step_of(teller, holding->phase));
        mt_buf_printf(teller->out, "  %s: %s × %s, %s%s", mt_format_bytes(bytes, holding->bytes),
                      mt_format_count(blocks, holding->blocks),
                      mt_format_bytes(each, holding->block_bytes), mt_role_name(holding->role),
                      *in ? ", born " : "");
        mt_add_shortened(teller->out, in, 50);
        mt_buf_add_char(teller->out, '\n');
        tell_stack(teller, holding->stack);
        told++;
    }
}

/* With the OOM that killed the program, if nothing was freed in between. */
static bool peak_is_told(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->oom_count; i++)
        if (device->oom_list[i].fatal)
            return device->oom_list[i].then.allocated == device->allocated_peak.bytes;
    return false;
}

void mt_tell_sites(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;

    if (!device->peak_site_count || !teller->detail->holders)
        return;
    if (!peak_is_told(device)) {
        mt_tell_heading(teller, "Held at the peak, by site");
        mt_tell_holders(teller, &device->instants[0]);
    }
    if (device->frameless_peak_bytes < device->allocated_peak.bytes)
        tell_stacks(teller, &device->instants[0]);
}
