/* Where the regions of an arena lie that the addresses of its blocks come from. A profile does not
 * tell; but the rules of the arena leave no choice: a block that lies in no known region is the
 * first one of a new region, and how long that is follows from the regions before it
 * (xla/tsl/framework/bfc_allocator.cc, Extend). For xplane.c. */
#ifndef MT_COLLECTOR_XPLANE_REGIONS_H
#define MT_COLLECTOR_XPLANE_REGIONS_H

#include "xplane_read.h"

/* Regions double: there are never as many. */
#define MT_XPLANE_MAX_REGIONS 128

struct mt_xplane_regions {
    bool preallocated; /* one region, as long as the limit */
    uint64_t limit_bytes;
    uint64_t next_bytes, pool_bytes;
    struct mt_xplane_region {
        uint64_t addr, size_bytes;
    } list[MT_XPLANE_MAX_REGIONS];
    size_t count;
};

void mt_xplane_regions_init(struct mt_xplane_regions *regions, uint64_t limit_bytes,
                            bool preallocated);

/* An allocation, in order. *added: the arena took a region for it, the last of the list. False: no
 * arena of this kind would have put the block there. O(regions). */
bool mt_xplane_regions_add(struct mt_xplane_regions *regions, const struct mt_xplane_record *record,
                           bool *added);

#endif
