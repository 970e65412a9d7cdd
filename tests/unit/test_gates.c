/* Gates: bounds are exact, an equal value passes, an unknown value does not. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "gate_output.h"
#include "gate_result.h"
#include "gate_run.h"
#include "util.h"

static struct mt_gate_rules rules;
static struct mt_gates gates;
static struct mt_step_use steps[20];
static struct mt_phase phases[20]; /* the steps */
static struct mt_site_use sites[2];
static struct mt_device_report device;
static struct mt_report report;
static struct mt_error error;

static int setup(void **unused)
{
    (void)unused;
    memset(&rules, 0, sizeof rules);
    memset(&gates, 0, sizeof gates);
    memset(steps, 0, sizeof steps);
    sites[0] = (struct mt_site_use){
        .site = "a.py:1", .phase = "forward", .role = MT_ROLE_ACTIVATIONS, .bytes = 600};
    sites[1] = (struct mt_site_use){
        .site = "b.py:2", .phase = "", .role = MT_ROLE_PARAMETERS, .bytes = 400};
    device =
        (struct mt_device_report){.allocated_peak = {.bytes = 1000, .phase = MT_NO_PHASE},
                                  .requested_peak = {.bytes = 900, .phase = MT_NO_PHASE},
                                  .active_peak = {.bytes = 1100, .phase = MT_NO_PHASE},
                                  .reserved_peak = {.bytes = 2000,
                                                    .phase = MT_NO_PHASE,
                                                    .then = {.allocated = 1500, .reserved = 2000}},
                                  .peak_sites = sites,
                                  .peak_site_count = 2,
                                  .steps = steps};
    /* no replays, because there is no source */
    report = (struct mt_report){.name = "x",
                                .path = "x",
                                .devices = &device,
                                .device_count = 1,
                                .phases = phases,
                                .has_segments = true,
                                .pytorch_difference = "none of its rules"};
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    mt_gates_release(&gates);
    mt_gate_rules_release(&rules);
    return 0;
}

static void add(enum mt_gate_kind kind, const char *text)
{
    assert_int_equal(mt_gate_rules_add(&rules, kind, text, &error), MT_OK);
}

/* State of the only result of the one rule. */
static enum mt_gate_state check(enum mt_gate_kind kind, const char *text,
                                const struct mt_baseline *base)
{
    const struct mt_gate_check asked = {.rules = &rules, .report = &report, .base = base};

    mt_gates_release(&gates);
    rules.count = 0;
    add(kind, text);
    assert_int_equal(mt_gates_check(&asked, &gates, &error), MT_OK);
    assert_true(gates.count >= 1);
    return gates.results[0].state;
}

TEST_WITH(equal_values_pass, setup, teardown)
{
    assert_int_equal(check(MT_GATE_PEAK, "allocated=1000", NULL), MT_GATE_PASS);
    assert_int_equal(check(MT_GATE_PEAK, "allocated=999", NULL), MT_GATE_FAIL);
    assert_int_equal(gates.results[0].actual_bytes, 1000);
    assert_int_equal(gates.results[0].limit_bytes, 999);
    assert_string_equal(gates.results[0].culprit,
                        "most at the allocated peak: a.py:1, in forward (600 B, activations); "
                        "b.py:2 (400 B, parameters)");
    assert_int_equal(check(MT_GATE_PEAK, "allocated=1001,warn=1000", NULL), MT_GATE_PASS);
    assert_int_equal(check(MT_GATE_PEAK, "allocated=1000,warn=999", NULL), MT_GATE_WARN);
    assert_int_equal(check(MT_GATE_PEAK, "requested=899", NULL), MT_GATE_FAIL);
    assert_int_equal(check(MT_GATE_PEAK, "active=1099", NULL), MT_GATE_FAIL);
    assert_int_equal(check(MT_GATE_PEAK, "reserved=1999", NULL), MT_GATE_FAIL);
    assert_int_equal(check(MT_GATE_PEAK, "device=1", NULL), MT_GATE_NOT_EVALUATED);
}

