/* Parts of the text about a run: idle memory, findings, modules, and the parts of the whole device
 * while a model is served, with the largest KV cache that fits. */
#include <string.h>

#include "analyze_output.h"
#include "foreign_text.h"
#include "json.h"
#include "report_query.h"
#include "report_rows.h"
#include "text_table.h"
#include "units.h"

/* The table of several devices, and lines about devices that have no row or no report. */

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

static void analyze_devices_add_row(const struct mt_reporter *reporter, struct mt_table *table,
                                    const struct mt_device_report *device, bool has_orders)
{
    char text[MT_UNITS_TEXT];

    MT_CELLS(table, MT_COUNT(device->device), MT_BYTES(device->allocated_peak.bytes),
             MT_BYTES(device->reserved_peak.bytes));
    if (has_orders)
        MT_CELLS(table, MT_TEXT(other_orders(reporter, device)));
    MT_CELLS(
        table,
        MT_TEXT(mt_format_percent(text, mt_unused_share(&mt_fragmentation_peak(device)->then))),
        MT_BYTES(device->end.allocated),
        MT_TEXT(mt_reporter_where(reporter, device->allocated_peak.phase,
                                  device->allocated_peak.step)));
}

void mt_reporter_devices_together(const struct mt_reporter *reporter)
{
    const struct mt_report *report = reporter->report;
    const bool has_orders = has_other_orders(reporter);
    struct mt_table table;

    mt_table_begin(&table, "device|#peak allocated|#peak reserved");
    if (has_orders)
        mt_table_columns(&table, "#at other addresses");
    mt_table_columns(&table, "#unused at peak|#allocated at the end|~in");
    for (uint32_t i = 0; i < report->device_count; i++)
        analyze_devices_add_row(reporter, &table, &report->devices[i], has_orders);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

/* Memory that stays allocated through each phase, and how much of it the phase does not use. */

enum { NAMED_ROLES = 2 };

/* Idle memory of one phase: the sum of its rows, which are adjacent. */
struct stay {
    int32_t phase;
    uint64_t bytes, movable_bytes;
    const struct mt_idle_use *movable[NAMED_ROLES]; /* the largest roles */
};

static void note_movable(struct stay *stay, const struct mt_idle_use *idle)
{
    int at = NAMED_ROLES - 1;

    if (stay->movable[at] && stay->movable[at]->movable_bytes >= idle->movable_bytes)
        return;
    for (; at > 0 &&
           (!stay->movable[at - 1] || stay->movable[at - 1]->movable_bytes < idle->movable_bytes);
         at--)
        stay->movable[at] = stay->movable[at - 1];
    stay->movable[at] = idle;
}

static struct stay stay_of(const struct mt_device_report *device, uint32_t *at)
{
    struct stay stay = {.phase = device->idle[*at].phase};

    for (; *at < device->idle_count && device->idle[*at].phase == stay.phase; ++*at) {
        const struct mt_idle_use *idle = &device->idle[*at];
        stay.bytes += idle->bytes;
        stay.movable_bytes += idle->movable_bytes;
        if (idle->movable_bytes)
            note_movable(&stay, idle);
    }
    return stay;
}

static const char *roles_of(const struct mt_reporter *reporter, const struct stay *stay)
{
    const struct mt_idle_use *const *movable = stay->movable;

    if (!movable[0])
        return "";
    if (!movable[1])
        return mt_role_name(movable[0]->role);
    return mt_reporter_format(reporter, "%s, %s", mt_role_name(movable[0]->role),
                              mt_role_name(movable[1]->role));
}

static void add_row(const struct mt_reporter *reporter, struct mt_table *table,
                    const struct stay *stay)
{
    const char *where =
        mt_reporter_where(reporter, stay->phase, reporter->report->phases[stay->phase].step);

    MT_CELLS(
        table, MT_TEXT(where), MT_BYTES(reporter->device->phase_uses[stay->phase].peak.allocated),
        MT_BYTES(stay->bytes), stay->movable_bytes ? MT_BYTES(stay->movable_bytes) : MT_TEXT(""),
        MT_TEXT(roles_of(reporter, stay)));
}

void mt_reporter_idle(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    struct mt_table table;
    uint64_t movable_bytes = 0;

    for (uint32_t at = 0; at < device->idle_count; at++)
        movable_bytes += device->idle[at].movable_bytes;
    if (!movable_bytes)
        return;
    mt_reporter_heading(reporter,
                        "Memory idle throughout each phase (the instance with the highest peak)");
    mt_table_begin(&table, "~phase|#peak|#stays allocated|#not used|");
    for (uint32_t at = 0; at < device->idle_count;) {
        struct stay stay = stay_of(device, &at);
        add_row(reporter, &table, &stay);
    }
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

/* Findings: changes that are worth making, as text and as JSON. */

static void report_finding(const struct mt_reporter *reporter, const struct mt_finding *finding)
{
    mt_reporter_line(reporter, 2, finding->title);
    mt_reporter_line(reporter, 4, mt_reporter_format(reporter, "Try: %s", finding->advice));
    if (finding->cost)
        mt_reporter_line(reporter, 4, mt_reporter_format(reporter, "Cost: %s", finding->cost));
    if (!finding->proved_by)
        return;
    mt_buf_add_text(reporter->out, "    Check: "); /* one line, so that it can be copied */
    mt_buf_add_printable(reporter->out, finding->proved_by, strlen(finding->proved_by));
    mt_buf_add_char(reporter->out, '\n');
}

void mt_reporter_findings(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;

    if (!device->finding_count)
        return;
    mt_reporter_heading(reporter, "What to change");
    for (uint32_t i = 0; i < device->finding_count; i++)
        report_finding(reporter, &device->findings[i]);
}

void mt_json_findings(struct mt_json *json, const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_rows(json, "findings", device->finding_count);
         mt_json_next(&row);) {
        const struct mt_finding *finding = &device->findings[row.i];

        mt_json_text(json, "id", finding->id);
        mt_json_text(json, "severity", finding->severity);
        mt_json_u64(json, "bytes", finding->bytes);
        mt_json_u64(json, "bytes_per_step", finding->bytes_per_step);
        mt_json_text(json, "title", finding->title);
        mt_json_array_begin(json, "evidence");
        for (uint32_t j = 0; j < finding->evidence_count; j++)
            mt_json_text(json, NULL, finding->evidence[j]);
        mt_json_array_end(json);
        mt_json_text(json, "advice", finding->advice);
        mt_json_text(json, "cost", finding->cost);
        mt_json_text(json, "saving", mt_saving_name(finding->saving));
        mt_json_u64_or_null(json, "saves_bytes", finding->saving != MT_SAVING_UNKNOWN,
                            finding->saves_bytes);
        mt_json_u64(json, "counted_before_bytes", finding->counted_before_bytes);
        mt_json_text(json, "proved_by", finding->proved_by);
    }
}

/* Memory by module of the model. */

/* Limit for each kind. JSON has the remaining layers of a large model. */
enum { MAX_MODULES = 32 };

/* Limits of the line in the answer. Parts below 1/WORTH_OF_PEAK of the peak are omitted. */
enum { MAX_PARTS = 2, MAX_PART_TEXT = 80, WORTH_OF_PEAK = 20 };

void mt_reporter_modules(const struct mt_reporter *reporter)
{
    const struct mt_modules *modules = reporter->device->modules;
    struct mt_table table;

    for (uint32_t row = 0; row < modules->layer_count;) {
        const char *group = mt_module_group_text(reporter->arena, modules, &row);

        mt_reporter_line(reporter, 2, group);
    }
    mt_table_begin(&table, MT_MODULE_TITLES);
    mt_report_rows_add_modules(&table, modules, MAX_MODULES);
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

void mt_reporter_peak_modules(const struct mt_reporter *reporter)
{
    if (!mt_modules_has_rows(reporter->device->modules))
        return;
    mt_reporter_heading(reporter, "At the allocated peak, by module");
    mt_reporter_modules(reporter);
}

static void add_part(const struct mt_reporter *reporter, struct mt_buf *line,
                     const struct mt_module_part *part)
{
    const double peak = (double)reporter->device->allocated_peak.bytes;
    const char *text = mt_module_part_text(reporter->arena, reporter->device->modules, part);
    char bytes[MT_UNITS_TEXT];
    size_t length = text ? strlen(text) : 0;

    mt_buf_printf(line, "%s (%.0f%%) in ",
                  mt_format_bytes_like(bytes, part->bytes, reporter->device->allocated_peak.bytes),
                  100 * (double)part->bytes / peak);
    mt_buf_add_printable(line, text ? text : "", length > MAX_PART_TEXT ? MAX_PART_TEXT : length);
    mt_buf_add_text(line, length > MAX_PART_TEXT ? "..." : "");
}

void mt_module_line_add(const struct mt_reporter *reporter, struct mt_buf *line)
{
    struct mt_module_part parts[MAX_PARTS];
    uint32_t count = mt_largest_module_parts(reporter->device->modules, parts, MAX_PARTS);
    const uint64_t worth = reporter->device->allocated_peak.bytes / WORTH_OF_PEAK;

    while (count && parts[count - 1].bytes < worth)
        count--;
    for (uint32_t i = 0; i < count; i++) {
        mt_buf_add_text(line, i ? "; " : "");
        add_part(reporter, line, &parts[i]);
    }
}

static void report_parts(const struct mt_reporter *reporter,
                         const struct mt_device_parts *device_parts)
{
    struct mt_table table;

    mt_table_begin(&table, "#bytes|#share|~");
    for (int i = 0; i < MT_DEVICE_PART_COUNT; i++)
        if (device_parts->parts[i] || i == MT_DEVICE_FREE)
            MT_CELLS(&table, MT_BYTES(device_parts->parts[i]),
                     MT_SHARE(device_parts->parts[i], device_parts->total_bytes),
                     MT_TEXT(mt_device_part_name((enum mt_device_part)i)));
    MT_CELLS(&table, MT_BYTES(device_parts->total_bytes),
             MT_SHARE(device_parts->total_bytes, device_parts->total_bytes),
             MT_TEXT("the whole device"));
    mt_text_table_add(reporter->out, &table, 2, reporter->style);
}

static void report_sample(const struct mt_reporter *reporter,
                          const struct mt_device_parts *device_parts)
{
    char count[MT_UNITS_TEXT];

    if (!device_parts->context_is_known)
        return;
    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(
            reporter, "Context and modules: use reported by NVML at %s minus all allocations, %s",
            mt_reporter_when(reporter, device_parts->context_t_ns),
            device_parts->samples == 1
                ? "the only sample"
                : mt_reporter_format(reporter, "the sample nearest the peak (of %s)",
                                     mt_format_count(count, device_parts->samples))));
}

static void report_limit(const struct mt_reporter *reporter,
                         const struct mt_device_parts *device_parts)
{
    uint64_t most = mt_largest_kv_cache(device_parts);
    char bytes[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], spare[MT_UNITS_TEXT];

    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(reporter,
                           "These requests leave room for a KV cache of %s (%s B), %s more "
                           "than it has, if no other process uses the device%s",
                           mt_format_bytes(bytes, most), mt_format_count(exact, most),
                           mt_format_bytes(spare, device_parts->spare_bytes),
                           device_parts->context_is_known
                               ? ""
                               : ", minus what CUDA itself takes, which was not sampled"));
}

void mt_reporter_device_parts(const struct mt_reporter *reporter)
{
    const struct mt_device_parts *device_parts = reporter->device->device_parts;

    if (!device_parts)
        return;
    mt_reporter_heading(reporter, "The whole device at the allocated peak");
    report_parts(reporter, device_parts);
    report_sample(reporter, device_parts);
    if (!device_parts->died)
        report_limit(reporter, device_parts);
}
