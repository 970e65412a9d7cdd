/* From stretches to steps. A step of a training program goes from one turn of
 * its loop to the next, but not before backward was in it and, if the program
 * changes its parameters less often (gradient accumulation), not before the
 * optimizer was. A program that only calls a model, or none, has a step for
 * each turn of its outermost loop. */
#ifndef MT_ANALYZER_STEP_GROUPS_H
#define MT_ANALYZER_STEP_GROUPS_H

#include "stretches.h"

/* One part, or one step: stretches [first, end), which are neighbours. */
struct mt_group {
    size_t first, end;
};

struct mt_step_groups {
    const struct mt_stretches *stretches;
    bool *starts;   /* by stretch: a turn that may begin a step begins with it */
    bool *trains;   /* by stretch: backward follows in its turn, or it is that */
    bool *clears;   /* by stretch: gradients are cleared from it on, before a model's call */
    uint32_t *seen; /* by place: in how many steps */
    uint32_t place_count, turn_count;
    struct mt_group *steps;
    size_t step_count;
    bool has_backward;
};

/* Changes kinds in the stretches: what fetches a batch becomes data, what is
 * before backward on another thread becomes forward. */
enum mt_status mt_step_groups_make(struct mt_step_groups *groups,
                                   struct mt_stretches *stretches) MT_MUST_USE;
void mt_step_groups_release(struct mt_step_groups *groups);

/* Is the stretch part of a forward pass that nothing goes backward from, in a
 * program that trains? */
bool mt_step_groups_validates(const struct mt_step_groups *groups, size_t stretch);

#endif
