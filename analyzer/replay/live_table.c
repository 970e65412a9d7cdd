#include "live_table.h"

#include <stdlib.h>
#include <string.h>

struct mt_live *mt_live_find(const struct mt_live_table *table, uint64_t addr)
{
    uint32_t slot = mt_map_get(&table->ids, addr);

    return slot == MT_MAP_NONE ? NULL : &table->slots[slot];
}

static enum mt_status take_slot(struct mt_live_table *table, uint32_t *slot)
{
    if (table->unused_count) {
        *slot = table->unused[--table->unused_count];
        return MT_OK;
    }
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : 256;
        struct mt_live *slots;
        if (capacity >= MT_MAP_NONE / 2)
            return MT_ERR_MEMORY;
        slots = realloc(table->slots, capacity * sizeof *slots);
        if (!slots)
            return MT_ERR_MEMORY;
        table->slots = slots;
        table->capacity = capacity;
    }
    *slot = table->count++;
    return MT_OK;
}

enum mt_status mt_live_add(struct mt_live_table *table, uint64_t addr, const struct mt_live *live)
{
    uint32_t slot;
    enum mt_status status = take_slot(table, &slot);

    if (status == MT_OK)
        status = mt_map_set(&table->ids, addr, slot);
    if (status == MT_OK)
        table->slots[slot] = *live;
    return status;
}

enum mt_status mt_live_remove(struct mt_live_table *table, uint64_t addr)
{
    uint32_t slot = mt_map_take(&table->ids, addr);

    if (slot == MT_MAP_NONE)
        return MT_OK;
    if (table->unused_count == table->unused_capacity) {
        uint32_t capacity = table->unused_capacity ? table->unused_capacity * 2 : 256;
        uint32_t *unused = realloc(table->unused, capacity * sizeof *unused);
        if (!unused)
            return MT_ERR_MEMORY;
        table->unused = unused;
        table->unused_capacity = capacity;
    }
    table->unused[table->unused_count++] = slot;
    return MT_OK;
}

void mt_live_release(struct mt_live_table *table)
{
    mt_map_release(&table->ids);
    free(table->slots);
    free(table->unused);
    memset(table, 0, sizeof *table);
}
