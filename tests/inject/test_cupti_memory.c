/* Physical memory, pools, graphs, devices and memory of other processes, as CUPTI reports them. */
#include "cupti_decoders.h"
#include "imitated_cupti.h"

static void create(uint64_t handle, size_t bytes)
{
    struct mt_cu_allocation_prop prop = {.location = {MT_CU_LOCATION_DEVICE, 5}};
    struct mt_cu_create params = {&handle, bytes, &prop};
    call("cuMemCreate", &params, 0);
}

static void map(uint64_t addr, size_t bytes, uint64_t handle)
{
    struct mt_cu_map params = {addr, bytes, 0, handle};
    call("cuMemMap", &params, 0);
}

static void unmap(uint64_t addr, size_t bytes, uint32_t result)
{
    struct mt_cu_range params = {addr, bytes};
    call("cuMemUnmap", &params, result);
}

static void let_go(uint64_t handle, uint32_t result)
{
    struct mt_cu_handle params = {handle};
    call("cuMemRelease", &params, result);
}

TEST_WITH(test_physical_memory, set_up, NULL)
{
    create(0x70, 4096);
    assert_int_equal(recorded.events[0].device, 5);
    assert_int_equal(recorded.events[0].heap, MT_RAW_VIRTUAL);
    map(0xa000, 4096, 0x70);
    assert_int_equal(recorded.events[1].heap, MT_RAW_MAPPED);
    assert_int_equal(recorded.events[1].aux_bytes, 0x70);
    assert_int_equal(recorded.events[1].device, 5);
    assert_story("alloc 70 4096|alloc a000 4096");
    let_go(0x70, 0);
    assert_story("");
    unmap(0xa000, 4096, 0);
    assert_story("free_requested a000 4096|free_completed a000 4096|"
                 "free_requested 70 4096|free_completed 70 4096");
}

TEST_WITH(test_calls_that_fail_on_physical_memory, set_up, NULL)
{
    create(0x70, 4096);
    recorded_clear();
    let_go(0x70, 1);
    assert_story("free_requested 70 4096|free_completed 70 4096|alloc 70 4096");
    map(0xa000, 4096, 0x70);
    unmap(0xa000, 4096, 0); /* the handle holds it still */
    map(0xa000, 4096, 0x70);
    assert_story("alloc a000 4096|free_requested a000 4096|free_completed a000 4096|"
                 "alloc a000 4096");
    let_go(0x70, 1); /* only a reference */
    let_go(0x70, 0);
    assert_story("");
    unmap(0xa000, 4096, 1);
    assert_story("free_requested a000 4096|free_completed a000 4096|"
                 "free_requested 70 4096|free_completed 70 4096|"
                 "alloc 70 4096|alloc a000 4096");
    unmap(0xa000, 4096, 0);
    assert_story("free_requested a000 4096|free_completed a000 4096|"
                 "free_requested 70 4096|free_completed 70 4096");
}

TEST_WITH(test_multicast_objects_are_not_memory, set_up, NULL)
{
    map(0xa000, 4096, 0x99);
    unmap(0xa000, 8192, 0);
    let_go(0x99, 0);
    assert_story("alloc a000 4096|free_requested a000 4096|free_completed a000 4096");
}

TEST_WITH(test_memory_on_the_host, set_up, NULL)
{
    uint64_t handle = 0x70;
    struct mt_cu_allocation_prop prop = {.location = {3, 0}}; /* HOST_NUMA */
    struct mt_cu_create params = {&handle, 4096, &prop};
    call("cuMemCreate", &params, 0);
    assert_int_equal(recorded.events[0].heap, MT_RAW_HOST);
}

static void alloc_async(uint64_t addr, uint64_t stream)
{
    struct mt_cu_alloc_stream params = {&addr, 64, stream};
    call("cuMemAllocAsync", &params, 0);
}

TEST_WITH(test_pools, set_up, NULL)
{
    uint64_t standard = 0xd0, own = 0xe0, addr = 0x3000;
    struct mt_cu_pool_props props = {.location = {MT_CU_LOCATION_DEVICE, 3}};
    struct mt_cu_pool_get get = {&standard, 3};
    struct mt_cu_pool_create make = {&own, &props};
    struct mt_cu_pool_set set = {3, own}, back = {3, standard};
    struct mt_cu_alloc_pool from = {&addr, 64, own, 0x55};
    struct mt_cu_alloc_pool from_standard = {&addr, 32, standard, 0x55};
    call("cuDeviceGetDefaultMemPool", &get, 0);
    call("cuMemPoolCreate", &make, 0);
    alloc_async(0x1000, 0x44);
    call("cuDeviceSetMemPool", &set, 0);
    alloc_async(0x2000, 0x44);
    call("cuDeviceSetMemPool", &back, 0);
    call("cuMemAllocFromPoolAsync", &from, 0);
    call("cuMemAllocFromPoolAsync", &from_standard, 0);
    assert_int_equal(recorded.events[0].stream, 0x44);
    assert_int_equal(recorded.events[2].stream, 0x55);
    assert_story("alloc 1000 64|alloc 2000 64 of e0|alloc 3000 64 of e0|"
                 "free_requested 3000 64 of e0|free_completed 3000 64 of e0|alloc 3000 32");
    struct mt_cu_free_stream freed = {0x2000, 0x66};
    call("cuMemFreeAsync", &freed, 0);
    assert_int_equal(recorded.events[0].stream, 0x66);
    assert_story("free_requested 2000 64 of e0|free_completed 2000 64 of e0");
    struct mt_cu_handle gone = {own};
    call("cuDeviceSetMemPool", &set, 0);
    call("cuMemPoolDestroy", &gone, 0);
    alloc_async(0x4000, 0);
    assert_story("alloc 4000 64");
}

