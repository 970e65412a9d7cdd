/* A phase is one instance of a named range, with the origin of its name. */
#ifndef MT_ANALYZER_PHASE_H
#define MT_ANALYZER_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#define MT_NO_STEP  INT64_MIN
#define MT_NO_PHASE (-1)

/* Evidence for a phase, most trusted first. */
enum mt_phase_source {
    MT_PHASE_ANNOTATED, /* the program named it */
    MT_PHASE_SCOPES,    /* the framework named it: Optimizer.step, autograd's nodes */
    MT_PHASE_STACKS,    /* functions and lines in the stacks */
    MT_PHASE_THREADS,   /* autograd's threads, and the gaps between their work */
    MT_PHASE_PERIOD     /* a repeating pattern of requests */
};
enum { MT_PHASE_SOURCE_COUNT = MT_PHASE_PERIOD + 1 };

/* "annotation", "scopes", "stacks", "threads", "period". */
const char *mt_phase_source_name(enum mt_phase_source source);

/* One instance of a named range. Phases are sorted by start; a child comes after its parent. */
struct mt_phase {
    const char *name; /* as recorded: "forward" */
    const char *loop; /* of an inferred step: the line of its loop, if there are several; or NULL */
    const char *path; /* names from the outermost phase inward: "step#0/forward" */
    int64_t step;     /* of the innermost step that contains it, possibly itself */
    int32_t parent;   /* MT_NO_PHASE at the top */
    uint32_t depth;   /* 0 at the top */
    uint16_t thread;
    uint8_t source;   /* enum mt_phase_source */
    bool is_step;     /* its name carries the step number */
    bool is_plumbing; /* inserted by the framework, not by the user:
                         "Optimizer.step#Adam.step", "nccl:..." */
    bool cut;         /* no end was recorded: ended with its parent or trace */
    uint64_t begin_t_ns, end_t_ns;
    uint64_t begin_event, end_event; /* its own begin and end event, or the first and the last event
                                        in it if it was inferred */
};

/* Returns the event after which memory is as it is at the start of the phase: its own begin event,
 * or for an inferred phase the last event before it. */
static inline uint64_t mt_phase_last_event_before(const struct mt_phase *phase)
{
    bool has_event = phase->source == MT_PHASE_ANNOTATED || phase->source == MT_PHASE_SCOPES;

    return has_event || !phase->begin_event ? phase->begin_event : phase->begin_event - 1;
}

/* Returns the innermost range that is not one of the framework's; `phase` if there is none. */
static inline int32_t mt_phase_named(const struct mt_phase *phases, int32_t phase)
{
    int32_t at = phase;

    while (at != MT_NO_PHASE && phases[at].is_plumbing)
        at = phases[at].parent;
    return at == MT_NO_PHASE ? phase : at;
}

#endif
