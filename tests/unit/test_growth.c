/* Growth that is none: what grows, ends, drains, is replaced or warms up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "step_program.h"
#include "util.h"

#define STEPS 20

static uint64_t kept[STEPS];

static void expect_nothing(void)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "growth");

    if (finding)
        fail_msg("%s", finding->title);
    program_end(report);
}

static void a_list_that_keeps_grows(void **unused)
{
    struct mt_report *report;
    const struct mt_finding *finding;
    uint32_t i;

    (void)unused;
    program_begin();
    assert_int_equal(mt_symbols_device(&program.source.source.symbols, 0, MT_NO_ID, 100 * MT_MIB),
                     MT_OK);
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        give(take("model.py:forward:3", 8 * MT_MIB));
        if (i >= 3)
            (void)take("train.py:keep:7", 2 * MT_MIB);
        step_ends(i);
    }
    report = program_report();
    finding = finding_of(report, "growth");
    assert_non_null(finding);
    assert_int_equal(finding->bytes_per_step, 2 * MT_MIB);
    assert_int_equal(finding->bytes, 13 * 2 * MT_MIB); /* of steps 5 to 17 */
    assert_string_equal(finding->severity, "error");
    assert_string_equal(finding->title,
                        "2.00 MiB more after each step, since step 3: all from keep train.py:7");
    /* the last step peaks with 40 MiB: 16 of its own, 8 of which are what it keeps */
    assert_true(has_evidence(finding, "26.0 MiB that steps 5 to 17 left behind are still there "
                                      "when step 19 begins"));
    assert_true(has_evidence(finding, "if it goes on like that, the 100 MiB of the device are full "
                                      "after at most 31 more steps (186 µs)"));
    program_end(report);
}

/* As the output of batches that get longer. */
static void what_is_replaced_by_more_is_no_growth(void **unused)
{
    uint64_t last = 0;
    uint32_t i;

    (void)unused;
    program_begin();
    for (i = 0; i < STEPS; i++) {
        uint64_t now;
        step_begins(i);
        now = take("model.py:forward:3", (8 + i) * MT_MIB);
        if (i)
            give(last);
        last = now;
        step_ends(i);
    }
    expect_nothing();
}

static void a_queue_of_some_steps_is_no_growth(void **unused)
{
    uint32_t i;

    (void)unused;
    program_begin();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        kept[i] = take("data.py:fetch:3", (2 + i / 8) * MT_MIB);
        if (i >= 6)
            give(kept[i - 6]);
        step_ends(i);
    }
    expect_nothing();
}

/* A cache by length: most lengths were seen soon. */
static void a_cache_that_fills_is_no_growth(void **unused)
{
    uint32_t i;

    (void)unused;
    program_begin();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        if (i < 10 || i == 14)
            (void)take("cache.py:put:3", 4 * MT_MIB);
        step_ends(i);
    }
    expect_nothing();
}

static void a_cache_that_is_emptied_is_no_growth(void **unused)
{
    uint32_t i, first = 0;

    (void)unused;
    program_begin();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        for (; i % 9 == 8 && first < i; first++)
            give(kept[first]);
        kept[i] = take("cache.py:put:3", (4 + 4 * (i / 9)) * MT_MIB);
        step_ends(i);
    }
    expect_nothing();
}

/* Each step moves a part of what there was. */
static void what_comes_for_something_that_goes_is_no_growth(void **unused)
{
    uint64_t old[STEPS];
    uint32_t i;

    (void)unused;
    program_begin();
    for (i = 0; i < STEPS; i++)
        old[i] = take("model.py:init:3", 4 * MT_MIB);
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        (void)take("model.py:convert:9", 3 * MT_MIB);
        give(old[i]);
        step_ends(i);
    }
    expect_nothing();
}

/* A loss for each step, as a tensor. */
static void scalars_are_nobodys_trouble(void **unused)
{
    uint32_t i;

    (void)unused;
    program_begin();
    (void)take("model.py:init:3", 64 * MT_MIB);
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        (void)take("train.py:loss:3", 4);
        step_ends(i);
    }
    expect_nothing();
}

static void few_steps_tell_nothing(void **unused)
{
    uint32_t i;

    (void)unused;
    program_begin();
    for (i = 0; i < 7; i++) {
        step_begins(i);
        (void)take("train.py:keep:3", 4 * MT_MIB);
        step_ends(i);
    }
    expect_nothing();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_that_keeps_grows),
        cmocka_unit_test(what_is_replaced_by_more_is_no_growth),
        cmocka_unit_test(a_queue_of_some_steps_is_no_growth),
        cmocka_unit_test(a_cache_that_fills_is_no_growth),
        cmocka_unit_test(a_cache_that_is_emptied_is_no_growth),
        cmocka_unit_test(what_comes_for_something_that_goes_is_no_growth),
        cmocka_unit_test(scalars_are_nobodys_trouble),
        cmocka_unit_test(few_steps_tell_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
