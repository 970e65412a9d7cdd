/* Roles of single blocks in small programs, and known failures of the rules. */
#include "cmocka_all.h"

#include <stdio.h>

#include "role_program.h"
#include "util.h"

/* Between ranges that name no phase, and without a model: the block is no batch. */
TEST(no_model)
{
    struct program p;
    uint64_t block;

    begin(&p);
    uint64_t before = born(&p);
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

/* A batch whose graph is kept, with its loss. Blocks allocated after the call may be anything. */
TEST(a_batch_that_is_kept)
{
    struct program p;
    uint64_t batches[4], results[4];

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

/* Two steps with all phases. */
TEST(training)
{
    struct program p;

    begin(&p);
    uint64_t scratch = born(&p);
    uint64_t parameter = born(&p);
    freed(&p, scratch);
    uint64_t batch = born(&p);
    enter(&p, "step#0");
    enter(&p, "forward");
    uint64_t inner = born(&p);
    freed(&p, inner);
    uint64_t activation = born(&p);
    uint64_t kept = born(&p); /* until the next step */
    uint64_t workspace = born_by(&p, stack(&p, "linear", "/x/torch/nn/functional.py"), 32u << 20);
    leave(&p, "forward");
    enter(&p, "backward");
    uint64_t buffer = born_by(&p, MT_NO_ID, 4096);
    uint64_t gradient = born_by(&p, MT_NO_ID, 4096);
    freed(&p, activation);
    freed(&p, buffer);
    leave(&p, "backward");
    enter(&p, "optimizer");
    uint64_t moment = born(&p);
    uint64_t update = born(&p);
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

/* Failure 1: the program fails in forward, and unwinding frees everything in that phase. */
TEST(death_in_forward)
{
    struct program p;

    begin(&p);
    uint64_t parameter = born(&p);
    enter(&p, "step#0");
    enter(&p, "forward");
    uint64_t temporary = born(&p);
    freed(&p, temporary);
    uint64_t activation = born(&p);
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

/* Blocks that a conversion replaces are parameters; blocks that initialization frees are not. */
TEST(conversion_in_setup)
{
    struct program p;

    begin(&p);
    uint64_t scratch = born_by(&p, stack(&p, "kaiming_uniform_", "/x/torch/nn/init.py"), 4096);
    freed(&p, scratch);
    uint64_t old = born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 4096);
    uint64_t replaced = born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 2048);
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

/* A loss that is accumulated keeps the graph of every step. */
TEST(leak)
{
    struct program p;
    uint64_t blocks[5];
    char name[16] = "step#0";

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

    begin(&p);
    uint32_t module = stack(&p, "_call_impl", module_path);
    uint32_t adam = stack(&p, "step", adam_path);
    uint32_t set_up = stack(&p, "_apply", module_path);
    uint64_t parameter = born_by(&p, set_up, 4096);
    uint64_t activation = born_by(&p, module, 4096);
    uint64_t gradient = born_by(&p, MT_NO_ID, 4096);
    freed(&p, activation);
    uint64_t moment = born_by(&p, adam, 4096);
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

TEST(stacks_alone)
{
    stacks_of("/x/torch/nn/modules/module.py", "/x/torch/optim/adam.py");
}

TEST(stacks_of_windows)
{
    stacks_of("D:\\x\\Lib\\site-packages\\torch\\nn\\modules\\module.py",
              "D:\\x\\Lib\\site-packages\\torch\\optim\\adam.py");
}

/* Ranges that repeat make cycles without numbers. */
TEST(cycles_without_steps)
{
    struct program p;
    uint64_t moment = 0;

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

/* Data from before the loop has no gradient. Blocks above 1 MiB may have tails. */
TEST(data_before_the_loop)
{
    struct program p;

    for (int trains = 0; trains < 2; trains++) {
        begin(&p);
        uint64_t parameter =
            born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 4u << 20);
        uint64_t frozen =
            born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 8u << 20);
        uint64_t own = born_by(&p, stack(&p, "main", "/home/me/train.py"), 4096);
        uint64_t copy = born_by(&p, stack(&p, "main", "/home/me/train.py"), 5u << 20);
        uint64_t rollouts = born_by(&p, stack(&p, "main", "/home/me/train.py"), 48u << 20);
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

/* Plain SGD accumulates the gradients of six micro-batches: they have the sizes of parameters, and
 * outlive calls of the model. The workspace of backward is no gradient. */
TEST(gradients_of_micro_batches)
{
    struct program p;

    begin(&p);
    (void)born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"), 4096);
    uint64_t own = born_by(&p, stack(&p, "main", "/home/me/train.py"), 65536);
    uint64_t data = born_by(&p, stack(&p, "main", "/home/me/train.py"), 32u << 20);
    enter(&p, "step#0");
    enter(&p, "backward");
    uint64_t gradient = born_by(&p, MT_NO_ID, 65536);
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

/* A graph that the program drops when the call ends, in the same phase; and a call without one. */
TEST(dropped_graph)
{
    struct program p;
    uint64_t kept[30], temporary = 0;

    begin(&p);
    enter(&p, "forward");
    for (int i = 0; i < 30; i++)
        kept[i] = born(&p);
    for (int i = 0; i < 30; i++)
        freed(&p, kept[i]);
    leave(&p, "forward");
    enter(&p, "forward");
    for (int i = 0; i < 30; i++)
        freed(&p, temporary = born(&p));
    leave(&p, "forward");
    finish(&p);
    assert_int_equal(role(&p, kept[0]), MT_ROLE_ACTIVATIONS);
    assert_int_equal(role(&p, temporary), MT_ROLE_TEMPORARIES);
    end(&p);
}

/* The second call also leaves a block behind, so that of the first is no buffer. */
TEST(graphs_of_three_calls_are_kept)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        struct program p;
        uint64_t first = 0;

        begin(&p);
        for (int i = 0; i < 3; i++) {
            enter(&p, "forward");
            if (i == 0)
                first = born(&p);
            else if (keeps)
                (void)born(&p);
            leave(&p, "forward");
        }
        finish(&p);
        assert_int_equal(role(&p, first), keeps ? MT_ROLE_ACTIVATIONS : MT_ROLE_OTHER);
        end(&p);
    }
}

/* The role of a block that a function of that name made below `outer`, if no model works; it was
 * alive when the trace began, or made in it. */
static enum mt_role role_by(const char *function, const char *outer, bool initial)
{
    struct program p;

    begin(&p);
    uint64_t block =
        born_by(&p,
                stack_in(&p, stack(&p, outer, "/home/me/run.py"), function,
                         strcmp(function, "_call_impl") ? "/home/me/model.py"
                                                        : "/x/torch/nn/modules/module.py"),
                4096);
    finish(&p);
    if (initial)
        p.codes[block] = MT_ROLE_CODE_INITIAL_KEPT;
    enum mt_role found = role(&p, block);
    end(&p);
    return found;
}

TEST(names_show_what_a_state_holds)
{
    for (int initial = 0; initial < 2; initial++) {
        assert_int_equal(role_by("init_weight", "load", initial), MT_ROLE_PARAMETERS);
        assert_int_equal(role_by("empty", "Loader.load_weights", initial), MT_ROLE_PARAMETERS);
        assert_int_equal(role_by("alloc_cache", "load_model", initial), MT_ROLE_KV_CACHE);
        assert_int_equal(role_by("weight", "run_model", initial), MT_ROLE_OTHER);
        assert_int_equal(role_by("load_weights_twice", "main", initial), MT_ROLE_OTHER);
        assert_int_equal(role_by("clear_cache", "main", initial), MT_ROLE_OTHER);
    }
    assert_int_equal(role_by("_call_impl", "load_model", true), MT_ROLE_OTHER); /* a warm-up */
}

/* If a model works, its work shows the roles. */
TEST(names_count_only_without_a_model)
{
    struct program p;

    begin(&p);
    uint64_t block = born_by(&p, stack(&p, "load_weights", "/home/me/run.py"), 4096);
    enter(&p, "forward");
    freed(&p, born(&p));
    leave(&p, "forward");
    finish(&p);
    p.codes[block] = MT_ROLE_CODE_INITIAL_KEPT;
    assert_int_equal(role(&p, block), MT_ROLE_OTHER);
    end(&p);
}

/* A loss function of the program: what it keeps for backward is no batch, but its first block may
 * be labels that are copied after the call. With a loss function of PyTorch, or where the program
 * fetches data, all blocks may be labels. A batch that backward frees existed when the model was
 * called. */
TEST(a_loss_between_the_parts)
{
    static const char *const names[] = {"step#0", "step#1", "step#2"};
    static const struct {
        const char *maker, *later; /* parts that make the blocks, and that follow */
        enum mt_role first, second;
    } programs[] = {
        {NULL, NULL, MT_ROLE_OTHER, MT_ROLE_ACTIVATIONS},
        {NULL, "loss", MT_ROLE_INPUTS, MT_ROLE_INPUTS},
        {"data", NULL, MT_ROLE_INPUTS, MT_ROLE_INPUTS},
    };

    for (size_t n = 0; n < MT_ARRAY_LEN(programs); n++) {
        struct program p;
        uint64_t batch = 0, kept[2] = {0, 0};

        begin(&p);
        for (int step = 0; step < 3; step++) {
            enter(&p, names[step]);
            batch = born(&p);
            enter(&p, "forward");
            (void)born(&p);
            leave(&p, "forward");
            if (programs[n].maker)
                enter(&p, programs[n].maker);
            for (int i = 0; i < 2; i++)
                kept[i] = born(&p);
            if (programs[n].maker)
                leave(&p, programs[n].maker);
            if (programs[n].later) {
                enter(&p, programs[n].later);
                freed(&p, born(&p));
                leave(&p, programs[n].later);
            }
            enter(&p, "backward");
            for (int i = 0; i < 2; i++)
                freed(&p, kept[i]);
            freed(&p, batch);
            leave(&p, "backward");
            leave(&p, names[step]);
        }
        finish(&p);
        assert_int_equal(role(&p, kept[0]), programs[n].first);
        assert_int_equal(role(&p, kept[1]), programs[n].second);
        assert_int_equal(role(&p, batch), MT_ROLE_INPUTS);
        end(&p);
    }
}

/* Megatron's constructor makes a buffer for parameters, and at a later line one for gradients. One
 * line, or a third one, shows neither. */
TEST(buffers_for_gradients)
{
    static const char file[] = "/x/megatron/core/distributed/param_and_grad_buffer.py";

    for (uint32_t lines = 1; lines <= 3; lines++) {
        struct program p;
        uint64_t buffers[3];

        begin(&p);
        for (uint32_t i = 0; i < lines; i++) {
            uint32_t frame, line;

            assert_int_equal(mt_symbols_frame(&p.symbols, string(&p, "__init__"), string(&p, file),
                                              586 + 6 * i, &frame),
                             MT_OK);
            assert_int_equal(mt_symbols_stack(&p.symbols, MT_NO_ID, frame, &line), MT_OK);
            buffers[i] =
                born_by(&p, stack_in(&p, line, "at::zeros", "Functions.h"), UINT64_C(4096) << i);
        }
        finish(&p);
        for (uint32_t i = 0; i < lines; i++)
            assert_int_equal(role(&p, buffers[i]),
                             lines == 2 && i ? MT_ROLE_GRADIENTS : MT_ROLE_PARAMETERS);
        end(&p);
    }
}

/* A benchmark of an operation calls no module, so the first part that stacks show is backward. */
TEST(no_call_before_backward)
{
    struct program p;

    begin(&p);
    uint64_t input = born(&p);
    uint64_t scratch = born(&p);
    freed(&p, scratch);
    uint64_t matrix = born(&p);
    (void)born_by(&p, stack(&p, "backward", "/x/torch/_tensor.py"), 4096);
    enter(&p, "backward");
    (void)born(&p);
    freed(&p, matrix);
    leave(&p, "backward");
    enter(&p, "backward");
    (void)born(&p);
    leave(&p, "backward");
    finish(&p);
    assert_int_equal(role(&p, input), MT_ROLE_PARAMETERS);
    assert_int_equal(role(&p, scratch), MT_ROLE_TEMPORARIES);
    assert_int_equal(role(&p, matrix), MT_ROLE_ACTIVATIONS);
    end(&p);
}

/* A step calls the model and torch.autograd.grad(create_graph=True) several times, then backward.
 * What the first ones keep for the last one are no gradients, unless it has a parameter's size. */
TEST(graphs_of_gradients)
{
    struct program p;
    uint64_t parameter, kept[4];

    begin(&p);
    parameter = born_by(&p, MT_NO_ID, 1024);
    for (int step = 0; step < 2; step++) {
        enter(&p, step ? "step#1" : "step#0");
        for (int i = 0; i < 2; i++) {
            enter(&p, "forward");
            freed(&p, born(&p));
            leave(&p, "forward");
            enter(&p, "backward");
            kept[2 * i] = born_by(&p, MT_NO_ID, 8192);
            kept[2 * i + 1] = born_by(&p, MT_NO_ID, 1024);
            leave(&p, "backward");
        }
        enter(&p, "loss");
        freed(&p, born(&p));
        leave(&p, "loss");
        enter(&p, "backward");
        for (int i = 0; i < 4; i++)
            freed(&p, kept[i]);
        leave(&p, "backward");
        leave(&p, step ? "step#1" : "step#0");
    }
    finish(&p);
    assert_int_equal(role(&p, parameter), MT_ROLE_PARAMETERS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(role(&p, kept[i]), i % 2 ? MT_ROLE_GRADIENTS : MT_ROLE_ACTIVATIONS);
    end(&p);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
