/* All charts of real captures: nothing overlaps or leaves the frame at any size, the drawn and
 * printed peak is the one that PyTorch counted, the files are small and reproducible. */
#include "cmocka_all.h"

#include <glob.h>

#include "../unit/drawing_checks.h"
#include "capture.h"
#include "chart.h"
#include "units.h"
#include "util.h"

#define MAX_SVG_BYTES (250 * 1024) /* of blocks, which has hundreds of shapes */

static const struct mt_chart_options sizes[] = {
    {.width = 0}, {.width = 830}, {.event_axis = true}, {.width = 830, .height = 500}};

static struct capture load(const char *path)
{
    const struct mt_analyze_options options = {.models = mt_charts_models()};

    return capture_analyze(path, &options);
}

static void check_svg(const struct mt_drawing *drawing, const char *what)
{
    struct mt_buf once = {0}, again = {0};

    mt_svg_write(drawing, MT_THEME_AUTO, &once);
    mt_svg_write(drawing, MT_THEME_AUTO, &again);
    if (once.length > MAX_SVG_BYTES)
        fail_msg("%s: %zu bytes of SVG", what, once.length);
    assert_string_equal(once.data, again.data);
    mt_buf_release(&once);
    mt_buf_release(&again);
}

static void check_chart(const struct mt_chart *chart, const struct capture *loaded,
                        const struct mt_device_report *device, const char *capture)
{
    struct mt_drawing drawing;

    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        chart->draw(loaded->report, device, &sizes[i], &drawing);
        const char *fault = drawing_fault(&drawing);
        if (fault)
            fail_msg("%s of %s, size %zu: %s", chart->name, capture, i, fault);
        check_svg(&drawing, capture);
        mt_drawing_release(&drawing);
    }
}

TEST(pictures_of_captures_are_in_order)
{
    glob_t found;

    assert_int_equal(glob(MEMTRACE_FIXTURES "/captures/*.pickle.zst", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 40);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct capture loaded = load(found.gl_pathv[i]);

        for (uint32_t d = 0; d < loaded.report->device_count; d++) {
            for (size_t chart = 0; mt_charts[chart]; chart++)
                check_chart(mt_charts[chart], &loaded, &loaded.report->devices[d],
                            found.gl_pathv[i]);
        }
        capture_close(&loaded);
    }
    globfree(&found);
}

/* Does any text of the picture equal this one? */
static bool says(const struct mt_drawing *drawing, const char *text)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        if (drawing->ops[i].kind == MT_OP_TEXT && !strcmp(drawing->ops[i].text, text))
            return true;
    }
    return false;
}

static void check_says_bytes(const struct mt_drawing *drawing, const char *format, uint64_t bytes)
{
    char number[MT_UNITS_TEXT], text[100];

    mt_format_bytes(number, bytes);
    snprintf(text, sizeof text, "%s%s", format, number);
    if (!says(drawing, text))
        fail_msg("the picture does not say \"%s\"", text);
    if (*format)
        return;
    snprintf(text, sizeof text, "%s B", mt_format_count(number, bytes));
    if (!says(drawing, text))
        fail_msg("the picture does not say \"%s\"", text);
}

/* "NAME" of ".../NAME.pickle.zst" */
static void name_of(const char *path, char name[100])
{
    const char *slash = strrchr(path, '/');

    snprintf(name, 100, "%.*s", (int)strcspn(slash + 1, "."), slash + 1);
}

static void check_peaks(const struct capture *loaded, const char *capture)
{
    struct mt_chart_options standard = {.width = 0};
    uint64_t allocated = capture_true_peak(capture, "allocated_peak");
    struct mt_drawing drawing;

    mt_chart_find("timeline")
        ->draw(loaded->report, &loaded->report->devices[0], &standard, &drawing);
    check_says_bytes(&drawing, "", capture_true_peak(capture, "reserved_peak"));
    check_says_bytes(&drawing, "", allocated);
    check_says_bytes(&drawing, "peak allocated ", allocated);
    mt_drawing_release(&drawing);
}

TEST(timelines_name_the_peaks_that_pytorch_counted)
{
    char capture[100];
    size_t i, checked = 0;
    glob_t found;

    assert_int_equal(glob(MEMTRACE_FIXTURES "/captures/*.pickle.zst", 0, NULL, &found), 0);
    for (i = 0; i < found.gl_pathc; i++) {
        struct capture loaded = load(found.gl_pathv[i]);

        name_of(found.gl_pathv[i], capture);
        if (loaded.report->devices[0].complete && capture_true_peak(capture, "allocated_peak")) {
            check_peaks(&loaded, capture);
            checked++;
        }
        capture_close(&loaded);
    }
    assert_true(checked > 35);
    globfree(&found);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
