/* How models are begun and ended that need more of the analysis than a window; for
 * models.c and analyze.c alone. */
#ifndef MT_ANALYZER_MODEL_FEEDS_H
#define MT_ANALYZER_MODEL_FEEDS_H

#include "analysis.h"

enum mt_status mt_address_feed_begin(struct mt_analysis *analysis, uint32_t slot,
                                     struct mt_model_feed *feed) MT_MUST_USE;
enum mt_status mt_address_feed_finish(struct mt_analysis *analysis, void *builder,
                                      struct mt_device_report *out) MT_MUST_USE;

enum mt_status mt_blocks_feed_begin(struct mt_analysis *analysis, uint32_t slot,
                                    struct mt_model_feed *feed) MT_MUST_USE;
enum mt_status mt_blocks_feed_finish(struct mt_analysis *analysis, void *builder,
                                     struct mt_device_report *out) MT_MUST_USE;
/* The event after which it wants to know all that is alive; MT_PLAN_NOTHING = none. */
uint64_t mt_blocks_feed_instant(const struct mt_analysis *analysis, uint32_t slot);

enum mt_status mt_lifetimes_feed_begin(struct mt_analysis *analysis, uint32_t slot,
                                       struct mt_model_feed *feed) MT_MUST_USE;
enum mt_status mt_lifetimes_feed_finish(struct mt_analysis *analysis, void *builder,
                                        struct mt_device_report *out) MT_MUST_USE;

#endif
