/* Memory that looks like growth but is none: it ends, drains, is replaced or warms up. */
#include "cmocka_all.h"

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

/* A list that keeps 2 MiB of each step on a device of 100 MiB. */
static void run_list_that_keeps(void)
{
    program_begin();
    assert_int_equal(mt_symbols_device(&program.source.source.symbols, 0, MT_NO_ID, 100 * MT_MIB),
                     MT_OK);
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        give(take("model.py:forward:3", 8 * MT_MIB));
        if (i >= 3)
            (void)take("train.py:keep:7", 2 * MT_MIB);
        step_ends(i);
    }
}

TEST(a_list_that_keeps_grows)
{
    run_list_that_keeps();
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "growth");
    assert_non_null(finding);
    assert_int_equal(finding->bytes_per_step, 2 * MT_MIB);
    assert_int_equal(finding->bytes, 13 * 2 * MT_MIB); /* of steps 5 to 17 */
    assert_string_equal(finding->severity, "error");
    assert_string_equal(
        finding->title,
        "2.00 MiB more after each step since step 3, all of it from keep train.py:7");
    /* the last step peaks at 40 MiB: 16 of its own, of which it keeps 8 */
    assert_true(has_evidence(
        finding, "26.0 MiB left behind by steps 5 to 17 is still allocated when step 19 begins"));
    assert_true(has_evidence(
        finding,
        "at this rate, the 100 MiB of the device fills up after at most 31 more steps (186 µs)"));
    program_end(report);
}

/* Times of a dry run are meaningless, so growth is per step and not per time. */
TEST(without_times_steps_are_counted)
{
    run_list_that_keeps();
    program.source.source.header.dry_run = "version=1";
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "growth");
    assert_non_null(finding);
    assert_true(has_evidence(
        finding, "at this rate, the 100 MiB of the device fills up after at most 31 more steps"));
    program_end(report);
}

enum gone { NOTHING, THE_OLD, THE_NEW };

/* x = torch.cat([x, new]): in each step except the one after `without`, the buffer grows by one
 * part of 2 MiB. The new part has `bytes` bytes. What is freed before the buffer is allocated? */
static void replace(uint64_t bytes, enum gone gone, uint32_t without)
{
    uint64_t old = 0;
    uint32_t i, parts = 1;

    program_begin();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        give(take("model.py:forward:3", 64 * MT_MIB));
        uint64_t new = take("model.py:embed:5", bytes);
        if (gone == THE_OLD && i)
            give(old);
        if (gone == THE_NEW)
            give(new);
        uint64_t buffer = take("train.py:join:9", 2 * parts * MT_MIB);
        if (gone != THE_OLD && i)
            give(old);
        if (gone != THE_NEW)
            give(new);
        old = buffer;
        parts += i != without;
        step_ends(i);
    }
}

static void expect_growth(uint64_t bytes_per_step, const char *evidence)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "growth");

    assert_non_null(finding);
    assert_int_equal(finding->bytes_per_step, bytes_per_step);
    assert_int_equal(finding->bytes, 13 * bytes_per_step); /* of steps 5 to 17 */
    assert_true(strstr(finding->title,
                       "more after each step since step 0, all of it from join train.py:9") !=
                NULL);
    if (!has_evidence(finding, evidence))
        fail_msg("%s", finding->evidence[0]);
    program_end(report);
}

TEST(a_buffer_that_is_joined_with_something_new_grows)
{
    replace(2 * MT_MIB, NOTHING, STEPS);
    expect_growth(2 * MT_MIB, "+2.00 MiB per step from join train.py:9: each step replaces 1 block "
                              "with longer copies, 10.0 MiB after step 4, 36.0 MiB after step 17");
    replace(6 * MT_MIB, NOTHING, STEPS); /* a third of it */
    expect_growth(2 * MT_MIB, "+2.00 MiB per step from join train.py:9: each step replaces 1 block "
                              "with longer copies, 10.0 MiB after step 4, 36.0 MiB after step 17");
}

