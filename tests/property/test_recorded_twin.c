/* A recorded trace of a PyTorch program has the same facts about PyTorch as the snapshot of the
 * same run, byte for byte, whatever other memory was allocated; the other memory is reported as it
 * was. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "analyze_output.h"
#include "import.h"
#include "optimal.h"
#include "recorded_twin.h"
#include "replay_json.h"
#include "report.h"

static const char *const captures[] = {"churn", "churn_exp_cap", "churn_gc",   "streams",
                                       "graph", "leakval",       "oom_adam",   "churn_expandable",
                                       "leak",  "twogpu",        "streams_cap"};

struct pair {
    struct mt_source *snapshot;
    struct mt_event *base;
    size_t base_count;
    struct twin twin;
    struct mt_source *plain, *recorded; /* as traces */
};

static void read_snapshot(struct pair *pair, const char *name)
{
    struct mt_event_batch batch;
    struct mt_error error;
    char path[512];

    snprintf(path, sizeof path, "%s/captures/%s.pickle.zst", MEMTRACE_FIXTURES, name);
    assert_int_equal(mt_import_open_any(path, &pair->snapshot, &error), MT_OK);
    while (mt_source_next(pair->snapshot, &batch, &error) == MT_OK) {
        pair->base = realloc(pair->base, (pair->base_count + batch.count) * sizeof *pair->base);
        assert_non_null(pair->base);
        memcpy(pair->base + pair->base_count, batch.events, batch.count * sizeof *pair->base);
        pair->base_count += batch.count;
    }
    for (size_t i = 0; i < pair->base_count; i++)
        pair->base[i].seq = (i + 1) * TWIN_STEP;
}

static struct mt_source *as_trace(const struct pair *pair, const struct mt_event *events,
                                  size_t count)
{
    struct mt_source *source;
    struct mt_error error;
    size_t length;
    struct mt_trace_header header = pair->snapshot->header;
    void *bytes;

    header.sources = "cupti,torch"; /* what a snapshot has of the driver is no call of it */
    bytes = twin_written(&header, &pair->snapshot->symbols, events, count, &length);

    assert_int_equal(mt_trace_open_owned(bytes, length, &source, &error), MT_OK);
    return source;
}

static void open_pair(struct pair *pair, const char *name, uint64_t seed)
{
    memset(pair, 0, sizeof *pair);
    read_snapshot(pair, name);
    twin_make(&pair->twin, &pair->snapshot->symbols, pair->base, pair->base_count, seed, seed & 1);
    pair->plain = as_trace(pair, pair->base, pair->base_count);
    pair->recorded = as_trace(pair, pair->twin.events, pair->twin.count);
}

static void close_pair(struct pair *pair)
{
    twin_unmake(&pair->twin);
    mt_source_close(pair->plain);
    mt_source_close(pair->recorded);
    mt_source_close(pair->snapshot);
    free(pair->base);
}

static void replayed(struct mt_source *source, const char *policy, struct mt_buf *out)
{
    struct mt_replay_options options = {.policy = policy, .verify = true};
    struct mt_replay_summary *summary = malloc(sizeof *summary);
    struct mt_error error;
    struct mt_json json;

    assert_non_null(summary);
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    assert_int_equal(mt_replay_run(source, &options, NULL, summary, &error), MT_OK);
    mt_json_init(&json, out, true);
    mt_json_array_begin(&json, NULL);
    for (uint16_t i = 0; i < summary->device_count; i++)
        mt_json_replay_result(&json, summary->policy, &summary->devices[i]);
    mt_json_array_end(&json);
    free(summary);
}

TEST(replays_are_the_same)
{
    static const char *const policies[] = {NULL, "recorded", "pytorch:expandable_segments:True",
                                           "bfc", "rmm-pool"};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++) {
        struct pair pair;

        open_pair(&pair, captures[i], 77 + i);
        for (size_t p = 0; p < MT_ARRAY_LEN(policies); p++) {
            struct mt_buf plain = {0}, recorded = {0};

            replayed(pair.plain, policies[p], &plain);
            replayed(pair.recorded, policies[p], &recorded);
            assert_true(plain.length > 100);
            if (strcmp(plain.data, recorded.data) != 0)
                fail_msg("%s, %s:\n%s\n%s", captures[i], policies[p] ? policies[p] : "as it is",
                         plain.data, recorded.data);
            mt_buf_release(&plain);
            mt_buf_release(&recorded);
        }
        close_pair(&pair);
    }
}

static struct mt_report *analyzed(struct mt_source *source)
{
    struct mt_analyze_options options = {.path = "run"};
    struct mt_report *report;
    struct mt_error error;

    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    assert_int_equal(mt_analyze(source, &options, &report, &error), MT_OK);
    return report;
}

/* Only a recording has memory outside of the framework. */
static void drop_outside_memory(struct mt_report *report)
{
    for (uint32_t i = 0; i < report->device_count; i++) {
        struct mt_device_report *device = &report->devices[i];
        uint32_t kept = 0;

        for (uint32_t j = 0; j < device->finding_count; j++)
            if (strcmp(device->findings[j].id, "outside-memory") != 0)
                device->findings[kept++] = device->findings[j];
        device->finding_count = kept;
    }
}

