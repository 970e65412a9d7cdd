/* The part of `memtrace analyze` for XLA and TensorFlow: a notice that requests are missing, or how
 * much the default arena would have held. */
#include "analyze_output.h"
#include "text_table.h"
#include "units.h"

void mt_add_missing_requests(struct mt_buf *out, const struct mt_style *style)
{
    mt_buf_printf(out,
                  "%sRequests to XLA's arena are MISSING%s: record with memtrace record "
                  "--xla-requests\n",
                  style->bold, style->reset);
}

void mt_report_missing_requests(const struct mt_reporter *reporter)
{
    const uint64_t bytes = reporter->device->allocated_peak.bytes;
    char held[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    mt_add_missing_requests(reporter->out, reporter->style);
    mt_reporter_line(
        reporter, 2,
        mt_reporter_format(
            reporter,
            "The arena takes regions from the driver and hands out parts of them. The driver calls "
            "show a peak of %s (%s B), but not how much of it the program used, or for what",
            mt_format_bytes(held, bytes), mt_format_count(exact, bytes)));
}

static bool has_ties(const struct mt_xla_use *xla)
{
    for (uint32_t i = 0; i < xla->arena_count; i++)
        if (xla->arenas[i].address_ties)
            return true;
    return false;
}

void mt_report_arenas(const struct mt_reporter *reporter)
{
    const struct mt_xla_use *xla = reporter->device->xla;
    struct mt_table table;

    if (!xla || xla->requests_missing)
        return;
    mt_reporter_heading(reporter, "In XLA's own arena (bfc, the default)");
    mt_table_begin(&table, "arena|#peak pool|#peak in use|#requests|#refused|~policy");
    for (uint32_t i = 0; i < xla->arena_count; i++) {
        const struct mt_xla_arena *arena = &xla->arenas[i];

        MT_CELLS(&table, MT_TEXT(arena->preallocated ? "preallocated (75%)" : "growing"),
                 MT_BYTES(arena->pool_bytes), MT_BYTES(arena->in_use_bytes),
                 MT_COUNT(arena->requests), MT_COUNT(arena->failures), MT_TEXT(arena->policy));
    }
    mt_add_text_table(reporter->out, &table, 2, reporter->style);
    if (has_ties(xla))
        mt_reporter_line(
            reporter, 2,
            "from replays; approximate, because the addresses of regions decide between "
            "equal free blocks");
}
