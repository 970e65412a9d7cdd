#include "job_chart.h"

#include <stddef.h>

/* All charts of a job, in the order of the page. */
#define CHARTS(ROW)                                                                                \
    ROW(ranks)                                                                                     \
    ROW(steps)                                                                                     \
    ROW(times)                                                                                     \
    ROW(tree)                                                                                      \
    ROW(devices)

#define DECLARE(name)  extern const struct mt_job_chart mt_job_chart_##name;
#define POINT_TO(name) &mt_job_chart_##name,

CHARTS(DECLARE)
const struct mt_job_chart *const mt_job_charts[] = {CHARTS(POINT_TO) NULL};

static void draw_chart(const void *report, const struct mt_picture_plan *plan,
                       struct mt_drawing *drawing)
{
    const struct mt_job_chart_options options = {.width = 0};

    ((const struct mt_job_chart *)plan->chart)->draw(report, &options, drawing);
}

struct mt_pictures mt_job_pictures(const struct mt_job_report *report, struct mt_arena *arena)
{
    struct mt_pictures pictures = {.report = report, .draw = draw_chart};

    pictures.list = mt_arena_array(arena, MT_ARRAY_LEN(mt_job_charts), sizeof *pictures.list);
    for (size_t i = 0; mt_job_charts[i]; i++) {
        const struct mt_job_chart *chart = mt_job_charts[i];

        if (!chart->called_for || chart->called_for(report))
            pictures.list[pictures.count++] =
                (struct mt_picture_plan){chart->name, chart->name, chart, NULL};
    }
    return pictures;
}
