/* Growable arrays: one growth rule for all of them. Depends on status.h and process_memory.h. */
#ifndef MT_BASE_GROW_H
#define MT_BASE_GROW_H

#include <stddef.h>

#include "process_memory.h"
#include "status.h"

/* Makes room for `count` entries of `entry_bytes` each in an array from malloc. `array` is the
 * address of the pointer to it (a T **, without a cast). *capacity is at least doubled. New entries
 * are not initialized. On MT_ERR_MEMORY nothing has changed.
 *
 *     if (n == capacity && mt_grow(&things, &capacity, n + 1, sizeof *things)) ... */
enum mt_status mt_grow(void *array, size_t *capacity, size_t count, size_t entry_bytes) MT_MUST_USE;

/* The same for an array that is used up to its capacity: new entries are zeroed. */
enum mt_status mt_grow_zeroed(void *array, size_t *capacity, size_t count,
                              size_t entry_bytes) MT_MUST_USE;

/* The same where lack of memory ends the process. */
static inline void mt_grow_to(void *array, size_t *capacity, size_t count, size_t entry_bytes)
{
    if (count > *capacity && mt_grow(array, capacity, count, entry_bytes) != MT_OK)
        mt_memory_end();
}

static inline void mt_grow_zeroed_to(void *array, size_t *capacity, size_t count,
                                     size_t entry_bytes)
{
    if (count > *capacity && mt_grow_zeroed(array, capacity, count, entry_bytes) != MT_OK)
        mt_memory_end();
}

#endif
