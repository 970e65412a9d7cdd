/* The text of `memtrace analyze`: the answer, its reasons, tables, and how far to trust it. */
#include "analyze_output.h"
#include "report_query.h"
#include "text_chart.h"
#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    mt_add_text_chart(reporter->out, reporter->report, reporter->device, &chart);
}

static void report_device(const struct mt_reporter *reporter)
{
    if (reporter->report->device_count > 1)
        mt_report_device_title(reporter);
    mt_report_answer(reporter);
    if (mt_lacks_requests(
            reporter->device)) { /* everything else describes the regions of an arena */
        mt_report_driver(reporter);
        mt_report_trust(reporter);
        return;
    }
    mt_report_findings(reporter);
    report_chart(reporter);
    mt_report_ooms(reporter);
    mt_report_explanations(reporter);
    mt_report_phases(reporter);
    mt_report_idle(reporter);
    mt_report_sites(reporter);
    mt_report_peak_modules(reporter);
    mt_report_arenas(reporter);
    mt_report_pools(reporter);
    mt_report_device_parts(reporter);
    if (reporter->detail->whole || !reporter->device->device_parts) /* the parts replace it */
        mt_report_driver(reporter);
    mt_report_trust(reporter);
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

void mt_report_everything(const struct mt_reporter *shared)
{
    const struct mt_report *report = shared->report;
    const struct mt_device_choice choice = mt_devices_in_order(report);
    struct mt_reporter reporter = *shared;

    mt_report_dry_run(&reporter);
    if (report->device_count == 0) {
        mt_buf_add_text(reporter.out, why_empty(report));
        mt_report_run(&reporter);
    }
    if (report->device_count > 1) {
        mt_report_worst_device(&reporter);
        mt_report_run(&reporter);
        mt_report_devices_together(&reporter, &choice);
    }
    report_files_written(&reporter, &choice);
    if (report->device_count == 1)
        mt_report_devices_left_out(&reporter);
    mt_report_other_devices(&reporter);
}
