/* Rules of findings about blocks that live from one step into the next: a program that is reported,
 * and the same program with one condition of the rule removed. */
#include "cmocka_all.h"

#include "finding_program.h"

/* Each step allocates a value that is freed `steps` steps later, after the allocation of that step.
 */
static void keep_values(const char *phase, const char *line, uint32_t steps)
{
    uint64_t kept[STEPS];

    begin_replayable();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        kept[i] = take_in(phase, line, 200 * MT_MIB);
        if (i >= steps)
            give(kept[i - steps]);
        step_ends(i);
    }
}

TEST(values_that_wait_for_their_successor_are_found)
{
    keep_values("validate", "train.py:predict:5", 1);
    expect_finding("kept-values", 200 * MT_MIB); /* two of them, or one with the hidden one */
}

/* The program fetches batches ahead. */
TEST(blocks_not_made_in_forward_are_not_reported)
{
    keep_values("data", "train.py:fetch:5", 1);
    expect_nothing("kept-values");
}

TEST(blocks_without_stacks_are_not_reported)
{
    keep_values("validate", NULL, 1);
    expect_nothing("kept-values");
}

TEST(blocks_that_live_for_two_steps_are_not_reported)
{
    keep_values("validate", "train.py:predict:5", 2);
    expect_nothing("kept-values");
}

/* The next step frees it before there is a new one: it may have read it. */
TEST(blocks_freed_before_their_successor_are_not_reported)
{
    uint64_t kept = 0;

    begin_replayable();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        if (i < STEPS - 1) /* another rule covers the last step */
            train();
        if (i)
            give(kept);
        kept = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        step_ends(i);
    }
    expect_nothing("kept-values");
}

/* Each step makes two blocks and frees the old ones after it has made the first new one. */
TEST(the_first_of_its_successors_counts)
{
    uint64_t kept[2] = {0, 0}, first;

    begin_replayable();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        first = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        if (i) {
            give(kept[0]);
            give(kept[1]);
        }
        kept[0] = first;
        kept[1] = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        step_ends(i);
    }
    expect_finding("kept-values", 200 * MT_MIB); /* three of them at once, or two */
}

/* Every other step makes a block, and the next step frees it. */
TEST(blocks_without_successor_are_not_reported)
{
    uint64_t kept = 0;

    begin_replayable();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        if (i % 2)
            give(kept);
        else
            kept = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        step_ends(i);
    }
    expect_nothing("kept-values");
}

/* The peak is in the last step, whose value has no successor. `late`: a value is freed after its
 * successor is allocated; otherwise before. */
static void keep_in_the_last_step(bool late)
{
    uint64_t kept = 0, next = 0;

    begin_replayable();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        if (i == STEPS - 1)
            give(take_in("forward", "model.py:more:11", 300 * MT_MIB));
        if (!late && i)
            give(kept);
        next = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        if (late && i)
            give(kept);
        kept = next;
        step_ends(i);
        if (i == STEPS - 1)
            give(kept);
    }
}

TEST(in_the_last_step_the_previous_block_is_evidence)
{
    keep_in_the_last_step(true);
    expect_finding("kept-values", 200 * MT_MIB);
    keep_in_the_last_step(false);
    expect_nothing("kept-values");
}

/* A cache that is replaced by a longer copy is read. */
TEST(without_training_nothing_is_reported)
{
    uint64_t kept = 0, next;

    begin_replayable();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        next = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        if (i)
            give(kept);
        kept = next;
        step_ends(i);
    }
    expect_nothing("kept-values");
}

/* Gradients allocated in step `from` at that line and freed before step `until` ends. Others are
 * allocated again in each step. */
static void keep_gradients(const char *line, uint32_t from, uint32_t until, uint64_t others)
{
    uint64_t gradient = 0, anew = 0;

    begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        phase_begins("zero_grad");
        if (i && others)
            give(anew);
        phase_ends("zero_grad");
        train();
        phase_begins("backward");
        if (i == from)
            gradient = take(line, 80 * MT_MIB);
        if (others)
            anew = take(NULL, others);
        phase_ends("backward");
        if (i == until)
            give(gradient);
        step_ends(i);
    }
}

TEST(gradients_that_stay_are_found)
{
    keep_gradients(NULL, 0, STEPS, 0);
    expect_finding("kept-gradients", 80 * MT_MIB);
    keep_gradients(NULL, 1, STEPS - 1, 0); /* the last step may be the one that ends them */
    expect_finding("kept-gradients", 80 * MT_MIB);
}

TEST(gradients_that_end_before_the_last_step_are_not_kept)
{
    keep_gradients(NULL, 0, STEPS - 2, 0);
    expect_nothing("kept-gradients");
}

TEST(gradients_that_come_late_are_not_kept)
{
    keep_gradients(NULL, 2, STEPS, 0);
    expect_nothing("kept-gradients");
}

TEST(most_gradients_have_to_stay)
{
    keep_gradients(NULL, 0, STEPS, 12 * MT_MIB); /* of five steps */
    expect_finding("kept-gradients", 80 * MT_MIB);
    keep_gradients(NULL, 0, STEPS, 18 * MT_MIB);
    expect_nothing("kept-gradients");
}

TEST(buckets_stay_by_design)
{
    keep_gradients("torch/nn/parallel/distributed.py:_ddp_init_helper:7", 0, STEPS, 0);
    expect_nothing("kept-gradients");
    keep_gradients("model.py:hook:7", 0, STEPS, 0);
    expect_finding("kept-gradients", 80 * MT_MIB);
}

TEST(without_zero_grad_gradients_add_up_on_purpose)
{
    begin();
    for (uint32_t i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        if (!i)
            (void)take_in("backward", NULL, 80 * MT_MIB);
        step_ends(i);
    }
    expect_nothing("kept-gradients");
}

/* Under a limit of 100 MiB, the second of two blocks is refused, and both are freed. */
TEST(the_free_of_a_refused_request_counts_once)
{
    const struct mt_analyze_options options = {
        .replay = {.policy = "pytorch", .limit_bytes = 100 * MT_MIB}};

    program_begin();
    uint64_t small = take("model.py:f:1", 50 * MT_MIB);
    uint64_t large = take("model.py:f:2", 200 * MT_MIB);
    give(large);
    give(small);
    struct mt_report *report = program_report_with(&options);
    assert_int_equal(report->devices[0].allocations, 2);
    assert_int_equal(report->devices[0].frees, 2);
    program_end(report);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
