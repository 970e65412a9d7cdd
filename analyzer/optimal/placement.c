#include "placement.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "process_memory.h"

enum { MAX_CRITERIA = 4, PLACEMENTS_A_LOOK = 1024 };

struct ranked {
    double keys[MAX_CRITERIA];
    uint32_t item;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    unsigned i;

    for (i = 0; i < MAX_CRITERIA; i++) {
        if (a->keys[i] > b->keys[i] || a->keys[i] < b->keys[i])
            return a->keys[i] > b->keys[i] ? -1 : 1;
    }
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Largest load in the life of every item, as a table of powers of two. */
struct load_table {
    uint64_t *rows[32];
    unsigned count;
};

static void load_table_release(struct load_table *table)
{
    unsigned i;

    for (i = 1; i < table->count; i++) /* row 0 is the instance's */
        free(table->rows[i]);
}

static void load_table_init(struct load_table *table, const struct mt_instance *instance)
{
    uint32_t width = 1, sections = instance->section_count, s;

    table->rows[0] = instance->load;
    for (table->count = 1; 2 * width <= sections; width *= 2) {
        const uint64_t *row = table->rows[table->count - 1];
        uint64_t *next = mt_memory_zeroed(sections, sizeof *next);
        for (s = 0; s + 2 * width <= sections; s++)
            next[s] = row[s] > row[s + width] ? row[s] : row[s + width];
        table->rows[table->count++] = next;
    }
}

static uint64_t largest_load(const struct load_table *table, const struct mt_item *item)
{
    unsigned level = 31u - (unsigned)__builtin_clz(item->last - item->first);
    uint64_t left = table->rows[level][item->first];
    uint64_t right = table->rows[level][item->last - (1u << level)];

    return left > right ? left : right;
}

static double key_of(const struct mt_item *item, char criterion, const struct load_table *loads)
{
    switch (criterion) {
    case 'Z': return (double)item->bytes;
    case 'W': return (double)item->duration;
    case 'A': return (double)item->bytes * (double)item->duration;
    case 'T': return (double)largest_load(loads, item);
    case 'L': return (double)item->first;
    case 'U': return (double)item->last;
    default: return 0;
    }
}

void mt_order_by(const struct mt_instance *instance, const char *criteria, uint32_t *order)
{
    struct ranked *ranked = mt_memory_zeroed((size_t)instance->count + 1, sizeof *ranked);
    struct load_table loads = {.count = 0};
    uint32_t i, k;

    load_table_init(&loads, instance);
    for (i = 0; i < instance->count; i++) {
        ranked[i].item = i;
        for (k = 0; k < MAX_CRITERIA && criteria[k]; k++)
            ranked[i].keys[k] = key_of(&instance->items[i], criteria[k], &loads);
    }
    qsort(ranked, instance->count, sizeof *ranked, compare_ranked);
    for (i = 0; i < instance->count; i++)
        order[i] = ranked[i].item;
    load_table_release(&loads);
    free(ranked);
}

void mt_place(const struct mt_instance *instance, const uint32_t *order, enum mt_fit fit,
              uint64_t limit, struct mt_occupancy *occupancy, uint64_t deadline_ns,
              uint64_t *addresses, uint32_t *placed, uint64_t *height)
{
    mt_occupancy_clear(occupancy);
    *height = 0;
    for (*placed = 0; *placed < instance->count; (*placed)++) {
        const struct mt_item *item = &instance->items[order[*placed]];
        uint64_t address =
            mt_occupancy_find(occupancy, item->first, item->last, item->bytes, fit == MT_FIT_BEST);
        if (address + item->bytes > limit ||
            (*placed % PLACEMENTS_A_LOOK == 0 && mt_deadline_passed(deadline_ns)))
            break;
        mt_occupancy_take(occupancy, item->first, item->last, address, address + item->bytes);
        addresses[order[*placed]] = address;
        *height = address + item->bytes > *height ? address + item->bytes : *height;
    }
}
