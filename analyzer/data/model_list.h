/* The models behind charts, and the model that summaries of ranks use. Everything about a model
 * outside its own files is generated from its line here:
 *
 *   MT_MODEL_TIMELINE                   the bit that requests it (mt_analyze_options.models)
 *   struct mt_timeline *timeline        its part of a device's report
 *   mt_model_timeline                   its operations (model_ops.h)
 *
 * The struct is in timeline_model.h; that of population is in report.h. */
#ifndef MT_ANALYZER_MODEL_LIST_H
#define MT_ANALYZER_MODEL_LIST_H

/* In the order in which they begin, receive events, and finish. */
#define MT_MODELS(ROW)                                                                             \
    ROW(TIMELINE, timeline)                                                                        \
    ROW(FLAMECHART, flamechart)                                                                    \
    ROW(BLOCKS, blocks)                                                                            \
    ROW(HISTORY, history)                                                                          \
    ROW(POPULATION, population)                                                                    \
    ROW(ADDRESS, address)                                                                          \
    ROW(MODULES, modules)                                                                          \
    ROW(LEVEL_OVER_TIME, level_over_time)

/* Indices in the list. */
#define MT_MODEL_AT(NAME, name) MT_MODEL_AT_##NAME,
enum mt_model_at { MT_MODELS(MT_MODEL_AT) MT_MODEL_COUNT };
#undef MT_MODEL_AT

/* Sets of models. */
#define MT_MODEL_BIT(NAME, name) MT_MODEL_##NAME = 1 << MT_MODEL_AT_##NAME,
enum mt_model_bit { MT_MODELS(MT_MODEL_BIT) };
#undef MT_MODEL_BIT

#endif
