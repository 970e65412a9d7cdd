/* Dynamic storage allocation: buffers with lifetimes, each of which needs its own range of
 * addresses. An instance reduces time to the sections that matter: instants at which the set of
 * live buffers is maximal (right before the first free after an allocation). Two buffers are alive
 * at the same time exactly if they share a section. */
#ifndef MT_ANALYZER_INSTANCE_H
#define MT_ANALYZER_INSTANCE_H

#include "buffers.h"

struct mt_item {
    uint64_t bytes;
    uint64_t duration;    /* in the time of the buffers */
    uint32_t first, last; /* sections [first, last) */
    uint32_t origin;      /* number of the buffer, or of the original item */
};

struct mt_instance {
    struct mt_item *items;
    uint64_t *load; /* live bytes in each section */
    uint32_t count, section_count;
    uint64_t bound; /* largest load: no plan is lower */
};

/* Item i is buffer i; at most UINT32_MAX / 4 of them. O(n log n). */
void mt_instance_build(const struct mt_buffers *buffers, struct mt_instance *instance);

/* Splits into parts that no buffer connects, in order of time: *parts is an array of *count
 * instances whose origins are items of `whole`. */
void mt_instance_split(const struct mt_instance *whole, struct mt_instance **parts,
                       uint32_t *count);
void mt_instances_release(struct mt_instance *parts, uint32_t count);
void mt_instance_release(struct mt_instance *instance);

#endif
