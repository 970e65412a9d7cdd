/* bench_charts TRACE: how long each chart takes after the analysis, drawn and written
 * as SVG and as PNG; milliseconds of processor time, the best of three. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analyze.h"
#include "gallery.h"
#include "import.h"

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Milliseconds; *bytes of the file. Negative: it is not to be had. */
static double draw(const struct mt_chart *chart, const struct mt_report *report, bool is_png,
                   size_t *bytes)
{
    struct mt_chart_options options = {.width = 0};
    double best = -1;

    for (int round = 0; round < 3; round++) {
        struct mt_buf out = {0};
        double begin = now_ms(), took;
        struct mt_drawing drawing = {.width = 0};
        enum mt_status status = MT_OK;

        chart->draw(report, &report->devices[0], &options, &drawing);
        status = mt_drawing_write(&drawing, MT_THEME_LIGHT, is_png, &out, NULL);
        took = now_ms() - begin;
        mt_drawing_release(&drawing);
        *bytes = out.length;
        mt_buf_release(&out);
        if (status != MT_OK)
            return -1;
        if (best < 0 || took < best)
            best = took;
    }
    return best;
}

int main(int argc, char **argv)
{
    struct mt_analyze_options options = {.models = mt_charts_models()};
    struct mt_report *report = NULL;
    struct mt_source *source = NULL;
    struct mt_error error = {0};

    if (argc != 2 || mt_import_open_any(argv[1], &source, &error) != MT_OK ||
        mt_analyze(source, &options, &report, &error) != MT_OK || !report->device_count) {
        fprintf(stderr, "bench_charts: %s\n", argc == 2 ? error.text : "give one trace");
        return 1;
    }
    printf("| chart | SVG | | PNG | |\n|---|---|---|---|---|\n");
    for (size_t c = 0; mt_charts[c]; c++) {
        const struct mt_chart *chart = mt_charts[c];
        size_t svg_bytes = 0, png_bytes = 0;
        double svg = draw(chart, report, false, &svg_bytes);
        double png = draw(chart, report, true, &png_bytes);

        if (!mt_chart_is_called_for(chart, report, &report->devices[0]))
            printf("| %s (not called for) ", chart->name);
        else
            printf("| %s ", chart->name);
        printf("| %.0f ms | %zu KB | %.0f ms | %zu KB |\n", svg, svg_bytes / 1000, png,
               png_bytes / 1000);
    }
    mt_report_release(report);
    mt_source_close(source);
    return 0;
}
