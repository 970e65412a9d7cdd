/* Widths and heights at which tests draw each picture: the default, a page's, small and large ones.
 */
#ifndef TESTS_PICTURE_SIZES_H
#define TESTS_PICTURE_SIZES_H

#include "chart.h"

static const struct mt_chart_options sizes[] = {{.width = 0},
                                                {.width = 830},
                                                {.width = 830, .height = 430},
                                                {.width = 500, .height = 330},
                                                {.width = 2000, .height = 500},
                                                {.width = 480, .height = 320},
                                                {.width = 1000, .height = 1200}};

#endif
