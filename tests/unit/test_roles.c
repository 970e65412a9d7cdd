/* Roles of single blocks in small made-up programs, and the known failures of
 * the rules. */
#include "cmocka_all.h"

#include <stdio.h>

#include <string.h>

#include "roles.h"
#include "util.h"

enum { MOST = 64 };

/* A program: ranges, blocks that are born and freed. */
struct program {
    struct mt_arena arena;
    struct mt_symbols symbols;
    struct mt_phases phases;
    struct mt_role_clock clock;
    uint64_t seq, blocks;
    uint8_t codes[MOST];
    uint32_t stacks[MOST], units[MOST];
};

static void begin(struct program *p)
{
    memset(p, 0, sizeof *p);
    assert_int_equal(mt_symbols_init(&p->symbols), MT_OK);
    mt_phases_init(&p->phases, &p->arena, &p->symbols);
    mt_role_clock_init(&p->clock, &p->phases, &p->symbols, true);
}

static void end(struct program *p)
{
    mt_role_clock_release(&p->clock);
    mt_phases_release(&p->phases);
    mt_symbols_release(&p->symbols);
    mt_arena_release(&p->arena);
}

static uint32_t string(struct program *p, const char *text)
{
    uint32_t id;

    assert_int_equal(mt_symbols_string(&p->symbols, text, strlen(text), &id), MT_OK);
    return id;
}

static uint32_t stack_in(struct program *p, uint32_t outer, const char *function, const char *file)
{
    uint32_t frame, id;

    assert_int_equal(mt_symbols_frame(&p->symbols, string(p, function), string(p, file), 1, &frame),
                     MT_OK);
    assert_int_equal(mt_symbols_stack(&p->symbols, outer, frame, &id), MT_OK);
    return id;
}

static uint32_t stack(struct program *p, const char *function, const char *file)
{
    return stack_in(p, MT_NO_ID, function, file);
}

static void enter(struct program *p, const char *name)
{
    struct mt_event event = {.seq = p->seq++, .name = string(p, name)};
    int32_t phase;

    assert_int_equal(mt_phases_push(&p->phases, &event, &phase), MT_OK);
    mt_role_clock_push(&p->clock, phase, event.name);
}

static void leave(struct program *p, const char *name)
{
    struct mt_event event = {.seq = p->seq++, .name = string(p, name)};

    mt_phases_pop(&p->phases, &event);
    mt_role_clock_pop(&p->clock);
}

static uint64_t born_on(struct program *p, uint16_t device, uint32_t stack_id, uint64_t bytes)
{
    struct mt_event event = {
        .kind = MT_EVENT_ALLOC, .size_bytes = bytes, .stack = stack_id, .device = device};

    p->codes[p->blocks] = MT_ROLE_CODE_OPEN;
    p->stacks[p->blocks] = stack_id;
    p->units[p->blocks] = (uint32_t)(bytes / 512);
    assert_int_equal(
        mt_role_clock_birth(&p->clock, mt_phases_current(&p->phases, 0), &event, p->blocks), MT_OK);
    return p->blocks++;
}

static uint64_t born_by(struct program *p, uint32_t stack_id, uint64_t bytes)
{
    return born_on(p, 0, stack_id, bytes);
}

static uint64_t born(struct program *p)
{
    return born_by(p, stack(p, "somewhere", "/home/me/train.py"), 4096);
}

static void ends(struct program *p, uint64_t block, enum mt_fate fate)
{
    p->codes[block] = mt_role_clock_end(&p->clock, mt_phases_current(&p->phases, 0), block, fate);
}

static void freed(struct program *p, uint64_t block)
{
    ends(p, block, MT_FATE_FREED);
}

static void finish(struct program *p)
{
    mt_phases_finish(&p->phases, p->seq, p->seq);
    assert_int_equal(mt_role_clock_finish(&p->clock, p->codes, p->units, p->blocks), MT_OK);
}

static enum mt_role role(const struct program *p, uint64_t block)
{
    return mt_role_resolve(&p->clock, p->codes[block], p->stacks[block],
                           (uint64_t)p->units[block] * 512);
}