/* 2000 B in the order of the run, 1800 B to 2200 B in other orders. */
TEST_WITH(a_limit_within_the_range_of_a_dry_run, setup, teardown)
{
    struct mt_peak_orders orders = {8, 1800, 2200, 1000, 1003};
    struct mt_gate_check strict = {.rules = &rules, .report = &report, .strict = true};
    const struct mt_gate_result *result;

    device.peak_orders = &orders;
    assert_int_equal(check(MT_GATE_PEAK, "reserved=2200", NULL), MT_GATE_PASS);
    assert_false(gates.results[0].may_fail);
    assert_int_equal(check(MT_GATE_PEAK, "reserved=2199", NULL), MT_GATE_WARN);
    result = &gates.results[0];
    assert_true(result->may_fail && result->has_range);
    assert_int_equal(result->low_bytes, 1800);
    assert_int_equal(result->high_bytes, 2200);
    assert_non_null(
        strstr(result->verdict, "; may fail: 2.15 KiB (2,200 B) with another address order"));
    mt_gates_release(&gates);
    assert_int_equal(mt_gates_check(&strict, &gates, &error), MT_OK);
    assert_int_equal(gates.verdict, MT_GATE_FAIL);
    assert_non_null(strstr(gates.results[0].verdict, "exceeds the limit (--strict)"));
    assert_int_equal(check(MT_GATE_PEAK, "reserved=1999", NULL), MT_GATE_FAIL);
    assert_non_null(strstr(gates.results[0].verdict,
                           "1.76 KiB (1,800 B) with another address order is within the limit"));
    assert_false(gates.results[0].may_fail);
    assert_int_equal(check(MT_GATE_PEAK, "reserved=1799", NULL), MT_GATE_FAIL);
    assert_null(strstr(gates.results[0].verdict, "another order"));
    assert_int_equal(check(MT_GATE_PEAK, "allocated=1002", NULL), MT_GATE_WARN);
    assert_int_equal(check(MT_GATE_PEAK, "active=1100", NULL), MT_GATE_PASS);
    assert_false(gates.results[0].has_range);
    device.peak_orders = NULL;
    assert_int_equal(check(MT_GATE_PEAK, "reserved=2000", NULL), MT_GATE_PASS);
}

/* The report does not contain the exit status of the command. */
TEST_WITH(no_gate_passes_if_the_caller_has_doubts, setup, teardown)
{
    const struct mt_gate_check asked = {.rules = &rules, .report = &report};

    report.doubt = "the command failed";
    add(MT_GATE_PEAK, "reserved=2000");
    add(MT_GATE_PEAK, "allocated=1");
    assert_int_equal(mt_gates_check(&asked, &gates, &error), MT_OK);
    assert_int_equal(gates.verdict, MT_GATE_FAIL);
    assert_int_equal(gates.results[1].state, MT_GATE_NOT_EVALUATED);
    assert_string_equal(gates.results[1].verdict,
                        "peak reserved: the command failed; at least 1.95 KiB was seen");
}

TEST_WITH(fragmentation_is_exact, setup, teardown)
{
    /* 500 of 2000 */
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "25%", NULL), MT_GATE_PASS);
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "24.9999%", NULL), MT_GATE_FAIL);
    device.reserved_peak.bytes = device.reserved_peak.then.reserved = UINT64_C(1)
                                                                      << 50; /* one byte decides */
    device.reserved_peak.then.allocated = (UINT64_C(3) << 48) - 1;
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "25%", NULL), MT_GATE_FAIL);
    device.reserved_peak.then.allocated++;
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "25%", NULL), MT_GATE_PASS);
    device.reserved_peak.bytes = 2000;
    device.reserved_peak.then = (struct mt_bytes){.allocated = 1500, .reserved = 2000};
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "24%", NULL), MT_GATE_FAIL);
    assert_non_null(strstr(gates.results[0].verdict, "at the reserved peak 25.0% exceeds"));
    assert_non_null(strstr(gates.results[0].verdict, " by 1.0 points (500 of 2,000 B unused)"));
    device.allocated_peak.event = 1; /* with 99% of the reserved peak */
    device.allocated_peak.then = (struct mt_bytes){.allocated = 1900, .reserved = 1980};
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "4%", NULL), MT_GATE_FAIL);
    assert_non_null(strstr(gates.results[0].verdict, "at the allocated peak 4.0% exceeds"));
    assert_non_null(strstr(gates.results[0].culprit, "most at the allocated peak: a.py:1"));
    device.allocated_peak.then.reserved = 1979;
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "25%", NULL), MT_GATE_PASS);
    device.reserved_peak.bytes = 0;
    assert_int_equal(check(MT_GATE_FRAGMENTATION, "25%", NULL), MT_GATE_NOT_EVALUATED);
}

TEST_WITH(a_regression_is_in_whole_bytes, setup, teardown)
{
    struct mt_baseline_device of_base = {.allocated_peak_bytes = 981, .all_sites = true};
    struct mt_baseline base = {.name = "base", .devices = &of_base, .device_count = 1};

    /* 2% of 981 is 19.62, so 1000 passes. 2% of 980 is 19.6, so 1000 fails. */
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=2%", &base), MT_GATE_PASS);
    of_base.allocated_peak_bytes = 980;
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=2%", &base), MT_GATE_FAIL);
    assert_non_null(strstr(gates.results[0].culprit, "a.py:1, in forward (+600 B)"));
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=2%,20B", &base), MT_GATE_PASS);
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=20B", &base), MT_GATE_PASS);
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=19B", &base), MT_GATE_FAIL);
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=2%", NULL), MT_GATE_NOT_EVALUATED);
    assert_int_equal(check(MT_GATE_REGRESSION, "reserved=900%", &base), MT_GATE_NOT_EVALUATED);
    base.doubt = "it died";
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=2%", &base), MT_GATE_NOT_EVALUATED);
    base.doubt = NULL;
    of_base.device = 1;
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=2%", &base), MT_GATE_NOT_EVALUATED);
}

