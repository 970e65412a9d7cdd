/* Exact search for a plan within a capacity, in the manner of MiniMalloc (Moffitt, ASPLOS 2023). It
 * searches canonical plans depth first: in these, every buffer lies on another one or on the floor.
 * It places buffers by rising address. It prunes a branch if the free room of a section cannot hold
 * its remaining buffers, or if a gap remains that a buffer would fill. It splits the search where
 * the remaining buffers form unconnected parts. */
#ifndef MT_ANALYZER_EXACT_H
#define MT_ANALYZER_EXACT_H

#include "instance.h"

/* Limit of an exact search; bounds its recursion. */
#define MT_EXACT_MAX_ITEMS 1024

enum mt_exact_answer { MT_EXACT_FOUND, MT_EXACT_IMPOSSIBLE, MT_EXACT_GAVE_UP };

struct mt_exact;

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
