/* The charts of a job by their names. */
#ifndef MT_TESTS_CHART_NAMED_H
#define MT_TESTS_CHART_NAMED_H

#include <string.h>

#include "job_chart.h"

static inline const struct mt_job_chart *chart_named(const char *name)
{
    size_t i = 0;

    while (strcmp(mt_job_charts[i]->name, name) != 0)
        i++;
    return mt_job_charts[i];
}

#endif
