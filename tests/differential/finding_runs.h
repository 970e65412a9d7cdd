/* Real runs, analysed, and what is found in them. */
#ifndef MT_TESTS_FINDING_RUNS_H
#define MT_TESTS_FINDING_RUNS_H

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "analyze.h"
#include "import.h"
#include "report.h"
#include "util.h"

static struct mt_source *source; /* of the last report */

static struct mt_report *analyze(const char *folder, const char *name)
{
    struct mt_analyze_options options = {0};
    struct mt_report *report = NULL;
    struct mt_error error = {0};
    char path[512];

    snprintf(path, sizeof path, "%s/%s/%s.pickle.zst", MEMTRACE_FIXTURES, folder, name);
    options.path = path;
    if (mt_open_any(path, NULL, &source, &error) != MT_OK ||
        mt_analyze(source, &options, &report, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    return report;
}

/* The first of the kind on the first device, NULL if there is none. */
static inline const struct mt_finding *find(const struct mt_report *report, const char *id)
{
    const struct mt_device_report *device = &report->devices[0];
    uint32_t i;

    for (i = 0; i < device->finding_count; i++)
        if (strcmp(device->findings[i].id, id) == 0)
            return &device->findings[i];
    return NULL;
}

/* What a run of fixtures/findings really took. */
static inline uint64_t truth(const char *name, const char *key)
{
    json_error_t error;
    json_t *root = json_load_file(MEMTRACE_FIXTURES "/findings/truth.json", 0, &error);
    uint64_t value;

    assert_non_null(root);
    value = (uint64_t)json_integer_value(json_object_get(json_object_get(root, name), key));
    json_decref(root);
    assert_true(value > 0);
    return value;
}

#endif
