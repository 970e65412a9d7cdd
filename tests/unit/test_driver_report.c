/* What a report says of memory beside the framework's, and how it is told. */
#include "cmocka_all.h"

#include <string.h>

#include "analyze.h"
#include "analyze_output.h"
#include "memory_source.h"
#include "util.h"

#define SEGMENT UINT64_C(0x7f0000000000)
#define OTHER   UINT64_C(0x7e0000000000)

enum { DRIVER, PYTORCH, ASYNC, HOST, VIRTUAL, MAPPED };

struct run {
    struct memory_source source;
    struct mt_event events[64];
    size_t count;
    struct mt_report *report;
    struct mt_buf text;
};

static struct mt_event *add(struct run *run, uint16_t heap, uint8_t kind, uint64_t addr,
                            uint64_t bytes)
{
    struct mt_event *event = &run->events[run->count++];

    *event = (struct mt_event){.kind = kind,
                               .heap = heap,
                               .addr = addr,
                               .size_bytes = bytes,
                               .stack = MT_NO_ID,
                               .name = MT_NO_ID};
    return event;
}

static void add_free(struct run *run, uint16_t heap, uint64_t addr, uint64_t bytes)
{
    add(run, heap, MT_EVENT_FREE_REQUESTED, addr, bytes);
    add(run, heap, MT_EVENT_FREE_COMPLETED, addr, bytes);
}

static void analyze(struct run *run)
{
    static const char *const names[] = {"pytorch", "driver:async", "driver:host", "driver:virtual",
                                        "driver:mapped"};
    const struct mt_style plain = {"", "", "", "", "", "", ""};
    struct mt_analyze_options options = {.path = "run"};
    struct mt_error error;

    memory_source_init(&run->source, run->events, run->count, 5);
    run->source.source.format = "memory";
    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++)
        assert_int_equal(memory_source_heap(&run->source, names[i]), i + 1);
    if (mt_analyze(&run->source.source, &options, &run->report, &error) != MT_OK)
        fail_msg("%s", error.text);
    mt_analyze_text(&run->text, run->report, &plain, NULL, true);
    assert_non_null(run->text.data);
}

static void release(struct run *run)
{
    mt_buf_release(&run->text);
    mt_report_release(run->report);
    memory_source_release(&run->source);
}

static void expect_text(const struct run *run, const char *part)
{
    struct mt_buf flat = {0};

    /* lines are wrapped: compare words */
    for (const char *at = run->text.data; *at; at++)
        if (*at != '\n' && (*at != ' ' || !flat.length || flat.data[flat.length - 1] != ' '))
            mt_buf_add_char(&flat, *at);
    if (!strstr(flat.data, part))
        fail_msg("'%s' is not in\n%s", part, run->text.data);
    mt_buf_release(&flat);
}

static void one_segment(struct run *run)
{
    add(run, DRIVER, MT_EVENT_ALLOC, SEGMENT, 20 * MT_MIB);
    add(run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, SEGMENT, 20 * MT_MIB);
    add(run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 2 * MT_MIB);
}

static void memory_outside_of_the_framework(void **state)
{
    struct run run = {.count = 0};
    const struct mt_driver_report *driver;

    (void)state;
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, 3 * MT_MIB);
    one_segment(&run);
    add(&run, ASYNC, MT_EVENT_ALLOC, OTHER + MT_GIB, 4 * MT_MIB);
    add(&run, HOST, MT_EVENT_ALLOC, OTHER, MT_GIB);
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + 2 * MT_MIB, 2 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER + 2 * MT_GIB, 100 * MT_MIB); /* after the peak */
    add_free(&run, PYTORCH, SEGMENT, 2 * MT_MIB);
    analyze(&run);
    assert_false(run.report->is_driver_level);
    assert_int_equal(run.report->driver_count, 1);
    driver = &run.report->drivers[0];
    assert_int_equal(driver->then.bytes, 27 * MT_MIB);
    assert_int_equal(driver->then.framework_bytes, 20 * MT_MIB);
    assert_int_equal(driver->outside_site_count, 1);
    assert_int_equal(driver->outside_sites[0].bytes, 7 * MT_MIB);
    assert_int_equal(driver->outside_sites[0].blocks, 2);
    assert_string_equal(driver->outside_sites[0].site, "no stack recorded");
    assert_int_equal(driver->peak.bytes, 127 * MT_MIB);
    assert_int_equal(driver->residual.samples, 0);
    expect_text(&run, "outside of them 7.00 MiB (7,340,032 B):");
    expect_text(&run, "127 MiB (133,169,152 B), at 5.00 µs: 20.0 MiB for the framework");
    expect_text(&run, "Used by the process: not sampled");
    release(&run);
}

/* At the instant of the driver's peak the segment was not told of yet. */
static void a_segment_is_the_frameworks_from_its_birth(void **state)
{
    struct run run = {.count = 0};

    (void)state;
    one_segment(&run);
    analyze(&run);
    assert_int_equal(run.report->drivers[0].peak.event, 0);
    assert_int_equal(run.report->drivers[0].peak.framework_bytes, 20 * MT_MIB);
    assert_int_equal(run.report->drivers[0].outside_site_count, 0);
    expect_text(&run, "outside of them 0 B (0 B)");
    release(&run);
}

/* Only blocks were recorded: who has one inside is the framework's. */
static void blocks_stand_for_segments_that_were_not_recorded(void **state)
{
    struct run run = {.count = 0};

    (void)state;
    add(&run, DRIVER, MT_EVENT_ALLOC, SEGMENT, 20 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, MT_MIB);
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + MT_MIB, 512);
    analyze(&run);
    assert_int_equal(run.report->drivers[0].then.bytes, 21 * MT_MIB);
    assert_int_equal(run.report->drivers[0].then.framework_bytes, 20 * MT_MIB);
    release(&run);
}

