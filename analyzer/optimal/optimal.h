/* What an offline planner needs at least, and a plan that needs hardly more: the
 * whole of dynamic storage allocation for one device. */
#ifndef MT_ANALYZER_OPTIMAL_H
#define MT_ANALYZER_OPTIMAL_H

#include "buffers.h"

struct mt_optimal_options {
    uint64_t time_ns;                /* stop then; 0 = no clock, a fixed amount of work: the same
                                        input gives the same plan */
    uint64_t capacity_bytes;         /* a plan as low as this is good enough; 0 = the lowest */
    void (*progress)(void *context); /* from time to time while it searches; may be NULL */
    void *context;
};

struct mt_optimal_result {
    uint64_t lower_bound_bytes; /* no plan is lower: the largest load, or more if a
                                   search has shown it */
    uint64_t max_load_bytes;
    uint64_t plan_bytes; /* height of the plan; it was checked */
    uint64_t used_ns;
    bool proven_optimal; /* lower bound and plan meet */
    uint64_t *addresses; /* of every buffer */
};

/* MT_ERR_UNSUPPORTED never happens for valid buffers; errors are of memory. */
enum mt_status mt_optimal_solve(const struct mt_buffers *buffers,
                                const struct mt_optimal_options *options,
                                struct mt_optimal_result *result,
                                struct mt_error *error) MT_MUST_USE;
void mt_optimal_release(struct mt_optimal_result *result);

#endif