/* Between ranges that name no part, and nothing works with a model: no batch of anything. */
static void no_model(void **state)
{
    struct program p;
    uint64_t before, block;

    (void)state;
    begin(&p);
    before = born(&p);
    for (int i = 0; i < 3; i++) {
        enter(&p, "grow");
        if (i == 0)
            freed(&p, before);
        leave(&p, "grow");
        block = born(&p);
        enter(&p, "shrink");
        freed(&p, block);
        leave(&p, "shrink");
    }
    finish(&p);
    assert_int_equal(role(&p, before), MT_ROLE_OTHER);
    assert_int_equal(role(&p, block), MT_ROLE_OTHER);
    end(&p);
}

/* A batch whose graph is kept, with its loss. What is made behind the call may be anything. */
static void a_batch_that_is_kept(void **state)
{
    struct program p;
    uint64_t batches[4], results[4];

    (void)state;
    begin(&p);
    for (int i = 0; i < 4; i++) {
        char name[32];

        snprintf(name, sizeof name, "step#%d", i);
        enter(&p, name);
        batches[i] = born(&p);
        enter(&p, "forward");
        freed(&p, born(&p));
        leave(&p, "forward");
        enter(&p, "backward");
        freed(&p, born(&p));
        leave(&p, "backward");
        results[i] = born(&p);
        leave(&p, name);
    }
    finish(&p);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(role(&p, batches[i]), i ? MT_ROLE_INPUTS : MT_ROLE_OTHER);
        assert_int_equal(role(&p, results[i]), MT_ROLE_OTHER);
    }
    end(&p);
}

/* Two steps with everything in its place. */
static void training(void **state)
{
    struct program p;
    uint64_t parameter, scratch, batch, activation, kept, inner, gradient, buffer, moment, update;
    uint64_t workspace;

    (void)state;
    begin(&p);
    scratch = born(&p);
    parameter = born(&p);
    freed(&p, scratch);
    batch = born(&p);
    enter(&p, "step#0");
    enter(&p, "forward");
    inner = born(&p);
    freed(&p, inner);
    activation = born(&p);
    kept = born(&p); /* until the next step */
    workspace = born_by(&p, stack(&p, "linear", "/x/torch/nn/functional.py"), 32u << 20);
    leave(&p, "forward");
    enter(&p, "backward");
    buffer = born_by(&p, MT_NO_ID, 4096);
    gradient = born_by(&p, MT_NO_ID, 4096);
    freed(&p, activation);
    freed(&p, buffer);
    leave(&p, "backward");
    enter(&p, "optimizer");
    moment = born(&p);
    update = born(&p);
    freed(&p, update);
    leave(&p, "optimizer");
    leave(&p, "step#0");
    enter(&p, "step#1");
    freed(&p, kept);
    freed(&p, gradient);
    freed(&p, batch);
    leave(&p, "step#1");
    enter(&p, "step#2");
    leave(&p, "step#2");
    finish(&p);
    assert_int_equal(role(&p, scratch), MT_ROLE_TEMPORARIES);
    assert_int_equal(role(&p, parameter), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, batch), MT_ROLE_INPUTS);
    assert_int_equal(role(&p, inner), MT_ROLE_TEMPORARIES);
    assert_int_equal(role(&p, activation), MT_ROLE_ACTIVATIONS);
    assert_int_equal(role(&p, kept), MT_ROLE_ACTIVATIONS);
    assert_int_equal(role(&p, workspace), MT_ROLE_WORKSPACE);
    assert_int_equal(role(&p, buffer), MT_ROLE_TEMPORARIES);
    assert_int_equal(role(&p, gradient), MT_ROLE_GRADIENTS);
    assert_int_equal(role(&p, moment), MT_ROLE_OPTIMIZER_STATE);
    assert_int_equal(role(&p, update), MT_ROLE_TEMPORARIES);
    end(&p);
}

