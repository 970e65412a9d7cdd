/* The stacks of the allocations in each call of a model, in order, from which repeated functions
 * are inferred. A call begins with another part of the run, at another line of the
 * program, or when control returns to the first line of the previous call.
 *
 * A log is kept while a block of its call lives, and the newest one of each calling line is always
 * kept. 8 bytes per allocation. */
#ifndef MT_ANALYZER_FORWARD_LOGS_H
#define MT_ANALYZER_FORWARD_LOGS_H

#include "python_tree.h"
#include "site.h"
#include "work_kinds.h"

/* Finds the function that one call of a model enters repeatedly, from the order of its allocations.
 * In
 *
 *     for layer in self.layers: x = layer(x)
 *
 * all allocations of all layers have the same stacks, but control returns to the first line of the
 * layer's function n times. That is a body: a function, called from one line. It is entered as
 * often as most of its lines are reached, and the first such line begins an entry. A loop over
 * several lines of one function also counts: its turns are the entries.
 *
 * Only the outermost repeated body is reported. A body with fewer than two repeated lines does not
 * count, because one line that allocates twice looks the same. */

struct mt_module_call {
    uint32_t body;  /* node of the line that begins an entry; MT_NO_ID: in no repeated body */
    uint32_t entry; /* 0.. */
    uint32_t times; /* entries into the body in the whole sequence */
};

/* Allocations of one call of a model, in order: all below the node `root`, or at the node
 * itself. */
struct mt_module_sequence {
    uint32_t root;
    const uint32_t *nodes;
    size_t count;
    bool is_cut; /* the call did not end: its last entry may lack lines */
};

/* Fills calls[i] for each allocation. O(count * depth * log count). */
enum mt_status mt_module_calls_find(const struct mt_python_tree *tree,
                                    const struct mt_symbols *symbols,
                                    const struct mt_module_sequence *sequence,
                                    struct mt_module_call *calls) MT_MUST_USE;

/* Calling lines for which the newest log is kept. */
#define MT_FORWARD_LINES_MAX 32

struct mt_forward_log {
    uint32_t call;  /* node of the outermost module's call */
    int32_t owner;  /* the part of the run in which the call happened */
    uint32_t first; /* node of the first line of the model's own code; MT_NO_ID = none */
    uint32_t last;  /* node of the last line of the model's own code */
    uint32_t *nodes;
    int32_t *phases; /* parallel to nodes: innermost range, MT_NO_PHASE */
    uint64_t first_event, last_event;
    uint32_t count;
    size_t capacity, phase_capacity;
    uint64_t alive; /* number of live blocks that refer to the log */
    bool is_open, is_newest;
    struct mt_module_call *calls; /* parallel to nodes, after mt_forward_logs_settle */
};

/* The log and position of a block's allocation. */
struct mt_forward_position {
    uint32_t log; /* MT_NO_ID: the allocation is in no tracked call of a model */
    uint32_t at;
};

/* Zeroed memory is ready. */
struct mt_forward_logs {
    struct mt_forward_log *logs;
    uint32_t count;
    struct mt_python_tree tree;
    struct mt_site_table sites;
    struct mt_stack_kinds kinds;
    uint32_t open;   /* index + 1 of the log of the current call; 0 = none */
    uint32_t closed; /* calls that have ended */
    /* PRIVATE */
    size_t capacity;
    struct mt_forward_root {
        uint32_t call, top; /* the outermost module's call; the model's own line */
        bool is_call;       /* the frame calls a module */
        bool has_code; /* below the call there is code of the model itself, not only of a container
                        */
        bool is_inner; /* the frame is in a module that the model's own code calls */
    } * roots;         /* by stack */
    uint32_t root_count;
    size_t root_capacity;
    uint32_t newest[MT_FORWARD_LINES_MAX], newest_count;
    uint32_t unused; /* index + 1 of an empty log; chained by `call` */
    uint64_t held;   /* allocations in all logs */
};

/* Returns true if the frame is that of the framework that calls the forward of a module. */
static inline bool mt_forward_logs_is_call(const struct mt_forward_logs *logs, uint32_t node)
{
    return node < logs->root_count && logs->roots[node].is_call;
}

/* Returns true if the frame is in a module that the model's own code calls, not only a
 * container. */
static inline bool mt_forward_logs_is_inner(const struct mt_forward_logs *logs, uint32_t node)
{
    return node < logs->root_count && logs->roots[node].is_inner;
}

/* Adds new stacks. */
void mt_forward_logs_update(struct mt_forward_logs *logs, const struct mt_symbols *symbols);

struct mt_forward_birth {
    uint64_t event;
    uint32_t stack;
    int32_t phase, owner; /* innermost range; the part of the run that the program named */
};

/* Adds an allocation. *place refers to its log until mt_forward_logs_leave. Allocations of backward
 * or an optimizer end the previous call. */
void mt_forward_logs_add(struct mt_forward_logs *logs, const struct mt_forward_birth *birth,
                         struct mt_forward_position *place);

/* Add and remove a reference of a block to a place. */
void mt_forward_logs_enter(struct mt_forward_logs *logs, struct mt_forward_position place);
void mt_forward_logs_leave(struct mt_forward_logs *logs, struct mt_forward_position place);

/* Returns the part of a training step according to a stack (enum mt_phase_kind). */
static inline uint8_t mt_forward_logs_kind(const struct mt_forward_logs *logs, uint32_t stack)
{
    return mt_stack_kind(&logs->kinds, stack) & MT_STACK_KIND_MASK;
}

/* Numbers the entries of repeated functions in the existing logs. */
enum mt_status mt_forward_logs_settle(struct mt_forward_logs *logs,
                                      const struct mt_symbols *symbols) MT_MUST_USE;

/* Call it after mt_forward_logs_settle. Returns the entry that the allocation at a place belongs
 * to. */
struct mt_module_call mt_forward_logs_call(const struct mt_forward_logs *logs,
                                           struct mt_forward_position place);
void mt_forward_logs_release(struct mt_forward_logs *logs);

#endif
