/* What a device is full of while a model serves. */
#ifndef MT_ANALYZER_FILL_DEVICE_PARTS_H
#define MT_ANALYZER_FILL_DEVICE_PARTS_H

#include "status.h"

struct mt_analysis;
struct mt_snapshot;
struct mt_device_report;

/* After the driver's report. `peak`: of the device, at its allocated peak; NULL: there is none.
 * out->device_parts stays NULL where the table would not close. */
enum mt_status mt_fill_device_parts(struct mt_analysis *analysis, const struct mt_snapshot *peak,
                                    struct mt_device_report *out) MT_MUST_USE;

#endif
