/* The sites of two histories. Each history becomes an answer that has every site of the run, so the
 * rules of one instant (diff.c) also match sites that no instant holds together. */
#include <stdbool.h>
#include <string.h>

#include "diff.h"
#include "history.h"

/* Sites that have a partner, as "phase\nsite". */
struct matched {
    struct mt_arena *arena;
    struct mt_strings a, b;
    struct mt_moved_sites *moved;
};

static const char *key_of(struct matched *matched, const char *phase, const char *site)
{
    return mt_arena_printf(matched->arena, "%s\n%s", phase, site);
}

static bool has(const struct mt_strings *strings, const char *key)
{
    return mt_strings_find(strings, key, strlen(key)) != MT_MAP_NONE;
}

static void put(struct mt_strings *strings, const char *key)
{
    uint32_t id;

    mt_strings_put(strings, key, strlen(key), &id);
}

static void add_moved(struct mt_moved_sites *moved, const char *phase, const char *a, const char *b)
{
    moved->list[moved->count++] = (struct mt_moved_site){phase, a, b};
}

static void add_pairs(struct matched *matched, const struct mt_diff_rows *sites)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        const struct mt_diff_row *row = &sites->rows[i];
        const char *site_a = row->label_a ? row->label_a : row->label;

        if (!row->a_blocks || !row->b_blocks)
            continue;
        const char *a = key_of(matched, row->phase, site_a);
        const char *b = key_of(matched, row->phase, row->label);
        if (has(&matched->a, a) || has(&matched->b, b))
            continue;
        put(&matched->a, a);
        put(&matched->b, b);
        if (row->label_a)
            add_moved(matched->moved, row->phase, row->label_a, row->label);
    }
}

/* Sites of A without a partner, whose name is that of a site of B which has another partner. */
static void add_gone(struct matched *matched, const struct mt_diff_rows *sites)
{
    for (uint32_t i = 0; i < sites->count; i++) {
        const struct mt_diff_row *row = &sites->rows[i];
        const char *key = key_of(matched, row->phase, row->label);

        if (row->b_blocks || has(&matched->a, key) || !has(&matched->b, key))
            continue;
        put(&matched->a, key);
        add_moved(matched->moved, row->phase, row->label, NULL);
    }
}

static struct mt_live_row row_of(const struct mt_history_group *group)
{
    return (struct mt_live_row){.label = group->site,
                                .site = group->site,
                                .stack = group->site_stack,
                                .tied = group->site_stack,
                                .tie = group->tie,
                                .phase = group->phase,
                                .role = group->role,
                                .bytes = group->most_bytes,
                                .blocks = 1};
}

static void make_answer(struct mt_arena *arena, const struct mt_history *history,
                        struct mt_answer *answer)
{
    *answer = (struct mt_answer){.missing = MT_ANSWERED};
    answer->rows = mt_arena_array(arena, (size_t)history->group_count + 1, sizeof *answer->rows);
    for (uint32_t i = 0; i < history->group_count; i++)
        if (history->groups[i].detail != MT_HISTORY_BY_ROLE && history->groups[i].phase)
            answer->rows[answer->row_count++] = row_of(&history->groups[i]);
}

void mt_diff_moved_sites(struct mt_arena *arena, const struct mt_diff *diff,
                         const struct mt_device_diff *device, struct mt_moved_sites *moved)
{
    struct matched matched = {.arena = arena, .moved = moved};
    struct mt_answer answer_a, answer_b;
    struct mt_device_report a = {.answer = &answer_a}, b = {.answer = &answer_b};
    struct mt_device_diff whole = {.a = &a, .b = &b};

    *moved = (struct mt_moved_sites){.count = 0};
    if (!device->a->history || !device->b->history)
        return;
    make_answer(arena, device->a->history, &answer_a);
    make_answer(arena, device->b->history, &answer_b);
    mt_diff_devices(arena, diff->a, diff->b, &whole);
    moved->list = mt_arena_array(arena, (size_t)device->sites.count + whole.sites.count + 1,
                                 sizeof *moved->list);
    add_pairs(&matched, &device->sites);
    add_pairs(&matched, &whole.sites);
    add_gone(&matched, &device->sites);
    add_gone(&matched, &whole.sites);
    mt_strings_release(&matched.a);
    mt_strings_release(&matched.b);
}
