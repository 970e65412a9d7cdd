/* Tables about a job: rows for text, page and summary. Each function begins the table, and adds at
 * most `limit` rows; the caller gives it to a writer, which releases it. */
#ifndef MT_RENDER_JOB_TABLES_H
#define MT_RENDER_JOB_TABLES_H

#include "job_report.h"
#include "table.h"

struct mt_job_rows {
    const struct mt_job_report *report;
    struct mt_arena *arena; /* for names, while the table is filled */
    uint32_t limit;         /* rows of a table, at most */
};

/* Each returns the number of rows that it leaves out. If memory runs out, the table has `failed`
 * set. */
uint32_t mt_job_outliers_table(struct mt_table *table, const struct mt_job_rows *rows);
/* Sorted by time; deaths without a time of day come last. */
uint32_t mt_job_deaths_table(struct mt_table *table, const struct mt_job_rows *rows);
uint32_t mt_job_axis_table(struct mt_table *table, const struct mt_job_rows *rows,
                           const struct mt_job_axis *axis);
uint32_t mt_job_paths_table(struct mt_table *table, const struct mt_job_rows *rows);
uint32_t mt_job_steps_table(struct mt_table *table, const struct mt_job_rows *rows);
uint32_t mt_job_tenants_table(struct mt_table *table, const struct mt_job_rows *rows,
                              const struct mt_job_device *device);
/* All rows in their order if there are at most `limit`, otherwise the rows with the largest
 * reserved peaks. */
uint32_t mt_job_ranks_table(struct mt_table *table, const struct mt_job_rows *rows);

#endif
