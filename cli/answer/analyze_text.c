/* The text of `memtrace analyze`: the answer, its reasons, tables, and how far to trust it. */
#include <string.h>

#include "analyze_output.h"
#include "foreign_text.h"
#include "replay_json.h"
#include "report_query.h"
#include "source.h"
#include "text_chart.h"
#include "units.h"
#include "util.h"

/* How far to trust the numbers of a device: what was compared, inferred or is missing. */

/* Nothing is simulated, so nothing can differ. */
static void report_driver_level(const struct mt_reporter *reporter)
{
    mt_reporter_line(
        reporter, 2,
        "no allocator above the driver was seen: \"allocated\" is the sum of requests to "
        "the driver, over all its heaps; it excludes what the driver rounds up");
}

/* Prints how much the allocator's rules reproduced before the replay fell back to recorded
 * addresses. */
static void report_rules(const struct mt_reporter *reporter)
{
    const struct mt_replay_result *replay = &reporter->device->replay;
    const struct mt_rule_share *share = &replay->by_rule;
    const char *whose =
        strcmp(reporter->report->format, MT_SOURCES_XPLANE) == 0 ? "the arena's" : "PyTorch's";
    char n[4][MT_UNITS_TEXT];

    if (!share->was_tried && reporter->report->pytorch_difference)
        mt_reporter_line(reporter, 2,
                         mt_reporter_format(reporter, "other settings %s: %s",
                                            reporter->report->lacks_rules ? "are not replayed"
                                                                          : "cannot be replayed",
                                            reporter->report->pytorch_difference));
    if (!share->was_tried)
        return;
    mt_reporter_line(
        reporter, 2,
        share->segment_events
            ? mt_reporter_format(
                  reporter,
                  "%s rules reproduce %s of %s addresses and %s of %s segment events, "
                  "so addresses and block sizes are taken from the recording",
                  whose, mt_format_count(n[0], share->addresses_exact),
                  mt_format_count(n[1], replay->verify.allocations),
                  mt_format_count(n[2], share->segment_events_exact),
                  mt_format_count(n[3], share->segment_events))
            : mt_reporter_format(
                  reporter,
                  "%s rules reproduce %s of %s addresses, so addresses and block sizes "
                  "are taken from the recording",
                  whose, mt_format_count(n[0], share->addresses_exact),
                  mt_format_count(n[1], replay->verify.allocations)));
}

static void add_frees(struct mt_buf *line, const struct mt_replay_verify *verify)
{
    char n[2][MT_UNITS_TEXT];

    if (verify->frees_exact != verify->frees)
        mt_buf_printf(line, ", %s of %s frees", mt_format_count(n[0], verify->frees_exact),
                      mt_format_count(n[1], verify->frees));
}

/* Begins the claim with the counters that it covers: all of them, or their names. */
static void add_covered(struct mt_buf *line, const struct mt_replay_verify *verify)
{
    if (verify->covered == MT_COVERS_ALL)
        mt_buf_add_text(line, "counters exact, ");
    else if (verify->covered) {
        mt_report_add_covered(line, verify->covered);
        mt_buf_add_text(line, " exact, ");
    }
}

