/* Binary search by address, number or time in sorted arrays. */
#ifndef MT_BASE_SORTED_H
#define MT_BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the number of entries whose first uint64_t is at most `key`, which is the index of the
 * first one above it. The `count` entries ascend by that number. O(log count). Inline, so that
 * `entry_bytes` is a constant. */
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

/* Returns how many of `count` ascending numbers are below `key`, which is the index of the first
 * one that is not. O(log count). */
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
