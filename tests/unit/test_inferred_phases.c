/* Infers steps and phases of training programs that do not name them. */
#include "cmocka_all.h"

#include "unnamed_program.h"

TEST_WITH(a_training_loop, begin, end)
{
    runs("t.py:main:1 module.py:_apply");
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:2 t.py:batches:50");
        runs("t.py:main:3" MODEL);
        runs("t.py:main:4"); /* out.float(), in the statement of the loss */
        runs("t.py:main:4" LOSS);
        runs("t.py:main:5" BACKWARD);
        runs(NULL);
        runs("t.py:main:6" STEP);
    }
    runs("t.py:main:7" MODEL); /* after the loop, not in it */
    expect("data 1; step#0 6; step#0/forward 1; step#0/loss 2; step#0/backward 2; "
           "step#0/optimizer 1; data 1; step#1 6; step#1/forward 1; step#1/loss 2; "
           "step#1/backward 2; step#1/optimizer 1; validation 1; ");
}

static void is_refused(const char *stack)
{
    add((struct mt_event){.kind = MT_EVENT_OOM, .size_bytes = 512, .stack = stack_of(stack)});
}

/* There is no second iteration, only what the first one had reached. */
TEST_WITH(a_run_that_fails_in_its_first_step, begin, end)
{
    runs("t.py:main:1 module.py:_apply");
    runs("t.py:main:2 t.py:batches:50");
    runs("t.py:main:3" MODEL);
    runs("t.py:main:3" MODEL);
    is_refused("t.py:main:3" MODEL);
    frees(512);
    expect("step#0 2; step#0/forward 2; ");
}

TEST_WITH(a_run_that_continues_or_fails_in_setup_has_none, begin, end)
{
    runs("t.py:main:1 module.py:_apply");
    runs("t.py:main:3" MODEL);
    is_refused("t.py:main:3" MODEL);
    runs("t.py:main:3" MODEL);
    expect("forward 2; ");
    (void)end(state);
    (void)begin(state);
    runs("t.py:main:1 module.py:_apply");
    is_refused("t.py:main:1 module.py:_apply");
    expect("");
}

TEST_WITH(gradients_are_accumulated, begin, end)
{
    for (int i = 0; i < 4; i++) {
        runs("t.py:main:3" MODEL);
        runs("t.py:main:4" BACKWARD);
        if (i % 2)
            runs("t.py:main:6" STEP);
    }
    expect("step#0 5; step#0/forward 1; step#0/backward 1; step#0/forward 1; step#0/backward 1; "
           "step#0/optimizer 1; step#1 5; step#1/forward 1; step#1/backward 1; step#1/forward 1; "
           "step#1/backward 1; step#1/optimizer 1; ");
}

/* The first step allocates the optimizer's state. Later steps allocate nothing in it. */
TEST_WITH(the_optimizer_allocates_once, begin, end)
{
    for (int i = 0; i < 4; i++) {
        runs("t.py:main:3" MODEL);
        runs("t.py:main:4" BACKWARD);
        if (i == 0)
            runs("t.py:main:6" STEP);
    }
    expect("step#0 3; step#0/forward 1; step#0/backward 1; step#0/optimizer 1; "
           "step#1 2; step#1/forward 1; step#1/backward 1; step#2 2; step#2/forward 1; "
           "step#2/backward 1; step#3 2; step#3/forward 1; step#3/backward 1; ");
}

/* A single step counts if it ends. Without its optimizer, it may not be complete. */
TEST_WITH(one_step, begin, end)
{
    runs("t.py:main:2" ZERO);
    runs("t.py:main:3" MODEL);
    runs("t.py:main:4" BACKWARD);
    runs("t.py:main:6" STEP);
    expect("step#0 4; step#0/zero_grad 1; step#0/forward 1; step#0/backward 1; "
           "step#0/optimizer 1; ");
}

