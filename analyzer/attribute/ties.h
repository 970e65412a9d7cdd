/* The owners of blocks without a stack. Backward runs on threads without Python frames, but each of
 * its allocations has the size of a block that has a stack: a gradient has the size of its
 * parameter, and other results have the size of a result of forward. Both come in the reverse order
 * of forward, so the newest of
 * several candidates is taken. Among parameters it is the newest that has no gradient yet, and
 * preferably one that came with its module: the copy of an exponential average, or a target
 * network, has no gradients.
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
        uint64_t key;          /* of its list */
        uint32_t older, newer; /* in its list; MT_NO_ID */
        uint32_t partner;      /* parameter: its gradient; gradient: its parameter */
        uint32_t stack;        /* MT_NO_ID: a gradient's, in no list */
        uint32_t like;         /* the block of forward that it belongs to, MT_NO_ID */
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

/* Adds a block with a stack: others may belong to it, if it is a parameter or one that forward
 * keeps for backward. */
enum mt_status mt_ties_anchor(struct mt_ties *ties, uint32_t block,
                              const struct mt_tie_facts *facts) MT_MUST_USE;

/* Finds the owner of a block without a stack. *stack: the owner's, or MT_NO_ID. */
enum mt_status mt_ties_find(struct mt_ties *ties, uint32_t block, const struct mt_tie_facts *facts,
                            enum mt_tie *tie, uint32_t *stack) MT_MUST_USE;

/* Returns the owner of a block, from mt_ties_find until either is freed: for a gradient the
 * parameter that has no other, for a block of backward that of forward. MT_NO_ID: none. */
uint32_t mt_ties_of(const struct mt_ties *ties, uint32_t block);

/* The block is freed. */
void mt_ties_free(struct mt_ties *ties, uint32_t block);

void mt_ties_release(struct mt_ties *ties);

/* The owner of a block without a Python stack in words: "backward of Net.forward model.py:77",
 * "gradient of parameters main train.py:12", "cuBLAS (no Python stack)". `site`: of the stack that
 * it is tied to. */
const char *mt_tie_label(struct mt_arena *arena, const struct mt_symbols *symbols, enum mt_tie tie,
                         struct mt_site site);

#endif
