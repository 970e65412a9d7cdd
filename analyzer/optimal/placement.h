/* Placing items one after another where they fit: what becomes of an order. */
#ifndef MT_ANALYZER_PLACEMENT_H
#define MT_ANALYZER_PLACEMENT_H

#include "instance.h"
#include "occupancy.h"

/* Order of items by criteria, a letter each, the most important first: Z size, W
 * width (how long it lives), A area (size x width), T the largest load in its
 * life, L lower (when it begins), U upper (when it ends); largest first. Ties by
 * number. At most 4 letters. */
enum mt_status mt_order_by(const struct mt_instance *instance, const char *criteria,
                           uint32_t *order) MT_MUST_USE;

enum mt_fit { MT_FIT_FIRST, MT_FIT_BEST };

/* Places the items in order; stops at the first that would end above `limit`, or
 * when the deadline (clock.h) is passed.
 * *placed: how many found a place (all: instance->count). *height: where the
 * highest of these ends. */
enum mt_status mt_place(const struct mt_instance *instance, const uint32_t *order, enum mt_fit fit,
                        uint64_t limit, struct mt_occupancy *occupancy, uint64_t deadline_ns,
                        uint64_t *addresses, uint32_t *placed, uint64_t *height) MT_MUST_USE;

/* Independent of all this: do no two buffers that live at the same time share an
 * address, and where does the highest end? */
enum mt_status mt_placement_check(const struct mt_buffers *buffers, const uint64_t *addresses,
                                  bool *valid, uint64_t *height) MT_MUST_USE;

#endif
