/* Rules of findings about what a model call allocates and keeps, and about unused memory. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "finding_program.h"

/* Blocks of a function deep below `loss`, two thirds of the peak. */
static void hold_below(const char *loss)
{
    char stack[4096];
    size_t length = 0, i;

    for (i = 0; i < 100; i++)
        length += (size_t)snprintf(stack + length, sizeof stack - length, "native.py:f:%zu < ", i);
    snprintf(stack + length, sizeof stack - length, "%s < train.py:step:7", loss);
    begin();
    (void)take(stack, 100 * MT_MIB);
}

/* The distance between the innermost frame and the loss does not matter. */
TEST(all_callers_are_looked_at)
{
    hold_below("functional.py:cross_entropy:3");
    expect_finding("loss-peak", 100 * MT_MIB);
    hold_below("functional.py:something_else:3");
    expect_nothing("loss-peak");
}

/* A function of the program with the same name, and its callers. */
TEST(namesakes_are_no_loss)
{
    hold_below("mine.py:cross_entropy:3");
    expect_nothing("loss-peak");
    hold_below("mine.py:cross_entropy:3 < functional.py:cross_entropy:3");
    expect_nothing("loss-peak");
    hold_below("functional.py:cross_entropy:3 < mine.py:cross_entropy:3");
    expect_finding("loss-peak", 100 * MT_MIB);
}

static bool is_rank;

static void expect_typed(const char *given, const char *recorded, const char *expected)
{
    const struct mt_analyze_options options = {.command = given};

    hold_below("functional.py:cross_entropy:3");
    program.source.source.header.command = recorded;
    program.source.source.header.world_size = is_rank ? 8 : 1;
    struct mt_report *report = program_report_with(&options);
    const struct mt_finding *finding = finding_of(report, "loss-peak");
    assert_string_equal(finding->change, "chunked-loss=8");
    if (expected)
        assert_string_equal(finding->proved_by, expected);
    else
        assert_null(finding->proved_by);
    program_end(report);
}

/* Words with blanks are lost in a recorded command line, and a rank is not the whole job. */
TEST(advice_is_checked_on_paper)
{
    expect_typed("python 'my train.py'", NULL,
                 "memtrace dry-run --apply chunked-loss=8 -- python 'my train.py'");
    expect_typed(NULL, "python train.py --lr 1e-3",
                 "memtrace dry-run --apply chunked-loss=8 -- python train.py --lr 1e-3");
    expect_typed(NULL, "python train.py --text what's", NULL);
    expect_typed(NULL, NULL, NULL);
    is_rank = true;
    expect_typed(NULL, "python train.py", NULL);
    is_rank = false;
}

/* A forward pass of `layers`, each called from its own line. Each keeps the blocks of `lines`
 * lines, 20 MiB each. */
static void call_of_layers(uint32_t layers, uint32_t lines)
{
    char line[64];

    phase_begins("forward");
    for (uint32_t i = 0; i < layers; i++)
        for (uint32_t j = 0; j < lines; j++) {
            snprintf(line, sizeof line, "model.py:layer:%u < model.py:forward:%u", j + 1, i + 50);
            (void)take(line, 20 * MT_MIB);
        }
    phase_ends("forward");
}

static void forward_alone(uint32_t layers, uint32_t lines)
{
    begin();
    call_of_layers(layers, lines);
}

TEST(blocks_that_forward_keeps_are_found)
{
    forward_alone(6, 5);
    expect_finding("kept-forward", 600 * MT_MIB);
    forward_alone(6, 5);
    struct mt_report *report = program_report();
    assert_true(has_evidence(
        finding_of(report, "kept-forward"),
        "30 blocks from 5 lines; the line with most bytes is layer model.py:1: 120 MiB"));
    program_end(report);
}

/* Forward, then backward, with or without a training step around or before them. */
static void one_pass(bool step_before)
{
    uint64_t hidden;

    begin();
    if (step_before) {
        step_begins(0);
        train();
        step_ends(0);
    }
    hidden = take_in("forward", "model.py:hidden:9", 200 * MT_MIB);
    phase_begins("backward");
    give(take(NULL, 20 * MT_MIB));
    give(hidden);
    phase_ends("backward");
}