/* Nothing was simulated, so agreement would only compare the recording with itself. */
static void report_taken_over(const struct mt_reporter *reporter)
{
    const struct mt_replay_verify *verify = &reporter->device->replay.verify;
    char n[4][MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_add_text(&line, "taken from the recording, not replayed by rule: ");
    add_covered(&line, verify);
    mt_buf_printf(&line, "%s of %s addresses", mt_format_count(n[0], verify->addresses_exact),
                  mt_format_count(n[1], verify->allocations));
    if (verify->segment_events)
        mt_buf_printf(&line, ", %s of %s segment events",
                      mt_format_count(n[2], verify->segment_events_exact),
                      mt_format_count(n[3], verify->segment_events));
    add_frees(&line, verify);
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    if (verify->first_difference[0])
        mt_reporter_line(reporter, 4, verify->first_difference);
    report_rules(reporter);
    mt_buf_release(&line);
}

static void report_exactness(const struct mt_reporter *reporter)
{
    const struct mt_replay_verify *verify = &reporter->device->replay.verify;
    char a[MT_UNITS_TEXT], b[MT_UNITS_TEXT], c[MT_UNITS_TEXT], d[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (reporter->report->what_if && !verify->exact) {
        mt_reporter_line(
            reporter, 2,
            "simulated: the program did not run with these settings, so there is nothing "
            "to compare with");
        return;
    }
    mt_buf_printf(&line, "replay (%s): ", reporter->report->policy);
    add_covered(&line, verify);
    mt_buf_printf(&line, "%s of %s addresses%s", mt_format_count(a, verify->addresses_exact),
                  mt_format_count(b, verify->allocations),
                  verify->covered                       ? ""
                  : mt_replay_matches_recording(verify) ? " exact"
                                                        : " as recorded");
    if (verify->segment_events)
        mt_buf_printf(&line, ", %s of %s segment events",
                      mt_format_count(c, verify->segment_events_exact),
                      mt_format_count(d, verify->segment_events));
    if (verify->ooms)
        mt_buf_printf(&line, ", %s of %s OOMs", mt_format_count(a, verify->ooms_exact),
                      mt_format_count(b, verify->ooms));
    add_frees(&line, verify);
    if (reporter->device->replay.pools_inferred)
        mt_buf_printf(&line, ", the private pools of %s segments inferred",
                      mt_format_count(a, reporter->device->replay.pools_inferred));
    if (reporter->device->replay.restores.restores)
        mt_buf_printf(&line, ", %s replayed",
                      reporter->device->replay.restores.restores == 1
                          ? "1 restore of a private pool"
                          : mt_reporter_format(
                                reporter, "%s restores of private pools",
                                mt_format_count(a, reporter->device->replay.restores.restores)));
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    if (verify->first_difference[0])
        mt_reporter_line(reporter, 4, verify->first_difference);
    mt_buf_release(&line);
}

static void report_frameless(const struct mt_reporter *reporter)
{
    static const char *const words[] = {
        [MT_TIE_PARAMETER] = "to parameters of the same size (gradients)",
        [MT_TIE_FORWARD] = "to forward allocations of the same size",
        [MT_TIE_LIBRARY] = "to cuBLAS (workspaces)",
        [MT_TIE_PHASE] = "to their phase only",
        [MT_TIE_BEFORE] = ""};
    _Static_assert(sizeof words / sizeof *words == MT_TIE_COUNT, "one entry for each");
    const struct mt_device_report *device = reporter->device;
    /* Blocks that were alive at the start also lack a stack; report_missing reports them. */
    uint64_t frameless =
        mt_sub_or_0_u64(device->frameless_peak_bytes, device->tie_peak_bytes[MT_TIE_BEFORE]);
    uint64_t nothing = device->tie_peak_bytes[MT_TIE_NONE];
    char size[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    bool listed = false;

    if (!reporter->report->has_stacks) {
        if (device->frameless_peak_bytes < device->allocated_peak.bytes)
            return; /* blocks of a snapshot may have stacks although its entries have none */
        mt_reporter_line(
            reporter, 2,
            reporter->report->is_plain
                ? "no stacks were recorded, so call sites are unknown; 'memtrace record' "
                  "records stacks unless --stacks none is given"
            : reporter->report->symbols->stack_count
                ? "stacks were recorded only for driver allocations: the call sites of "
                  "the framework's blocks are unknown"
                : "no stacks were recorded, so call sites are unknown");
        return;
    }
    if (!frameless)
        return;
    if (reporter->report->names_operations) {
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter,
                               "%s at the peak was allocated outside TensorFlow operations; "
                               "operation names replace stacks here",
                               mt_format_bytes(size, frameless)));
        return;
    }
    mt_buf_printf(&line,
                  "%s at the peak has no Python stack because C++ threads, mostly of the autograd "
                  "engine, allocated it",
                  mt_format_bytes(size, frameless));
    for (int tie = MT_TIE_PARAMETER; tie < MT_TIE_COUNT; tie++) {
        if (!device->tie_peak_bytes[tie] || tie == MT_TIE_BEFORE)
            continue;
        mt_buf_printf(&line, "%s%s %s", listed ? ", " : "; it is attributed by size and phase: ",
                      mt_format_bytes(size, device->tie_peak_bytes[tie]), words[tie]);
        listed = true;
    }
    mt_reporter_line(reporter, 2, line.data ? line.data : "");
    if (nothing) {
        line.length = 0;
        mt_buf_printf(
            &line, "unattributed at the peak: %s (%s)", mt_format_bytes(size, nothing),
            mt_format_percent(share, (double)nothing / (double)device->allocated_peak.bytes));
        mt_reporter_line(reporter, 2, line.data ? line.data : "");
    }
    mt_buf_release(&line);
}

/* Steps and phases that memtrace inferred. */
static void report_found(const struct mt_reporter *reporter)
{
    static const char *const words[] = {[MT_PHASE_STACKS] = "functions and lines in stacks",
                                        [MT_PHASE_THREADS] = "the allocating thread",
                                        [MT_PHASE_PERIOD] = "repeating patterns",
                                        [MT_PHASE_SCOPES] = "the framework's own ranges"};
    _Static_assert(sizeof words / sizeof *words == MT_PHASE_SOURCE_COUNT, "one entry for each");
    const struct mt_report *report = reporter->report;
    uint8_t steps = MT_PHASE_ANNOTATED, parts = MT_PHASE_ANNOTATED;
    struct mt_buf line = {0};

    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];
        uint8_t *source = phase->is_step ? &steps : &parts;

        if (!phase->is_plumbing && phase->source > *source)
            *source = phase->source;
    }
    if (steps)
        mt_buf_printf(&line, "steps %sare inferred from %s", parts == steps ? "and phases " : "",
                      words[steps]);
    if (parts && parts != steps)
        mt_buf_printf(&line, steps ? ", phases from %s" : "phases are inferred from %s",
                      words[parts]);
    if (line.data) {
        mt_buf_add_text(&line, ", because the program did not name them");
        mt_reporter_line(reporter, 2, line.data);
    }
    mt_buf_release(&line);
}

