/* PRIVATE to fleet/answers: statistics over the rows of a job. */
#ifndef MT_FLEET_JOB_VALUES_H
#define MT_FLEET_JOB_VALUES_H

#include "job_report.h"

struct mt_job_value {
    uint64_t value;
    uint32_t row;
};

/* Sorts by value, then by row. O(n log n). */
void mt_job_values_sort(struct mt_job_value *values, uint32_t count);

/* Returns the distribution of the values. Sorts `values`. */
struct mt_job_spread mt_job_spread_of(struct mt_job_value *values, uint32_t count);

/* Returns the median of the distances from `middle`. For an even count it is the upper of the
 * middle two. Overwrites and sorts `values`. */
uint64_t mt_job_distance(struct mt_job_value *values, uint32_t count, uint64_t middle);

/* Returns value * 1,000,000 / whole, at most UINT32_MAX; 0 if whole is 0. */
uint32_t mt_job_ppm(unsigned __int128 value, unsigned __int128 whole);

/* Adds a rank to ascending ranges. `rank` must not be less than the ranks added before. */
void mt_job_range_add(struct mt_job_range *ranges, uint32_t *count, int32_t rank);

/* Splits classes of rows by another key: two rows stay in the same class only if their keys are
 * equal. Classes are 0, 1, ... in the order of (class, key). Sorts `keys`. Returns the number of
 * classes. O(n log n). */
struct mt_job_key {
    uint32_t class, row;
    uint64_t key;
};
uint32_t mt_job_classes_split(struct mt_job_key *keys, uint32_t count, uint32_t *classes);

#endif