TEST(activations_wait_without_steps)
{
    one_pass(false);
    expect_finding("held-activations", 200 * MT_MIB);
}

/* There are steps, but the peak is outside of them: it may hold older blocks. */
TEST(activations_beside_steps_may_not_wait)
{
    one_pass(true);
    expect_nothing("held-activations");
}

/* The loss has a range of its own, and the peak. */
TEST(the_loss_belongs_to_the_forward_pass_before)
{
    forward_alone(6, 5);
    phase_begins("loss");
    (void)take("train.py:loss_of:7", 10 * MT_MIB);
    phase_ends("loss");
    expect_finding("kept-forward", 610 * MT_MIB);
}

/* Results of the call before exist while this one runs: its graph counts once. */
TEST(the_graph_of_the_call_before_is_named)
{
    forward_alone(6, 5);
    call_of_layers(6, 5);
    struct mt_report *report = program_report();
    assert_int_equal(finding_of(report, "kept-forward")->bytes, 1200 * MT_MIB);
    assert_true(has_evidence(
        finding_of(report, "kept-forward"),
        "600 MiB of it belongs to earlier calls, whose results still exist in this call"));
    assert_null(finding_of(report, "earlier-results"));
    program_end(report);
}

/* The call that runs out of memory may be the forward pass of training. If an earlier call's graph
 * still exists, it is not. */
TEST(a_call_that_is_cut_may_have_a_backward)
{
    for (int calls = 1; calls <= 2; calls++) {
        forward_alone(6, 5);
        if (calls > 1)
            call_of_layers(6, 5);
        program.count--; /* the end of the call */
        refuse("model.py:layer:1", 20 * MT_MIB);
        if (calls == 1)
            expect_nothing("kept-forward");
        else
            expect_finding("kept-forward", 1200 * MT_MIB);
    }
}

static const char *advice_of_forward(struct mt_report **report)
{
    *report = program_report();
    const struct mt_finding *finding = finding_of(*report, "kept-forward");
    assert_non_null(finding);
    return finding->advice;
}

/* A program with an optimizer's state trains, so no_grad is no advice for it. */
TEST(training_needs_blocks_that_forward_keeps)
{
    struct mt_report *report;

    forward_alone(6, 5);
    (void)program_stack("net.py:constrain:3");
    assert_non_null(strstr(advice_of_forward(&report), "torch.no_grad()"));
    program_end(report);
    forward_alone(6, 5);
    (void)program_stack("run.py:train_step:3");
    assert_null(strstr(advice_of_forward(&report), "torch.no_grad()"));
    program_end(report);
    forward_alone(6, 5);
    program.source.source.header.starts_in_middle = true;
    program.events[0].flags = MT_EVENT_INITIAL;
    program.events[0].stack = program_stack("torch/optim/adam.py:_init_group:5");
    assert_null(strstr(advice_of_forward(&report), "torch.no_grad()"));
    program_end(report);
    forward_alone(6, 5);
    phase_begins("loss");
    (void)take("train.py:loss_of:7", 10 * MT_MIB);
    phase_ends("loss");
    program.source.source.header.starts_in_middle = true;
    program.events[0].flags = MT_EVENT_INITIAL;
    program.events[0].stack = program_stack("torch/optim/adam.py:_init_group:5");
    expect_nothing("kept-forward");
}

/* A graph that the program drops: if roles of some of its blocks are recorded, their ends count. */
TEST(a_graph_with_recorded_roles)
{
    uint64_t blocks[60];

    begin();
    phase_begins("forward");
    for (uint32_t i = 0; i < 60; i++) {
        blocks[i] = take("model.py:layer:1", MT_MIB);
        if (i % 2)
            program.events[program.count - 1].name = program_text("temporaries");
    }
    for (uint32_t i = 0; i < 60; i++)
        give(blocks[i]);
    phase_ends("forward");
    struct mt_report *report = program_report();
    assert_int_equal(report->devices[0].peak_role_bytes[MT_ROLE_ACTIVATIONS], 30 * MT_MIB);
    assert_int_equal(report->devices[0].peak_role_bytes[MT_ROLE_TEMPORARIES], 30 * MT_MIB);
    program_end(report);
}

