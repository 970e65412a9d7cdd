#include "chart.h"

#include <stddef.h>

const struct mt_chart mt_charts[] = {
    {"timeline", "memory over time by role, with what is reserved", MT_MODEL_TIMELINE, NULL,
     mt_timeline_draw},
    {"icicle", "who holds memory at the peak: call stacks as wide as their bytes", 0, NULL,
     mt_icicle_draw},
    {"flamechart", "step, phases and call stacks over time, coloured by what they did to memory",
     MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART, NULL, mt_flamechart_draw},
    {NULL, NULL, 0, NULL, NULL},
};

unsigned mt_charts_models(void)
{
    unsigned models = 0;

    for (size_t i = 0; mt_charts[i].name; i++)
        models |= mt_charts[i].models;
    return models;
}
