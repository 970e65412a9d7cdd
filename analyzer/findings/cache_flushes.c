/* Requests that the device refused until the cache was flushed: PyTorch gives back all
 * it has cached and asks again. Each waits for the device. A flush before a request
 * that failed all the same is not counted: that one has other troubles. */
#include "finding.h"

#include "report_query.h"
#include "units.h"

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t flushes = device->retries - device->ooms;
    const char *evidence[2];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cache-flushes",
        .severity = "warning",
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "need less, or raise the limit; a smaller batch, expandable segments or "
                  "garbage_collection_threshold keep from flushing (memtrace tune)"};

    if (device->retries <= device->ooms || search->analysis->report->what_if)
        return MT_OK;
    finding.title =
        mt_arena_printf(arena,
                        "%s time%s the cache was flushed to serve a request: each waits for the "
                        "device",
                        mt_format_count(n[0], flushes), flushes == 1 ? "" : "s");
    evidence[0] = mt_arena_printf(arena, "of %s reserved at the peak, %s were allocated",
                                  mt_format_bytes(n[0], device->reserved_peak.bytes),
                                  mt_format_bytes(n[1], device->reserved_peak.then.allocated));
    if (mt_limit_is_known(&device->replay)) {
        evidence[1] = mt_arena_printf(arena, "the limit was %s",
                                      mt_format_bytes(n[0], device->replay.limit_bytes));
        finding.evidence_count = 2;
    }
    return mt_finding_say(search, &finding);
}

const struct mt_finding_ops mt_finding_cache_flushes = {.find = find};
