/* Runs random and hostile traces through the whole analysis: nothing crashes, and the sums that the
 * report guarantees are right. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "analyze_output.h"
#include "fake_trace.h"
#include "report.h"
#include "timeline_model.h"

static void check_phase(const struct mt_report *report, uint32_t index)
{
    const struct mt_phase *phase = &report->phases[index];

    assert_true(phase->parent < (int32_t)index);
    assert_true(phase->begin_event <= phase->end_event);
    assert_true(phase->begin_t_ns <= phase->end_t_ns);
    assert_non_null(phase->path);
}

static void check_use(const struct mt_phase_use *use, uint64_t device_peak)
{
    assert_true(use->peak.allocated >= use->exit.allocated);
    assert_true(use->peak.allocated >= use->enter.allocated);
    assert_true(use->peak.reserved >= use->exit.reserved);
    assert_true(use->peak.allocated <= device_peak);
}

static void check_sums(const struct mt_device_report *device)
{
    uint64_t roles = 0;

    for (int i = 0; i < MT_ROLE_COUNT; i++)
        roles += device->peak_role_bytes[i];
    assert_int_equal(roles, device->allocated_peak.bytes);
    for (uint32_t i = 0; i < device->instant_count; i++) {
        uint64_t bytes = 0;

        for (uint32_t j = 0; j < device->instants[i].holding_count; j++)
            bytes += device->instants[i].holdings[j].bytes;
        assert_int_equal(bytes, device->instants[i].bytes.allocated);
    }
    for (uint32_t i = 0; i < device->explanation_count; i++) {
        const struct mt_explanation *why = &device->explanations[i];
        int64_t bytes = 0;

        for (uint32_t j = 0; j < why->contribution_count; j++)
            bytes += why->contributions[j].bytes;
        assert_int_equal(bytes, why->to_bytes - why->from_bytes);
    }
}

/* The driver's level as the replay saw it, and as the ledger did. */
static void check_driver(const struct mt_report *report)
{
    assert_int_equal(report->driver_count, report->device_count);
    for (uint32_t d = 0; d < report->device_count; d++) {
        const struct mt_driver_report *driver = &report->drivers[d];
        uint64_t live = 0, allocations = 0;

        assert_int_equal(driver->device, report->devices[d].device);
        assert_int_equal(driver->peak.bytes, report->devices[d].active_peak.bytes);
        for (uint32_t i = 0; i < driver->heap_count; i++) {
            assert_true(driver->heaps[i].live_bytes <= driver->heaps[i].peak_bytes);
            assert_true(driver->heaps[i].peak_bytes <= driver->peak.bytes);
            live += driver->heaps[i].live_bytes;
            allocations += driver->heaps[i].allocations;
        }
        assert_int_equal(live, report->devices[d].end.active);
        assert_int_equal(allocations, report->devices[d].allocations);
    }
}

static void run(uint64_t round, bool wild, bool middle, bool heaps, const char *policy)
{
    struct mt_analyze_options options = {.path = "random",
                                         .models = MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART |
                                                   MT_MODEL_MODULES,
                                         .bins = 64};
    struct mt_report *report;
    struct mt_error error;
    struct fake fake;

    seed = 88172645463325252u + round * 7919 + wild * 3 + middle;
    make(&fake, wild, middle, heaps);
    options.replay.policy = policy;
    enum mt_status status = mt_analyze(&fake.source, &options, &report, &error);
    if (!wild && status)
        fail_msg("round %d: %s", (int)round, error.text);
    if (!status) {
        for (uint32_t i = 0; i < report->phase_count; i++)
            check_phase(report, i);
        for (uint32_t d = 0; d < report->device_count; d++) {
            for (uint32_t i = 0; i < report->phase_count && !wild; i++)
                check_use(&report->devices[d].phase_uses[i],
                          report->devices[d].allocated_peak.bytes);
            check_sums(&report->devices[d]);
        }
        if (!wild && heaps)
            check_driver(report);
    }
    mt_report_release(report);
    unmake(&fake);
}

TEST(tame_traces)
{
    for (uint64_t round = 0; round < 300; round++)
        run(round, false, false, false, round % 2 ? "recorded" : "pytorch");
}

TEST(traces_from_the_middle)
{
    for (uint64_t round = 0; round < 150; round++)
        run(round, false, true, false, "recorded");
}

TEST(wild_traces)
{
    for (uint64_t round = 0; round < 300; round++)
        run(round, true, round % 3 == 0, round % 5 > 2, round % 2 ? NULL : "recorded");
}

TEST(traces_of_the_driver)
{
    for (uint64_t round = 0; round < 200; round++)
        run(round, false, false, true, NULL);
}

/* More devices than a replay has lanes: the tables of the others are unchanged. */
TEST(traces_of_many_devices)
{
    struct mt_analyze_options options = {.path = "random"};
    struct mt_report *report;
    struct mt_error error;
    struct fake fake;

    for (uint64_t round = 0; round < 20; round++) {
        seed = 88172645463325252u + round * 104729;
        make(&fake, false, false, false);
        for (size_t i = 0; i < fake.count; i++)
            fake.events[i].device = (uint16_t)(fake.events[i].addr / 512 % 70);
        options.replay.policy = round % 2 ? "recorded" : "pytorch";
        if (mt_analyze(&fake.source, &options, &report, &error) != MT_OK)
            fail_msg("round %d: %s", (int)round, error.text);
        assert_in_range(report->device_count, 0, 64);
        assert_in_range(report->devices_left_out, 0, 6);
        assert_true(fake.count < 500 || report->devices_left_out);
        for (uint32_t d = 0; d < report->device_count; d++)
            check_sums(&report->devices[d]);
        mt_report_release(report);
        unmake(&fake);
    }
}

/* The table of devices has the note, and so has the text of a single device. */
TEST(skipped_devices_are_reported)
{
    static const char words[] = "  devices not analyzed because their numbers are above 63: 1\n";
    const struct mt_analyze_options options = {.path = "random"};
    struct mt_report *report;
    struct mt_error error;
    struct fake fake;

    for (uint16_t kept = 1; kept <= 2; kept++) {
        struct mt_buf text = {0};

        seed = 88172645463325252u;
        make(&fake, false, false, false);
        for (size_t i = 0; i < fake.count; i++) {
            uint16_t device = (uint16_t)(fake.events[i].addr / 512 % (kept + 1u));

            fake.events[i].device = device == kept ? 70 : device;
        }
        assert_int_equal(mt_analyze(&fake.source, &options, &report, &error), MT_OK);
        assert_int_equal(report->device_count, kept);
        mt_analyze_text(&text, report, mt_plain_style(), NULL, true);
        const char *first = strstr(text.data, words);
        assert_non_null(first);
        assert_null(strstr(first + 1, words));
        mt_buf_release(&text);
        mt_report_release(report);
        unmake(&fake);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