TEST_WITH(one_step_that_does_not_end, begin, end)
{
    runs("t.py:main:3" MODEL);
    runs("t.py:main:4" BACKWARD);
    expect("forward 1; backward 1; ");
}

/* Two steps in consecutive lines: there is no loop, but they are not one step. */
TEST_WITH(steps_without_a_loop, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs(i ? "t.py:main:13" MODEL : "t.py:main:3" MODEL);
        runs(i ? "t.py:main:14" BACKWARD : "t.py:main:4" BACKWARD);
        runs(i ? "t.py:main:16" STEP : "t.py:main:6" STEP);
    }
    expect("forward 1; backward 1; optimizer 1; forward 1; backward 1; optimizer 1; ");
}

/* A turn at `line` and the two after it: forward, backward, optimizer. */
static void trains_at(int line)
{
    static const char *const parts[] = {MODEL, BACKWARD, STEP};

    for (int i = 0; i < 3; i++) {
        char stack[256];

        snprintf(stack, sizeof stack, "t.py:main:%d%s", line + i, parts[i]);
        runs(stack);
    }
}

/* Control enters the second loop at a later line. Its calls of a model are rare among all steps,
 * but not among its own. */
TEST_WITH(one_loop_after_another, begin, end)
{
    for (int i = 0; i < 5; i++)
        trains_at(i < 3 ? 3 : 13);
    expect("step#0 3; step#0/forward 1; step#0/backward 1; step#0/optimizer 1; "
           "step#1 3; step#1/forward 1; step#1/backward 1; step#1/optimizer 1; "
           "step#2 3; step#2/forward 1; step#2/backward 1; step#2/optimizer 1; "
           "step#3 3; step#3/forward 1; step#3/backward 1; step#3/optimizer 1; "
           "step#4 3; step#4/forward 1; step#4/backward 1; step#4/optimizer 1; ");
}

/* An outer loop has both: its turns are the steps. */
TEST_WITH(two_lines_of_one_loop, begin, end)
{
    for (int i = 0; i < 2; i++) {
        trains_at(3);
        trains_at(13);
    }
    expect("step#0 6; step#0/forward 1; step#0/backward 1; step#0/optimizer 1; step#0/forward 1; "
           "step#0/backward 1; step#0/optimizer 1; step#1 6; step#1/forward 1; step#1/backward 1; "
           "step#1/optimizer 1; step#1/forward 1; step#1/backward 1; step#1/optimizer 1; ");
}

TEST_WITH(two_optimizers, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:3 t.py:critic:20" MODEL);
        runs("t.py:main:3 t.py:critic:21" BACKWARD);
        runs("t.py:main:3 t.py:critic:22" STEP);
        runs("t.py:main:4 t.py:actor:30" MODEL);
        runs("t.py:main:4 t.py:actor:31" BACKWARD);
        runs("t.py:main:4 t.py:actor:32" STEP);
    }
    expect("step#0 6; step#0/forward 1; step#0/backward 1; step#0/optimizer 1; step#0/forward 1; "
           "step#0/backward 1; step#0/optimizer 1; step#1 6; step#1/forward 1; step#1/backward 1; "
           "step#1/optimizer 1; step#1/forward 1; step#1/backward 1; step#1/optimizer 1; ");
}

TEST_WITH(validation_after_an_epoch, begin, end)
{
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 2; i++) {
            runs("t.py:main:3 t.py:train:20" ZERO);
            runs("t.py:main:3 t.py:train:21" MODEL);
            runs("t.py:main:3 t.py:train:22" BACKWARD);
        }
        for (int i = 0; i < 3; i++) {
            runs("t.py:main:4 t.py:check:40" MODEL);
            runs("t.py:main:4 t.py:check:41" LOSS);
        }
    }
    expect("step#0 3; step#0/zero_grad 1; step#0/forward 1; step#0/backward 1; "
           "step#1 3; step#1/zero_grad 1; step#1/forward 1; step#1/backward 1; "
           "step#2 2; step#2/validation 2; step#3 2; step#3/validation 2; "
           "step#4 2; step#4/validation 2; "
           "step#5 3; step#5/zero_grad 1; step#5/forward 1; step#5/backward 1; "
           "step#6 3; step#6/zero_grad 1; step#6/forward 1; step#6/backward 1; "
           "step#7 2; step#7/validation 2; step#8 2; step#8/validation 2; "
           "step#9 2; step#9/validation 2; ");
}

