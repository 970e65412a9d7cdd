/* Watches a policy from outside: the blocks that it hands out, what it asks of
 * the device, and what it counts. Knows nothing of its insides or its rules but
 * the promises of policy.h:
 *
 *   - blocks that are alive do not overlap, are aligned, and lie in memory that
 *     is held from the device; nothing that is in use goes back
 *   - what is held is what was requested less what was released, within the limit
 *   - levels are what the blocks say, peaks the largest level there ever was */
#ifndef MT_TESTS_POLICY_OBSERVER_H
#define MT_TESTS_POLICY_OBSERVER_H

#include "policy.h"

enum { OBSERVER_BLOCKS = 256, OBSERVER_RANGES = 1024 };

struct observed_block {
    struct mt_policy_block block;
    uint64_t requested;
    bool pending;
};

struct observed_range {
    uint64_t addr, size;
};

struct policy_observer {
    const struct mt_policy_ops *ops;
    const struct mt_policy *policy;
    const struct mt_device_model *device;
    uint64_t alignment;
    uint64_t overshoot; /* by which the limit may be passed */
    bool unlogged;      /* the policy does not log what it asks of the device */

    struct observed_block blocks[OBSERVER_BLOCKS];
    size_t count;
    struct observed_range ranges[OBSERVER_RANGES]; /* held from the device */
    size_t range_count;
    size_t seen; /* entries of the device's log */
    struct mt_counters counted;
    char trouble[240]; /* the first broken promise, "" = none */
};

/* The caller sets what is above, and zeroes the rest. */

/* A request of `size_bytes` that the policy served with `block`. */
void observer_took(struct policy_observer *observer, uint64_t size_bytes,
                   const struct mt_policy_block *block);
void observer_free_requested(struct policy_observer *observer, size_t i);
void observer_free_completed(struct policy_observer *observer, size_t i);

/* Reads the device's log on from where it was; may be called at any time. */
void observer_look(struct policy_observer *observer);
void observer_new_log(struct policy_observer *observer); /* starts again */

/* Between two calls of the policy: compares all counters. */
void observer_compare(struct policy_observer *observer);
/* Also asks the policy whether its structure is sound: costs more. */
void observer_look_inside(struct policy_observer *observer);

#endif