/* Keys and values come from two lines, whatever the number of layers. */
TEST(a_cache_is_no_graph)
{
    forward_alone(20, 2);
    expect_nothing("kept-forward");
}

TEST(blocks_for_a_recorded_backward_are_not_reported)
{
    forward_alone(6, 5);
    phase_begins("backward");
    give(program.next_addr - 20 * MT_MIB); /* the last one: the peak is that of forward */
    give(take(NULL, 10 * MT_MIB));
    phase_ends("backward");
    expect_nothing("kept-forward");
}

/* Calls of a model: each makes `results` of 100 MiB at one line. They end after the next call has
 * made its own. */
static void call_again(uint32_t calls, uint32_t results, bool trains)
{
    uint64_t kept[8] = {0};

    begin();
    for (uint32_t i = 0; i < calls; i++) {
        uint64_t made[8];

        phase_begins("forward");
        for (uint32_t j = 0; j < results; j++)
            made[j] = take("model.py:head:9 < run.py:main:3", 100 * MT_MIB);
        phase_ends("forward");
        for (uint32_t j = 0; i && j < results; j++)
            give(kept[j]);
        memcpy(kept, made, sizeof kept);
    }
    if (trains) {
        phase_begins("backward");
        give(take(NULL, 20 * MT_MIB));
        phase_ends("backward");
    }
}

TEST(results_of_earlier_calls_are_found)
{
    call_again(3, 1, false);
    expect_finding("earlier-results", 100 * MT_MIB);
}

TEST(one_call_has_no_earlier_results)
{
    call_again(1, 1, false);
    expect_nothing("earlier-results");
}

/* Lines that allocate a different size in each call. */
TEST(results_of_other_sizes_are_no_successors)
{
    begin();
    for (uint32_t i = 0; i < 2; i++) {
        phase_begins("forward");
        (void)take("model.py:head:9 < run.py:main:3", (100 + i) * MT_MIB);
        phase_ends("forward");
    }
    expect_nothing("earlier-results");
}

/* Several blocks of one line in a call are a cache. */
TEST(a_cache_is_no_result)
{
    call_again(3, 2, false);
    expect_nothing("earlier-results");
}

TEST(backward_may_need_earlier_results)
{
    call_again(3, 1, true);
    expect_nothing("earlier-results");
}

static void attend(const char *stack)
{
    begin();
    phase_begins("forward");
    (void)take(stack, 100 * MT_MIB);
    phase_ends("forward");
}

TEST(matrices_of_attention_are_found)
{
    attend("native.cpp:_softmax:0 < functional.py:softmax:5 < module.py:_call_impl:1 < "
           "model.py:EagerAttention:7");
    expect_finding("attention-matrices", 100 * MT_MIB);
    attend("functional.py:softmax:5 < a.py:a:1 < a.py:b:1 < model.py:attention:7");
    expect_finding("attention-matrices", 100 * MT_MIB);
}

/* Together, two blocks of 50 MiB have more bytes than the largest block. */
TEST(the_largest_matrix_is_a_block)
{
    static const uint64_t mib[] = {50, 50, 60};

    begin();
    phase_begins("forward");
    for (size_t i = 0; i < MT_ARRAY_LEN(mib); i++)
        (void)take("functional.py:softmax:5 < model.py:attention:7", mib[i] * MT_MIB);
    phase_ends("forward");
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "attention-matrices");
    assert_non_null(finding);
    assert_true(has_evidence(
        finding,
        "3 softmax results of up to 60.0 MiB; scores and masks of that size are not counted"));
    program_end(report);
}