TEST(longer_and_longer_batches_are_no_growth)
{
    replace(3 * MT_MIB, NOTHING, STEPS);
    expect_nothing();
    replace(2 * MT_MIB, THE_OLD, STEPS);
    expect_nothing();
    replace(2 * MT_MIB, THE_NEW, STEPS);
    expect_nothing();
}

TEST(a_buffer_that_stays_once_is_no_growth)
{
    replace(2 * MT_MIB, NOTHING, 12);
    expect_nothing();
}

/* In each step, the output is longer than the previous one by another part of the input. */
TEST(output_that_grows_with_the_input_is_no_growth)
{
    uint64_t old = 0;

    program_begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        uint64_t input = take("data.py:fetch:2", (i + 1) * MT_MIB);
        uint64_t output = take("model.py:forward:3", (i + 1) * MT_MIB);
        if (i)
            give(old);
        give(input);
        old = output;
        step_ends(i);
    }
    expect_nothing();
}

/* It has the right size, but was allocated in the first step. */
TEST(a_block_that_stays_is_no_growth)
{
    uint64_t old = 0;

    program_begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        if (!i)
            (void)take("model.py:init:1", 2 * MT_MIB);
        uint64_t output = take("model.py:forward:3", (2 * i + 2) * MT_MIB);
        if (i)
            give(old);
        old = output;
        step_ends(i);
    }
    expect_nothing();
}

/* A list of all previous buffers counts once. */
TEST(longer_buffers_that_stay_grow)
{
    program_begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        uint64_t new = take("model.py:embed:5", 2 * MT_MIB);
        (void)take("train.py:join:9", 2 * (i + 1) * MT_MIB);
        give(new);
        step_ends(i);
    }
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "growth");
    assert_non_null(finding);
    assert_int_equal(finding->bytes_per_step, 24 * MT_MIB); /* of 12, 14, ... 36 */
    program_end(report);
}

/* The output of batches that get longer is an example. */
TEST(blocks_replaced_by_more_are_no_growth)
{
    uint64_t last = 0;

    program_begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        uint64_t now = take("model.py:forward:3", (8 + i) * MT_MIB);
        if (i)
            give(last);
        last = now;
        step_ends(i);
    }
    expect_nothing();
}

TEST(a_queue_of_several_steps_is_no_growth)
{
    program_begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        kept[i] = take("data.py:fetch:3", (2 + i / 8) * MT_MIB);
        if (i >= 6)
            give(kept[i - 6]);
        step_ends(i);
    }
    expect_nothing();
}

/* A cache by length: most lengths occur in the first steps. */
TEST(a_cache_that_fills_is_no_growth)
{
    program_begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        if (i < 10 || i == 14)
            (void)take("cache.py:put:3", 4 * MT_MIB);
        step_ends(i);
    }
    expect_nothing();
}

TEST(a_cache_that_is_emptied_is_no_growth)
{
    uint32_t i, first = 0;

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

/* Each step moves a part of the existing blocks. */
TEST(blocks_that_replace_others_are_no_growth)
{
    uint64_t old[STEPS];

    program_begin();
    for (uint32_t i = 0; i < STEPS; i++)
        old[i] = take("model.py:init:3", 4 * MT_MIB);
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        (void)take("model.py:convert:9", 3 * MT_MIB);
        give(old[i]);
        step_ends(i);
    }
    expect_nothing();
}

/* Most of it is replaced. Memory does rise, but by less than the new blocks. */
TEST(blocks_that_replace_most_of_others_are_no_growth)
{
    uint64_t old[STEPS];

    program_begin();
    for (uint32_t i = 0; i < STEPS; i++)
        old[i] = take("model.py:init:3", 2 * MT_MIB);
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        (void)take("model.py:convert:9", 3 * MT_MIB);
        give(old[i]);
        step_ends(i);
    }
    expect_nothing();
}

/* A loss for each step, as a tensor. */
TEST(scalars_are_not_reported)
{
    program_begin();
    (void)take("model.py:init:3", 64 * MT_MIB);
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        (void)take("train.py:loss:3", 4);
        step_ends(i);
    }
    expect_nothing();
}

