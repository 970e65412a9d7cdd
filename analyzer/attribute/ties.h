/* What blocks without a stack belong to. Backward runs on threads without
 * Python frames, but what it allocates has the size of something that has one:
 * a gradient that of its parameter, what it passes on that of a result of
 * forward. Both come in the reverse of the order in which forward went, so of
 * several candidates the newest is taken; of parameters the newest that has no
 * gradient yet, and of those one that came with its module, if there is any:
 * the copy of an exponential average, or a target network, has no gradients.
 *
 * The caller names every block by an index of its own, which may be used
 * again after mt_ties_free. Costs a map access for a block. */
#ifndef MT_ANALYZER_TIES_H
#define MT_ANALYZER_TIES_H

#include "map.h"
#include "holding.h"
#include "site.h"

/* Zeroed memory is ready. */
struct mt_ties {
    struct mt_map newest; /* size and sort -> index of the newest block of it */
    struct mt_tie_block {
        uint64_t key;          /* of its list */
        uint32_t older, newer; /* in its list; MT_NO_ID */
        uint32_t partner;      /* parameter: its gradient; gradient: its parameter */
        uint32_t stack;        /* MT_NO_ID: a gradient's, in no list */
        uint32_t like;         /* forward's that it belongs to, MT_NO_ID */
        bool known, moved;
    } * blocks;
    size_t capacity;
};

/* What is known of a block. */
struct mt_tie_facts {
    uint64_t requested_bytes;
    uint32_t stack;
    uint16_t device;
    enum mt_role role;
    bool moved; /* a parameter: it came to the device with its module */
};

/* A block with a stack: others may belong to it, if it is a parameter or one
 * that forward keeps for backward. */
enum mt_status mt_ties_anchor(struct mt_ties *ties, uint32_t block,
                              const struct mt_tie_facts *facts) MT_MUST_USE;

/* A block without one: what does it belong to? *stack: of that, or MT_NO_ID. */
enum mt_status mt_ties_find(struct mt_ties *ties, uint32_t block, const struct mt_tie_facts *facts,
                            enum mt_tie *tie, uint32_t *stack) MT_MUST_USE;

/* What a block belongs to, from mt_ties_find until either is gone: a gradient to the
 * parameter that has no other, backward's to forward's. MT_NO_ID: to nothing. */
uint32_t mt_ties_of(const struct mt_ties *ties, uint32_t block);

/* The block is gone. */
void mt_ties_free(struct mt_ties *ties, uint32_t block);

void mt_ties_release(struct mt_ties *ties);

/* What a block without a Python stack belongs to, in words: "backward of Net.forward
 * model.py:77", "gradient of parameters main train.py:12", "cuBLAS (no Python stack)". `site`: of
 * the stack that it is tied to. */
const char *mt_tie_label(struct mt_arena *arena, const struct mt_symbols *symbols, enum mt_tie tie,
                         struct mt_site site);

#endif