/* Softmax over classes, of gates outside of attention, of a loss, and fused. */
TEST(other_softmax_is_no_matrix)
{
    static const char *const stacks[] = {
        "functional.py:softmax:5 < model.py:classify:7",
        ("functional.py:softmax:5 < a.py:a:1 < a.py:b:1 < a.py:c:1 < a.py:d:1 < a.py:e:1 < "
         "a.py:f:1 < model.py:attention:7"),
        "functional.py:softmax:5 < a.py:a:1 < a.py:b:1 < a.py:c:1 < model.py:attention:7",
        "functional.py:log_softmax:5 < model.py:AttentionClassifier:7",
        "native.cpp:scaled_dot_product:0 < model.py:attention:7",
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(stacks); i++) {
        attend(stacks[i]);
        expect_nothing("attention-matrices");
    }
}

/* Without history: a segment of that size with a block of 100 MiB. */
static void one_instant(uint64_t segment_bytes)
{
    program_begin();
    program.source.source.header.starts_in_middle = true;
    program.source.source.header.has_segments = true;
    program_add(MT_EVENT_SEGMENT_ALLOC, (struct mt_event){.addr = program.next_addr,
                                                          .size_bytes = segment_bytes,
                                                          .flags = MT_EVENT_INITIAL,
                                                          .name = MT_NO_ID,
                                                          .stack = MT_NO_ID});
    program_add(MT_EVENT_ALLOC, (struct mt_event){.addr = program.next_addr,
                                                  .size_bytes = 100 * MT_MIB,
                                                  .aux_bytes = 100 * MT_MIB,
                                                  .flags = MT_EVENT_INITIAL,
                                                  .name = MT_NO_ID,
                                                  .stack = MT_NO_ID});
}

TEST(idle_memory_is_found_without_a_history)
{
    one_instant(500 * MT_MIB);
    expect_finding("cached-memory", 400 * MT_MIB);
    one_instant(120 * MT_MIB);
    expect_nothing("cached-memory");
}

TEST(with_a_history_idle_memory_is_not_reported)
{
    one_instant(500 * MT_MIB);
    program.next_addr += 200 * MT_MIB;
    give(take("train.py:main:1", 20 * MT_MIB));
    expect_nothing("cached-memory");
}

/* 500 MiB reserved at the start, 400 MiB of them in a segment without blocks, which the steps use
 * for a block of that size. */
static void cached_before(unsigned steps, uint64_t bytes)
{
    const uint64_t cached = UINT64_C(0x7f1000000000);

    one_instant(100 * MT_MIB);
    program.source.source.header.has_free_completed = true;
    program_add(MT_EVENT_SEGMENT_ALLOC, (struct mt_event){.addr = cached,
                                                          .size_bytes = 400 * MT_MIB,
                                                          .flags = MT_EVENT_INITIAL,
                                                          .name = MT_NO_ID,
                                                          .stack = MT_NO_ID});
    for (unsigned i = 0; i < steps; i++) {
        step_begins(i);
        program.next_addr = cached;
        give(take("model.py:forward:1", bytes));
        step_ends(i);
    }
}

TEST(a_cache_that_no_step_needs_is_found)
{
    cached_before(2, 40 * MT_MIB);
    expect_finding("cached-memory", 360 * MT_MIB);
    cached_before(2, 380 * MT_MIB); /* steps need it */
    expect_nothing("cached-memory");
    cached_before(1, 40 * MT_MIB); /* others may need it */
    expect_nothing("cached-memory");
    for (unsigned steps = 2; steps <= 3; steps++) { /* and so may the rest of the last one */
        cached_before(steps, 40 * MT_MIB);
        program.count--;
        if (steps == 2)
            expect_nothing("cached-memory");
        else
            expect_finding("cached-memory", 360 * MT_MIB);
    }
}

