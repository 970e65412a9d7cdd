/* Makes the report of a job from a set of records. */
#ifndef MT_FLEET_JOB_ANSWERS_H
#define MT_FLEET_JOB_ANSWERS_H

#include "job_report.h"

/* `set` is in canonical form, and outlives the report. MT_ERR_USAGE: options->job is NULL and the
 * set has several jobs, the set has no job of that name, or options->mesh does not fit the job.
 * MT_ERR_FORMAT: the set is empty. MT_ERR_UNSUPPORTED: the job has too many records. O(n log n +
 * leaves + paths). */
enum mt_status mt_job_report_make(const struct mt_rank_set *set,
                                  const struct mt_job_options *options,
                                  struct mt_job_report **report,
                                  struct mt_error *error) MT_MUST_USE;

#endif