TEST_WITH(sites_missing_from_the_base_are_not_blamed, setup, teardown)
{
    struct mt_baseline_device of_base = {.allocated_peak_bytes = 1, .site_count = 1};
    struct mt_baseline base = {.name = "base", .devices = &of_base, .device_count = 1};

    of_base.sites[0] = (struct mt_baseline_site){"b.py:2", "", 650};
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=0%", &base), MT_GATE_FAIL);
    assert_null(strstr(gates.results[0].culprit, "more than in the base"));
    of_base.all_sites = true;
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=0%", &base), MT_GATE_FAIL);
    assert_non_null(strstr(gates.results[0].culprit, "more than in the base"));
}

/* The report has a row for each role of a site; the base of an older version has one. */
TEST_WITH(roles_of_a_site_are_compared_together, setup, teardown)
{
    struct mt_baseline_device of_base = {
        .allocated_peak_bytes = 1, .site_count = 2, .all_sites = true};
    struct mt_baseline base = {.name = "base", .devices = &of_base, .device_count = 1};

    sites[1].site = sites[0].site;
    sites[1].phase = sites[0].phase;
    of_base.sites[0] = (struct mt_baseline_site){"a.py:1", "forward", 700};
    of_base.sites[1] = (struct mt_baseline_site){"a.py:1", "", 900};
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=0%", &base), MT_GATE_FAIL);
    assert_string_equal(gates.results[0].culprit,
                        "more than in the base at the allocated peak: a.py:1, in forward (+300 B)");
    of_base.sites[1].phase = "forward";
    assert_int_equal(check(MT_GATE_REGRESSION, "allocated=0%", &base), MT_GATE_FAIL);
    assert_null(strstr(gates.results[0].culprit, "more than in the base"));
}

/* Levels that rise by chance are no growth: only memory that steps leave behind counts. */
TEST_WITH(growth_is_memory_that_steps_leave_behind, setup, teardown)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(steps); i++) {
        steps[i].enter.allocated = steps[i].exit.allocated = 5000 + 100 * i;
        steps[i].begin_event = i;
    }
    device.step_count = 20;
    device.growth = (struct mt_growth){.judged = true, .steps = 13};
    assert_int_equal(check(MT_GATE_GROWTH, "0/step", NULL), MT_GATE_PASS);
    assert_int_equal(gates.results[0].actual_bytes, 0);
    device.growth.bytes_per_step = 100;
    assert_int_equal(check(MT_GATE_GROWTH, "100/step", NULL), MT_GATE_PASS);
    assert_int_equal(gates.results[0].actual_bytes, 100);
    assert_int_equal(check(MT_GATE_GROWTH, "99", NULL), MT_GATE_FAIL);
    device.growth.bytes_per_step = UINT64_MAX; /* hostile, no overflow */
    assert_int_equal(check(MT_GATE_GROWTH, "1GiB", NULL), MT_GATE_FAIL);
}

TEST_WITH(unknown_growth_is_not_evaluated, setup, teardown)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(steps); i++) {
        steps[i].phase = (int32_t)i;
        phases[i].begin_event = 10 * (i + 1);
        phases[i].parent = MT_NO_PHASE;
    }
    device.growth = (struct mt_growth){0};
    device.step_count = 20;
    assert_int_equal(check(MT_GATE_GROWTH, "1GiB", NULL), MT_GATE_NOT_EVALUATED);
    assert_non_null(strstr(gates.results[0].verdict, "too many blocks"));
    device.step_count = 7;
    assert_int_equal(check(MT_GATE_GROWTH, "1GiB", NULL), MT_GATE_NOT_EVALUATED);
    assert_non_null(strstr(gates.results[0].verdict, "too few steps"));
    device.step_count = 0;
    assert_int_equal(check(MT_GATE_GROWTH, "1GiB", NULL), MT_GATE_NOT_EVALUATED);
    assert_non_null(strstr(gates.results[0].verdict, "no steps"));
}

TEST_WITH(doubtful_peaks_fail_but_never_pass, setup, teardown)
{
    struct mt_oom died = {.fatal = true};

    for (int i = 0; i < 5; i++) {
        report.integrity = (struct mt_integrity){
            .cut = i == 0, .events_dropped = i == 1, .frames_damaged = i == 2};
        report.starts_in_middle = i == 3;
        device.oom_list = &died;
        device.oom_count = i == 4;
        assert_int_equal(check(MT_GATE_PEAK, "allocated=1000", NULL), MT_GATE_NOT_EVALUATED);
        assert_int_equal(gates.verdict, MT_GATE_NOT_EVALUATED);
        assert_int_equal(check(MT_GATE_PEAK, "allocated=999", NULL), MT_GATE_FAIL);
        assert_int_equal(check(MT_GATE_FRAGMENTATION, "90%", NULL), MT_GATE_NOT_EVALUATED);
    }
}