/* Failure 1: the program dies in forward; unwinding frees all in that phase. */
static void death_in_forward(void **state)
{
    struct program p;
    uint64_t parameter, activation, temporary;

    (void)state;
    begin(&p);
    parameter = born(&p);
    enter(&p, "step#0");
    enter(&p, "forward");
    temporary = born(&p);
    freed(&p, temporary);
    activation = born(&p);
    ends(&p, activation, MT_FATE_UNWOUND);
    leave(&p, "forward");
    leave(&p, "step#0");
    ends(&p, parameter, MT_FATE_UNWOUND);
    finish(&p);
    assert_int_equal(role(&p, temporary), MT_ROLE_TEMPORARIES);
    assert_int_equal(role(&p, activation), MT_ROLE_ACTIVATIONS);
    assert_int_equal(role(&p, parameter), MT_ROLE_PARAMETERS);
    end(&p);
}

/* Failure 2: inference has no backward; a key-value cache looks temporary. */
static void inference(void **state)
{
    struct program p;
    uint64_t cache, temporary;

    (void)state;
    begin(&p);
    enter(&p, "generate");
    cache = born_by(&p, stack(&p, "update", "/x/transformers/cache_utils.py"), 4096);
    temporary = born(&p);
    freed(&p, temporary);
    freed(&p, cache);
    leave(&p, "generate");
    finish(&p);
    assert_int_equal(role(&p, cache), MT_ROLE_KV_CACHE);
    assert_int_equal(role(&p, temporary), MT_ROLE_TEMPORARIES);
    assert_false(p.clock.saw_backward);
    end(&p);
}

/* Functions that make a cache, or put something into it, and files of one; not what works with one,
 * nor a project in a folder of that name. */
static void frames_of_a_cache(void **state)
{
    static const struct {
        const char *function, *file;
        bool is_cache;
    } frames[] = {{"update_kv_cache", "/home/me/model.py", true},
                  {"Attention._init_kv_caches", "/home/me/model.py", true},
                  {"kv_cache", "/home/me/model.py", true},
                  {"update", "/home/me/paged_kv_cache.py", true},
                  {"update", "C:\\me\\kv_cache.py", true},
                  {"update", "/x/transformers/cache_utils.py", true},
                  {"generate_with_kv_cache", "/home/me/model.py", false},
                  {"update_kv_cache_stats", "/home/me/model.py", false},
                  {"forward_no_kv_cache", "/home/me/model.py", false},
                  {"main", "/home/me/kv_cache_bench/train.py", false}};
    struct program p;
    uint32_t stacks[MT_ARRAY_LEN(frames)];

    (void)state;
    begin(&p);
    for (size_t i = 0; i < MT_ARRAY_LEN(frames); i++)
        stacks[i] = stack(&p, frames[i].function, frames[i].file);
    assert_int_equal(mt_stack_kinds_update(&p.clock.stacks, &p.symbols), MT_OK);
    for (size_t i = 0; i < MT_ARRAY_LEN(frames); i++)
        if (!!(mt_stack_kind(&p.clock.stacks, stacks[i]) & MT_STACK_KV_CACHE) != frames[i].is_cache)
            fail_msg("%s %s", frames[i].function, frames[i].file);
    end(&p);
}

/* A loss that is summed up keeps the graph of every step. */
/* No frame says so: kept while the model is called again and again. */
static void a_cache_of_ones_own(void **state)
{
    struct program p;
    uint64_t keys, values, latent, output = 0;

    (void)state;
    for (int trains = 0; trains < 2; trains++) {
        begin(&p);
        enter(&p, "request#0");
        enter(&p, "forward");
        keys = born(&p);
        values = born(&p);
        latent = born_by(&p, stack(&p, "somewhere", "/home/me/train.py"), 1024);
        leave(&p, "forward");
        for (int call = 0; call < 6; call++) {
            enter(&p, "forward");
            output = born(&p);
            leave(&p, "forward");
            freed(&p, output);
        }
        freed(&p, keys);
        freed(&p, values);
        freed(&p, latent);
        if (trains)
            enter(&p, "backward");
        (void)born(&p);
        finish(&p);
        assert_int_equal(role(&p, keys), trains ? MT_ROLE_ACTIVATIONS : MT_ROLE_KV_CACHE);
        assert_int_equal(role(&p, values), trains ? MT_ROLE_ACTIVATIONS : MT_ROLE_KV_CACHE);
        assert_int_equal(role(&p, latent), MT_ROLE_ACTIVATIONS); /* one of its size */
        assert_int_equal(role(&p, output), MT_ROLE_ACTIVATIONS);
        end(&p);
    }
}

