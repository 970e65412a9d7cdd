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
    chart.columns = (unsigned)mt_min_u64(teller->chart->columns, MAX_CHART_COLUMNS);
    chart.unicode = teller->chart->unicode;
    mt_tell_heading(teller, "Memory over time");
    mt_add_text_chart(teller->out, teller->report, teller->device, &chart);
}

static void tell_device(const struct mt_teller *teller)
{
    if (teller->report->device_count > 1)
        mt_tell_device_title(teller);
    mt_tell_answer(teller);
    if (mt_lacks_requests(teller->device)) { /* everything else describes the regions of an arena */
        mt_tell_driver(teller);
        mt_tell_trust(teller);
        return;
    }
    mt_tell_findings(teller);
    tell_chart(teller);
    mt_tell_ooms(teller);
    mt_tell_explanations(teller);
    mt_tell_phases(teller);
    mt_tell_idle(teller);
    mt_tell_sites(teller);
    mt_tell_peak_modules(teller);
    mt_tell_arenas(teller);
    mt_tell_pools(teller);
    mt_tell_device_parts(teller);
    if (teller->detail->whole || !teller->device->device_parts) /* the parts replace it */
        mt_tell_driver(teller);
    mt_tell_trust(teller);
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
static void tell_reports(const struct mt_teller *shared, const struct mt_device_choice *choice)
{
    const bool whole = shared->detail->whole;
    const uint32_t count = whole ? shared->report->device_count : choice->count;
    struct mt_teller teller = *shared;

    if (shared->detail->worst_device && count) {
        teller.device = mt_worst_device(shared->report);
        tell_device(&teller);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        teller.device = whole ? &shared->report->devices[i] : choice->devices[i];
        tell_device(&teller);
    }
}

void mt_tell_everything(const struct mt_teller *shared)
{
    const struct mt_report *report = shared->report;
    const struct mt_device_choice choice = mt_devices_in_order(report);
    struct mt_teller teller = *shared;

    mt_tell_dry_run(&teller);
    if (report->device_count == 0) {
        mt_buf_add_text(teller.out, why_empty(report));
        mt_tell_run(&teller);
    }
    if (report->device_count > 1) {
        mt_tell_worst_device(&teller);
        mt_tell_run(&teller);
        mt_tell_devices_together(&teller, &choice);
    }
    tell_reports(&teller, &choice);
    if (report->device_count == 1)
        mt_tell_devices_left_out(&teller);
    mt_tell_other_devices(&teller);
}
