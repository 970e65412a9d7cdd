#include "chart.h"

#include <stddef.h>

const struct mt_chart mt_charts[] = {{NULL, NULL, NULL}};
