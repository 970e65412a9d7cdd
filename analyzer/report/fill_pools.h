/* The rows of pools in the report of a device. */
#ifndef MT_ANALYZER_FILL_POOLS_H
#define MT_ANALYZER_FILL_POOLS_H

#include "analysis.h"

/* Fills out->pools for the device with index `slot` in the survey. analysis->attribution must be
 * ready. Adds no rows if the run had no private pool, if its segments are unknown, in a what-if
 * replay, or if a damaged trace lost the free of a block. */
void mt_fill_pools(struct mt_analysis *analysis, struct mt_device_report *out, uint32_t slot);

#endif
