/* Sizes of the blocks of a run, by the number of the allocation, in units of 512 bytes. They would
 * be the largest table of an analysis. A run repeats its steps, so all but the last chunk of sizes
 * are kept compressed: 100 million events need less than 10 MB. Not for use by two threads at
 * once. */
#ifndef MT_ANALYZER_BLOCK_UNITS_H
#define MT_ANALYZER_BLOCK_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define MT_BLOCK_UNITS_CHUNK ((uint64_t)1 << 18) /* sizes */

/* All zero bytes = no sizes. */
struct mt_block_units {
    uint64_t count;
    uint32_t *last; /* sizes of the last chunk */
    size_t last_capacity;
    struct mt_packed_chunk *packed; /* the others */
    size_t packed_capacity;
    uint32_t *read; /* the packed chunk that was read last: chunk `read_number` - 1 */
    uint64_t read_number;
};

/* The next allocation (number units->count) has this size. */
void mt_block_units_add(struct mt_block_units *units, uint32_t size_units);
/* PRIVATE: makes `read` the chunk of a packed size. */
void mt_block_units_unpack(struct mt_block_units *units, uint64_t allocation);

/* Returns the size of the block of an allocation below units->count. O(1) if its chunk is the last
 * one or the one that was read last, otherwise O(chunk): request sizes in
 * ascending or descending order. */
static inline uint32_t mt_block_units_at(struct mt_block_units *units, uint64_t allocation)
{
    const uint64_t chunk = allocation / MT_BLOCK_UNITS_CHUNK;
    const size_t place = (size_t)(allocation % MT_BLOCK_UNITS_CHUNK);

    if (chunk == (units->count - 1) / MT_BLOCK_UNITS_CHUNK)
        return units->last[place];
    if (units->read_number != chunk + 1)
        mt_block_units_unpack(units, allocation);
    return units->read[place];
}

uint64_t mt_block_units_bytes(const struct mt_block_units *units); /* memory that they use */
void mt_block_units_release(struct mt_block_units *units);

#endif
