/* What a caller of mt_analyze asks for. */
#ifndef MT_ANALYZER_ANALYZE_OPTIONS_H
#define MT_ANALYZER_ANALYZE_OPTIONS_H

#include "model_list.h"
#include "question.h"
#include "replay.h"

/* Called occasionally with what is done ("analysing", static) and the share of it, 0..1. Each thing
 * that is done begins again at 0. */
struct mt_analyze_progress {
    void (*tell)(void *context, const char *what, double share); /* NULL = nobody listens */
    void *context;
};

struct mt_analyze_options {
    struct mt_analyze_progress progress;
    const char *path;                /* of the input, for the report; may be NULL */
    struct mt_replay_options replay; /* policy NULL: "pytorch", or "recorded" if
                                        that does not reproduce the trace */
    unsigned models;                 /* built only if asked for: enum mt_model_bit */
    uint32_t bins;                   /* resolution of the models, 0 = 4096 */
    struct mt_window_wish window;
    bool needs;       /* what the devices must have (mt_need), by some hundred replays */
    bool peak_orders; /* of a dry run: its peaks under other orders of addresses, by some replays;
                         `needs` asks for them as well */
    enum mt_population_of population; /* that its model is of */
    enum mt_layer_by layer_by;        /* of the timeline */
    /* Only this, and peaks and phases: no explanations, no findings, nothing of
     * what is beside the framework. NULL = the whole report. */
    const struct mt_question *question;
};

#endif
