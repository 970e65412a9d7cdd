/* Roles in models that run repeatedly without a backward pass: caches of keys and values, and
 * blocks that only look like them. */
#include "cmocka_all.h"

#include "role_program.h"
#include "util.h"

/* Failure 2: inference has no backward pass, so a key-value cache looks temporary. */
TEST(inference)
{
    struct program p;

    begin(&p);
    enter(&p, "generate");
    uint64_t cache = born_by(&p, stack(&p, "update", "/x/transformers/cache_utils.py"), 4096);
    uint64_t temporary = born(&p);
    freed(&p, temporary);
    freed(&p, cache);
    leave(&p, "generate");
    finish(&p);
    assert_int_equal(role(&p, cache), MT_ROLE_KV_CACHE);
    assert_int_equal(role(&p, temporary), MT_ROLE_TEMPORARIES);
    assert_false(p.clock.saw_backward);
    end(&p);
}

/* Functions that create a cache or write to it, and source files of caches. Code that only uses a
 * cache, or a project in a folder of that name, does not count. */
TEST(frames_of_a_cache)
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
                  {"update_new", "/home/me/cache_utils_v2.py", true},
                  {"_allocate_kv_cache", "/x/vllm/v1/worker/gpu/attn_utils.py", true},
                  {"EngineCore._initialize_kv_caches", "/x/vllm/v1/engine/core.py", false},
                  {"_initialize_kv_caches", "/x/vllm/engine/llm_engine.py", false},
                  {"Model._initialize_kv_caches", "/home/me/model.py", true},
                  {"generate_with_kv_cache", "/home/me/model.py", false},
                  {"update_kv_cache_stats", "/home/me/model.py", false},
                  {"forward_no_kv_cache", "/home/me/model.py", false},
                  {"main", "/home/me/kv_cache_bench/train.py", false}};
    struct program p;
    uint32_t stacks[MT_ARRAY_LEN(frames)];

    begin(&p);
    for (size_t i = 0; i < MT_ARRAY_LEN(frames); i++)
        stacks[i] = stack(&p, frames[i].function, frames[i].file);
    mt_stack_kinds_update(&p.clock.stacks, &p.symbols);
    for (size_t i = 0; i < MT_ARRAY_LEN(frames); i++)
        if (!!(mt_stack_kind(&p.clock.stacks, stacks[i]) & MT_STACK_KV_CACHE) != frames[i].is_cache)
            fail_msg("%s %s", frames[i].function, frames[i].file);
    end(&p);
}

