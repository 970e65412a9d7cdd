/* Opens and analyzes captures of fixtures/, and reads the counters of the recorded runs. Any error
 * fails the test. Include cmocka_all.h first. */
#ifndef MT_TESTS_CAPTURE_H
#define MT_TESTS_CAPTURE_H

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "analyze.h"
#include "import.h"
#include "report.h"

struct capture {
    struct mt_source *source;
    struct mt_report *report;
};

/* fixtures/FOLDER/NAMESUFFIX; borrowed until the next call. */
static inline const char *capture_path(const char *folder, const char *name, const char *suffix)
{
    static char path[600];
    int length = snprintf(path, sizeof path, "%s/%s/%s%s", MEMTRACE_FIXTURES, folder, name, suffix);

    assert_in_range(length, 1, sizeof path - 1);
    return path;
}

static inline struct mt_source *capture_open(const char *path)
{
    struct mt_source *source = NULL;
    struct mt_error error = {0};

    if (mt_import_open_any(path, &source, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    return source;
}

static inline struct capture capture_analyze(const char *path,
                                             const struct mt_analyze_options *options)
{
    struct capture capture = {capture_open(path), NULL};
    struct mt_error error = {0};

    if (mt_analyze(capture.source, options, &capture.report, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    return capture;
}

static inline void capture_close(struct capture *capture)
{
    mt_report_release(capture->report);
    mt_source_close(capture->source);
}

/* The largest value of a counter that the run recorded; 0 if there is none. */
static inline uint64_t capture_true_peak(const char *name, const char *counter)
{
    const char *path = capture_path("captures", name, ".truth.json");
    FILE *file = fopen(path, "rb");
    json_t *row;
    json_int_t peak = 0;
    size_t i;

    if (!file)
        return 0;
    json_t *truth = json_loadf(file, 0, NULL);
    (void)fclose(file);
    if (!truth)
        fail_msg("%s is not JSON", path);
    json_array_foreach(json_object_get(truth, "rows"), i, row)
    {
        json_int_t value = json_integer_value(json_object_get(row, counter));

        peak = value > peak ? value : peak;
    }
    json_decref(truth);
    return (uint64_t)peak;
}

#endif