TEST_WITH(test_pool_on_the_host, set_up, NULL)
{
    uint64_t own = 0xe0, addr = 0x3000;
    struct mt_cu_pool_props props = {.location = {2, 0}};
    struct mt_cu_pool_create make = {&own, &props};
    struct mt_cu_alloc_pool from = {&addr, 64, own, 0};
    call("cuMemPoolCreate", &make, 0);
    call("cuMemAllocFromPoolAsync", &from, 0);
    assert_int_equal(recorded.events[0].heap, MT_RAW_HOST);
}

static uint32_t stream_7_is_captured(uint64_t stream, uint32_t *status)
{
    *status = stream == 7;
    return 0;
}

static uint32_t every_stream_is_captured(uint64_t stream, uint32_t *status)
{
    (void)stream;
    *status = 1;
    return 0;
}

static uint32_t refuses(uint64_t stream, uint32_t *status)
{
    *status = (uint32_t)stream;
    return 906; /* of the legacy stream, while another one is captured */
}

TEST_WITH(test_captured_allocation, set_up, NULL)
{
    uint64_t addr = 0x3000;
    struct mt_cu_alloc_stream params = {&addr, 64, 0};
    mt_cupti_capture_set_query(stream_7_is_captured, every_stream_is_captured);
    alloc_async(0x1000, 7);
    alloc_async(0x2000, 8);
    call("cuMemAllocAsync_ptsz", &params, 0);
    mt_cupti_capture_set_query(refuses, refuses);
    alloc_async(0x4000, 1);
    mt_cupti_capture_set_query(NULL, NULL);
    assert_int_equal(recorded.events[0].heap, MT_RAW_GRAPH);
    assert_int_equal(recorded.events[1].heap, MT_RAW_ASYNC);
    assert_int_equal(recorded.events[2].heap, MT_RAW_GRAPH);
    assert_int_equal(recorded.events[3].heap, MT_RAW_ASYNC);
}

/* A handle opened twice is one address, closed twice. */
TEST_WITH(test_ipc, set_up, NULL)
{
    uint64_t addr = 0x1000;
    struct mt_cu_import open = {&addr};
    struct mt_cu_handle close = {addr};
    call("cuIpcOpenMemHandle_v2", &open, 0);
    call("cuIpcOpenMemHandle_v2", &open, 0);
    call("cuIpcCloseMemHandle", &close, 0);
    assert_int_equal(recorded.events[0].heap, MT_RAW_IMPORTED);
    assert_story("alloc 1000 0");
    call("cuIpcCloseMemHandle", &close, 0);
    assert_story("free_requested 1000 0|free_completed 1000 0");
}

/* A context that nobody was seen to create. */
TEST_WITH(test_device_of_a_context, set_up, NULL)
{
    uint64_t addr = 0x5000;
    struct mt_cu_alloc params = {&addr, 500};
    resource(MT_CUPTI_CONTEXT_CREATED, &context_b, NULL);
    call_in(&context_b, "cuMemAlloc_v2", &params, 0);
    assert_int_equal(recorded.events[0].device, 6);
    assert_int_equal(recorded.events[1].device, 6);
}

TEST_WITH(test_devices, set_up, NULL)
{
    size_t bytes = (size_t)80 << 30;
    struct mt_cu_device_total total = {&bytes, 1};
    struct mt_cu_device_name name = {"NVIDIA H200", 64, 1};
    call("cuDeviceTotalMem_v2", &total, 0);
    assert_string_equal(recorded.devices, "");
    call("cuDeviceGetName", &name, 0);
    call("cuDeviceGetName", &name, 0);
    assert_string_equal(recorded.devices, "1 85899345920 NVIDIA H200\n");
}

TEST(test_array_bytes)
{
    static const struct {
        struct mt_cu_array3d_descriptor array;
        uint32_t levels;
        uint64_t bytes;
    } cases[] = {
        {{100, 0, 0, 0x20, 1, 0}, 1, 400},
        {{100, 50, 0, 0x10, 2, 0}, 1, 20000},
        {{16, 16, 16, 0x01, 4, 0}, 2, 16384 + 2048},
        {{16, 16, 16, 0x01, 4, MT_CU_ARRAY_LAYERED}, 2, 16384 + 4096},
        {{4, 4, 0, 0x91, 4, 0}, 3, 3 * 8}, /* BC1: no level is smaller than a block */
        {{10, 10, 0, 0xc2, 4, 0}, 1, 400},
        {{(size_t)1 << 60, (size_t)1 << 60, 0, 0x20, 4, 0}, 1, UINT64_MAX / 16 / 8},
        {{0, 5, 5, 0x20, 4, 0}, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(mt_cupti_array_bytes(&cases[i].array, cases[i].levels), cases[i].bytes);
    assert_int_equal(mt_cupti_array_bytes(NULL, 1), 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
