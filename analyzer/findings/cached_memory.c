/* A snapshot without a history: the part of the reserved memory that no block uses. It is unknown
 * what the program needed earlier, but known that the memory is idle at that instant. */
#include "finding.h"

#include "units.h"

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_bytes *then = &device->end;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cached-memory",
        .severity = "info",
        .bytes = then->reserved > then->active ? then->reserved - then->active : 0,
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "torch.cuda.empty_cache() releases segments that hold no block; expandable "
                  "segments also release the space between blocks; to see what used the memory "
                  "before, record a history (torch.cuda.memory._record_memory_history)"};

    if (device->events || !search->analysis->report->has_segments ||
        !mt_finding_matters(finding.bytes, then->reserved))
        return MT_OK;
    finding.title = mt_arena_printf(
        arena, "%s of %s reserved was in no block when the snapshot was taken",
        mt_format_bytes(n[0], finding.bytes), mt_format_bytes(n[1], then->reserved));
    evidence[0] =
        mt_arena_printf(arena, "%s was allocated", mt_format_bytes(n[0], then->allocated));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_cached_memory = {.find = find};