static void report_restores(const struct mt_reporter *reporter)
{
    char text[MT_RESTORE_DOUBT_TEXT];

    for (unsigned i = 0; i < MT_RESTORE_DOUBTS; i++)
        if (mt_restore_doubt(&reporter->device->replay.restores, i, text))
            mt_reporter_line(reporter, 2, text);
}

/* Information that the trace lacks. */
static void report_missing(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    const struct mt_integrity *integrity = &reporter->report->integrity;
    char text[MT_UNITS_TEXT];

    if (device->start.allocated)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter,
                               "the trace starts in the middle of the run: %s was allocated "
                               "before the recorded history; peaks are those since then",
                               mt_format_bytes(text, device->start.allocated)));
    else if (!integrity->events_dropped && /* with dropped events, an import cannot distinguish this
                                              case */
             (device->replay.starts_in_middle || reporter->report->starts_in_middle))
        mt_reporter_line(reporter, 2,
                         "the trace starts in the middle of the run: what came before is unknown");
    if (integrity->events_dropped)
        mt_reporter_line(reporter, 2,
                         mt_reporter_format(reporter,
                                            "events are missing (at least %s): nothing is exact",
                                            mt_format_count(text, integrity->events_dropped)));
    if (integrity->cut)
        mt_reporter_line(reporter, 2, "the file is cut: what came after is unknown");
}

