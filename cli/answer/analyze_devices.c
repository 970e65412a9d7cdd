/* The table of several devices, and lines about devices that have no row or no report. */
#include "analyze_output.h"
#include "device_choice.h"
#include "report_query.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

/* Limits for a text with the report of the worst device. More rows would use up its lines. */
enum { MAX_ROWS_BESIDE_REPORT = 8, MAX_NAMED_DEATHS = 8 };

void mt_reporter_devices_left_out(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;
    int not_followed = __builtin_popcountll(report->devices_not_followed);
    char count[MT_UNITS_TEXT];

    if (report->devices_left_out)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter,
                               "devices not analyzed because their numbers are above 63: %s",
                               mt_format_count(count, report->devices_left_out)));
    if (not_followed)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter,
                               "devices not analyzed because the trace has too many phases "
                               "for another device: %d",
                               not_followed));
}

/* "158 MiB to 160 MiB"; "" if the range is unknown or every order gives the same number. */
static const char *other_orders(const struct mt_reporter *reporter,
                                const struct mt_device_report *device)
{
    const struct mt_peak_orders *orders = device->peak_orders;
    char low[MT_UNITS_TEXT], high[MT_UNITS_TEXT];

    if (!orders || orders->reserved_low_bytes == orders->reserved_high_bytes)
        return "";
    mt_format_bytes_distinct(low, orders->reserved_low_bytes, high, orders->reserved_high_bytes);
    return mt_reporter_format(reporter, "%s to %s", low, high);
}

/* True for a dry run whose reserved peak depends on addresses. */
static bool has_other_orders(const struct mt_reporter *reporter)
{
    for (uint32_t i = 0; i < reporter->report->device_count; i++)
        if (*other_orders(reporter, &reporter->report->devices[i]))
            return true;
    return false;
}

static void add_row(const struct mt_reporter *reporter, struct mt_table *table,
                    const struct mt_device_report *device, bool has_orders)
{
    char text[MT_UNITS_TEXT];

    MT_CELLS(table, MT_COUNT(device->device), MT_BYTES(device->allocated_peak.bytes),
             MT_BYTES(device->reserved_peak.bytes));
    if (has_orders)
        MT_CELLS(table, MT_TEXT(other_orders(reporter, device)));
    MT_CELLS(table, MT_TEXT(mt_format_percent(text, device->fragmentation_at_reserved_peak)),
             MT_BYTES(device->end.allocated),
             MT_TEXT(mt_reporter_where(reporter, device->allocated_peak.phase,
                                       device->allocated_peak.step)));
}

/* Lists the other devices that ran out of memory, because the table does not show them. */
static void report_other_deaths(const struct mt_reporter *reporter,
                                const struct mt_device_report *worst)
{
    const struct mt_report *report = reporter->report;
    struct mt_buf numbers = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];

        if (device == worst || !mt_fatal_oom(device))
            continue;
        if (count < MAX_NAMED_DEATHS)
            mt_buf_printf(&numbers, "%s%u", count ? ", " : "", device->device);
        count++;
    }
    if (count && numbers.data)
        mt_reporter_line(reporter, 2,
                         mt_reporter_format(reporter, "%u other device%s ran OUT OF MEMORY: %s%s",
                                            count, count == 1 ? "" : "s", numbers.data,
                                            count > MAX_NAMED_DEATHS ? ", ..." : ""));
    mt_buf_release(&numbers);
}

static void report_worst_alone(const struct mt_reporter *reporter)
{
    const struct mt_device_report *worst = mt_worst_device(reporter->report);

    report_other_deaths(reporter, worst);
    mt_reporter_line(reporter, 2,
                     mt_reporter_format(
                         reporter, "Only device %u is reported below; --all reports all %u devices",
                         worst->device, reporter->report->device_count));
}

/* Number of chosen devices that have a row. */
static uint32_t count_rows(const struct mt_reporter *reporter,
                           const struct mt_device_choice *choice)
{
    if (reporter->detail->whole)
        return reporter->report->device_count;
    if (reporter->detail->worst_device)
        return (uint32_t)mt_min_u64(choice->count, MAX_ROWS_BESIDE_REPORT);
    return choice->count;
}

void mt_reporter_devices_together(const struct mt_reporter *reporter,
                                  const struct mt_device_choice *shown)
{
    const struct mt_report *report = reporter->report;
    const bool is_worst_alone = reporter->detail->worst_device;
    const struct mt_device_choice choice = is_worst_alone ? mt_devices_by_peak(report) : *shown;
    const uint32_t rows = count_rows(reporter, &choice);
    const bool has_orders = has_other_orders(reporter);
    struct mt_table table;

    mt_table_begin(&table, "device|#peak allocated|#peak reserved");
    if (has_orders)
        mt_table_columns(&table, "#at other addresses");
    mt_table_columns(&table, "#unused at peak|#allocated at the end|~in");
    for (uint32_t i = 0; i < rows; i++)
        add_row(reporter, &table, reporter->detail->whole ? &report->devices[i] : choice.devices[i],
                has_orders);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
    mt_reporter_devices_left_out(reporter);
    if (rows < report->device_count)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter, "%u of %u devices are shown: %s; --all shows all of them",
                               rows, report->device_count, mt_device_choice_text(report)));
    if (is_worst_alone)
        report_worst_alone(reporter);
}
