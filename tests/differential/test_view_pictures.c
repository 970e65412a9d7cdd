/* Pictures with other than default options, of all real captures: timelines by phase, site and
 * stream, icicles of other instants and of whole runs by every weight, flame charts of a phase.
 * Nothing overlaps or leaves the frame, and printed numbers sum. */
#include "cmocka_all.h"

#include <glob.h>

#include "../unit/drawing_checks.h"
#include "analyze.h"
#include "chart.h"
#include "flamechart_model.h"
#include "import.h"
#include "layers_model.h"
#include "timeline_model.h"
#include "units.h"

#define MAX_SVG_BYTES (150 * 1024)

struct view {
    struct mt_question question;
    struct mt_analyze_options options;
    enum mt_weigh weigh;
};

/* Number i of all combinations that matter. */
static void choose(struct view *view, size_t i)
{
    static const enum mt_question_at instants[] = {MT_AT_RESERVED_PEAK, MT_AT_END, MT_AT_PHASE,
                                                   MT_AT_EVENT};

    *view = (struct view){.question = {.at = instants[i % 4], .value = 40 * i, .phase = "forward"},
                          .weigh = (enum mt_weigh)(i % MT_WEIGH_KINDS)};
    view->options = (struct mt_analyze_options){
        .models = MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART | MT_MODEL_POPULATION,
        .layer_by = (enum mt_layer_by)(1 + i % 3),
        .population = (enum mt_population_of)(i / 3 % MT_POPULATION_KINDS),
        .window = {.phase = i % 2 ? "forward" : "backward"},
        .question = &view->question};
}

static void draw(const struct mt_chart *chart, const struct mt_report *report,
                 const struct mt_device_report *device, const struct view *view, bool narrow,
                 const char *capture, struct mt_drawing *drawing)
{
    const struct mt_chart_options options = {
        .width = narrow ? 830 : 0, .event_axis = narrow, .reversed = narrow, .weigh = view->weigh};
    struct mt_buf svg = {0};

    chart->draw(report, device, &options, drawing);
    const char *fault = drawing_fault(drawing);
    if (fault)
        fail_msg("%s of %s%s: %s", chart->name, capture, narrow ? ", narrow" : "", fault);
    mt_svg_write(drawing, MT_THEME_AUTO, &svg);
    if (svg.length > MAX_SVG_BYTES)
        fail_msg("%s of %s: %zu bytes of SVG", chart->name, capture, svg.length);
    mt_buf_release(&svg);
}

static void check_layers(const struct mt_device_report *device)
{
    const struct mt_timeline *timeline = device->timeline;
    const struct mt_layers *layers = timeline->layers;
    uint64_t peak = 0;

    for (uint32_t i = 0; i < 2 * timeline->bin_count; i++) {
        bool by_event = i >= timeline->bin_count;
        uint32_t at = by_event ? i - timeline->bin_count : i;
        uint64_t sum = 0;

        for (uint32_t j = 0; j < layers->count; j++)
            sum += (by_event ? layers->event_bytes
                             : layers->time_bytes)[(size_t)at * layers->count + j];
        assert_int_equal(sum,
                         (by_event ? timeline->event_bins : timeline->time_bins)[at].allocated);
    }
    for (uint32_t j = 0; j < layers->count; j++)
        peak += layers->layers[j].peak_bytes;
    assert_int_equal(peak, device->allocated_peak.bytes);
}

/* The root of an icicle is the sum of its holdings. */
static void check_root(const struct mt_drawing *drawing, const struct mt_holding *holdings,
                       uint32_t count, enum mt_weigh weigh)
{
    const struct mt_op *root = drawing_find(drawing, "cell:root");
    char text[MT_UNITS_TEXT], wanted[MT_UNITS_TEXT + 8];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += weigh == MT_WEIGH_COUNT       ? holdings[i].blocks
               : weigh == MT_WEIGH_REQUESTED ? holdings[i].requested_bytes
                                             : holdings[i].bytes;
    if ((root != NULL) != (sum > 0))
        fail_msg("%s: %llu, and a root: %d", drawing->title, (unsigned long long)sum, root != NULL);
    if (!root)
        return;
    mt_format_count(text, sum);
    snprintf(wanted, sizeof wanted, weigh == MT_WEIGH_COUNT ? ": %s block" : "(%s B)", text);
    if (!strstr(root->title, wanted))
        fail_msg("'%s' does not say '%s'", root->title, wanted);
}

/* The net of the phase's direct children plus the net between them equals its own. */
static void check_zoom(const struct mt_report *report, const struct mt_flamechart *chart)
{
    const struct mt_cell *own = chart->cells;

    if (chart->phase == MT_NO_PHASE)
        return;
    assert_true(chart->cell_count > 0);
    assert_int_equal(own->phase, chart->phase);
    assert_int_equal(own->net_bytes, (int64_t)(chart->exit_allocated - chart->enter_allocated));
    assert_int_equal(own->peak_allocated, chart->peak_allocated);
    for (uint32_t i = 1; i < chart->cell_count && chart->cells[i].row + 1 < chart->frame_row; i++)
        assert_true(chart->cells[i].merged > 1 ||
                    report->phases[chart->cells[i].phase].begin_event >=
                        report->phases[chart->phase].begin_event);
}

static void check_device(const struct mt_report *report, const struct mt_device_report *device,
                         const struct view *view, const char *capture)
{
    struct mt_device_report instant = *device;
    struct mt_drawing drawing;

    check_layers(device);
    check_zoom(report, device->flamechart);
    instant.population = NULL;
    for (int narrow = 0; narrow < 2; narrow++) {
        draw(mt_chart_find("timeline"), report, device, view, narrow, capture, &drawing);
        mt_drawing_release(&drawing);
        draw(mt_chart_find("flamechart"), report, device, view, narrow, capture, &drawing);
        mt_drawing_release(&drawing);
        draw(mt_chart_find("icicle"), report, device, view, narrow, capture, &drawing);
        check_root(&drawing, device->population->holdings, device->population->holding_count,
                   view->weigh);
        mt_drawing_release(&drawing);
        draw(mt_chart_find("icicle"), report, &instant, view, narrow, capture, &drawing);
        if (!device->answer->missing)
            check_root(&drawing, device->answer->instant.holdings,
                       device->answer->instant.holding_count, view->weigh);
        mt_drawing_release(&drawing);
    }
}

TEST(every_view_of_every_capture)
{
    glob_t found;

    assert_int_equal(glob(MEMTRACE_FIXTURES "/captures/*.pickle.zst", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 40);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct mt_source *source;
        struct mt_report *report;
        struct mt_error error;
        struct view view;

        choose(&view, i);
        assert_int_equal(mt_import_open_any(found.gl_pathv[i], &source, &error), MT_OK);
        assert_int_equal(mt_analyze(source, &view.options, &report, &error), MT_OK);
        for (uint32_t d = 0; d < report->device_count; d++)
            check_device(report, &report->devices[d], &view, found.gl_pathv[i]);
        mt_report_release(report);
        mt_source_close(source);
    }
    globfree(&found);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
