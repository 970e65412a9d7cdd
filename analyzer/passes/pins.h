/* Which block lies in which segment at one instant: what keeps free memory from
 * going back to the driver. A segment with a live block in it stays, whatever
 * else of it is free: those bytes are stranded. Wholly free segments are not,
 * and neither is what expandable segments can unmap: both are left out, as are
 * private pools, whose memory follows rules of its own. Filled by the pass `blocks`
 * (holders.h): segments until the instant, then the blocks. */
#ifndef MT_ANALYZER_PINS_H
#define MT_ANALYZER_PINS_H

#include <stdbool.h>
#include <stddef.h>

#include "event.h"
#include "status.h"

struct mt_pin_block {
    uint64_t addr, bytes;
    uint32_t stack;   /* MT_NO_ID = none recorded */
    uint32_t segment; /* number of the segment that it lies in */
};

struct mt_pin_segment {
    uint64_t base, bytes; /* base first: sorted.h */
    uint64_t free_bytes;
};

/* Zeroed, and `wanted` and `event` set, it is ready. */
struct mt_pins {
    bool wanted;
    uint64_t event;              /* the state is that after it */
    struct mt_pin_block *blocks; /* live ones, ascending by address */
    uint32_t block_count;
    struct mt_pin_segment *segments; /* those with such a block, ascending */
    uint32_t segment_count;
    uint64_t stranded_bytes; /* the sum of free_bytes */
    /* PRIVATE */
    size_t block_capacity, segment_capacity;
};

/* Any memory event of the device that is no block's, in order. */
enum mt_status mt_pins_segment(struct mt_pins *pins, const struct mt_event *event) MT_MUST_USE;
/* At the instant: a block that is live or waits for streams; after the last one settle. */
enum mt_status mt_pins_add(struct mt_pins *pins, uint64_t addr, uint64_t bytes,
                           uint32_t stack) MT_MUST_USE;
void mt_pins_settle(struct mt_pins *pins);
void mt_pins_release(struct mt_pins *pins);

#endif
