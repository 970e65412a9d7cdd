/* Orders of the entries of arrays for qsort, and binary search in sorted arrays. */
#ifndef MT_BASE_SORTED_H
#define MT_BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Defines `int name(const void *, const void *)`, which compares two entries by their keys: the
 * first key that differs decides. A key is a member, or a path of members. In the second form, the
 * entries are pointers to `type`.
 *
 *     MT_DEFINE_ORDER(by_size, struct row, MT_DESCENDING(bytes) || MT_BY_TEXT(site.name)) */
#define MT_DEFINE_ORDER(name, type, keys)                                                          \
    static int name(const void *a, const void *b)                                                  \
    {                                                                                              \
        const type *x = a, *y = b;                                                                 \
        int order = 0;                                                                             \
                                                                                                   \
        (void)(keys);                                                                              \
        return order;                                                                              \
    }
#define MT_DEFINE_POINTER_ORDER(name, type, keys)                                                  \
    static int name(const void *a, const void *b)                                                  \
    {                                                                                              \
        const type *x = *(const type *const *)a, *y = *(const type *const *)b;                     \
        int order = 0;                                                                             \
                                                                                                   \
        (void)(keys);                                                                              \
        return order;                                                                              \
    }
#define MT_ASCENDING(key)  (order = (x->key > y->key) - (x->key < y->key))
#define MT_DESCENDING(key) (order = (x->key < y->key) - (x->key > y->key))
#define MT_BY_TEXT(key)    (order = strcmp(x->key, y->key))
#define MT_BY_PLACE        (order = (x > y) - (x < y)) /* where the pointers point */
#define MT_THEN(compare)   (order = compare(x, y))     /* another such function */

/* Orders of numbers, and of pointers to texts. */
static inline int mt_ascending_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static inline int mt_ascending_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static inline int mt_ascending_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Moves `low` to the first place in [low, end) for which `is_before`, an expression of `middle`, is
 * false. It is true for every place below that one, and for no other. O(log(end - low)). */
#define MT_BISECT(low, end, middle, is_before)                                                     \
    for (__typeof__(low) high_ = (end), middle; (low) < high_;) {                                  \
        middle = (low) + (high_ - (low)) / 2;                                                      \
        if (is_before)                                                                             \
            (low) = middle + 1;                                                                    \
        else                                                                                       \
            high_ = middle;                                                                        \
    }

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
    size_t low = 0;

    MT_BISECT(low, count, middle, numbers[middle] < key);
    return low;
}

#endif