/* Where each token is a turn of its own, no block outlives many calls: the chain of ever longer
 * blocks says what they are, and what the first of them replaced. */
static void a_cache_that_grows(void **state)
{
    enum { LAYERS = 3, TOKENS = 5 };
    struct program p;
    uint64_t cache[LAYERS], prompt = 0;

    (void)state;
    for (int trains = 0; trains < 2; trains++) {
        begin(&p);
        for (int token = 0; token < TOKENS; token++) {
            enter(&p, "token");
            for (int layer = 0; layer < LAYERS; layer++) {
                const char *maker = token ? "cat" : "project";
                uint64_t longer = born_by(&p, stack(&p, maker, "/home/me/generate.py"),
                                          8192 + 512 * (uint64_t)token);

                if (token)
                    freed(&p, cache[layer]);
                cache[layer] = longer;
                freed(&p, born(&p)); /* the rest of the layer */
            }
            prompt = token ? prompt : cache[0];
            leave(&p, "token");
        }
        enter(&p, trains ? "backward" : "token");
        (void)born(&p);
        finish(&p);
        assert_int_equal(role(&p, cache[0]) == MT_ROLE_KV_CACHE, !trains);
        assert_int_equal(role(&p, cache[LAYERS - 1]) == MT_ROLE_KV_CACHE, !trains);
        assert_int_equal(role(&p, prompt) == MT_ROLE_KV_CACHE, !trains);
        end(&p);
    }
}

/* A run that dies in its first turn: what unwinding frees may be what backward would have needed.
 */
static void death_after_many_calls(void **state)
{
    struct program p;
    uint64_t block[2];

    (void)state;
    begin(&p);
    enter(&p, "request#0");
    enter(&p, "forward");
    block[0] = born(&p);
    block[1] = born(&p);
    leave(&p, "forward");
    for (int call = 0; call < 6; call++) {
        enter(&p, "forward");
        (void)born(&p);
        leave(&p, "forward");
    }
    ends(&p, block[0], MT_FATE_UNWOUND);
    ends(&p, block[1], MT_FATE_UNWOUND);
    finish(&p);
    assert_int_equal(role(&p, block[0]), MT_ROLE_ACTIVATIONS);
    end(&p);
}

/* Each request has one latent of a size that all requests share: none is a cache. Keys and values
 * may have tails, as they are blocks of a MiB and more. */
static void one_block_in_each_request(void **state)
{
    struct program p;
    uint64_t latents[3], keys[3], values[3];

    (void)state;
    begin(&p);
    for (int request = 0; request < 3; request++) {
        const char *name = request == 0 ? "request#0" : request == 1 ? "request#1" : "request#2";

        enter(&p, name);
        enter(&p, "forward");
        latents[request] = born_by(&p, stack(&p, "sample", "/home/me/train.py"), 65536);
        keys[request] = born_by(&p, stack(&p, "sample", "/home/me/train.py"), 4u << 20);
        values[request] =
            born_by(&p, stack(&p, "sample", "/home/me/train.py"), (4u << 20) + (300u << 10));
        leave(&p, "forward");
        for (int call = 0; call < 6; call++) {
            enter(&p, "forward");
            freed(&p, born(&p));
            leave(&p, "forward");
        }
        freed(&p, latents[request]);
        freed(&p, keys[request]);
        freed(&p, values[request]);
        leave(&p, name);
    }
    finish(&p);
    for (int request = 0; request < 3; request++) {
        assert_int_equal(role(&p, latents[request]), MT_ROLE_ACTIVATIONS);
        assert_int_equal(role(&p, keys[request]), MT_ROLE_KV_CACHE);
        assert_int_equal(role(&p, values[request]), MT_ROLE_KV_CACHE);
    }
    end(&p);
}