/* No frame names a cache: the evidence is that the blocks survive repeated calls of the model. */
TEST(a_cache_without_named_frames)
{
    struct program p;
    uint64_t keys, values, latent, output = 0;

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

/* If each token is an iteration, no block survives many calls. The chain of growing blocks is the
 * evidence, also for the block that the first of them replaced. */
TEST(a_cache_that_grows)
{
    enum { LAYERS = 3, TOKENS = 5 };
    struct program p;
    uint64_t cache[LAYERS], prompt = 0;

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

/* A run that fails in its first iteration: blocks that unwinding frees may be activations. */
TEST(death_after_many_calls)
{
    struct program p;
    uint64_t block[2];

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

/* Each request has one latent, with the same size in all requests: it is no cache. Keys and values
 * have at least 1 MiB, so their blocks may have tails. */
TEST(one_block_in_each_request)
{
    struct program p;
    uint64_t latents[3], keys[3], values[3];

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

/* A request moves the model to the device and calls it repeatedly. The call of an outer module that
 * includes a layer does the same. */
TEST(modules_moved_over_calls)
{
    struct program p;
    uint64_t weights[2], layer, activation;

    begin(&p);
    uint32_t move = stack(&p, "_apply", "/x/torch/nn/modules/module.py");
    uint32_t call = stack(&p, "_call_impl", "/x/torch/nn/modules/module.py");
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

/* One layer at a time is on the device: 14 GB of model, 1 GB of memory. */
TEST(layers_moved_one_at_a_time)
{
    struct program p;
    uint64_t second;

    begin(&p);
    uint32_t move = stack(&p, "_apply", "/x/torch/nn/modules/module.py");
    uint64_t first = born_by(&p, move, 4096);
    uint64_t batch = born(&p);
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

/* With a library's cache, other blocks that survive many calls are no cache: a batch, an encoder's
 * output. */
TEST(other_blocks_with_a_library_cache)
{
    struct program p;

    begin(&p);
    enter(&p, "request#0");
    uint64_t batch = born(&p);
    uint64_t cache = born_by(&p, stack(&p, "update", "/x/transformers/cache_utils.py"), 4096);
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

/* Before the first call, a program makes keys and values for each layer, in one loop or in two, by
 * one line or by two. Other numbers of blocks may be batches. So may these if the layers have few
 * parameters, or if each call makes a block of that size. Blocks between those of the model are its
 * parameters. */
TEST(a_cache_made_before_the_loop)
{
    enum { LAYERS = 4 };
    static const struct {
        const char *values; /* the function that makes the values; NULL: only keys */
        bool in_turn, is_within_model, trains;
        int parameters; /* of each layer */
        uint64_t call_bytes;
        enum mt_role role;
    } programs[] = {
        {"make_values", true, false, false, 6, 4096, MT_ROLE_KV_CACHE},
        {"make_values", false, false, false, 6, 4096, MT_ROLE_KV_CACHE},
        {"make_keys", false, false, false, 6, 4096, MT_ROLE_KV_CACHE},
        {"make_keys", false, false, false, 5, 4096, MT_ROLE_PARAMETERS},
        {"make_keys", false, false, false, 6, 8192, MT_ROLE_PARAMETERS},
        {NULL, false, false, false, 6, 4096, MT_ROLE_PARAMETERS},
        {"make_values", true, true, false, 6, 4096, MT_ROLE_PARAMETERS},
        {"make_values", true, false, true, 6, 4096, MT_ROLE_INPUTS},
    };

    for (size_t n = 0; n < MT_ARRAY_LEN(programs); n++) {
        const int blocks = programs[n].values ? 2 * LAYERS : LAYERS;
        struct program p;
        uint64_t cache[2 * LAYERS], weight = 0;

        begin(&p);
        for (int i = 0; i < blocks; i++) {
            bool is_value = programs[n].in_turn ? i % 2 : i >= LAYERS;

            if (i % 2 == 0 && (programs[n].is_within_model || i == 0))
                for (int k = programs[n].is_within_model ? programs[n].parameters
                                                         : programs[n].parameters * LAYERS;
                     k; k--)
                    weight = born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"),
                                     512 * (32 + (uint64_t)(k % programs[n].parameters)));
            cache[i] = born_by(
                &p, stack(&p, is_value ? programs[n].values : "make_keys", "/home/me/generate.py"),
                8192);
        }
        for (int call = 0; call < 6; call++) {
            enter(&p, "forward");
            freed(&p, born_by(&p, stack(&p, "call", "/home/me/model.py"), programs[n].call_bytes));
            leave(&p, "forward");
        }
        if (programs[n].trains)
            enter(&p, "backward");
        (void)born(&p);
        finish(&p);
        assert_int_equal(role(&p, weight), MT_ROLE_PARAMETERS);
        for (int i = 0; i < blocks; i++)
            if (role(&p, cache[i]) != programs[n].role)
                fail_msg("program %d, block %d: %d", (int)n, i, role(&p, cache[i]));
        end(&p);
    }
}

/* One block for each parameter, all replaced in the second turn: an estimate that the program
 * updates. Few blocks, or blocks of few sizes, may be batches, also if a parameter has their size.
 * What the last turn frees was there while the model worked. */
TEST(a_block_for_each_parameter)
{
    static const struct {
        int count, sizes, turns;
        enum mt_role role;
    } programs[] = {
        {16, 3, 3, MT_ROLE_OTHER},  {15, 3, 3, MT_ROLE_INPUTS},     {16, 1, 3, MT_ROLE_INPUTS},
        {16, 2, 3, MT_ROLE_INPUTS}, {16, 3, 2, MT_ROLE_PARAMETERS},
    };

    for (size_t n = 0; n < MT_ARRAY_LEN(programs); n++) {
        const int count = programs[n].count;
        struct program p;
        uint64_t blocks[16];

        begin(&p);
        for (int i = 0; i < 16; i++)
            (void)born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"),
                          8192 * (1 + (uint64_t)(i % 3)));
        for (int i = 0; i < count; i++)
            blocks[i] = born_by(&p, stack(&p, "make", "/home/me/estimate.py"),
                                8192 * (1 + (uint64_t)(i % programs[n].sizes)));
        for (int turn = 0; turn < programs[n].turns; turn++) {
            enter(&p, "forward");
            freed(&p, born(&p));
            for (int i = 0; turn == 1 && i < count; i++)
                freed(&p, blocks[i]);
            leave(&p, "forward");
        }
        finish(&p);
        for (int i = 0; i < count; i++)
            if (role(&p, blocks[i]) != programs[n].role)
                fail_msg("program %d, block %d: %d", (int)n, i, role(&p, blocks[i]));
        end(&p);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
