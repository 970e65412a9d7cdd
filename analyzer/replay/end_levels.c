/* Compares the levels at the end of a replay with those of the recording. */
#include <stdlib.h>

#include "lane.h"
#include "process_memory.h"
#include "sorted.h"
#include "verify.h"

enum { ALLOCATED, ACTIVE, REQUESTED, LEVELS };

/* A segment of the recording; the address comes first: sorted.h. */
struct segment {
    uint64_t addr, size_bytes;
    uint64_t recorded[LEVELS], replayed[LEVELS];
};

MT_DEFINE_ORDER(compare_segments, struct segment, MT_ASCENDING(addr))

/* Collects the segments of the lane's device and heap, by address. */
static void collect(const struct mt_lane *lane, const struct mt_source *source,
                    struct segment **segments, size_t *count)
{
    const struct mt_symbols *symbols = &source->symbols;

    *count = 0;
    *segments = mt_memory_zeroed((size_t)symbols->end_count + 1, sizeof **segments);
    for (uint32_t i = 0; i < symbols->end_count; i++) {
        const struct mt_segment_end *end = &symbols->ends[i];

        if (end->device == lane->result->device && end->heap == source->view.heap)
            (*segments)[(*count)++] =
                (struct segment){end->addr,
                                 end->size_bytes,
                                 {end->allocated_bytes, end->active_bytes, end->requested_bytes},
                                 {0}};
    }
    qsort(*segments, *count, sizeof **segments, compare_segments);
}

static void add_block(const struct mt_live *live, struct segment *segments, size_t count)
{
    size_t above = mt_sorted_count_to(segments, count, sizeof *segments, live->block_addr);
    struct segment *segment = above ? &segments[above - 1] : NULL;

    if (!segment || live->block_addr - segment->addr >= segment->size_bytes)
        return;
    segment->replayed[ALLOCATED] += live->free_requested ? 0 : live->block_bytes;
    segment->replayed[ACTIVE] += live->block_bytes;
    segment->replayed[REQUESTED] += live->requested_bytes;
}

static void add_blocks(const struct mt_lane *lane, struct segment *segments, size_t count)
{
    for (uint32_t i = 0; i < lane->live.count; i++)
        if (lane->live.slots[i].handle != MT_LIVE_NO_HANDLE)
            add_block(&lane->live.slots[i], segments, count);
}

/* Sums of a hostile file may wrap: then they differ. */
static uint64_t sum_of(const struct segment *segments, size_t count, size_t level)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (segments[i].recorded[level] == MT_NOT_COUNTED)
            return MT_NOT_COUNTED;
        sum += segments[i].recorded[level];
    }
    return sum;
}

void mt_end_levels_compare(struct mt_lane *lane, const struct mt_source *source)
{
    static const char *const names[LEVELS] = {"allocated", "active", "requested"};
    const struct mt_counters *counters = lane->ops->counters(lane->policy);
    const uint64_t now[LEVELS] = {counters->allocated.now, counters->active.now,
                                  counters->requested.now};
    struct mt_end_level level = {.segment_addr = 0};
    struct segment *segments;
    uint64_t reserved = 0;
    size_t count;

    collect(lane, source, &segments, &count);
    for (size_t i = 0; i < LEVELS && count; i++) {
        level.name = names[i];
        mt_verify_level(&lane->result->verify, &level, sum_of(segments, count, i), now[i]);
    }
    for (size_t i = 0; i < count; i++)
        reserved += segments[i].size_bytes;
    level.name = "reserved";
    if (count)
        mt_verify_level(&lane->result->verify, &level, reserved, counters->reserved.now);
    add_blocks(lane, segments, count);
    for (size_t i = 0; i < count * LEVELS; i++) {
        const struct segment *segment = &segments[i / LEVELS];

        level.name = names[i % LEVELS];
        level.segment_addr = segment->addr;
        mt_verify_level(&lane->result->verify, &level, segment->recorded[i % LEVELS],
                        segment->replayed[i % LEVELS]);
    }
    free(segments);
}
