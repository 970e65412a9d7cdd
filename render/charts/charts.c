#include "chart.h"

#include <stddef.h>

const struct mt_chart mt_charts[] = {
    {"timeline", "memory over time by role, with what is reserved", mt_timeline_draw},
    {"icicle", "who holds memory at the peak: call stacks as wide as their bytes", mt_icicle_draw},
    {"flamechart", "step, phases and call stacks over time, coloured by what they did to memory",
     mt_flamechart_draw},
    {NULL, NULL, NULL},
};
