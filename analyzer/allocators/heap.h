/* What most simulated allocators share: segments from the device, cut into blocks, the free ones
 * filed in ordered sets. A policy based on it adds the rules: which free list, which key, when to
 * split, when to grow.
 *
 * A free list is one set of free blocks: of a stream or of a size class, as the policy decides. A
 * block belongs to one free list at a time (block.reservation), and free neighbors merge only
 * within a free list.
 *
 * A policy whose struct begins with a heap may use the mt_heap_op_* functions in its table.
 * inactive_split is PyTorch's notion and stays 0. */
#ifndef MT_ANALYZER_HEAP_H
#define MT_ANALYZER_HEAP_H

#include "block_store.h"
#include "policy.h"

/* No program requests more; keeps sums of sizes far from overflow. */
#define MT_HEAP_MAX_REQUEST ((uint64_t)1 << 44)
#define MT_HEAP_MAX_SEGMENT ((uint64_t)1 << 45)

struct mt_policy_option;

struct mt_heap_free_list {
    uint64_t name; /* chosen by the policy: a stream, a class */
    struct mt_free_set free;
};

struct mt_heap_key {
    uint64_t major, minor;
};

/* The part of a free block that serves a request; the block is in no free set. */
struct mt_heap_share {
    uint32_t block;
    uint32_t free_list; /* new free list of the share; MT_NO_BLOCK = unchanged */
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
    bool has_one_free_list; /* free list 0 exists from the start */
    /* Takes the values of the options. Values that it changes are spelled as changed. The heap
     * already exists. NULL = nothing to do. */
    enum mt_status (*init)(struct mt_policy *self, uint64_t *values, struct mt_error *error);
};

/* The members that every policy sets. */
#define MT_HEAP_RULES(options_, init_, find_)                                                      \
    .size_bytes = sizeof(struct mt_policy), .options = (options_),                                 \
    .option_count = MT_ARRAY_LEN(options_), .init = (init_), .find = (find_)

enum { MT_HEAP_MAX_OPTIONS = 5 };

struct mt_heap {
    struct mt_device_model *device;
    uint64_t limit_bytes; /* of reserved bytes; 0 = none. A policy that uses it other than through
                             mt_heap_exceeds clears device->only_compares */
    /* Order of free blocks in a free list; NULL = (size, address), best fit. Must
     * be unique in a free list and stay the same while a block is free. */
    struct mt_heap_key (*key)(const struct mt_block *block);
    /* Invents aligned addresses (to the size's power of two) without the device's supply: for
     * policies that call the device all the time, or need the alignment. */
    bool own_addresses;
    bool is_of_run; /* the trace names this policy as the run's: segments get the recorded addresses
                     */
    bool may_touch; /* free neighbors in one free list may stay separate */
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

/* Sets the policy's own limit of reserved bytes; that of the device also applies. 0 = none. */
void mt_heap_limit(struct mt_heap *heap, uint64_t limit_bytes);
void mt_heap_release(struct mt_heap *heap);

/* Index of the free list of that name, created if missing. */
void mt_heap_free_list(struct mt_heap *heap, uint64_t name, uint32_t *free_list);

/* Whether this many more bytes would exceed a limit. */
bool mt_heap_exceeds(const struct mt_heap *heap, uint64_t size_bytes);

/* Creates a segment: one free block of `free_list`, in no set. Returns MT_ERR_DEVICE_OOM beyond the
 * limit, which is counted in device->refusals, not in counters.ooms. */
enum mt_status mt_heap_grow(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                            uint32_t free_list, uint32_t *block) MT_MUST_USE;

/* The same, retried after releasing idle segments if the limit refused. */
enum mt_status mt_heap_grow_or_flush(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                                     uint32_t free_list, uint32_t *block) MT_MUST_USE;

/* A free block at a new address, in no set; nothing is counted. */
void mt_heap_place(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream, uint32_t free_list,
                   uint32_t *block);

/* Releases a segment: a free block without neighbors, in no set. */
void mt_heap_drop(struct mt_heap *heap, uint32_t block);

/* Releases every segment whose blocks are all free. */
void mt_heap_drop_idle(struct mt_heap *heap);

/* mt_heap_put files a free block in its free list. mt_heap_take removes it from there. */
void mt_heap_put(struct mt_heap *heap, uint32_t block);
void mt_heap_take(struct mt_heap *heap, uint32_t block);

/* Removes and returns the first block of a free list with key >= (major, 0); MT_NO_BLOCK if
 * none. */
uint32_t mt_heap_take_first(struct mt_heap *heap, uint32_t free_list, uint64_t major);

/* Allocates a free block that is in no set; files the rest beyond size_bytes in the same free
 * list. */
void mt_heap_hand_out(struct mt_heap *heap, uint32_t block, uint64_t size_bytes,
                      uint64_t requested_bytes, struct mt_policy_block *out);

/* Marks the block as free, but in no set and not merged. */
void mt_heap_complete(struct mt_heap *heap, uint32_t block);

/* Absorbs free neighbors of the same free list, the next one first. */
void mt_heap_merge(struct mt_heap *heap, uint32_t block);

/* For mt_policy_create: an instance of a policy with ops->heap. */
enum mt_status mt_heap_create(const struct mt_policy_ops *ops, const struct mt_policy_setup *setup,
                              struct mt_policy **policy, struct mt_error *error) MT_MUST_USE;

/* Entries that are the same in most of these policies. */
#define MT_HEAP_OPS                                                                                \
    .destroy = mt_heap_op_destroy, .alloc = mt_heap_op_alloc,                                      \
    .free_requested = mt_heap_op_free_requested, .counters = mt_heap_op_counters,                  \
    .is_sound = mt_heap_op_is_sound

void mt_heap_op_destroy(struct mt_policy *policy);
enum mt_status mt_heap_op_alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                                struct mt_policy_block *out);
enum mt_status mt_heap_op_free_requested(struct mt_policy *policy, uint32_t handle);
enum mt_status mt_heap_op_free_completed(struct mt_policy *policy, uint32_t handle);
/* For blocks that never merge; those of no free list (MT_NO_BLOCK) are segments, and are
 * released. */
enum mt_status mt_heap_op_free_whole(struct mt_policy *policy, uint32_t handle);
enum mt_status mt_heap_op_keep_cache(struct mt_policy *policy); /* the allocator has no such call */
enum mt_status mt_heap_op_drop_idle(struct mt_policy *policy);
const struct mt_counters *mt_heap_op_counters(const struct mt_policy *policy);

/* Checks that blocks touch, are merged where they should be, are filed if and only if free, and
 * that the counters match the blocks. */
bool mt_heap_op_is_sound(const struct mt_policy *policy, const char **why);

#endif
