/* A peak that occurs once: in set-up or in the first two steps, with all later steps well below it
 * and similar. The device must still have room for it. */
#include "finding.h"

#include "report_query.h"
#include "units.h"
#include "util.h"

enum {
    FIRST_STEPS = 2,
    LATER_STEPS = 3, /* minimum number of steps to compare with */
    SWING_PARTS = 4  /* they may differ by this part of the excess */
};

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    uint64_t later = 0, least = UINT64_MAX, excess;
    bool in_setup;
    uint32_t i;
    const char *evidence[1];
    char n[3][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "first-steps",
        .severity = "info",
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "run memtrace live --at peak and look for memory that is gone later: the "
                  "checkpoint that a model was loaded from, a copy in another dtype, a search for "
                  "algorithms (torch.backends.cudnn.benchmark)"};

    if (device->step_count < FIRST_STEPS + LATER_STEPS ||
        search->analysis->report->starts_in_middle || search->analysis->report->is_driver_level)
        return MT_OK;
    for (i = FIRST_STEPS; i < device->step_count; i++) {
        later = mt_max_u64(later, device->steps[i].peak.allocated);
        least = mt_min_u64(least, device->steps[i].peak.allocated);
    }
    if (later >= peak || device->allocated_peak.event >
                             mt_step_begin(search->analysis->report, &device->steps[FIRST_STEPS]))
        return MT_OK;
    excess = peak - later;
    if (!mt_finding_matters(excess, peak) || later - least > excess / SWING_PARTS)
        return MT_OK;
    in_setup =
        device->allocated_peak.event < mt_step_begin(search->analysis->report, &device->steps[0]);
    finding.bytes = excess;
    finding.title = mt_arena_printf(arena, "%s extra is needed only %s: %s, then %s",
                                    mt_format_bytes(n[0], excess),
                                    in_setup ? "before the first step" : "in the first steps",
                                    mt_format_bytes(n[1], peak), mt_format_bytes(n[2], later));
    evidence[0] =
        mt_arena_printf(arena, "the peaks of the %s steps after the second differ by at most %s",
                        mt_format_count(n[0], device->step_count - FIRST_STEPS),
                        mt_format_bytes(n[1], later - least));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_first_steps = {.find = find};
