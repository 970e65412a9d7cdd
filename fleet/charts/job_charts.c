#include "job_chart.h"

#include <stddef.h>
#include <string.h>

/* All charts of a job, in the order of the page. */
#define CHARTS(ROW)                                                                                \
    ROW(ranks)                                                                                     \
    ROW(steps)                                                                                     \
    ROW(times)                                                                                     \
    ROW(tree)                                                                                      \
    ROW(devices)

#define DECLARE(name)  extern const struct mt_job_chart mt_job_chart_##name;
#define POINT_TO(name) &mt_job_chart_##name,

CHARTS(DECLARE)
const struct mt_job_chart *const mt_job_charts[] = {CHARTS(POINT_TO) NULL};

const struct mt_job_chart *mt_job_chart_find(const char *name)
{
    size_t i = 0;

    while (mt_job_charts[i] && strcmp(mt_job_charts[i]->name, name) != 0)
        i++;
    return mt_job_charts[i];
}
