/* Shared by the tests of icicle and flame chart: sizes and formats in which both are drawn, and
 * rules of each picture. */
#ifndef MT_TESTS_STACK_CHART_CHECKS_H
#define MT_TESTS_STACK_CHART_CHECKS_H

#include "cmocka_all.h"

#include "../unit/drawing_checks.h"
#include "chart.h"

static const struct mt_chart_options all_options[] = {
    {.width = 1200},
    {.width = 830},
    {.width = 1200, .event_axis = true},
    {.width = 830, .reversed = true, .event_axis = true},
    {.width = 600, .height = 400},
};

static void check_picture(const char *name, struct mt_drawing *drawing)
{
    const char *fault = drawing_fault(drawing);
    struct mt_buf svg = {0};

    if (fault)
        fail_msg("%s, %s %g wide: %s", name, drawing->id, drawing->width, fault);
    mt_svg_write(drawing, MT_THEME_AUTO, &svg);
    if (svg.length >= 100000)
        fail_msg("%s, %s: %zu bytes of SVG", name, drawing->id, svg.length);
    mt_buf_release(&svg);
}

#endif
