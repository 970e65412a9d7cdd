/* What most simulated allocators share: segments from the device, cut into
 * blocks, the free ones filed in ordered sets. A policy made of it adds the
 * rules: which free list, which key, when to cut, when to grow.
 *
 * A free list is one set of free blocks: a stream's, a size class's, as the policy
 * likes. A block belongs to one free list at a time (block.reservation), and free
 * neighbours merge only within a free list.
 *
 * A policy whose struct begins with a heap may use the mt_heap_op_* functions
 * in its table. inactive_split is PyTorch's notion and stays 0. */
#ifndef MT_ANALYZER_HEAP_H
#define MT_ANALYZER_HEAP_H

#include "block_store.h"
#include "free_set.h"
#include "policy.h"

/* No program asks for more; sums of sizes stay far from overflow. */
#define MT_HEAP_MAX_REQUEST ((uint64_t)1 << 44)
#define MT_HEAP_MAX_SEGMENT ((uint64_t)1 << 45)

struct mt_policy_option;

struct mt_heap_free_list {
    uint64_t name; /* the policy's: a stream, a class */
    struct mt_free_set free;
};

struct mt_heap_key {
    uint64_t major, minor;
};

/* The part of a free block that a request gets; the block is in no free set. */
struct mt_heap_share {
    uint32_t block;
    uint32_t free_list; /* that the share belongs to from now on; MT_NO_BLOCK = that of its block */
    uint64_t size_bytes;
};

typedef enum mt_status (*mt_heap_finder)(struct mt_policy *self,
                                         const struct mt_policy_request *request,
                                         struct mt_heap_share *share);

/* A policy whose struct mt_policy begins with a heap, for mt_policy_ops.heap. */
struct mt_heap_rules {
    size_t size_bytes; /* of struct mt_policy */
    const struct mt_policy_option *options;
    size_t option_count; /* at most MT_HEAP_MAX_OPTIONS */
    /* These four as in struct mt_heap. */
    struct mt_heap_key (*key)(const struct mt_block *block);
    bool own_addresses, may_touch;
    mt_heap_finder find;
    bool has_one_free_list; /* free list 0, there from the start */
    /* Takes over the values of the options; those that it changes are spelled as it leaves them.
     * The heap is there already. NULL = nothing to do. */
    enum mt_status (*init)(struct mt_policy *self, uint64_t *values, struct mt_error *error);
};

enum { MT_HEAP_MAX_OPTIONS = 5 };

struct mt_heap {
    struct mt_device_model *device;
    uint64_t limit_bytes; /* of what is reserved; 0 = none */
    /* Order of free blocks in a free list; NULL = (size, address), best fit. Must
     * be unique in a free list and stay the same while a block is free. */
    struct mt_heap_key (*key)(const struct mt_block *block);
    /* Addresses without the device's supply, aligned to the size's power of two:
     * for policies that go to the device all the time, or need the alignment. */
    bool own_addresses;
    bool is_of_run;       /* the trace names this policy as the run's: segments lie where its did */
    bool may_touch;       /* free neighbours in one free list may stay apart */
    mt_heap_finder find;  /* for mt_heap_op_alloc: MT_OK, MT_ERR_DEVICE_OOM or a host error */
    uint64_t next_addr;   /* own addresses */
    uint64_t puts;        /* clock of mt_heap_put: block.gc_base */
    uint64_t loose_bytes; /* reserved, but in no block */
    struct mt_block_store store;
    struct mt_counters counters;
    struct mt_heap_free_list *free_lists;
    uint32_t free_list_count;
    size_t free_list_capacity;
};

void mt_heap_init(struct mt_heap *heap, struct mt_device_model *device);

/* Of what is reserved, by the policy itself; the device's holds as well. 0 = none. */
void mt_heap_limit(struct mt_heap *heap, uint64_t limit_bytes);
void mt_heap_release(struct mt_heap *heap);

