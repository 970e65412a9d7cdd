/* Computes the parts of a device's memory while a model serves requests. */
#ifndef MT_ANALYZER_FILL_DEVICE_PARTS_H
#define MT_ANALYZER_FILL_DEVICE_PARTS_H

#include "status.h"

struct mt_analysis;
struct mt_snapshot;
struct mt_device_report;

/* Fills out->device_parts. Call it after the driver's report is filled. `peak` is the snapshot at
 * the device's allocated peak, or NULL. out->device_parts stays NULL if the parts would not sum to
 * the total. */
void mt_report_fill_device_parts(struct mt_analysis *analysis, const struct mt_snapshot *peak,
                                 struct mt_device_report *out);

#endif
