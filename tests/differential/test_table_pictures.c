/* Charts of steps and of differences on every capture: the layout is right
 * at each size, levels are as PyTorch counted them, and growth is shown where it exists. */
#include "cmocka_all.h"

#include <dirent.h>
#include <jansson.h>

#include "../unit/drawing_checks.h"
#include "capture.h"
#include "chart.h"
#include "diff_chart.h"
#include "policy_table.h"
#include "util.h"

#define MAX_SVG_BYTES (150 * 1024)

static const struct mt_chart_options sizes[] = {
    {.width = 0}, {.width = 830}, {.width = 830, .height = 500}, {.width = 500, .height = 330}};

enum { MAX_CAPTURES = 100 };

static char names[MAX_CAPTURES][80];
static size_t name_count;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int list_captures(void **unused)
{
    DIR *entries = opendir(MEMTRACE_FIXTURES "/captures");
    struct dirent *entry;

    (void)unused;
    while (entries && (entry = readdir(entries)) && name_count < MAX_CAPTURES) {
        char *ending = strstr(entry->d_name, ".pickle.zst");

        if (ending)
            snprintf(names[name_count++], sizeof names[0], "%.*s", (int)(ending - entry->d_name),
                     entry->d_name);
    }
    if (entries)
        closedir(entries);
    qsort(names, name_count, sizeof names[0], by_name);
    return name_count < 30;
}

static struct capture load(const char *name, const struct mt_question *question)
{
    const char *path = capture_path("captures", name, ".pickle.zst");
    const struct mt_analyze_options options = {.question = question, .path = path};

    return capture_analyze(path, &options);
}

static void check_drawing(const struct mt_drawing *drawing, const char *name)
{
    const char *fault = drawing_fault(drawing);
    struct mt_buf svg = {0};

    if (fault)
        fail_msg("%s, %d wide: %s", name, (int)drawing->width, fault);
    mt_svg_write(drawing, MT_THEME_AUTO, &svg);
    if (svg.length > MAX_SVG_BYTES || strstr(svg.data, "nan") || strstr(svg.data, "inf,"))
        fail_msg("%s: %zu bytes of SVG", name, svg.length);
    mt_buf_release(&svg);
}

TEST(charts_of_every_capture_are_in_order)
{
    struct mt_drawing drawing;

    for (size_t i = 0; i < name_count; i++) {
        struct capture loaded = load(names[i], NULL);

        for (uint32_t d = 0; d < loaded.report->device_count; d++)
            for (size_t s = 0; s < MT_ARRAY_LEN(sizes); s++) {
                mt_chart_find("trend")->draw(loaded.report, &loaded.report->devices[d], &sizes[s],
                                             &drawing);
                check_drawing(&drawing, names[i]);
                mt_drawing_release(&drawing);
            }
        capture_close(&loaded);
    }
}

/* The bytes in brackets before given words of a title. */
static uint64_t exact_before(const char *title, const char *words)
{
    const char *at = strstr(title, words);
    char plain[40];
    size_t n = 0;

    assert_non_null(at);
    while (at > title && *at != '(')
        at--;
    for (at++; *at == ',' || (*at >= '0' && *at <= '9'); at++)
        if (*at != ',')
            plain[n++] = *at;
    plain[n] = '\0';
    return strtoull(plain, NULL, 10);
}

/* What PyTorch counted as allocated after the last phase of each step. */
static void check_levels(const char *name, const struct mt_drawing *drawing)
{
    char path[600], words[60];
    json_t *row;
    size_t i, checked = 0;

    snprintf(path, sizeof path, "%s/captures/%s.truth.json", MEMTRACE_FIXTURES, name);
    json_t *truth = json_load_file(path, 0, NULL);
    assert_non_null(truth);
    json_array_foreach(json_object_get(truth, "rows"), i, row)
    {
        json_int_t step = json_integer_value(json_object_get(row, "step"));

        json_t *next = json_array_get(json_object_get(truth, "rows"), i + 1);
        if (step < 0 || !next || json_integer_value(json_object_get(next, "step")) == step)
            continue;
        snprintf(words, sizeof words, "step %lld:", (long long)step);
        for (size_t op = 0; op < drawing->op_count; op++) {
            if (!drawing_is(&drawing->ops[op], "column") ||
                strncmp(drawing->ops[op].title, words, strlen(words)) != 0)
                continue;
            assert_int_equal(exact_before(drawing->ops[op].title, " still allocated"),
                             json_integer_value(json_object_get(row, "allocated")));
            checked++;
        }
    }
    json_decref(truth);
    assert_true(checked >= 6);
}

