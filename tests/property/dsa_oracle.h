/* The reference for offline plans: slow and obvious. */
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

/* No two that live together share an address. */
static inline bool oracle_valid(const struct mt_buffers *buffers, const uint64_t *addresses)
{
    size_t i, j;

    for (i = 0; i < buffers->count; i++) {
        for (j = 0; j < i; j++) {
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
    size_t i;

    for (i = 0; i < buffers->count; i++) {
        if (addresses[i] + buffers->items[i].bytes > height)
            height = addresses[i] + buffers->items[i].bytes;
    }
    return height;
}

/* The load is largest right after some buffer begins. */
static inline uint64_t oracle_bound(const struct mt_buffers *buffers)
{
    uint64_t bound = 0, load;
    size_t i, j;

    for (i = 0; i < buffers->count; i++) {
        uint64_t now = buffers->items[i].begin;
        for (j = 0, load = 0; j < buffers->count; j++) {
            if (buffers->items[j].begin <= now && now < buffers->items[j].end)
                load += buffers->items[j].bytes;
        }
        bound = load > bound ? load : bound;
    }
    return bound;
}

/* Lowest address for `item` at which nothing of `order[0..count)` is in its way. */
static inline uint64_t oracle_lowest(const struct mt_buffers *buffers, const uint32_t *order,
                                     uint32_t count, const uint64_t *addresses, uint32_t item)
{
    uint64_t address = 0;
    bool moved = true;
    uint32_t i;

    while (moved) {
        moved = false;
        for (i = 0; i < count; i++) {
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

/* Puts order[placed..n) in all orders onto the lowest places; *best: height of
 * the lowest plan so far; at the bound it stops. */
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

/* Some order of lowest places is optimal: push an optimal plan down, and sort it
 * by address. */
static inline uint64_t oracle_optimum(const struct mt_buffers *buffers)
{
    uint32_t order[ORACLE_MAX_BUFFERS], i;
    uint64_t addresses[ORACLE_MAX_BUFFERS] = {0}, best = UINT64_MAX;

    for (i = 0; i < buffers->count; i++)
        order[i] = i;
    oracle_search(buffers, order, 0, addresses, &best);
    return best;
}

#endif