static void what_nvml_saw_beyond(void **state)
{
    struct run run = {.count = 0};
    const struct mt_residual *residual;

    (void)state;
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 0); /* NVML does not know yet */
    one_segment(&run);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 520 * MT_MIB);
    add(&run, ASYNC, MT_EVENT_ALLOC, OTHER, 80 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 610 * MT_MIB);
    add_free(&run, ASYNC, OTHER, 80 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 15 * MT_MIB);
    analyze(&run);
    residual = &run.report->drivers[0].residual;
    assert_int_equal(residual->tracked_from, MT_TRACKED_DRIVER);
    assert_int_equal(residual->samples, 3);
    assert_int_equal(residual->unknown_samples, 1);
    assert_int_equal(residual->used_bytes, 610 * MT_MIB);
    assert_int_equal(residual->tracked_bytes, 100 * MT_MIB);
    assert_int_equal(residual->least_bytes, -(int64_t)(5 * MT_MIB));
    assert_int_equal(residual->most_bytes, 510 * MT_MIB);
    expect_text(&run, "CUDA itself (context, modules, ...): 510 MiB = 610 MiB used by the process "
                      "(NVML) - 100 MiB tracked");
    release(&run);
}

/* Without the driver's calls the framework's segments are all that is known. */
static void samples_without_the_drivers_calls(void **state)
{
    struct run run = {.count = 0};
    const struct mt_residual *residual;

    (void)state;
    add(&run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, SEGMENT, 20 * MT_MIB);
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 2 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 700 * MT_MIB);
    analyze(&run);
    residual = &run.report->drivers[0].residual;
    assert_false(run.report->drivers[0].has_calls);
    assert_int_equal(residual->tracked_from, MT_TRACKED_SEGMENTS);
    assert_int_equal(residual->tracked_bytes, 20 * MT_MIB);
    expect_text(&run, "Calls of the driver were not recorded");
    expect_text(&run, "680 MiB = 700 MiB used by the process (NVML) - 20.0 MiB tracked (segments");
    release(&run);
}

static void refusals_and_other_devices(void **state)
{
    struct run run = {.count = 0};

    (void)state;
    one_segment(&run);
    add(&run, ASYNC, MT_EVENT_ALLOC_FAILED, 0, 3 * MT_GIB);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, MT_MIB)->device = 1;
    analyze(&run);
    assert_int_equal(run.report->device_count, 1);
    assert_int_equal(run.report->driver_count, 2);
    assert_int_equal(run.report->drivers[0].failures_in_all, 1);
    assert_int_equal(run.report->drivers[0].failures[0].request_bytes, 3 * MT_GIB);
    assert_int_equal(run.report->drivers[1].device, 1);
    assert_int_equal(run.report->drivers[1].peak.bytes, MT_MIB);
    expect_text(&run, "The driver refused 1 request:");
    expect_text(&run, "Device 1: nothing of the framework");
    release(&run);
}

/* Memory that is mapped counts once, and is the framework's where its range is. */
static void mapped_memory_counts_once(void **state)
{
    struct run run = {.count = 0};
    const struct mt_driver_report *driver;

    (void)state;
    add(&run, VIRTUAL, MT_EVENT_ALLOC, 1, 2 * MT_MIB);
    add(&run, VIRTUAL, MT_EVENT_ALLOC, 2, 2 * MT_MIB);
    add(&run, MAPPED, MT_EVENT_ALLOC, OTHER, 2 * MT_MIB)->aux_bytes = 2;
    add(&run, MAPPED, MT_EVENT_ALLOC, SEGMENT, 2 * MT_MIB)->aux_bytes = 1;
    add(&run, PYTORCH, MT_EVENT_SEGMENT_MAP, SEGMENT, 2 * MT_MIB)->flags = MT_EVENT_EXPANDABLE;
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 512);
    analyze(&run);
    driver = &run.report->drivers[0];
    assert_int_equal(driver->then.bytes, 4 * MT_MIB);
    assert_int_equal(driver->then.framework_bytes, 2 * MT_MIB);
    release(&run);
}

static void programs_without_a_framework(void **state)
{
    struct run run = {.count = 0};

    (void)state;
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, 5 * MT_MIB);
    add(&run, ASYNC, MT_EVENT_ALLOC, OTHER, 6 * MT_MIB);
    add(&run, HOST, MT_EVENT_ALLOC, OTHER, MT_GIB);
    add_free(&run, DRIVER, OTHER, 5 * MT_MIB);
    analyze(&run);
    assert_true(run.report->is_driver_level);
    assert_int_equal(run.report->devices[0].allocated_peak.bytes, 11 * MT_MIB);
    assert_int_equal(run.report->drivers[0].peak.bytes, 11 * MT_MIB);
    assert_false(run.report->drivers[0].has_then);
    expect_text(&run, "Allocated peak 11.0 MiB");
    expect_text(&run, "no allocator above the driver was seen");
    expect_text(&run, "pinned host memory (not counted)");
    assert_null(strstr(run.text.data, "Reserved"));
    release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_outside_of_the_framework),
        cmocka_unit_test(a_segment_is_the_frameworks_from_its_birth),
        cmocka_unit_test(blocks_stand_for_segments_that_were_not_recorded),
        cmocka_unit_test(what_nvml_saw_beyond),
        cmocka_unit_test(samples_without_the_drivers_calls),
        cmocka_unit_test(refusals_and_other_devices),
        cmocka_unit_test(mapped_memory_counts_once),
        cmocka_unit_test(programs_without_a_framework),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
