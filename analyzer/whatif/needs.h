/* What the device must have for a run: the smallest limit under which an allocator serves it
 * (fit.h). */
#ifndef MT_ANALYZER_NEEDS_H
#define MT_ANALYZER_NEEDS_H

#include "report.h"

struct mt_analysis;

/* Under `policy`, as for mt_fit_run, on one device. *found is false, and *need untouched, if no
 * limit serves the run, or if the trace is too long for the replays (mt_fit_affordable_orders).
 * Reads the source from its start, some thirty times for each order of addresses. MT_ERR_MEMORY,
 * and what reading the source returns. */
enum mt_status mt_need_under(struct mt_analysis *analysis, const char *policy, uint16_t device,
                             struct mt_need *need, bool *found) MT_MUST_USE;

/* Only if the caller asked (mt_analyze_options.needs), and if an allocator that the replay
 * explains served the run. */
bool mt_needs_are_wanted(const struct mt_analysis *analysis);

/* Fills devices[].need of the devices on which the run did not die, under the allocator of the
 * report. */
enum mt_status mt_fill_needs(struct mt_analysis *analysis) MT_MUST_USE;

#endif
