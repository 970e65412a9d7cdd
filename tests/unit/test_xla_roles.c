/* Roles of XLA's blocks, derived from the modules that run. */
#include "cmocka_all.h"

#include <string.h>

#include "roles.h"
#include "util.h"
#include "xla_names.h"
#include "xla_roles.h"

enum {
    MAKER_NONE,
    CACHE, /* of the program's own */
    OPTAX,
    FLAX,
    JIT_OF_FLAX,
    /* files of libraries that make neither, and a program in the folder of one */
    LOSS_OF_OPTAX,
    BATCHES_OF_FLAX,
    GRADIENT_OF_EQUINOX,
    EXAMPLE_OF_FLAX,
    FORK_OF_OPTAX,
    MAKERS
};

struct program {
    struct mt_symbols symbols;
    struct mt_xla_roles roles;
    uint32_t stacks[MAKERS], module, heap;
    uint64_t count;
    uint8_t codes[64];
};

static uint32_t string_of(struct program *program, const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&program->symbols, text, strlen(text), &id), MT_OK);
    return id;
}

/* A stack of two frames: the inner one in `inner`, the outer one in `outer`. */
static uint32_t stack_of(struct program *program, const char *inner, const char *outer)
{
    uint32_t frame, stack;

    assert_int_equal(mt_symbols_frame(&program->symbols, 0, string_of(program, outer), 1, &frame),
                     MT_OK);
    assert_int_equal(mt_symbols_stack(&program->symbols, MT_NO_ID, frame, &stack), MT_OK);
    assert_int_equal(mt_symbols_frame(&program->symbols, 0, string_of(program, inner), 2, &frame),
                     MT_OK);
    assert_int_equal(mt_symbols_stack(&program->symbols, stack, frame, &stack), MT_OK);
    return stack;
}

static void begin(struct program *program, bool is_on)
{
    memset(program, 0, sizeof *program);
    assert_int_equal(mt_symbols_init(&program->symbols), MT_OK);
    program->stacks[MAKER_NONE] = stack_of(program, "/lib/jax/pjit.py", "/home/me/train.py");
    program->stacks[CACHE] = stack_of(program, "/lib/jax/pjit.py", "/home/me/serve.py");
    program->stacks[OPTAX] =
        stack_of(program, "/lib/optax/_src/a.py", "/lib/flax/nnx/optimizer.py");
    program->stacks[FLAX] = stack_of(program, "/lib/jax/pjit.py", "/lib/flax/linen/dense.py");
    program->stacks[JIT_OF_FLAX] =
        stack_of(program, "/lib/flax/nnx/transforms/jit.py", "/lib/flax/x.py");
    program->stacks[LOSS_OF_OPTAX] = stack_of(program, "/lib/optax/losses/a.py", "/home/me/a.py");
    program->stacks[BATCHES_OF_FLAX] = stack_of(program, "/lib/flax/jax_utils.py", "/home/me/a.py");
    program->stacks[GRADIENT_OF_EQUINOX] =
        stack_of(program, "/lib/equinox/_ad.py", "/lib/equinox/_module/_module.py");
    program->stacks[EXAMPLE_OF_FLAX] =
        stack_of(program, "/lib/jax/pjit.py", "/home/me/flax/examples/train.py");
    program->stacks[FORK_OF_OPTAX] =
        stack_of(program, "/lib/jax/pjit.py", "/me/my-optax/_src/a.py");
    program->module = string_of(program, "TSL: XlaModule:#hlo_module=jit_step,program_id=1#");
    assert_int_equal(
        mt_symbols_heap(&program->symbols, string_of(program, MT_XLA_HEAP), &program->heap), MT_OK);
    mt_xla_roles_init(&program->roles, &program->symbols, is_on);
}

static void end(struct program *program)
{
    mt_xla_roles_release(&program->roles);
    mt_symbols_release(&program->symbols);
}

static uint64_t make_on(struct program *program, int maker, uint64_t bytes, uint32_t heap)
{
    const struct mt_event event = {.kind = MT_EVENT_ALLOC,
                                   .heap = (uint16_t)heap,
                                   .size_bytes = bytes,
                                   .stack = program->stacks[maker],
                                   .name = MT_NO_ID};

    assert_true(program->count < MT_ARRAY_LEN(program->codes));
    program->codes[program->count] = MT_ROLE_INPUTS;
    mt_xla_roles_birth(&program->roles, &event, program->count);
    return program->count++;
}

