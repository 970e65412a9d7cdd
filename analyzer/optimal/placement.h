/* Places items one after another where they fit: evaluates an order. */
#ifndef MT_ANALYZER_PLACEMENT_H
#define MT_ANALYZER_PLACEMENT_H

#include "instance.h"
#include "occupancy.h"

/* Order of items by criteria, a letter each, the most important first: Z size, W width (lifetime),
 * A area (size x width), T the largest load in its life, L lower (start), U upper (end); largest
 * first. Ties by number. At most 4 letters. */
void mt_order_by(const struct mt_instance *instance, const char *criteria, uint32_t *order);

enum mt_fit { MT_FIT_FIRST, MT_FIT_BEST };

/* Places the items in order; stops at the first that would end above `limit`, or when the deadline
 * (clock.h) has passed. *placed: number of placed items (all: instance->count). *height: the
 * highest end. */
void mt_place(const struct mt_instance *instance, const uint32_t *order, enum mt_fit fit,
              uint64_t limit, struct mt_occupancy *occupancy, uint64_t deadline_ns,
              uint64_t *addresses, uint32_t *placed, uint64_t *height);

/* Independent check: whether no two buffers that live at the same time share an address, and the
 * highest end. */
void mt_placement_check(const struct mt_buffers *buffers, const uint64_t *addresses, bool *valid,
                        uint64_t *height);

#endif
