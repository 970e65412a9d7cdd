/* The live blocks of one device at one event, grouped. The pass `blocks` copies them at the chosen
 * instants. */
#ifndef MT_ANALYZER_SNAPSHOT_H
#define MT_ANALYZER_SNAPSHOT_H

#include "holding.h"

/* The blocks of one device after one event. */
struct mt_snapshot {
    uint64_t event; /* wanted: the last event <= this */
    uint16_t device;
    struct mt_holding *holdings;
    uint32_t holding_count;
    uint64_t bytes; /* their sum */
    uint64_t waiting_blocks, waiting_bytes, waiting_requested_bytes;
    uint64_t pool_role_bytes[MT_ROLE_COUNT]; /* of blocks in private pools */
};

/* Snapshots in the order of `snapshots`: by event, then device. For qsort and bsearch. */
static inline int mt_snapshot_order(const void *a, const void *b)
{
    const struct mt_snapshot *x = a, *y = b;

    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return (int)x->device - (int)y->device;
}

#endif
