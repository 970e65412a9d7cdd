/* The text of `memtrace analyze`: the answer, then why, then tables, then how
 * far to trust it. */
#include "analyze_output.h"
#include "device_choice.h"
#include "report_query.h"
#include "text_chart.h"
#include "text_table.h"
#include "units.h"
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
    if (mt_lacks_requests(teller->device)) { /* all else is about the regions of an arena */
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
    if (teller->detail->whole || !teller->device->device_parts) /* replaced by the parts */
        mt_tell_driver(teller);
    mt_tell_trust(teller);
}

/* Of all devices, or of those that are shown. */
static uint32_t device_count(const struct mt_teller *teller, const struct mt_device_choice *choice)
{
    return teller->detail->whole ? teller->report->device_count : choice->count;
}

static const struct mt_device_report *device_at(const struct mt_teller *teller,
                                                const struct mt_device_choice *choice, uint32_t i)
{
    return teller->detail->whole ? &teller->report->devices[i] : choice->devices[i];
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
    struct mt_table table;
    char text[MT_UNITS_TEXT];

    mt_table_begin(&table,
                   "device|#peak allocated|#peak reserved|#unused then|#allocated at the end|~in");
    for (uint32_t i = 0; i < device_count(teller, choice); i++) {
        const struct mt_device_report *device = device_at(teller, choice, i);

        MT_CELLS(&table, MT_COUNT(device->device), MT_BYTES(device->allocated_peak.bytes),
                 MT_BYTES(device->reserved_peak.bytes),
                 MT_TEXT(mt_format_percent(text, device->fragmentation_at_reserved_peak)),
                 MT_BYTES(device->end.allocated),
                 MT_TEXT(mt_tell_where(teller, device->allocated_peak.phase,
                                       device->allocated_peak.step)));
    }
    mt_add_text_table(teller->out, &table, 2, teller->style);
    tell_left_out(teller);
    if (choice->omitted && !teller->detail->whole)
        mt_tell_line(teller, 2,
                     mt_tell_format(teller,
                                    "%u of %u devices are shown: %s; --all shows all of them",
                                    choice->count, teller->report->device_count,
                                    mt_device_choice_text(teller->report)));
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
