#include "job_chart.h"

#include <stddef.h>
#include <string.h>

const struct mt_job_chart *const mt_job_charts[] = {NULL};

const struct mt_job_chart *mt_job_chart_find(const char *name)
{
    size_t i = 0;

    while (mt_job_charts[i] && strcmp(mt_job_charts[i]->name, name) != 0)
        i++;
    return mt_job_charts[i];
}
