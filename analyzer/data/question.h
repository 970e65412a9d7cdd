/* Questions to an analysis: the blocks of one instant, a part of the run, a population of blocks,
 * the layers of a timeline. */
#ifndef MT_ANALYZER_QUESTION_H
#define MT_ANALYZER_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

/* An instant, and how the blocks alive then are grouped. */
enum mt_question_at {
    MT_AT_PEAK, /* of allocated bytes */
    MT_AT_RESERVED_PEAK,
    MT_AT_OOM, /* the one that ended the program; otherwise the last one */
    MT_AT_END,
    MT_AT_TIME,  /* in ns since the first event: see half_ns */
    MT_AT_EVENT, /* after the event of this number */
    MT_AT_PHASE  /* at the allocated peak within that phase */
};

enum mt_group_by {
    MT_BY_SITE,
    MT_BY_STACK,
    MT_BY_ROLE,
    MT_BY_PHASE,
    MT_BY_SIZE,
    MT_BY_MODULE,
    MT_BY_TAG /* the program's own text */
};
enum { MT_GROUP_BY_COUNT = MT_BY_TAG + 1 };

struct mt_question {
    enum mt_question_at at;
    uint64_t value;    /* TIME, EVENT */
    uint64_t half_ns;  /* TIME: at the allocated peak from value - half_ns until value + half_ns; 0:
                          after the last event up to that time */
    const char *phase; /* PHASE: "step#2/backward", or the last names of a path: "backward" */
    enum mt_group_by by;
    const char *member; /* TAG: of JSON objects, such as "layer"; NULL = the whole tag */
    bool all;           /* name every row */
};

/* "site", "stack", "role", "phase", "size", "module", "tag". */
const char *mt_group_by_name(enum mt_group_by by);

/* Selects blocks over time, not at one instant. */
enum mt_population_of {
    MT_POPULATION_ALLOCATED, /* all allocations, each counted as often as it happened */
    MT_POPULATION_GREW, /* allocated after the warm-up but not in the last two steps, and alive when
                           the last step begins */
    MT_POPULATION_KEPT  /* allocated in one step, and alive when the next begins */
};
enum { MT_POPULATION_KINDS = MT_POPULATION_KEPT + 1 };

/* "allocated-total", "grew", "kept". */
const char *mt_population_name(enum mt_population_of of);

/* The layers of a timeline. */
enum mt_layer_by {
    MT_LAYERS_BY_ROLE,
    MT_LAYERS_BY_PHASE, /* phase of allocation */
    MT_LAYERS_BY_SITE,
    MT_LAYERS_BY_STREAM,
    MT_LAYERS_BY_TAG
};
enum { MT_LAYER_BY_COUNT = MT_LAYERS_BY_TAG + 1 };

/* "role", "phase", "site", "stream", "tag". */
const char *mt_layer_by_name(enum mt_layer_by by);

/* The part of the run that a model shows. Default: the step with the allocated peak. */
struct mt_window_request {
    bool has_step, whole; /* has_step: the step with number `step`; whole: the whole trace */
    int64_t step;
    const char *phase; /* NULL, or a path as in questions; among several instances, the one with the
                          largest peak */
};

#endif
