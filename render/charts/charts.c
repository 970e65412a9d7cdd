#include "chart.h"

#include <stddef.h>

const struct mt_chart mt_charts[] = {
    {"timeline", "memory over time by role, with what is reserved", mt_timeline_draw},
    {NULL, NULL, NULL},
};