/* Two loops call the function that does a step. */
TEST_WITH(warm_up_of_training, begin, end)
{
    for (int i = 0; i < 4; i++) {
        const char *loop = i < 2 ? "t.py:main:3" : "t.py:main:6";
        char stack[256];

        snprintf(stack, sizeof stack, "%s t.py:train:20" MODEL, loop);
        runs(stack);
        snprintf(stack, sizeof stack, "%s t.py:train:21" BACKWARD, loop);
        runs(stack);
        snprintf(stack, sizeof stack, "%s t.py:train:22" STEP, loop);
        runs(stack);
    }
    expect("step#0 3; step#0/forward 1; step#0/backward 1; step#0/optimizer 1; "
           "step#1 3; step#1/forward 1; step#1/backward 1; step#1/optimizer 1; "
           "step#2 3; step#2/forward 1; step#2/backward 1; step#2/optimizer 1; "
           "step#3 3; step#3/forward 1; step#3/backward 1; step#3/optimizer 1; ");
}

/* One loop calls it at two lines: for two models, with one optimizer each. */
TEST_WITH(one_function_for_two_models, begin, end)
{
    for (int i = 0; i < 4; i++) {
        const char *line = i % 2 ? "t.py:main:6" : "t.py:main:3";
        char stack[256];

        snprintf(stack, sizeof stack, "%s t.py:train:20" MODEL, line);
        runs(stack);
        snprintf(stack, sizeof stack, "%s t.py:train:21" BACKWARD, line);
        runs(stack);
        snprintf(stack, sizeof stack, "%s t.py:train:22" STEP, line);
        runs(stack);
    }
    expect("step#0 6; step#0/forward 1; step#0/backward 1; step#0/optimizer 1; step#0/forward 1; "
           "step#0/backward 1; step#0/optimizer 1; step#1 6; step#1/forward 1; step#1/backward 1; "
           "step#1/optimizer 1; step#1/forward 1; step#1/backward 1; step#1/optimizer 1; ");
}

/* The loop runs inside the optimizer's step, as in trainers with closures. */
TEST_WITH(a_closure, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:3" CLOSURE ":10" MODEL);
        runs("t.py:main:3" CLOSURE ":11" BACKWARD);
        runs("t.py:main:3" STEP);
    }
    expect("step#0 3; step#0/forward 1; step#0/backward 1; step#0/optimizer 1; "
           "step#1 3; step#1/forward 1; step#1/backward 1; step#1/optimizer 1; ");
}

/* The range that PyTorch inserts around the step holds the closure. The other work of the closure,
 * and its frees without a stack, belong to the part before. */
TEST_WITH(a_closure_in_the_optimizers_range, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:2 t.py:batches:50");
        ranges(MT_EVENT_PHASE_PUSH, "Optimizer.step#Adam.step");
        runs("t.py:main:3" CLOSURE ":10" MODEL);
        frees(512);
        runs("t.py:main:3" CLOSURE ":11");
        runs("t.py:main:3" CLOSURE ":12" BACKWARD);
        runs(NULL);
        frees(512);
        runs("t.py:main:3" STEP);
        ranges(MT_EVENT_PHASE_POP, "Optimizer.step#Adam.step");
    }
    /* the range ends with the part in which it began */
    expect_with("data 1; step#0 5; step#0/optimizer 0; "
                "step#0/optimizer/Optimizer.step#Adam.step 0; step#0/forward 1; step#0/backward 2; "
                "step#0/optimizer 1; data 1; step#1 5; step#1/optimizer 0; "
                "step#1/optimizer/Optimizer.step#Adam.step 0; step#1/forward 1; step#1/backward 2; "
                "step#1/optimizer 1; ",
                2);
}