TEST(levels_are_those_that_pytorch_counted)
{
    static const char *const whole[] = {"gpt_default", "gpt_split64", "gpt_round4"};
    struct mt_drawing drawing;

    for (size_t i = 0; i < MT_ARRAY_LEN(whole); i++) {
        struct capture loaded = load(whole[i], NULL);

        mt_chart_find("trend")->draw(loaded.report, &loaded.report->devices[0], &sizes[0],
                                     &drawing);
        check_levels(whole[i], &drawing);
        mt_drawing_release(&drawing);
        capture_close(&loaded);
    }
}

static bool says(const struct mt_drawing *drawing, const char *text)
{
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing->ops[i].kind == MT_OP_TEXT && strstr(drawing->ops[i].text, text))
            return true;
    return false;
}

static void expect(const char *name, const char *verdict, const char *words)
{
    struct capture loaded = load(name, NULL);
    struct mt_drawing drawing;

    mt_chart_find("trend")->draw(loaded.report, &loaded.report->devices[0], &sizes[0], &drawing);
    if (!says(&drawing, verdict) || !says(&drawing, words))
        fail_msg("%s: not \"%s\", \"%s\"", name, verdict, words);
    mt_drawing_release(&drawing);
    capture_close(&loaded);
}

TEST(growth_is_where_there_is_some)
{
    expect("keeps", "growth", "w_keeps questions.py:20");
    expect("keeps", "growth", "+0.98 MiB");
    expect("leakval", "growth", "train.py:128");
    expect("leak", "no growth",
           "\xC2\xB1"
           "0");
    expect("gpt_default", "no growth",
           "\xE2\x88\x92"
           "15.8 MiB");
    expect("seq2seq", "not enough steps", "3 of 5");
}

TEST(differences_of_captures_are_in_order)
{
    const struct mt_question at_peak = {.at = MT_AT_PEAK};

    for (size_t i = 0; i + 1 < name_count; i += 2) {
        struct capture a = load(names[i], &at_peak), b = load(names[i + 1], &at_peak);
        struct mt_arena arena = {0};
        struct mt_diff diff;
        struct mt_drawing drawing;

        mt_diff_reports(&arena, a.report, b.report, MT_EVERY_DEVICE, &diff);
        for (size_t s = 0; s < MT_ARRAY_LEN(sizes); s++) {
            const struct mt_diff_view view = {&diff, diff.device_count ? &diff.devices[0] : NULL,
                                              &at_peak};

            mt_diff_draw(&view, &sizes[s], &drawing);
            check_drawing(&drawing, names[i]);
            assert_int_equal(drawing_find(&drawing, "warning") != NULL,
                             diff.run_count > 0 && (s < 2 || drawing_find(&drawing, "warning")));
            mt_drawing_release(&drawing);
        }
        mt_arena_release(&arena);
        capture_close(&a);
        capture_close(&b);
    }
}

/* A chart calls the run's own numbers measured only if they equal PyTorch's counters. Other
 * settings are replayed, and equal the counters of real runs of the same requests. */
TEST(rows_are_what_real_runs_counted)
{
    static const struct {
        const char *capture, *policy, *run;
    } cases[] = {
        {"gpt_default", NULL, "gpt_default"},
        {"gpt_split64", NULL, "gpt_split64"},
        {"resnet50_cap1900", NULL, "resnet50_cap1900"},
        {"gpt_split64", "pytorch:", "gpt_default"},
        {"gpt_default", "pytorch:expandable_segments=True", "gpt_expandable"},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        struct mt_source *source =
            capture_open(capture_path("captures", cases[i].capture, ".pickle.zst"));
        struct mt_error error = {0};
        struct mt_policy_row row;
        uint16_t device;

        assert_int_equal(
            mt_policy_row_measure(source, cases[i].policy, UINT64_MAX, &row, &device, &error),
            MT_OK);
        assert_int_equal(row.is_measured, !cases[i].policy);
        assert_int_equal(row.fit.reserved_peak_bytes,
                         capture_true_peak(cases[i].run, "reserved_peak"));
        if (!cases[i].policy) {
            assert_int_equal(row.fit.allocated_peak_bytes,
                             capture_true_peak(cases[i].run, "allocated_peak"));
            assert_int_equal(row.fit.requested_peak_bytes,
                             capture_true_peak(cases[i].run, "requested_peak"));
        }
        assert_true(row.fit.fits && row.fit.high_bytes >= row.fit.requested_peak_bytes);
        mt_source_close(source);
    }
}

int main(void)
{
    return run_tests_of_file(list_captures, NULL);
}
