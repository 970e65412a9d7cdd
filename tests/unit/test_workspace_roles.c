/* Workspaces of libraries, and blocks that only have the size of one. */
#include "cmocka_all.h"

#include "role_program.h"

/* A forward pass alone, in which tensors have the size of a workspace by accident. */
TEST(many_of_a_workspaces_size)
{
    struct program p;
    uint64_t block = 0;

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

/* As above, in the first of several steps: of seven blocks, none is a workspace. */
TEST(many_in_the_first_step)
{
    static const char *const names[] = {"step#0", "step#1", "step#2"};
    struct program p;
    uint64_t block = 0;

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
TEST(a_workspace_on_each_device)
{
    struct program p;
    uint32_t linear;

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

/* A model that is validated before the loop allocates its workspaces then. A thread of autograd
 * allocates its own in the first step. A checkpoint calls the model inside backward. All are freed
 * if the program ends normally. */
TEST(workspaces_of_early_calls)
{
    struct program p;
    uint64_t recomputed;

    begin(&p);
    uint32_t call = stack(&p, "_call_impl", "/x/torch/nn/modules/module.py");
    uint32_t hook = stack(&p, "unpack_hook", "/x/torch/utils/checkpoint.py");
    enter(&p, "dataloader");
    leave(&p, "dataloader");
    enter(&p, "validation");
    uint64_t blas = born_by(&p, call, 32u << 20);
    uint64_t lt = born_by(&p, call, 1u << 20);
    leave(&p, "validation");
    enter(&p, "step#0");
    enter(&p, "backward");
    uint64_t of_engine = born_by(&p, MT_NO_ID, 32u << 20);
    uint64_t gradient = born_by(&p, MT_NO_ID, 1u << 20);
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

/* Accumulated over four steps and then cleared, with the size of a workspace. */
TEST(a_gradient_of_a_workspaces_size)
{
    static const char *const names[] = {"step#0", "step#1", "step#2", "step#3"};
    struct program p;
    uint64_t gradient = 0, workspace = 0;

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

/* Two parameters of a workspace's size have two gradients, made in each turn or once, in a trace
 * that ends after backward or after they are cleared. The third block is a workspace. */
TEST(gradients_of_large_parameters)
{
    static const char *const names[] = {"step#0", "step#1", "step#2"};

    for (int turns = 1; turns <= 3; turns += 2)
        for (int clears = 0; clears < 2; clears++)
            for (int ends_cleared = 0; ends_cleared <= clears; ends_cleared++) {
                struct program p;
                uint64_t gradients[2] = {0}, workspace = 0;

                begin(&p);
                for (int i = 0; i < 2; i++)
                    (void)born_by(&p, stack(&p, "_apply", "/x/torch/nn/modules/module.py"),
                                  32u << 20);
                for (int step = 0; step < turns; step++) {
                    enter(&p, names[step]);
                    enter(&p, "backward");
                    if (!step)
                        workspace = born_by(&p, MT_NO_ID, 32u << 20);
                    for (int i = 0; i < 2 && (!step || clears); i++)
                        gradients[i] = born_by(&p, MT_NO_ID, 32u << 20);
                    leave(&p, "backward");
                    enter(&p, "zero_grad");
                    for (int i = 0; i < 2 && clears && (step + 1 < turns || ends_cleared); i++)
                        freed(&p, gradients[i]);
                    leave(&p, "zero_grad");
                    leave(&p, names[step]);
                }
                finish(&p);
                assert_int_equal(role(&p, gradients[0]), MT_ROLE_GRADIENTS);
                assert_int_equal(role(&p, gradients[1]), MT_ROLE_GRADIENTS);
                assert_int_equal(role(&p, workspace), MT_ROLE_WORKSPACE);
                end(&p);
            }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
