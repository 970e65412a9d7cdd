/* Why a device has no finding, in words: what was looked at, and what could not be. */
#ifndef MT_ANALYZER_NOTHING_FOUND_H
#define MT_ANALYZER_NOTHING_FOUND_H

#include "report.h"

/* Of a run in which no request is known to have been refused. One sentence without a full stop, of
 * the arena; NULL: no memory. */
const char *mt_nothing_found(struct mt_arena *arena, const struct mt_report *report,
                             const struct mt_device_report *device);

#endif