TEST_WITH(a_scaled_loss, begin, end)
{
    for (int i = 0; i < 2; i++) {
        for (int micro = 0; micro < 2; micro++) {
            runs("t.py:main:3" MODEL);
            runs("t.py:main:4 grad_scaler.py:GradScaler.scale:204");
            runs("t.py:main:4" BACKWARD);
        }
        runs("t.py:main:5 grad_scaler.py:GradScaler.unscale_:343");
        runs("t.py:main:6" STEP);
    }
    expect("step#0 8; step#0/forward 1; step#0/loss 1; step#0/backward 1; step#0/forward 1; "
           "step#0/loss 1; step#0/backward 1; step#0/optimizer 2; step#1 8; step#1/forward 1; "
           "step#1/loss 1; step#1/backward 1; step#1/forward 1; step#1/loss 1; step#1/backward 1; "
           "step#1/optimizer 2; ");
}

TEST_WITH(threads_alone, begin, end)
{
    uint32_t engine;

    assert_int_equal(
        mt_symbols_thread(&program.source.symbols, string("pt_autograd_0", 13), 7, &engine), MT_OK);
    for (int i = 0; i < 3; i++) {
        thread = 0;
        runs(NULL);
        runs(NULL);
        thread = (uint16_t)engine;
        runs(NULL);
        thread = 0;
        runs(NULL);
        frees(2048);
    }
    expect("step#0 2; step#0/backward 1; step#1 4; step#1/forward 2; step#1/backward 1; "
           "step#2 4; step#2/forward 2; step#2/backward 1; ");
}

/* Frees have no stacks: the thread that frees blocks of autograd's thread clears gradients. */
TEST_WITH(gradients_are_cleared, begin, end)
{
    uint32_t engine;
    uint64_t gradient = 0;

    assert_int_equal(
        mt_symbols_thread(&program.source.symbols, string("pt_autograd_0", 13), 7, &engine), MT_OK);
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:2");
        if (i)
            add((struct mt_event){.kind = MT_EVENT_FREE_REQUESTED,
                                  .size_bytes = 512,
                                  .addr = gradient,
                                  .stack = MT_NO_ID});
        runs("t.py:main:4" MODEL);
        runs("t.py:main:5" BACKWARD);
        thread = (uint16_t)engine;
        runs(NULL);
        gradient = events[event_count - 1].addr;
        thread = 0;
    }
    runs("t.py:main:7");
    add((struct mt_event){.kind = MT_EVENT_FREE_REQUESTED, .addr = gradient, .stack = MT_NO_ID});
    expect("step#0 4; step#0/forward 1; step#0/backward 2; "
           "step#1 4; step#1/zero_grad 0; step#1/forward 1; step#1/backward 2; "
           "step#2 4; step#2/zero_grad 0; step#2/forward 1; step#2/backward 2; ");
}

TEST_WITH(steps_are_named, begin, end)
{
    for (int i = 0; i < 2; i++) {
        ranges(MT_EVENT_PHASE_PUSH, i ? "step 8" : "step 7");
        runs("t.py:main:3" MODEL);
        runs("t.py:main:4" BACKWARD);
        ranges(MT_EVENT_PHASE_POP, i ? "step 8" : "step 7");
        runs("t.py:main:6");
    }
    expect("step 7 2; step 7/forward 1; step 7/backward 1; step 8 2; step 8/forward 1; "
           "step 8/backward 1; ");
}

TEST_WITH(parts_are_named, begin, end)
{
    for (int i = 0; i < 2; i++) {
        ranges(MT_EVENT_PHASE_PUSH, "model");
        runs("t.py:main:3" MODEL);
        ranges(MT_EVENT_PHASE_POP, "model");
        ranges(MT_EVENT_PHASE_PUSH, "rest");
        runs("t.py:main:4" BACKWARD);
        ranges(MT_EVENT_PHASE_POP, "rest");
    }
    expect("step#0 2; step#0/model 1; step#0/rest 1; step#1 2; step#1/model 1; step#1/rest 1; ");
}

