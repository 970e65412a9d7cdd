/* Infers iterations that the program does not name: requests to a model, calls from one line,
 * repeating sizes. */
#include "cmocka_all.h"

#include "unnamed_program.h"
#include "xla_names.h"

TEST_WITH(requests_to_a_model, begin, end)
{
    runs("t.py:main:1 module.py:_apply");
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:3");
        for (int token = 0; token < 2; token++) {
            runs("t.py:main:4 t.py:generate:60" MODEL);
            runs("t.py:main:4 t.py:generate:61");
        }
    }
    expect("request#0 5; request#0/forward 1; request#0/forward 1; "
           "request#1 5; request#1/forward 1; request#1/forward 1; "
           "request#2 5; request#2/forward 1; request#2/forward 1; ");
}

/* Both loops are in one function: the outer one jumps back to an earlier line. */
TEST_WITH(requests_in_one_function, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:3");
        for (int token = 0; token < 4; token++) {
            runs("t.py:main:5" MODEL);
            runs("t.py:main:6");
        }
    }
    expect("request#0 9; request#0/forward 1; request#0/forward 1; request#0/forward 1; "
           "request#0/forward 1; request#1 9; request#1/forward 1; request#1/forward 1; "
           "request#1/forward 1; request#1/forward 1; request#2 9; request#2/forward 1; "
           "request#2/forward 1; request#2/forward 1; request#2/forward 1; ");
}

/* A program of XLA: the loop over the layers is on the same line as the loop over requests. A
 * request runs the module that does the work. */
TEST_WITH(requests_to_a_module, begin, end)
{
    const char *const module = "TSL: XlaModule:#hlo_module=jit_forward,program_id=1#";
    const char *const small = "TSL: XlaModule:#hlo_module=jit_broadcast_in_dim,program_id=2#";
    const char *const operation = "TSL: Thunk:#hlo_op=gemm,unique_hlo_op_id=3#";

    uint32_t async;

    program.source.view.level = MT_VIEW_DRIVER;
    assert_int_equal(
        mt_symbols_heap(&program.source.symbols, string(MT_XLA_HEAP, strlen(MT_XLA_HEAP)), &async),
        MT_OK);
    heap = (uint16_t)async;
    for (int request = 0; request < 3; request++) {
        for (int layer = 0; layer < 2; layer++) {
            runs("t.py:main:3");
            runs("t.py:main:4");
            ranges(MT_EVENT_PHASE_PUSH, small);
            ranges(MT_EVENT_PHASE_POP, small);
        }
        runs("t.py:main:5");
        ranges(MT_EVENT_PHASE_PUSH, module);
        for (int i = 0; i < 3; i++) {
            ranges(MT_EVENT_PHASE_PUSH, operation);
            ranges(MT_EVENT_PHASE_POP, operation);
        }
        ranges(MT_EVENT_PHASE_POP, module);
    }
    expect("iteration#0 5; iteration#0/jit_broadcast_in_dim 0; iteration#0/jit_broadcast_in_dim 0; "
           "iteration#0/jit_forward 0; "
           "iteration#1 5; iteration#1/jit_broadcast_in_dim 0; iteration#1/jit_broadcast_in_dim 0; "
           "iteration#1/jit_forward 0; "
           "iteration#2 5; iteration#2/jit_broadcast_in_dim 0; iteration#2/jit_broadcast_in_dim 0; "
           "iteration#2/jit_forward 0; ");
}

/* Only the model's own lines show that it is called again. */
TEST_WITH(calls_from_one_line, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:3 module.py:_call_impl model.py:forward:5");
        runs("t.py:main:3 module.py:_call_impl model.py:forward:6 module.py:_call_impl "
             "model.py:forward:9");
        runs("t.py:main:3 module.py:_call_impl model.py:forward:6 module.py:_call_impl "
             "model.py:forward:8");
    }
    expect("request#0 3; request#0/forward 3; request#1 3; request#1/forward 3; request#2 3; "
           "request#2/forward 3; ");
}