/* A request moves the model to the device and calls it again and again; so does the call of an
 * outer module with a layer. */
static void modules_moved_over_calls(void **state)
{
    struct program p;
    uint64_t weights[2], layer, activation;
    uint32_t move, call;

    (void)state;
    begin(&p);
    move = stack(&p, "_apply", "/x/torch/nn/modules/module.py");
    call = stack(&p, "_call_impl", "/x/torch/nn/modules/module.py");
    enter(&p, "request#0");
    for (int i = 0; i < 2; i++)
        weights[i] = born_by(&p, move, 4096);
    for (int i = 0; i < 6; i++) {
        enter(&p, "forward");
        layer = born_by(&p, stack_in(&p, call, "_apply", "/x/torch/nn/modules/module.py"), 8192);
        activation = born_by(&p, call, 8192);
        freed(&p, activation);
        freed(&p, layer);
        leave(&p, "forward");
    }
    for (int i = 0; i < 2; i++)
        freed(&p, weights[i]);
    leave(&p, "request#0");
    finish(&p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(role(&p, weights[i]), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, layer), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, activation), MT_ROLE_TEMPORARIES);
    end(&p);
}

/* A layer at a time on the device: 14 GB of model, 1 GB of memory. */
static void layers_moved_in_turn(void **state)
{
    struct program p;
    uint64_t first, second, batch;
    uint32_t move;

    (void)state;
    begin(&p);
    move = stack(&p, "_apply", "/x/torch/nn/modules/module.py");
    first = born_by(&p, move, 4096);
    batch = born(&p);
    for (int layer = 0; layer < 3; layer++) {
        enter(&p, layer ? "step#1" : "step#0");
        second = born_by(&p, move, 4096);
        enter(&p, "forward");
        freed(&p, born(&p));
        leave(&p, "forward");
        freed(&p, second);
        if (!layer) {
            freed(&p, first);
            freed(&p, batch);
        }
        leave(&p, layer ? "step#1" : "step#0");
    }
    finish(&p);
    assert_int_equal(role(&p, first), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, second), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, batch), MT_ROLE_INPUTS);
    end(&p);
}

/* A forward pass alone, in which tensors have the size of a workspace by accident. */
static void many_of_a_workspaces_size(void **state)
{
    struct program p;
    uint64_t block = 0;

    (void)state;
    for (int count = 1; count < 20; count += 18) {
        begin(&p);
        enter(&p, "forward");
        for (int i = 0; i < count; i++)
            block = born_by(&p, stack(&p, "linear", "/x/torch/nn/functional.py"), 32u << 20);
        finish(&p);
        assert_int_equal(role(&p, block), count == 1 ? MT_ROLE_WORKSPACE : MT_ROLE_ACTIVATIONS);
        end(&p);
    }
}

/* The same in the first of several steps: of seven blocks none is a workspace. */
static void many_in_the_first_step(void **state)
{
    static const char *const names[] = {"step#0", "step#1", "step#2"};
    struct program p;
    uint64_t block = 0;

    (void)state;
    for (int count = 6; count < 8; count++) {
        begin(&p);
        for (int step = 0; step < 3; step++) {
            enter(&p, names[step]);
            enter(&p, "forward");
            for (int i = 0; !step && i < count; i++)
                block = born_by(&p, stack(&p, "linear", "/x/torch/nn/functional.py"), 32u << 20);
            leave(&p, "forward");
            leave(&p, names[step]);
        }
        finish(&p);
        assert_int_equal(role(&p, block), count == 6 ? MT_ROLE_WORKSPACE : MT_ROLE_OTHER);
        end(&p);
    }
}