/* Three blocks of 100 MiB in turn; each waits until the last was requested, if `waits` is set. */
static void free_in_turn(bool waits, const char *line)
{
    uint64_t addr[3];

    program_begin();
    program.source.source.header.has_free_completed = true;
    (void)take("model.py:init:1", 100 * MT_MIB);
    for (unsigned i = 0; i < 3; i++) {
        addr[i] = take(line, 100 * MT_MIB);
        program_add(MT_EVENT_FREE_REQUESTED,
                    (struct mt_event){.addr = addr[i], .name = MT_NO_ID, .stack = MT_NO_ID});
        for (unsigned j = waits ? 0 : i; j <= i && (!waits || i == 2); j++)
            program_add(MT_EVENT_FREE_COMPLETED,
                        (struct mt_event){.addr = addr[j], .name = MT_NO_ID, .stack = MT_NO_ID});
    }
}

TEST(frees_that_wait_for_a_stream_are_found)
{
    free_in_turn(true, "train.py:load:3");
    expect_finding("waiting-for-stream", 200 * MT_MIB);
    free_in_turn(false, "train.py:load:3");
    expect_nothing("waiting-for-stream");
    free_in_turn(true, NULL);
    expect_nothing("waiting-for-stream");
    free_in_turn(true, "train.py:load:3"); /* completed frees were not recorded */
    program.source.source.header.has_free_completed = false;
    expect_nothing("waiting-for-stream");
}

/* A request that failed at the end of the run. */
static const struct mt_finding *refused(uint64_t bytes, struct mt_report **report)
{
    begin_replayable();
    refuse("/site-packages/torch/functional.py:cdist:9 < model.py:forward:5 < train.py:step:7",
           bytes);
    *report = program_report();
    return finding_of(*report, "out-of-memory");
}

TEST(a_size_that_no_device_has_is_wrong)
{
    struct mt_report *report;
    const struct mt_finding *finding = refused(UINT64_C(128) << 40, &report);

    assert_non_null(finding);
    assert_string_equal(finding->title,
                        "128 TiB was requested, more than any device has: the size is wrong");
    assert_non_null(strstr(finding->advice, "model.py:5"));
    assert_non_null(strstr(finding->advice, "train.py:7"));
    assert_int_equal(report->devices[0].oom_answer->way_count, 0);
    program_end(report);
    finding = refused(UINT64_C(300) << 30, &report);
    assert_null(strstr(finding->title, "wrong"));
    assert_true(report->devices[0].oom_answer->way_count > 0);
    program_end(report);
}

/* An error of a program under a limit: activations of 600 MiB at the peak, and of `then` bytes when
 * memory ran out while the driver had `free_bytes` more. */
static const struct mt_finding *died(uint64_t then, uint64_t free_bytes, struct mt_report **report)
{
    uint64_t hidden;

    begin();
    hidden = take_in("forward", "model.py:hidden:9", 600 * MT_MIB);
    phase_begins("backward");
    give(take(NULL, 20 * MT_MIB));
    give(hidden);
    phase_ends("backward");
    (void)take_in("validate", "eval.py:f:1", 400 * MT_MIB);
    if (then)
        (void)take_in("forward", "model.py:hidden:9", then);
    program_add(MT_EVENT_OOM, (struct mt_event){.size_bytes = 100 * MT_MIB,
                                                .aux_bytes = free_bytes,
                                                .name = MT_NO_ID,
                                                .stack = program_stack("eval.py:f:2")});
    *report = program_report();
    assert_non_null(finding_of(*report, "held-activations"));
    return finding_of(*report, "out-of-memory");
}

/* Advice about the peak of training is none about an error in validation. */
TEST(advice_is_about_blocks_that_were_alive)
{
    struct mt_report *report;

    assert_null(strstr(died(0, 0, &report)->advice, "save_on_cpu"));
    program_end(report);
    assert_non_null(strstr(died(200 * MT_MIB, 0, &report)->advice, "save_on_cpu"));
    program_end(report);
}

TEST(a_limit_of_the_process_costs_nothing)
{
    struct mt_report *report;
    const struct mt_finding *finding = died(200 * MT_MIB, 8192 * MT_MIB, &report);

    assert_non_null(strstr(finding->advice, "set_per_process_memory_fraction"));
    assert_null(finding->cost);
    program_end(report);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
