#include "verdict.h"

#include "units.h"

/* The request that a run died of; NULL = none did. */
static const struct mt_oom *fatal_oom(const struct mt_report *report)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        for (uint32_t j = 0; j < report->devices[i].oom_count; j++)
            if (report->devices[i].oom_list[j].fatal)
                return &report->devices[i].oom_list[j];
    return NULL;
}

void mt_add_verdict(struct mt_buf *out, const struct mt_report *report,
                    const struct mt_gates *gates)
{
    static const char *const words[] = {"pass", "pass, with a warning", "FAIL", "NOT EVALUATED"};
    const struct mt_oom *oom = fatal_oom(report);
    char text[MT_UNITS_TEXT];

    if (oom && !(gates && gates->count))
        mt_buf_printf(out, "out of memory when %s were wanted; ",
                      mt_format_bytes(text, oom->request_bytes));
    if (gates && gates->count) {
        mt_buf_printf(out, "%s: ", words[gates->verdict]);
        if (gates->verdict == MT_GATE_PASS)
            mt_buf_printf(out, "%zu of %zu rules hold", gates->states[MT_GATE_PASS], gates->count);
        else
            mt_buf_add_text(out, gates->results[0].verdict);
    } else if (report->device_count) {
        mt_buf_printf(out, "peak %s allocated",
                      mt_format_bytes(text, report->devices[0].allocated_peak.bytes));
    } else {
        mt_buf_add_text(out, "no memory events");
    }
}
