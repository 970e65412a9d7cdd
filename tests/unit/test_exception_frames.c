/* Memory that a failed attempt leaves behind: which blocks belong to it, what counts as a retry,
 * and similar cases that are not retries. */
#include "cmocka_all.h"

#include "step_program.h"
#include "util.h"

#define LAYERS  4
#define BLOCK   (64 * MT_MIB)
#define CALLED  " < train.py:run:20 < train.py:main:40"
#define RETRIED " < train.py:run:20 < train.py:main:44"

/* The blocks of a forward pass: one block, then two lines for each layer. */
struct pass {
    uint64_t blocks[1 + 2 * LAYERS];
    uint32_t count;
};

static void made(struct pass *pass, const char *line, const char *caller)
{
    char text[128];

    snprintf(text, sizeof text, "%s%s", line, caller);
    pass->blocks[pass->count++] = take(text, BLOCK);
}

static void layers(struct pass *pass, uint32_t from, uint32_t to, const char *caller)
{
    for (; from < to; from++) {
        made(pass, "model.py:layer:7", caller);
        made(pass, "model.py:layer:8", caller);
    }
}

static struct pass forward(uint32_t count, const char *caller)
{
    struct pass pass = {.count = 0};

    phase_begins("forward");
    made(&pass, "model.py:embed:3", caller);
    layers(&pass, 0, count, caller);
    phase_ends("forward");
    return pass;
}

/* Frees all blocks, without requests between. */
static void drop(const struct pass *pass)
{
    for (uint32_t i = 0; i < pass->count; i++)
        give(pass->blocks[i]);
}

/* Frees the blocks one by one, with requests between. */
static void backward(const struct pass *pass)
{
    phase_begins("backward");
    for (uint32_t i = pass->count; i > 0; i--) {
        uint64_t gradient = take(NULL, MT_MIB);
        give(pass->blocks[i - 1]);
        give(gradient);
    }
    phase_ends("backward");
}

static void good_step(unsigned number)
{
    step_begins(number);
    struct pass pass = forward(LAYERS, CALLED);
    backward(&pass);
    step_ends(number);
}

static struct pass begin(unsigned good_steps, uint32_t failed_layers)
{
    unsigned i;

    program_begin();
    (void)take("model.py:init:1", MT_MIB);
    for (i = 0; i < good_steps; i++)
        good_step(i);
    step_begins(i);
    struct pass failed = forward(failed_layers, CALLED);
    refuse("model.py:layer:9" CALLED, BLOCK);
    return failed;
}

static void try_again(const char *caller)
{
    struct pass pass = forward(LAYERS, caller);

    backward(&pass);
}

static void expect_nothing(void)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "exception-holds-frame");

    if (finding)
        fail_msg("%s", finding->title);
    program_end(report);
}

static void expect_held(uint32_t blocks, const char *evidence)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "exception-holds-frame");

    assert_non_null(finding);
    assert_int_equal(finding->bytes, blocks * BLOCK);
    assert_string_equal(finding->severity, "warning");
    if (!has_evidence(finding, evidence))
        fail_msg("%s; %s", finding->evidence[0], finding->evidence[1]);
    program_end(report);
}

TEST(blocks_that_stay_during_a_retry_are_found)
{
    struct pass failed = begin(2, 2);

    try_again(RETRIED);
    drop(&failed);
    step_ends(2);
    good_step(3);
    expect_held(5, "320 MiB of it is freed together, 67.0 µs after the request failed, with no "
                   "request in between");
}

/* Times of a dry run are meaningless, so no duration is printed. */
TEST(without_times_no_duration_is_printed)
{
    struct pass failed = begin(2, 2);

    program.source.source.header.dry_run = "version=1";
    try_again(RETRIED);
    drop(&failed);
    step_ends(2);
    good_step(3);
    expect_held(
        5, "320 MiB of it is freed together, after the request failed, with no request in between");
}

/* From one line, as in a loop. */
TEST(the_same_stack_again_is_a_new_attempt)
{
    struct pass failed = begin(2, 2);

    try_again(CALLED);
    drop(&failed);
    step_ends(2);
    expect_held(5, "5 blocks from 3 stacks; the largest, 64.0 MiB, is from embed model.py:3");
}

TEST(blocks_that_are_never_freed_are_found)
{
    (void)begin(2, 2);
    step_ends(2);
    good_step(3);
    good_step(4);
    expect_held(5, "320 MiB of it stays allocated until the trace ends");
}

TEST(in_the_first_step_a_line_that_ran_once_counts)
{
    struct pass failed = begin(0, 2);

    try_again(RETRIED);
    drop(&failed);
    step_ends(0);
    good_step(1);
    expect_held(5, "5 blocks from 3 stacks; the largest, 64.0 MiB, is from embed model.py:3");
}

/* The program handles the exception correctly. */
TEST(blocks_freed_before_the_retry_are_not_held)
{
    struct pass failed = begin(2, 2);

    drop(&failed);
    try_again(RETRIED);
    step_ends(2);
    expect_nothing();
}

/* A library tries a smaller request and forward continues: the program sees no exception. */
TEST(a_failure_that_a_library_handles_is_ignored)
{
    struct pass pass = begin(2, 2);

    phase_begins("forward");
    layers(&pass, 2, LAYERS, CALLED);
    phase_ends("forward");
    backward(&pass);
    step_ends(2);
    good_step(3);
    expect_nothing();
}

