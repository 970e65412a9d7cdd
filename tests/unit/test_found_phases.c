/* Steps and phases that nobody named, in programs made by hand: a line of a
 * script is a stack and what it allocates. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "found_phases.h"
#include "memory_source.h"
#include "phases.h"
#include "xla_names.h"

#define MAX_EVENTS 2000

/* What a line calls, outermost first. */
#define MODEL    " module.py:_call_impl model.py:forward:5"
#define LOSS     " functional.py:cross_entropy:3"
#define BACKWARD " _tensor.py:backward autograd/__init__.py:backward"
#define STEP     " optim/adam.py:step:238"
#define CLOSURE  " optim/adam.py:step:230 t.py:closure"
#define ZERO     " optim/optimizer.py:zero_grad"

static struct mt_event events[MAX_EVENTS];
static size_t event_count;
static struct memory_source program;
static uint16_t thread, heap;

static uint32_t string(const char *text, size_t length)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&program.source.symbols, text, length, &id), MT_OK);
    return id;
}

/* "file:function:line file:function ...", outermost first; torch's files get
 * their folders. */
static uint32_t stack_of(const char *text)
{
    static const struct {
        const char *name, *path;
    } files[] = {{"module.py", "torch/nn/modules/module.py"},
                 {"functional.py", "torch/nn/functional.py"},
                 {"_tensor.py", "torch/_tensor.py"},
                 {"autograd/__init__.py", "torch/autograd/__init__.py"},
                 {"grad_scaler.py", "torch/amp/grad_scaler.py"},
                 {"optim/adam.py", "torch/optim/adam.py"},
                 {"optim/optimizer.py", "torch/optim/optimizer.py"}};
    uint32_t stack = MT_NO_ID;

    while (*text) {
        char file[64], function[64], path[256];
        unsigned line = 1;
        int used = 0;
        uint32_t frame;

        text += strspn(text, " ");
        assert_true(sscanf(text, "%63[^:]:%63[^: ]:%u", file, function, &line) >= 2);
        used = (int)strcspn(text, " ");
        text += used;
        snprintf(path, sizeof path, "/home/me/%s", file);
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            if (!strcmp(files[i].name, file))
                snprintf(path, sizeof path, "/lib/site-packages/%s", files[i].path);
        assert_int_equal(mt_symbols_frame(&program.source.symbols,
                                          string(function, strlen(function)),
                                          string(path, strlen(path)), line, &frame),
                         MT_OK);
        assert_int_equal(mt_symbols_stack(&program.source.symbols, stack, frame, &stack), MT_OK);
    }
    return stack;
}

static void add(struct mt_event event)
{
    assert_true(event_count < MAX_EVENTS);
    event.heap = heap;
    event.thread = thread;
    if (event.kind == MT_EVENT_ALLOC)
        event.addr = 0x1000 + event_count;
    events[event_count++] = event;
}

static void allocates(uint64_t bytes)
{
    add((struct mt_event){.kind = MT_EVENT_ALLOC, .size_bytes = bytes, .stack = MT_NO_ID});
}

static void runs(const char *stack)
{
    add((struct mt_event){
        .kind = MT_EVENT_ALLOC, .size_bytes = 512, .stack = stack ? stack_of(stack) : MT_NO_ID});
}

static void frees(uint64_t bytes)
{
    add((struct mt_event){.kind = MT_EVENT_FREE_REQUESTED, .size_bytes = bytes, .stack = MT_NO_ID});
}

static void ranges(uint8_t kind, const char *name)
{
    add((struct mt_event){.kind = kind, .stack = MT_NO_ID, .name = string(name, strlen(name))});
}

static int begin(void **state)
{
    (void)state;
    event_count = 0;
    thread = 0;
    heap = 1;
    memory_source_init(&program, events, 0, 64);
    return 0;
}

static int end(void **state)
{
    (void)state;
    memory_source_release(&program);
    return 0;
}

/* Paths of all ranges that readers now meet, each with the number of blocks that
 * it holds: "step#0 4; step#0/forward 1; "; and how many ends have no begin. */
static void expect_with(const char *wanted, uint64_t unmatched)
{
    struct mt_event_batch batch;
    struct mt_phases phases;
    struct mt_arena arena = {0};
    uint64_t blocks[256] = {0};
    char got[4096] = "";
    enum mt_status status;

    /* init numbers the events */
    program.count = event_count;
    for (size_t i = 0; i < event_count; i++) {
        events[i].seq = i;
        events[i].t_ns = 1000 * (i + 1);
    }
    assert_int_equal(mt_found_phases_lay(&program.source, NULL), MT_OK);
    mt_phases_init(&phases, &arena, &program.source.symbols);
    while ((status = mt_source_next(&program.source, &batch, NULL)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++) {
            const struct mt_event *event = &batch.events[i];
            int32_t phase;

            if (event->kind == MT_EVENT_PHASE_PUSH)
                assert_int_equal(mt_phases_push(&phases, event, &phase), MT_OK);
            if (event->kind == MT_EVENT_PHASE_POP)
                mt_phases_pop(&phases, event);
            if (event->kind == MT_EVENT_ALLOC)
                for (phase = mt_phases_current(&phases, event->thread); phase >= 0;
                     phase = phases.phases[phase].parent)
                    blocks[phase]++;
        }
    }
    assert_int_equal(status, MT_END);
    assert_int_equal(phases.unmatched, unmatched);
    for (uint32_t i = 0; i < phases.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s %d; ", phases.phases[i].path,
                 (int)blocks[i]);
    mt_phases_release(&phases);
    mt_arena_release(&arena);
    assert_string_equal(got, wanted);
}

