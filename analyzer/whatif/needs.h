/* Memory that a device needs for a run: the smallest limit under which an allocator serves it
 * (fit.h). */
#ifndef MT_ANALYZER_NEEDS_H
#define MT_ANALYZER_NEEDS_H

#include "report.h"

struct mt_analysis;

/* Under `policy`, as for mt_fit_run and borrowed for the whole analysis, on one device. *need is in
 * the arena of the report. It is NULL if no limit serves the run, if the trace is too long for the
 * replays (mt_fit_affordable_orders), or if the recording does not show the need: the run ended out
 * of memory on the device, or the recording began with as much reserved as the limit. The first
 * call for a policy computes the result for all devices, as mt_fit_run. Returns the status of
 * reading the source. */
enum mt_status mt_need_under(struct mt_analysis *analysis, const char *policy, uint16_t device,
                             const struct mt_need **need) MT_MUST_USE;

/* Whether an allocator that the replay explains served the whole run, and the trace is short enough
 * for repeated replays. */
bool mt_run_can_be_replayed(const struct mt_analysis *analysis);

/* Only if requested (mt_analyze_options.needs), and if the run can be replayed. */
bool mt_needs_are_wanted(const struct mt_analysis *analysis);

/* Fills devices[].need under the allocator of the report, like mt_need_under. */
enum mt_status mt_fill_needs(struct mt_analysis *analysis) MT_MUST_USE;

#endif