/* A model that is spread over eight devices takes a workspace on each. */
static void a_workspace_on_each_device(void **state)
{
    struct program p;
    uint32_t linear;

    (void)state;
    begin(&p);
    linear = stack(&p, "linear", "/x/torch/nn/functional.py");
    enter(&p, "forward");
    for (uint16_t device = 0; device < 8; device++)
        (void)born_on(&p, device, linear, 32u << 20);
    finish(&p);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(role(&p, i), MT_ROLE_WORKSPACE);
    end(&p);
}

/* What a conversion replaces were parameters, what initialisation throws away was not. */
static void conversion_in_setup(void **state)
{
    struct program p;
    uint64_t old, replaced, scratch;

    (void)state;
    begin(&p);
    scratch = born_by(&p, stack(&p, "kaiming_uniform_", "/x/torch/nn/init.py"), 4096);
    freed(&p, scratch);
    old = born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 4096);
    replaced = born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 2048);
    freed(&p, old);
    enter(&p, "step#0");
    enter(&p, "forward");
    freed(&p, born(&p));
    finish(&p);
    assert_int_equal(role(&p, scratch), MT_ROLE_TEMPORARIES);
    assert_int_equal(role(&p, old), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, replaced), MT_ROLE_PARAMETERS);
    end(&p);
}

static void leak(void **state)
{
    struct program p;
    uint64_t blocks[5];
    char name[16] = "step#0";

    (void)state;
    begin(&p);
    for (int step = 0; step < 5; step++) {
        name[5] = (char)('0' + step);
        enter(&p, name);
        enter(&p, "validate");
        blocks[step] = born(&p);
        leave(&p, "validate");
        leave(&p, name);
    }
    finish(&p);
    for (int step = 0; step < 5; step++)
        assert_int_equal(role(&p, blocks[step]), MT_ROLE_ACTIVATIONS);
    end(&p);
}

/* Failure 5: no annotations at all, only stacks. */
static void stacks_of(const char *module_path, const char *adam_path)
{
    struct program p;
    uint64_t parameter, activation, gradient, moment;
    uint32_t module, adam, set_up;

    begin(&p);
    module = stack(&p, "_call_impl", module_path);
    adam = stack(&p, "step", adam_path);
    set_up = stack(&p, "_apply", module_path);
    parameter = born_by(&p, set_up, 4096);
    activation = born_by(&p, module, 4096);
    gradient = born_by(&p, MT_NO_ID, 4096);
    freed(&p, activation);
    moment = born_by(&p, adam, 4096);
    (void)born_by(&p, module, 4096);
    freed(&p, gradient);
    finish(&p);
    assert_int_equal(role(&p, parameter), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, activation), MT_ROLE_ACTIVATIONS);
    assert_int_equal(role(&p, gradient), MT_ROLE_GRADIENTS);
    assert_int_equal(role(&p, moment), MT_ROLE_OPTIMIZER_STATE);
    assert_int_equal(p.clock.cycles, 2);
    end(&p);
}

static void stacks_alone(void **state)
{
    (void)state;
    stacks_of("/x/torch/nn/modules/module.py", "/x/torch/optim/adam.py");
}

static void stacks_of_windows(void **state)
{
    (void)state;
    stacks_of("D:\\x\\Lib\\site-packages\\torch\\nn\\modules\\module.py",
              "D:\\x\\Lib\\site-packages\\torch\\optim\\adam.py");
}

/* Ranges that repeat make cycles without numbers. */
static void cycles_without_steps(void **state)
{
    struct program p;
    uint64_t moment = 0;

    (void)state;
    begin(&p);
    for (int turn = 0; turn < 3; turn++) {
        enter(&p, "forward");
        leave(&p, "forward");
        enter(&p, "optimizer");
        if (turn == 0)
            moment = born(&p);
        leave(&p, "optimizer");
    }
    finish(&p);
    assert_int_equal(p.clock.cycles, 3);
    assert_int_equal(role(&p, moment), MT_ROLE_OPTIMIZER_STATE);
    end(&p);
}

