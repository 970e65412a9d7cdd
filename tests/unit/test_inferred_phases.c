/* Infers steps and phases of training programs that do not name them. */
#include "cmocka_all.h"

#include "unnamed_program.h"

static void a_training_loop(void **state)
{
    (void)state;
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
static void a_run_that_fails_in_its_first_step(void **state)
{
    (void)state;
    runs("t.py:main:1 module.py:_apply");
    runs("t.py:main:2 t.py:batches:50");
    runs("t.py:main:3" MODEL);
    runs("t.py:main:3" MODEL);
    is_refused("t.py:main:3" MODEL);
    frees(512);
    expect("step#0 2; step#0/forward 2; ");
}

static void a_run_that_continues_or_fails_in_setup_has_none(void **state)
{
    (void)state;
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

static void gradients_are_accumulated(void **state)
{
    (void)state;
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
static void the_optimizer_allocates_once(void **state)
{
    (void)state;
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
static void one_step(void **state)
{
    (void)state;
    runs("t.py:main:2" ZERO);
    runs("t.py:main:3" MODEL);
    runs("t.py:main:4" BACKWARD);
    runs("t.py:main:6" STEP);
    expect("step#0 4; step#0/zero_grad 1; step#0/forward 1; step#0/backward 1; "
           "step#0/optimizer 1; ");
}

static void one_step_that_does_not_end(void **state)
{
    (void)state;
    runs("t.py:main:3" MODEL);
    runs("t.py:main:4" BACKWARD);
    expect("forward 1; backward 1; ");
}

/* Two steps in consecutive lines: there is no loop, but they are not one step. */
static void steps_without_a_loop(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        runs(i ? "t.py:main:13" MODEL : "t.py:main:3" MODEL);
        runs(i ? "t.py:main:14" BACKWARD : "t.py:main:4" BACKWARD);
        runs(i ? "t.py:main:16" STEP : "t.py:main:6" STEP);
    }
    expect("forward 1; backward 1; optimizer 1; forward 1; backward 1; optimizer 1; ");
}

static void two_optimizers(void **state)
{
    (void)state;
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

static void validation_after_an_epoch(void **state)
{
    (void)state;
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
           "step#1 3; step#1/zero_grad 1; step#1/forward 1; step#1/backward 1; validation 6; "
           "step#2 3; step#2/zero_grad 1; step#2/forward 1; step#2/backward 1; "
           "step#3 3; step#3/zero_grad 1; step#3/forward 1; step#3/backward 1; validation 6; ");
}

/* The loop runs inside the optimizer's step, as in trainers with closures. */
static void a_closure(void **state)
{
    (void)state;
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
static void a_closure_in_the_optimizers_range(void **state)
{
    (void)state;
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

static void a_scaled_loss(void **state)
{
    (void)state;
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

static void threads_alone(void **state)
{
    uint32_t engine;

    (void)state;
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
static void gradients_are_cleared(void **state)
{
    uint32_t engine;
    uint64_t gradient = 0;

    (void)state;
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

static void steps_are_named(void **state)
{
    (void)state;
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

static void parts_are_named(void **state)
{
    (void)state;
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

static void everything_is_named(void **state)
{
    (void)state;
    ranges(MT_EVENT_PHASE_PUSH, "step 0");
    ranges(MT_EVENT_PHASE_PUSH, "forward");
    runs("t.py:main:3" MODEL);
    ranges(MT_EVENT_PHASE_POP, "forward");
    runs("t.py:main:4" BACKWARD);
    ranges(MT_EVENT_PHASE_POP, "step 0");
    expect("step 0 2; step 0/forward 1; ");
    assert_int_equal(program.source.overlay.count, 0);
}

static void hidden_names(void **state)
{
    (void)state;
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

static void nothing_to_find(void **state)
{
    (void)state;
    expect("");
    for (int i = 0; i < 100; i++)
        runs(NULL);
    program.source.overlay.chosen = false;
    expect("");
}

int main(void)
{
#define PROGRAM(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        PROGRAM(a_training_loop),
        PROGRAM(a_run_that_fails_in_its_first_step),
        PROGRAM(a_run_that_continues_or_fails_in_setup_has_none),
        PROGRAM(gradients_are_accumulated),
        PROGRAM(the_optimizer_allocates_once),
        PROGRAM(one_step),
        PROGRAM(one_step_that_does_not_end),
        PROGRAM(steps_without_a_loop),
        PROGRAM(two_optimizers),
        PROGRAM(validation_after_an_epoch),
        PROGRAM(a_closure),
        PROGRAM(a_closure_in_the_optimizers_range),
        PROGRAM(a_scaled_loss),
        PROGRAM(threads_alone),
        PROGRAM(gradients_are_cleared),
        PROGRAM(steps_are_named),
        PROGRAM(parts_are_named),
        PROGRAM(everything_is_named),
        PROGRAM(hidden_names),
        PROGRAM(nothing_to_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
