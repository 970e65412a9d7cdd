/* Peaks of a dry run under other orders of addresses. Where the driver puts segments decides which
 * of equal free blocks an allocator uses, and so what it reserves. A simulated device puts them
 * elsewhere than a real one, so that a peak of a dry run is one of a range. */
#ifndef MT_ANALYZER_PEAK_ORDERS_H
#define MT_ANALYZER_PEAK_ORDERS_H

#include "status.h"

#include <stdbool.h>

struct mt_analysis;

/* Of a dry run, if the caller asked for them or for needs (needs.h). */
bool mt_peak_orders_are_wanted(const struct mt_analysis *analysis);

/* Fills devices[].peak_orders, except of devices that ran out of memory. Reads the source from its
 * start at least once, and once for each further order if addresses decided anything.
 * MT_ERR_MEMORY, and what mt_replay_run returns. */
enum mt_status mt_fill_peak_orders(struct mt_analysis *analysis) MT_MUST_USE;

#endif
