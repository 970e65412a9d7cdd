#include "live_table.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "process_memory.h"

enum { MIN_SLOTS = 32 };

/* Puts a slot in front of the chain of its address. */
static void link_slot(struct mt_live_table *table, uint32_t id)
{
    uint32_t *chain = mt_live_chain(table, table->slots[id - 1].addr);

    table->slots[id - 1].next = *chain;
    *chain = id;
}

/* Doubles the slots. None is unused. */
static void grow(struct mt_live_table *table)
{
    const uint32_t before = table->count, count = before ? 2 * before : MIN_SLOTS;

    if (before >= UINT32_MAX / 4)
        mt_memory_end();
    table->slots = mt_memory_resize(table->slots, count * sizeof *table->slots);
    free(table->chains);
    table->chains = mt_memory_zeroed(MT_LIVE_CHAINS * (size_t)count, sizeof *table->chains);
    table->count = count;
    for (uint32_t id = 1; id <= before; id++)
        link_slot(table, id);
    for (uint32_t id = count; id > before; id--) {
        table->slots[id - 1] = (struct mt_live){.handle = MT_LIVE_NO_HANDLE, .next = table->unused};
        table->unused = id;
    }
}

struct mt_live *mt_live_add(struct mt_live_table *table, uint64_t addr)
{
    MT_ASSERT(!mt_live_find(table, addr));
    if (!table->unused)
        grow(table);
    const uint32_t id = table->unused;
    struct mt_live *live = &table->slots[id - 1];
    table->unused = live->next;
    live->addr = addr;
    link_slot(table, id);
    return live;
}

void mt_live_remove(struct mt_live_table *table, struct mt_live *live)
{
    const uint32_t id = (uint32_t)(live - table->slots) + 1;
    uint32_t *link = mt_live_chain(table, live->addr);

    while (*link != id)
        link = &table->slots[*link - 1].next;
    *link = live->next;
    *live = (struct mt_live){.handle = MT_LIVE_NO_HANDLE, .next = table->unused};
    table->unused = id;
}

bool mt_live_is_sound(const struct mt_live_table *table, const char **why)
{
    uint32_t seen = 0, id;

    for (id = table->unused; id; id = table->slots[id - 1].next) {
        MT_SOUND(why, id <= table->count && seen++ < table->count);
        MT_SOUND(why, table->slots[id - 1].handle == MT_LIVE_NO_HANDLE);
    }
    for (size_t i = 0; i < MT_LIVE_CHAINS * (size_t)table->count; i++)
        for (id = table->chains[i]; id; id = table->slots[id - 1].next) {
            MT_SOUND(why, id <= table->count && seen++ < table->count);
            MT_SOUND(why, mt_live_find(table, table->slots[id - 1].addr) == &table->slots[id - 1]);
        }
    MT_SOUND(why, seen == table->count);
    return true;
}

void mt_live_release(struct mt_live_table *table)
{
    free(table->chains);
    free(table->slots);
    memset(table, 0, sizeof *table);
}