static uint64_t make(struct program *program, int maker, uint64_t bytes)
{
    return make_on(program, maker, bytes, program->heap);
}

static void drop(struct program *program, uint64_t block)
{
    mt_xla_roles_end(&program->roles, block);
}

static void range(struct program *program, uint8_t kind)
{
    const struct mt_event event = {.kind = kind, .name = program->module};

    mt_xla_roles_range(&program->roles, &event);
}

static void run_module(struct program *program)
{
    range(program, MT_EVENT_PHASE_PUSH);
    range(program, MT_EVENT_PHASE_POP);
}

#define OPERATION "TSL: Thunk:#name=jit(forward)/dot_general,hlo_op=gemm,unique_hlo_op_id=1#"
#define GRADIENT  "TSL: Thunk:#name=jit(step)/transpose(jvp(loss))/dot_general,hlo_op=gemm#"
#define SLICE     "TSL: Thunk:#name=jit(forward),hlo_op=loop_dynamic_update_slice_fusion.3#"

/* The module that does the work, with its operations. */
static void run_model(struct program *program, const char *operation)
{
    struct mt_event event = {.kind = MT_EVENT_PHASE_PUSH, .name = string_of(program, operation)};

    range(program, MT_EVENT_PHASE_PUSH);
    mt_xla_roles_range(&program->roles, &event);
    event.kind = MT_EVENT_PHASE_POP;
    mt_xla_roles_range(&program->roles, &event);
    range(program, MT_EVENT_PHASE_POP);
}

static enum mt_role role_of(const struct program *program, uint64_t block)
{
    return mt_role_resolve(&(struct mt_role_clock){.symbols = &program->symbols},
                           program->codes[block], MT_NO_ID, 1);
}

static void finish(struct program *program)
{
    mt_xla_roles_finish(&program->roles, program->codes, program->count);
}

/* One parameter with a state of two blocks: three steps allocate new ones and free the old ones. */
TEST(steps_hand_roles_on)
{
    struct program program;
    uint64_t old[3], fresh[3], temporary = 0, loss = 0, optimizer = 0, parameters = 0;

    begin(&program, true);
    old[0] = make(&program, FLAX, 4096);
    run_module(&program);
    old[1] = make(&program, OPTAX, 4096);
    run_module(&program);
    old[2] = make(&program, OPTAX, 4096);
    run_module(&program);
    for (int i = 0; i < 4; i++)
        run_module(&program); /* batches */
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 3; i++)
            fresh[i] = make(&program, JIT_OF_FLAX, 4096);
        loss = make(&program, MAKER_NONE, 4);
        range(&program, MT_EVENT_PHASE_PUSH);
        temporary = make(&program, MAKER_NONE, 4096);
        range(&program, MT_EVENT_PHASE_POP);
        drop(&program, temporary);
        run_module(&program);
        for (int i = 0; i < 3; i++)
            drop(&program, old[i]);
        memcpy(old, fresh, sizeof old);
        for (int i = 0; i < 4; i++)
            run_module(&program);
    }
    finish(&program);
    for (int i = 0; i < 3; i++) {
        optimizer += role_of(&program, old[i]) == MT_ROLE_OPTIMIZER_STATE;
        parameters += role_of(&program, old[i]) == MT_ROLE_PARAMETERS;
    }
    assert_int_equal(parameters, 1);
    assert_int_equal(optimizer, 2);
    assert_int_equal(role_of(&program, 0), MT_ROLE_PARAMETERS);
    assert_int_equal(role_of(&program, 1), MT_ROLE_OPTIMIZER_STATE);
    assert_int_equal(role_of(&program, temporary), MT_ROLE_TEMPORARIES);
    assert_int_equal(role_of(&program, loss), MT_ROLE_OTHER); /* as it was */
    end(&program);
}

/* Temporaries of an initializer are no parameters. */
TEST(temporaries_of_initializers)
{
    struct program program;

    begin(&program, true);
    uint64_t noise = make(&program, FLAX, 4096);
    run_module(&program);
    uint64_t kept = make(&program, FLAX, 4096);
    run_module(&program);
    drop(&program, noise);
    for (int i = 0; i < 4; i++)
        run_module(&program);
    finish(&program);
    assert_int_equal(role_of(&program, noise), MT_ROLE_OTHER);
    assert_int_equal(role_of(&program, kept), MT_ROLE_PARAMETERS);
    end(&program);
}

