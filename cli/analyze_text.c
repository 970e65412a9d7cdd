/* The text of `memtrace analyze`: the answer, then why, then tables, then how
 * far to trust it. */
#include "analyze_output.h"
#include "device_choice.h"
#include "text_chart.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CHART_COLUMNS 160u

/* ---- words ----------------------------------------------------------------- */

/* The range that a person would name: not the framework's, if there is one. */
static int32_t named_phase(const struct mt_report *report, int32_t phase)
{
    int32_t at = phase;

    while (at != MT_NO_PHASE && report->phases[at].is_plumbing)
        at = report->phases[at].parent;
    return at == MT_NO_PHASE ? phase : at;
}

const char *mt_tell_format(const struct mt_teller *teller, const char *format, ...)
{
    char text[512];
    const char *kept;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kept = mt_arena_text(teller->arena, text, strlen(text));
    teller->out->failed |= !kept;
    return kept ? kept : "";
}

const char *mt_tell_where(const struct mt_teller *teller, int32_t phase, int64_t step)
{
    const struct mt_phase *named;
    const char *where;

    phase = named_phase(teller->report, phase);
    named = phase == MT_NO_PHASE ? NULL : &teller->report->phases[phase];
    if (step == MT_NO_STEP)
        where = named ? named->name : NULL;
    else if (!named || named->is_step)
        where = mt_tell_format(teller, "step %lld, between phases", (long long)step);
    else
        where = mt_tell_format(teller, "step %lld, %s", (long long)step, named->name);
    return where ? where : "outside of any phase";
}

const char *mt_tell_in(const struct mt_teller *teller, int32_t phase, int64_t step)
{
    const char *where = mt_tell_where(teller, phase, step);

    if (teller->report->phase_count == 0)
        return "";
    if (phase == MT_NO_PHASE && step == MT_NO_STEP)
        return where;
    return mt_tell_format(teller, "in %s", where);
}

const char *mt_tell_when(const struct mt_teller *teller, uint64_t t_ns)
{
    uint64_t begin = teller->report->first_t_ns;
    char text[MT_UNITS_TEXT];

    return mt_tell_format(teller, "%s", mt_format_duration(text, t_ns > begin ? t_ns - begin : 0));
}

void mt_tell_heading(const struct mt_teller *teller, const char *text)
{
    mt_buf_printf(teller->out, "\n%s%s%s\n", teller->style->bold, text, teller->style->reset);
}

void mt_tell_line(const struct mt_teller *teller, size_t indent, const char *text)
{
    for (size_t i = 0; i < indent; i++)
        mt_buf_add_char(teller->out, ' ');
    mt_add_wrapped(teller->out, text, indent, indent + 2);
    mt_buf_add_char(teller->out, '\n');
}

