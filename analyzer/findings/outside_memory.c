/* Device memory of the process outside of the framework: libraries (NCCL, cuBLAS), other
 * allocators, other code. Known only for recorded traces. */
#include "finding.h"

#include "report_query.h"
#include "units.h"

enum { NAMED_OWNERS = 3 };

static const char *owner_evidence(struct mt_arena *arena, const struct mt_driver_report *driver,
                                  const struct mt_owner_use *owner)
{
    char bytes[MT_UNITS_TEXT];
    const char *name = mt_owner_text(arena, driver, owner);

    return name ? mt_arena_printf(arena, "%s by %s, called from %s",
                                  mt_format_bytes(bytes, owner->bytes), name, owner->site)
                : NULL;
}

/* "; the largest part is 388 MiB of NCCL, communicator 1 of 2"; "" if no library is known. Text
 * output shows only the title of an informational finding. */
static const char *largest_library(struct mt_arena *arena, const struct mt_driver_report *driver)
{
    char bytes[MT_UNITS_TEXT];
    const char *name;

    if (!driver->owner_count || !driver->owners[0].library)
        return "";
    name = mt_owner_text(arena, driver, &driver->owners[0]);
    return name ? mt_arena_printf(arena, "; the largest part is %s by %s",
                                  mt_format_bytes(bytes, driver->owners[0].bytes), name)
                : NULL;
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_driver_report *driver =
        mt_driver_of(search->analysis->report, search->device->device);
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *largest;
    uint64_t bytes;
    uint32_t i;
    const char *evidence[NAMED_OWNERS];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "outside-memory",
        .severity = "info",
        .evidence = evidence,
        .advice = "leave room for it: no limit or counter of the framework includes it"};

    if (!driver || !driver->has_then || driver->then.bytes < driver->then.framework_bytes)
        return MT_OK;
    bytes = driver->then.bytes - driver->then.framework_bytes;
    if (!mt_finding_matters(bytes, driver->then.bytes))
        return MT_OK;
    for (i = 0; i < driver->owner_count && i < NAMED_OWNERS; i++)
        evidence[i] = owner_evidence(arena, driver, &driver->owners[i]);
    finding.evidence_count = i;
    finding.bytes = bytes;
    largest = largest_library(arena, driver);
    finding.title = mt_arena_printf(
        arena,
        "%s is outside the framework at its peak, of %s that the process took from the driver%s",
        mt_format_bytes(n[0], bytes), mt_format_bytes(n[1], driver->then.bytes),
        largest ? largest : "");
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_outside_memory = {.find = find};
