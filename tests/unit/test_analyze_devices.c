/* The length of analyze's text does not depend on the number of devices. */
#include "cmocka_all.h"

#include "device_choice.h"
#include "driver_run.h"

enum { DEVICES = 20 };

static const struct mt_style plain = {"", "", "", "", "", "", ""};

/* A device with a higher number holds more. */
static void begin_devices(struct run *run, uint16_t heap)
{
    begin(run);
    run->source.source.header.has_segments = heap == PYTORCH;
    for (uint16_t i = 0; i < DEVICES; i++) {
        const uint64_t addr = SEGMENT + (uint64_t)i * MT_GIB,
                       bytes = (i + UINT64_C(1)) * 20 * MT_MIB;

        if (heap == PYTORCH)
            add(run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, addr, bytes)->device = i;
        add(run, heap, MT_EVENT_ALLOC, addr, bytes)->device = i;
    }
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

static void expect_short(struct run *run)
{
    mt_buf_reset(&run->text);
    mt_analyze_text(&run->text, run->report, &plain, NULL, false);
    assert_in_range(count_of(run->text.data, "\n"), 1, MT_ANALYZE_LINES);
    expect_text(run, "(--all: why");
}

TEST(the_worst_of_many_has_a_report)
{
    struct run run;

    begin_devices(&run, PYTORCH);
    analyze(&run);
    assert_int_equal(count_of(run.text.data, "\n  Allocated peak"), DEVICES);
    expect_short(&run);
    assert_int_equal(count_of(run.text.data, "Device "), 1);
    expect_text(&run, "Device 19 has the largest reserved peak of 20 devices");
    expect_text(&run, "15 more: --all");
    end(&run);
}

TEST(deaths_on_other_devices_are_named)
{
    struct run run;

    begin_devices(&run, PYTORCH);
    add(&run, PYTORCH, MT_EVENT_OOM, 0, 900 * MT_MIB)->device = 3;
    add(&run, PYTORCH, MT_EVENT_OOM, 0, 900 * MT_MIB)->device = 7;
    analyze(&run);
    expect_short(&run);
    expect_text(&run, "Device 7 ran out of memory, of 20 devices");
    expect_text(&run, "Others device 3: peak 80.0 MiB, OUT OF MEMORY;");
    end(&run);
}

TEST(devices_without_a_framework_are_counted)
{
    struct run run;

    begin_devices(&run, DRIVER);
    add(&run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, SEGMENT, 20 * MT_MIB);
    add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 2 * MT_MIB);
    analyze(&run);
    assert_int_equal(count_of(run.text.data, ": no memory of the framework"), DEVICES - 1);
    expect_short(&run);
    end(&run);
}

/* Others would keep models that no picture shows. */
TEST(only_shown_devices_have_models)
{
    const struct mt_analyze_options options = {.models = MT_MODEL_TIMELINE, .only_shown = true};
    struct mt_error error;
    struct run run;

    begin_devices(&run, PYTORCH);
    assert_int_equal(mt_analyze(&run.source.source, &options, &run.report, &error), MT_OK);
    assert_int_equal(run.report->device_count, DEVICES);
    for (uint32_t i = 0; i < DEVICES; i++)
        assert_int_equal(run.report->devices[i].timeline != NULL, i >= DEVICES - MT_SHOWN_DEVICES);
    end(&run);
}

/* 12 MiB are unused while the program has 8 MiB. After the last request it frees these. */
TEST(the_teardown_is_not_the_worst_moment)
{
    for (int oom = 0; oom < 2; oom++) {
        struct run run;

        begin(&run);
        run.source.source.header.has_segments = true;
        add(&run, PYTORCH, MT_EVENT_SEGMENT_ALLOC, SEGMENT, 20 * MT_MIB);
        add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT, 8 * MT_MIB);
        add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + 8 * MT_MIB, 4 * MT_MIB);
        add_free(&run, PYTORCH, SEGMENT + 8 * MT_MIB, 4 * MT_MIB);
        if (oom)
            add(&run, PYTORCH, MT_EVENT_OOM, 0, 900 * MT_MIB);
        else
            add(&run, PYTORCH, MT_EVENT_ALLOC, SEGMENT + 8 * MT_MIB, 2 * MT_MIB);
        add_free(&run, PYTORCH, SEGMENT, 8 * MT_MIB);
        analyze(&run);
        assert_int_equal(run.report->devices[0].end.allocated, oom ? 0 : 2 * MT_MIB);
        assert_int_equal(run.report->devices[0].worst_unused_bytes, 12 * MT_MIB);
        assert_int_equal(run.report->devices[0].worst_unused_t_ns, 2000);
        end(&run);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
