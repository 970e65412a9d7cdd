#include "block_units.h"

#include "check.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define CHUNK_BYTES (MT_BLOCK_UNITS_CHUNK * sizeof(uint32_t))
#define FASTEST     1 /* level of zstd; higher ones find little more in repeated steps */

struct mt_packed_chunk {
    void *bytes;
    size_t size_bytes; /* CHUNK_BYTES = not compressed */
};

static size_t packed_count(const struct mt_block_units *units)
{
    return units->count ? (size_t)((units->count - 1) / MT_BLOCK_UNITS_CHUNK) : 0;
}

/* zstd needs memory of its own. Without it, or if the sizes do not repeat, they stay as they are.
 */
static void pack_last(struct mt_block_units *units)
{
    const size_t number = packed_count(units);
    void *bytes = mt_memory_new(CHUNK_BYTES);
    size_t size_bytes = ZSTD_compress(bytes, CHUNK_BYTES - 1, units->last, CHUNK_BYTES, FASTEST);

    if (ZSTD_isError(size_bytes)) {
        size_bytes = CHUNK_BYTES;
        memcpy(bytes, units->last, CHUNK_BYTES);
    }
    mt_grow_to(&units->packed, &units->packed_capacity, number + 1, sizeof *units->packed);
    units->packed[number].bytes = mt_memory_resize(bytes, size_bytes);
    units->packed[number].size_bytes = size_bytes;
}

void mt_block_units_add(struct mt_block_units *units, uint32_t size_units)
{
    const size_t place = (size_t)(units->count % MT_BLOCK_UNITS_CHUNK);

    if (!place && units->count)
        pack_last(units);
    if (place == units->last_capacity)
        mt_grow_to(&units->last, &units->last_capacity, place + 1, sizeof *units->last);
    units->last[place] = size_units;
    units->count++;
}

void mt_block_units_unpack(struct mt_block_units *units, uint64_t allocation)
{
    const size_t number = (size_t)(allocation / MT_BLOCK_UNITS_CHUNK);
    const struct mt_packed_chunk *chunk = &units->packed[number];

    MT_ASSERT(allocation < units->count && number < packed_count(units));
    if (!units->read)
        units->read = mt_memory_new(CHUNK_BYTES);
    if (chunk->size_bytes == CHUNK_BYTES)
        memcpy(units->read, chunk->bytes, CHUNK_BYTES);
    else if (ZSTD_decompress(units->read, CHUNK_BYTES, chunk->bytes, chunk->size_bytes) !=
             CHUNK_BYTES)
        mt_memory_end(); /* these are our own bytes, so only memory can be missing */
    units->read_number = number + 1;
}

uint64_t mt_block_units_bytes(const struct mt_block_units *units)
{
    uint64_t sum = units->last_capacity * sizeof *units->last + (units->read ? CHUNK_BYTES : 0) +
                   units->packed_capacity * sizeof *units->packed;

    for (size_t i = 0; i < packed_count(units); i++)
        sum += units->packed[i].size_bytes;
    return sum;
}

void mt_block_units_release(struct mt_block_units *units)
{
    for (size_t i = 0; i < packed_count(units); i++)
        free(units->packed[i].bytes);
    free(units->packed);
    free(units->last);
    free(units->read);
    memset(units, 0, sizeof *units);
}