TEST_WITH(training_in_one_line, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:3" MODEL);
        runs("t.py:main:3" BACKWARD);
        runs(NULL);
    }
    expect("step#0 3; step#0/forward 1; step#0/backward 2; step#1 3; step#1/forward 1; "
           "step#1/backward 2; ");
}

/* Between the update and the next call, gradients are cleared and a batch is made. A range of the
 * framework begins the call before any stack is recorded. */
TEST_WITH(training_in_one_line_with_ranges, begin, end)
{
    for (int i = 0; i < 3; i++) {
        runs("t.py:main:3"); /* the batch */
        ranges(MT_EVENT_PHASE_PUSH, "FSDP::pre_forward");
        frees(512);
        runs("t.py:main:3" MODEL);
        ranges(MT_EVENT_PHASE_POP, "FSDP::pre_forward");
        runs("t.py:main:3" LOSS);
        runs("t.py:main:3" BACKWARD);
        ranges(MT_EVENT_PHASE_PUSH, "Optimizer.step#AdamW.step");
        runs("t.py:main:3" STEP);
        ranges(MT_EVENT_PHASE_POP, "Optimizer.step#AdamW.step");
        ranges(MT_EVENT_PHASE_PUSH, "Optimizer.zero_grad#AdamW.zero_grad");
        frees(512);
        ranges(MT_EVENT_PHASE_POP, "Optimizer.zero_grad#AdamW.zero_grad");
    }
#define PARTS(step)                                                                                \
    step "/forward 1; " step "/forward/FSDP::pre_forward 1; " step "/loss 1; " step                \
         "/backward 1; " step "/optimizer 1; " step "/optimizer/Optimizer.step#AdamW.step 1; "
#define CLEARS(step) step "/zero_grad/Optimizer.zero_grad#AdamW.zero_grad 0; "
    /* A batch made right after the update belongs to it: a single line has no earlier line to
     * separate them. */
    expect("step#0 6; " PARTS("step#0") "step#0/zero_grad 1; " CLEARS("step#0") "step#1 5; " PARTS(
        "step#1") "step#1/zero_grad 1; " CLEARS("step#1") "step#2 4; " PARTS("step#2") "step#2/"
                                                                                       "zero_grad "
                                                                                       "0; " CLEARS(
                                                                                           "step#"
                                                                                           "2"));
#undef CLEARS
#undef PARTS
}

/* Lines of another thread give no information about this thread's loop. */
TEST_WITH(another_thread, begin, end)
{
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:3" MODEL);
        runs("t.py:main:4" BACKWARD);
        thread = 5;
        runs("t.py:main:2 t.py:watch:90");
        thread = 0;
        runs("t.py:main:5" STEP);
    }
    expect("step#0 4; step#0/forward 1; step#0/backward 2; step#0/optimizer 1; step#1 4; "
           "step#1/forward 1; step#1/backward 2; step#1/optimizer 1; ");
}

/* Without names, stacks or threads: only sizes repeat. */
TEST_WITH(requests_repeat, begin, end)
{
    for (int i = 0; i < 7; i++)
        allocates(100000u + (unsigned)i); /* set-up */
    for (int i = 0; i < 6; i++) {
        allocates(1024); /* fewest bytes are live here */
        allocates(2048);
        allocates(2048);
        frees(2048);
        allocates(4096);
        allocates(8192 + (i == 4)); /* a different size */
        for (int j = 0; j < 20; j++)
            allocates(512u * (unsigned)(j + 30));
        frees(8192 + (i == 4));
        frees(4096);
        frees(2048);
        for (int j = 0; j < 20; j++)
            frees(512u * (unsigned)(j + 30));
        frees(1024);
    }
    expect("iteration#0 25; iteration#1 25; iteration#2 25; iteration#3 25; iteration#4 25; "
           "iteration#5 25; ");
    assert_int_equal(program.source.overlay.events[0].before, 7); /* right after set-up */
}

TEST_WITH(nothing_repeats, begin, end)
{
    for (unsigned i = 0; i < 300; i++)
        allocates(512 + i * i % 7919);
    expect("");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