TEST_WITH(everything_is_named, begin, end)
{
    ranges(MT_EVENT_PHASE_PUSH, "step 0");
    ranges(MT_EVENT_PHASE_PUSH, "forward");
    runs("t.py:main:3" MODEL);
    ranges(MT_EVENT_PHASE_POP, "forward");
    runs("t.py:main:4" BACKWARD);
    ranges(MT_EVENT_PHASE_POP, "step 0");
    expect("step 0 2; step 0/forward 1; ");
    assert_int_equal(program.source.overlay.count, 0);
}

TEST_WITH(hidden_names, begin, end)
{
    program.source.overlay.hides_ranges = true;
    for (int i = 0; i < 2; i++) {
        ranges(MT_EVENT_PHASE_PUSH, "step 5");
        runs("t.py:main:3" MODEL);
        runs("t.py:main:4" BACKWARD);
        ranges(MT_EVENT_PHASE_POP, "step 5");
    }
    expect("step#0 2; step#0/forward 1; step#0/backward 1; step#1 2; step#1/forward 1; "
           "step#1/backward 1; ");
}

#define CALL " module.py:_call_impl"

static void runs_layers(const char *forward, int layers)
{
    char stack[256];

    snprintf(stack, sizeof stack, "%s:5", forward);
    runs(stack);
    for (int i = 0; i < layers; i++) {
        snprintf(stack, sizeof stack, "%s:6" CALL " model.py:forward:30", forward);
        runs(stack);
        snprintf(stack, sizeof stack, "%s:7" CALL " model.py:forward:40", forward);
        runs(stack);
    }
}

/* The program calls the forward of its model itself; its layers repeat at two lines. */
TEST_WITH(layers_of_a_direct_forward, begin, end)
{
    runs_layers("t.py:main:3 model.py:forward", 8);
    expect("forward 17; ");
}

TEST_WITH(layers_of_a_called_model, begin, end)
{
    runs_layers("t.py:main:3" CALL " model.py:forward", 8);
    runs("t.py:main:3" CALL " model.py:forward:9");
    expect("forward 18; ");
}

/* Control returns from the last line of the forward: another call. Its result is kept. */
TEST_WITH(calls_at_one_line, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs_layers("t.py:main:3" CALL " model.py:forward", 2);
        runs("t.py:main:3" CALL " model.py:forward:9");
    }
    expect("request#0 6; request#0/forward 6; request#1 6; request#1/forward 6; "
           "request#2 6; request#2/forward 6; ");
}

/* A function of the program that has the name, but one line that calls a module, is no module. */
TEST_WITH(a_function_called_forward, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:forward:3" MODEL);
        runs("t.py:forward:4");
    }
    expect("request#0 2; request#0/forward 1; request#1 2; request#1/forward 1; "
           "request#2 2; request#2/forward 1; ");
}

/* An event of the caller between two passes, if nothing in the forward shows them. */
TEST_WITH(a_model_of_one_line, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:3" MODEL);
        add((struct mt_event){
            .kind = MT_EVENT_FREE_REQUESTED, .size_bytes = 512, .stack = stack_of("t.py:main:3")});
    }
    expect("request#0 1; request#0/forward 1; request#1 1; request#1/forward 1; "
           "request#2 1; request#2/forward 1; ");
}

/* Its callers see one exit: all turns but the last are of a loop in the forward. */
TEST_WITH(a_loop_that_is_the_whole_forward, begin, end)
{
    for (int i = 0; i < 8; i++) {
        runs("t.py:main:3" CALL " model.py:forward:6");
        runs("t.py:main:3" CALL " model.py:forward:7");
    }
    add((struct mt_event){
        .kind = MT_EVENT_FREE_REQUESTED, .size_bytes = 512, .stack = stack_of("t.py:main:3")});
    expect("forward 16; ");
}

