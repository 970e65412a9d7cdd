/* Memory that a device needs for a run: the smallest limit under which an allocator serves it
 * (fit.h). */
#ifndef MT_ANALYZER_NEEDS_H
#define MT_ANALYZER_NEEDS_H

#include <stdbool.h>

#include "report.h"
#include "status.h"

struct mt_analysis;

/* Under `policy`, as for mt_fit_run and borrowed for the whole analysis, on one device. *need is in
 * the arena of the report. It is NULL if no limit serves the run, if the trace is too long for the
 * replays (mt_fit_affordable_orders), or if the recording does not show the need: the run ended out
 * of memory on the device, or the recording began with as much reserved as the limit. The first
 * call for a policy computes the result for all devices, as mt_fit_run. Returns the status of
 * reading the source. */
enum mt_status mt_needs_under(struct mt_analysis *analysis, const char *policy, uint16_t device,
                              const struct mt_need **need) MT_MUST_USE;

/* Only if requested (mt_analyze_options.needs), and if the run can be replayed. */
bool mt_needs_are_wanted(const struct mt_analysis *analysis);

/* Fills devices[].need under the allocator of the report, like mt_needs_under. */
enum mt_status mt_needs_fill(struct mt_analysis *analysis) MT_MUST_USE;

/* Peaks of a dry run under other orders of addresses. The driver's placement of segments decides
 * which of equal free blocks an allocator uses, and so how much it reserves. A simulated device
 * places them differently from a real one, so a peak of a dry run is one of a range. */

/* For a dry run, if they or needs are requested. */
bool mt_peak_orders_are_wanted(const struct mt_analysis *analysis);

/* Fills devices[].peak_orders, except of devices that ran out of memory. Reads the source from its
 * start at least once, and once for each further order if addresses decided anything. Returns the
 * status of mt_replay_run. */
enum mt_status mt_needs_fill_peak_orders(struct mt_analysis *analysis) MT_MUST_USE;

/* Remedies for a run that ended out of memory. */

struct mt_analysis;

/* Fills devices[].oom_answer of the devices on which the run ended, by replays, if the trace is
 * short enough for hundreds of them. Reads the source from its start. */
enum mt_status mt_oom_answers_fill(struct mt_analysis *analysis) MT_MUST_USE;

#endif
