/* Places items one after another where they fit: evaluates an order. */
#ifndef MT_ANALYZER_PLACEMENT_H
#define MT_ANALYZER_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "buffers.h"

struct mt_occupancy_node;
struct mt_occupancy_bucket;
struct mt_exact;

/* Taken addresses over time. Sections are grouped in buckets, so that few items begin or end in a
 * bucket. A tree over buckets has merged address ranges in its nodes. Well-packed buffers merge to
 * few ranges, so queries about long times stay cheap with hundreds of thousands of buffers. The
 * items that begin or end in a bucket are in a list. Zeroed memory is empty. */

struct mt_occupancy {
    const struct mt_instance *instance; /* borrowed */
    uint64_t *addresses;                /* of each item that is placed; borrowed */
    struct mt_occupancy_node *nodes;    /* 1 = root, leaves start at `leaves`; 0 is unused */
    uint32_t leaves;
    uint32_t *bucket_of; /* of each section */
    struct mt_occupancy_bucket *buckets;
    uint32_t *partial; /* the lists */
    size_t node_capacity, section_capacity, bucket_capacity, partial_capacity;
};

/* Prepares for the items of an instance. Memory of earlier ones is used again. */
void mt_occupancy_prepare(struct mt_occupancy *occupancy, const struct mt_instance *instance);

/* Frees all ranges. Writes addresses of items from now on. */
void mt_occupancy_clear(struct mt_occupancy *occupancy, uint64_t *addresses);
void mt_occupancy_release(struct mt_occupancy *occupancy);

/* Places an item, which takes its range during its life. */
void mt_occupancy_take(struct mt_occupancy *occupancy, uint32_t item, uint64_t address);

/* Start of a gap for the item that is free during all of its life: the lowest, or (best) the
 * smallest between taken ranges, the lowest among equals. */
uint64_t mt_occupancy_find(struct mt_occupancy *occupancy, uint32_t item, bool best);

/* Order of items by criteria, a letter each, the most important first: Z size, W width (lifetime),
 * A area (size x width), T the largest load in its life, L lower (start), U upper (end); largest
 * first. Ties by number. */
void mt_placement_sort(const struct mt_instance *instance, const char *criteria, uint32_t *order);

enum mt_fit { MT_FIT_FIRST, MT_FIT_BEST };

/* Places the items of the occupancy's instance in order; stops at the first that would end above
 * `limit`, or when the deadline (monotonic_clock.h) has passed. *placed: number of placed items
 * (all: instance->count). *height: the highest end. */
void mt_placement_run(struct mt_occupancy *occupancy, const uint32_t *order, enum mt_fit fit,
                      uint64_t limit, uint64_t deadline_ns, uint64_t *addresses, uint32_t *placed,
                      uint64_t *height);

/* Independent check: whether no two buffers that live at the same time share an address, and the
 * highest end. */
void mt_placement_check(const struct mt_buffers *buffers, const uint64_t *addresses, bool *valid,
                        uint64_t *height);

/* Exact search for a plan within a capacity, in the manner of MiniMalloc (Moffitt, ASPLOS 2023). It
 * searches canonical plans depth first: in these, every buffer lies on another one or on the floor.
 * It places buffers by rising address. It prunes a branch if the free room of a section cannot hold
 * its remaining buffers, or if a gap remains that a buffer would fill. It splits the search where
 * the remaining buffers form unconnected parts. */

/* Limit of an exact search; bounds its recursion. */
#define MT_EXACT_MAX_ITEMS 1024

enum mt_exact_answer { MT_EXACT_FOUND, MT_EXACT_IMPOSSIBLE, MT_EXACT_GAVE_UP };

/* Returns NULL for too many items. Borrows the instance. */
struct mt_exact *mt_exact_new(const struct mt_instance *instance);
void mt_exact_free(struct mt_exact *exact); /* accepts NULL */

/* Searches with at most *nodes placements (the remaining number is written back), until the
 * monotonic clock reads deadline_ns (UINT64_MAX = never). `order` decides which of the items that
 * may start at one address is tried first. If `by_load`, the largest remaining load during the life
 * of an item decides first, and `order` decides among equal ones. Writes addresses if a plan was
 * found. */
enum mt_exact_answer mt_exact_search(struct mt_exact *exact, uint64_t capacity,
                                     const uint32_t *order, bool by_load, uint64_t *nodes,
                                     uint64_t deadline_ns, uint64_t *addresses);

#endif
