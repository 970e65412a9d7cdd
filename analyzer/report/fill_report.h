/* From what the passes learned to the report, for analyze.c alone. */
#ifndef MT_ANALYZER_FILL_REPORT_H
#define MT_ANALYZER_FILL_REPORT_H

#include "status.h"

struct mt_analysis;

/* What the pass `run` learned: phases; of each device the replay, peaks and steps. Runs
 * before the pass `blocks`, whose models and findings need it. */
enum mt_status mt_fill_facts(struct mt_analysis *analysis) MT_MUST_USE;
/* What the pass `blocks` learned, after it. */
enum mt_status mt_fill_report(struct mt_analysis *analysis) MT_MUST_USE;

#endif
