/* Findings: changes that are worth making, as text and as JSON. */
#include "analyze_output.h"

#include <string.h>

#include "json_list.h"

static void tell_finding(const struct mt_teller *teller, const struct mt_finding *finding)
{
    mt_tell_line(teller, 2, finding->title);
    mt_tell_line(teller, 4, mt_tell_format(teller, "Try: %s", finding->advice));
    if (finding->cost && teller->detail->findings > 1)
        mt_tell_line(teller, 4, mt_tell_format(teller, "Cost: %s", finding->cost));
    if (!finding->proved_by)
        return;
    mt_buf_add_text(teller->out, "    Check: "); /* one line, so that it can be copied */
    mt_buf_add_printable(teller->out, finding->proved_by, strlen(finding->proved_by));
    mt_buf_add_char(teller->out, '\n');
}

/* With several devices, prints it only with full detail or for the worst device alone, because the
 * tables of all devices need the space. */
static void tell_no_finding(const struct mt_teller *teller)
{
    bool has_room =
        teller->report->device_count == 1 || teller->detail->whole || teller->detail->worst_device;

    if (!teller->device->no_finding || !teller->detail->findings || !has_room)
        return;
    mt_buf_add_char(teller->out, '\n');
    mt_tell_line(teller, 0,
                 mt_tell_format(teller, "Nothing stands out: %s", teller->device->no_finding));
}

void mt_tell_findings(const struct mt_teller *teller)
{
    const struct mt_device_report *device = teller->device;
    uint32_t most = teller->detail->findings;

    if (!device->finding_count) {
        tell_no_finding(teller);
        return;
    }
    mt_tell_heading(teller, "What to change");
    for (uint32_t i = 0; i < device->finding_count && i < most; i++)
        tell_finding(teller, &device->findings[i]);
    if (device->finding_count > most)
        mt_tell_line(teller, 2,
                     mt_tell_format(teller, "%u more: --all", device->finding_count - most));
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
