/* Blocks and their segments at one instant: the reason why free memory cannot be released to the
 * driver. A segment with a live block stays, and the free bytes in it are stranded. Wholly free
 * segments and the parts that expandable segments can unmap are not stranded. Both are excluded,
 * and so are private pools, whose memory has its own rules. Filled by the pass `blocks`
 * (live_blocks.h): segments until the instant, then the blocks. */
#ifndef MT_ANALYZER_PINS_H
#define MT_ANALYZER_PINS_H

#include <stdbool.h>
#include <stddef.h>

#include "event.h"
#include "status.h"

struct mt_pin_block {
    uint64_t addr, bytes;
    uint32_t stack;   /* MT_NO_ID = none recorded */
    uint32_t segment; /* number of its segment */
};

struct mt_pin_segment {
    uint64_t base, bytes; /* base first: sorted.h */
    uint64_t free_bytes;
};

/* Zeroed memory with `wanted` and `event` set is ready. */
struct mt_pins {
    bool wanted;
    uint64_t event;              /* the state after this event */
    struct mt_pin_block *blocks; /* live ones, ascending by address */
    uint32_t block_count;
    struct mt_pin_segment *segments; /* those with such a block, ascending */
    uint32_t segment_count;
    uint64_t stranded_bytes; /* the sum of free_bytes */
    /* PRIVATE */
    size_t block_capacity, segment_capacity;
};

/* Takes memory events of the device that do not concern a block, in order. */
void mt_pins_segment(struct mt_pins *pins, const struct mt_event *event);
/* At the instant: adds a block that is live or waits for streams; call settle after the last
 * one. */
void mt_pins_add(struct mt_pins *pins, uint64_t addr, uint64_t bytes, uint32_t stack);
void mt_pins_settle(struct mt_pins *pins);
void mt_pins_release(struct mt_pins *pins);

#endif