static void assert_same_document(struct mt_report *plain, struct mt_report *recorded)
{
    struct mt_buf a = {0}, b = {0};
    uint32_t drivers = recorded->driver_count;

    recorded->driver_count = 0;
    recorded->integrity = plain->integrity;
    drop_outside_memory(recorded);
    /* it was the only finding, or the text names requests that the driver refused */
    for (uint32_t i = 0; i < recorded->device_count; i++)
        if (!recorded->devices[i].finding_count)
            recorded->devices[i].no_finding = plain->devices[i].no_finding;
    mt_analyze_json(&a, plain, NULL, false);
    mt_analyze_json(&b, recorded, NULL, false);
    recorded->driver_count = drivers;
    assert_string_equal(a.data, b.data);
    mt_buf_release(&a);
    mt_buf_release(&b);
}

static void plans_are_the_same(struct pair *pair)
{
    static struct mt_buffers plain[MT_BUFFERS_DEVICES], recorded[MT_BUFFERS_DEVICES];
    struct mt_error error;

    memset(plain, 0, sizeof plain);
    memset(recorded, 0, sizeof recorded);
    assert_int_equal(mt_source_rewind(pair->plain, &error), MT_OK);
    assert_int_equal(mt_source_rewind(pair->recorded, &error), MT_OK);
    assert_int_equal(mt_buffers_from_source(pair->plain, plain, &error), MT_OK);
    assert_int_equal(mt_buffers_from_source(pair->recorded, recorded, &error), MT_OK);
    for (size_t i = 0; i < MT_BUFFERS_DEVICES; i++) {
        assert_int_equal(plain[i].count, recorded[i].count);
        assert_int_equal(plain[i].total_bytes, recorded[i].total_bytes);
        mt_buffers_release(&plain[i]);
        mt_buffers_release(&recorded[i]);
    }
}

static const struct mt_device_report *device_of(const struct mt_report *report, uint16_t number)
{
    for (uint32_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == number)
            return &report->devices[i];
    return NULL;
}

static uint64_t sum_of_sites(const struct mt_driver_report *driver)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < driver->outside_site_count; i++)
        sum += driver->outside_sites[i].bytes;
    return sum;
}

static uint64_t sum_of_owners(const struct mt_driver_report *driver)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < driver->owner_count; i++)
        sum += driver->owners[i].bytes;
    return sum;
}

static void assert_truth(const struct mt_driver_report *driver, const struct twin_truth *truth,
                         const struct mt_device_report *device)
{
    uint64_t live = 0;

    assert_true(driver->has_calls);
    assert_int_equal(driver->peak.bytes, truth->peak);
    assert_int_equal(driver->peak.framework_bytes, truth->peak_framework);
    assert_int_equal(driver->failures_in_all, truth->failures);
    assert_int_equal(driver->residual.samples, truth->samples);
    assert_int_equal(driver->residual.least_bytes, truth->least_residual);
    assert_int_equal(driver->residual.most_bytes, truth->most_residual);
    for (uint32_t i = 0; i < driver->heap_count; i++) {
        const struct mt_heap_use *heap = &driver->heaps[i];

        assert_true(heap->live_bytes <= heap->peak_bytes);
        assert_int_equal(heap->allocations, heap->frees + heap->live_blocks);
        live += heap->is_device_memory ? heap->live_bytes : 0;
    }
    assert_int_equal(live, truth->outside + truth->framework);
    if (!device)
        return;
    assert_true(driver->has_then);
    assert_int_equal(driver->then.bytes - driver->then.framework_bytes,
                     truth->outside_at[device->allocated_peak.event / TWIN_STEP - 1]);
    assert_int_equal(driver->then.framework_bytes, device->allocated_peak.then.reserved);
    assert_int_equal(sum_of_sites(driver), driver->then.bytes - driver->then.framework_bytes);
    assert_int_equal(sum_of_owners(driver), driver->then.bytes - driver->then.framework_bytes);
}

TEST(analyses_are_the_same_and_the_rest_is_true)
{
    for (size_t i = 0; i < 2 * MT_ARRAY_LEN(captures); i++) {
        struct pair pair;

        open_pair(&pair, captures[i / 2], 1000 + i);
        struct mt_report *plain = analyzed(pair.plain);
        struct mt_report *recorded = analyzed(pair.recorded);
        assert_int_equal(plain->driver_count, 0);
        assert_true(recorded->driver_count > 0);
        assert_same_document(plain, recorded);
        for (uint32_t d = 0; d < recorded->driver_count; d++) {
            const struct mt_driver_report *driver = &recorded->drivers[d];

            assert_truth(driver, &pair.twin.truth[driver->device],
                         device_of(recorded, driver->device));
        }
        plans_are_the_same(&pair);
        mt_report_release(plain);
        mt_report_release(recorded);
        close_pair(&pair);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
