/* Makes the report of a job from a set of records. */
#ifndef MT_FLEET_JOB_ANSWERS_H
#define MT_FLEET_JOB_ANSWERS_H

#include "job_report.h"

/* `set` is in canonical form, and outlives the report. MT_ERR_USAGE: the set has several jobs
 * and options->job names none of them, has no job of that name, or the job cannot have
 * options->mesh. MT_ERR_FORMAT: the set is empty. O(n log n + leaves + paths). */
enum mt_status mt_job_report_make(const struct mt_rank_set *set,
                                  const struct mt_job_options *options,
                                  struct mt_job_report **report,
                                  struct mt_error *error) MT_MUST_USE;

#endif
