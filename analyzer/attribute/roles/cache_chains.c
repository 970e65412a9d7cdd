#include "cache_chains.h"

#include "grow.h"
#include "process_memory.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum {
    MIN_BLOCKS = 3, /* in a generation: fewer cannot show that they are replaced one by one */
    PAIR = 2,       /* keys and values are made, then the old ones are freed */
    MIN_LINKS = 2,  /* three generations */
    YOUNG_GENERATIONS =
        2 /* if the trace begins in the first generation, the second also replaces */
};

void mt_cache_chains_release(struct mt_cache_chains *chains)
{
    free(chains->chains);
    free(chains->heads);
    free(chains->replaced);
    mt_map_release(&chains->live);
    memset(chains, 0, sizeof *chains);
}

static void drop_heads(struct mt_cache_chains *chains, struct mt_cache_chain *chain)
{
    if (!chain->first_head)
        return;
    chains->heads[chain->last_head - 1].next = chains->free_head;
    chains->free_head = chain->first_head;
    chain->first_head = chain->last_head = 0;
}

static void add_head(struct mt_cache_chains *chains, struct mt_cache_chain *chain,
                     uint64_t allocation)
{
    uint32_t at = chains->free_head;

    if (at) {
        chains->free_head = chains->heads[at - 1].next;
    } else {
        if (chains->head_count >= UINT32_MAX - 1)
            mt_memory_end();
        mt_grow_to(&chains->heads, &chains->head_capacity, chains->head_count + 1,
                   sizeof *chains->heads);
        at = (uint32_t)++chains->head_count;
    }
    chains->heads[at - 1] = (struct mt_cache_head){.allocation = allocation};
    if (chain->last_head)
        chains->heads[chain->last_head - 1].next = at;
    else
        chain->first_head = at;
    chain->last_head = at;
}

/* Each block of the first generation is one step longer than the one it replaced. */
static void take_heads(struct mt_cache_chains *chains, struct mt_cache_chain *chain)
{
    uint64_t least_bytes = mt_sub_or_0_u64(chain->first_bytes, chain->step_bytes);

    for (uint32_t at = chain->first_head; at; at = chains->heads[at - 1].next) {
        mt_grow_to(&chains->replaced, &chains->replaced_capacity, chains->replaced_count + 1,
                   sizeof *chains->replaced);
        chains->replaced[chains->replaced_count++] =
            (struct mt_cache_replaced){chains->heads[at - 1].allocation, least_bytes};
    }
    drop_heads(chains, chain);
}

/* Between two layers a model makes other blocks. A loop that appends to each of several tensors
 * does nothing else: logged losses, the token ids of each text of a batch. */
static bool is_of_layers(const struct mt_cache_chain *chain)
{
    return chain->parted + 1 >= (chain->blocks + PAIR - 1) / PAIR;
}

static bool is_linked(const struct mt_cache_chain *chain)
{
    return !chain->is_uneven && chain->blocks >= MIN_BLOCKS && chain->live == chain->blocks &&
           chain->old_blocks == chain->blocks && chain->old_live == 0 && is_of_layers(chain);
}

static void begin_chain(struct mt_cache_chains *chains, struct mt_cache_chain *chain,
                        uint64_t allocation, uint64_t size_bytes)
{
    drop_heads(chains, chain);
    *chain = (struct mt_cache_chain){.bytes = size_bytes,
                                     .first_bytes = size_bytes,
                                     .first = allocation,
                                     .old_begin = allocation,
                                     .begin = allocation,
                                     .last = allocation,
                                     .blocks = 1,
                                     .generation = 1,
                                     .is_cache = chain->is_cache};
}

static void begin_generation(struct mt_cache_chains *chains, struct mt_cache_chain *chain,
                             uint64_t allocation, uint64_t size_bytes)
{
    uint64_t step_bytes = size_bytes - chain->bytes;

    chain->links = is_linked(chain) && step_bytes == chain->step_bytes ? chain->links + 1 : 0;
    chain->step_bytes = step_bytes;
    chain->bytes = size_bytes;
    chain->old_begin = chain->begin;
    chain->begin = allocation;
    chain->old_blocks = chain->blocks;
    chain->old_live = chain->live;
    chain->blocks = chain->live = chain->parted = 0;
    chain->is_uneven = false;
    chain->generation++;
    chain->is_cache |= chain->links >= MIN_LINKS;
    if (chain->is_cache && chain->generation > YOUNG_GENERATIONS)
        take_heads(chains, chain);
}

static void add_block(struct mt_cache_chains *chains, struct mt_cache_chain *chain,
                      uint64_t allocation, uint32_t stack)
{
    chain->parted += chain->blocks && allocation - chain->last > 1;
    chain->last = allocation;
    chain->blocks++;
    if (chain->generation == 1)
        return;
    chain->live++;
    chain->is_uneven |= (uint64_t)chain->old_live + chain->blocks > chain->old_blocks + PAIR;
    mt_map_put(&chains->live, allocation, stack);
}

void mt_cache_chains_birth(struct mt_cache_chains *chains, uint64_t allocation, uint32_t stack,
                           uint64_t size_bytes)
{
    chains->last_stack = MT_NO_ID;
    if (stack == MT_NO_ID)
        return;
    mt_grow_zeroed_to(&chains->chains, &chains->chain_capacity, (size_t)stack + 1,
                      sizeof *chains->chains);
    chains->last_stack = stack;
    struct mt_cache_chain *chain = &chains->chains[stack];
    if (!chain->generation || size_bytes < chain->bytes) {
        begin_chain(chains, chain, allocation, size_bytes);
        return;
    }
    if (size_bytes > chain->bytes)
        begin_generation(chains, chain, allocation, size_bytes);
    add_block(chains, chain, allocation, stack);
}

static void replace(struct mt_cache_chains *chains, uint64_t allocation)
{
    struct mt_cache_chain *chain =
        chains->last_stack < chains->chain_capacity ? &chains->chains[chains->last_stack] : NULL;

    if (!chain || !chain->generation || chain->generation > YOUNG_GENERATIONS ||
        allocation >= chain->first)
        return;
    add_head(chains, chain, allocation);
}

/* A block of a chain ends: finds its generation. */
static void leave_generation(struct mt_cache_chain *chain, uint64_t allocation)
{
    if (allocation >= chain->begin)
        chain->live--;
    else if (allocation >= chain->old_begin)
        chain->old_live--;
}

void mt_cache_chains_end(struct mt_cache_chains *chains, uint64_t allocation)
{
    uint32_t stack = mt_map_take(&chains->live, allocation);

    if (stack != MT_MAP_NONE)
        leave_generation(&chains->chains[stack], allocation);
    replace(chains, allocation);
}
