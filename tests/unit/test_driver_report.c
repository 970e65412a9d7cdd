/* What a report shows about memory outside the framework, and how it is printed. */
#include "cmocka_all.h"

#include "driver_run.h"

TEST(memory_outside_of_the_framework)
{
    struct run run;

    begin(&run);
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
    const struct mt_driver_report *driver = &run.report->drivers[0];
    assert_int_equal(driver->then.bytes, 27 * MT_MIB);
    assert_int_equal(driver->then.framework_bytes, 20 * MT_MIB);
    assert_int_equal(driver->outside_site_count, 1);
    assert_int_equal(driver->outside_sites[0].bytes, 7 * MT_MIB);
    assert_int_equal(driver->outside_sites[0].blocks, 2);
    assert_string_equal(driver->outside_sites[0].site, "no stack recorded");
    assert_int_equal(driver->peak.bytes, 127 * MT_MIB);
    assert_int_equal(driver->residual.samples, 0);
    expect_text(&run, "7.00 MiB (7,340,032 B) outside them:");
    expect_text(&run, "127 MiB (133,169,152 B), at 5.00 µs: 20.0 MiB for the framework");
    expect_text(&run, "The memory used by the process was not sampled");
    end(&run);
}

/* At the instant of the driver's peak, the segment was not reported yet. */
TEST(a_segment_belongs_to_the_framework_when_allocated)
{
    struct run run;

    begin(&run);
    one_segment(&run);
    analyze(&run);
    assert_int_equal(run.report->drivers[0].peak.event, 0);
    assert_int_equal(run.report->drivers[0].peak.framework_bytes, 20 * MT_MIB);
    assert_int_equal(run.report->drivers[0].outside_site_count, 0);
    expect_text(&run, "0 B (0 B) outside them");
    end(&run);
}

/* Without segment events, an allocation of the driver that contains a block belongs to the
 * framework. */
TEST(blocks_show_segments_that_were_not_recorded)
{
    struct run run;

    begin(&run);
    add(&run, DRIVER, MT_EVENT_ALLOC, SEGMENT, 20 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, MT_MIB);
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + MT_MIB, 512);
    analyze(&run);
    assert_int_equal(run.report->drivers[0].then.bytes, 21 * MT_MIB);
    assert_int_equal(run.report->drivers[0].then.framework_bytes, 20 * MT_MIB);
    end(&run);
}

TEST(memory_that_only_nvml_counts)
{
    struct run run;

    begin(&run);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 0); /* NVML does not count it yet */
    one_segment(&run);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 520 * MT_MIB);
    add(&run, ASYNC, MT_EVENT_ALLOC, OTHER, 80 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 610 * MT_MIB);
    add_free(&run, ASYNC, OTHER, 80 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 15 * MT_MIB);
    analyze(&run);
    const struct mt_residual *residual = &run.report->drivers[0].residual;
    assert_int_equal(residual->tracked_from, MT_TRACKED_DRIVER);
    assert_int_equal(residual->samples, 3);
    assert_int_equal(residual->unknown_samples, 1);
    assert_int_equal(residual->used_bytes, 610 * MT_MIB);
    assert_int_equal(residual->tracked_bytes, 100 * MT_MIB);
    assert_int_equal(residual->least_bytes, -(int64_t)(5 * MT_MIB));
    assert_int_equal(residual->most_bytes, 510 * MT_MIB);
    expect_text(&run, "CUDA itself (context, modules, ...): 510 MiB = 610 MiB used by the process "
                      "(NVML) - 100 MiB tracked");
    end(&run);
}

/* Without the driver's calls, only the framework's segments are known. */
TEST(samples_without_the_drivers_calls)
{
    struct run run;

    begin(&run);
    add(&run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, SEGMENT, 20 * MT_MIB);
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 2 * MT_MIB);
    add(&run, DRIVER, MT_EVENT_MEMORY_SAMPLE, 0, 700 * MT_MIB);
    analyze(&run);
    const struct mt_residual *residual = &run.report->drivers[0].residual;
    assert_false(run.report->drivers[0].has_calls);
    assert_int_equal(residual->tracked_from, MT_TRACKED_SEGMENTS);
    assert_int_equal(residual->tracked_bytes, 20 * MT_MIB);
    expect_text(&run, "Driver calls were not recorded");
    expect_text(&run, "680 MiB = 700 MiB used by the process (NVML) - 20.0 MiB tracked (segments");
    end(&run);
}

TEST(refusals_and_other_devices)
{
    struct run run;

    begin(&run);
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
    expect_text(&run, "Device 1: no memory of the framework");
    end(&run);
}

/* The failure is fatal: it concerns device memory, and only frees follow. Host memory does not
 * count. */
TEST(a_failure_is_fatal_if_no_allocation_follows)
{
    for (int given = 0; given < 2; given++) {
        struct run run;

        begin(&run);
        add(&run, DRIVER, MT_EVENT_ALLOC_FAILED, 0, 5 * MT_GIB);
        add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, MT_MIB);
        add(&run, HOST, MT_EVENT_ALLOC_FAILED, 0, 6 * MT_GIB);
        add(&run, ASYNC, MT_EVENT_ALLOC_FAILED, 0, 3 * MT_GIB);
        add(&run, DRIVER, MT_EVENT_ALLOC_FAILED, 0, 2 * MT_GIB);
        add(&run, HOST, MT_EVENT_ALLOC, OTHER, MT_MIB);
        if (given)
            add(&run, ASYNC, MT_EVENT_ALLOC, OTHER + MT_GIB, MT_MIB);
        add_free(&run, DRIVER, OTHER, MT_MIB);
        analyze(&run);
        const struct mt_driver_report *driver = &run.report->drivers[0];
        assert_int_equal(driver->failures_in_all, 4);
        assert_true(given ? !driver->fatal : driver->fatal->request_bytes == 3 * MT_GIB);
        end(&run);
    }
}

