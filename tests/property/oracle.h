/* Slow, obvious models of the simulated allocators, to compare the policies
 * with. A model keeps all memory as one array of pieces and finds everything by
 * looking at every piece. It is written from docs/internals/policies.md, and shares no
 * code with analyzer/allocators.
 *
 * Only one thing is taken from the policy under test: where the driver put a
 * segment, since that is the driver's choice and not the allocator's. */
#ifndef MT_TESTS_ORACLE_H
#define MT_TESTS_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "device_model.h"
#include "dice.h"
#include "source.h"
#include "util.h"

enum { ORACLE_PIECES = 8192, ORACLE_OPS = 512, ORACLE_SETTINGS = 32, ORACLE_EDGES = 4 };
#define ORACLE_NONE SIZE_MAX

enum oracle_state { ORACLE_FREE, ORACLE_LIVE, ORACLE_PENDING, ORACLE_UNMAPPED };

struct oracle_piece {
    uint64_t addr, size;
    uint64_t requested; /* while live or pending */
    uint64_t list;      /* free list that it belongs to: the model's own number */
    uint64_t filed;     /* when it was put into that list */
    uint32_t segment;   /* pieces of one segment lie side by side, ascending */
    uint32_t stream;    /* that asked the device for the segment */
    enum oracle_state state;
};

/* What the model expects the policy to do to the device. */
struct oracle_op {
    uint8_t kind; /* MT_EVENT_SEGMENT_* */
    uint64_t addr, size;
};

struct oracle_request {
    uint64_t size;
    uint32_t stream, pool; /* pool 0: the default one */
};

struct oracle;

struct oracle_rules {
    const char *policy;
    uint64_t alignment; /* of every block */
    size_t weight;      /* how many times as many traces as the others; 0 = 1 */
    bool in_order;      /* in which order segments go back is a rule, too */
    bool unlogged;      /* the policy's segments do not appear in the device's log */

    /* Throws the options: as text, and in oracle->setting. */
    void (*configure)(struct oracle *oracle, struct dice *dice, char *text, size_t size);
    /* The piece for a request, cut to its length; ORACLE_NONE = out of memory. */
    size_t (*take)(struct oracle *oracle, const struct oracle_request *request);
    /* This piece is free again, and not merged with anything yet. */
    void (*give)(struct oracle *oracle, size_t piece);
    void (*empty)(struct oracle *oracle); /* NULL: nothing happens */
};

/* All models; ends with NULL. */
extern const struct oracle_rules *const oracle_models[];

/* The model of a policy, NULL if there is none. */
const struct oracle_rules *oracle_find(const char *policy);

struct oracle {
    const struct oracle_rules *rules;
    uint64_t setting[ORACLE_SETTINGS]; /* options, and what else a model remembers */
    uint64_t device_limit, memory;     /* 0 = none, unknown */
    uint64_t limit;                    /* of what is reserved, 0 = none */
    uint64_t overshoot;                /* by which it may be passed */
    enum mt_free_order free_order;     /* of the run that the trace is of */
    uint64_t edge[ORACLE_EDGES];       /* sizes at which its rules turn, 0 = none */
    struct oracle_piece piece[ORACLE_PIECES];
    size_t count;
    uint64_t clock;
    uint32_t segments_made;

    struct oracle_op op[ORACLE_OPS]; /* of the event at hand */
    size_t op_count;
    const struct mt_device_model *device; /* its log says where segments were put */
    size_t placed;                        /* log entries whose address was used */
    uint64_t answer_addr;                 /* of the policy's block, if it logs nothing */
    const char *complaint;                /* the model cannot go on: why */

    struct mt_counters counters; /* .now only; peaks are the observer's */
};

void oracle_begin(struct oracle *oracle, const struct oracle_rules *rules, uint64_t device_limit,
                  uint64_t memory);

/* One event. `log` is that of the policy, for the addresses of segments. */
void oracle_event(struct oracle *oracle, const struct mt_device_model *log);
size_t oracle_alloc(struct oracle *oracle, const struct oracle_request *request);
void oracle_free_requested(struct oracle *oracle, uint64_t addr);
void oracle_free_completed(struct oracle *oracle, uint64_t addr);
void oracle_empty_cache(struct oracle *oracle);
void oracle_complete_waiting(struct oracle *oracle); /* all frees that were requested */

static inline uint64_t oracle_steps(uint64_t bytes, uint64_t step)
{
    uint64_t steps = bytes / step + (bytes % step != 0);

    return (steps ? steps : 1) * step;
}

/* Appends "name=value" to an option text. */
void oracle_option(char *text, size_t size, const char *name, uint64_t value);

bool oracle_fits_limit(const struct oracle *oracle, uint64_t bytes);

/* Smallest free piece of a list that is long enough, the lowest of equals. */
size_t oracle_shortest(const struct oracle *oracle, uint64_t list, uint64_t bytes);

/* A new segment as one free piece; counted, and expected of the policy. */
size_t oracle_new_segment(struct oracle *oracle, uint64_t bytes, uint32_t stream, uint64_t list);
/* The same without a call to the device. */
size_t oracle_place(struct oracle *oracle, uint64_t addr, uint64_t bytes, uint32_t stream,
                    uint64_t list);
/* The next address in the policy's log for an operation of that kind. */
uint64_t oracle_address(struct oracle *oracle, uint8_t kind);

bool oracle_is_whole(const struct oracle *oracle, size_t piece); /* its segment is it alone */
void oracle_remove(struct oracle *oracle, size_t piece);         /* forgets the piece */
void oracle_drop(struct oracle *oracle, size_t piece);           /* a whole segment goes back */
void oracle_drop_idle(struct oracle *oracle); /* all that are free from end to end */
/* A new segment; if the limit refuses, idle ones go back and it is tried again. */
size_t oracle_grow_or_flush(struct oracle *oracle, uint64_t bytes, uint32_t stream, uint64_t list);

/* Cuts a piece: it keeps the low end, the rest is the next piece, free, filed
 * now in the same list. */
void oracle_cut(struct oracle *oracle, size_t piece, uint64_t bytes);
/* Joins a piece with free neighbors of its list and files the result. */
size_t oracle_merge(struct oracle *oracle, size_t piece);
void oracle_expect(struct oracle *oracle, uint8_t kind, uint64_t addr, uint64_t bytes);

#endif
