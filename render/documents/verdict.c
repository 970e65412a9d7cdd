#include "verdict.h"

#include "baseline.h"
#include "report_query.h"
#include "units.h"

/* Appends "needs 8.06 GiB; reserved peak 15.4 GiB, allocated peak 7.47 GiB". */
static void add_needs(struct mt_buf *out, const struct mt_report *report,
                      const struct mt_device_report *device)
{
    char need[MT_NEED_TEXT], reserved[MT_UNITS_TEXT], allocated[MT_UNITS_TEXT];

    if (mt_lacks_requests(device)) {
        mt_buf_add_text(out, "requests to XLA's arena are missing: record with --xla-requests");
        return;
    }
    if (device->need)
        mt_buf_printf(out, "needs %s%s; ", mt_peaks_doubt(report, device) ? "at least " : "",
                      mt_need_text(need, device->need));
    if (mt_has_allocator(report))
        mt_buf_printf(out, "reserved peak %s, ",
                      mt_format_bytes(reserved, device->reserved_peak.bytes));
    mt_buf_printf(out, "allocated peak %s",
                  mt_format_bytes(allocated, device->allocated_peak.bytes));
}

/* Appends "no history, a single instant: 520 MiB allocated of 5.18 GiB reserved". */
static void add_one_instant(struct mt_buf *out, const struct mt_bytes *end)
{
    char allocated[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT];

    mt_buf_printf(out, "no history, a single instant: %s allocated of %s reserved",
                  mt_format_bytes(allocated, end->allocated),
                  mt_format_bytes(reserved, end->reserved));
}

static void add_gates(struct mt_buf *out, const struct mt_gates *gates)
{
    static const char *const words[] = {"pass", "pass, with a warning", "FAIL", "NOT EVALUATED"};

    mt_buf_printf(out, "%s: ", words[gates->verdict]);
    if (gates->verdict == MT_GATE_PASS)
        mt_buf_printf(out, "%zu of %zu rules hold", gates->states[MT_GATE_PASS], gates->count);
    else
        mt_buf_add_text(out, gates->results[0].verdict);
}

void mt_add_verdict(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_gates *gates)
{
    const struct mt_device_report *device = mt_worst_device(report);
    const struct mt_oom *oom = device ? mt_fatal_oom(device) : NULL;
    char text[MT_UNITS_TEXT];

    if (gates && gates->count) {
        add_gates(out, gates);
        return;
    }
    if (!device) {
        mt_buf_add_text(out, "no memory events");
        return;
    }
    if (report->device_count > 1)
        mt_buf_printf(out, "device %u: ", device->device);
    if (report->integrity.events_dropped)
        mt_buf_add_text(out, "events are missing, no number is exact; ");
    if (report->starts_in_middle && device->start.allocated && !mt_is_one_instant(report, device))
        mt_buf_add_text(out, "the beginning of the run is missing; ");
    if (oom)
        mt_buf_printf(out, "out of memory: a request for %s failed; ",
                      mt_format_bytes(text, oom->request_bytes));
    if (mt_is_one_instant(report, device))
        add_one_instant(out, &device->end);
    else
        add_needs(out, report, device);
}
