#include "job_order.h"
#include "sorted.h"

#include <stdlib.h>

#include "util.h"

#define MIN_GAP_PLACES 8    /* limit for the places of gaps in a job with few rows */
#define PIECES_A_ROW   4    /* limit for the pieces into which groups cut gaps, per row */
#define MIN_PIECES     4096 /* this many pieces are always allowed */

/* Chooses the axis that explains the most. Breaks ties in favor of the slower axis, because its
 * groups are adjacent. */
static const struct mt_job_axis *choose_axis(const struct mt_job_report *report)
{
    const struct mt_job_axis *best = NULL;

    for (uint32_t i = 0; i < report->axis_count; i++) {
        const struct mt_job_axis *axis = &report->axes[i];

        if (axis->separates && axis->group_count >= 2 &&
            (!best || axis->explained_ppm > best->explained_ppm))
            best = axis;
    }
    return best;
}

static bool rows_have_stride(const struct mt_job_order *order, uint64_t stride)
{
    const struct mt_job_report *report = order->report;
    size_t axis = (size_t)(order->axis - report->axes);

    for (uint32_t i = 0; i < report->row_count; i++) {
        int32_t rank = report->rows[i].record->identity.rank;

        if (rank >= 0 && report->rows[i].coordinates[axis] !=
                             (uint64_t)(uint32_t)rank / stride % order->axis->size)
            return false;
    }
    return true;
}

/* Returns the distance in ranks between coordinates; 0 = unknown. Recorded axes have no stride. For
 * them, tries the usual stride, with the last axis the fastest. */
static uint32_t stride_of(const struct mt_job_order *order)
{
    const struct mt_job_report *report = order->report;
    uint64_t stride = 1;

    if (!order->axis || !order->axis->size)
        return 0;
    if (order->axis->stride)
        return order->axis->stride;
    for (const struct mt_job_axis *axis = order->axis + 1; axis < report->axes + report->axis_count;
         axis++)
        stride = mt_mul_most_u64(stride, mt_max_u64(axis->size, 1));
    return stride <= INT32_MAX && rows_have_stride(order, stride) ? (uint32_t)stride : 0;
}

/* Returns the number of pieces of all gaps if they are cut so that the ranks of a piece share a
 * coordinate. */
static uint64_t count_pieces(const struct mt_job_report *report, uint64_t stride)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < report->missing_ranges; i++)
        count += (uint64_t)report->missing[i].last / stride -
                 (uint64_t)report->missing[i].first / stride + 1;
    return count;
}

/* Returns the stride at which gaps are cut; 0: they are not cut. */
static uint32_t cut_stride(const struct mt_job_order *order)
{
    uint64_t most = mt_max_u64(mt_mul_most_u64(order->report->row_count, PIECES_A_ROW), MIN_PIECES);
    uint32_t stride = stride_of(order);

    return stride && count_pieces(order->report, stride) <= most ? stride : 0;
}

static void add_gap(struct mt_job_order *order, int64_t first, int64_t last, uint32_t coordinate)
{
    order->slots[order->slot_count++] = (struct mt_job_slot){.row = MT_NO_ROW,
                                                             .rank = (int32_t)first,
                                                             .last = (int32_t)last,
                                                             .count = (uint32_t)(last - first + 1),
                                                             .coordinate = coordinate};
}

static void add_pieces(struct mt_job_order *order, const struct mt_job_range *range, int64_t stride)
{
    int64_t first = range->first, last;

    for (; first <= range->last; first = last + 1) {
        last = (first / stride + 1) * stride - 1;
        last = last < range->last ? last : range->last;
        add_gap(order, first, last, (uint32_t)(first / stride % order->axis->size));
    }
}

static void add_slots(struct mt_job_order *order, uint32_t stride)
{
    const struct mt_job_report *report = order->report;
    size_t axis = order->axis ? (size_t)(order->axis - report->axes) : 0;

    for (uint32_t i = 0; i < report->row_count; i++)
        order->slots[order->slot_count++] = (struct mt_job_slot){
            .row = i,
            .rank = report->rows[i].record->identity.rank,
            .last = report->rows[i].record->identity.rank,
            .coordinate = order->axis ? report->rows[i].coordinates[axis] : MT_NO_ROW};
    for (uint32_t i = 0; i < report->missing_ranges; i++)
        if (stride)
            add_pieces(order, &report->missing[i], stride);
        else
            add_gap(order, report->missing[i].first, report->missing[i].last, MT_NO_ROW);
}

/* Orders by coordinate, then by rank. Rows of one rank keep their order. A missing rank has no
 * row. */
MT_DEFINE_ORDER(compare_slots, struct mt_job_slot,
                MT_ASCENDING(coordinate) || MT_ASCENDING(rank) || MT_ASCENDING(row))

/* Merges adjacent gaps. */
static void join_gaps(struct mt_job_order *order)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < order->slot_count; i++) {
        struct mt_job_slot *slot = &order->slots[i], *last = kept ? &order->slots[kept - 1] : NULL;

        if (last && last->count && slot->count && last->coordinate == slot->coordinate) {
            last->count += slot->count;
            last->last = slot->last;
        } else {
            order->slots[kept++] = *slot;
        }
    }
    order->slot_count = kept;
}

static uint64_t gap_places(const struct mt_job_order *order, uint32_t most)
{
    uint64_t places = 0;

    for (uint32_t i = 0; i < order->slot_count; i++)
        places += mt_min_u64(order->slots[i].count, most);
    return places;
}

static void give_places(struct mt_job_order *order)
{
    uint64_t room = mt_max_u64(order->report->row_count, MIN_GAP_PLACES);
    uint32_t most = UINT32_MAX;

    while (most > 1 && gap_places(order, most) > room)
        most /= 2;
    for (uint32_t i = 0; i < order->slot_count; i++) {
        struct mt_job_slot *slot = &order->slots[i];

        slot->place = order->place_count;
        slot->size = slot->count ? (uint32_t)mt_min_u64(slot->count, most) : 1;
        order->is_shortened |= slot->count > slot->size;
        order->place_count += slot->size;
    }
}

static void find_groups(struct mt_job_order *order)
{
    struct mt_job_slot_group *group = NULL;

    for (uint32_t i = 0; i < order->slot_count; i++) {
        const struct mt_job_slot *slot = &order->slots[i];

        if (!group || group->coordinate != slot->coordinate) {
            group = &order->groups[order->group_count++];
            *group = (struct mt_job_slot_group){
                .coordinate = slot->coordinate, .first_slot = i, .place = slot->place};
        }
        group->slot_count++;
        group->size += slot->size;
    }
}

void mt_job_order_make(const struct mt_job_report *report, struct mt_arena *arena,
                       struct mt_job_order *order)
{
    *order = (struct mt_job_order){.report = report, .axis = choose_axis(report)};
    uint32_t stride = cut_stride(order);
    uint64_t most =
        report->row_count + (stride ? count_pieces(report, stride) : report->missing_ranges);
    order->slots = mt_arena_array(arena, most + 1, sizeof *order->slots);
    add_slots(order, stride);
    qsort(order->slots, order->slot_count, sizeof *order->slots, compare_slots);
    join_gaps(order);
    order->groups = mt_arena_array(arena, order->slot_count + (size_t)1, sizeof *order->groups);
    give_places(order);
    find_groups(order);
}
