/* Rules of findings about blocks that an optimizer allocates in its step. */
#include "cmocka_all.h"

#include <stdio.h>

#include "finding_program.h"

static uint64_t others_bytes; /* alive all the time */

/* A block of the optimizer's step at that line. `kept`: state, not a temporary. */
static void make_in_the_optimizer(const char *line, uint64_t bytes, bool kept)
{
    begin();
    (void)take("model.py:init:2", others_bytes);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t addr = 0;
        step_begins(i);
        train();
        phase_begins("optimizer");
        if (!kept || !i)
            addr = take(line, bytes);
        if (!kept)
            give(addr);
        phase_ends("optimizer");
        step_ends(i);
    }
}

TEST(temporaries_of_all_parameters_are_found)
{
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 200 * MT_MIB, false);
    expect_finding("foreach-peak", 200 * MT_MIB);
    make_in_the_optimizer("torch/optim/adam.py:_single_tensor_adam:5", 200 * MT_MIB, false);
    expect_nothing("foreach-peak");
}

/* SGD allocates its momentum there. */
TEST(state_is_no_temporary)
{
    make_in_the_optimizer("torch/optim/sgd.py:_multi_tensor_sgd:5", 200 * MT_MIB, true);
    expect_nothing("foreach-peak");
}

TEST(a_small_part_of_the_peak_is_not_found)
{
    others_bytes = 1300 * MT_MIB;
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 130 * MT_MIB, false);
    expect_nothing("foreach-peak");
    others_bytes = 900 * MT_MIB;
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 130 * MT_MIB, false);
    expect_finding("foreach-peak", 130 * MT_MIB);
    others_bytes = 0;
}

/* The peak is in backward. */
TEST(blocks_not_alive_at_the_peak_are_not_found)
{
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 90 * MT_MIB, false);
    expect_nothing("foreach-peak");
}

/* A step of an optimizer that makes lists for `parameters` parameters of 100 MiB, each from its own
 * line, and frees them together. 100 MiB of state from the same step and 100 MiB of other memory
 * stay. */
static void make_lists(const char *function, uint32_t lists, uint32_t parameters)
{
    uint64_t made[16], other;
    uint32_t count;
    char line[96];

    begin_replayable();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        phase_begins("optimizer");
        other = take("clip.py:clip:3", 100 * MT_MIB);
        if (!i)
            (void)take("torch/optim/optimizer.py:_multi_tensor_sgd:9", 100 * MT_MIB);
        for (uint32_t j = count = 0; j < lists * parameters; j++) {
            snprintf(line, sizeof line, "torch/optim/optimizer.py:%s:%u", function, j / parameters);
            made[count++] = take(line, 100 * MT_MIB);
        }
        while (count)
            give(made[--count]);
        give(other);
        phase_ends("optimizer");
        step_ends(i);
    }
}

static void expect_foreach(uint64_t bytes, const char *severity, const char *evidence)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "foreach-peak");

    assert_non_null(finding);
    assert_int_equal(finding->bytes, bytes);
    assert_string_equal(finding->severity, severity);
    if (!has_evidence(finding, evidence))
        fail_msg("%s", finding->evidence[finding->evidence_count - 1]);
    program_end(report);
}

TEST(one_parameter_at_a_time_takes_less)
{
    make_lists("_multi_tensor_adagrad", 1, 8);
    expect_foreach(
        500 * MT_MIB, "warning",
        "replay with at most 3 temporaries, of one parameter at a time, as with foreach=False: 550 "
        "MiB allocated instead of 1.03 GiB, 570 MiB reserved instead of 1.04 GiB");
    make_lists("_multi_tensor_adagrad", 2, 8);
    expect_foreach(
        1200 * MT_MIB, "warning",
        "replay with at most 4 temporaries, of one parameter at a time, as with foreach=False: 650 "
        "MiB allocated instead of 1.81 GiB, 670 MiB reserved instead of 1.83 GiB");
}

/* Other blocks find no place among those of the lists: more is reserved than allocated. */
TEST(the_saving_is_no_more_than_the_lower_bound)
{
    make_lists("_multi_tensor_adagrad", 1, 8);
    give(take_in("validate", "eval.py:f:1", 800 * MT_MIB));
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "foreach-peak");
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 100 * MT_MIB);
    assert_int_equal(finding->saving, MT_SAVING_AT_LEAST);
    assert_int_equal(finding->saves_bytes, 100 * MT_MIB);
    program_end(report);
}

TEST(one_parameter_at_a_time_may_take_as_much)
{
    static const char evidence[] =
        "replay with at most 3 temporaries, of one parameter at a time, as with foreach=False: 550 "
        "MiB allocated instead of 550 MiB, 570 MiB reserved instead of 570 MiB";

    make_lists("_multi_tensor_adagrad", 1, 3);
    expect_foreach(300 * MT_MIB, "info", evidence);
    make_lists("_multi_tensor_adam", 1, 3); /* none of the parameters can be fused */
    expect_foreach(200 * MT_MIB, "warning", evidence);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
