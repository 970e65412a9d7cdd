/* Finds owners for blocks without a stack. Backward runs on threads without Python frames, but each
 * of its allocations has the size of a block that has a stack: a gradient has the size of its
 * parameter, and another result has the size of a result of forward. Both are allocated in the
 * reverse order of forward, so the newest of several candidates is the owner. Among parameters, the
 * owner is the newest that has no gradient yet. Parameters that came to the device with their
 * module are preferred, because copies for an exponential average and target networks have no
 * gradients.
 *
 * The caller names every block by an index, which may be reused after mt_ties_free. Costs one map
 * access per block. */
#ifndef MT_ANALYZER_TIES_H
#define MT_ANALYZER_TIES_H

#include "map.h"
#include "holding.h"
#include "site.h"

/* Zeroed memory is ready. */
struct mt_ties {
    struct mt_map newest; /* size and kind -> index of the newest such block */
    struct mt_tie_block {
        uint64_t key;          /* key of its list */
        uint32_t older, newer; /* neighbors in its list; MT_NO_ID = none */
        uint32_t partner;      /* parameter: its gradient; gradient: its parameter */
        uint32_t stack;        /* MT_NO_ID: a gradient, which is in no list */
        uint32_t like;         /* the block of forward that it belongs to; MT_NO_ID = none */
        bool known, moved;
    } * blocks;
    size_t capacity;
};

/* Facts about a block. */
struct mt_tie_facts {
    uint64_t requested_bytes;
    uint32_t stack;
    uint16_t device;
    enum mt_role role;
    bool moved; /* a parameter that came to the device with its module */
};

/* Adds a block with a stack. If it is a parameter, or a block that forward keeps for backward,
 * other blocks may belong to it. */
void mt_ties_anchor(struct mt_ties *ties, uint32_t block, const struct mt_tie_facts *facts);

/* Finds the owner of a block without a stack. Sets *stack to that of the owner, or to MT_NO_ID. */
void mt_ties_find(struct mt_ties *ties, uint32_t block, const struct mt_tie_facts *facts,
                  enum mt_tie *tie, uint32_t *stack);

/* Returns the owner that mt_ties_find found for a block, until one of the two is freed. The owner
 * of a gradient is its parameter, that of another block of backward is a block of forward.
 * MT_NO_ID: none. */
uint32_t mt_ties_of(const struct mt_ties *ties, uint32_t block);

/* Call it when the block is freed. */
void mt_ties_free(struct mt_ties *ties, uint32_t block);

void mt_ties_release(struct mt_ties *ties);

/* Returns a label for a block without a Python stack, such as "backward of Net.forward
 * model.py:77", "gradient of parameters main train.py:12" or "cuBLAS (no Python stack)". `site` is
 * that of its owner's stack. */
const char *mt_tie_label(struct mt_arena *arena, const struct mt_symbols *symbols, enum mt_tie tie,
                         struct mt_site site);

#endif