TEST_WITH(one_line_calls_two_functions, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:3 t.py:tokens:20");
        runs("t.py:main:3" MODEL);
    }
    expect("request#0 2; request#0/forward 1; request#1 2; request#1/forward 1; "
           "request#2 2; request#2/forward 1; ");
}

static void calls_twice(const char *line)
{
    char stack[256];

    snprintf(stack, sizeof stack, "%s" CALL " model.py:forward:5", line);
    runs(stack);
    snprintf(stack, sizeof stack, "%s" CALL " model.py:forward:9", line);
    runs(stack);
}

TEST_WITH(warm_up_and_measure, begin, end)
{
    for (int i = 0; i < 7; i++)
        calls_twice(i < 3 ? "t.py:main:3" : "t.py:main:6");
    expect("request#0 2; request#0/forward 2; request#1 2; request#1/forward 2; "
           "request#2 2; request#2/forward 2; request#3 2; request#3/forward 2; "
           "request#4 2; request#4/forward 2; request#5 2; request#5/forward 2; "
           "request#6 2; request#6/forward 2; ");
}

/* The outer loop only repeats two others: to warm up and to measure. */
TEST_WITH(a_loop_that_repeats_loops, begin, end)
{
    for (int size = 0; size < 3; size++) {
        runs("t.py:main:2");
        for (int i = 0; i < 2; i++)
            calls_twice("t.py:main:3");
        for (int i = 0; i < 2; i++)
            calls_twice("t.py:main:5");
    }
    expect("request#0 2; request#0/forward 2; request#1 2; request#1/forward 2; "
           "request#2 2; request#2/forward 2; request#3 2; request#3/forward 2; "
           "request#4 2; request#4/forward 2; request#5 2; request#5/forward 2; "
           "request#6 2; request#6/forward 2; request#7 2; request#7/forward 2; "
           "request#8 2; request#8/forward 2; request#9 2; request#9/forward 2; "
           "request#10 2; request#10/forward 2; request#11 2; request#11/forward 2; ");
}

/* [model(x) for model in models] */
TEST_WITH(several_models_answer, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:2");
        for (int model = 0; model < 3; model++)
            calls_twice("t.py:main:3");
        runs("t.py:main:4");
    }
    expect("request#0 8; request#0/forward 2; request#0/forward 2; request#0/forward 2; "
           "request#1 8; request#1/forward 2; request#1/forward 2; request#1/forward 2; "
           "request#2 8; request#2/forward 2; request#2/forward 2; request#2/forward 2; ");
}

/* The loop prepares the inputs of one long call. */
TEST_WITH(a_loop_beside_the_work, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:3 t.py:embed:20" MODEL);
        runs("t.py:main:4");
    }
    runs_layers("t.py:main:6" CALL " model.py:forward", 8);
    expect("forward 1; forward 1; forward 1; forward 17; ");
}

/* Control returns once. Two lines of one statement may do this also, but do not call one model. */
TEST_WITH(a_loop_of_two_turns, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:3");
        runs("t.py:main:4" MODEL);
    }
    expect("request#0 2; request#0/forward 1; request#1 2; request#1/forward 1; ");
}

TEST_WITH(other_calls_beside_two_turns, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:3");
        runs("t.py:main:4" MODEL);
    }
    runs("t.py:main:7" MODEL);
    expect("forward 1; forward 2; ");
}

TEST_WITH(a_statement_of_several_lines, begin, end)
{
    runs("t.py:main:4" MODEL);
    runs("t.py:main:5" MODEL);
    runs("t.py:main:3" MODEL);
    expect("forward 2; forward 1; ");
}

TEST_WITH(nothing_to_find, begin, end)
{
    expect("");
    for (int i = 0; i < 100; i++)
        runs(NULL);
    program.source.overlay.chosen = false;
    expect("");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
