#include "early_blocks.h"

#include "grow.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

/* No device has this much. Eight times the sum over MT_EARLY_BLOCKS_MAX blocks does not
 * overflow. */
#define MAX_BLOCK_BYTES ((uint64_t)1 << 40)

_Static_assert(MAX_BLOCK_BYTES <= UINT64_MAX / 8 / MT_EARLY_BLOCKS_MAX, "sums of sizes wrap");

void mt_early_blocks_release(struct mt_early_blocks *early)
{
    free(early->blocks);
    memset(early, 0, sizeof *early);
}

/* Frees outside of ranges have no evidence of their own: those before the first allocation belong
 * to its part. */
static void begin(struct mt_early_blocks *early, uint8_t kind, bool named)
{
    early->first_kind = kind;
    early->first_is_named = named;
    for (size_t i = 0; i < early->count; i++)
        if (early->blocks[i].ended != MT_EARLY_LIVES)
            early->blocks[i].end_kind = kind;
}

static void pass(struct mt_early_blocks *early, uint8_t kind, bool named)
{
    uint32_t clock = (uint32_t)early->count;

    if (!early->begun)
        begin(early, kind, named);
    else if (kind != early->first_kind && !early->first_part_end)
        early->first_part_end = clock;
    if (kind == MT_PHASE_BACKWARD && (!early->begun || early->last_kind != kind))
        early->turns++;
    early->begun = true;
    early->last_kind = kind;
    if (mt_early_is_part(kind)) {
        early->last_part_end = clock;
        early->saw_part = true;
    }
}

void mt_early_blocks_birth(struct mt_early_blocks *early, uint64_t allocation,
                           const struct mt_early_block *block)
{
    if ((!block->initial && !early->initial_count) || allocation >= MT_EARLY_BLOCKS_MAX)
        return;
    mt_grow_to(&early->blocks, &early->capacity, allocation + 1, sizeof *early->blocks);
    memset(early->blocks + early->count, 0,
           (allocation + 1 - early->count) * sizeof *early->blocks);
    early->blocks[allocation] = *block;
    early->blocks[allocation].bytes = mt_round_up(mt_min_u64(block->bytes, MAX_BLOCK_BYTES), 512);
    early->blocks[allocation].ended = MT_EARLY_LIVES;
    early->blocks[allocation].role = MT_ROLE_OTHER;
    early->count = allocation + 1;
    if (block->initial)
        early->initial_count = early->count;
    else
        pass(early, block->birth_kind, block->in_named_part);
}

void mt_early_blocks_end(struct mt_early_blocks *early, uint64_t allocation,
                         const struct mt_early_block *end)
{
    struct mt_early_block *block;

    if (allocation >= early->count)
        return;
    if (early->begun || end->end_kind != MT_PHASE_UNKNOWN)
        pass(early, end->end_kind, end->in_named_part);
    block = &early->blocks[allocation];
    block->ended = (uint32_t)early->count;
    block->end_turn = early->turns;
    block->end_kind = end->end_kind;
    block->died_in_part = end->died_in_part;
    block->left_behind = end->left_behind;
    block->role = end->role;
}
