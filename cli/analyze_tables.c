/* Tables of steps, phases, and blocks at the peak. */
#include "analyze_output.h"
#include "report_query.h"
#include "report_rows.h"
#include "site.h"
#include "text_table.h"
#include "wrapped_text.h"
#include "units.h"
#include "util.h"

#include <stdlib.h>

enum { MAX_STEPS = 12, MAX_PHASES = 24 };

static const char not_recorded[] = "before the first recorded event";

/* Returns the name of the main phase that contains the step's peak event. */
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

/* If there are many steps, the table has only the first and last ones, those with the peaks and,
 * with full detail, those whose peak rose. */
static bool is_shown(const struct mt_teller *teller, uint32_t index)
{
    const struct mt_device_report *device = teller->device;
    const struct mt_step_use *step = &device->steps[index];
    uint32_t most = teller->detail->steps;
    uint32_t first = most / 4, last = first < 3 ? first : 2; /* plus the peaks */

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

static void add_step(const struct mt_teller *teller, struct mt_table *table, uint32_t index)
{
    const struct mt_step_use *step = &teller->device->steps[index];

    if (mt_report_covers(teller->report, teller->device, step->end_event)) {
        mt_add_step_cells(table, teller->report, step);
        MT_CELLS(table, MT_TEXT(phase_at(teller, step)));
        return;
    }
    MT_CELLS(table, MT_INTEGER(step->step));
    mt_table_skip(table, 5);
    MT_CELLS(table, mt_step_length_cell(teller->report, step), MT_TEXT(not_recorded));
}

static void add_dots(const struct mt_teller *teller, struct mt_table *table, uint32_t steps)
{
    MT_CELLS(table, MT_TEXT("…"));
    mt_table_skip(table, 6);
    MT_CELLS(table, MT_TEXT(mt_tell_format(teller, "%u more steps", steps)));
}

/* Adds a line for the hidden steps before `end`. A single hidden step is printed itself, because it
 * takes no more space. */
static void add_hidden(const struct mt_teller *teller, struct mt_table *table, uint32_t end,
                       uint32_t hidden)
{
    if (hidden == 1)
        add_step(teller, table, end - 1);
    else if (hidden)
        add_dots(teller, table, hidden);
}

static void tell_steps(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;
    struct mt_table table;
    uint32_t hidden = 0;

    mt_tell_heading(teller, "Steps");
    mt_table_begin(&table, mt_report_has_times(teller->report)
                               ? "#step|#before|#peak|#after|#change|#reserved|#time|~peak in"
                               : "#step|#before|#peak|#after|#change|#reserved|#events|~peak in");
    for (uint32_t i = 0; i < device->step_count; i++) {
        if (!is_shown(teller, i)) {
            hidden++;
            continue;
        }
        add_hidden(teller, &table, i, hidden);
        hidden = 0;
        add_step(teller, &table, i);
    }
    add_hidden(teller, &table, device->step_count, hidden);
    mt_add_text_table(teller->out, &table, 2, teller->style);
}

static void add_phase(const struct mt_teller *teller, struct mt_table *table, uint32_t index)
{
    const struct mt_phase *phase = &teller->report->phases[index];
    const struct mt_phase_use *use = &teller->device->phase_uses[index];
    uint64_t before = use->enter.allocated, after = use->exit.allocated;

    MT_CELLS(table, MT_TEXT(mt_tell_where(teller, (int32_t)index, phase->step)));
    if (!mt_report_covers(teller->report, teller->device, phase->end_event)) {
        mt_table_skip(table, 4);
        MT_CELLS(table, mt_length_cell(teller->report, phase), MT_TEXT(not_recorded));
        return;
    }
    MT_CELLS(table, MT_BYTES(before), MT_BYTES(use->peak.allocated), MT_BYTES(after),
             MT_CHANGE((int64_t)(after - before)), mt_length_cell(teller->report, phase),
             MT_TEXT(phase->cut         ? "did not end"
                     : use->raises_peak ? "new maximum"
                                        : ""));
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
    uint32_t most;

    for (uint32_t i = 0; peaks && i < report->phase_count; i++)
        if (is_listed(report, i, step))
            peaks[count++] = teller->device->phase_uses[i].peak.allocated;
    most = teller->detail->phases;
    return mt_largest_of(peaks, count, most + (count == (size_t)most + 1));
}

/* Prints all phases (step MT_NO_STEP) or those of one step. If there are too many, prints those
 * with the highest peaks. */
static void tell_phase_list(const struct mt_teller *teller, int64_t step)
{
    const struct mt_report *report = teller->report;
    struct mt_largest largest = largest_peaks(teller, step);
    struct mt_table table;
    uint32_t left_out = 0;

    mt_tell_heading(teller, step == MT_NO_STEP
                                ? "Phases"
                                : mt_tell_format(teller, "Phases of step %lld, which has the peak",
                                                 (long long)step));
    mt_table_begin(&table, mt_report_has_times(report)
                               ? "~phase|#before|#peak|#after|#change|#time|"
                               : "~phase|#before|#peak|#after|#change|#events|");
    for (uint32_t i = 0; i < report->phase_count; i++) {
        if (!is_listed(report, i, step))
            continue;
        if (mt_is_large(&largest, teller->device->phase_uses[i].peak.allocated))
            add_phase(teller, &table, i);
        else
            left_out++;
    }
    mt_add_text_table(teller->out, &table, 2, teller->style);
    if (left_out)
        mt_buf_printf(teller->out, "  (and %u with lower peaks)\n", left_out);
}

static void tell_folded_phases(const struct mt_teller *teller)
{
    const bool has_times = mt_report_has_times(teller->report);
    struct mt_phase_sum sums[MAX_PHASES];
    struct mt_table table;
    size_t count;

    if (mt_sum_phases(teller->report, teller->device, sums, MAX_PHASES, &count))
        teller->out->failed = true;
    mt_tell_heading(teller, "Phases, by name");
    mt_table_begin(&table, has_times ? "~phase|#times|#peak|#total change|#largest|#total time"
                                     : "~phase|#times|#peak|#total change|#largest|");
    for (size_t i = 0; i < count && i < teller->detail->phases && i < MAX_PHASES; i++)
        MT_CELLS(&table, MT_TEXT(sums[i].name), MT_COUNT(sums[i].instances),
                 MT_BYTES(sums[i].peak_bytes), MT_CHANGE(sums[i].change),
                 MT_CHANGE(sums[i].largest_change),
                 has_times ? MT_TIME(0, sums[i].time_ns) : MT_TEXT(""));
    mt_add_text_table(teller->out, &table, 2, teller->style);
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

/* Without a framework every block has the same role, so the column is omitted. */
static bool has_roles(const struct mt_teller *teller)
{
    return !teller->report->is_plain;
}

static bool has_phases(const struct mt_teller *teller)
{
    return teller->report->phase_count > 0;
}

static void add_part(const struct mt_teller *teller, struct mt_table *table,
                     const struct mt_parts *parts, const struct mt_contribution *part)
{
    uint64_t bytes = (uint64_t)part->bytes;

    if (parts->whole_bytes)
        MT_CELLS(table, MT_BYTES(bytes), MT_SHARE(bytes, parts->whole_bytes),
                 MT_COUNT((uint64_t)part->blocks));
    else
        MT_CELLS(table, MT_CHANGE(bytes),
                 MT_TEXT(mt_tell_format(teller, part->blocks < 0 ? "−%lld" : "%lld",
                                        (long long)llabs(part->blocks))));
    if (has_roles(teller))
        MT_CELLS(table, MT_TEXT(part->site ? mt_role_name(part->role) : ""));
    if (has_phases(teller))
        MT_CELLS(table, MT_TEXT(part->site ? mt_tell_birth(teller, part, parts->step) : ""));
    MT_CELLS(table, part->site ? MT_SITE(part->site) : MT_TEXT("all others together"));
}

static void begin_parts(const struct mt_teller *teller, struct mt_table *table, bool is_change)
{
    mt_table_begin(table, is_change ? "#bytes|#blocks" : "#bytes|#share|#blocks");
    if (has_roles(teller))
        mt_table_columns(table, "role");
    if (has_phases(teller))
        mt_table_columns(table, "allocated in");
    mt_table_columns(table, is_change ? "~by" : "~site");
}

void mt_tell_parts(const struct mt_teller *teller, const struct mt_parts *parts, unsigned indent)
{
    struct mt_contribution others = {0};
    struct mt_table table;
    bool has_others = false;

    begin_parts(teller, &table, !parts->whole_bytes);
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct mt_contribution *part = &parts->parts[i];

        if (i < parts->most && part->site) {
            add_part(teller, &table, parts, part);
        } else {
            others.bytes += part->bytes;
            others.blocks += part->blocks;
            has_others = true;
        }
    }
    if (has_others)
        add_part(teller, &table, parts, &others);
    mt_add_text_table(teller->out, &table, indent, teller->style);
}

void mt_tell_holders(const struct mt_teller *teller, const struct mt_instant *instant)
{
    const struct mt_parts parts = {instant->holders, instant->holder_count, teller->detail->holders,
                                   instant->step, instant->bytes.allocated};

    mt_tell_parts(teller, &parts, 2);
}

/* "cross_entropy functional.py:3504 < train train.py:77 < ...", without frames that only forward a
 * call. */
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
    mt_tell_heading(teller, teller->device->events ? "Largest stacks at the peak"
                                                   : "Largest stacks at that instant");
    for (uint32_t i = 0; i < instant->holding_count && told < teller->detail->stacks; i++) {
        const struct mt_holding *holding = &instant->holdings[i];
        char bytes[MT_UNITS_TEXT], each[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];
        const char *in;

        if (holding->stack == MT_NO_ID)
            continue;
        in = mt_tell_in(teller, holding->phase, step_of(teller, holding->phase));
        mt_buf_printf(teller->out, "  %s: %s × %s%s%s%s", mt_format_bytes(bytes, holding->bytes),
                      mt_format_count(blocks, holding->blocks),
                      mt_format_bytes(each, holding->block_bytes), has_roles(teller) ? ", " : "",
                      has_roles(teller) ? mt_role_name(holding->role) : "",
                      *in ? ", allocated " : "");
        mt_add_shortened(teller->out, in, 50);
        mt_buf_add_char(teller->out, '\n');
        tell_stack(teller, holding->stack);
        told++;
    }
}

/* True if the fatal out-of-memory error already shows the peak: nothing was freed between them. */
static bool peak_is_told(const struct mt_device_report *device)
{
    const struct mt_oom *oom = mt_fatal_oom(device);

    return oom && oom->then.allocated == device->allocated_peak.bytes;
}

void mt_tell_sites(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;

    if (!device->peak_site_count || !teller->detail->holders)
        return;
    if (!peak_is_told(device)) {
        mt_tell_heading(teller, device->events ? "Held at the peak, by site"
                                               : "Held at that instant, by site");
        mt_tell_holders(teller, &device->instants[0]);
    }
    if (device->frameless_peak_bytes < device->allocated_peak.bytes)
        tell_stacks(teller, &device->instants[0]);
}
