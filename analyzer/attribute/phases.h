/* Phase tracker: from PHASE_PUSH and PHASE_POP events to instances of named ranges, and to the
 * range that an event happened in. Feed it every event of those two kinds in order, then
 * mt_phases_finish. A second pass over the same trace starts with mt_phases_rewind and gives the
 * same indices.
 *
 * A thread outside of all ranges inherits the range of the thread that was last active in one
 * (backward runs on its own threads). That range is the parent of a range that the framework
 * inserts there. */
#ifndef MT_ANALYZER_PHASES_H
#define MT_ANALYZER_PHASES_H

#include "phase.h"
#include "symbols.h"

/* Deeper ranges, and more instances, are counted but not distinguished. */
#define MT_PHASES_MAX_DEPTH 256
#define MT_PHASES_MAX       (1u << 17)

/* Facts about an instance for roles, parallel to `phases`. */
struct mt_phase_facts {
    int32_t owner; /* outermost instance around it that has the same kind and determines it; for an
                      unknown kind: the innermost around it that the user named, possibly itself */
    uint8_t kind;  /* enum mt_phase_kind: its own, otherwise its parent's */
    uint8_t step_rank;
    int64_t number; /* from the name, if step_rank */
};

struct mt_open_range {
    int32_t phase;  /* instance, or that of the surrounding range if not recorded */
    uint32_t name;  /* index of the parsed name */
    uint32_t outer; /* index + 1 into `open`, 0 = outermost */
    bool recorded;
};

struct mt_phase_thread {
    int32_t innermost; /* MT_NO_PHASE = none */
    uint32_t top;      /* index + 1 into `open` */
    uint32_t depth, overflow;
    int32_t newer, older; /* threads in a range, by last activity; -1 = none */
    bool listed;
};

struct mt_phases {
    struct mt_arena *arena; /* of paths */
    const struct mt_symbols *symbols;
    struct mt_phase *phases;
    struct mt_phase_facts *facts;
    uint32_t count;
    size_t capacity;
    uint32_t limit; /* of instances */
    uint32_t next;  /* index of the next push; < count in a second pass */

    struct mt_phase_thread *threads;
    size_t thread_count; /* room, all of it in use */
    int32_t newest;      /* thread last active in a range, -1 = none */
    int32_t latest;      /* its innermost phase, which others inherit */
    struct mt_open_range *open;
    uint32_t open_count, open_free; /* free: index + 1 chain */
    size_t open_capacity;

    /* Instances ended by the last mt_phases_pop, inner ones first. */
    int32_t ended[MT_PHASES_MAX_DEPTH];
    uint32_t ended_count;
    uint64_t not_recorded; /* beyond the limits */
    uint64_t unmatched;    /* ends without a start */
    uint32_t xla_modules;  /* of the instances: runs of a module of XLA (xla_names.h) */

    /* PRIVATE: parsed names; names that differ only in XLA's numbers are one */
    struct mt_map name_ids, xla_ids; /* of the trace's strings; of xla_texts */
    struct mt_strings xla_texts;
    struct mt_phase_name {
        const char *text; /* as in reports */
        int64_t number;
        uint8_t kind, step_rank, xla; /* xla: enum mt_xla_range */
        bool is_plumbing;
    } * names;
    uint32_t name_count;
    size_t name_capacity;
};

void mt_phases_init(struct mt_phases *phases, struct mt_arena *arena,
                    const struct mt_symbols *symbols);
void mt_phases_release(struct mt_phases *phases);

/* Adds no further instances. */
static inline void mt_phases_stop(struct mt_phases *phases)
{
    phases->limit = phases->count;
}

/* Begins a range. *phase becomes the new instance, or MT_NO_PHASE if it is beyond the limits, or if
 * the surrounding range represents it: that one has the same name, or both are XLA's. */
void mt_phases_push(struct mt_phases *phases, const struct mt_event *event, int32_t *phase);
/* Ends the innermost range of that name and the ranges still open in it; see `ended`. A range of
 * the framework ends alone if a user's range began in it. */
void mt_phases_pop(struct mt_phases *phases, const struct mt_event *event);

/* Ends open ranges, decides which ranges are steps, and numbers everything. */
void mt_phases_finish(struct mt_phases *phases, uint64_t last_t_ns, uint64_t last_event);

void mt_phases_rewind(struct mt_phases *phases);

/* Innermost phase of an event on `thread`. O(1). */
static inline int32_t mt_phases_current(const struct mt_phases *phases, uint16_t thread)
{
    if (thread < phases->thread_count && phases->threads[thread].innermost != MT_NO_PHASE)
        return phases->threads[thread].innermost;
    return phases->latest;
}

#endif
