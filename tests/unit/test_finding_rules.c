/* The rules of findings, one by one: a program that is worth a word, and the same
 * program but for what one rule asks for. */
#include "cmocka_all.h"

#include "step_program.h"
#include "util.h"

#define STEPS 6

static void expect_finding(const char *id, uint64_t bytes)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, id);

    assert_non_null(finding);
    assert_int_equal(finding->bytes, bytes);
    program_end(report);
}

static void expect_nothing(const char *id)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, id);

    if (finding)
        fail_msg("%s", finding->title);
    program_end(report);
}

static uint64_t take_in(const char *phase, const char *line, uint64_t bytes)
{
    uint64_t addr;

    phase_begins(phase);
    addr = take(line, bytes);
    phase_ends(phase);
    return addr;
}

/* What every step of training does and is done with. */
static void train(void)
{
    uint64_t hidden = take_in("forward", "model.py:hidden:9", 100 * MT_MIB);

    phase_begins("backward");
    give(take(NULL, 20 * MT_MIB));
    give(hidden);
    phase_ends("backward");
}

static void begin(void)
{
    program_begin();
    (void)take("model.py:init:1", 50 * MT_MIB);
}

/* What is claimed there is replayed. */
static void begin_replayable(void)
{
    program_begin();
    program_with_segments();
    (void)take("model.py:init:1", 50 * MT_MIB);
}

/* A value of each step that lives on into the next until `given` steps are over, and
 * there until its successor is born. */
static void keep_values(const char *phase, const char *line, uint32_t steps)
{
    uint64_t kept[STEPS];
    uint32_t i;

    begin_replayable();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        kept[i] = take_in(phase, line, 200 * MT_MIB);
        if (i >= steps)
            give(kept[i - steps]);
        step_ends(i);
    }
}

static void values_that_wait_for_their_successor_are_found(void **unused)
{
    (void)unused;
    keep_values("validate", "train.py:predict:5", 1);
    expect_finding("kept-values", 200 * MT_MIB); /* two of them, or one beside the hidden one */
}

/* Batches are fetched ahead. */
static void what_forward_did_not_make_is_not_suspected(void **unused)
{
    (void)unused;
    keep_values("data", "train.py:fetch:5", 1);
    expect_nothing("kept-values");
}

static void what_has_no_stack_is_not_suspected(void **unused)
{
    (void)unused;
    keep_values("validate", NULL, 1);
    expect_nothing("kept-values");
}

static void what_lives_for_two_steps_is_not_suspected(void **unused)
{
    (void)unused;
    keep_values("validate", "train.py:predict:5", 2);
    expect_nothing("kept-values");
}

/* The next step is done with it before there is a new one: it may have read it. */
static void what_ends_before_its_successor_is_not_suspected(void **unused)
{
    uint64_t kept = 0;
    uint32_t i;

    (void)unused;
    begin_replayable();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        if (i < STEPS - 1) /* of the last, another rule tells */
            train();
        if (i)
            give(kept);
        kept = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        step_ends(i);
    }
    expect_nothing("kept-values");
}

