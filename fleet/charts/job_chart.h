/* Charts of a job of many ranks. Each chart has a file and a row in the table of job_charts.c. A
 * chart turns the report of a job into a display list and reads only the report. The size of a
 * chart limits the number of its marks, for any number of ranks. */
#ifndef MT_RENDER_JOB_CHART_H
#define MT_RENDER_JOB_CHART_H

#include "gallery.h"
#include "job_report.h"

struct mt_job_chart_options {
    double width, height; /* logical pixels; 0 = the default of the chart */
};

struct mt_job_chart {
    const char *name;    /* "ranks"; also the name of the file */
    const char *summary; /* one line for documents */
    /* Returns true if the chart is useful for the job. NULL = always. */
    bool (*called_for)(const struct mt_job_report *report);
    /* Always initializes *drawing, which the caller releases. */
    void (*draw)(const struct mt_job_report *report, const struct mt_job_chart_options *options,
                 struct mt_drawing *drawing);
};

/* All charts, in the order of the page; ends with NULL. */
extern const struct mt_job_chart *const mt_job_charts[];

/* Returns the charts that the job needs. The list is in the arena. */
struct mt_pictures mt_job_pictures(const struct mt_job_report *report, struct mt_arena *arena);

#endif
