#include "fill_pools.h"

#include <stdlib.h>

#include "util.h"

static bool has_private(const struct mt_pool_ledger *ledger)
{
    for (uint32_t pool = 1; pool < ledger->row_count; pool++)
        if (ledger->rows[pool].is_used)
            return true;
    return false;
}

/* If the trace lacks the free of a block, the block leaves the replay when another one takes its
 * place, and no event names its pool: the rows of such a trace are too large. */
static bool is_whole(const struct mt_pool_ledger *ledger, const struct mt_device_report *device)
{
    uint64_t allocated_bytes = 0;

    for (uint32_t pool = 0; pool < ledger->row_count; pool++)
        allocated_bytes = mt_add_most_u64(allocated_bytes, ledger->rows[pool].allocated.now);
    return allocated_bytes == device->end.allocated;
}

static struct mt_pool_use use_of(struct mt_analysis *analysis, const struct mt_pool_ledger *ledger,
                                 uint32_t pool)
{
    const struct mt_symbols *symbols = &analysis->source->symbols;
    const struct mt_pool_row *row = &ledger->rows[pool];
    struct mt_pool_use use = {.is_inferred = pool >= symbols->pool_count,
                              .reserved_bytes = row->reserved.now,
                              .allocated_bytes = row->allocated.now,
                              .reserved_peak_bytes = row->reserved.peak,
                              .allocated_peak_bytes = row->allocated.peak,
                              .segments = row->segments,
                              .allocations = row->allocations,
                              .first_event = row->first_event,
                              .first_t_ns = row->first_t_ns};

    for (int i = 0; i < 2 && !use.is_inferred; i++)
        use.id[i] = symbols->pools[pool].id[i];
    if (row->first_stack != MT_NO_ID)
        use.site = mt_site_text(&analysis->report->arena, symbols,
                                mt_site_table_at(&analysis->attribution.sites, row->first_stack));
    return use;
}

static int by_first_block(const void *a, const void *b)
{
    const struct mt_pool_use *x = a, *y = b;

    return (x->first_event > y->first_event) - (x->first_event < y->first_event);
}

void mt_fill_pools(struct mt_analysis *analysis, struct mt_device_report *out, uint32_t slot)
{
    const struct mt_pool_ledger *ledger = &analysis->survey.devices[slot].pools;
    const struct mt_report *report = analysis->report;

    if (report->is_driver_level || !report->has_segments || report->what_if ||
        !has_private(ledger) || !is_whole(ledger, out))
        return;
    out->pools = mt_arena_array(&analysis->report->arena, ledger->row_count, sizeof *out->pools);
    for (uint32_t pool = 0; pool < ledger->row_count; pool++)
        if (ledger->rows[pool].is_used)
            out->pools[out->pool_count++] = use_of(analysis, ledger, pool);
    if (out->pool_count > 1) {
        uint32_t first = ledger->rows[0].is_used;

        qsort(out->pools + first, out->pool_count - first, sizeof *out->pools, by_first_block);
    }
}
