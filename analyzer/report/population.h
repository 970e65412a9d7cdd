/* Blocks that are not of one instant: all that a run allocated, what grew from
 * step to step, what a step kept. Streamed; grouped as a snapshot is, but for phases
 * of one name, which count as one: bounded by distinct stacks and sizes. */
#ifndef MT_ANALYZER_POPULATION_H
#define MT_ANALYZER_POPULATION_H

#include "models.h"

struct mt_population_builder;

/* Of the survey's device `slot`; the options say which. */
enum mt_status mt_population_begin(struct mt_analysis *analysis, uint32_t slot,
                                   struct mt_model_feed *feed) MT_MUST_USE;
enum mt_status mt_population_finish(struct mt_analysis *analysis, void *builder,
                                    struct mt_device_report *out) MT_MUST_USE;

#endif
