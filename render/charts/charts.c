#include "chart.h"

#include <stddef.h>
#include <string.h>

#include "report_query.h"

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

const char *mt_chart_lacks(const struct mt_chart *chart, const struct mt_report *report,
                           const struct mt_device_report *device)
{
    if (!device)
        return "the trace has no allocation or release of device memory";
    if (chart->needs_history && mt_lacks_history(report, device))
        return "the file has no history, only one instant; 'render address' draws its segments "
               "and blocks";
    return chart->lacks ? chart->lacks(report, device) : NULL;
}

bool mt_chart_is_called_for(const struct mt_chart *chart, const struct mt_report *report,
                            const struct mt_device_report *device)
{
    return !chart->is_on_request && !mt_chart_lacks(chart, report, device) &&
           (!chart->called_for || chart->called_for(report, device));
}

unsigned mt_charts_models(void)
{
    unsigned models = 0;

    for (size_t i = 0; mt_charts[i]; i++)
        models |= mt_charts[i]->models;
    return models;
}
