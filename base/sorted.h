/* The one search by address, number or time in arrays that are sorted by it. */
#ifndef MT_BASE_SORTED_H
#define MT_BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many of `count` entries, which ascend by the uint64_t that each begins with, begin with at
 * most `key`: the index of the first one above it. O(log count). Inline, so that `entry_bytes` is
 * a constant. */
static inline size_t mt_sorted_count_to(const void *entries, size_t count, size_t entry_bytes,
                                        uint64_t key)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t value;

        memcpy(&value, (const unsigned char *)entries + middle * entry_bytes, sizeof value);
        if (value <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many of `count` ascending numbers are less than `key`: the index of the first one that is
 * not. O(log count). */
static inline size_t mt_sorted_count_below_u32(const uint32_t *numbers, size_t count, uint32_t key)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (numbers[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
