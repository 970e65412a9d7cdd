#include "sweep_measure.h"

#include <stdio.h>

#include "analyze_output.h"
#include "card_overhead.h"
#include "dry_run_answer.h"
#include "report_query.h"
#include "site.h"
#include "util.h"

/* Returns the device that determines the measurements: the one that ran out of memory, otherwise
 * the one that needs the most, otherwise the one with the largest reserved peak. Needs are known
 * only for a run that finished. */
static const struct mt_device_report *worst_device(const struct mt_report *report,
                                                   bool has_finished)
{
    const struct mt_device_report *worst = mt_worst_device(report);

    for (uint32_t i = 0; has_finished && worst && i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];

        if (device->need && worst->need && device->need->bytes > worst->need->bytes)
            worst = device;
    }
    return worst;
}

static void fill_need(struct mt_sweep_result *result, const struct mt_report *report,
                      const struct mt_device_report *device)
{
    const struct mt_card_overhead overhead = mt_card_overhead_of(report, device);
    const struct mt_need *need = device->need;

    result->has_need = need;
    if (!need)
        return;
    result->need_bytes = need->bytes;
    result->in_all_bytes = mt_add_most_u64(need->bytes, overhead.most_bytes);
    result->in_all_is_known = overhead.is_known;
    result->fit_bytes = mt_card_overhead_fit_bytes(&overhead, need->bytes);
}

/* Fills the place in the program where memory ran out. The phase is known even without a stack. */
static void fill_place(struct mt_sweep_result *result, const struct mt_report *report,
                       const struct mt_oom *oom)
{
    struct mt_arena arena = {0};
    struct mt_buf unused = {0};
    const struct mt_reporter reporter = {.out = &unused, .report = report, .arena = &arena};
    const char *site =
        oom->stack == MT_NO_ID ? "" : mt_site_label(&arena, report->symbols, oom->stack, false);

    snprintf(result->oom_site, sizeof result->oom_site, "%s", site);
    snprintf(result->oom_phase, sizeof result->oom_phase, "%s",
             mt_reporter_where(&reporter, oom->phase, oom->step));
    mt_buf_release(&unused);
    mt_arena_release(&arena);
}

static void fill_oom(struct mt_sweep_result *result, const struct mt_report *report)
{
    const struct mt_oom *oom = NULL;

    for (uint32_t i = 0; !oom && i < report->device_count; i++)
        oom = mt_fatal_oom(&report->devices[i]);
    if (!oom)
        return;
    result->oom_request_bytes = oom->request_bytes;
    fill_place(result, report, oom);
}

void mt_sweep_measure(struct mt_sweep_result *result, const struct mt_report *report)
{
    const struct mt_device_report *device =
        worst_device(report, result->outcome == MT_SWEEP_FINISHED);

    if (result->outcome == MT_SWEEP_FAILED && mt_dry_run_ran_out(report)) {
        result->outcome = MT_SWEEP_OUT_OF_MEMORY;
        fill_oom(result, report);
    }
    if (!device)
        return;
    result->is_measured = true;
    result->device = device->device;
    result->allocated_peak_bytes = device->allocated_peak.bytes;
    result->reserved_peak_bytes = device->reserved_peak.bytes;
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        result->role_bytes[role] = device->peak_role_bytes[role];
    if (result->outcome == MT_SWEEP_FINISHED)
        fill_need(result, report, device);
}
