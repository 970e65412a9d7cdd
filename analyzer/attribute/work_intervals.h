/* A trace cut into intervals of one part of the work each, from evidence in this order of trust:
 * ranges that the program named, ranges that the framework inserted (Optimizer.step), stacks, the
 * thread (autograd's threads have no Python frames). Events without evidence (frees without a
 * stack) belong to the previous interval.
 *
 *     learn: one pass, which also decides whether a second one is needed
 *     mt_work_intervals_prepare, then cut: the second pass */
#ifndef MT_ANALYZER_WORK_INTERVALS_H
#define MT_ANALYZER_WORK_INTERVALS_H

#include "event.h"
#include "model_passes.h"
#include "phase.h"
#include "python_tree.h"
#include "xla_runs.h"

/* State of a trace while it is cut into intervals. */

struct mt_work_interval {
    uint64_t begin_seq, begin_t_ns, end_seq, end_t_ns; /* first and last event */
    uint64_t low_bytes, low_seq, low_t_ns; /* where the lowest allocation was, after an event */
    uint32_t place; /* of its first event with a place, MT_NO_ID; in turns of names: that name */
    uint32_t line;  /* of its first event, MT_NO_ID (mt_loop_places_line) */
    struct mt_turn turn;            /* if it turns */
    struct mt_pass_turn pass;       /* if it passes */
    struct mt_line_parting parting; /* if it comes again: the two lines */
    uint16_t thread;
    uint8_t kind;   /* enum mt_phase_kind */
    uint8_t source; /* enum mt_phase_source of the evidence */
    bool covered;   /* in a range that the program named */
    bool turns;     /* control returned to an earlier line, or name, directly before it */
    bool again;     /* another line calls the function whose work was done before: `parting` */
    bool passes;    /* a turn of a loop that calls a model begins it; the same as `turns`, if the
                       program does not train */
    bool callees;   /* all its allocations were in functions called at its place */
    bool allocates; /* any allocation */
};

/* Open ranges of one thread that carry information. */
struct mt_work_thread {
    uint32_t names[32]; /* of ranges, innermost last */
    uint8_t facts[32];  /* facts from the names */
    uint32_t depth;
    bool is_engine; /* by its name */
};

struct mt_work_intervals {
    struct mt_symbols *symbols;
    struct mt_stack_kinds stacks;
    struct mt_loop_places places;
    struct mt_work_thread *threads;
    size_t thread_count; /* room, all of it in use */

    /* results of learning */
    bool has_framework;
    bool free_stacks; /* some free has a stack */
    bool has_stacks;  /* some allocation has a stack */
    bool has_engine;  /* a thread is autograd's, according to its name */
    bool is_training; /* backward or an optimizer was seen */
    bool user_steps, user_parts,
        user_named;  /* ranges of the program: steps; parts of training or a model's call; any */
    bool user_turns; /* they repeat, and contain most events since the first one */
    uint32_t kinds_told; /* bits: by stacks and ranges */

    /* the cut */
    struct mt_work_interval *list;
    size_t count, capacity;
    struct mt_work_interval now; /* open one, if is_open */
    bool is_open;
    bool named_turns;   /* the program's ranges determine turns, not lines */
    bool step_begins;   /* a step of the program has just begun */
    uint32_t user_open; /* open ranges of the program that name a part */
    uint32_t turn_names[16], turn_name_count;
    struct mt_model_passes passes;
    int32_t main_thread; /* the thread whose places count: the first one that calls a model; -1 */
    uint32_t last_place; /* of the last event with a place */
    uint32_t turn_place; /* the same, without events of callers of its function */
    uint32_t trained_place; /* last place when backward or an update ran, unless a model was called
                               since then; MT_NO_ID */
    uint64_t waiting_seq, waiting_t_ns; /* first event of intervals since the last block */
    bool waits, empties;                /* empties: the cache, so these events serve no block */
    bool died;                          /* a request failed, and no request followed */
    uint64_t allocated, last_t_ns;

    struct mt_map gradients; /* by address: allocations of autograd's threads, if frees have no
                                stacks: a free by another thread clears gradients */

    struct mt_xla_runs xla_runs; /* the cut, if !has_framework */

    /* PRIVATE: names of ranges */
    struct mt_map name_ids;
    struct mt_work_interval_name {
        uint64_t allocations; /* learned: directly in ranges of that name */
        uint32_t pushes;
        uint32_t facts;
    } * names;
    size_t name_count, name_capacity;
    uint32_t open_names[32]; /* learning: ranges of the program, innermost last */
    uint32_t open_count;
    uint64_t beside; /* learning: allocations outside of all ranges except steps, since the first */
};

/* The first pass before a trace is cut into intervals: the names of ranges, threads, and the
 * program's own ranges. */

/* Takes an event of the first pass. When mt_work_intervals_complete returns true, the ranges of the
 * program suffice. This may be known long before the end of the pass. */
void mt_work_intervals_learn(struct mt_work_intervals *intervals, const struct mt_event *event);
static inline bool mt_work_intervals_complete(const struct mt_work_intervals *intervals)
{
    return intervals->user_steps && intervals->user_parts;
}

/* Replaces the first pass of a source that knows the uses of its stacks (source.h). */
void mt_work_intervals_learn_stacks(struct mt_work_intervals *intervals, const uint8_t *uses);

/* Call it between the passes. */
void mt_work_intervals_prepare(struct mt_work_intervals *intervals);

/* Initializes *intervals. `has_framework`: the events are those of an allocator above the driver.
 * Only in that case may a missing stack mean autograd. */
void mt_work_intervals_init(struct mt_work_intervals *intervals, struct mt_symbols *symbols,
                            bool has_framework);
void mt_work_intervals_release(struct mt_work_intervals *intervals);

/* Call mt_work_intervals_cut for each event of the second pass, then mt_work_intervals_finish. */
void mt_work_intervals_cut(struct mt_work_intervals *intervals, const struct mt_event *event);
void mt_work_intervals_finish(struct mt_work_intervals *intervals);

#endif
