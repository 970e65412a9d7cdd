/* Explains why there is no finding: what was checked, and what could not be. */
#include "cmocka_all.h"

#include <string.h>

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
    report = (struct mt_report){
        .devices = &device, .device_count = 1, .phases = phases, .has_segments = true};
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    mt_arena_release(&arena);
    return 0;
}

static void expect(const char *text)
{
    assert_string_equal(mt_nothing_found(&arena, &report, &device), text);
}

#define SEEN "at most 20.0 MiB of the 120 MiB reserved was unused, no request was refused, and "

static void checked_growth_is_reported(void **unused)
{
    (void)unused;
    device.step_count = STEPS;
    device.growth = (struct mt_growth){.judged = true, .steps = 13};
    expect(SEEN "no growth from step to step was found");
    device.growth.bytes_per_step = 512;
    expect(SEEN "each step leaves 512 B behind, too little to matter");
}

static void unchecked_growth_has_a_reason(void **unused)
{
    (void)unused;
    expect(SEEN "no steps were found, so growth is not judged");
    device.step_count = MT_GROWTH_MIN_STEPS - 1;
    expect(SEEN "there are too few steps to judge growth");
    device.step_count = STEPS;
    expect(SEEN "too many blocks outlive their step to judge growth");
}

static void without_a_history_requests_are_not_mentioned(void **unused)
{
    (void)unused;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(checked_growth_is_reported),
        TEST(unchecked_growth_has_a_reason),
        TEST(without_a_history_requests_are_not_mentioned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
