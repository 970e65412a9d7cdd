/* Charts of a job of many ranks: one file each, one row each in the table of job_charts.c. A
 * chart turns the report of a job into a display list and reads only the report. The number of
 * its marks is bounded by its size, not by the number of ranks. */
#ifndef MT_RENDER_JOB_CHART_H
#define MT_RENDER_JOB_CHART_H

#include "draw.h"
#include "job_report.h"

struct mt_job_chart_options {
    double width, height; /* logical pixels; 0 = the chart's own choice */
};

struct mt_job_chart {
    const char *name;    /* "ranks": also the file name */
    const char *summary; /* one line for documents */
    /* Returns true if the chart is useful for the job. NULL = always. */
    bool (*called_for)(const struct mt_job_report *report);
    /* Always initializes *drawing, which the caller releases. */
    enum mt_status (*draw)(const struct mt_job_report *report,
                           const struct mt_job_chart_options *options, struct mt_drawing *drawing,
                           struct mt_error *error);
};

/* All of them, in the order of a page; ends with NULL. */
extern const struct mt_job_chart *const mt_job_charts[];

/* Returns NULL if there is no chart of that name. */
const struct mt_job_chart *mt_job_chart_find(const char *name);

#endif
