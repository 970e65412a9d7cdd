/* The interface of every simulated allocator: one file each, one line in the table of policies.c. A
 * policy gets only requests and a device, and returns blocks. It never sees recorded addresses (the
 * device model supplies bases, recorded or synthetic).
 *
 * Blocks are named by handles, small dense integers that the policy chooses and may reuse after
 * free_completed. */
#ifndef MT_ANALYZER_POLICY_H
#define MT_ANALYZER_POLICY_H

#include <stdint.h>

#include "block_store.h"
#include "counters.h"
#include "device_model.h"
#include "replay_result.h"
#include "source.h"

struct mt_heap_rules;

struct mt_policy_request {
    uint64_t size_bytes;
    uint32_t stream;      /* symbol id */
    uint16_t pool;        /* symbol id, 0 = default */
    uint64_t addr;        /* recorded address: for the policy `recorded` and for `place` */
    uint64_t block_bytes; /* recorded block size, 0 = unknown; for the same uses */
};

struct mt_policy_block {
    uint32_t handle;
    uint64_t addr;
    uint64_t size_bytes;
};

struct mt_policy; /* one instance: one device, one set of options */

/* Inputs of an instance. header, symbols and device are borrowed. */
struct mt_policy_setup {
    const char *options;                  /* the text after "name:"; NULL = a bare name */
    const struct mt_trace_header *header; /* of the recorded run; may be NULL */
    const struct mt_symbols *symbols;
    struct mt_device_model *device;
    char *spelling; /* receives the canonical spelling */
    size_t spelling_size;
};

struct mt_policy_ops {
    const char *name;
    const char *summary; /* one line for --help */
    const char *doubt;   /* why the result is approximate, a clause for people;
                            NULL = rules fully known and checked */

    /* A bare name means the options and the limit of the recorded run; other policies do not use
     * that run. */
    bool follows_recording;

    /* mt_policy_create makes an instance through one of these two. */
    const struct mt_heap_rules *heap; /* heap.h */
    enum mt_status (*create)(const struct mt_policy_setup *setup, struct mt_policy **policy,
                             struct mt_error *error);
    void (*destroy)(struct mt_policy *policy);

    /* MT_OK, MT_ERR_DEVICE_OOM (counted by the policy), or a host error. */
    enum mt_status (*alloc)(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *block);
    /* Allocates a block at request->addr of exactly request->block_bytes, from the free block of
     * the request's pool and stream that contains it. This restores a checkpoint of a private pool.
     * 0 bytes: as many as the rules give, and the free block has to begin there. MT_ERR_FORMAT =
     * there is no such free block; MT_ERR_UNSUPPORTED = the search took too long. NULL = only the
     * rules place blocks. */
    enum mt_status (*place)(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *block);
    /* Returns whether the request's address and block size are a whole segment without blocks. NULL
     * if `place` is NULL. */
    bool (*is_idle_segment)(struct mt_policy *policy, const struct mt_policy_request *request);
    enum mt_status (*free_requested)(struct mt_policy *policy, uint32_t handle);
    enum mt_status (*free_completed)(struct mt_policy *policy, uint32_t handle);
    enum mt_status (*empty_cache)(struct mt_policy *policy);

    /* Whether this request would first release cached memory to the driver. Used when a trace shows
     * segment frees before an allocation, to distinguish a retry from an explicit empty_cache().
     * NULL = never. */
    bool (*would_release)(struct mt_policy *policy, const struct mt_policy_request *request);

    /* State of a trace that starts in the middle. Segments first, ascending
     * by address, then live blocks, ascending; then `restored` once. NULL =
     * the policy starts empty and the engine feeds it ordinary requests. */
    void (*restore_segment)(struct mt_policy *policy, const struct mt_event *segment);
    enum mt_status (*restore_block)(struct mt_policy *policy, const struct mt_event *block,
                                    struct mt_policy_block *out);
    enum mt_status (*restored)(struct mt_policy *policy);

    /* For replays that share their beginning (one_replay.h). `copy` returns an instance in the same
     * state, on a copy of the device. `most_tested` returns a bound of the sums that this request
     * compares with the limit if its group (lane.h) begins with an event of kind `first`, as long
     * as that refuses nothing; 0 = none of them exceeds `limit_bytes`; UINT64_MAX = the limit may
     * have other effects. Both are NULL if the policy cannot be copied. */
    struct mt_policy *(*copy)(const struct mt_policy *policy, struct mt_device_model *device);
    uint64_t (*most_tested)(struct mt_policy *policy, const struct mt_policy_request *request,
                            uint8_t first, uint64_t limit_bytes);

    /* Segment events of the trace, only for the policy `recorded`. */
    void (*follow_segment)(struct mt_policy *policy, const struct mt_event *event);

    const struct mt_counters *(*counters)(const struct mt_policy *policy);

    /* Returns the doubt of this instance, like `doubt`, or NULL. A NULL function = no doubt. */
    const char *(*own_doubt)(const struct mt_policy *policy);

    /* Whole-structure check between two calls: returns true if every invariant holds, otherwise
     * *why names the violated one. No trace, however damaged, may make it false. */
    bool (*is_sound)(const struct mt_policy *policy, const char **why);
};

/* Policies that the analysis itself uses; the others are only in mt_policies. */
extern const struct mt_policy_ops mt_policy_planned;
extern const struct mt_policy_ops mt_policy_pytorch;
extern const struct mt_policy_ops mt_policy_recorded;

/* All policies; ends with NULL. */
extern const struct mt_policy_ops *const mt_policies[];

const struct mt_policy_ops *mt_policy_find(const char *name, size_t length);

/* An instance for ops->destroy. Without options it has the defaults, or those of the recorded run.
 * MT_ERR_USAGE for wrong options, MT_ERR_UNSUPPORTED for those of another allocator. */
enum mt_status mt_policy_create(const struct mt_policy_ops *ops,
                                const struct mt_policy_setup *setup, struct mt_policy **policy,
                                struct mt_error *error) MT_MUST_USE;

/* Access to the policy `recorded`: the recorded positions of blocks. */

/* Returns all blocks, including free ones, of an instance of mt_policy_recorded. Unmapped address
 * space has no block: a free block that ends at such space, or at the end of its segment, has no
 * next one. */
const struct mt_block_store *mt_recorded_blocks(const struct mt_policy *policy);

/* Places of the requests of a planned step on one device: made by step_plan.h, used by the policy
 * `planned`. */

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