/* A range was granted and a second one refused; `later` follows. */
static const struct mt_driver_report *run_out_of_space(struct run *run, uint64_t refused_bytes,
                                                       const struct mt_event *later)
{
    begin(run);
    add(run, RANGES, MT_EVENT_ALLOC, OTHER, 90 * MT_GIB);
    one_segment(run);
    add(run, RANGES, MT_EVENT_ALLOC_FAILED, 0, refused_bytes);
    if (later)
        add(run, later->heap, later->kind, later->addr, later->size_bytes);
    analyze(run);
    return &run->report->drivers[0];
}

TEST(address_space_can_run_out)
{
    const struct mt_event oom = {.heap = PYTORCH, .kind = MT_EVENT_OOM, .size_bytes = 30 * MT_MIB};
    struct run run;
    const struct mt_driver_report *driver = run_out_of_space(&run, 90 * MT_GIB, NULL);

    assert_int_equal(driver->no_space->held_bytes, 90 * MT_GIB);
    expect_text(&run, "The driver REFUSED 90.0 GiB of address ranges without memory, at");
    expect_text(&run, "The address space ran out, not the memory: 90.0 GiB of it was reserved");
    assert_null(run.report->devices[0].no_finding);
    end(&run);
    run_out_of_space(&run, 90 * MT_GIB, &oom);
    assert_int_equal(run.report->devices[0].oom_answer->cause, MT_OOM_ADDRESS_SPACE);
    assert_int_equal(run.report->devices[0].oom_answer->way_count, 0);
    expect_text(&run, "30.0 MiB was requested when the address space ran out, not the memory");
    assert_null(strstr(run.text.data, "a device with more memory"));
    end(&run);
}

/* The request may be invalid, or the program went on. */
TEST(other_refusals_prove_nothing_about_address_space)
{
    const struct mt_event served[] = {
        {.heap = PYTORCH, .kind = MT_EVENT_ALLOC, .addr = SEGMENT + MT_GIB, .size_bytes = MT_MIB},
        {.heap = RANGES, .kind = MT_EVENT_ALLOC, .addr = SEGMENT, .size_bytes = 90 * MT_GIB}};
    struct run run;

    assert_null(run_out_of_space(&run, 91 * MT_GIB, NULL)->no_space);
    expect_text(&run, "the driver refused a request, and");
    end(&run);
    assert_null(run_out_of_space(&run, 90 * MT_GIB - 1, NULL)->no_space);
    end(&run);
    for (size_t i = 0; i < MT_ARRAY_LEN(served); i++) {
        assert_null(run_out_of_space(&run, 90 * MT_GIB, &served[i])->no_space);
        end(&run);
    }
}

/* Mapped memory counts once. It belongs to the framework if its address range does. */
TEST(mapped_memory_counts_once)
{
    struct run run;

    begin(&run);
    add(&run, VIRTUAL, MT_EVENT_ALLOC, 1, 2 * MT_MIB);
    add(&run, VIRTUAL, MT_EVENT_ALLOC, 2, 2 * MT_MIB);
    add(&run, MAPPED, MT_EVENT_ALLOC, OTHER, 2 * MT_MIB)->aux_bytes = 2;
    add(&run, MAPPED, MT_EVENT_ALLOC, SEGMENT, 2 * MT_MIB)->aux_bytes = 1;
    add(&run, PYTORCH, MT_EVENT_SEGMENT_MAP, SEGMENT, 2 * MT_MIB)->flags = MT_EVENT_EXPANDABLE;
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 512);
    analyze(&run);
    const struct mt_driver_report *driver = &run.report->drivers[0];
    assert_int_equal(driver->then.bytes, 4 * MT_MIB);
    assert_int_equal(driver->then.framework_bytes, 2 * MT_MIB);
    end(&run);
}

TEST(programs_without_a_framework)
{
    struct run run;

    begin(&run);
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
    end(&run);
}

/* "No stacks were recorded" would contradict the library that is named for the driver's
 * allocations. */
TEST(native_stacks_alone)
{
    struct run run;
    uint32_t frame;

    begin(&run);
    struct mt_symbols *symbols = &run.source.source.symbols;
    assert_int_equal(mt_symbols_frame(symbols, add_text(&run, "ncclCommInitRank"),
                                      add_text(&run, "libnccl.so.2"), 0, &frame),
                     MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, frame, &run.stack), MT_OK);
    add(&run, DRIVER, MT_EVENT_ALLOC, OTHER, 3 * MT_MIB);
    run.stack = MT_NO_ID;
    one_segment(&run);
    analyze(&run);
    assert_false(run.report->has_stacks);
    assert_null(strstr(run.text.data, "no stacks were recorded"));
    expect_text(&run, "stacks were recorded only for driver allocations");
    end(&run);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
