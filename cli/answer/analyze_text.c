/* The text of `memtrace analyze`: the answer, its reasons, tables, and how far to trust it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze_output.h"
#include "report_query.h"
#include "text_chart.h"
#include "util.h"

#define MAX_CHART_COLUMNS 160u

static void report_chart(const struct mt_reporter *reporter)
{
    const struct mt_style *style = reporter->style;
    struct mt_text_chart chart = {.rows = reporter->detail->chart_rows,
                                  .allocated = style->cyan,
                                  .reserved = style->dim,
                                  .mark = style->yellow,
                                  .reset = style->reset};

    if (!reporter->chart || !chart.rows || !reporter->device->timeline)
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
        mt_reporter_trust(reporter);
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
    if (reporter->detail->whole || !reporter->device->device_parts) /* the parts replace it */
        mt_reporter_driver(reporter);
    mt_reporter_trust(reporter);
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
    return "No memory events: nothing was allocated on any device while the trace was recorded.\n";
}

/* A report for all devices, the chosen devices, or only the worst. */
static void report_files_written(const struct mt_reporter *shared,
                                 const struct mt_device_choice *choice)
{
    const bool whole = shared->detail->whole;
    const uint32_t count = whole ? shared->report->device_count : choice->count;
    struct mt_reporter reporter = *shared;

    if (shared->detail->worst_device && count) {
        reporter.device = mt_worst_device(shared->report);
        report_device(&reporter);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        reporter.device = whole ? &shared->report->devices[i] : choice->devices[i];
        report_device(&reporter);
    }
}

/* Appends the whole text within the limits of reporter->detail. Ignores reporter->device. */
static void report_everything(const struct mt_reporter *shared)
{
    const struct mt_report *report = shared->report;
    const struct mt_device_choice choice = mt_devices_in_order(report);
    struct mt_reporter reporter = *shared;

    mt_reporter_dry_run(&reporter);
    if (report->device_count == 0) {
        mt_buf_add_text(reporter.out, why_empty(report));
        mt_reporter_run(&reporter);
    }
    if (report->device_count > 1) {
        mt_reporter_worst_device(&reporter);
        mt_reporter_run(&reporter);
        mt_reporter_devices_together(&reporter, &choice);
    }
    report_files_written(&reporter, &choice);
    if (report->device_count == 1)
        mt_reporter_devices_left_out(&reporter);
    mt_reporter_other_devices(&reporter);
}

/* Chooses how much of a report is printed: everything if it is short, otherwise less of the least
 * important parts. */

#define ALL UINT32_MAX

const struct mt_detail mt_detail_all = {ALL, ALL, 12, ALL, ALL, 3, ALL, 3, 8, true, false, true};

/* From most to least detail. */
static const struct mt_detail details[] = {
    {ALL, ALL, 12, ALL, ALL, 3, 5, 3, 8, true, false, false},
    {6, 3, 10, 12, 8, 1, 5, 3, 8, true, false, false},
    {4, 3, 8, 8, 8, 1, 5, 3, 6, true, false, false},
    {3, 2, 8, 8, 6, 1, 4, 3, 6, true, false, false},
    {3, 2, 6, 6, 6, 0, 4, 3, 6, true, false, false},
    {3, 1, 8, 6, 6, 0, 3, 3, 6, true, false, false},
    {3, 0, 8, 6, 6, 0, 3, 3, 6, true, false, false},
    {3, 0, 6, 5, 5, 0, 3, 3, 6, true, false, false},
    {2, 0, 4, 4, 4, 0, 3, 3, 6, true, false, false},
    {1, 0, 3, 3, 4, 0, 3, 3, 4, true, false, false},
    {1, 0, 4, 0, 4, 0, 3, 3, 5, true, false, false},
    {1, 0, 0, 0, 4, 0, 3, 3, 4, true, false, false},
    {0, 0, 0, 0, 4, 0, 3, 3, 3, true, false, false},
    {0, 0, 0, 0, 4, 0, 2, 3, 3, true, false, false},
    {0, 0, 0, 0, 2, 0, 2, 3, 3, true, false, false},
    {0, 0, 0, 0, 0, 0, 2, 3, 3, true, false, false},
    {0, 0, 0, 0, 0, 0, 2, 1, 3, true, false, false},
    {0, 0, 0, 0, 0, 0, 1, 1, 3, false, false, false},
    {0, 0, 0, 0, 0, 0, 1, 1, 2, false, false, false},
    {0, 0, 0, 0, 0, 0, 1, 0, 2, false, false, false},
    {0, 0, 0, 0, 0, 0, 1, 0, 0, false, false, false},
};

static size_t count_lines(const struct mt_buf *out)
{
    size_t count = 0;

    for (size_t i = 0; i < out->length; i++)
        count += out->data[i] == '\n';
    return count;
}

/* Prints at this level of detail. Returns true if the text and the `more` lines that follow it
 * fit. */
static bool report_at(const struct mt_reporter *shared, struct mt_buf *text,
                      const struct mt_detail *detail, size_t more)
{
    struct mt_arena arena = {0};
    struct mt_reporter reporter = *shared;
    size_t lines;

    reporter.out = text;
    reporter.arena = &arena;
    reporter.detail = detail;
    mt_buf_reset(text);
    report_everything(&reporter);
    mt_arena_release(&arena);
    lines = count_lines(text);
    return lines + more <= MT_ANALYZE_LINES;
}

/* Prints with as much detail as fits, or with the least detail if nothing fits. */
static bool report_most(const struct mt_reporter *reporter, struct mt_buf *text, bool worst_device)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(details); i++) {
        struct mt_detail detail = details[i];

        detail.worst_device = worst_device;
        if (report_at(reporter, text, &detail, 1))
            return true;
    }
    return false;
}

void mt_analyze_text(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_style *style, const struct mt_screen *chart, bool all)
{
    const struct mt_reporter reporter = {.report = report, .style = style, .chart = chart};
    struct mt_buf text = {0};

    if (!report_at(&reporter, &text, &mt_detail_all, 0) && !all) {
        if (!report_most(&reporter, &text, false))
            (void)report_most(&reporter, &text, true);
        mt_buf_add_text(&text, "(abridged: --all has the rest)\n");
    }
    mt_buf_add(out, text.data ? text.data : "", text.length);
    mt_buf_release(&text);
}
