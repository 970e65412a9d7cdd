/* Which heaps represent a program: readers see no others. */
#include "cmocka_all.h"

#include <string.h>

#include "analyze.h"
#include "heaps.h"
#include "memory_source.h"
#include "optimal.h"
#include "replay.h"
#include "report.h"
#include "source.h"
#include "util.h"

#define ADDR UINT64_C(0x7f0000000000)

static struct mt_replay_summary summary;

static struct mt_event event(uint16_t heap, uint8_t kind, uint64_t addr, uint64_t size_bytes)
{
    struct mt_event event = {0};

    event.kind = kind;
    event.heap = heap;
    event.addr = addr;
    event.size_bytes = size_bytes;
    event.stack = event.name = MT_NO_ID;
    return event;
}

/* Heaps by number: 0 driver, then these. */
enum { DRIVER, PYTORCH, ASYNC, HOST, VIRTUAL, MAPPED, OTHER };

static void open_source(struct memory_source *source, struct mt_event *events, size_t count)
{
    memory_source_init(source, events, count, 3);
    assert_int_equal(memory_source_heap(source, "pytorch"), PYTORCH);
    assert_int_equal(memory_source_heap(source, "driver:async"), ASYNC);
    assert_int_equal(memory_source_heap(source, "driver:host"), HOST);
    assert_int_equal(memory_source_heap(source, "driver:virtual"), VIRTUAL);
    assert_int_equal(memory_source_heap(source, "driver:mapped"), MAPPED);
    assert_int_equal(memory_source_heap(source, "pool of our own"), OTHER);
}

TEST(names_have_levels)
{
    assert_true(mt_heap_class_of("driver").is_device_memory);
    assert_false(mt_heap_class_of("driver:host").is_device_memory);
    assert_int_equal(mt_heap_class_of("driver:later").level, MT_HEAP_DRIVER);
    assert_false(mt_heap_class_of("driver:later").is_device_memory);
    assert_int_equal(mt_heap_class_of("drivers").level, MT_HEAP_FRAMEWORK);
    assert_int_equal(mt_heap_class_of("user:rmm").level, MT_HEAP_USER);
    assert_int_equal(mt_heap_class_of("pytorch").level, MT_HEAP_FRAMEWORK);
    assert_int_equal(mt_heap_class_of("").level, MT_HEAP_FRAMEWORK);
    assert_int_equal(mt_heap_class_of(NULL).level, MT_HEAP_FRAMEWORK);
}

/* The driver's allocation for a segment comes first in a trace. A reader still gets PyTorch's. */
TEST(a_framework_is_seen_alone)
{
    struct mt_event events[] = {
        event(DRIVER, MT_EVENT_ALLOC, ADDR, 2 * MT_MIB),
        event(PYTORCH, MT_EVENT_SEGMENT_ALLOC, ADDR, 2 * MT_MIB),
        event(HOST, MT_EVENT_ALLOC, ADDR, MT_GIB),
        event(PYTORCH, MT_EVENT_ALLOC, ADDR, 512),
        event(DRIVER, MT_EVENT_ALLOC_FAILED, 0, MT_GIB),
        event(OTHER, MT_EVENT_ALLOC, ADDR, MT_GIB),
        event(PYTORCH, MT_EVENT_FREE_REQUESTED, ADDR, 512),
        event(DRIVER, MT_EVENT_FREE_REQUESTED, ADDR, 2 * MT_MIB),
        event(PYTORCH, MT_EVENT_FREE_COMPLETED, ADDR, 512),
    };
    struct mt_replay_options options = {.verify = true};
    struct memory_source source;
    struct mt_error error;

    open_source(&source, events, MT_ARRAY_LEN(events));
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    assert_false(summary.is_driver_level);
    assert_string_equal(summary.policy, "pytorch");
    assert_int_equal(summary.device_count, 1);
    assert_true(summary.devices[0].verify.exact);
    assert_int_equal(summary.devices[0].verify.allocations, 1);
    assert_int_equal(summary.devices[0].counters.reserved.peak, 2 * MT_MIB);
    assert_int_equal(summary.devices[0].counters.allocated.peak, 512);
    assert_int_equal(summary.devices[0].orphan_frees, 0);
    assert_true(source.source.view.has_more);
    memory_source_release(&source);
}

/* Three allocations at one address in three heaps, and events that are no memory. */
static struct mt_event driver_events[] = {
    {.kind = MT_EVENT_ALLOC, .heap = DRIVER, .addr = ADDR, .size_bytes = 1000},
    {.kind = MT_EVENT_ALLOC, .heap = ASYNC, .addr = ADDR, .size_bytes = 200},
    {.kind = MT_EVENT_ALLOC, .heap = VIRTUAL, .addr = ADDR, .size_bytes = 30},
    {.kind = MT_EVENT_ALLOC, .heap = MAPPED, .addr = ADDR, .size_bytes = 30},
    {.kind = MT_EVENT_ALLOC, .heap = HOST, .addr = ADDR, .size_bytes = 5000},
    {.kind = MT_EVENT_FREE_REQUESTED, .heap = ASYNC, .addr = ADDR, .size_bytes = 200},
    {.kind = MT_EVENT_FREE_COMPLETED, .heap = ASYNC, .addr = ADDR, .size_bytes = 200},
    {.kind = MT_EVENT_ALLOC, .heap = DRIVER, .addr = ADDR + 4096, .size_bytes = 4},
};

