#include "live_table.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "process_memory.h"

struct mt_live *mt_live_find(struct mt_live_table *table, uint64_t addr)
{
    uint32_t slot = mt_map_find(&table->ids, addr);

    return slot == MT_MAP_NONE ? NULL : &table->slots[slot];
}

static void take_slot(struct mt_live_table *table, uint32_t *slot)
{
    if (table->unused_count) {
        *slot = table->unused[--table->unused_count];
        return;
    }
    if (table->count >= MT_MAP_NONE / 2)
        mt_memory_end();
    mt_grow_to(&table->slots, &table->capacity, (size_t)table->count + 1, sizeof *table->slots);
    *slot = table->count++;
}

void mt_live_add(struct mt_live_table *table, uint64_t addr, const struct mt_live *live)
{
    uint32_t slot;

    take_slot(table, &slot);
    MT_ASSERT(mt_map_get(&table->ids, addr) == MT_MAP_NONE);
    mt_map_put(&table->ids, addr, slot);
    table->slots[slot] = *live;
    MT_ASSERT(table->ids.count + table->unused_count == table->count);
}

void mt_live_remove(struct mt_live_table *table, uint64_t addr)
{
    uint32_t slot = mt_map_take(&table->ids, addr);

    if (slot == MT_MAP_NONE)
        return;
    mt_grow_to(&table->unused, &table->unused_capacity, (size_t)table->unused_count + 1,
               sizeof *table->unused);
    table->slots[slot].free_requested = false;
    table->unused[table->unused_count++] = slot;
    MT_ASSERT(slot < table->count && table->unused_count <= table->count);
    MT_ASSERT(table->ids.count + table->unused_count == table->count);
}

bool mt_live_is_sound(const struct mt_live_table *table, const char **why)
{
    if (!mt_map_is_sound(&table->ids, why))
        return false;
    MT_SOUND(why, table->ids.count + table->unused_count == table->count);
    for (size_t i = 0; table->ids.slots && i <= table->ids.mask; i++)
        MT_SOUND(why, table->ids.slots[i].value == MT_MAP_NONE ||
                          table->ids.slots[i].value < table->count);
    for (size_t i = 0; i < table->unused_count; i++)
        MT_SOUND(why, table->unused[i] < table->count);
    return true;
}

void mt_live_release(struct mt_live_table *table)
{
    mt_map_release(&table->ids);
    free(table->slots);
    free(table->unused);
    memset(table, 0, sizeof *table);
}
