/* Draws the timeline chart in all sizes, for its tests. */
#ifndef TESTS_TIMELINE_CHECKS_H
#define TESTS_TIMELINE_CHECKS_H

#include "cmocka_all.h"

#include "chart.h"
#include "chart_scale.h"
#include "drawing_checks.h"
#include "layers_model.h"
#include "synthetic_report.h"
#include "units.h"

static const struct mt_chart_options sizes[] = {{.width = 0},
                                                {.event_axis = true},
                                                {.width = 830},
                                                {.width = 830, .event_axis = true},
                                                {.width = 830, .height = 430},
                                                {.width = 500, .height = 330},
                                                {.width = 2000, .height = 500, .event_axis = true},
                                                {.width = 640, .height = 400, .event_axis = true},
                                                {.width = 480, .height = 320}};

static inline void draw(struct mt_drawing *drawing, const struct mt_report *report,
                        const struct mt_chart_options *options)
{
    const struct mt_device_report *device =
        report->device_count ? &report->devices[report->device_count - 1] : NULL;

    mt_chart_find("timeline")->draw(report, device, options, drawing);
    const char *fault = drawing_fault(drawing);
    if (fault)
        fail_msg("%s (%dx%d%s)", fault, (int)drawing->width, (int)drawing->height,
                 options->event_axis ? ", events" : "");
}

static inline char *svg_of(const struct mt_drawing *drawing)
{
    struct mt_buf out = {0};

    mt_svg_write(drawing, MT_THEME_AUTO, &out);
    assert_true(out.length < (drawing->width <= 1200 ? 100 : 200) * 1024);
    return out.data;
}

#endif
