/* The models behind charts, one file each and one row in the table of model_list.h. The pass
 * `wanted` begins them, the pass `blocks` feeds them, and they are then part of the report. The
 * size of a model is bounded. */
#ifndef MT_ANALYZER_MODELS_H
#define MT_ANALYZER_MODELS_H

#include "model_feed.h"
#include "report.h"

struct mt_analysis;

/* Begins the requested models of the survey's device `slot`. */
enum mt_status mt_models_begin(struct mt_analysis *analysis, uint32_t slot,
                               struct mt_model_feeds *feeds) MT_MUST_USE;
/* After the last event: adds the models to the report. */
enum mt_status mt_models_finish(struct mt_analysis *analysis, struct mt_model_feeds *feeds,
                                struct mt_device_report *out) MT_MUST_USE;

/* Writes the events after which those models need a snapshot of the device's live blocks, and
 * returns their number. */
uint32_t mt_models_snapshot_events(const struct mt_analysis *analysis, uint32_t slot,
                                   uint64_t events[MT_MODEL_COUNT]);

#endif
