/* Explains why there is no finding: what was checked, and what could not be. Findings of parts of
 * the report: pools, and the whole device. */
#include "cmocka_all.h"

#include <string.h>

#include "analysis.h"
#include "finding.h"
#include "trend.h"
#include "util.h"

enum { STEPS = 20 };

static struct mt_step_use steps[STEPS];
static struct mt_phase phases[STEPS];
static struct mt_arena arena;
static struct mt_device_report device;
static struct mt_report report;

static int setup(void **unused)
{
    (void)unused;
    memset(&device, 0, sizeof device);
    for (uint32_t i = 0; i < STEPS; i++) {
        steps[i].phase = (int32_t)i;
        phases[i] = (struct mt_phase){.begin_event = 10 * (i + 1), .parent = MT_NO_PHASE};
    }
    device.steps = steps;
    device.events = 1000;
    device.allocated_peak.bytes = 100 * MT_MIB;
    device.reserved_peak.then =
        (struct mt_bytes){.allocated = 100 * MT_MIB, .reserved = 120 * MT_MIB};
    mt_arena_release(&report.arena);
    report = (struct mt_report){
        .devices = &device, .device_count = 1, .phases = phases, .has_segments = true};
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    mt_arena_release(&arena);
    mt_arena_release(&report.arena);
    return 0;
}

static void expect(const char *text)
{
    assert_string_equal(mt_nothing_found(&arena, &report, &device), text);
}

#define SEEN                                                                                       \
    "20.0 MiB of the 120 MiB reserved was unused at the reserved peak, no request was refused, "   \
    "and "

TEST_WITH(checked_growth_is_reported, setup, teardown)
{
    device.step_count = STEPS;
    device.growth = (struct mt_growth){.judged = true, .steps = 13};
    expect(SEEN "no growth from step to step was found");
    device.growth.bytes_per_step = 512;
    expect(SEEN "each step leaves 512 B behind, too little to matter");
}

TEST_WITH(unchecked_growth_has_a_reason, setup, teardown)
{
    expect(SEEN "no steps were found, so growth is not judged");
    device.step_count = MT_GROWTH_MIN_STEPS - 1;
    expect(SEEN "there are too few steps to judge growth");
    device.step_count = STEPS;
    expect(SEEN "too many blocks outlive their step to judge growth");
}

TEST_WITH(without_a_history_requests_are_not_mentioned, setup, teardown)
{
    device.events = 1; /* PyTorch 2.0 keeps one entry */
    device.end = device.reserved_peak.then;
    report.starts_in_middle = true;
    expect("20.0 MiB of the 120 MiB reserved is unused; the snapshot has no history");
    device.events = 0;
    device.end.reserved = 0;
    report.has_segments = false;
    device.peak_role_bytes[MT_ROLE_OTHER] = 50 * MT_MIB;
    expect("reserved memory was not recorded; the snapshot has no history; the role of 50.0% of "
           "the peak is unknown");
}