void mt_tell_title(const struct mt_teller *teller, size_t indent, const char *more)
{
    const struct mt_report *report = teller->report;
    char events[MT_UNITS_TEXT], span[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    uint64_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        count += report->devices[i].events;
    mt_buf_printf(&line, "%s: ", *report->name ? report->name : "trace");
    if (report->device_count == 1 && report->devices[0].name)
        mt_buf_printf(&line, "%s, ", report->devices[0].name);
    if (report->device_count > 1)
        mt_buf_printf(&line, "%u devices, ", report->device_count);
    if (report->framework)
        mt_buf_printf(&line, "%s, ", report->framework);
    if (report->options && *report->options)
        mt_buf_printf(&line, "%s, ", report->options);
    if (report->what_if)
        mt_buf_printf(&line, "SIMULATED with %s, ", report->policy);
    mt_buf_printf(&line, "%s events", mt_format_count(events, count));
    if (report->step_count)
        mt_buf_printf(&line, ", %lld step%s", (long long)report->step_count,
                      report->step_count == 1 ? "" : "s");
    mt_buf_printf(&line, " in %s",
                  mt_format_duration(span, report->last_t_ns - report->first_t_ns));
    mt_buf_add_text(&line, more);
    if (line.data)
        mt_tell_line(teller, indent, line.data);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

/* ---- over time --------------------------------------------------------------- */

static void tell_chart(const struct mt_teller *teller)
{
    const struct mt_style *style = teller->style;
    struct mt_text_chart chart = {.rows = teller->detail->chart_rows,
                                  .allocated = style->cyan,
                                  .reserved = style->dim,
                                  .mark = style->yellow,
                                  .reset = style->reset};

    if (!teller->chart || !chart.rows || !teller->device->timeline)
        return;
    chart.columns = (unsigned)mt_min_u64(teller->chart->columns, MOST_CHART_COLUMNS);
    chart.unicode = teller->chart->unicode;
    mt_tell_heading(teller, "Memory over time");
    mt_add_text_chart(teller->out, teller->report, teller->device, &chart);
}

/* ---- trust ----------------------------------------------------------------- */

/* Nothing is simulated, nothing can differ. */
static void tell_driver_level(const struct mt_teller *teller)
{
    mt_tell_line(teller, 2,
                 "no allocator above the driver was seen: allocated is what the driver was asked "
                 "for, all of its heaps together; what it rounds up itself is not in it");
}

static void tell_exactness(const struct mt_teller *teller)
{
    const struct mt_replay_verify *verify = &teller->device->replay.verify;
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT], c[MT_UNITS_TEXT], d[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (teller->report->what_if && !verify->exact) {
        mt_tell_line(
            teller, 2,
            "simulated: not what the program ran under, so there is nothing to compare with");
        return;
    }
    mt_buf_printf(&line, "replay (%s): %s of %s addresses exact", teller->report->policy,
                  mt_format_count(a, verify->addresses_exact),
                  mt_format_count(b, verify->allocations));
    if (verify->segment_events)
        mt_buf_printf(&line, ", %s of %s segment events",
                      mt_format_count(c, verify->segment_events_exact),
                      mt_format_count(d, verify->segment_events));
    if (verify->ooms)
        mt_buf_printf(&line, ", %s of %s OOMs", mt_format_count(a, verify->ooms_exact),
                      mt_format_count(b, verify->ooms));
    if (teller->device->replay.pools_inferred)
        mt_buf_printf(&line, ", the private pools of %s segments inferred",
                      mt_format_count(a, teller->device->replay.pools_inferred));
    if (line.data)
        mt_tell_line(teller, 2, line.data);
    if (verify->first_difference[0])
        mt_tell_line(teller, 4, verify->first_difference);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

static void tell_frameless(const struct mt_teller *teller)
{
    static const char *const words[MT_TIE_COUNT] = {
        [MT_TIE_PARAMETER] = "as gradients to parameters of their size",
        [MT_TIE_FORWARD] = "to what forward made of their size",
        [MT_TIE_LIBRARY] = "as workspaces to cuBLAS",
        [MT_TIE_PHASE] = "to their phase alone",
        [MT_TIE_BEFORE] = "to the time before the trace begins"};
    const struct mt_device_report *device = teller->device;
    uint64_t nothing = device->tie_peak_bytes[MT_TIE_NONE];
    char size[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    bool listed = false;

    if (!teller->report->has_stacks) {
        mt_tell_line(teller, 2, "no stacks were recorded: nothing is known of call sites");
        return;
    }
    if (!device->frameless_peak_bytes)
        return;
    mt_buf_printf(&line,
                  "%s at the peak have no Python stack: C++ threads allocated them, the autograd "
                  "engine's above all",
                  mt_format_bytes(size, device->frameless_peak_bytes));
    for (int tie = MT_TIE_PARAMETER; tie < MT_TIE_COUNT; tie++) {
        if (!device->tie_peak_bytes[tie])
            continue;
        mt_buf_printf(&line, "%s%s %s", listed ? ", " : "; they are tied, ",
                      mt_format_bytes(size, device->tie_peak_bytes[tie]), words[tie]);
        listed = true;
    }
    mt_tell_line(teller, 2, line.data ? line.data : "");
    if (nothing) {
        line.length = 0;
        mt_buf_printf(
            &line, "unattributed at the peak: %s (%s)", mt_format_bytes(size, nothing),
            mt_format_percent(share, (double)nothing / (double)device->allocated_peak.bytes));
        mt_tell_line(teller, 2, line.data ? line.data : "");
    }
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

/* Steps and phases that the program did not name. */
static void tell_found(const struct mt_teller *teller)
{
    static const char *const words[MT_PHASE_SOURCE_COUNT] = {
        [MT_PHASE_STACKS] = "the functions and lines in stacks",
        [MT_PHASE_THREADS] = "which thread allocates",
        [MT_PHASE_PERIOD] = "what repeats",
        [MT_PHASE_SCOPES] = "the framework's own ranges"};
    const struct mt_report *report = teller->report;
    uint8_t steps = MT_PHASE_ANNOTATED, parts = MT_PHASE_ANNOTATED;
    struct mt_buf line = {0};

    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];
        uint8_t *source = phase->is_step ? &steps : &parts;

        if (!phase->is_plumbing && phase->source > *source)
            *source = phase->source;
    }
    if (steps)
        mt_buf_printf(&line, "steps %sare found by %s", parts == steps ? "and phases " : "",
                      words[steps]);
    if (parts && parts != steps)
        mt_buf_printf(&line, "%sphases are found by %s", steps ? ", " : "", words[parts]);
    if (line.data) {
        mt_buf_add_text(&line, ": the program did not name them");
        mt_tell_line(teller, 2, line.data);
    }
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

/* What the trace does not hold. */
static void tell_missing(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;
    const struct mt_integrity *integrity = &teller->report->integrity;
    char size[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (device->start.allocated)
        mt_buf_printf(&line,
                      "the trace begins in the middle: %s were alive already, born where the "
                      "history does not reach; peaks are those since then. ",
                      mt_format_bytes(size, device->start.allocated));
    else if (device->replay.starts_in_middle || teller->report->starts_in_middle)
        mt_buf_add_text(&line, "the trace begins in the middle: what came before is not known. ");
    if (integrity->events_dropped)
        mt_buf_printf(&line, "%s events were lost while recording. ",
                      mt_format_count(count, integrity->events_dropped));
    if (integrity->cut)
        mt_buf_add_text(&line, "The file is cut: what came after is not known.");
    if (line.data)
        mt_tell_line(teller, 2, line.data);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

static void tell_where_roles_are_from(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;
    char recorded[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    uint64_t bytes = 0;

    for (int role = 0; role < MT_ROLE_COUNT; role++)
        bytes += device->peak_recorded_role_bytes[role];
    if (!teller->report->roles_inferred) {
        mt_tell_line(teller, 2, "roles are those that were recorded");
        return;
    }
    if (bytes)
        mt_buf_printf(&line, "of %s at the peak the role was recorded, other ",
                      mt_format_bytes(recorded, bytes));
    mt_buf_add_text(&line, "roles are inferred from where blocks were born and freed");
    mt_tell_line(teller, 2, line.data);
    teller->out->failed |= line.failed;
    mt_buf_release(&line);
}

static void tell_trust(const struct mt_teller *teller)
{
    const struct mt_report *report = teller->report;
    const struct mt_device_report *device = teller->device;

    mt_tell_heading(teller, "How far to trust this");
    if (report->is_driver_level && !report->what_if)
        tell_driver_level(teller);
    else
        tell_exactness(teller);
    if (report->pytorch_difference)
        mt_tell_line(teller, 2,
                     "PyTorch's rules do not reproduce this trace, so block sizes are as recorded");
    tell_missing(teller);
    if (!report->has_segments && !report->is_driver_level)
        mt_tell_line(teller, 2,
                     "segments were not recorded: of what was reserved only the blocks are known");
    if (!report->step_count)
        mt_tell_line(teller, 2, "no steps were named or found");
    tell_found(teller);
    tell_where_roles_are_from(teller);
    if (report->roles_inferred && !report->saw_backward && !device->ooms)
        mt_tell_line(teller, 2, "no backward pass was seen: take roles with care, sites are facts");
    if (teller->detail->holders)
        tell_frameless(teller);
}

/* ---- all of it ------------------------------------------------------------- */

static void tell_device(const struct mt_teller *teller)
{
    if (teller->report->device_count > 1) {
        mt_buf_printf(teller->out, "\n%sDevice %u%s%s%s\n", teller->style->bold,
                      teller->device->device, teller->device->name ? ": " : "",
                      teller->device->name ? teller->device->name : "", teller->style->reset);
    }
    mt_tell_answer(teller);
    tell_chart(teller);
    mt_tell_ooms(teller);
    mt_tell_findings(teller);
    mt_tell_explanations(teller);
    mt_tell_phases(teller);
    mt_tell_idle(teller);
    mt_tell_sites(teller);
    mt_tell_driver(teller);
    tell_trust(teller);
}

/* Of all devices, or of those that are shown. */
static uint32_t device_count(const struct mt_teller *teller, const struct mt_device_choice *choice)
{
    return teller->detail->all_devices ? teller->report->device_count : choice->count;
}

static const struct mt_device_report *device_at(const struct mt_teller *teller,
                                                const struct mt_device_choice *choice, uint32_t i)
{
    return teller->detail->all_devices ? &teller->report->devices[i] : choice->devices[i];
}

/* Devices that no table has. */
static void tell_left_out(const struct mt_teller *teller)
{
    const struct mt_report *report = teller->report;
    int not_followed = __builtin_popcountll(report->devices_not_followed);
    char count[MT_UNITS_TEXT];

    if (report->devices_left_out)
        mt_tell_line(teller, 2,
                     mt_tell_format(teller,
                                    "devices not analyzed because their numbers are above 63: %s",
                                    mt_format_count(count, report->devices_left_out)));
    if (not_followed)
        mt_tell_line(teller, 2,
                     mt_tell_format(teller,
                                    "devices not analyzed because the trace has too many phases "
                                    "for another device: %d",
                                    not_followed));
}

static void tell_devices_together(const struct mt_teller *teller,
                                  const struct mt_device_choice *choice)
{
    static const struct mt_text_column columns[] = {{"device", false, false},
                                                    {"peak allocated", true, false},
                                                    {"peak reserved", true, false},
                                                    {"unused then", true, false},
                                                    {"allocated at the end", true, false},
                                                    {"in", false, true},
                                                    {NULL, false, false}};
    struct mt_text_table table;
    char text[MT_UNITS_TEXT];

    mt_table_begin(&table, columns, 2);
    for (uint32_t i = 0; i < device_count(teller, choice); i++) {
        const struct mt_device_report *device = device_at(teller, choice, i);

        mt_table_cell(&table, mt_format_count(text, device->device));
        mt_table_cell(&table, mt_format_bytes(text, device->allocated_peak.bytes));
        mt_table_cell(&table, mt_format_bytes(text, device->reserved_peak.bytes));
        mt_table_cell(&table, mt_format_percent(text, device->fragmentation_at_reserved_peak));
        mt_table_cell(&table, mt_format_bytes(text, device->end.allocated));
        mt_table_cell(&table, mt_tell_where(teller, device->allocated_peak.phase,
                                            device->allocated_peak.step));
    }
    mt_table_end(&table, teller->out, teller->style->dim, teller->style->reset);
    tell_left_out(teller);
    if (choice->omitted && !teller->detail->all_devices)
        mt_tell_line(teller, 2,
                     mt_tell_format(teller,
                                    "%u of %u devices are shown, those with the largest reserved "
                                    "peaks; --all shows all of them",
                                    choice->count, teller->report->device_count));
}

static const char *why_empty(const struct mt_report *report)
{
    const struct mt_integrity *integrity = &report->integrity;

    if (integrity->frames_damaged)
        return "No memory events can be read: the file is damaged.\n";
    if (integrity->cut)
        return "No memory events can be read: the file is cut.\n";
    if (report->devices_left_out)
        return "No memory events of devices 0 to 63, which are the ones that are analyzed.\n";
    return "No memory events: nothing was allocated on any device while the trace was recorded.\n";
}

void mt_tell_everything(const struct mt_teller *shared)
{
    const struct mt_report *report = shared->report;
    const struct mt_device_choice choice = mt_devices_in_order(report);
    struct mt_teller teller = *shared;

    if (report->device_count == 0) {
        mt_buf_add_text(teller.out, why_empty(report));
        mt_tell_run(&teller);
    }
    if (report->device_count > 1) {
        mt_tell_worst_device(&teller);
        mt_tell_run(&teller);
        tell_devices_together(&teller, &choice);
    }
    for (uint32_t i = 0; i < device_count(&teller, &choice); i++) {
        teller.device = device_at(&teller, &choice, i);
        tell_device(&teller);
    }
    if (report->device_count == 1)
        tell_left_out(&teller);
    mt_tell_other_devices(&teller);
}
