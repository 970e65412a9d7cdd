/* Whole-structure check of a lane: each part by itself, and the counters of the policy against the
 * live blocks of the trace. */
#include "lane.h"

/* Sums of the blocks that the policy serves: those that the program has, and all those held for
 * it. */
struct held {
    uint64_t allocated_bytes, active_bytes;
};

static struct held held_by(const struct mt_lane *lane)
{
    const struct mt_map *ids = &lane->live.ids;
    struct held held = {0, 0};
    size_t i;

    for (i = 0; ids->slots && i <= ids->mask; i++) {
        const struct mt_live *live;
        if (ids->slots[i].value == MT_MAP_NONE)
            continue;
        live = &lane->live.slots[ids->slots[i].value];
        if (live->handle == MT_LIVE_NO_HANDLE)
            continue;
        held.active_bytes += live->block_bytes;
        held.allocated_bytes += live->free_requested ? 0 : live->block_bytes;
    }
    if (lane->served_ahead && lane->outcome == MT_OK) { /* its event follows later */
        held.active_bytes += lane->outcome_block.size_bytes;
        held.allocated_bytes += lane->outcome_block.size_bytes;
    }
    return held;
}

bool mt_lane_is_sound(const struct mt_lane *lane, const char **why)
{
    const struct mt_counters *counters = lane->ops->counters(lane->policy);
    struct held held;

    if (!mt_live_is_sound(&lane->live, why) || !mt_pool_tracks_is_sound(&lane->tracks, why) ||
        !mt_device_is_sound(&lane->device, why) || !lane->ops->is_sound(lane->policy, why))
        return false;
    held = held_by(lane);
    MT_SOUND(why, held.allocated_bytes == counters->allocated.now);
    MT_SOUND(why, held.active_bytes == counters->active.now);
    MT_SOUND(why, !lane->group_open || lane->group_shown <= lane->device.op_count);
    return true;
}

void mt_lane_check(struct mt_lane *lane, bool always)
{
    const char *why = "";

    if (lane->restoring ||
        (!mt_check_is_due(&lane->pace, 64 + 4 * (uint64_t)lane->live.count) && !always))
        return;
    MT_ASSERT_SOUND(mt_lane_is_sound(lane, &why), why);
}
