/* What the reading of the live blocks is asked for: snapshots, models of charts, lives and pins of
 * findings, trials. For analyze.c alone. */
#ifndef MT_ANALYZER_CHOOSE_WANTED_H
#define MT_ANALYZER_CHOOSE_WANTED_H

#include "status.h"

struct mt_analysis;

enum mt_status mt_choose_wanted(struct mt_analysis *analysis) MT_MUST_USE;

#endif