/* As above, with a graph that is dropped without backward, or that lives until the run fails. */
TEST(a_pass_that_continues_is_no_retry)
{
    struct pass pass = begin(2, 2);

    layers(&pass, 2, LAYERS, CALLED);
    drop(&pass);
    step_ends(2);
    good_step(3);
    expect_nothing();

    pass = begin(2, 2);
    layers(&pass, 2, LAYERS, CALLED);
    refuse("model.py:head:12" CALLED, BLOCK);
    drop(&pass);
    expect_nothing();
}

/* More layers than in the previous step: none of them is a retry. */
TEST(a_longer_pass_is_no_retry)
{
    program_begin();
    (void)take("model.py:init:1", MT_MIB);
    step_begins(0);
    struct pass pass = forward(1, CALLED);
    backward(&pass);
    step_ends(0);
    step_begins(1);
    pass = forward(2, CALLED);
    refuse("model.py:layer:9" CALLED, BLOCK);
    layers(&pass, 2, LAYERS, CALLED);
    drop(&pass);
    step_ends(1);
    expect_nothing();
}

/* The blocks are in use: the program computes the loss in parts after the whole did not fit. */
TEST(blocks_freed_one_by_one_are_in_use)
{
    struct pass failed = begin(2, 2);

    try_again(RETRIED);
    backward(&failed);
    step_ends(2);
    expect_nothing();
}

/* Every step leaves its graph behind, so the exception is not the cause. */
TEST(blocks_that_every_step_keeps_are_not_held)
{
    program_begin();
    (void)take("model.py:init:1", MT_MIB);
    for (unsigned i = 0; i < 5; i++) {
        step_begins(i);
        struct pass pass = forward(LAYERS, CALLED);
        if (i == 2) {
            refuse("model.py:layer:9" CALLED, BLOCK);
            layers(&pass, LAYERS, LAYERS, CALLED);
        }
        step_ends(i);
    }
    expect_nothing();
}

/* A library allocated a block at one of the lines in a previous step. It does not change the
 * result. */
TEST(one_old_block_of_the_same_line_does_not_matter)
{
    program_begin();
    (void)take("model.py:init:1", MT_MIB);
    good_step(0);
    step_begins(1);
    phase_begins("forward");
    (void)take("model.py:layer:7" CALLED, 3 * MT_MIB);
    phase_ends("forward");
    try_again(CALLED);
    step_ends(1);
    step_begins(2);
    struct pass failed = forward(3, CALLED);
    refuse("model.py:layer:9" CALLED, BLOCK);
    try_again(RETRIED);
    drop(&failed);
    step_ends(2);
    expect_held(7, "7 blocks from 3 stacks; the largest, 64.0 MiB, is from embed model.py:3");
}

/* Variables that keep their values until the next ones are assigned. */
TEST(few_blocks_are_values)
{
    struct pass failed = begin(2, 1);

    give(failed.blocks[--failed.count]);
    try_again(RETRIED);
    drop(&failed);
    step_ends(2);
    expect_nothing();
}

/* A list of equal objects. */
TEST(blocks_of_one_stack_are_values)
{
    struct pass kept;

    program_begin();
    (void)take("model.py:init:1", MT_MIB);
    good_step(0);
    step_begins(1);
    struct pass failed = forward(3, CALLED);
    refuse("model.py:layer:9" CALLED, BLOCK);
    kept =
        (struct pass){.blocks = {failed.blocks[1], failed.blocks[3], failed.blocks[5]}, .count = 3};
    for (uint32_t i = 0; i <= 6; i += 2)
        give(failed.blocks[i]);
    try_again(RETRIED);
    drop(&kept);
    step_ends(1);
    expect_nothing();
}

/* A retry that comes one step later does not count. */
TEST(late_retries_are_ignored)
{
    (void)begin(2, 2);
    step_ends(2);
    for (unsigned i = 3; i < 5; i++) {
        step_begins(i);
        give(take("metrics.py:count:3", BLOCK));
        step_ends(i);
    }
    good_step(5);
    expect_nothing();
}

/* Blocks made before the line that is retried belong to the caller. */
TEST(blocks_made_before_the_attempt_are_not_its)
{
    struct pass batch = {.count = 0}, failed;

    program_begin();
    (void)take("model.py:init:1", MT_MIB);
    good_step(0);
    good_step(1);
    step_begins(2);
    phase_begins("forward");
    made(&batch, "encoder.py:encode:5", " < train.py:main:30");
    phase_ends("forward");
    failed = forward(2, CALLED);
    refuse("model.py:layer:9" CALLED, BLOCK);
    try_again(RETRIED);
    drop(&failed);
    drop(&batch);
    step_ends(2);
    expect_held(5, "5 blocks from 3 stacks; the largest, 64.0 MiB, is from embed model.py:3");
}

/* The retry runs inside the except block of the previous attempt. */
TEST(attempts_that_fail_one_after_another_are_all_counted)
{
    struct pass first = begin(2, 3), second;

    second = forward(2, RETRIED);
    refuse("model.py:layer:9" RETRIED, BLOCK);
    try_again(RETRIED " < train.py:main:44");
    drop(&second);
    drop(&first);
    step_ends(2);
    expect_held(7, "1 more failed attempt left memory behind");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
