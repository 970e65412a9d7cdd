/* Profiles of XLA's profiler, replayed under the arena's rules: every address and region equals
 * that of the run, and every level equals memory_stats() of the same run. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "capture.h"
#include "replay.h"

static uint64_t stat_of(const char *name, const char *key)
{
    json_error_t error;
    json_t *stats = json_load_file(capture_path("xplane", name, ".stats.json"), 0, &error);

    assert_non_null(stats);
    assert_true(json_is_integer(json_object_get(stats, key)));
    uint64_t value = (uint64_t)json_integer_value(json_object_get(stats, key));
    json_decref(stats);
    return value;
}

static void replay_of(const char *name)
{
    struct mt_source *source = capture_open(capture_path("xplane", name, ".xplane.pb.zst"));
    const struct mt_replay_options options = {.policy = "bfc", .verify = true};
    struct mt_replay_summary *summary = calloc(1, sizeof *summary);
    const struct mt_replay_result *result = &summary->devices[0];
    struct mt_error error = {.text = ""};

    assert_non_null(summary);
    if (mt_replay_run(source, &options, NULL, summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(summary->device_count, 1);
    if (!result->verify.exact)
        fail_msg("%s: %s", name, result->verify.first_difference);
    assert_int_equal(result->verify.addresses_exact, stat_of(name, "num_allocs"));
    assert_true(result->verify.segment_events_exact > 1);
    assert_int_equal(result->counters.allocations, stat_of(name, "num_allocs"));
    assert_int_equal(result->counters.allocated.peak, stat_of(name, "peak_bytes_in_use"));
    assert_int_equal(result->counters.allocated.now, stat_of(name, "bytes_in_use"));
    assert_int_equal(result->counters.reserved.peak, stat_of(name, "peak_pool_bytes"));
    assert_int_equal(result->limit_bytes, stat_of(name, "bytes_limit"));
    free(summary);
    mt_source_close(source);
}

/* Keras on the CPU. The arena does not report how much it took from the system; its rules determine
 * it. */
TEST(host_memory)
{
    struct mt_analyze_options options = {.path = "keras_conv"};
    struct capture capture =
        capture_analyze(capture_path("xplane", "keras_conv", ".xplane.pb.zst"), &options);
    const struct mt_device_report *device = &capture.report->devices[0];

    assert_int_equal(capture.report->device_count, 1);
    assert_true(device->replay.verify.exact);
    assert_int_equal(device->replay.verify.addresses_exact, stat_of("keras_conv", "num_allocs"));
    assert_int_equal(device->replay.verify.segment_events_exact, 3);
    assert_int_equal(device->allocated_peak.bytes, stat_of("keras_conv", "peak_bytes_in_use"));
    assert_int_equal(device->replay.counters.allocated.now, stat_of("keras_conv", "bytes_in_use"));
    assert_int_equal(device->replay.limit_bytes, stat_of("keras_conv", "bytes_limit"));
    assert_string_equal(device->name, MT_HOST_MEMORY);
    assert_string_equal(capture.report->framework, "TensorFlow");
    assert_true(capture.report->names_operations);
    assert_null(capture.report->pytorch_difference);
    capture_close(&capture);
}

TEST(inference)
{
    replay_of("generate");
}

TEST(training)
{
    replay_of("nnx_donated");
}

/* By default, an analysis uses the arena's rules, and they are exact. */
TEST(analysis)
{
    struct mt_analyze_options options = {.path = "generate"};
    struct capture capture =
        capture_analyze(capture_path("xplane", "generate", ".xplane.pb.zst"), &options);
    const struct mt_device_report *device = &capture.report->devices[0];

    assert_int_equal(capture.report->device_count, 1);
    assert_null(capture.report->pytorch_difference);
    assert_true(device->replay.verify.exact);
    assert_int_equal(device->allocated_peak.bytes, stat_of("generate", "peak_bytes_in_use"));
    assert_int_equal(device->reserved_peak.bytes, stat_of("generate", "peak_pool_bytes"));
    assert_string_equal(device->name, "NVIDIA H200");
    capture_close(&capture);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
