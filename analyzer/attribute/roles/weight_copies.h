/* Copies of weights in half precision. Autocast casts each weight where an operator first uses it,
 * and keeps the copy until autocast, or the graph of backward, ends.
 *
 * A copy has half the size of a block that existed before the model was first called. It is made by
 * the line of the operator, before the operator's result: in the run of allocations that the line
 * makes one after the other, a later block outlives the run. (The result of a line that casts
 * nothing comes first, and workspaces end in the run.) Stacks with native frames show the cast
 * itself. Lines and sizes are copies if, for each size, no more such blocks are made in a call, or
 * live at one time, than parameters of twice the size exist; and if these parameters have a quarter
 * of all bytes that existed before: results have such sizes by chance, but not for most weights.
 *
 * Memory: 12 bytes for each of the first million blocks from before the first call, 40 for each
 * pair of a stack and a size that may be a copy, 16 for each live block of these. */
#ifndef MT_ANALYZER_WEIGHT_COPIES_H
#define MT_ANALYZER_WEIGHT_COPIES_H

#include "map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_copy_size {
    uint32_t units;      /* of a copy, 512 bytes each */
    uint32_t parameters; /* of twice the size */
    uint32_t call;       /* in which it was last made */
    uint32_t in_call, most_in_call, alive, most_alive;
    bool is_copy;
};

/* A stack that makes blocks of a size. */
struct mt_copy_maker {
    uint32_t stack, size; /* index of the size */
    uint32_t births, alone;
    bool is_copy;
};

/* Consecutive allocations of one stack. */
struct mt_copy_run {
    uint64_t first; /* allocation number */
    uint64_t ended; /* bit i: block first + i has ended */
    uint32_t stack, call, count;
    bool casts;
    uint32_t makers[64]; /* MT_MAP_NONE: cannot be a copy */
};

/* Zeroed memory is ready. */
struct mt_weight_copies {
    struct mt_copy_size *sizes;
    struct mt_copy_maker *makers;
    uint64_t *early; /* allocations from before the first call */
    uint32_t *early_sizes;
    size_t size_count, size_capacity, maker_count, maker_capacity;
    size_t early_count, early_capacity, early_size_capacity;
    struct mt_map size_of, maker_of; /* units; stack and units */
    struct mt_map live;              /* allocation -> size */
    struct mt_copy_run run;
};

struct mt_copy_birth {
    uint64_t allocation, bytes; /* requested */
    uint32_t stack, call;
    bool is_early;   /* before the first call */
    bool in_forward; /* or in the loss */
    bool casts;      /* the stack shows a cast */
};

void mt_weight_copies_release(struct mt_weight_copies *copies);

/* Takes allocations in order of their numbers, and their ends. O(1). */
void mt_weight_copies_birth(struct mt_weight_copies *copies, const struct mt_copy_birth *birth);
void mt_weight_copies_end(struct mt_weight_copies *copies, uint64_t allocation);

/* Decides, after the last event. `is_parameter`: whether an allocation from before the first call
 * may be a parameter. */
void mt_weight_copies_finish(struct mt_weight_copies *copies,
                             bool (*is_parameter)(const void *context, uint64_t allocation),
                             const void *context);

/* Whether blocks of that stack and requested size are copies. */
bool mt_weight_copies_has(const struct mt_weight_copies *copies, uint32_t stack, uint64_t bytes);

#endif
