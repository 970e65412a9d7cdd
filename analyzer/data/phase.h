/* Phases: one instance of a named range, and where its name comes from. */
#ifndef MT_ANALYZER_PHASE_H
#define MT_ANALYZER_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#define MT_NO_STEP  INT64_MIN
#define MT_NO_PHASE (-1)

/* What says that there is a phase, most trusted first. */
enum mt_phase_source {
    MT_PHASE_ANNOTATED, /* the program named it */
    MT_PHASE_SCOPES,    /* the framework did: Optimizer.step, autograd's nodes */
    MT_PHASE_STACKS,    /* functions in the stacks, and their lines */
    MT_PHASE_THREADS,   /* autograd's threads, and what is between their work */
    MT_PHASE_PERIOD     /* requests repeat */
};
enum { MT_PHASE_SOURCE_COUNT = MT_PHASE_PERIOD + 1 };

/* "annotation", "scopes", "stacks", "threads", "period". */
const char *mt_phase_source_name(enum mt_phase_source source);

/* One instance of a named range. Phases are stored in order of their begin;
 * a child comes after its parent. */
struct mt_phase {
    const char *name; /* as recorded: "forward" */
    const char *path; /* names from the outermost in: "step#0/forward" */
    int64_t step;     /* of the innermost step that holds it, itself included */
    int32_t parent;   /* MT_NO_PHASE at the top */
    uint32_t depth;   /* 0 at the top */
    uint16_t thread;
    uint8_t source;   /* enum mt_phase_source */
    bool is_step;     /* its name carries the step number */
    bool is_plumbing; /* inserted by the framework, not by the user:
                         "Optimizer.step#Adam.step", "nccl:..." */
    bool cut;         /* no end was recorded: ended with its parent or trace */
    uint64_t begin_t_ns, end_t_ns;
    uint64_t begin_event, end_event; /* of its own; the first and the last event in
                                        it, if it was found */
};

/* The last event before the phase: after it, memory is as it was when the phase began. */
static inline uint64_t mt_phase_eve(const struct mt_phase *phase)
{
    bool has_event = phase->source == MT_PHASE_ANNOTATED || phase->source == MT_PHASE_SCOPES;

    return has_event || !phase->begin_event ? phase->begin_event : phase->begin_event - 1;
}

#endif
