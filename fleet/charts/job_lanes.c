/* Divides pixels among the ranks of a job. Each group gets whole pixels in proportion to its
 * places, at least one, and there is a distance between groups. In a group that has fewer units of
 * pixels than places, places share units. */
#include "job_order.h"
#include "util.h"

#define GROUP_DISTANCE 6 /* pixels between groups */
#define DISTANCE_SHARE 8 /* all distances are together at most 1/8 of the pixels */
#define GROUP_PIXELS   4 /* groups are separated if they have at least this many on average */

/* A range of adjacent slots, with their places and pixels. */
struct part {
    uint32_t first_slot, slot_count, place, size;
    struct mt_job_span span; /* in units of pixels */
};

static uint32_t share(uint64_t place, uint64_t places, uint64_t units)
{
    return (uint32_t)(place * units / places);
}

/* Adds a lane for each slot. */
static void add_own(const struct mt_job_order *order, const struct part *part, uint32_t unit,
                    struct mt_job_lanes *lanes)
{
    for (uint32_t i = part->first_slot; i < part->first_slot + part->slot_count; i++) {
        const struct mt_job_slot *slot = &order->slots[i];
        uint32_t first = slot->place - part->place;
        uint32_t begin = share(first, part->size, (uint64_t)part->span.size * unit);
        uint32_t end =
            share((uint64_t)first + slot->size, part->size, (uint64_t)part->span.size * unit);

        lanes->lanes[lanes->count++] =
            (struct mt_job_lane){part->span.at * unit + begin, end - begin, i, 1};
    }
}

/* Adds a lane for each unit. A gap may fill several lanes. */
static void add_shared(const struct mt_job_order *order, const struct part *part, uint32_t unit,
                       struct mt_job_lanes *lanes)
{
    struct mt_job_lane *first = &lanes->lanes[lanes->count];

    for (uint32_t i = 0; i < part->span.size; i++)
        first[i] = (struct mt_job_lane){(part->span.at + i) * unit, unit, 0, 0};
    for (uint32_t i = part->first_slot; i < part->first_slot + part->slot_count; i++) {
        const struct mt_job_slot *slot = &order->slots[i];
        uint32_t place = slot->place - part->place;
        uint32_t last = share((uint64_t)place + slot->size - 1, part->size, part->span.size);

        for (uint32_t at = share(place, part->size, part->span.size); at <= last; at++) {
            if (!first[at].slot_count)
                first[at].first_slot = i;
            first[at].slot_count = i - first[at].first_slot + 1;
            lanes->is_shared |= first[at].slot_count > 1;
        }
    }
    lanes->count += part->span.size;
}

static void add_part(const struct mt_job_order *order, const struct part *part, uint32_t unit,
                     struct mt_job_lanes *lanes)
{
    if ((uint64_t)part->span.size * unit >= part->size)
        add_own(order, part, unit, lanes);
    else
        add_shared(order, part, unit, lanes);
}

static void add_groups(const struct mt_job_order *order, uint32_t units, uint32_t unit,
                       struct mt_job_lanes *lanes)
{
    uint32_t borders = order->group_count - 1;
    uint32_t distance = borders ? (uint32_t)mt_min_u64((GROUP_DISTANCE + unit - 1) / unit,
                                                       units / DISTANCE_SHARE / borders)
                                : 0;
    uint32_t rest = units - distance * borders - order->group_count;

    for (uint32_t g = 0; g < order->group_count; g++) {
        const struct mt_job_slot_group *group = &order->groups[g];
        uint32_t begin = share(group->place, order->place_count, rest);
        uint32_t end = share((uint64_t)group->place + group->size, order->place_count, rest);
        struct part part = {group->first_slot,
                            group->slot_count,
                            group->place,
                            group->size,
                            {begin + g * (distance + 1), end - begin + 1}};

        add_part(order, &part, unit, lanes);
        lanes->groups[g] = (struct mt_job_span){part.span.at * unit, part.span.size * unit};
    }
}

void mt_job_lanes_make(const struct mt_job_order *order, struct mt_arena *arena, uint32_t pixels,
                       uint32_t unit, struct mt_job_lanes *lanes)
{
    uint32_t units = pixels / unit;

    *lanes = (struct mt_job_lanes){.count = 0};
    lanes->lanes = mt_arena_array(arena, (size_t)pixels + 1, sizeof *lanes->lanes);
    if (!order->slot_count || !units)
        return;
    if (order->group_count > 1 && order->group_count > units / GROUP_PIXELS) {
        const struct part all = {0, order->slot_count, 0, order->place_count, {0, units}};

        add_part(order, &all, unit, lanes);
        return;
    }
    lanes->groups = mt_arena_array(arena, order->group_count, sizeof *lanes->groups);
    add_groups(order, units, unit, lanes);
}

const struct mt_job_lane *mt_job_lane_of(const struct mt_job_order *order,
                                         const struct mt_job_lanes *lanes, uint32_t row)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        const struct mt_job_lane *lane = &lanes->lanes[i];

        for (uint32_t s = lane->first_slot; s < lane->first_slot + lane->slot_count; s++)
            if (order->slots[s].row == row)
                return lane;
    }
    return NULL;
}
