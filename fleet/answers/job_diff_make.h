/* Makes the diff of two jobs from their reports. */
#ifndef MT_FLEET_JOB_DIFF_MAKE_H
#define MT_FLEET_JOB_DIFF_MAKE_H

#include "job_diff.h"

/* Both reports outlive the diff. MT_ERR_FORMAT: a record has more than MT_JOB_DIFF_MAX_BYTES.
 * O(n log n + axes * leaves + paths). */
enum mt_status mt_job_diff_make(const struct mt_job_report *a, const struct mt_job_report *b,
                                struct mt_job_diff **diff, struct mt_error *error) MT_MUST_USE;

#endif
