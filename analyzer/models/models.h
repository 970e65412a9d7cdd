/* The models that charts read, one file each behind the table of model_list.h: begun by the
 * pass `wanted`, fed in the pass `blocks`, and part of the report after it. The size of a
 * model is bounded, whatever the trace. */
#ifndef MT_ANALYZER_MODELS_H
#define MT_ANALYZER_MODELS_H

#include "model_feed.h"
#include "report.h"

struct mt_analysis;

/* Begins the models that the options ask for, of the survey's device `slot`. */
enum mt_status mt_models_begin(struct mt_analysis *analysis, uint32_t slot,
                               struct mt_model_feeds *feeds) MT_MUST_USE;
/* After the last event: puts the models into the report. */
enum mt_status mt_models_finish(struct mt_analysis *analysis, struct mt_model_feeds *feeds,
                                struct mt_device_report *out) MT_MUST_USE;

/* Events after which those models need a snapshot of the device's live blocks. Returns how
 * many it wrote. */
uint32_t mt_models_snapshot_events(const struct mt_analysis *analysis, uint32_t slot,
                                   uint64_t events[MT_MODEL_COUNT]);

#endif
