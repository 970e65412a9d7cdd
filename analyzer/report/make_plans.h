/* What the reading of the live blocks is asked for: snapshots, models of charts, lives and pins of
 * findings, trials. For analyze.c alone. */
#ifndef MT_ANALYZER_MAKE_PLANS_H
#define MT_ANALYZER_MAKE_PLANS_H

#include "status.h"

struct mt_analysis;

enum mt_status mt_make_plans(struct mt_analysis *analysis) MT_MUST_USE;

#endif