/* Each step makes two, and is done with the old ones when it has the first. */
static void the_first_of_its_successors_counts(void **unused)
{
    uint64_t kept[2] = {0, 0}, first;
    uint32_t i;

    (void)unused;
    begin_replayable();
    for (i = 0; i < STEPS; i++) {
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

/* Every other step makes one, and the next is done with it. */
static void what_has_no_successor_is_not_suspected(void **unused)
{
    uint64_t kept = 0;
    uint32_t i;

    (void)unused;
    begin_replayable();
    for (i = 0; i < STEPS; i++) {
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

/* What makes the peak in the last step, and has no successor there that outlives it: `late`, the
 * one before was there until that was born. */
static void keep_in_the_last_step(bool late)
{
    uint64_t kept = 0, next = 0;
    uint32_t i;

    begin_replayable();
    for (i = 0; i < STEPS; i++) {
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

static void in_the_last_step_the_one_before_tells(void **unused)
{
    (void)unused;
    keep_in_the_last_step(true);
    expect_finding("kept-values", 200 * MT_MIB);
    keep_in_the_last_step(false);
    expect_nothing("kept-values");
}

/* A cache that is replaced by its longer self is read. */
static void without_training_nothing_is_suspected(void **unused)
{
    uint64_t kept = 0, next;
    uint32_t i;

    (void)unused;
    begin_replayable();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        next = take_in("validate", "train.py:predict:5", 200 * MT_MIB);
        if (i)
            give(kept);
        kept = next;
        step_ends(i);
    }
    expect_nothing("kept-values");
}

/* Gradients made in step `from` at that line, given back before step `until` ends;
 * others, made anew in each step. */
static void keep_gradients(const char *line, uint32_t from, uint32_t until, uint64_t others)
{
    uint64_t gradient = 0, anew = 0;
    uint32_t i;

    begin();
    for (i = 0; i < STEPS; i++) {
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

static void gradients_that_stay_are_found(void **unused)
{
    (void)unused;
    keep_gradients(NULL, 0, STEPS, 0);
    expect_finding("kept-gradients", 80 * MT_MIB);
    keep_gradients(NULL, 1, STEPS - 1, 0); /* the last step may be the one that ends them */
    expect_finding("kept-gradients", 80 * MT_MIB);
}

static void gradients_that_end_before_the_last_step_are_not_kept(void **unused)
{
    (void)unused;
    keep_gradients(NULL, 0, STEPS - 2, 0);
    expect_nothing("kept-gradients");
}

static void gradients_that_come_late_are_not_kept(void **unused)
{
    (void)unused;
    keep_gradients(NULL, 2, STEPS, 0);
    expect_nothing("kept-gradients");
}

static void most_gradients_have_to_stay(void **unused)
{
    (void)unused;
    keep_gradients(NULL, 0, STEPS, 12 * MT_MIB); /* of five steps */
    expect_finding("kept-gradients", 80 * MT_MIB);
    keep_gradients(NULL, 0, STEPS, 18 * MT_MIB);
    expect_nothing("kept-gradients");
}

static void buckets_stay_by_design(void **unused)
{
    (void)unused;
    keep_gradients("torch/nn/parallel/distributed.py:_ddp_init_helper:7", 0, STEPS, 0);
    expect_nothing("kept-gradients");
    keep_gradients("model.py:hook:7", 0, STEPS, 0);
    expect_finding("kept-gradients", 80 * MT_MIB);
}

static void without_zero_grad_gradients_add_up_on_purpose(void **unused)
{
    uint32_t i;

    (void)unused;
    begin();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        if (!i)
            (void)take_in("backward", NULL, 80 * MT_MIB);
        step_ends(i);
    }
    expect_nothing("kept-gradients");
}

static uint64_t others_bytes; /* there all the time */

/* A block of the optimizer's step at that line; `kept`: it is state, not a temporary. */
static void make_in_the_optimizer(const char *line, uint64_t bytes, bool kept)
{
    uint32_t i;

    begin();
    (void)take("model.py:init:2", others_bytes);
    for (i = 0; i < STEPS; i++) {
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

static void temporaries_of_all_parameters_are_found(void **unused)
{
    (void)unused;
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 200 * MT_MIB, false);
    expect_finding("foreach-peak", 200 * MT_MIB);
    make_in_the_optimizer("torch/optim/adam.py:_single_tensor_adam:5", 200 * MT_MIB, false);
    expect_nothing("foreach-peak");
}

/* SGD makes its momentum there. */
static void state_is_no_temporary(void **unused)
{
    (void)unused;
    make_in_the_optimizer("torch/optim/sgd.py:_multi_tensor_sgd:5", 200 * MT_MIB, true);
    expect_nothing("foreach-peak");
}

static void a_small_part_of_the_peak_is_not_found(void **unused)
{
    (void)unused;
    others_bytes = 1300 * MT_MIB;
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 130 * MT_MIB, false);
    expect_nothing("foreach-peak");
    others_bytes = 900 * MT_MIB;
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 130 * MT_MIB, false);
    expect_finding("foreach-peak", 130 * MT_MIB);
    others_bytes = 0;
}

/* The peak is that of backward. */
static void what_is_not_there_at_the_peak_is_not_found(void **unused)
{
    (void)unused;
    make_in_the_optimizer("torch/optim/adam.py:_multi_tensor_adam:5", 90 * MT_MIB, false);
    expect_nothing("foreach-peak");
}

/* A step of an optimizer that makes lists for so many parameters of 100 MiB, one after the other,
 * each from a line of its own: they go together. Beside them 100 MiB of state, made there, too, and
 * 100 MiB of somebody else's; both stay. */
static void make_lists(const char *function, uint32_t lists, uint32_t parameters)
{
    uint64_t made[16], other;
    uint32_t i, j, count;
    char line[96];

    begin_replayable();
    for (i = 0; i < STEPS; i++) {
        step_begins(i);
        train();
        phase_begins("optimizer");
        other = take("clip.py:clip:3", 100 * MT_MIB);
        if (!i)
            (void)take("torch/optim/optimizer.py:_multi_tensor_sgd:9", 100 * MT_MIB);
        for (j = count = 0; j < lists * parameters; j++) {
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

static void one_parameter_at_a_time_takes_less(void **unused)
{
    (void)unused;
    make_lists("_multi_tensor_adagrad", 1, 8);
    expect_foreach(500 * MT_MIB, "warning",
                   "replayed with 3 of one parameter at a time, as many as foreach=False may have: "
                   "550 MiB allocated instead of 1.03 GiB, 570 MiB reserved instead of 1.04 GiB");
    make_lists("_multi_tensor_adagrad", 2, 8);
    expect_foreach(1200 * MT_MIB, "warning",
                   "replayed with 4 of one parameter at a time, as many as foreach=False may have: "
                   "650 MiB allocated instead of 1.81 GiB, 670 MiB reserved instead of 1.83 GiB");
}

static void one_parameter_at_a_time_may_take_as_much(void **unused)
{
    static const char evidence[] =
        "replayed with 3 of one parameter at a time, as many as foreach=False may have: 550 MiB "
        "allocated instead of 550 MiB, 570 MiB reserved instead of 570 MiB";

    (void)unused;
    make_lists("_multi_tensor_adagrad", 1, 3);
    expect_foreach(300 * MT_MIB, "info", evidence);
    make_lists("_multi_tensor_adam", 1, 3); /* that can be fused: none at all */
    expect_foreach(200 * MT_MIB, "warning", evidence);
}

/* What a function deep below `loss` made, two thirds of the peak. */
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

/* However far from the innermost frame the loss is. */
static void all_callers_are_looked_at(void **state)
{
    (void)state;
    hold_below("functional.py:cross_entropy:3");
    expect_finding("loss-peak", 100 * MT_MIB);
    hold_below("functional.py:something_else:3");
    expect_nothing("loss-peak");
}

/* A function of the program that has the same name, and what calls it. */
static void namesakes_are_no_loss(void **state)
{
    (void)state;
    hold_below("mine.py:cross_entropy:3");
    expect_nothing("loss-peak");
    hold_below("mine.py:cross_entropy:3 < functional.py:cross_entropy:3");
    expect_nothing("loss-peak");
    hold_below("functional.py:cross_entropy:3 < mine.py:cross_entropy:3");
    expect_finding("loss-peak", 100 * MT_MIB);
}

/* A forward pass of `layers`, each called from a line of its own, which keep what `lines` lines
 * make: 20 MiB each. */
static void forward_alone(uint32_t layers, uint32_t lines)
{
    char line[64];
    uint32_t i, j;

    begin();
    phase_begins("forward");
    for (i = 0; i < layers; i++)
        for (j = 0; j < lines; j++) {
            snprintf(line, sizeof line, "model.py:layer:%u < model.py:forward:%u", j + 1, i + 50);
            (void)take(line, 20 * MT_MIB);
        }
    phase_ends("forward");
}

static void what_forward_keeps_is_found(void **unused)
{
    struct mt_report *report;

    (void)unused;
    forward_alone(6, 5);
    expect_finding("kept-forward", 600 * MT_MIB);
    forward_alone(6, 5);
    report = program_report();
    assert_true(has_evidence(finding_of(report, "kept-forward"),
                             "30 blocks from 5 lines, most bytes from layer model.py:1: 120 MiB"));
    program_end(report);
}

/* Forward, then backward, with or without a step of training around or before them. */
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

static void activations_wait_without_steps(void **unused)
{
    (void)unused;
    one_pass(false);
    expect_finding("held-activations", 200 * MT_MIB);
}

/* There are steps, and the peak is in none: what it holds may be older. */
static void activations_beside_steps_may_not_wait(void **unused)
{
    (void)unused;
    one_pass(true);
    expect_nothing("held-activations");
}

static const char *advice_of_forward(struct mt_report **report)
{
    const struct mt_finding *finding;

    *report = program_report();
    finding = finding_of(*report, "kept-forward");
    assert_non_null(finding);
    return finding->advice;
}

/* A program that holds an optimizer's state trains: no_grad is no advice for it. */
static void training_needs_what_forward_keeps(void **unused)
{
    struct mt_report *report;

    (void)unused;
    forward_alone(6, 5);
    assert_non_null(strstr(advice_of_forward(&report), "torch.no_grad()"));
    program_end(report);
    forward_alone(6, 5);
    program.source.source.header.starts_in_middle = true;
    program.events[0].flags = MT_EVENT_INITIAL;
    program.events[0].stack = program_stack("torch/optim/adam.py:_init_group:5");
    assert_null(strstr(advice_of_forward(&report), "torch.no_grad()"));
    program_end(report);
}

/* Keys and values have two lines, however many layers there are. */
static void a_cache_is_no_graph(void **unused)
{
    (void)unused;
    forward_alone(20, 2);
    expect_nothing("kept-forward");
}

static void what_a_recorded_backward_needs_is_no_mistake(void **unused)
{
    (void)unused;
    forward_alone(6, 5);
    phase_begins("backward");
    give(program.next_addr - 20 * MT_MIB); /* the last one: the peak is that of forward */
    give(take(NULL, 10 * MT_MIB));
    phase_ends("backward");
    expect_nothing("kept-forward");
}

/* Calls of a model: each makes `results` of 100 MiB at one line, which end when the next call has
 * made its own. */
static void call_again(uint32_t calls, uint32_t results, bool trains)
{
    uint64_t kept[8] = {0};
    uint32_t i, j;

    begin();
    for (i = 0; i < calls; i++) {
        uint64_t made[8];

        phase_begins("forward");
        for (j = 0; j < results; j++)
            made[j] = take("model.py:head:9 < run.py:main:3", 100 * MT_MIB);
        phase_ends("forward");
        for (j = 0; i && j < results; j++)
            give(kept[j]);
        memcpy(kept, made, sizeof kept);
    }
    if (trains) {
        phase_begins("backward");
        give(take(NULL, 20 * MT_MIB));
        phase_ends("backward");
    }
}

static void results_of_earlier_calls_are_found(void **unused)
{
    (void)unused;
    call_again(3, 1, false);
    expect_finding("earlier-results", 100 * MT_MIB);
}

static void one_call_has_no_earlier_results(void **unused)
{
    (void)unused;
    call_again(1, 1, false);
    expect_nothing("earlier-results");
}

/* Lines of which each makes a block of another size in each call. */
static void results_of_other_sizes_are_no_successors(void **unused)
{
    (void)unused;
    begin();
    for (uint32_t i = 0; i < 2; i++) {
        phase_begins("forward");
        (void)take("model.py:head:9 < run.py:main:3", (100 + i) * MT_MIB);
        phase_ends("forward");
    }
    expect_nothing("earlier-results");
}

/* Several of one line in a call: a cache. */
static void a_cache_is_no_result(void **unused)
{
    (void)unused;
    call_again(3, 2, false);
    expect_nothing("earlier-results");
}

static void backward_may_need_earlier_results(void **unused)
{
    (void)unused;
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

static void matrices_of_attention_are_found(void **unused)
{
    (void)unused;
    attend("native.cpp:_softmax:0 < functional.py:softmax:5 < module.py:_call_impl:1 < "
           "model.py:EagerAttention:7");
    expect_finding("attention-matrices", 100 * MT_MIB);
    attend("functional.py:softmax:5 < a.py:a:1 < a.py:b:1 < model.py:attention:7");
    expect_finding("attention-matrices", 100 * MT_MIB);
}

/* Two blocks of 50 MiB have more bytes than the largest one. */
static void the_largest_matrix_is_a_block(void **unused)
{
    static const uint64_t mib[] = {50, 50, 60};
    const struct mt_finding *finding;
    struct mt_report *report;

    (void)unused;
    begin();
    phase_begins("forward");
    for (size_t i = 0; i < MT_ARRAY_LEN(mib); i++)
        (void)take("functional.py:softmax:5 < model.py:attention:7", mib[i] * MT_MIB);
    phase_ends("forward");
    report = program_report();
    finding = finding_of(report, "attention-matrices");
    assert_non_null(finding);
    assert_true(has_evidence(finding, "3 results of softmax of up to 60.0 MiB; scores and masks "
                                      "of that size are not counted"));
    program_end(report);
}

/* Of classes; of gates that attention is far from; of a loss; fused. */
static void other_softmax_is_no_matrix(void **unused)
{
    static const char *const stacks[] = {
        "functional.py:softmax:5 < model.py:classify:7",
        ("functional.py:softmax:5 < a.py:a:1 < a.py:b:1 < a.py:c:1 < a.py:d:1 < a.py:e:1 < "
         "a.py:f:1 < model.py:attention:7"),
        "functional.py:softmax:5 < a.py:a:1 < a.py:b:1 < a.py:c:1 < model.py:attention:7",
        "functional.py:log_softmax:5 < model.py:AttentionClassifier:7",
        "native.cpp:scaled_dot_product:0 < model.py:attention:7",
    };

    (void)unused;
    for (size_t i = 0; i < MT_ARRAY_LEN(stacks); i++) {
        attend(stacks[i]);
        expect_nothing("attention-matrices");
    }
}

/* No history: a segment of that size with a block of 100 MiB. */
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

static void idle_memory_is_found_without_a_history(void **unused)
{
    (void)unused;
    one_instant(500 * MT_MIB);
    expect_finding("cached-memory", 400 * MT_MIB);
    one_instant(120 * MT_MIB);
    expect_nothing("cached-memory");
}

static void with_a_history_idle_memory_is_no_news(void **unused)
{
    (void)unused;
    one_instant(500 * MT_MIB);
    program.next_addr += 200 * MT_MIB;
    give(take("train.py:main:1", 20 * MT_MIB));
    expect_nothing("cached-memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_wait_for_their_successor_are_found),
        cmocka_unit_test(what_forward_did_not_make_is_not_suspected),
        cmocka_unit_test(what_has_no_stack_is_not_suspected),
        cmocka_unit_test(what_lives_for_two_steps_is_not_suspected),
        cmocka_unit_test(what_ends_before_its_successor_is_not_suspected),
        cmocka_unit_test(the_first_of_its_successors_counts),
        cmocka_unit_test(what_has_no_successor_is_not_suspected),
        cmocka_unit_test(in_the_last_step_the_one_before_tells),
        cmocka_unit_test(without_training_nothing_is_suspected),
        cmocka_unit_test(gradients_that_stay_are_found),
        cmocka_unit_test(gradients_that_end_before_the_last_step_are_not_kept),
        cmocka_unit_test(gradients_that_come_late_are_not_kept),
        cmocka_unit_test(most_gradients_have_to_stay),
        cmocka_unit_test(buckets_stay_by_design),
        cmocka_unit_test(without_zero_grad_gradients_add_up_on_purpose),
        cmocka_unit_test(temporaries_of_all_parameters_are_found),
        cmocka_unit_test(state_is_no_temporary),
        cmocka_unit_test(a_small_part_of_the_peak_is_not_found),
        cmocka_unit_test(what_is_not_there_at_the_peak_is_not_found),
        cmocka_unit_test(one_parameter_at_a_time_takes_less),
        cmocka_unit_test(one_parameter_at_a_time_may_take_as_much),
        cmocka_unit_test(all_callers_are_looked_at),
        cmocka_unit_test(namesakes_are_no_loss),
        cmocka_unit_test(activations_wait_without_steps),
        cmocka_unit_test(activations_beside_steps_may_not_wait),
        cmocka_unit_test(what_forward_keeps_is_found),
        cmocka_unit_test(training_needs_what_forward_keeps),
        cmocka_unit_test(a_cache_is_no_graph),
        cmocka_unit_test(what_a_recorded_backward_needs_is_no_mistake),
        cmocka_unit_test(results_of_earlier_calls_are_found),
        cmocka_unit_test(one_call_has_no_earlier_results),
        cmocka_unit_test(results_of_other_sizes_are_no_successors),
        cmocka_unit_test(a_cache_is_no_result),
        cmocka_unit_test(backward_may_need_earlier_results),
        cmocka_unit_test(matrices_of_attention_are_found),
        cmocka_unit_test(the_largest_matrix_is_a_block),
        cmocka_unit_test(other_softmax_is_no_matrix),
        cmocka_unit_test(idle_memory_is_found_without_a_history),
        cmocka_unit_test(with_a_history_idle_memory_is_no_news),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
