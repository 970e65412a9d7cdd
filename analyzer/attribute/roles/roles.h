/* Roles of blocks from where they were allocated and freed. They are inferred, and output must say
 * so. Recorded roles (recorded_roles.h) have priority. Blocks that were alive when the trace began
 * have rules of their own (early_roles.h). If such a trace begins in a turn, that turn is a
 * cycle.
 *
 * The first pass over a trace settles a code per allocation when its block ends. Decisions that
 * require knowledge of the whole trace or of the stack are made in the second pass
 * (mt_role_resolve).
 *
 * A cycle is one turn of the program's loop: from the start of a step to the next; without steps,
 * from one top-level range to the next one of that name; without ranges, from one forward pass to
 * the next, according to stacks. */
#ifndef MT_ANALYZER_ROLES_H
#define MT_ANALYZER_ROLES_H

#include "block_units.h"
#include "cache_chains.h"
#include "dropped_graphs.h"
#include "early_roles.h"
#include "holding.h"
#include "parameter_sets.h"
#include "phases.h"
#include "weight_copies.h"
#include "work_kinds.h"

/* Codes beside the roles themselves. */
enum mt_role_code {
    MT_ROLE_CODE_SETUP_FREED = 16, /* allocated and freed before the first cycle */
    MT_ROLE_CODE_SETUP_FREED_1,    /* allocated before, freed in cycle 1 */
    MT_ROLE_CODE_SETUP_FREED_2,    /* ... in cycle 2 */
    MT_ROLE_CODE_SETUP_KEPT,       /* ... later or never */
    MT_ROLE_CODE_SETUP_ALONE,      /* the same, and no gradient or optimizer state has its size */
    MT_ROLE_CODE_KEPT_ONLY,        /* forward; never freed, in the only cycle */
    MT_ROLE_CODE_KEPT_EARLY,       /* forward of cycle 1, alive for two or more */
    MT_ROLE_CODE_KEPT_LATE,        /* forward of a later cycle, alive for two or more */
    MT_ROLE_CODE_KEPT_BACKWARD,    /* backward; never freed, or alive for two or more cycles */
    MT_ROLE_CODE_INITIAL_KEPT,     /* alive when the trace began, never freed */
    MT_ROLE_CODE_INITIAL_FREED,
    MT_ROLE_CODE_TWO_BACKWARDS, /* made by backward, freed by a later one of the same cycle */
    MT_ROLE_CODE_REPLACED,      /* a key-value cache that a longer one replaced (cache_chains.h) */
    MT_ROLE_CODE_OVER_CALLS =
        32, /* plus a role: alive over repeated calls of the model; without backward that is a
               cache, if there are at least two of the size in its cycle */
    MT_ROLE_CODE_RECORDED = 64, /* plus a role: recorded; alive, */
    MT_ROLE_CODE_ENDED = 96,    /* ... or has ended */
    MT_ROLE_CODE_INITIAL = 128, /* plus a role: alive when the trace began; inferred from later
                                   events (early_roles.h) */
    MT_ROLE_CODE_XLA = 160,     /* plus a role: from the modules that XLA runs (xla_roles.h) */
    MT_ROLE_CODE_OPEN = 255     /* the block has not ended yet */
};

static inline bool mt_role_code_is_recorded(uint8_t code)
{
    return code >= MT_ROLE_CODE_RECORDED && code < MT_ROLE_CODE_ENDED + MT_ROLE_COUNT;
}

static inline bool mt_role_code_is_inferred_initial(uint8_t code)
{
    return code >= MT_ROLE_CODE_INITIAL && code < MT_ROLE_CODE_INITIAL + MT_ROLE_COUNT;
}

static inline bool mt_role_code_is_of_xla(uint8_t code)
{
    return code >= MT_ROLE_CODE_XLA && code < MT_ROLE_CODE_XLA + MT_ROLE_COUNT;
}

static inline bool mt_role_code_is_over_calls(uint8_t code)
{
    return code >= MT_ROLE_CODE_OVER_CALLS && code < MT_ROLE_CODE_OVER_CALLS + MT_ROLE_COUNT;
}

/* The role if it is not a cache. */
static inline uint8_t mt_role_code_without_calls(uint8_t code)
{
    return mt_role_code_is_over_calls(code) ? (uint8_t)(code - MT_ROLE_CODE_OVER_CALLS) : code;
}

/* Whether it is the code of a live block. */
static inline bool mt_role_code_is_open(uint8_t code)
{
    return code == MT_ROLE_CODE_OPEN ||
           (code >= MT_ROLE_CODE_RECORDED && code < MT_ROLE_CODE_ENDED);
}

