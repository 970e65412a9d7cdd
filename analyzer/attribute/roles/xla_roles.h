/* Infers the roles of blocks in an XLA program from the modules that it runs. A module requests the
 * memory of its results and temporaries right before or inside its range, on the thread of the
 * range: such blocks belong to that run.
 *
 *   temporaries      end before another module runs
 *   parameters and   are made where modules of flax, equinox or haiku (parameters) or transforms of
 *   optimizer state  optax (state) are in the stack, and stay. A step makes new ones and drops the
 *                    old ones: when a block with one of these roles ends, the oldest result of its
 *                    size without a role takes the role over
 *   KV cache and     in a program that does not differentiate (xla_roles.c)
 *   parameters
 *
 * Among blocks of one size that a step makes, it is a guess which is a parameter and which is
 * state. The sums of both are correct. Everything else keeps the role from roles.h. */
#ifndef MT_ANALYZER_XLA_ROLES_H
#define MT_ANALYZER_XLA_ROLES_H

#include <stdbool.h>
#include <stdint.h>

#include "holding.h"
#include "map.h"
#include "xla_runs.h"

/* A request of a program of XLA, as the rules of its roles see it. */

struct mt_xla_block {
    uint64_t size_bytes;
    uint32_t run;         /* of its module, MT_NO_ID = none */
    uint32_t born, ended; /* runs begun before its allocation and its end; ended: MT_NO_ID = live */
    uint32_t next;        /* allocation number + 1: of the thread's, or the size's, list */
    uint32_t stack;
    uint8_t role;     /* enum mt_role; MT_ROLE_OTHER = unknown */
    bool is_followed; /* a request of XLA */
};

/* To initialize, zero the memory and call mt_xla_roles_init. */
struct mt_xla_roles {
    const struct mt_symbols *symbols;
    bool is_on;
    struct mt_xla_block *blocks; /* by allocation number */
    uint64_t count;
    size_t capacity;
    uint32_t *log; /* allocations and frees in order: number + 1, ends with MT_XLA_END */
    size_t log_count, log_capacity;
    struct mt_xla_runs runs;
    struct mt_xla_list { /* of blocks: number + 1 */
        uint32_t first, last;
    } * threads; /* blocks that belong to the thread's next run of a module */
    size_t thread_capacity;
    struct mt_map lists; /* size -> list of results without a role */
    struct mt_xla_list *waiting;
    uint32_t waiting_count;
    size_t waiting_capacity;
    uint8_t *stacks; /* enum mt_role by stack + 1; 0 = unknown so far */
    size_t stack_capacity;
};

/* Initializes *roles, which borrows `symbols`. If `is_on` is false, nothing is tracked or found. */
void mt_xla_roles_init(struct mt_xla_roles *roles, const struct mt_symbols *symbols, bool is_on);
void mt_xla_roles_release(struct mt_xla_roles *roles);

/* Takes the start or end of a range. Amortized O(1). */
void mt_xla_roles_range(struct mt_xla_roles *roles, const struct mt_event *event);

/* Takes allocations in the order of their numbers. */
void mt_xla_roles_birth(struct mt_xla_roles *roles, const struct mt_event *event,
                        uint64_t allocation);
void mt_xla_roles_end(struct mt_xla_roles *roles, uint64_t allocation);

/* Merges the results into codes (roles.h). */
void mt_xla_roles_finish(struct mt_xla_roles *roles, uint8_t *codes, uint64_t count);

#endif
