/* What a device holds while a model serves: the parts sum to its bytes, or there is no table. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "driver_run.h"
#include "report_query.h"

#define POOL UINT64_C(0x7d0000000000)

static uint32_t stack_of(struct run *run, const char *function, const char *file)
{
    struct mt_symbols *symbols = &run->source.source.symbols;
    uint32_t frame, stack;

    assert_int_equal(
        mt_symbols_frame(symbols, add_text(run, function), add_text(run, file), 7, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, frame, &stack), MT_OK);
    return stack;
}

/* On a device of 1 GiB. */
static void begin_served(struct run *run)
{
    begin(run);
    run->source.source.header.has_stacks = run->source.source.header.has_segments = true;
    assert_int_equal(mt_symbols_device(&run->source.source.symbols, 0, MT_NO_ID, MT_GIB), MT_OK);
}

/* A model, a cache, a graph's pool, one call of the model; 64 MiB of a library. */
static void serve(struct run *run, const char *cache, const char *file)
{
    uint16_t pool = 1;

    add_segment(run, SEGMENT, 200 * MT_MIB, 0);
    run->stack = stack_of(run, "Module._apply", "/x/torch/nn/modules/module.py");
    add(run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 40 * MT_MIB);
    run->stack = stack_of(run, cache, file);
    add(run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + 40 * MT_MIB, 100 * MT_MIB);
    run->stack = stack_of(run, "Module._call_impl", "/x/torch/nn/modules/module.py");
    add_segment(run, POOL, 20 * MT_MIB, pool);
    add(run, PYTORCH, MT_EVENT_ALLOC, POOL, 4 * MT_MIB)->pool = pool;
    add(run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + 140 * MT_MIB, 10 * MT_MIB);
    add(run, DRIVER, MT_EVENT_ALLOC, OTHER, 64 * MT_MIB);
    add(run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 384 * MT_MIB)->aux_bytes = 640 * MT_MIB;
    add(run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + 150 * MT_MIB, MT_MIB);
    add(run, PYTORCH, MT_EVENT_FREE_REQUESTED, SEGMENT + 140 * MT_MIB, 10 * MT_MIB);
    add(run, PYTORCH, MT_EVENT_FREE_COMPLETED, SEGMENT + 140 * MT_MIB, 10 * MT_MIB);
}

TEST(parts_sum_to_the_device)
{
    struct run run;
    uint64_t sum = 0;

    begin_served(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    analyze(&run);
    const struct mt_device_parts *found = run.report->devices[0].device_parts;
    assert_non_null(found);
    for (int i = 0; i < MT_DEVICE_PART_COUNT; i++)
        sum += found->parts[i];
    assert_int_equal(sum, MT_GIB);
    assert_int_equal(found->parts[MT_DEVICE_KV_CACHE], 100 * MT_MIB);
    assert_int_equal(found->parts[MT_DEVICE_GRAPHS], 20 * MT_MIB);
    assert_int_equal(found->parts[MT_DEVICE_LIBRARIES], 64 * MT_MIB);
    assert_int_equal(found->parts[MT_DEVICE_CONTEXT], 100 * MT_MIB);
    assert_int_equal(found->parts[MT_DEVICE_FREE], 640 * MT_MIB);
    assert_int_equal(found->parts[MT_DEVICE_UNUSED], 49 * MT_MIB);
    assert_int_equal(mt_largest_kv_cache(found), 740 * MT_MIB);
    assert_non_null(strstr(run.text.data, "These requests leave room for a KV cache of 740 MiB"));
    end(&run);
}

static struct mt_event *sample_of(struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i].kind == MT_EVENT_MEMORY_SAMPLE)
            return &run->events[i];
    fail_msg("there is no sample");
    return NULL;
}

/* The context grows while a program runs. At the peak, the nearest sample counts. A larger cache
 * must leave space for the largest context. */
TEST(the_context_is_that_of_the_peak)
{
    struct run run;

    begin_served(&run);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 30 * MT_MIB);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 484 * MT_MIB);
    analyze(&run);
    const struct mt_device_parts *found = run.report->devices[0].device_parts;
    assert_non_null(found);
    assert_int_equal(found->parts[MT_DEVICE_CONTEXT], 100 * MT_MIB);
    assert_int_equal(found->context_event, sample_of(&run)->seq + 10);
    assert_int_equal(found->parts[MT_DEVICE_FREE], 640 * MT_MIB);
    assert_int_equal(found->spare_bytes, 540 * MT_MIB);
    expect_text(&run, "use reported by NVML at 10.0 µs minus all allocations, the sample nearest "
                      "the peak (of 3)");
    end(&run);
}

