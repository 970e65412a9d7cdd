/* The part of a run that some models show, chosen by the options of the analysis. */
#ifndef MT_ANALYZER_MODEL_WINDOW_H
#define MT_ANALYZER_MODEL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct mt_analysis;

struct mt_model_window {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event; /* ends inclusive */
    int64_t step;                                          /* MT_NO_STEP = the whole run */
    int32_t phase;                                         /* the window, or MT_NO_PHASE */
    bool missing; /* the requested part does not exist: the whole run instead */
};

/* The part that the options request; the whole run if it does not exist. */
struct mt_model_window mt_model_window(const struct mt_analysis *analysis, uint32_t slot);

/* Resolution of the models, in bins. */
uint32_t mt_model_bins(const struct mt_analysis *analysis);

#endif
