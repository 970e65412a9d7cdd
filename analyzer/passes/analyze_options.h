/* The options of mt_analyze. */
#ifndef MT_ANALYZER_ANALYZE_OPTIONS_H
#define MT_ANALYZER_ANALYZE_OPTIONS_H

#include "question.h"
#include "replay.h"
#include "report.h"

/* Called after each batch of events with the current activity ("replaying", static) and its
 * progress, 0 to 1; negative if it is unknown. Each activity starts again at 0. */
struct mt_analyze_progress {
    void (*tell)(void *context, const char *what, double share); /* NULL = no progress reports */
    void *context;
};

struct mt_model_ops; /* model_feed.h */

struct mt_analyze_options {
    struct mt_analyze_progress progress;
    const char *path;                /* of the input, for the report; may be NULL */
    struct mt_replay_options replay; /* policy NULL: "pytorch", or "recorded" if
                                        that does not reproduce the trace */
    unsigned models;                 /* built only if requested: enum mt_model_bit */
    bool only_shown; /* models, except of modules, only of the devices of device_choice.h */
    uint32_t bins;   /* resolution of the models, 0 = 4096 */
    struct mt_window_request window;
    bool no_findings; /* no output shows them, nor whether memory grows */
    bool needs;       /* the devices' needs (mt_need), by dozens of replays */
    bool peak_orders; /* for a dry run: its peaks under other orders of addresses, by several
                         replays; `needs` includes them */
    enum mt_population_of population; /* of its model */
    enum mt_layer_by layer_by;        /* of the timeline */
    const char *layer_member;         /* by tag: as in questions */
    /* Only the answer to this question, peaks and phases: no explanations, no findings, and no
     * memory outside of the framework unless `driver` is set. NULL = the whole report. */
    const struct mt_question *question;
    bool driver;
    /* Receives blocks as the models of charts do, but is not part of the report. NULL = none. */
    const struct mt_model_ops *listener;
    void *listener_context; /* for the listener, which finds it in the options of the analysis */
    bool by_segment;        /* the answer also has unused memory by segment */
    const char *command;    /* of the run, as words for a shell; NULL: the recorded one, if any */
};

#endif