/* Blocks of these files also stay, but are neither parameters nor state. */
TEST(files_that_make_neither)
{
    struct program program;

    begin(&program, true);
    uint64_t first = make(&program, LOSS_OF_OPTAX, 4096);
    for (int maker = BATCHES_OF_FLAX; maker < MAKERS; maker++)
        make(&program, maker, 4096);
    for (int i = 0; i < 8; i++)
        run_module(&program);
    finish(&program);
    for (uint64_t block = first; block < program.count; block++)
        assert_int_equal(role_of(&program, block), MT_ROLE_OTHER); /* as they were */
    end(&program);
}

/* Other heaps, and programs that run no module, keep their roles. */
TEST(blocks_of_others)
{
    struct program program;

    begin(&program, true);
    uint64_t block = make_on(&program, OPTAX, 4096, 0);
    for (int i = 0; i < 8; i++)
        run_module(&program);
    finish(&program);
    assert_int_equal(role_of(&program, block), MT_ROLE_OTHER);
    end(&program);
    begin(&program, true);
    block = make(&program, OPTAX, 4096);
    finish(&program);
    assert_int_equal(role_of(&program, block), MT_ROLE_OTHER);
    end(&program);
    begin(&program, false);
    block = make(&program, OPTAX, 4096);
    for (int i = 0; i < 8; i++)
        run_module(&program);
    finish(&program);
    assert_int_equal(role_of(&program, block), MT_ROLE_OTHER);
    end(&program);
}

enum { REQUESTS = 3, TOKENS = 5 };

/* Blocks of a program without gradients: weights, and keys and values of each request, which jit
 * updates in place. The last ones stay until the end. */
struct served {
    struct program program;
    uint64_t weight, cache[REQUESTS][2];
};

static void serve(struct served *served, int requests, int blocks, const char *operation)
{
    struct program *program = &served->program;

    begin(program, true);
    served->weight = make(program, MAKER_NONE, 8192);
    run_model(program, OPERATION);
    drop(program, make(program, MAKER_NONE, 8192));
    for (int i = 0; i < requests; i++) {
        for (int block = 0; block < blocks; block++)
            served->cache[i][block] = make(program, CACHE, 4096);
        for (int token = 0; token < TOKENS; token++)
            run_model(program, operation);
        for (int block = 0; block < blocks && i + 1 < requests; block++)
            drop(program, served->cache[i][block]);
    }
    finish(program);
}

TEST(a_served_model)
{
    struct served served;

    serve(&served, REQUESTS, 2, SLICE);
    for (int i = 0; i < REQUESTS; i++)
        for (int block = 0; block < 2; block++)
            assert_int_equal(role_of(&served.program, served.cache[i][block]), MT_ROLE_KV_CACHE);
    end(&served.program);
}

TEST(weights_of_a_served_model)
{
    struct served served;

    serve(&served, REQUESTS, 2, SLICE);
    assert_int_equal(role_of(&served.program, served.weight), MT_ROLE_PARAMETERS);
    end(&served.program);
    serve(&served, REQUESTS, 2, OPERATION); /* no update in place: no cache, */
    assert_int_equal(role_of(&served.program, served.weight), MT_ROLE_PARAMETERS);
    assert_int_equal(role_of(&served.program, served.cache[0][0]), MT_ROLE_OTHER);
    end(&served.program);
    serve(&served, 1, 2, SLICE); /* ... or none that could be told from weights */
    assert_int_equal(role_of(&served.program, served.weight), MT_ROLE_OTHER);
    assert_int_equal(role_of(&served.program, served.cache[0][0]), MT_ROLE_OTHER);
    end(&served.program);
    serve(&served, REQUESTS, 1, SLICE); /* one block of its size is what the loop works on */
    assert_int_equal(role_of(&served.program, served.weight), MT_ROLE_OTHER);
    assert_int_equal(role_of(&served.program, served.cache[0][0]), MT_ROLE_OTHER);
    end(&served.program);
}

/* Parameters and state that jit changes in place look the same. */
TEST(a_program_with_gradients)
{
    struct served served;

    serve(&served, REQUESTS, 2, GRADIENT);
    assert_int_equal(role_of(&served.program, served.weight), MT_ROLE_OTHER);
    assert_int_equal(role_of(&served.program, served.cache[0][0]), MT_ROLE_OTHER);
    end(&served.program);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
