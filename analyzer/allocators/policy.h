/* The door of every simulated allocator: one file each, one line in the table of
 * policies.c. A policy sees requests only, and a device; it answers with
 * blocks. It never sees recorded addresses (the device model hands out bases,
 * recorded or synthetic).
 *
 * Blocks are named by handles, small dense integers that the policy chooses
 * and may reuse after free_completed. */
#ifndef MT_ANALYZER_POLICY_H
#define MT_ANALYZER_POLICY_H

#include "counters.h"
#include "device_model.h"
#include "source.h"

struct mt_policy_request {
    uint64_t size_bytes;
    uint32_t stream;      /* symbol id */
    uint16_t pool;        /* symbol id, 0 = default */
    uint64_t addr;        /* recorded address: for the policy `recorded` and for `place` */
    uint64_t block_bytes; /* recorded block size, 0 = unknown: likewise */
};

struct mt_policy_block {
    uint32_t handle;
    uint64_t addr;
    uint64_t size_bytes;
};

struct mt_policy; /* one instance: one device, one set of options */
struct mt_heap_rules;

/* What an instance is made of. header, symbols and device are borrowed. */
struct mt_policy_setup {
    const char *options;                  /* the text after "name:"; NULL = the name stood alone */
    const struct mt_trace_header *header; /* of the recorded run; may be NULL */
    const struct mt_symbols *symbols;
    struct mt_device_model *device;
    char *spelling; /* gets the canonical spelling */
    size_t spelling_size;
};

struct mt_policy_ops {
    const char *name;
    const char *summary; /* one line for --help */
    const char *doubt;   /* why the result is approximate, a clause for people;
                            NULL = rules fully known and checked */

    /* Standing alone, the name means the options and the limit of the recorded
     * run; the others know nothing of that run. */
    bool follows_recording;

    /* How mt_policy_create makes an instance: one of the two. */
    const struct mt_heap_rules *heap; /* heap.h */
    enum mt_status (*create)(const struct mt_policy_setup *setup, struct mt_policy **policy,
                             struct mt_error *error);
    void (*destroy)(struct mt_policy *policy);

    /* MT_OK, MT_ERR_DEVICE_OOM (counted by the policy), or a host error. */
    enum mt_status (*alloc)(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *block);
    /* A block at request->addr of exactly request->block_bytes, out of the one free block of the
     * request's pool and stream that holds it: how a checkpoint of a private pool is put back.
     * MT_ERR_FORMAT = there is no such free block. NULL = blocks lie where the rules say. */
    enum mt_status (*place)(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *block);
    /* Is that part of the request's pool a segment without any block in it? NULL if `place` is. */
    bool (*is_idle_segment)(struct mt_policy *policy, const struct mt_policy_request *request);
    enum mt_status (*free_requested)(struct mt_policy *policy, uint32_t handle);
    enum mt_status (*free_completed)(struct mt_policy *policy, uint32_t handle);
    enum mt_status (*empty_cache)(struct mt_policy *policy);

    /* Would this request give cached memory back to the driver first? Asked
     * when a trace shows segment frees before an allocation, to tell a retry
     * from an explicit empty_cache(). NULL = never. */
    bool (*would_release)(struct mt_policy *policy, const struct mt_policy_request *request);

    /* State of a trace that starts in the middle. Segments first, ascending
     * by address, then live blocks, ascending; then `restored` once. NULL =
     * the policy starts empty and the engine feeds it ordinary requests. */
    enum mt_status (*restore_segment)(struct mt_policy *policy, const struct mt_event *segment);
    enum mt_status (*restore_block)(struct mt_policy *policy, const struct mt_event *block,
                                    struct mt_policy_block *out);
    enum mt_status (*restored)(struct mt_policy *policy);

    /* Segment events of the trace, for the policy `recorded` alone. */
    enum mt_status (*follow_segment)(struct mt_policy *policy, const struct mt_event *event);

    const struct mt_counters *(*counters)(const struct mt_policy *policy);

    /* As `doubt`, of this instance: NULL if there is none. NULL = never. */
    const char *(*own_doubt)(const struct mt_policy *policy);

    /* Whole-structure check, between two calls: true if every invariant holds, else *why names the
     * broken one. No trace, however damaged, may make it false. */
    bool (*is_sound)(const struct mt_policy *policy, const char **why);
};

/* Those that have a part in an analysis; the others are in mt_policies alone. */
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

#endif