/* Index of the free list of that name, made if new. */
enum mt_status mt_heap_free_list(struct mt_heap *heap, uint64_t name,
                                 uint32_t *free_list) MT_MUST_USE;

/* Would this many more bytes pass a limit? */
bool mt_heap_exceeds(const struct mt_heap *heap, uint64_t size_bytes);

/* A new segment: one free block of `free_list`, in no set. MT_ERR_DEVICE_OOM beyond
 * the limit; counted in device->refusals, not in counters.ooms. */
enum mt_status mt_heap_grow(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                            uint32_t free_list, uint32_t *block) MT_MUST_USE;

/* The same once more after giving back idle segments, if the limit refused. */
enum mt_status mt_heap_grow_or_flush(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                                     uint32_t free_list, uint32_t *block) MT_MUST_USE;

/* A free block at a new address, in no set; nothing is counted. */
enum mt_status mt_heap_place(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                             uint32_t free_list, uint32_t *block) MT_MUST_USE;

/* Gives back one segment: a free block without neighbours, in no set. */
enum mt_status mt_heap_drop(struct mt_heap *heap, uint32_t block) MT_MUST_USE;

/* Gives back every segment whose blocks are all free. */
enum mt_status mt_heap_drop_idle(struct mt_heap *heap) MT_MUST_USE;

/* Files a free block in its free list; takes it out again. */
enum mt_status mt_heap_put(struct mt_heap *heap, uint32_t block) MT_MUST_USE;
void mt_heap_take(struct mt_heap *heap, uint32_t block);

/* First block of a free list with key >= (major, 0), taken out; MT_NO_BLOCK if none. */
uint32_t mt_heap_take_first(struct mt_heap *heap, uint32_t free_list, uint64_t major);

/* Hands out a free block that is in no set; if it is longer than size_bytes,
 * the rest is filed in the same free list. */
enum mt_status mt_heap_hand_out(struct mt_heap *heap, uint32_t block, uint64_t size_bytes,
                                uint64_t requested_bytes, struct mt_policy_block *out) MT_MUST_USE;

/* The block is free again, but in no set and not merged. */
void mt_heap_complete(struct mt_heap *heap, uint32_t block);

/* Swallows free neighbours of the same free list, next one first. */
void mt_heap_merge(struct mt_heap *heap, uint32_t block);

/* For mt_policy_create: an instance of a policy with ops->heap. */
enum mt_status mt_heap_create(const struct mt_policy_ops *ops, const struct mt_policy_setup *setup,
                              struct mt_policy **policy, struct mt_error *error) MT_MUST_USE;

/* Entries that most of these policies have. */
#define MT_HEAP_OPS                                                                                \
    .destroy = mt_heap_op_destroy, .alloc = mt_heap_op_alloc,                                      \
    .free_requested = mt_heap_op_free_requested, .counters = mt_heap_op_counters,                  \
    .is_sound = mt_heap_op_is_sound

void mt_heap_op_destroy(struct mt_policy *policy);
enum mt_status mt_heap_op_alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                                struct mt_policy_block *out);
enum mt_status mt_heap_op_free_requested(struct mt_policy *policy, uint32_t handle);
enum mt_status mt_heap_op_free_completed(struct mt_policy *policy, uint32_t handle);
/* For blocks that never merge; those of no free list (MT_NO_BLOCK) are segments, and go back. */
enum mt_status mt_heap_op_free_whole(struct mt_policy *policy, uint32_t handle);
enum mt_status mt_heap_op_keep_cache(struct mt_policy *policy); /* has no such call */
enum mt_status mt_heap_op_drop_idle(struct mt_policy *policy);
const struct mt_counters *mt_heap_op_counters(const struct mt_policy *policy);

/* Blocks touch, merged where they should, are filed if and only if free, and
 * the counters are what the blocks say. */
bool mt_heap_op_is_sound(const struct mt_policy *policy, const char **why);

#endif
