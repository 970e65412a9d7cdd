/* A plan for the step that a program repeats: where each of its requests goes in
 * one arena, worked out before the run (analyzer/optimal), as STAlloc does.
 *
 * - Steps are those that the trace names, else those that are found
 *   (found_phases.h). The repeating step is the one whose requests (size, in
 *   order) return in the steps that ask for the most bytes together.
 * - Planned are the requests of the default pool, on the stream that asks for most,
 *   that are free again before the step ends, in all of these steps; each for as
 *   long as the longest of them. What outlives its step is not.
 * - In every step, requests are matched to the plan in order, by size: the next
 *   one of that size, if it is among the next four. A request that has no match, or
 *   that outlives its step, is not planned. Whether the place is really free is for
 *   the policy to see: other steps may free later.
 */
#ifndef MT_ANALYZER_STEP_PLAN_H
#define MT_ANALYZER_STEP_PLAN_H

#include "device_plan.h"
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

/* 1 + entry for the request of an event, 0 = it is not planned. */
static inline uint32_t mt_step_plan_of(const struct mt_step_plan *plan, uint64_t seq)
{
    return seq < plan->count ? plan->of_event[seq] : 0;
}

#endif
