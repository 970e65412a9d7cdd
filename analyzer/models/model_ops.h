/* A model of a chart as a plug-in: one file each, one line in model_list.h. */
#ifndef MT_ANALYZER_MODEL_OPS_H
#define MT_ANALYZER_MODEL_OPS_H

#include "model_feed.h"
#include "report.h"

struct mt_analysis;

struct mt_model_ops {
    /* Begins the model of the survey's device `slot`, in the pass `wanted`, when peaks, steps and
     * pauses are known. Leaves feed->builder NULL if there is nothing to show for this device. */
    enum mt_status (*begin)(struct mt_analysis *analysis, uint32_t slot,
                            struct mt_model_feed *feed);
    /* After the last event: adds the model to the report. */
    enum mt_status (*finish)(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out);
    /* The event after which the model needs a snapshot of all live blocks. NULL = none. */
    uint64_t (*snapshot_event)(const struct mt_analysis *analysis, uint32_t slot);
};

#endif