/* The only finding about the device, of the kind `ops`; NULL: none. */
static const struct mt_finding *found_by(const struct mt_finding_ops *ops, const char *file)
{
    static struct mt_source source;
    static struct mt_analysis analysis;
    static struct mt_finding_search search;
    uint32_t name, frame, stack;

    memset(&source, 0, sizeof source);
    assert_int_equal(mt_symbols_init(&source.symbols), MT_OK);
    assert_int_equal(mt_symbols_string(&source.symbols, file, strlen(file), &name), MT_OK);
    assert_int_equal(mt_symbols_frame(&source.symbols, name, name, 7, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(&source.symbols, MT_NO_ID, frame, &stack), MT_OK);
    assert_int_equal(stack, 0);
    analysis = (struct mt_analysis){.source = &source, .report = &report};
    search = (struct mt_finding_search){.analysis = &analysis, .device = &device};
    assert_int_equal(ops->find(&search), MT_OK);
    mt_symbols_release(&source.symbols);
    return search.count ? &search.found[0] : NULL;
}

extern const struct mt_finding_ops mt_finding_graph_pools, mt_finding_kv_cache;

TEST_WITH(pools_of_graphs_are_found, setup, teardown)
{
    static const char trees[] = "torch/_inductor/cudagraph_trees.py",
                      graphs[] = "torch/cuda/graphs.py";
    struct mt_pool_use pools[] = {
        {.reserved_bytes = 300 * MT_MIB},
        {.id = {0, 1}, .reserved_bytes = 100 * MT_MIB, .allocated_bytes = 60 * MT_MIB}};

    device.reserved_peak.bytes = 400 * MT_MIB;
    device.pools = pools;
    device.pool_count = 2;
    const struct mt_finding *finding = found_by(&mt_finding_graph_pools, trees);
    assert_string_equal(finding->title,
                        "CUDA graphs hold 100 MiB (25.0% of the reserved peak) in a "
                        "private pool (torch.compile)");
    assert_int_equal(finding->saves_bytes, 100 * MT_MIB);
    assert_non_null(found_by(&mt_finding_graph_pools, graphs));
    assert_null(found_by(&mt_finding_graph_pools, "train.py")); /* of a MemPool */
    pools[1].first_stack = MT_NO_ID; /* elsewhere, the program captures graphs */
    assert_string_equal(found_by(&mt_finding_graph_pools, trees)->title,
                        "CUDA graphs or MemPools hold 100 MiB (25.0% of the reserved peak) in a "
                        "private pool");
    pools[1].id[0] = 1;
    pools[1].id[1] = 0;
    assert_non_null(found_by(&mt_finding_graph_pools, "train.py"));
    pools[1].allocated_bytes = 80 * MT_MIB;
    assert_null(found_by(&mt_finding_graph_pools, graphs));
    pools[1].allocated_bytes = 0;
    device.reserved_peak.bytes = 1100 * MT_MIB;
    assert_null(found_by(&mt_finding_graph_pools, graphs));
}

TEST_WITH(a_cache_that_is_most_of_the_memory_has_an_answer, setup, teardown)
{
    struct mt_device_parts parts = {.total_bytes = 200 * MT_MIB,
                                    .parts[MT_DEVICE_KV_CACHE] = 70 * MT_MIB,
                                    .context_is_known = true,
                                    .spare_bytes = 80 * MT_MIB};

    device.peak_role_bytes[MT_ROLE_KV_CACHE] = 70 * MT_MIB;
    assert_null(found_by(&mt_finding_kv_cache, "run.py"));
    device.device_parts = &parts;
    const struct mt_finding *finding = found_by(&mt_finding_kv_cache, "run.py");
    assert_string_equal(
        finding->title,
        "These requests leave room for a KV cache of 150 MiB, 80.0 MiB more than it "
        "has, if no other process uses the device");
    assert_non_null(strstr(finding->advice, "give the cache more blocks"));
    parts.spare_bytes = 1 * MT_MIB;
    finding = found_by(&mt_finding_kv_cache, "run.py");
    assert_non_null(strstr(finding->advice, "keep it in FP8"));
    assert_null(strstr(finding->advice, "vLLM"));
    assert_non_null(strstr(found_by(&mt_finding_kv_cache, "/v/vllm/run.py")->advice, "of vLLM"));
    parts.spare_bytes = 0;
    finding = found_by(&mt_finding_kv_cache, "run.py");
    assert_string_equal(finding->title, "The KV cache of 70.0 MiB is as large as it can be");
    device.allocated_peak.bytes = 150 * MT_MIB;
    assert_null(found_by(&mt_finding_kv_cache, "run.py"));
}

static int forget(void **unused)
{
    (void)unused;
    mt_arena_release(&report.arena);
    return 0;
}

int main(void)
{
    return run_tests_of_file(NULL, forget);
}
