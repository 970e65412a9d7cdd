#include "chart.h"

#include <stddef.h>
#include <string.h>

/* All charts, in the order of the page. */
#define CHARTS(ROW)                                                                                \
    ROW(timeline)                                                                                  \
    ROW(icicle)                                                                                    \
    ROW(flamechart)                                                                                \
    ROW(blocks)                                                                                    \
    ROW(trend)                                                                                     \
    ROW(address)

#define DECLARE(name)  extern const struct mt_chart mt_chart_##name;
#define POINT_TO(name) &mt_chart_##name,

CHARTS(DECLARE)
const struct mt_chart *const mt_charts[] = {CHARTS(POINT_TO) NULL};

const struct mt_chart *mt_chart_find(const char *name)
{
    size_t i = 0;

    while (mt_charts[i] && strcmp(mt_charts[i]->name, name) != 0)
        i++;
    return mt_charts[i];
}

unsigned mt_charts_models(void)
{
    unsigned models = 0;

    for (size_t i = 0; mt_charts[i]; i++)
        models |= mt_charts[i]->models;
    return models;
}
