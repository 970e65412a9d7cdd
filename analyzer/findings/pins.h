/* Which block lies in which segment at one instant: what keeps free memory from
 * going back to the driver. A segment with a live block in it stays, whatever
 * else of it is free: those bytes are stranded. Wholly free segments are not,
 * and neither is what expandable segments can unmap: both are left out, as are
 * private pools, whose memory follows rules of its own. */
#ifndef MT_ANALYZER_PINS_H
#define MT_ANALYZER_PINS_H

#include "alloc_log.h"
#include "source.h"

struct mt_pin_block {
    uint64_t addr, bytes;
    uint32_t stack;   /* MT_NO_ID = none recorded */
    uint32_t segment; /* number of the segment that it lies in */
};

struct mt_pin_segment {
    uint64_t base, bytes;
    uint64_t free_bytes;
};

struct mt_pins {
    struct mt_pin_block *blocks; /* live ones, ascending by address */
    uint32_t block_count;
    struct mt_pin_segment *segments; /* those with such a block, ascending */
    uint32_t segment_count;
    uint64_t stranded_bytes; /* the sum of free_bytes */
};

/* Reads the source from its start; the state is that after the event. Goes on to
 * the end, because what is wrong with the input is known only there. The log is that of the first
 * reading, for the sizes of blocks. *pins is to be released whatever is returned. */
enum mt_status mt_pins_read(struct mt_source *source, struct mt_alloc_log *log, uint16_t device,
                            uint64_t event, struct mt_pins *pins,
                            struct mt_error *error) MT_MUST_USE;
void mt_pins_release(struct mt_pins *pins);

#endif