static void report_where_roles_are_from(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    char recorded[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    uint64_t bytes = 0;

    for (int role = 0; role < MT_ROLE_COUNT; role++)
        bytes += device->peak_recorded_role_bytes[role];
    if (!reporter->report->roles_inferred) {
        mt_reporter_line(reporter, 2, "roles are as recorded");
        return;
    }
    if (bytes)
        mt_buf_printf(&line, "the roles of %s at the peak were recorded; other ",
                      mt_format_bytes(recorded, bytes));
    mt_buf_add_text(&line, "roles are inferred from where blocks were allocated and freed");
    mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

static void report_roles_of_the_start(const struct mt_reporter *reporter)
{
    char size[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    if (!reporter->device->peak_start_role_bytes)
        return;
    mt_buf_printf(&line,
                  "%s at the peak was allocated before recording started: its roles are inferred "
                  "from sizes and lifetimes",
                  mt_format_bytes(size, reporter->device->peak_start_role_bytes));
    mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

static void report_steps_and_roles(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;

    if (!report->step_count)
        mt_reporter_line(reporter, 2, "no steps were named or inferred");
    report_found(reporter);
    report_where_roles_are_from(reporter);
    report_roles_of_the_start(reporter);
    if (report->roles_inferred && !report->saw_backward && !reporter->device->ooms)
        mt_reporter_line(
            reporter, 2,
            report->has_stacks
                ? "no backward pass was seen: roles may be wrong, call sites are reliable"
                : "no backward pass was seen: roles may be wrong");
}

/* Appends how far to trust the numbers of reporter->device. */
static void reporter_trust(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;

    mt_reporter_heading(reporter, "How far to trust this");
    if (report->is_driver_level && !report->what_if)
        report_driver_level(reporter);
    else if (reporter->device->replay.is_taken_over)
        report_taken_over(reporter);
    else
        report_exactness(reporter);
    report_restores(reporter);
    report_missing(reporter);
    if (!report->has_segments && !report->is_driver_level)
        mt_reporter_line(
            reporter, 2,
            "segments were not recorded: only the blocks of reserved memory are known");
    if (!report->is_plain && !mt_lacks_requests(reporter->device))
        report_steps_and_roles(reporter);
    report_frameless(reporter);
}

enum { MAX_CHART_COLUMNS = 160, CHART_ROWS = 8 };

static void report_chart(const struct mt_reporter *reporter)
{
    const struct mt_style *style = reporter->style;
    struct mt_text_chart chart = {.rows = CHART_ROWS,
                                  .allocated = style->cyan,
                                  .reserved = style->dim,
                                  .mark = style->yellow,
                                  .reset = style->reset};

    if (!reporter->chart || !reporter->device->timeline)
        return;
    chart.columns = (unsigned)mt_min_u64(reporter->chart->columns, MAX_CHART_COLUMNS);
    chart.unicode = reporter->chart->unicode;
    mt_reporter_heading(reporter, "Memory over time");
    mt_text_chart_add(reporter->out, reporter->report, reporter->device, &chart);
}

static void report_device(const struct mt_reporter *reporter)
{
    if (reporter->report->device_count > 1)
        mt_reporter_device_title(reporter);
    mt_reporter_answer(reporter);
    if (mt_lacks_requests(
            reporter->device)) { /* everything else describes the regions of an arena */
        mt_reporter_driver(reporter);
        reporter_trust(reporter);
        return;
    }
    mt_reporter_findings(reporter);
    report_chart(reporter);
    mt_reporter_ooms(reporter);
    mt_reporter_explanations(reporter);
    mt_reporter_phases(reporter);
    mt_reporter_idle(reporter);
    mt_reporter_sites(reporter);
    mt_reporter_peak_modules(reporter);
    mt_reporter_arenas(reporter);
    mt_reporter_pools(reporter);
    mt_reporter_device_parts(reporter);
    mt_reporter_driver(reporter);
    reporter_trust(reporter);
}

static const char *why_empty(const struct mt_report *report)
{
    const struct mt_integrity *integrity = &report->integrity;

    if (integrity->frames_damaged)
        return "No memory events can be read: the file is damaged.\n";
    if (integrity->cut)
        return "No memory events can be read: the file is cut.\n";
    if (report->devices_not_followed)
        return "No device is analyzed: the trace has too many phases.\n";
    if (report->devices_left_out)
        return "No memory events of devices 0 to 63, which are the ones that are analyzed.\n";
    if (report->not_recorded)
        return "No memory events were recorded.\n";
    return "No memory events: nothing was allocated on any device while the trace was recorded.\n";
}

static void report_not_recorded(const struct mt_reporter *reporter)
{
    const char *at = reporter->report->not_recorded;

    while (at && *at) {
        const size_t length = strcspn(at, "\n");

        mt_buf_add_text(reporter->out, "not recorded: ");
        mt_buf_add_printable(reporter->out, at, length);
        mt_buf_add_char(reporter->out, '\n');
        at += length + (at[length] != '\0');
    }
}

/* Appends the reasons and tables for all devices. */
static void report_everything(const struct mt_reporter *shared)
{
    const struct mt_report *report = shared->report;
    struct mt_reporter reporter = *shared;

    if (report->device_count > 1)
        mt_reporter_devices_together(&reporter);
    for (uint32_t i = 0; i < report->device_count; i++) {
        reporter.device = &report->devices[i];
        report_device(&reporter);
    }
    mt_reporter_other_devices(&reporter);
}

/* The last line of the first screen. */
static const char more[] = "(--all: why, steps, phases, tables; -o DIR: pictures and a page)\n";

void mt_analyze_text(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_style *style, const struct mt_screen *chart, bool all)
{
    struct mt_arena arena = {0};
    struct mt_reporter reporter = {
        .out = out, .report = report, .style = style, .chart = chart, .arena = &arena};

    if (!report->device_count) {
        mt_buf_add_text(out, why_empty(report));
        report_not_recorded(&reporter);
        mt_reporter_run(&reporter);
        mt_reporter_other_devices(&reporter);
    } else {
        mt_reporter_first_screen(&reporter, MT_ANALYZE_LINES - 1);
        if (all)
            report_everything(&reporter);
        else
            mt_buf_add_text(out, more);
    }
    mt_arena_release(&arena);
}