TEST_WITH(allowed_unknowns_are_excused, setup, teardown)
{
    const struct mt_gate_check asked = {.rules = &rules, .report = &report};

    add(MT_GATE_GROWTH, "1");
    mt_gate_rules_make_optional(&rules);
    assert_int_equal(mt_gates_check(&asked, &gates, &error), MT_OK);
    assert_true(gates.results[0].excused);
    assert_int_equal(gates.excused, 1);
    assert_int_equal(gates.verdict, MT_GATE_PASS);
    assert_int_equal(gates.states[MT_GATE_PASS], 0);
}

TEST_WITH(without_devices_nothing_passes, setup, teardown)
{
    report.device_count = 0;
    assert_int_equal(check(MT_GATE_PEAK, "allocated=1GiB", NULL), MT_GATE_NOT_EVALUATED);
    assert_int_equal(check(MT_GATE_FITS, "1GiB", NULL), MT_GATE_NOT_EVALUATED);
}

TEST_WITH(the_worst_comes_first, setup, teardown)
{
    const struct mt_gate_check asked = {.rules = &rules, .report = &report};
    static const enum mt_gate_state states[] = {MT_GATE_FAIL, MT_GATE_NOT_EVALUATED, MT_GATE_WARN,
                                                MT_GATE_PASS};

    add(MT_GATE_PEAK, "requested=1GiB");
    add(MT_GATE_PEAK, "active=1GiB,warn=1");
    add(MT_GATE_GROWTH, "1");
    add(MT_GATE_PEAK, "allocated=1GiB");
    add(MT_GATE_PEAK, "allocated=1"); /* replaces the previous bound */
    assert_int_equal(mt_gates_check(&asked, &gates, &error), MT_OK);
    assert_int_equal(gates.count, 4);
    for (size_t i = 0; i < gates.count; i++)
        assert_int_equal(gates.results[i].state, states[i]);
    assert_int_equal(gates.verdict, MT_GATE_FAIL);
}

/* Bytes have commas as printed; a comma also separates a share from bytes. */
TEST_WITH(bounds_have_commas, setup, teardown)
{
    static const char *const refused[] = {"5%,6%", "1MiB,2MiB", "5%,1,69 MiB", "1MiB,2MiB,5%",
                                          "5%,"};
    static const char *const both[] = {"5%,1,690 MiB", "5%, 1,690 MiB", "1,690 MiB,5%"};

    add(MT_GATE_PEAK, "reserved=1,690 MiB");
    for (size_t i = 0; i < MT_ARRAY_LEN(both); i++)
        add(MT_GATE_REGRESSION, both[i]);
    for (size_t i = 0; i < rules.count; i++) {
        assert_int_equal(rules.rules[i].limit.bytes, 1690 * MT_MIB);
        assert_int_equal(rules.rules[i].limit.millionths, i ? 50000 : 0);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(refused); i++)
        assert_int_equal(mt_gate_rules_add(&rules, MT_GATE_REGRESSION, refused[i], &error),
                         MT_ERR_USAGE);
}

TEST_WITH(a_baseline_is_unchanged_when_read, setup, teardown)
{
    struct mt_trace_header header = {0};
    struct mt_baseline written, again;
    struct mt_settings settings;
    struct mt_buf json = {0};

    sites[0].site = "\"x\\y\"\n\xFF\x1b.a";
    sites[1].phase = "{}[].1";
    mt_baseline_of_report(&written, &report, &header);
    mt_baseline_add_json(&json, &written);
    assert_int_equal(mt_settings_parse_json(json.data, json.length, &settings, &error), MT_OK);
    assert_int_equal(mt_baseline_read(&again, &settings, &error), MT_OK);
    assert_int_equal(again.device_count, 1);
    assert_int_equal(again.devices[0].requested_peak_bytes, 900);
    assert_int_equal(again.devices[0].reserved_peak_bytes, 2000);
    assert_true(again.devices[0].has_reserved && again.devices[0].all_sites);
    assert_int_equal(again.devices[0].site_count, 2);
    assert_string_equal(again.devices[0].sites[0].site, "\"x\\y\"\n\xEF\xBF\xBD\x1b.a");
    assert_string_equal(again.devices[0].sites[1].phase, "{}[].1");
    assert_null(again.doubt);
    mt_settings_release(&settings);
    mt_baseline_release(&written);
    mt_baseline_release(&again);
    mt_buf_release(&json);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
