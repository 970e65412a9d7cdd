/* Compares recorded traces with the programs' own counters (fixtures/recorded). */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "analyze.h"
#include "report.h"
#include "trace.h"
#include "util.h"

struct run {
    struct mt_source *source;
    struct mt_report *report;
    json_t *truth; /* NULL = there is none */
};

static void open_run(struct run *run, const char *name)
{
    struct mt_analyze_options options = {0};
    struct mt_error error;
    char path[512];

    snprintf(path, sizeof path, "%s/recorded/%s.trace.zst", MEMTRACE_FIXTURES, name);
    assert_int_equal(mt_trace_open(path, &run->source, &error), MT_OK);
    if (mt_analyze(run->source, &options, &run->report, &error) != MT_OK)
        fail_msg("%s: %s", name, error.text);
    snprintf(path, sizeof path, "%s/recorded/%s.truth.json", MEMTRACE_FIXTURES, name);
    run->truth = json_load_file(path, 0, NULL);
}

static void close_run(struct run *run)
{
    json_decref(run->truth);
    mt_report_release(run->report);
    mt_source_close(run->source);
}

static uint64_t truth(const struct run *run, const char *key)
{
    const json_t *value = json_object_get(run->truth, key);

    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

TEST(pytorch_beside_others)
{
    struct run run;

    open_run(&run, "mixed");
    assert_int_equal(run.report->device_count, 1);
    assert_int_equal(run.report->driver_count, 1);
    const struct mt_device_report *device = &run.report->devices[0];
    const struct mt_driver_report *driver = &run.report->drivers[0];
    assert_false(run.report->is_driver_level);
    assert_true(device->replay.verify.exact);
    assert_null(run.report->pytorch_difference);
    assert_int_equal(device->requested_peak.bytes, truth(&run, "requested"));
    assert_int_equal(device->allocated_peak.bytes, truth(&run, "allocated"));
    assert_int_equal(device->active_peak.bytes, truth(&run, "active"));
    assert_int_equal(device->reserved_peak.bytes, truth(&run, "reserved"));
    assert_int_equal(driver->then.framework_bytes, truth(&run, "reserved"));
    assert_int_equal(driver->then.bytes - driver->then.framework_bytes,
                     truth(&run, "beside_at_peak"));
    assert_int_equal(driver->peak.bytes, truth(&run, "reserved") + truth(&run, "beside"));
    assert_int_equal(driver->failures_in_all, 1);
    assert_int_equal(driver->residual.least_bytes, 400 * MT_MIB);
    assert_int_equal(driver->residual.most_bytes, 400 * MT_MIB);
    assert_int_equal(run.report->step_count, 3);
    close_run(&run);
}

/* Phases of a program with threads: those of backward belong to the step, loading is separate, and
 * a range that began on one thread and ended on another has both ends. */
TEST(phases_on_threads)
{
    bool has_session = false;
    struct run run;

    open_run(&run, "mixed");
    const struct mt_device_report *device = &run.report->devices[0];
    for (uint32_t i = 0; i < run.report->phase_count; i++) {
        const struct mt_phase *phase = &run.report->phases[i];

        assert_false(phase->cut);
        if (!strcmp(phase->name, "backward")) {
            assert_true(device->phase_uses[i].allocations > 10);
            assert_true(phase->step >= 0);
        } else if (!strcmp(phase->name, "load")) {
            assert_int_equal(phase->parent, MT_NO_PHASE);
            assert_int_not_equal(phase->thread, run.report->phases[0].thread);
        } else if (!strcmp(phase->name, "session")) {
            has_session = true;
        }
    }
    assert_true(has_session);
    for (uint32_t i = 0; i < device->peak_site_count; i++)
        if (!strncmp(device->peak_sites[i].site, "autograd engine", 15))
            assert_string_equal(device->peak_sites[i].phase, "backward");
    close_run(&run);
}

TEST(a_program_without_a_framework)
{
    struct run run;

    open_run(&run, "driver_only");
    assert_true(run.report->is_driver_level);
    assert_int_equal(run.report->device_count, 1);
    const struct mt_device_report *device = &run.report->devices[0];
    assert_int_equal(device->allocated_peak.bytes, truth(&run, "peak"));
    assert_int_equal(device->end.allocated, truth(&run, "end"));
    assert_int_equal(run.report->drivers[0].peak.bytes, truth(&run, "peak"));
    assert_int_equal(device->replay.orphan_frees, 0);
    close_run(&run);
}

/* All heaps are empty at the end, and only existing blocks are freed. */
TEST(every_way_to_allocate)
{
    struct run run;

    open_run(&run, "every_allocation");
    assert_true(run.report->is_driver_level);
    assert_int_equal(run.report->drivers[0].heap_count, 10);
    for (uint32_t i = 0; i < run.report->drivers[0].heap_count; i++) {
        const struct mt_heap_use *heap = &run.report->drivers[0].heaps[i];

        assert_true(heap->allocations > 0);
        assert_int_equal(heap->allocations, heap->frees);
        assert_int_equal(heap->live_bytes, 0);
    }
    assert_int_equal(run.report->devices[0].end.allocated, 0);
    assert_int_equal(run.report->devices[0].replay.orphan_frees, 0);
    close_run(&run);
}

/* Weights and cache have the sizes of the program's storages, and the parts sum to the device. */
TEST(a_model_that_is_served)
{
    struct run run;
    uint64_t sum = 0, free_at_the_end;

    open_run(&run, "paged_pool");
    const struct mt_device_report *device = &run.report->devices[0];
    free_at_the_end = truth(&run, "free_at_the_end");
    assert_non_null(device->device_parts);
    for (int i = 0; i < MT_DEVICE_PART_COUNT; i++)
        sum += device->device_parts->parts[i];
    assert_int_equal(sum, truth(&run, "device"));
    /* blocks are rounded up, by at most a MiB for each of 8 layers, 512 bytes for each weight */
    assert_in_range(device->device_parts->parts[MT_DEVICE_KV_CACHE], truth(&run, "kv_cache"),
                    truth(&run, "kv_cache") + 8 * MT_MIB);
    assert_in_range(device->device_parts->parts[MT_DEVICE_WEIGHTS], truth(&run, "weights"),
                    truth(&run, "weights") + 4 * MT_MIB);
    /* PyTorch takes segments after its allocated peak; NVML counts some MiB less than CUDA */
    free_at_the_end += device->reserved_peak.bytes - run.report->drivers[0].then.framework_bytes;
    assert_in_range(device->device_parts->parts[MT_DEVICE_FREE], free_at_the_end,
                    free_at_the_end + 16 * MT_MIB);
    close_run(&run);
}

/* vLLM's engine runs the model and warms up below the function that creates its cache: only the
 * pool is the cache. The peaks are those of PyTorch's counters, to the byte. */
TEST(the_engine_of_vllm)
{
    struct run run;
    uint64_t sum = 0;

    open_run(&run, "vllm");
    const struct mt_device_report *device = &run.report->devices[0];
    assert_int_equal(device->allocated_peak.bytes, truth(&run, "allocated_peak"));
    assert_int_equal(device->reserved_peak.bytes, truth(&run, "reserved_peak"));
    assert_non_null(device->device_parts);
    for (int i = 0; i < MT_DEVICE_PART_COUNT; i++)
        sum += device->device_parts->parts[i];
    assert_int_equal(sum, truth(&run, "device"));
    /* 16 layers, each rounded up to 2 MiB, and some tables */
    assert_in_range(device->device_parts->parts[MT_DEVICE_KV_CACHE], truth(&run, "kv_cache"),
                    truth(&run, "kv_cache") + 16 * 2 * MT_MIB);
    close_run(&run);
}

static uint64_t communicator_bytes(const struct mt_driver_report *driver, int32_t communicator)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < driver->owner_count; i++)
        if (driver->owners[i].communicator == communicator)
            bytes += driver->owners[i].bytes;
    return bytes;
}

/* The device had less memory by the same number of bytes. The second communicator took 2 MiB more,
 * for a kernel. */
TEST(two_communicators)
{
    struct run run;

    open_run(&run, "communicators");
    const struct mt_driver_report *driver = &run.report->drivers[0];
    uint64_t second = truth(&run, "before_second") - truth(&run, "after_second");
    assert_int_equal(driver->communicator_count, 2);
    assert_in_range(communicator_bytes(driver, 1), second - 2 * MT_MIB, second);
    assert_int_equal(communicator_bytes(driver, 0), communicator_bytes(driver, 1));
    assert_int_equal(communicator_bytes(driver, 1),
                     truth(&run, "after_end_of_second") - truth(&run, "after_steps"));
    for (uint32_t i = 0; i < driver->owner_count; i++)
        assert_non_null(driver->owners[i].library);
    close_run(&run);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
