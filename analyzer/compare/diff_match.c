#include "diff_match.h"
#include "process_memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Above this product only equal lines are paired. */
#define MAX_CELLS ((size_t)1 << 22)

static int by_lines(const struct mt_place_item *a, const struct mt_place_item *b)
{
    for (int i = 0; i < 2; i++)
        if (a->lines[i] != b->lines[i])
            return a->lines[i] < b->lines[i] ? -1 : 1;
    return 0;
}

int mt_place_item_order(const struct mt_place_item *a, const struct mt_place_item *b)
{
    int order = strcmp(a->key, b->key);

    return order ? order : by_lines(a, b);
}

/* Items of one key. */
struct group {
    struct mt_place_item *a, *b;
    size_t a_first, b_first; /* offsets of `partner` */
    size_t a_count, b_count;
};

static void pair(const struct group *group, size_t i, size_t j)
{
    group->a[i].partner = group->b_first + j;
    group->b[j].partner = group->a_first + i;
}

static void pair_equal_lines(const struct group *group)
{
    size_t i = 0, j = 0;

    while (i < group->a_count && j < group->b_count) {
        int order = by_lines(&group->a[i], &group->b[j]);

        if (order == 0)
            pair(group, i, j);
        i += order <= 0;
        j += order >= 0;
    }
}

static uint32_t likeness(const struct mt_place_item *a, const struct mt_place_item *b)
{
    uint32_t equal = by_lines(a, b) == 0;

    equal += a->bytes == b->bytes;
    equal += a->blocks == b->blocks;
    return 1 + 2 * equal;
}

/* best[i][j]: for the items since i and j. */
static void fill(const struct group *group, uint32_t *best)
{
    size_t width = group->b_count + 1;

    for (size_t i = group->a_count; i-- > 0;)
        for (size_t j = group->b_count; j-- > 0;) {
            uint32_t both = best[(i + 1) * width + j + 1] + likeness(&group->a[i], &group->b[j]);
            uint32_t without_a = best[(i + 1) * width + j], without_b = best[i * width + j + 1];
            uint32_t without = without_a > without_b ? without_a : without_b;

            best[i * width + j] = both > without ? both : without;
        }
}

static void align(const struct group *group)
{
    size_t width = group->b_count + 1, i = 0, j = 0;
    uint32_t *best;

    if (group->a_count >= MAX_CELLS / width) {
        pair_equal_lines(group);
        return;
    }
    best = mt_memory_zeroed((group->a_count + 1) * width, sizeof *best);
    fill(group, best);
    while (i < group->a_count && j < group->b_count) {
        uint32_t here = best[i * width + j];

        if (here == best[(i + 1) * width + j + 1] + likeness(&group->a[i], &group->b[j]))
            pair(group, i++, j++);
        else if (here == best[(i + 1) * width + j])
            i++;
        else
            j++;
    }
    free(best);
}

static size_t end_of(const struct mt_place_item *items, size_t count, size_t first)
{
    size_t end = first + 1;

    while (end < count && !strcmp(items[end].key, items[first].key))
        end++;
    return end;
}

void mt_match_places(struct mt_place_item *a, size_t a_count, struct mt_place_item *b,
                     size_t b_count)
{
    size_t i = 0, j = 0;

    for (size_t k = 0; k < a_count; k++)
        a[k].partner = MT_NO_PARTNER;
    for (size_t k = 0; k < b_count; k++)
        b[k].partner = MT_NO_PARTNER;
    while (i < a_count && j < b_count) {
        int order = strcmp(a[i].key, b[j].key);
        size_t a_end = order <= 0 ? end_of(a, a_count, i) : i;
        size_t b_end = order >= 0 ? end_of(b, b_count, j) : j;

        if (order == 0)
            align(&(struct group){a + i, b + j, i, j, a_end - i, b_end - j});
        i = a_end;
        j = b_end;
    }
}
