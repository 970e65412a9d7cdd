/* The models that charts draw, and the course of a run, which summaries of ranks hold. Everything
 * about a model outside its own files follows from its line here:
 *
 *   MT_MODEL_TIMELINE                   the bit that asks for it (mt_analyze_options.models)
 *   struct mt_timeline *timeline        what it puts into a device's report
 *   mt_model_timeline                   how it is made (model_ops.h)
 *
 * The struct is in timeline_model.h; that of population in report.h. */
#ifndef MT_ANALYZER_MODEL_LIST_H
#define MT_ANALYZER_MODEL_LIST_H

/* In the order in which they begin, hear of an event, and finish. */
#define MT_MODELS(ROW)                                                                             \
    ROW(TIMELINE, timeline)                                                                        \
    ROW(FLAMECHART, flamechart)                                                                    \
    ROW(BLOCKS, blocks)                                                                            \
    ROW(LIFETIMES, lifetimes)                                                                      \
    ROW(HISTORY, history)                                                                          \
    ROW(POPULATION, population)                                                                    \
    ROW(ADDRESS, address)                                                                          \
    ROW(MODULES, modules)                                                                          \
    ROW(COURSE, course)

/* Places in the list. */
#define MT_MODEL_AT(NAME, name) MT_MODEL_AT_##NAME,
enum mt_model_at { MT_MODELS(MT_MODEL_AT) MT_MODEL_COUNT };
#undef MT_MODEL_AT

/* Sets of models. */
#define MT_MODEL_BIT(NAME, name) MT_MODEL_##NAME = 1 << MT_MODEL_AT_##NAME,
enum mt_model_bit { MT_MODELS(MT_MODEL_BIT) };
#undef MT_MODEL_BIT

#endif
