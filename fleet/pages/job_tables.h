/* Tables about a job, for the text, the page and the summary. Each function begins the table and
 * adds at most `limit` rows. The caller passes the table to a writer, which releases it. */
#ifndef MT_RENDER_JOB_TABLES_H
#define MT_RENDER_JOB_TABLES_H

#include "job_report.h"
#include "table.h"

struct mt_job_rows {
    const struct mt_job_report *report;
    struct mt_arena *arena; /* for names; needed while the table is filled */
    uint32_t limit;         /* maximum number of rows of a table */
};

/* Each function returns the number of rows that it omits. */
typedef uint32_t mt_job_table(struct mt_table *table, const struct mt_job_rows *rows);

mt_job_table mt_job_outliers_table, mt_job_paths_table, mt_job_steps_table;
/* Sorted by time; deaths without a time of day come last. */
mt_job_table mt_job_deaths_table;
uint32_t mt_job_axis_table(struct mt_table *table, const struct mt_job_rows *rows,
                           const struct mt_job_axis *axis);
uint32_t mt_job_tenants_table(struct mt_table *table, const struct mt_job_rows *rows,
                              const struct mt_job_device *device);
/* Adds all rows in their order if there are at most `limit`. Otherwise adds the rows with the
 * largest reserved peaks. */
mt_job_table mt_job_ranks_table;

#endif