static void expect(const char *wanted)
{
    expect_with(wanted, 0);
}

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
    runs("t.py:main:7" MODEL); /* afterwards, not in the loop */
    expect("data 1; step#0 6; step#0/forward 1; step#0/loss 2; step#0/backward 2; "
           "step#0/optimizer 1; data 1; step#1 6; step#1/forward 1; step#1/loss 2; "
           "step#1/backward 2; step#1/optimizer 1; validation 1; ");
}

static void is_refused(const char *stack)
{
    add((struct mt_event){.kind = MT_EVENT_OOM, .size_bytes = 512, .stack = stack_of(stack)});
}

/* There is no second turn, but what the first one was at. */
static void a_run_that_dies_in_its_first_step(void **state)
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

static void a_run_that_goes_on_or_dies_in_set_up_has_none(void **state)
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

/* Its state is allocated in the first step, then nothing is. */
static void the_optimizer_shows_once(void **state)
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

/* One step alone is one if it ends; with its optimizer missing it may go on. */
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

/* Two steps, one line behind the other: no turn shows, and they are not one step. */
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

static void requests_to_a_model(void **state)
{
    (void)state;
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

/* Both loops in one function: the outer one goes back to an earlier line. */
static void requests_in_one_function(void **state)
{
    (void)state;
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

/* A program of XLA: the loop that makes the arrays of each layer turns at the line at which the
 * loop over requests does. A request has a run of the module that does the work. */
static void requests_to_a_module(void **state)
{
    const char *const module = "TSL: XlaModule:#hlo_module=jit_forward,program_id=1#";
    const char *const small = "TSL: XlaModule:#hlo_module=jit_broadcast_in_dim,program_id=2#";
    const char *const operation = "TSL: Thunk:#hlo_op=gemm,unique_hlo_op_id=3#";

    uint32_t async;

    (void)state;
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

/* Nothing but the model's own lines tells that it is called again. */
static void calls_from_one_line(void **state)
{
    (void)state;
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

static void training_in_one_line(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        runs("t.py:main:3" MODEL);
        runs("t.py:main:3" BACKWARD);
        runs(NULL);
    }
    expect("step#0 3; step#0/forward 1; step#0/backward 2; step#1 3; step#1/forward 1; "
           "step#1/backward 2; ");
}

/* Gradients are cleared and a batch is made between the update and the next call; a range of the
 * framework begins that call before any stack does. */
static void training_in_one_line_with_ranges(void **state)
{
    (void)state;
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
    /* a batch made right behind the update counts with it: a line has no earlier line */
    expect("step#0 6; " PARTS("step#0") "step#0/zero_grad 1; " CLEARS("step#0") "step#1 5; " PARTS(
        "step#1") "step#1/zero_grad 1; " CLEARS("step#1") "step#2 4; " PARTS("step#2") "step#2/"
                                                                                       "zero_grad "
                                                                                       "0; " CLEARS(
                                                                                           "step#"
                                                                                           "2"));
#undef CLEARS
#undef PARTS
}

/* Lines of another thread say nothing of this one's loop. */
static void another_thread(void **state)
{
    (void)state;
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

/* The loop runs within the optimizer's step, as trainers with closures do. */
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

/* The range that PyTorch inserts around the step holds the closure; what the closure does beside
 * the parts, and frees without a stack, go on with them. */
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

/* Frees have no stacks: who frees what autograd's thread allocated clears gradients. */
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

/* Neither names, nor stacks, nor threads: sizes come again. */
static void requests_repeat(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++)
        allocates(100000u + (unsigned)i); /* set-up */
    for (int i = 0; i < 6; i++) {
        allocates(1024); /* least is allocated here */
        allocates(2048);
        allocates(2048);
        frees(2048);
        allocates(4096);
        allocates(8192 + (i == 4)); /* one that differs */
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

static void nothing_repeats(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++)
        allocates(512 + i * i % 7919);
    expect("");
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
        PROGRAM(a_run_that_dies_in_its_first_step),
        PROGRAM(a_run_that_goes_on_or_dies_in_set_up_has_none),
        PROGRAM(gradients_are_accumulated),
        PROGRAM(the_optimizer_shows_once),
        PROGRAM(one_step),
        PROGRAM(one_step_that_does_not_end),
        PROGRAM(steps_without_a_loop),
        PROGRAM(two_optimizers),
        PROGRAM(validation_after_an_epoch),
        PROGRAM(requests_to_a_model),
        PROGRAM(requests_in_one_function),
        PROGRAM(requests_to_a_module),
        PROGRAM(calls_from_one_line),
        PROGRAM(training_in_one_line),
        PROGRAM(training_in_one_line_with_ranges),
        PROGRAM(another_thread),
        PROGRAM(a_closure),
        PROGRAM(a_closure_in_the_optimizers_range),
        PROGRAM(a_scaled_loss),
        PROGRAM(threads_alone),
        PROGRAM(gradients_are_cleared),
        PROGRAM(steps_are_named),
        PROGRAM(parts_are_named),
        PROGRAM(everything_is_named),
        PROGRAM(hidden_names),
        PROGRAM(requests_repeat),
        PROGRAM(nothing_repeats),
        PROGRAM(nothing_to_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
