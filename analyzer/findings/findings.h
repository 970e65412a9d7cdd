/* Findings: what is worth a change in the program or its settings, each with evidence, and
 * with the replay that proves what it saves. */
#ifndef MT_ANALYZER_FINDINGS_H
#define MT_ANALYZER_FINDINGS_H

#include "status.h"

struct mt_analysis;

/* Before the pass `blocks`: asks it for what findings need. */
enum mt_status mt_findings_begin(struct mt_analysis *analysis) MT_MUST_USE;

/* Fills devices[].findings, the severest first, then the largest. Reads the source again, from
 * its start, if a finding has to: last of all. */
enum mt_status mt_findings_fill(struct mt_analysis *analysis) MT_MUST_USE;

#endif
