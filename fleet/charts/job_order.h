/* The order of a job's ranks in a picture. Ranks are grouped by the axis that explains most of the
 * differences in memory. Within a group, they are sorted by rank, then by device. Missing ranks
 * keep their positions. */
#ifndef MT_RENDER_JOB_ORDER_H
#define MT_RENDER_JOB_ORDER_H

#include "arena.h"
#include "job_report.h"

/* A row of the report, or a gap: consecutive ranks of a group that are missing. */
struct mt_job_slot {
    uint32_t row;        /* MT_NO_ROW: a gap */
    int32_t rank, last;  /* first and last rank, equal for a row; -1 = not known */
    uint32_t count;      /* number of missing ranks; 0 for a row */
    uint32_t coordinate; /* coordinate on the axis; MT_NO_ROW = not known */
    /* the first place in the picture, and the number of places, which is 1 for a row */
    uint32_t place, size;
};

struct mt_job_slot_group {
    uint32_t coordinate; /* MT_NO_ROW = not known */
    uint32_t first_slot, slot_count;
    uint32_t place, size; /* first place, and number of places */
};

struct mt_job_order {
    const struct mt_job_report *report;
    const struct mt_job_axis *axis; /* the axis of the groups; NULL: there is one group */
    struct mt_job_slot *slots;
    uint32_t slot_count;
    struct mt_job_slot_group *groups;
    uint32_t group_count;
    uint32_t place_count;
    bool is_shortened; /* a gap has fewer places than ranks */
};

/* Makes the order. Its arrays are in `arena`. All gaps together have at most as many places as
 * there are rows (or 8 if there are fewer rows), because a job may have far more ranks than were
 * recorded. O(n log n) in rows and gaps. */
void mt_job_order_make(const struct mt_job_report *report, struct mt_arena *arena,
                       struct mt_job_order *order);

/* A range of whole pixels along the axis of ranks. It shows one slot, or several neighbors of one
 * group if there are more places than pixels. */
struct mt_job_lane {
    uint32_t at, size; /* pixels */
    uint32_t first_slot, slot_count;
};

struct mt_job_span {
    uint32_t at, size; /* pixels */
};

struct mt_job_lanes {
    struct mt_job_lane *lanes; /* ascending */
    uint32_t count;
    /* pixels of each group of the order; NULL: there are too many groups */
    struct mt_job_span *groups;
    bool is_shared; /* a lane has several slots */
};

/* Divides `pixels` pixels into lanes. Where places have to share lanes, each lane has `unit`
 * pixels. */
void mt_job_lanes_make(const struct mt_job_order *order, struct mt_arena *arena, uint32_t pixels,
                       uint32_t unit, struct mt_job_lanes *lanes);

/* Returns the lane that contains the row. */
const struct mt_job_lane *mt_job_lane_of(const struct mt_job_order *order,
                                         const struct mt_job_lanes *lanes, uint32_t row);

/* Returns the lowest rank of a lane that is a multiple of `step`; -1 = there is none. */
int32_t mt_job_lane_round_rank(const struct mt_job_order *order, const struct mt_job_lane *lane,
                               uint64_t step);

#endif
