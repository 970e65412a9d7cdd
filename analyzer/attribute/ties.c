#include "ties.h"

#include "grow.h"

#include <stdlib.h>
#include <string.h>

/* How many parameters of one size are examined for one without a gradient. */
#define MAX_TRIED 256

static uint64_t key_of(const struct mt_tie_facts *facts, bool is_parameter)
{
    return facts->requested_bytes << 11 | (uint64_t)(facts->device & 0x3FF) << 1 | is_parameter;
}

static bool is_kept_for_backward(enum mt_role role)
{
    return role == MT_ROLE_ACTIVATIONS || role == MT_ROLE_INPUTS;
}

void mt_ties_anchor(struct mt_ties *ties, uint32_t block, const struct mt_tie_facts *facts)
{
    uint64_t key = key_of(facts, facts->role == MT_ROLE_PARAMETERS);

    if (facts->role != MT_ROLE_PARAMETERS && !is_kept_for_backward(facts->role))
        return;
    mt_grow_zeroed_to(&ties->blocks, &ties->capacity, (size_t)block + 1, sizeof *ties->blocks);
    uint32_t older = mt_map_get(&ties->newest, key);
    mt_map_put(&ties->newest, key, block);
    if (older != MT_MAP_NONE)
        ties->blocks[older].newer = block;
    ties->blocks[block] = (struct mt_tie_block){
        .key = key,
        .older = older == MT_MAP_NONE ? MT_NO_ID : older,
        .newer = MT_NO_ID,
        .partner = MT_NO_ID,
        .like = MT_NO_ID,
        .stack = facts->stack,
        .known = true,
        .moved = facts->moved,
    };
}

static bool has_partner(const struct mt_ties *ties, uint32_t block)
{
    return ties->blocks[block].partner != MT_NO_ID;
}

/* The newest parameter of that size without a gradient, among those that were moved or all;
 * MT_NO_ID. */
static uint32_t find_single(const struct mt_ties *ties, uint32_t newest, bool moved)
{
    uint32_t found = newest;

    for (int tried = 0; found != MT_NO_ID && tried <= MAX_TRIED; tried++) {
        if (!has_partner(ties, found) && (!moved || ties->blocks[found].moved))
            return found;
        found = ties->blocks[found].older;
    }
    return MT_NO_ID;
}

/* If all have a gradient (they are accumulated), the newest. */
static uint32_t find_parameter(const struct mt_ties *ties, const struct mt_tie_facts *facts)
{
    uint32_t newest = mt_map_get(&ties->newest, key_of(facts, true));

    if (newest == MT_MAP_NONE)
        return MT_MAP_NONE;
    uint32_t found = find_single(ties, newest, true);
    if (found == MT_NO_ID)
        found = find_single(ties, newest, false);
    return found == MT_NO_ID ? newest : found;
}

static void marry(struct mt_ties *ties, uint32_t gradient, uint32_t parameter)
{
    bool is_free = !has_partner(ties, parameter);

    ties->blocks[gradient] = (struct mt_tie_block){.older = MT_NO_ID,
                                                   .newer = MT_NO_ID,
                                                   .partner = is_free ? parameter : MT_NO_ID,
                                                   .stack = MT_NO_ID,
                                                   .like = MT_NO_ID,
                                                   .known = true};
    if (is_free)
        ties->blocks[parameter].partner = gradient;
}

static void liken(struct mt_ties *ties, uint32_t block, uint32_t forward)
{
    ties->blocks[block] = (struct mt_tie_block){.older = MT_NO_ID,
                                                .newer = MT_NO_ID,
                                                .partner = MT_NO_ID,
                                                .stack = MT_NO_ID,
                                                .like = forward,
                                                .known = true};
}

uint32_t mt_ties_of(const struct mt_ties *ties, uint32_t block)
{
    const struct mt_tie_block *known = block < ties->capacity ? &ties->blocks[block] : NULL;

    if (!known || !known->known || known->stack != MT_NO_ID)
        return MT_NO_ID;
    return known->partner != MT_NO_ID ? known->partner : known->like;
}

void mt_ties_find(struct mt_ties *ties, uint32_t block, const struct mt_tie_facts *facts,
                  enum mt_tie *tie, uint32_t *stack)
{
    uint32_t forward = mt_map_get(&ties->newest, key_of(facts, false));
    uint32_t parameter = MT_MAP_NONE;

    *stack = MT_NO_ID;
    *tie = facts->role == MT_ROLE_WORKSPACE ? MT_TIE_LIBRARY : MT_TIE_PHASE;
    if (facts->role == MT_ROLE_WORKSPACE)
        return;
    mt_grow_zeroed_to(&ties->blocks, &ties->capacity, (size_t)block + 1, sizeof *ties->blocks);
    if (facts->role == MT_ROLE_GRADIENTS || forward == MT_MAP_NONE)
        parameter = find_parameter(ties, facts);
    if (parameter != MT_MAP_NONE) {
        *tie = MT_TIE_PARAMETER;
        *stack = ties->blocks[parameter].stack;
        if (facts->role == MT_ROLE_GRADIENTS)
            marry(ties, block, parameter);
    } else if (forward != MT_MAP_NONE) {
        *tie = MT_TIE_FORWARD;
        *stack = ties->blocks[forward].stack;
        liken(ties, block, forward);
    }
}

static void unlink_block(struct mt_ties *ties, const struct mt_tie_block *gone)
{
    if (gone->newer != MT_NO_ID)
        ties->blocks[gone->newer].older = gone->older;
    else if (gone->older == MT_NO_ID)
        (void)mt_map_take(&ties->newest, gone->key);
    else
        mt_map_put(&ties->newest, gone->key, gone->older);
    if (gone->older != MT_NO_ID)
        ties->blocks[gone->older].newer = gone->newer;
}

void mt_ties_free(struct mt_ties *ties, uint32_t block)
{
    if (block >= ties->capacity || !ties->blocks[block].known)
        return;
    struct mt_tie_block gone = ties->blocks[block];
    if (gone.partner != MT_NO_ID)
        ties->blocks[gone.partner].partner = MT_NO_ID;
    if (gone.stack != MT_NO_ID)
        unlink_block(ties, &gone);
    memset(&ties->blocks[block], 0, sizeof gone);
}

void mt_ties_release(struct mt_ties *ties)
{
    mt_map_release(&ties->newest);
    free(ties->blocks);
    memset(ties, 0, sizeof *ties);
}

const char *mt_tie_label(struct mt_arena *arena, const struct mt_symbols *symbols, enum mt_tie tie,
                         struct mt_site site)
{
    if (tie == MT_TIE_LIBRARY)
        return "cuBLAS (no Python stack)";
    return mt_arena_printf(arena, "%s %s",
                           tie == MT_TIE_PARAMETER ? "gradient of parameters" : "backward of",
                           mt_site_text(arena, symbols, site));
}
