#include "nothing_found.h"

#include "report_query.h"
#include "trend.h"
#include "units.h"
#include "util.h"

enum { MIN_UNKNOWN_SHARE = 20 }; /* of the peak, as a fraction: 5% */

static const char *unused_part(struct mt_arena *arena, const struct mt_report *report,
                               const struct mt_device_report *device)
{
    const struct mt_bytes *then = &device->reserved_peak.then;
    char n[2][MT_UNITS_TEXT];

    if (!report->has_segments)
        return "reserved memory was not recorded";
    return mt_arena_printf(
        arena, "%s%s of the %s reserved %s unused", device->events ? "at most " : "",
        mt_format_bytes(n[0], then->reserved - mt_min_u64(then->allocated, then->reserved)),
        mt_format_bytes(n[1], then->reserved), device->events ? "was" : "is");
}

/* Steps may leave memory behind that is too little for a finding. */
static const char *growth_part(struct mt_arena *arena, const struct mt_report *report,
                               const struct mt_device_report *device)
{
    static const char *const words[] = {
        [MT_GROWTH_JUDGED] = "no growth from step to step was found",
        [MT_GROWTH_NO_STEPS] = "no steps were found, so growth is not judged",
        [MT_GROWTH_FEW_STEPS] = "there are too few steps to judge growth",
        [MT_GROWTH_MANY_BLOCKS] = "too many blocks outlive their step to judge growth"};
    const struct mt_growth *growth = &device->growth;
    char bytes[MT_UNITS_TEXT];

    if (growth->bytes_per_step)
        return mt_arena_printf(arena, "each step leaves %s behind, too little to matter",
                               mt_format_bytes(bytes, growth->bytes_per_step));
    return words[mt_growth_basis(report, device)];
}

static const char *unknown_part(struct mt_arena *arena, const struct mt_device_report *device)
{
    const uint64_t peak = device->allocated_peak.bytes,
                   unknown = device->peak_role_bytes[MT_ROLE_OTHER];
    char share[MT_UNITS_TEXT];

    if (unknown <= peak / MIN_UNKNOWN_SHARE)
        return "";
    return mt_arena_printf(arena, "; the role of %s of the peak is unknown",
                           mt_format_percent(share, (double)unknown / (double)peak));
}

const char *mt_nothing_found(struct mt_arena *arena, const struct mt_report *report,
                             const struct mt_device_report *device)
{
    const char *unused = unused_part(arena, report, device);
    const char *unknown = unknown_part(arena, device);
    const char *growth = growth_part(arena, report, device);

    if (!unused || !unknown || !growth)
        return NULL;
    if (!device->events) /* then refused requests are also unknown */
        return mt_arena_printf(arena, "%s; the snapshot has no history%s", unused, unknown);
    return mt_arena_printf(arena, "%s, no request was refused, and %s%s", unused, growth, unknown);
}
