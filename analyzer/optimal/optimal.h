/* A lower bound for offline planners, and a plan close to it: dynamic storage allocation for one
 * device. */
#ifndef MT_ANALYZER_OPTIMAL_H
#define MT_ANALYZER_OPTIMAL_H

#include "buffers.h"
#include "placement.h"

struct mt_optimal_options {
    uint64_t time_ns; /* time limit; 0 = no clock, a fixed amount of work: the same input gives the
                         same plan */
    uint64_t capacity_bytes;         /* stop at a plan of this height; 0 = the lowest */
    void (*progress)(void *context); /* called occasionally during the search; may be NULL */
    void *context;
};

struct mt_optimal_result {
    uint64_t lower_bound_bytes; /* no plan is lower: the largest load, or more if a search has
                                   proved it */
    uint64_t max_load_bytes;
    uint64_t plan_bytes; /* height of the plan, which was checked */
    uint64_t used_ns;
    bool proven_optimal; /* lower bound and plan meet */
    uint64_t *addresses; /* of every buffer */
};

/* Fills *result, which the caller releases. Returns MT_ERR_UNSUPPORTED if the plan fails its check,
 * which no valid buffers cause. */
enum mt_status mt_optimal_solve(const struct mt_buffers *buffers,
                                const struct mt_optimal_options *options,
                                struct mt_optimal_result *result,
                                struct mt_error *error) MT_MUST_USE;
void mt_optimal_release(struct mt_optimal_result *result);

/* Improves an order: place, move items without room below the target forward, place again. */

/* The order and the plan of one attempt. Improvers use it in turn. Zeroed memory is empty. */
struct mt_draft {
    struct mt_occupancy occupancy;
    uint32_t *order;
    uint64_t *addresses;
    size_t order_capacity, address_capacity;
};

struct mt_improver {
    const struct mt_instance *instance; /* borrowed, like the next two */
    struct mt_draft *draft;
    uint64_t *addresses; /* the best plan so far */
    uint32_t *best_order;
    uint64_t height; /* of the best plan; UINT64_MAX = none yet */
    enum mt_fit fit;
    uint64_t random;
    uint32_t since_progress;
    uint64_t placements; /* work done so far */
};

void mt_draft_release(struct mt_draft *draft);

/* Room for the addresses of all items is the caller's. */
void mt_improver_init(struct mt_improver *improver, const struct mt_instance *instance,
                      struct mt_draft *draft, uint64_t *addresses);
void mt_improver_release(struct mt_improver *improver);

/* Tries the usual orders, first fit and best fit, until one reaches `goal` or the deadline passes;
 * always finishes the first. */
void mt_improver_construct(struct mt_improver *improver, uint64_t goal, uint64_t deadline_ns);

#endif