/* A model that is validated before the loop takes its workspaces then; a thread of autograd takes
 * its own in the first step; a checkpoint calls the model within backward. All are freed when the
 * program ends in order. */
static void workspaces_of_early_calls(void **state)
{
    struct program p;
    uint64_t blas, lt, of_engine, recomputed, gradient;
    uint32_t call, hook;

    (void)state;
    begin(&p);
    call = stack(&p, "_call_impl", "/x/torch/nn/modules/module.py");
    hook = stack(&p, "unpack_hook", "/x/torch/utils/checkpoint.py");
    enter(&p, "dataloader");
    leave(&p, "dataloader");
    enter(&p, "validation");
    blas = born_by(&p, call, 32u << 20);
    lt = born_by(&p, call, 1u << 20);
    leave(&p, "validation");
    enter(&p, "step#0");
    enter(&p, "backward");
    of_engine = born_by(&p, MT_NO_ID, 32u << 20);
    gradient = born_by(&p, MT_NO_ID, 1u << 20);
    recomputed =
        born_by(&p, stack_in(&p, hook, "_call_impl", "/x/torch/nn/modules/module.py"), 1u << 20);
    leave(&p, "backward");
    leave(&p, "step#0");
    for (int step = 1; step < 3; step++) {
        enter(&p, step == 1 ? "step#1" : "step#2");
        leave(&p, step == 1 ? "step#1" : "step#2");
    }
    freed(&p, blas);
    freed(&p, lt);
    freed(&p, of_engine);
    freed(&p, gradient);
    freed(&p, recomputed);
    finish(&p);
    assert_int_equal(role(&p, blas), MT_ROLE_WORKSPACE);
    assert_int_equal(role(&p, lt), MT_ROLE_WORKSPACE);
    assert_int_equal(role(&p, of_engine), MT_ROLE_WORKSPACE);
    assert_int_equal(role(&p, recomputed), MT_ROLE_WORKSPACE);
    assert_int_equal(role(&p, gradient), MT_ROLE_GRADIENTS);
    end(&p);
}

/* Added up over four steps and then cleared, in the size of a workspace. */
static void a_gradient_of_a_workspaces_size(void **state)
{
    static const char *const names[] = {"step#0", "step#1", "step#2", "step#3"};
    struct program p;
    uint64_t gradient = 0, workspace = 0;

    (void)state;
    begin(&p);
    for (int step = 0; step < 4; step++) {
        enter(&p, names[step]);
        enter(&p, "backward");
        if (!step) {
            gradient = born_by(&p, MT_NO_ID, 32u << 20);
            workspace = born_by(&p, MT_NO_ID, 32u << 20);
        }
        leave(&p, "backward");
        if (step == 3) {
            enter(&p, "zero_grad");
            freed(&p, gradient);
            leave(&p, "zero_grad");
        }
        leave(&p, names[step]);
    }
    freed(&p, workspace);
    finish(&p);
    assert_int_equal(role(&p, gradient), MT_ROLE_GRADIENTS);
    assert_int_equal(role(&p, workspace), MT_ROLE_WORKSPACE);
    end(&p);
}

/* Data that is there before the loop has no gradient. Blocks of more than a MiB may have tails. */
static void data_before_the_loop(void **state)
{
    struct program p;
    uint64_t parameter, frozen, own, copy, rollouts;

    (void)state;
    for (int trains = 0; trains < 2; trains++) {
        begin(&p);
        parameter = born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 4u << 20);
        frozen = born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 8u << 20);
        own = born_by(&p, stack(&p, "main", "/home/me/train.py"), 4096);
        copy = born_by(&p, stack(&p, "main", "/home/me/train.py"), 5u << 20);
        rollouts = born_by(&p, stack(&p, "main", "/home/me/train.py"), 48u << 20);
        enter(&p, "step#0");
        enter(&p, "forward");
        (void)born(&p);
        leave(&p, "forward");
        if (trains) {
            enter(&p, "backward");
            (void)born_by(&p, MT_NO_ID, 4u << 20);
            (void)born_by(&p, MT_NO_ID, 4096);
            leave(&p, "backward");
        }
        leave(&p, "step#0");
        enter(&p, "step#1");
        finish(&p);
        assert_int_equal(role(&p, parameter), MT_ROLE_PARAMETERS);
        assert_int_equal(role(&p, frozen), MT_ROLE_PARAMETERS);
        assert_int_equal(role(&p, own), MT_ROLE_PARAMETERS);
        assert_int_equal(role(&p, copy), MT_ROLE_PARAMETERS);
        assert_int_equal(role(&p, rollouts), trains ? MT_ROLE_INPUTS : MT_ROLE_PARAMETERS);
        end(&p);
    }
}

