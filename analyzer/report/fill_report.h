/* Fills the report from the results of the passes. For analyze.c only. */
#ifndef MT_ANALYZER_FILL_REPORT_H
#define MT_ANALYZER_FILL_REPORT_H

#include "status.h"

struct mt_analysis;

/* Adds the results of pass `run`: phases, and for each device the replay, peaks and steps. Call it
 * before pass `blocks`, whose models and findings need them. */
enum mt_status mt_report_fill_facts(struct mt_analysis *analysis) MT_MUST_USE;

/* Adds the results of pass `blocks`. Call it after that pass. */
enum mt_status mt_report_fill(struct mt_analysis *analysis) MT_MUST_USE;

#endif
