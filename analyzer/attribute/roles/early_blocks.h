/* The first blocks of a trace that begins in the middle: where they were allocated and freed.
 * initial_roles.h infers roles from them.
 *
 * Costs 32 bytes for each of the first million allocations if the trace has blocks that were alive
 * when it began; otherwise nothing. */
#ifndef MT_ANALYZER_EARLY_BLOCKS_H
#define MT_ANALYZER_EARLY_BLOCKS_H

#include "phase_names.h"
#include "role.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_EARLY_LIVES UINT32_MAX

/* Later allocations are not evidence: the first turns of a program suffice. */
#define MT_EARLY_BLOCKS_MAX (1u << 20)

struct mt_early_block {
    uint64_t bytes;    /* requested, rounded up: old snapshots have only rounded sizes */
    uint32_t ended;    /* number of allocations before its end; MT_EARLY_LIVES */
    uint32_t end_turn; /* parts of backward begun before its end */
    uint16_t device;
    uint8_t birth_kind, end_kind;
    uint8_t stack_kind; /* initial: from its stack, enum mt_phase_kind */
    uint8_t role;       /* enum mt_role, MT_ROLE_OTHER = unknown */
    bool left_behind;   /* by the model's call, over several turns */
    bool initial;       /* alive when the trace began */
    bool died_in_part;  /* freed in the same part in which it was allocated */
    bool in_named_part; /* allocated in a part whose start is in the trace: a range that the program
                           or its framework named. In the argument of mt_early_blocks_end: freed in
                           such a part */
};

/* By the number of the allocation. Zeroed memory is ready. */
struct mt_early_blocks {
    struct mt_early_block *blocks;
    size_t count, capacity;
    size_t initial_count;    /* initial blocks come first */
    uint32_t first_part_end; /* allocations until a part began other than the one in which the trace
                                began; 0 = none */
    uint32_t last_part_end;  /* allocations until the last event in a part */
    uint32_t turns;          /* parts of backward begun */
    uint8_t first_kind, last_kind;
    bool begun, saw_part;
    bool first_is_named; /* the start of the part in which the trace begins is in the trace */
};

/* A part of a training step. */
static inline bool mt_early_is_part(uint8_t kind)
{
    return kind == MT_PHASE_FORWARD || kind == MT_PHASE_LOSS || kind == MT_PHASE_BACKWARD ||
           kind == MT_PHASE_OPTIMIZER;
}

void mt_early_blocks_release(struct mt_early_blocks *early);

/* Takes allocation number `allocation`, in order. Returns immediately if the first one was not
 * alive when the trace began. */
void mt_early_blocks_birth(struct mt_early_blocks *early, uint64_t allocation,
                           const struct mt_early_block *block);

/* Takes the end of a block: kind, died_in_part and in_named_part are set; for blocks that were not
 * alive when the trace began also the role, if it is settled, and left_behind. */
void mt_early_blocks_end(struct mt_early_blocks *early, uint64_t allocation,
                         const struct mt_early_block *end);

#endif
