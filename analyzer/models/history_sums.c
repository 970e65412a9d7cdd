#include "history_sums.h"
#include "process_memory.h"

#include <stdlib.h>
#include <string.h>

static void list_add(struct mt_history_list *list, uint32_t group)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 64;
        uint32_t *bigger = mt_memory_resize(list->groups, capacity * sizeof *bigger);

        list->groups = bigger;
        list->capacity = capacity;
    }
    list->groups[list->count++] = group;
}

static void add_delta(struct mt_history_delta *sum, struct mt_history_delta delta)
{
    sum->bytes += delta.bytes;
    sum->blocks += delta.blocks;
}

void mt_history_sums_room(struct mt_history_sums *sums, uint32_t group_count)
{
    uint32_t capacity = sums->capacity ? sums->capacity : 256;
    struct mt_history_tally *bigger;

    if (group_count <= sums->capacity)
        return;
    while (capacity < group_count)
        capacity *= 2;
    bigger = mt_memory_resize(sums->tallies, capacity * sizeof *bigger);
    memset(&bigger[sums->capacity], 0, (capacity - sums->capacity) * sizeof *bigger);
    sums->tallies = bigger;
    sums->capacity = capacity;
}

void mt_history_sums_add(struct mt_history_sums *sums, uint32_t group,
                         struct mt_history_delta delta)
{
    struct mt_history_tally *tally = &sums->tallies[group];

    add_delta(&tally->later, delta);
    if (tally->in_later)
        return;
    tally->in_later = true;
    list_add(&sums->later, group);
}

void mt_history_sums_settle(struct mt_history_sums *sums)
{
    for (uint32_t i = 0; i < sums->later.count; i++) {
        struct mt_history_tally *tally = &sums->tallies[sums->later.groups[i]];

        add_delta(&tally->settled, tally->later);
        tally->later = (struct mt_history_delta){0, 0};
        tally->in_later = false;
        if (!tally->in_settled)
            list_add(&sums->settled, sums->later.groups[i]);
        tally->in_settled = true;
    }
    sums->later.count = 0;
}

void mt_history_sums_renumber(struct mt_history_sums *sums, const uint32_t *into,
                              uint32_t old_count, uint32_t new_count)
{
    struct mt_history_tally *fresh = mt_memory_zeroed((size_t)sums->capacity + 1, sizeof *fresh);

    sums->settled.count = sums->later.count = 0;
    for (uint32_t i = 0; i < old_count; i++) {
        const struct mt_history_tally *old = &sums->tallies[i];
        struct mt_history_tally *tally = &fresh[into[i]];

        tally->told_bytes += old->told_bytes;
        add_delta(&tally->settled, old->settled);
        add_delta(&tally->later, old->later);
        tally->in_settled |= old->in_settled;
        tally->in_later |= old->in_later;
    }
    free(sums->tallies);
    sums->tallies = fresh;
    for (uint32_t i = 0; i < new_count; i++) {
        if (fresh[i].in_settled)
            list_add(&sums->settled, i);
        if (fresh[i].in_later)
            list_add(&sums->later, i);
    }
}

void mt_history_sums_release(struct mt_history_sums *sums)
{
    free(sums->tallies);
    free(sums->settled.groups);
    free(sums->later.groups);
    memset(sums, 0, sizeof *sums);
}