TEST(without_a_framework_all_of_the_driver_is_seen)
{
    struct mt_replay_options options = {.verify = true};
    struct memory_source source;
    struct mt_error error;
    const struct mt_counters *counters = &summary.devices[0].counters;

    open_source(&source, driver_events, MT_ARRAY_LEN(driver_events));
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    assert_true(summary.is_driver_level);
    assert_string_equal(summary.policy, "recorded");
    assert_int_equal(counters->allocated.peak, 1230);
    assert_int_equal(counters->allocated.now, 1034);
    assert_int_equal(counters->allocations, 4);
    assert_int_equal(summary.devices[0].orphan_frees, 0);
    memory_source_release(&source);
}

TEST(one_heap_is_seen_on_request)
{
    static const struct {
        const char *heap;
        uint64_t allocated, allocations;
    } wanted[] = {{"driver:async", 200, 1}, {"driver:host", 5000, 1}, {"driver", 1004, 2}};
    const struct mt_counters *counters = &summary.devices[0].counters;
    struct mt_replay_options options = {.policy = "recorded"};
    struct memory_source source;
    struct mt_error error;

    for (size_t i = 0; i < MT_ARRAY_LEN(wanted); i++) {
        open_source(&source, driver_events, MT_ARRAY_LEN(driver_events));
        assert_int_equal(mt_heap_view_choose_heap(&source.source, wanted[i].heap, &error), MT_OK);
        assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
        assert_int_equal(counters->allocated.peak, wanted[i].allocated);
        assert_int_equal(counters->allocations, wanted[i].allocations);
        assert_int_equal(summary.devices[0].orphan_frees, 0);
        memory_source_release(&source);
    }
    open_source(&source, driver_events, MT_ARRAY_LEN(driver_events));
    assert_int_equal(mt_heap_view_choose_heap(&source.source, "driver:asynch", &error),
                     MT_ERR_USAGE);
    assert_non_null(strstr(error.text, "pytorch, driver:async, driver:host"));
    memory_source_release(&source);
}

/* Addresses that another allocator would return for the same requests cannot be verified with the
 * driver's addresses. */
TEST(the_driver_does_not_verify_policies)
{
    struct mt_replay_options options = {.policy = "pytorch", .verify = true};
    struct memory_source source;
    struct mt_error error;

    open_source(&source, driver_events, MT_ARRAY_LEN(driver_events));
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    assert_string_equal(summary.policy, "pytorch");
    assert_false(summary.devices[0].verify.wanted);
    assert_false(summary.devices[0].recorded_addresses);
    assert_int_equal(summary.devices[0].counters.allocations, 4);
    assert_int_equal(summary.devices[0].counters.reserved.peak, 2 * MT_MIB);
    memory_source_release(&source);
}

TEST(analysis_and_plans_see_the_same)
{
    struct mt_analyze_options options = {0};
    static struct mt_buffers devices[MT_BUFFERS_DEVICES];
    struct memory_source source;
    struct mt_report *report;
    struct mt_error error;

    open_source(&source, driver_events, MT_ARRAY_LEN(driver_events));
    source.source.format = "memory";
    assert_int_equal(mt_analyze(&source.source, &options, &report, &error), MT_OK);
    assert_int_equal(report->devices[0].allocated_peak.bytes, 1230);
    assert_int_equal(report->devices[0].end.allocated, 1034);
    assert_int_equal(report->devices[0].instants[0].holding_count, 3);
    mt_report_release(report);
    assert_int_equal(mt_source_rewind(&source.source, &error), MT_OK);
    assert_int_equal(mt_buffers_from_source(&source.source, devices, &error), MT_OK);
    assert_int_equal(devices[0].count, 4);
    mt_buffers_release(&devices[0]);
    memory_source_release(&source);
}

/* Heaps of different devices may use the same addresses. */
TEST(spaces_of_addresses_are_not_mixed)
{
    static struct mt_event events[64];
    struct mt_replay_options options = {0};
    struct mt_analyze_options analysis = {0};
    struct memory_source source;
    struct mt_report *report;
    struct mt_error error;
    size_t count = 0;

    for (uint16_t device = 0; device < 8; device++) {
        static const uint16_t heaps[] = {DRIVER, ASYNC, VIRTUAL};

        for (size_t i = 0; i < MT_ARRAY_LEN(heaps); i++) {
            events[count] = event(heaps[i], MT_EVENT_ALLOC, ADDR, 100);
            events[count++].device = device;
        }
    }
    open_source(&source, events, count);
    source.source.format = "memory";
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    assert_int_equal(summary.device_count, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(summary.devices[i].counters.allocated.now, 300);
    assert_int_equal(mt_source_rewind(&source.source, &error), MT_OK);
    assert_int_equal(mt_analyze(&source.source, &analysis, &report, &error), MT_OK);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(report->devices[i].peak_sites[0].bytes, 300);
    mt_report_release(report);
    memory_source_release(&source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