/* A sample below the tracked bytes was taken before an allocation that it should include. */
TEST(an_outdated_sample_is_skipped)
{
    struct run run;

    begin_served(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    sample_of(&run)->size_bytes = 200 * MT_MIB;
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 384 * MT_MIB);
    analyze(&run);
    const struct mt_device_parts *found = run.report->devices[0].device_parts;
    assert_non_null(found);
    assert_int_equal(found->parts[MT_DEVICE_CONTEXT], 100 * MT_MIB);
    assert_int_equal(found->context_event, run.count - 1);
    end(&run);
}

/* Memory that a library allocates after the allocated peak is not available to a larger cache. */
TEST(a_cache_leaves_space_for_later_allocations)
{
    struct run run;

    begin_served(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER + 64 * MT_MIB, 600 * MT_MIB);
    analyze(&run);
    const struct mt_device_parts *found = run.report->devices[0].device_parts;
    assert_non_null(found);
    assert_int_equal(found->parts[MT_DEVICE_FREE], 640 * MT_MIB);
    assert_int_equal(found->spare_bytes, 40 * MT_MIB);
    assert_int_equal(mt_largest_kv_cache(found), 140 * MT_MIB);
    assert_non_null(strstr(run.text.data, "room for a KV cache of 140 MiB"));
    end(&run);
}

/* Failed requests give no information about the largest cache that leaves space for them. */
TEST(a_failed_run_has_no_cache_limit)
{
    struct run run;

    begin_served(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    add(&run, PYTORCH, MT_EVENT_OOM, 0, 900 * MT_MIB);
    analyze(&run);
    assert_non_null(mt_fatal_oom(&run.report->devices[0]));
    assert_non_null(run.report->devices[0].device_parts);
    assert_true(run.report->devices[0].device_parts->died);
    assert_non_null(strstr(run.text.data, "The whole device"));
    assert_null(strstr(run.text.data, "room for a KV cache"));
    end(&run);
}

/* If the screen has too few lines: the driver's table repeats the bytes of the parts, so the parts
 * stay. This also holds for a failed run. */
TEST(parts_stand_before_the_drivers_table)
{
    for (int dies = 0; dies < 2; dies++) {
        struct run run;

        begin_served(&run);
        serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
        for (uint64_t i = 0; i < 30; i++) {
            char function[32];

            (void)snprintf(function, sizeof function, "Layer%d.forward", (int)i);
            run.stack = stack_of(&run, function, "/home/me/model.py");
            add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + (151 + i) * MT_MIB, MT_MIB);
        }
        if (dies)
            add(&run, PYTORCH, MT_EVENT_OOM, 0, 900 * MT_MIB);
        analyze(&run);
        assert_non_null(strstr(run.text.data, "Outside the framework"));
        assert_non_null(strstr(run.text.data, "The whole device at the allocated peak"));
        end(&run);
    }
}

static uint64_t kv_cache_of(const char *function, const char *file)
{
    struct run run;

    begin_served(&run);
    serve(&run, function, file);
    analyze(&run);
    uint64_t bytes = run.report->devices[0].peak_role_bytes[MT_ROLE_KV_CACHE];
    end(&run);
    return bytes;
}

TEST(pools_of_pages_are_caches)
{
    assert_int_equal(
        kv_cache_of("MHATokenToKVPool._create_buffers", "/x/sglang/srt/mem_cache/memory_pool.py"),
        100 * MT_MIB);
    assert_int_equal(
        kv_cache_of("MLATokenToKVPool.__init__", "/x/sglang/srt/mem_cache/memory_pool.py"),
        100 * MT_MIB);
    assert_int_equal(
        kv_cache_of("CacheEngine._allocate_kv_cache", "/x/vllm/worker/cache_engine.py"),
        100 * MT_MIB);
    assert_int_equal(kv_cache_of("DynamicLayer.update", "/x/transformers/cache_utils.py"),
                     100 * MT_MIB);
    assert_int_equal(
        kv_cache_of("ReqToTokenPool.__init__", "/x/sglang/srt/mem_cache/memory_pool.py"), 0);
    assert_int_equal(kv_cache_of("_create_buffers", "/x/mine/buffers.py"), 0);
}

/* There is no table for training, nor for contradictory input. */
TEST(no_table_if_parts_do_not_sum)
{
    struct run run;

    begin_served(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    sample_of(&run)->size_bytes = 2 * MT_GIB;
    analyze(&run);
    assert_null(run.report->devices[0].device_parts);
    assert_null(strstr(run.text.data, "The whole device"));
    end(&run);
    begin_served(&run);
    serve(&run, "Mine.make", "/x/mine.py");
    analyze(&run);
    assert_null(run.report->devices[0].device_parts);
    end(&run);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
