/* What a device is full of while a model serves: the parts sum to its bytes, or there is no table.
 */
#include "cmocka_all.h"

#include <string.h>

#include "analyze.h"
#include "analyze_output.h"
#include "memory_source.h"
#include "report_query.h"
#include "util.h"

#define SEGMENT UINT64_C(0x7f0000000000)
#define POOL    UINT64_C(0x7d0000000000)
#define OTHER   UINT64_C(0x7e0000000000)

enum { DRIVER, PYTORCH, MAX_EVENTS = 64 };

struct run {
    struct memory_source source;
    struct mt_event events[MAX_EVENTS];
    size_t count;
    uint32_t stack; /* of the next allocation */
    struct mt_report *report;
    struct mt_buf text;
};

static uint32_t add_text(struct run *run, const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&run->source.source.symbols, text, strlen(text), &id),
                     MT_OK);
    return id;
}

static uint32_t stack_of(struct run *run, const char *function, const char *file)
{
    struct mt_symbols *symbols = &run->source.source.symbols;
    uint32_t frame, stack;

    assert_int_equal(
        mt_symbols_frame(symbols, add_text(run, function), add_text(run, file), 7, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, frame, &stack), MT_OK);
    return stack;
}

static struct mt_event *add(struct run *run, uint16_t heap, uint8_t kind, uint64_t addr,
                            uint64_t bytes)
{
    struct mt_event *event = &run->events[run->count++];

    *event = (struct mt_event){.kind = kind,
                               .heap = heap,
                               .addr = addr,
                               .size_bytes = bytes,
                               .stack = kind == MT_EVENT_ALLOC ? run->stack : MT_NO_ID,
                               .name = MT_NO_ID};
    return event;
}

/* From the driver, with a segment in it. */
static void add_segment(struct run *run, uint64_t addr, uint64_t bytes, uint16_t pool)
{
    add(run, DRIVER, MT_EVENT_ALLOC, addr, bytes);
    add(run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, addr, bytes)->pool = pool;
}

static void begin(struct run *run)
{
    struct mt_symbols *symbols = &run->source.source.symbols;

    memset(run, 0, sizeof *run);
    run->stack = MT_NO_ID;
    memory_source_init(&run->source, run->events, 0, 5);
    run->source.source.format = "memory";
    run->source.source.header.has_stacks = run->source.source.header.has_segments = true;
    assert_int_equal(memory_source_heap(&run->source, "pytorch"), PYTORCH);
    assert_int_equal(mt_symbols_device(symbols, 0, MT_NO_ID, MT_GIB), MT_OK);
}

/* A model, a cache, a graph's pool, a call of the model; 64 MiB of a library. */
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

static void finish(struct run *run)
{
    const struct mt_style plain = {"", "", "", "", "", "", ""};
    struct mt_analyze_options options = {.path = "run"};
    struct mt_error error;

    run->source.count = run->count;
    for (size_t i = 0; i < run->count; i++) {
        run->events[i].seq = i;
        run->events[i].t_ns = 1000 * (i + 1);
    }
    if (mt_analyze(&run->source.source, &options, &run->report, &error) != MT_OK)
        fail_msg("%s", error.text);
    mt_analyze_text(&run->text, run->report, &plain, NULL, true);
    assert_int_equal(run->report->device_count, 1);
}

static void end(struct run *run)
{
    mt_buf_release(&run->text);
    mt_report_release(run->report);
    memory_source_release(&run->source);
}

static void parts_sum_to_the_device(void **state)
{
    struct run run;
    const struct mt_device_parts *found;
    uint64_t sum = 0;

    (void)state;
    begin(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    finish(&run);
    found = run.report->devices[0].device_parts;
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

/* What a library takes after the allocated peak is not free for a larger cache. */
static void a_cache_leaves_room_for_later(void **state)
{
    struct run run;
    const struct mt_device_parts *found;

    (void)state;
    begin(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER + 64 * MT_MIB, 600 * MT_MIB);
    finish(&run);
    found = run.report->devices[0].device_parts;
    assert_non_null(found);
    assert_int_equal(found->parts[MT_DEVICE_FREE], 640 * MT_MIB);
    assert_int_equal(found->spare_bytes, 40 * MT_MIB);
    assert_int_equal(mt_largest_kv_cache(found), 140 * MT_MIB);
    assert_non_null(strstr(run.text.data, "room for a KV cache of 140 MiB"));
    end(&run);
}

/* Requests that were not served say nothing of the cache that they leave room for. */
static void a_run_that_died_has_no_such_cache(void **state)
{
    struct run run;

    (void)state;
    begin(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    add(&run, PYTORCH, MT_EVENT_OOM, 0, 900 * MT_MIB);
    finish(&run);
    assert_non_null(mt_fatal_oom(&run.report->devices[0]));
    assert_non_null(run.report->devices[0].device_parts);
    assert_true(run.report->devices[0].device_parts->died);
    assert_non_null(strstr(run.text.data, "The whole device"));
    assert_null(strstr(run.text.data, "room for a KV cache"));
    end(&run);
}

static uint64_t kv_cache_of(const char *function, const char *file)
{
    struct run run;
    uint64_t bytes;

    begin(&run);
    serve(&run, function, file);
    finish(&run);
    bytes = run.report->devices[0].peak_role_bytes[MT_ROLE_KV_CACHE];
    end(&run);
    return bytes;
}

static void pools_of_pages_are_caches(void **state)
{
    (void)state;
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

/* Of training, and of what contradicts itself, there is none. */
static void no_table_where_it_would_not_close(void **state)
{
    struct run run;

    (void)state;
    begin(&run);
    serve(&run, "Runner._allocate_kv_cache_tensors", "/x/vllm/v1/worker/gpu_model_runner.py");
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 2 * MT_GIB);
    finish(&run);
    assert_null(run.report->devices[0].device_parts);
    assert_null(strstr(run.text.data, "The whole device"));
    end(&run);
    begin(&run);
    serve(&run, "Mine.make", "/x/mine.py");
    finish(&run);
    assert_null(run.report->devices[0].device_parts);
    end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_sum_to_the_device),
        cmocka_unit_test(a_cache_leaves_room_for_later),
        cmocka_unit_test(a_run_that_died_has_no_such_cache),
        cmocka_unit_test(pools_of_pages_are_caches),
        cmocka_unit_test(no_table_where_it_would_not_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