/* Plain SGD adds up the gradients of six micro-batches: their sizes are those of parameters, though
 * they outlive calls of the model. The workspace of backward is no gradient. */
static void gradients_of_micro_batches(void **state)
{
    struct program p;
    uint64_t own, data, gradient;

    (void)state;
    begin(&p);
    (void)born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 4096);
    own = born_by(&p, stack(&p, "main", "/home/me/train.py"), 65536);
    data = born_by(&p, stack(&p, "main", "/home/me/train.py"), 32u << 20);
    enter(&p, "step#0");
    enter(&p, "backward");
    gradient = born_by(&p, MT_NO_ID, 65536);
    (void)born_by(&p, MT_NO_ID, 32u << 20);
    leave(&p, "backward");
    for (int batch = 0; batch < 6; batch++) {
        enter(&p, "forward");
        (void)born(&p);
        leave(&p, "forward");
        enter(&p, "backward");
        leave(&p, "backward");
    }
    freed(&p, gradient);
    leave(&p, "step#0");
    finish(&p);
    assert_int_equal(role(&p, own), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, data), MT_ROLE_INPUTS);
    assert_int_equal(role(&p, gradient), MT_ROLE_GRADIENTS);
    end(&p);
}

/* Beside a library's cache, what lives over many calls is no cache: a batch, an encoder's output.
 */
static void beside_a_librarys_cache(void **state)
{
    struct program p;
    uint64_t cache, batch;

    (void)state;
    begin(&p);
    enter(&p, "request#0");
    batch = born(&p);
    cache = born_by(&p, stack(&p, "update", "/x/transformers/cache_utils.py"), 4096);
    for (int call = 0; call < 6; call++) {
        enter(&p, "forward");
        freed(&p, born(&p));
        leave(&p, "forward");
    }
    leave(&p, "request#0");
    freed(&p, batch);
    freed(&p, cache);
    finish(&p);
    assert_int_equal(role(&p, cache), MT_ROLE_KV_CACHE);
    assert_int_equal(role(&p, batch), MT_ROLE_INPUTS);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_model),
        cmocka_unit_test(a_batch_that_is_kept),
        cmocka_unit_test(training),
        cmocka_unit_test(death_in_forward),
        cmocka_unit_test(inference),
        cmocka_unit_test(frames_of_a_cache),
        cmocka_unit_test(leak),
        cmocka_unit_test(a_cache_of_ones_own),
        cmocka_unit_test(a_cache_that_grows),
        cmocka_unit_test(death_after_many_calls),
        cmocka_unit_test(one_block_in_each_request),
        cmocka_unit_test(layers_moved_in_turn),
        cmocka_unit_test(modules_moved_over_calls),
        cmocka_unit_test(many_of_a_workspaces_size),
        cmocka_unit_test(many_in_the_first_step),
        cmocka_unit_test(a_workspace_on_each_device),
        cmocka_unit_test(gradients_of_micro_batches),
        cmocka_unit_test(conversion_in_setup),
        cmocka_unit_test(stacks_alone),
        cmocka_unit_test(stacks_of_windows),
        cmocka_unit_test(cycles_without_steps),
        cmocka_unit_test(workspaces_of_early_calls),
        cmocka_unit_test(a_gradient_of_a_workspaces_size),
        cmocka_unit_test(data_before_the_loop),
        cmocka_unit_test(beside_a_librarys_cache),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
