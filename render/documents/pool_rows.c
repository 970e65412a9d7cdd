#include "pool_rows.h"

#include "units.h"

static const char *name_of(struct mt_table *table, const struct mt_pool_use *pool)
{
    if (pool->is_inferred)
        return "private, inferred";
    if (!pool->id[0] && !pool->id[1])
        return "default";
    return mt_arena_printf(&table->texts, "(%llu, %llu)", (unsigned long long)pool->id[0],
                           (unsigned long long)pool->id[1]);
}

/* Adds a row that sums pools. Peaks have no sum, because the peaks of pools are at different
 * instants. */
static void add_rest(struct mt_table *table, const struct mt_device_report *device, uint32_t from)
{
    struct mt_pool_use rest = {0};
    char count[MT_UNITS_TEXT];

    for (uint32_t i = from; i < device->pool_count; i++) {
        rest.reserved_bytes += device->pools[i].reserved_bytes;
        rest.allocated_bytes += device->pools[i].allocated_bytes;
        rest.segments += device->pools[i].segments;
    }
    mt_format_count(count, device->pool_count - from);
    MT_CELLS(table, MT_TEXT(mt_arena_printf(&table->texts, "%s more", count)),
             MT_BYTES(rest.reserved_bytes), MT_TEXT(""), MT_BYTES(rest.allocated_bytes),
             MT_TEXT(""), MT_COUNT(rest.segments), MT_TEXT(""));
}

void mt_add_pool_rows(struct mt_table *table, const struct mt_device_report *device, uint32_t most)
{
    uint32_t i;

    for (i = 0; i < device->pool_count && i < most; i++) {
        const struct mt_pool_use *pool = &device->pools[i];

        MT_CELLS(table, MT_TEXT(name_of(table, pool)), MT_BYTES(pool->reserved_bytes),
                 MT_BYTES(pool->reserved_peak_bytes), MT_BYTES(pool->allocated_bytes),
                 MT_BYTES(pool->allocated_peak_bytes), MT_COUNT(pool->segments),
                 MT_SITE(pool->site ? pool->site : ""));
    }
    if (i < device->pool_count)
        add_rest(table, device, i);
}
