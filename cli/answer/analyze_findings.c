/* Findings: changes that are worth making, as text and as JSON. */
#include "analyze_output.h"

#include <string.h>

#include "json_list.h"

static void report_finding(const struct mt_reporter *reporter, const struct mt_finding *finding)
{
    mt_reporter_line(reporter, 2, finding->title);
    mt_reporter_line(reporter, 4, mt_reporter_format(reporter, "Try: %s", finding->advice));
    if (finding->cost && reporter->detail->findings > 1)
        mt_reporter_line(reporter, 4, mt_reporter_format(reporter, "Cost: %s", finding->cost));
    if (!finding->proved_by)
        return;
    mt_buf_add_text(reporter->out, "    Check: "); /* one line, so that it can be copied */
    mt_buf_add_printable(reporter->out, finding->proved_by, strlen(finding->proved_by));
    mt_buf_add_char(reporter->out, '\n');
}

/* With several devices, prints it only with full detail or for the worst device alone, because the
 * tables of all devices need the space. */
static void report_no_finding(const struct mt_reporter *reporter)
{
    bool has_room = reporter->report->device_count == 1 || reporter->detail->whole ||
                    reporter->detail->worst_device;

    if (!reporter->device->no_finding || !reporter->detail->findings || !has_room)
        return;
    mt_buf_add_char(reporter->out, '\n');
    mt_reporter_line(
        reporter, 0,
        mt_reporter_format(reporter, "Nothing stands out: %s", reporter->device->no_finding));
}

void mt_report_findings(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;
    uint32_t most = reporter->detail->findings;

    if (!device->finding_count) {
        report_no_finding(reporter);
        return;
    }
    mt_reporter_heading(reporter, "What to change");
    for (uint32_t i = 0; i < device->finding_count && i < most; i++)
        report_finding(reporter, &device->findings[i]);
    if (device->finding_count > most)
        mt_reporter_line(
            reporter, 2,
            mt_reporter_format(reporter, "%u more: --all", device->finding_count - most));
}

void mt_json_findings(struct mt_json *json, const struct mt_device_report *device)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "findings");
    for (uint32_t i = 0; i < device->finding_count; i++) {
        const struct mt_finding *finding = &device->findings[i];

        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "id", finding->id);
        mt_json_text(json, "severity", finding->severity);
        mt_json_u64(json, "bytes", finding->bytes);
        mt_json_u64(json, "bytes_per_step", finding->bytes_per_step);
        mt_json_text(json, "title", finding->title);
        mt_json_array_begin(json, "evidence");
        for (uint32_t j = 0; j < finding->evidence_count; j++)
            mt_json_text(json, NULL, finding->evidence[j]);
        mt_json_list_end(&list);
        mt_json_text(json, "advice", finding->advice);
        mt_json_text(json, "cost", finding->cost);
        mt_json_u64_or_null(json, "saved_need_bytes", finding->has_saving,
                            finding->saved_need_bytes);
        mt_json_text(json, "proved_by", finding->proved_by);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}
