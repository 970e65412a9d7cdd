/* Groups intervals into steps. A step of a training program extends from one turn of its loop to
 * the next that follows backward and, if the program updates its parameters less often (gradient
 * accumulation), the optimizer. A program that only calls a model, or none, has a step for each
 * turn of its loops (step_loops.h). */
#ifndef MT_ANALYZER_STEP_GROUPS_H
#define MT_ANALYZER_STEP_GROUPS_H

#include "step_loops.h"
#include "work_intervals.h"

/* One part, or one step: the adjacent intervals [first, end). */
struct mt_group {
    size_t first, end;
    uint32_t loop; /* index + 1 in loops, 0 = unknown */
};

struct mt_step_groups {
    const struct mt_work_intervals *intervals;
    bool *starts; /* by interval: a turn that may begin a step starts here */
    bool *leaves; /* by interval: control has left a loop here */
    bool *trains; /* by interval: it is backward, or backward follows in the same turn */
    bool
        *clears; /* by interval: gradients are cleared at or after it, before a call of the model */
    uint32_t *seen; /* by place: in how many steps */
    uint32_t place_count, turn_count;
    struct mt_map enclosed;     /* pairs of lines: whether a loop turns around both */
    struct mt_step_loops loops; /* of the steps */
    bool follows_loops;         /* steps are turns of these loops alone */
    struct mt_group *steps;
    size_t step_count;
    bool has_backward;
};

/* Changes kinds of intervals: code that fetches a batch becomes data, and work before backward on
 * another thread becomes forward. */
void mt_step_groups_make(struct mt_step_groups *groups, struct mt_work_intervals *intervals);
void mt_step_groups_release(struct mt_step_groups *groups);

/* Whether the interval is part of a forward pass without backward, in a program that trains. */
bool mt_step_groups_validates(const struct mt_step_groups *groups, size_t interval);

#endif
