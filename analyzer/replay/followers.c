/* Followers: replays that share the state of another one for a time. */
#include <stdlib.h>
#include <string.h>

#include "block_store.h"
#include "check.h"
#include "device_model.h"
#include "lane.h"
#include "live_table.h"
#include "one_replay.h"
#include "util.h"

/* Each time costs a copy of the state, so a follower that leaves at every request stays alone. */
enum { MAX_RETURNS = 32 };

static void copy_device(struct mt_device_model *copy, const struct mt_device_model *device)
{
    const struct mt_address_space *space = &device->space;

    *copy = *device;
    copy->ops = mt_array_copy(device->ops, device->op_count, sizeof *device->ops);
    copy->op_capacity = device->op_count;
    copy->bases = mt_array_copy(device->bases, device->base_count, sizeof *device->bases);
    copy->base_capacity = device->base_count;
    copy->space.pieces = mt_array_copy(space->pieces, space->count, sizeof *space->pieces);
    copy->space.capacity = space->count;
}

static void copy_live(struct mt_live_table *copy, const struct mt_live_table *live)
{
    const size_t chain_count = MT_LIVE_CHAINS * (size_t)live->count;

    *copy = *live;
    copy->chains = mt_array_copy(live->chains, chain_count, sizeof *live->chains);
    copy->slots = mt_array_copy(live->slots, live->count, sizeof *live->slots);
}

/* A copy with another limit and result. Nothing happened in a private pool, and verification is
 * off. */
static struct mt_lane *copy_lane(const struct mt_lane *lane, uint64_t limit_bytes,
                                 struct mt_replay_result *result)
{
    struct mt_lane *copy = mt_array_copy(lane, 1, sizeof *lane);

    MT_ASSERT(!lane->tracks.pool_count && !lane->tracks.blocks && !lane->restores.tiles);
    MT_ASSERT(!result->verify.wanted);
    copy->result = result;
    copy_device(&copy->device, &lane->device);
    copy->device.limit_bytes = limit_bytes;
    if (lane->device.complete_waiting)
        mt_lane_let_complete(copy);
    copy_live(&copy->live, &lane->live);
    copy->policy = lane->ops->copy(lane->policy, &copy->device);
    return copy;
}

void mt_one_replay_free_lane(struct mt_lane *lane)
{
    if (lane->policy)
        lane->ops->destroy(lane->policy);
    mt_device_release(&lane->device);
    mt_live_release(&lane->live);
    mt_pool_tracks_release(&lane->tracks);
    mt_pool_restores_release(&lane->restores);
    free(lane);
}

/* Whether only the limits of two replays differ, and the leader's is not the smaller one. */
static bool can_follow(const struct mt_one_replay *replay, const struct mt_one_replay *leader)
{
    const struct mt_replay_options *a = replay->options, *b = leader->options;

    return replay->policy.ops == leader->policy.ops && replay->policy.ops->copy && a->policy &&
           b->policy && !strcmp(a->policy, b->policy) && a->limit_bytes &&
           b->limit_bytes >= a->limit_bytes && a->blind == b->blind &&
           a->order.rule == b->order.rule && a->order.seed == b->order.seed &&
           replay->foresight == leader->foresight && !a->verify && !b->verify &&
           !a->most_reserved_bytes && !b->most_reserved_bytes;
}

static void share(struct mt_one_replay *leader, const struct mt_one_replay *follower)
{
    const uint64_t least = leader->shared_limit_bytes, limit = follower->options->limit_bytes;

    leader->shared_limit_bytes = least ? mt_min_u64(least, limit) : limit;
}

void mt_one_replay_follow(struct mt_one_replay *replay, struct mt_one_replay *before)
{
    struct mt_one_replay *leader = before->leader ? before->leader : before;

    if (!can_follow(replay, leader))
        return;
    replay->leader = leader;
    share(leader, replay);
}

void mt_one_replay_leave(struct mt_one_replay *follower)
{
    const struct mt_one_replay *leader = follower->leader;

    *follower->summary = *leader->summary;
    follower->allocations = leader->allocations;
    memcpy(follower->left_out, leader->left_out, sizeof follower->left_out);
    follower->left_out_count = leader->left_out_count;
    follower->restoring = leader->restoring;
    for (size_t i = 0; i < MT_MAX_DEVICES; i++) {
        const struct mt_lane *lane = leader->lanes[i];

        if (lane)
            follower->lanes[i] =
                copy_lane(lane, follower->options->limit_bytes,
                          &follower->summary->devices[lane->result - leader->summary->devices]);
    }
    follower->leader = NULL;
}

void mt_one_replay_separate(struct mt_one_replay *leader, struct mt_one_replay *replays,
                            size_t count, uint64_t least_bytes)
{
    leader->shared_limit_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (replays[i].leader == leader && replays[i].options->limit_bytes < least_bytes) {
            mt_one_replay_leave(&replays[i]);
            replays[i].may_return = least_bytes < UINT64_MAX && replays[i].returns < MAX_RETURNS;
        } else if (replays[i].leader == leader) {
            share(leader, &replays[i]);
        }
    }
}

/* Whether every comparison of `other` with its limit so far has the same result with that of
 * `replay`. */
static bool is_equal_so_far(const struct mt_one_replay *replay, const struct mt_one_replay *other)
{
    const uint64_t limit = replay->options->limit_bytes;

    for (size_t i = 0; i < MT_MAX_DEVICES; i++) {
        const struct mt_device_model *device = other->lanes[i] ? &other->lanes[i]->device : NULL;

        if (device && (!device->only_compares || limit < device->most_accepted_bytes ||
                       limit >= device->least_refused_bytes))
            return false;
    }
    return true;
}

static void follow_again(struct mt_one_replay *replay, struct mt_one_replay *leader)
{
    for (size_t i = 0; i < MT_MAX_DEVICES; i++) {
        if (replay->lanes[i])
            mt_one_replay_free_lane(replay->lanes[i]);
        replay->lanes[i] = NULL;
    }
    replay->leader = leader;
    replay->returns++;
    share(leader, replay);
}

void mt_one_replay_return(struct mt_one_replay *replays, size_t at)
{
    struct mt_one_replay *replay = &replays[at];

    replay->may_return = false;
    for (size_t i = 0; i < at && !replay->leader; i++)
        if (!replays[i].leader && !replays[i].over && can_follow(replay, &replays[i]) &&
            is_equal_so_far(replay, &replays[i]))
            follow_again(replay, &replays[i]);
}
