/* Peaks of a dry run under other orders of addresses. The driver's placement of segments decides
 * which of equal free blocks an allocator uses, and so how much it reserves. A simulated device
 * places them differently from a real one, so a peak of a dry run is one of a range. */
#ifndef MT_ANALYZER_PEAK_ORDERS_H
#define MT_ANALYZER_PEAK_ORDERS_H

#include "status.h"

#include <stdbool.h>

struct mt_analysis;

/* For a dry run, if they or needs (needs.h) are requested. */
bool mt_peak_orders_are_wanted(const struct mt_analysis *analysis);

/* Fills devices[].peak_orders, except of devices that ran out of memory. Reads the source from its
 * start at least once, and once for each further order if addresses decided anything. Returns the
 * status of mt_replay_run. */
enum mt_status mt_fill_peak_orders(struct mt_analysis *analysis) MT_MUST_USE;

#endif