/* Position in the program's loop. */
struct mt_moment {
    int32_t instance; /* equal = same instance of a part, or same pause */
    uint32_t cycle;   /* 0 = before the first */
    uint32_t calls;   /* forward passes begun so far */
    uint32_t losses;  /* parts of a loss begun so far */
    uint8_t kind;     /* enum mt_phase_kind */
    bool outside;     /* of every range */
    bool before_call; /* of a model, in this cycle */
};

struct mt_birth_run {
    uint64_t first; /* allocation number */
    struct mt_moment moment;
    bool initial;
};

struct mt_role_clock {
    const struct mt_phases *phases;
    const struct mt_symbols *symbols;
    struct mt_stack_kinds stacks;
    bool has_stacks;
    struct mt_moment now;
    int32_t phase;   /* that `now` is for */
    bool stale;      /* a range began or ended since then */
    bool ask_stacks; /* the ranges do not show which part this is */
    uint8_t step_rank;
    uint32_t named_ranges;
    uint32_t turn_names[16], turn_name_count; /* top-level ranges of this cycle */
    int32_t last_call;                        /* instance of the last forward pass */
    uint8_t last_stack_kind;
    uint8_t last_part; /* enum mt_phase_kind of the last known part */
    int32_t stack_instance;

    struct mt_early_blocks early;
    struct mt_cache_chains chains; /* until backward is seen */
    struct mt_weight_copies copies;
    struct mt_dropped_graphs graphs;
    struct mt_parameter_sets sets;
    struct mt_birth_run *runs; /* births, run-length encoded by allocation */
    size_t run_count, run_capacity;

    uint32_t cycles;      /* total */
    uint32_t cycle_calls; /* forward passes begun before this one */
    bool began_within;    /* the first one began before the trace */
    bool saw_backward, kept_late;
    bool kept_twice;           /* a later call than the first also left a block behind */
    bool saw_model;            /* any part of a model's work */
    bool moves_models;         /* some stack builds or moves a model */
    bool names_caches;         /* some stack is of a library's key-value cache */
    uint64_t devices;          /* with blocks: bit i for devices i, i + 64 and so on */
    uint32_t kept_workspaces;  /* kept blocks of a workspace's size, beyond cycle 1 */
    uint32_t early_workspaces; /* ... that the model's calls made until cycle 1 */
};

/* Many blocks of that size are tensors that happen to have it: a workspace is taken once per handle
 * and stream. */
static inline bool mt_role_are_workspaces(const struct mt_role_clock *clock, uint32_t blocks,
                                          uint64_t requested_bytes)
{
    uint32_t devices = (uint32_t)__builtin_popcountll(clock->devices);

    return mt_is_workspace(requested_bytes) && blocks <= MT_WORKSPACES_MAX * devices;
}

/* Initializes *clock. `phases` and `symbols` are borrowed. `has_stacks`: allocations have stacks,
 * so a missing stack means an autograd thread. */
void mt_role_clock_init(struct mt_role_clock *clock, const struct mt_phases *phases,
                        const struct mt_symbols *symbols, bool has_stacks);
void mt_role_clock_release(struct mt_role_clock *clock);

/* A range began (phase: its index, may be MT_NO_PHASE) or ended. */
void mt_role_clock_push(struct mt_role_clock *clock, int32_t phase, uint32_t name);

static inline void mt_role_clock_pop(struct mt_role_clock *clock)
{
    clock->stale = true;
}

/* Takes allocation number `allocation` in `phase`. */
void mt_role_clock_birth(struct mt_role_clock *clock, int32_t phase, const struct mt_event *event,
                         uint64_t allocation);

enum mt_fate {
    MT_FATE_FREED,
    MT_FATE_UNWOUND, /* freed between an OOM and the next allocation */
    MT_FATE_NEVER
};

/* Returns the code of an allocation whose block ends now, in `phase`. */
uint8_t mt_role_clock_end(struct mt_role_clock *clock, int32_t phase, uint64_t allocation,
                          enum mt_fate fate);

/* Settles all codes that are still open at the end of the trace, and judges all stacks, so that
 * mt_role_resolve may follow. */
void mt_role_clock_finish(struct mt_role_clock *clock, uint8_t *codes, struct mt_block_units *units,
                          uint64_t count);

/* Second pass: returns the block's role from its code. */
enum mt_role mt_role_resolve(const struct mt_role_clock *clock, uint8_t code, uint32_t stack,
                             uint64_t requested_bytes);

#endif
