/* What a sweep stores of a report with several devices. */
#include "cmocka_all.h"

#include "sweep.h"
#include "symbols.h"
#include "util.h"

static struct mt_need needs[2];
static struct mt_oom oom;
static struct mt_device_report devices[2];
static struct mt_symbols symbols;
static struct mt_report report;

static void fill(void)
{
    needs[0] = (struct mt_need){.bytes = 2 * MT_GIB};
    needs[1] = (struct mt_need){.bytes = 3 * MT_GIB};
    oom = (struct mt_oom){.request_bytes = 7 * MT_GIB,
                          .phase = MT_NO_PHASE,
                          .step = MT_NO_STEP,
                          .stack = MT_NO_ID,
                          .fatal = true};
    devices[0] = (struct mt_device_report){.device = 4, .need = &needs[0]};
    devices[1] = (struct mt_device_report){.device = 6, .need = &needs[1]};
    devices[0].reserved_peak.bytes = 5 * MT_GIB;
    devices[1].reserved_peak.bytes = 4 * MT_GIB;
    report = (struct mt_report){.devices = devices, .device_count = 2, .symbols = &symbols};
}

TEST(the_device_that_needs_most)
{
    struct mt_sweep_result result = {.outcome = MT_SWEEP_FINISHED};

    fill();
    mt_sweep_measure(&result, &report);
    assert_int_equal(result.device, 6);
    assert_true(result.has_need);
    assert_int_equal(result.card.allocator_bytes, 3 * MT_GIB);
    assert_int_equal(result.reserved_peak_bytes, 4 * MT_GIB);
    devices[1].need = NULL; /* unknown: the reserved peak decides */
    result = (struct mt_sweep_result){.outcome = MT_SWEEP_FINISHED};
    mt_sweep_measure(&result, &report);
    assert_int_equal(result.device, 4);
}

/* The failure of a device that ran out of memory is one of memory. Its need is unknown. */
TEST(the_device_that_ran_out_of_memory)
{
    struct mt_sweep_result result = {.outcome = MT_SWEEP_FAILED};

    fill();
    mt_sweep_measure(&result, &report);
    assert_int_equal(result.outcome, MT_SWEEP_FAILED);
    assert_int_equal(result.device, 4);
    devices[1].oom_list = &oom;
    devices[1].oom_count = 1;
    mt_sweep_measure(&result, &report);
    assert_int_equal(result.outcome, MT_SWEEP_OUT_OF_MEMORY);
    assert_int_equal(result.device, 6);
    assert_int_equal(result.oom_request_bytes, 7 * MT_GIB);
    assert_string_equal(result.oom_site, "");
    assert_string_equal(result.oom_phase, "outside any phase");
    assert_false(result.has_need);
}

/* What was allocated before the first pass is a parameter or an input. */
TEST(roles_of_a_first_pass)
{
    struct mt_sweep_result result = {.outcome = MT_SWEEP_FAILED};

    fill();
    devices[1].oom_list = &oom;
    devices[1].oom_count = 1;
    devices[1].peak_role_bytes[MT_ROLE_PARAMETERS] = 3 * MT_GIB;
    devices[1].peak_role_bytes[MT_ROLE_OTHER] = MT_GIB;
    mt_sweep_measure(&result, &report);
    assert_int_equal(result.role_bytes[MT_ROLE_PARAMETERS], 0);
    assert_int_equal(result.role_bytes[MT_ROLE_OTHER], 4 * MT_GIB);
    devices[1].peak_role_bytes[MT_ROLE_OPTIMIZER_STATE] = MT_GIB; /* of a later pass */
    result = (struct mt_sweep_result){.outcome = MT_SWEEP_FAILED};
    mt_sweep_measure(&result, &report);
    assert_int_equal(result.role_bytes[MT_ROLE_PARAMETERS], 3 * MT_GIB);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