TEST(few_steps_are_no_evidence)
{
    program_begin();
    for (uint32_t i = 0; i < 7; i++) {
        step_begins(i);
        (void)take("train.py:keep:3", 4 * MT_MIB);
        step_ends(i);
    }
    expect_nothing();
}

/* One call of a model at that line of the program, which keeps some of it. */
static void call(const char *line, uint64_t kept_bytes)
{
    const char *const parts[] = {"model.py:forward:5", "model.py:forward:9"};
    char stack[160];

    snprintf(stack, sizeof stack, "%s < torch/nn/modules/module.py:_call_impl:1 < %s", parts[0],
             line);
    uint64_t first = take(stack, 4 * MT_MIB);
    snprintf(stack, sizeof stack, "%s < torch/nn/modules/module.py:_call_impl:1 < %s", parts[1],
             line);
    if (kept_bytes)
        (void)take(stack, kept_bytes);
    else
        give(take(stack, MT_MIB));
    give(first);
}

/* The warm-up is another loop than the one that leaks. */
TEST(growth_is_of_one_loop)
{
    program_begin();
    for (int i = 0; i < 12; i++)
        call("bench.py:main:10", 0);
    for (int i = 0; i < STEPS; i++)
        call("bench.py:main:16", 2 * MT_MIB);
    struct mt_report *report = program_report();
    assert_int_equal(report->loop_count, 2);
    assert_string_equal(report->loops[0].name, "bench.py:10");
    assert_int_equal(report->loops[0].steps, 12);
    assert_string_equal(report->loops[1].name, "bench.py:16");
    assert_int_equal(report->loops[1].steps, STEPS);
    assert_int_equal(report->devices[0].steps[11].loop, 0);
    assert_int_equal(report->devices[0].steps[12].loop, 1);
    const struct mt_finding *finding = finding_of(report, "growth");
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 13 * 2 * MT_MIB); /* of steps 17 to 29 */
    program_end(report);
}

/* The names of loops that call one function are those of the lines that call it. */
TEST(loops_around_one_function)
{
    program_begin();
    for (int i = 0; i < 6; i++)
        call(i < 3 ? "bench.py:run:3 < bench.py:main:10" : "bench.py:run:3 < bench.py:main:16", 0);
    struct mt_report *report = program_report();
    assert_int_equal(report->loop_count, 2);
    assert_string_equal(report->loops[0].name, "bench.py:10");
    assert_string_equal(report->loops[1].name, "bench.py:16");
    program_end(report);
}

/* Steps that leave that many bytes each, in backward of training; NULL line: without backward. */
static const struct mt_finding *few_steps(const char *line, const uint64_t *bytes, unsigned count,
                                          struct mt_report **report)
{
    program_begin();
    for (unsigned i = 0; i < count; i++) {
        step_begins(i);
        phase_begins("forward");
        uint64_t hidden = take("model.py:forward:3", 8 * MT_MIB);
        phase_ends("forward");
        phase_begins(line ? "backward" : "validate");
        (void)take(line ? line : "train.py:keep:7", bytes[i]);
        give(hidden);
        phase_ends(line ? "backward" : "validate");
        step_ends(i);
    }
    *report = program_report();
    assert_null(finding_of(*report, "growth"));
    return finding_of(*report, "possible-growth");
}

TEST(few_steps_that_rise_evenly_may_grow)
{
    static const uint64_t even[] = {2 * MT_MIB, 2 * MT_MIB, 2 * MT_MIB};
    static const uint64_t uneven[] = {2 * MT_MIB, 2 * MT_MIB, 2 * MT_MIB + 512};
    static const char line[] = "train.py:keep:7";
    struct mt_report *report;
    const struct mt_finding *finding = few_steps(line, even, 3, &report);

    assert_string_equal(finding->title,
                        "3 recorded steps rise by 2.00 MiB each: looks like a leak, "
                        "2.00 MiB of it from keep train.py:7");
    assert_string_equal(finding->severity, "info");
    program_end(report);
    assert_null(few_steps(line, even, 2, &report));
    program_end(report);
    assert_null(few_steps(line, uneven, 3, &report));
    program_end(report);
    assert_null(few_steps(NULL, even, 3, &report)); /* no backward: calls whose results are kept */
    program_end(report);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
