/* Remedies for a run that ended out of memory. */
#ifndef MT_ANALYZER_OOM_ANSWERS_H
#define MT_ANALYZER_OOM_ANSWERS_H

#include "status.h"

struct mt_analysis;

/* Fills devices[].oom_answer of the devices on which the run ended, by replays, if the trace is
 * short enough for hundreds of them. Reads the source from its start. */
enum mt_status mt_oom_answers_fill(struct mt_analysis *analysis) MT_MUST_USE;

#endif
