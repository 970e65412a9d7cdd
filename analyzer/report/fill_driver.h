/* What lies outside the framework's heap, from the driver ledger to the report. */
#ifndef MT_ANALYZER_FILL_DRIVER_H
#define MT_ANALYZER_FILL_DRIVER_H

#include "status.h"

struct mt_analysis;

/* After the devices are filled. */
enum mt_status mt_fill_driver(struct mt_analysis *analysis) MT_MUST_USE;

#endif
