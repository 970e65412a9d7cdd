/* Places of the requests of a planned step on one device: made by step_plan.h, used by the policy
 * `planned`. */
#ifndef MT_ANALYZER_DEVICE_PLAN_H
#define MT_ANALYZER_DEVICE_PLAN_H

#include <stdint.h>

#include "replay_result.h"

#define MT_NOT_PLANNED UINT64_MAX

/* One request of the planned step. */
struct mt_plan_entry {
    uint64_t bytes;  /* rounded up to 512 */
    uint64_t offset; /* in the arena; MT_NOT_PLANNED if it outlives the step */
};

/* The plan of one device; no entries = nothing is planned. */
struct mt_device_plan {
    struct mt_plan_entry *entries; /* in order of the requests */
    uint32_t entry_count, planned_count;
    struct mt_plan_share share; /* without hits and misses */
};

#endif
