/* Infers the regions of an arena. A profile does not record them, but the rules of the arena
 * determine them: a block outside of all known regions is the first one of a new region, whose
 * size follows from the regions before it (xla/tsl/framework/bfc_allocator.cc, Extend). For
 * xplane.c. */
#ifndef MT_COLLECTOR_XPLANE_REGIONS_H
#define MT_COLLECTOR_XPLANE_REGIONS_H

#include "xplane_read.h"

/* Enough for every arena, because the sizes of regions double. */
#define MT_XPLANE_MAX_REGIONS 128

struct mt_xplane_regions {
    bool preallocated; /* one region, as large as the limit */
    uint64_t limit_bytes;
    uint64_t next_bytes, pool_bytes;
    struct mt_xplane_region {
        uint64_t addr, size_bytes;
    } list[MT_XPLANE_MAX_REGIONS];
    size_t count;
};

void mt_xplane_regions_init(struct mt_xplane_regions *regions, uint64_t limit_bytes,
                            bool preallocated);

/* Adds an allocation, in order. Sets *added if the arena requested a new region, which is then the
 * last of the list. Returns false if no arena of this kind would have put the block at its address.
 * O(regions). */
bool mt_xplane_regions_add(struct mt_xplane_regions *regions, const struct mt_xplane_record *record,
                           bool *added);

#endif
