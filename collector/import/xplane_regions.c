#include "xplane_regions.h"

#include "util.h"

/* kMinAllocationSize, relative to the start of a region; the alignment of TensorFlow's regions of
 * host memory (Allocator::kAllocatorAlignment); and the first region of an arena that grows. */
enum { ALIGNMENT = 256, LEAST_ALIGNMENT = 64, FIRST_REGION = 2 * 1024 * 1024 };

static const uint64_t MAX_ADDRESS = (uint64_t)1 << 61;

void mt_xplane_regions_init(struct mt_xplane_regions *regions, uint64_t limit_bytes,
                            bool preallocated)
{
    *regions = (struct mt_xplane_regions){.preallocated = preallocated, .limit_bytes = limit_bytes};
    regions->next_bytes =
        mt_round_up(preallocated ? limit_bytes : mt_min_u64(limit_bytes, FIRST_REGION), ALIGNMENT);
}

/* Returns 0 if the limit leaves no room. */
static uint64_t size_of_next(struct mt_xplane_regions *regions, uint64_t chunk_bytes)
{
    uint64_t room = mt_round_down(regions->limit_bytes - regions->pool_bytes, ALIGNMENT), bytes;
    bool increased = false;

    if (!chunk_bytes || chunk_bytes > room)
        return 0;
    while (chunk_bytes > regions->next_bytes) {
        regions->next_bytes *= 2;
        increased = true;
    }
    bytes = mt_min_u64(regions->next_bytes, room);
    if (!increased && regions->next_bytes <= MAX_ADDRESS)
        regions->next_bytes *= 2;
    return bytes;
}

static bool overlaps(const struct mt_xplane_region *region, uint64_t addr, uint64_t bytes)
{
    return addr < region->addr + region->size_bytes && region->addr < addr + bytes;
}

static bool is_free_room(const struct mt_xplane_regions *regions, uint64_t addr, uint64_t bytes)
{
    for (size_t i = 0; i < regions->count; i++)
        if (overlaps(&regions->list[i], addr, bytes))
            return false;
    return true;
}

/* Returns the region that the block touches, or NULL. */
static const struct mt_xplane_region *region_at(const struct mt_xplane_regions *regions,
                                                const struct mt_xplane_record *record)
{
    for (size_t i = 0; i < regions->count; i++)
        if (overlaps(&regions->list[i], record->addr, record->chunk_bytes))
            return &regions->list[i];
    return NULL;
}

bool mt_xplane_regions_add(struct mt_xplane_regions *regions, const struct mt_xplane_record *record,
                           bool *added)
{
    const struct mt_xplane_region *region = region_at(regions, record);
    uint64_t bytes;

    *added = false;
    if (record->addr > MAX_ADDRESS || record->addr % LEAST_ALIGNMENT ||
        record->chunk_bytes % ALIGNMENT)
        return false;
    if (region)
        return record->addr >= region->addr && (record->addr - region->addr) % ALIGNMENT == 0 &&
               record->addr + record->chunk_bytes <= region->addr + region->size_bytes;
    bytes = size_of_next(regions, mt_round_up(record->requested_bytes, ALIGNMENT));
    if (bytes < record->chunk_bytes || regions->count == MT_XPLANE_MAX_REGIONS ||
        !is_free_room(regions, record->addr, bytes))
        return false;
    regions->list[regions->count++] = (struct mt_xplane_region){record->addr, bytes};
    regions->pool_bytes += bytes;
    *added = true;
    return true;
}
