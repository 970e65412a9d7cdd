/* Text for a device without findings: what was examined, and what could not be. */
#ifndef MT_ANALYZER_NOTHING_FOUND_H
#define MT_ANALYZER_NOTHING_FOUND_H

#include "report.h"

/* Returns one sentence without a period, in the arena, for a run in which no request is known to
 * have been refused. */
const char *mt_nothing_found(struct mt_arena *arena, const struct mt_report *report,
                             const struct mt_device_report *device);

#endif
