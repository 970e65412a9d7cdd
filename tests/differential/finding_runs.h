/* Analyzes real runs and looks up their findings. */
#ifndef MT_TESTS_FINDING_RUNS_H
#define MT_TESTS_FINDING_RUNS_H

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "capture.h"
#include "util.h"

static struct mt_source *source; /* of the last report */

static struct mt_report *analyze(const char *folder, const char *name)
{
    const char *path = capture_path(folder, name, ".pickle.zst");
    const struct mt_analyze_options options = {.path = path};
    const struct capture capture = capture_analyze(path, &options);

    source = capture.source;
    return capture.report;
}

/* The first finding of that kind on the first device, or NULL. */
static inline const struct mt_finding *find(const struct mt_report *report, const char *id)
{
    const struct mt_device_report *device = &report->devices[0];

    for (uint32_t i = 0; i < device->finding_count; i++)
        if (strcmp(device->findings[i].id, id) == 0)
            return &device->findings[i];
    return NULL;
}

/* The memory that a run of fixtures/findings really needed. */
static inline uint64_t truth(const char *name, const char *key)
{
    json_error_t error;
    json_t *root = json_load_file(MEMTRACE_FIXTURES "/findings/truth.json", 0, &error);

    assert_non_null(root);
    uint64_t value =
        (uint64_t)json_integer_value(json_object_get(json_object_get(root, name), key));
    json_decref(root);
    assert_true(value > 0);
    return value;
}

#endif
