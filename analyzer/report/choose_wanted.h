/* Chooses the outputs of the pass over live blocks: snapshots, models of charts, lives and pins of
 * findings, trials. For analyze.c only. */
#ifndef MT_ANALYZER_CHOOSE_WANTED_H
#define MT_ANALYZER_CHOOSE_WANTED_H

#include "status.h"

struct mt_analysis;

enum mt_status mt_choose_wanted(struct mt_analysis *analysis) MT_MUST_USE;

#endif
