/* Checks plans; shares no code with the planner. Goes through time with a tree over addresses that
 * records which are in use. */
#include <stdlib.h>
#include <string.h>

#include "placement.h"
#include "process_memory.h"

struct instant {
    uint64_t time;
    uint32_t buffer;
    bool begins;
};

struct address_tree {
    uint64_t *edges; /* all starts and ends of ranges, sorted and unique */
    size_t edge_count;
    uint32_t *users;  /* of a node's whole range */
    bool *used_below; /* at a node or anywhere below it */
    uint32_t leaves;
};

static int compare_edges(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static int compare_instants(const void *left, const void *right)
{
    const struct instant *a = left, *b = right;

    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (int)a->begins - (int)b->begins;
}

static void tree_init(struct address_tree *tree, const struct mt_buffers *buffers,
                      const uint64_t *addresses)
{
    size_t i, kept = 0;

    tree->edges = mt_memory_zeroed(2 * buffers->count + 1, sizeof *tree->edges);
    for (i = 0; i < buffers->count; i++) {
        tree->edges[2 * i] = addresses[i];
        tree->edges[2 * i + 1] = addresses[i] + buffers->items[i].bytes;
    }
    qsort(tree->edges, 2 * buffers->count, sizeof *tree->edges, compare_edges);
    for (i = 0; i < 2 * buffers->count; i++) {
        if (!kept || tree->edges[kept - 1] != tree->edges[i])
            tree->edges[kept++] = tree->edges[i];
    }
    tree->edge_count = kept;
    for (tree->leaves = 1; tree->leaves < kept;)
        tree->leaves *= 2;
    tree->users = mt_memory_zeroed(2 * (size_t)tree->leaves, sizeof *tree->users);
    tree->used_below = mt_memory_zeroed(2 * (size_t)tree->leaves, sizeof *tree->used_below);
}

static uint32_t leaf_of(const struct address_tree *tree, uint64_t edge)
{
    const uint64_t *found =
        bsearch(&edge, tree->edges, tree->edge_count, sizeof *tree->edges, compare_edges);

    return tree->leaves + (uint32_t)(found - tree->edges);
}

static bool used_above(const struct address_tree *tree, uint32_t node)
{
    for (node /= 2; node > 0; node /= 2) {
        if (tree->users[node])
            return true;
    }
    return false;
}

static void change_users(struct address_tree *tree, uint32_t node, int change)
{
    tree->users[node] += (uint32_t)change;
    for (; node > 0; node /= 2) {
        bool below =
            node < tree->leaves && (tree->used_below[2 * node] || tree->used_below[2 * node + 1]);
        tree->used_below[node] = tree->users[node] > 0 || below;
    }
}

/* Takes or returns [begin, end); false if part of it is in use already. */
static bool change_range(struct address_tree *tree, uint64_t begin, uint64_t end, bool take)
{
    uint32_t low = leaf_of(tree, begin), high = leaf_of(tree, end);
    bool valid = true;
    uint32_t ends[2];
    unsigned i;

    for (; low < high; low /= 2, high /= 2) {
        ends[0] = low & 1 ? low++ : 0;
        ends[1] = high & 1 ? --high : 0;
        for (i = 0; i < 2; i++) {
            if (!ends[i])
                continue;
            valid = valid && (!take || (!tree->used_below[ends[i]] && !used_above(tree, ends[i])));
            change_users(tree, ends[i], take ? 1 : -1);
        }
    }
    return valid;
}

static bool check_all(const struct mt_buffers *buffers, const uint64_t *addresses,
                      struct instant *instants, struct address_tree *tree)
{
    bool valid = true;
    uint32_t i;

    for (i = 0; i < buffers->count; i++) {
        instants[2 * i] = (struct instant){buffers->items[i].begin, i, true};
        instants[2 * i + 1] = (struct instant){buffers->items[i].end, i, false};
    }
    qsort(instants, 2 * buffers->count, sizeof *instants, compare_instants);
    for (i = 0; valid && i < 2 * buffers->count; i++) {
        uint64_t address = addresses[instants[i].buffer];
        valid = change_range(tree, address, address + buffers->items[instants[i].buffer].bytes,
                             instants[i].begins);
    }
    return valid;
}

void mt_placement_check(const struct mt_buffers *buffers, const uint64_t *addresses, bool *valid,
                        uint64_t *height)
{
    struct instant *instants = mt_memory_zeroed(2 * buffers->count + 1, sizeof *instants);
    struct address_tree tree = {0};
    size_t i;

    *valid = true;
    *height = 0;
    for (i = 0; i < buffers->count; i++) {
        uint64_t end;
        if (__builtin_add_overflow(addresses[i], buffers->items[i].bytes, &end))
            *valid = false;
        else if (end > *height)
            *height = end;
    }
    tree_init(&tree, buffers, addresses);
    if (*valid)
        *valid = check_all(buffers, addresses, instants, &tree);
    free(instants);
    free(tree.edges);
    free(tree.users);
    free(tree.used_below);
}
