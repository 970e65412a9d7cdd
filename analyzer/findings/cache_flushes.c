/* Requests that the device refused until the cache was flushed: PyTorch releases its whole cache
 * and tries again. Each flush waits for the device. A flush before a request that failed anyway is
 * not counted, because that request has another problem. Other settings are replayed under the
 * limit of the run, or under its smallest possible value. */
#include "finding.h"

#include <stdlib.h>

#include "process_memory.h"
#include "report_query.h"
#include "units.h"

struct attempt {
    const struct mt_setting *setting; /* NULL: none has fewer flushes */
    uint64_t flushes;
};

/* Keeps the setting if it serves the run with at most half of the flushes of the best so far. */
static void judge(const struct mt_finding_search *search, const struct mt_setting *setting,
                  const struct mt_replay_summary *summary, struct attempt *best)
{
    for (uint32_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];
        const uint64_t flushes = result->counters.retries;

        if (result->device != search->device->device || result->failed_requests ||
            flushes > best->flushes / 2)
            continue;
        *best = (struct attempt){setting, flushes};
    }
}

static enum mt_status try_settings(struct mt_finding_search *search, struct attempt *best)
{
    const struct mt_replay_result *replay = &search->device->replay;
    struct mt_replay_summary *summary;
    enum mt_status status = MT_OK;

    /* A run that ended out of memory has its own finding (out_of_memory.c). */
    if (!mt_finding_replayable(search) || !mt_limit_is_known(replay) ||
        mt_fatal_oom(search->device))
        return MT_OK;
    summary = mt_memory_zeroed(1, sizeof *summary);
    for (int i = 0; i < MT_SETTING_COUNT && status == MT_OK; i++) {
        if (mt_setting_is_own(search->analysis->report, &mt_settings[i]))
            continue;
        status = mt_finding_replay(search, mt_settings[i].policy, mt_least_limit_bytes(replay),
                                   UINT64_MAX, summary);
        if (status == MT_OK)
            judge(search, &mt_settings[i], summary, best);
    }
    free(summary);
    return status;
}

static void advise(const struct mt_finding_search *search, const struct attempt *best,
                   struct mt_finding *finding)
{
    finding->advice =
        "raise the memory limit, reduce the batch size, or use activation checkpointing";
    if (!best->setting)
        return;
    finding->advice = best->setting->advice;
    finding->proved_by = mt_finding_command(search, best->setting->policy,
                                            mt_least_limit_bytes(&search->device->replay));
}

static const char *title_of(const struct mt_finding_search *search, uint64_t flushes,
                            const struct attempt *best)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *instead = "";
    char n[2][MT_UNITS_TEXT];

    if (best->setting && !best->flushes)
        instead = mt_arena_printf(arena, "; with %s none does", best->setting->what);
    else if (best->setting)
        instead = mt_arena_printf(arena, "; with %s: %s", best->setting->what,
                                  mt_format_count(n[1], best->flushes));
    return instead
               ? mt_arena_printf(
                     arena, "%s request%s needed a cache flush, which synchronizes the device%s",
                     mt_format_count(n[0], flushes), flushes == 1 ? "" : "s", instead)
               : NULL;
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t flushes = device->retries - mt_min_u64(device->ooms, device->retries);
    struct attempt best = {.flushes = flushes};
    const char *evidence[2];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cache-flushes", .severity = "warning", .evidence = evidence, .evidence_count = 1};
    enum mt_status status;

    if (!flushes || search->analysis->report->what_if)
        return MT_OK;
    status = try_settings(search, &best);
    if (status != MT_OK)
        return status;
    advise(search, &best, &finding);
    finding.title = title_of(search, flushes, &best);
    evidence[0] = mt_arena_printf(arena, "%s reserved at the peak, %s of it allocated",
                                  mt_format_bytes(n[0], device->reserved_peak.bytes),
                                  mt_format_bytes(n[1], device->reserved_peak.then.allocated));
    if (mt_limit_is_known(&device->replay)) {
        evidence[1] = mt_replay_limit_text(arena, &device->replay);
        finding.evidence_count = 2;
    }
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_cache_flushes = {.find = find};
