/* A plan for the repeated step of a program: a place for each of its requests in one arena,
 * computed before the run (analyzer/optimal), like STAlloc.
 *
 * - Steps are recorded or inferred (inferred_phases.h). Steps are equal if they request the same
 * sizes in the same order. The planned step is the one whose equal steps together request most
 * bytes.
 * - The plan covers requests of the default pool, on the stream that requests most, if their blocks
 *   are free again before the step ends in all equal steps. It reserves each place for the longest
 *   life of the block in these steps. Blocks that outlive their step are not planned.
 * - In every step, requests are matched to the plan in order, by size: the next
 *   one of that size, if it is among the next four. A request that has no match, or
 *   that outlives its step, is not planned. The policy checks whether the place is really free:
 * other steps may free later. */
#ifndef MT_ANALYZER_STEP_PLAN_H
#define MT_ANALYZER_STEP_PLAN_H

#include "policy.h"
#include "source.h"

#define MT_PLAN_DEVICES 64

/* Zeroed memory is empty. */
struct mt_step_plan {
    struct mt_device_plan devices[MT_PLAN_DEVICES]; /* by number */
    uint32_t *of_event; /* by event number: 1 + entry of the device's plan, 0 = not planned */
    size_t count;       /* room, all of it in use */
};

/* Reads the source from its start to its end, and rewinds it. MT_ERR_UNSUPPORTED
 * if no step repeats. Memory: that of all requests. */
enum mt_status mt_step_plan_make(struct mt_source *source, struct mt_step_plan *plan,
                                 struct mt_error *error) MT_MUST_USE;
void mt_step_plan_release(struct mt_step_plan *plan);

/* 1 + entry of an event's request, 0 = not planned. */
static inline uint32_t mt_step_plan_of(const struct mt_step_plan *plan, uint64_t seq)
{
    return seq < plan->count ? plan->of_event[seq] : 0;
}

#endif
