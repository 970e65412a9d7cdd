/* The reference for offline plans: slow and simple. */
#ifndef MT_TESTS_DSA_ORACLE_H
#define MT_TESTS_DSA_ORACLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "buffers.h"

static inline bool oracle_together(const struct mt_buffer *a, const struct mt_buffer *b)
{
    return a->begin < b->end && b->begin < a->end;
}

/* No two buffers that are alive at the same time share an address. */
static inline bool oracle_valid(const struct mt_buffers *buffers, const uint64_t *addresses)
{
    for (size_t i = 0; i < buffers->count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (oracle_together(&buffers->items[i], &buffers->items[j]) &&
                addresses[i] < addresses[j] + buffers->items[j].bytes &&
                addresses[j] < addresses[i] + buffers->items[i].bytes)
                return false;
        }
    }
    return true;
}

static inline uint64_t oracle_height(const struct mt_buffers *buffers, const uint64_t *addresses)
{
    uint64_t height = 0;

    for (size_t i = 0; i < buffers->count; i++) {
        if (addresses[i] + buffers->items[i].bytes > height)
            height = addresses[i] + buffers->items[i].bytes;
    }
    return height;
}

/* The load is largest right after the start of some buffer. */
static inline uint64_t oracle_bound(const struct mt_buffers *buffers)
{
    uint64_t bound = 0, load;
    size_t j;

    for (size_t i = 0; i < buffers->count; i++) {
        uint64_t now = buffers->items[i].begin;
        for (j = 0, load = 0; j < buffers->count; j++) {
            if (buffers->items[j].begin <= now && now < buffers->items[j].end)
                load += buffers->items[j].bytes;
        }
        bound = load > bound ? load : bound;
    }
    return bound;
}

/* Lowest address for `item` that does not collide with order[0..count). */
static inline uint64_t oracle_lowest(const struct mt_buffers *buffers, const uint32_t *order,
                                     uint32_t count, const uint64_t *addresses, uint32_t item)
{
    uint64_t address = 0;
    bool moved = true;

    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < count; i++) {
            const struct mt_buffer *other = &buffers->items[order[i]];
            if (oracle_together(other, &buffers->items[item]) &&
                address < addresses[order[i]] + other->bytes &&
                addresses[order[i]] < address + buffers->items[item].bytes) {
                address = addresses[order[i]] + other->bytes;
                moved = true;
            }
        }
    }
    return address;
}

/* Tries order[placed..n) in all orders at the lowest possible addresses. *best is the height of the
 * lowest plan; the search stops at the bound. */
static inline void oracle_search(const struct mt_buffers *buffers, uint32_t *order, uint32_t placed,
                                 uint64_t *addresses, uint64_t *best)
{
    uint32_t i, n = (uint32_t)buffers->count, item;

    if (placed == n) {
        uint64_t height = oracle_height(buffers, addresses);
        *best = height < *best ? height : *best;
    }
    for (i = placed; i<n && * best> oracle_bound(buffers); i++) {
        item = order[i];
        order[i] = order[placed];
        order[placed] = item;
        addresses[item] = oracle_lowest(buffers, order, placed, addresses, item);
        if (addresses[item] + buffers->items[item].bytes < *best)
            oracle_search(buffers, order, placed + 1, addresses, best);
        order[placed] = order[i];
        order[i] = item;
    }
}

enum { ORACLE_MAX_BUFFERS = 10 };

/* Placing buffers at the lowest address in some order is optimal: lower the buffers of an optimal
 * plan, and sort them by address. */
static inline uint64_t oracle_optimum(const struct mt_buffers *buffers)
{
    uint32_t order[ORACLE_MAX_BUFFERS];
    uint64_t addresses[ORACLE_MAX_BUFFERS] = {0}, best = UINT64_MAX;

    for (uint32_t i = 0; i < buffers->count; i++)
        order[i] = i;
    oracle_search(buffers, order, 0, addresses, &best);
    return best;
}

#endif
