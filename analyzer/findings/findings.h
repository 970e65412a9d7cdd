/* Findings: suggested changes of the program or its settings, each with evidence, and with the
 * replay that proves the saving. */
#ifndef MT_ANALYZER_FINDINGS_H
#define MT_ANALYZER_FINDINGS_H

#include "report.h"
#include "status.h"

struct mt_analysis;

/* Call it before the pass `blocks`: requests the data that findings need. */
void mt_findings_begin(struct mt_analysis *analysis);

/* Fills devices[].findings, the most severe first, then the largest. Reads the source again, from
 * its start, if a finding requires it: call it last. */
enum mt_status mt_findings_fill(struct mt_analysis *analysis) MT_MUST_USE;

/* Text for a device without findings: what was examined, and what could not be. */

/* Returns one sentence without a period, in the arena, for a run in which no request is known to
 * have been refused. */
const char *mt_nothing_found(struct mt_arena *arena, const struct mt_report *report,
                             const struct mt_device_report *device);

#endif
