/* Roles of blocks that come in sets of one for each parameter. */
#include "cmocka_all.h"

#include <stdio.h>

#include "role_program.h"

enum { PARAMETERS = 3, TURNS = 3 };

static const uint64_t sizes[PARAMETERS] = {4096, 8192, 12288};

static uint32_t at_line(struct program *p, uint32_t outer, const char *function, const char *file,
                        uint32_t line)
{
    uint32_t frame, id;

    assert_int_equal(
        mt_symbols_frame(&p->symbols, string(p, function), string(p, file), line, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(&p->symbols, outer, frame, &id), MT_OK);
    return id;
}

/* A set of blocks of one stack. */
struct set {
    uint64_t blocks[PARAMETERS];
};

static struct set make_set(struct program *p, uint32_t stack_id)
{
    struct set set;

    for (int i = 0; i < PARAMETERS; i++)
        set.blocks[i] = born_by(p, stack_id, sizes[i]);
    return set;
}

static void free_set(struct program *p, const struct set *set)
{
    for (int i = 0; i < PARAMETERS; i++)
        freed(p, set->blocks[i]);
}

static void assert_roles(const struct program *p, const struct set *set, enum mt_role wanted)
{
    for (int i = 0; i < PARAMETERS; i++)
        assert_int_equal(role(p, set->blocks[i]), wanted);
}

/* What a program does in each turn. The members that are 0 or NULL do nothing. */
struct loop {
    struct program *p;
    uint32_t main;         /* stack of the loop */
    uint32_t update;       /* makes a block for each parameter in the optimizer, and frees it */
    bool has_no_gradients; /* made in the loop */
    bool has_no_optimizer; /* of torch.optim: the part has no name, and `update` runs in it */
    uint32_t replaces;     /* makes the successors of `old`, one by one, in the optimizer */
    struct set old;
    uint64_t counter; /* is dropped while the first successor is the newest */
    void (*after_backward)(struct loop *loop, int turn);
    void (*after_step)(struct loop *loop, int turn);
    struct set saved[TURNS];
    uint64_t batch;
};

/* The line that makes a successor also makes a block that it drops after it. */
static void work_on_parameters(struct loop *loop)
{
    for (int i = 0; i < PARAMETERS; i++) {
        if (loop->update)
            freed(loop->p, born_by(loop->p, loop->update, sizes[i]));
        if (!loop->replaces)
            continue;
        uint64_t temporary = born_by(loop->p, loop->replaces, sizes[i]);
        uint64_t next = born_by(loop->p, loop->replaces, sizes[i]);
        freed(loop->p, temporary);
        if (loop->counter) {
            freed(loop->p, loop->counter);
            loop->counter = 0;
        }
        freed(loop->p, loop->old.blocks[i]);
        loop->old.blocks[i] = next;
    }
}

static void call_and_backward(struct loop *loop, struct set *gradients)
{
    struct program *p = loop->p;

    enter(p, "forward");
    freed(p, born_by(p, at_line(p, loop->main, "_call_impl", "/x/torch/nn/modules/module.py", 1),
                     4096));
    leave(p, "forward");
    enter(p, "backward");
    if (!loop->has_no_gradients)
        *gradients = make_set(p, MT_NO_ID);
    freed(p, born_by(p, MT_NO_ID, 512));
    leave(p, "backward");
}

static void run_loop(struct loop *loop)
{
    struct program *p = loop->p;

    for (int turn = 0; turn < TURNS; turn++) {
        struct set gradients = {{0}};
        char name[32];

        snprintf(name, sizeof name, "step#%d", turn);
        enter(p, name);
        call_and_backward(loop, &gradients);
        if (loop->after_backward)
            loop->after_backward(loop, turn);
        if (!loop->has_no_optimizer)
            enter(p, "optimizer");
        work_on_parameters(loop);
        if (!loop->has_no_optimizer)
            leave(p, "optimizer");
        enter(p, "zero_grad");
        if (!loop->has_no_gradients)
            free_set(p, &gradients);
        leave(p, "zero_grad");
        if (loop->after_step)
            loop->after_step(loop, turn);
        leave(p, name);
    }
    finish(p);
}

static void begin_loop(struct loop *loop, struct program *p)
{
    begin(p);
    memset(loop, 0, sizeof *loop);
    loop->p = p;
    loop->main = at_line(p, MT_NO_ID, "main", "/home/me/train.py", 90);
}

static uint32_t model_stack(struct program *p)
{
    return at_line(p, MT_NO_ID, "build", "/home/me/model.py", 5);
}

/* step() of an optimizer of the program, below torch's wrapper. */
static uint32_t own_step(const struct loop *loop, uint32_t line)
{
    uint32_t wrapper = at_line(loop->p, loop->main, "wrapper", "/x/torch/optim/optimizer.py", 500);

    return at_line(loop->p, wrapper, "step", "/home/me/own.py", line);
}

/* The constructor makes the state. In another file, or below step(), it is of another class. */
TEST(state_of_a_constructor)
{
    static const struct {
        const char *function, *file;
        uint32_t line;
        enum mt_role role;
    } cases[] = {{"__init__", "/home/me/own.py", 10, MT_ROLE_OPTIMIZER_STATE},
                 {"__init__", "/home/me/average.py", 10, MT_ROLE_PARAMETERS},
                 {"__init__", "/home/me/own.py", 30, MT_ROLE_PARAMETERS},
                 {"Average.__init__", "/home/me/own.py", 10, MT_ROLE_PARAMETERS},
                 {"start", "/home/me/own.py", 10, MT_ROLE_PARAMETERS}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct program p;
        struct loop loop;

        begin_loop(&loop, &p);
        loop.update = own_step(&loop, 20);
        uint32_t constructor =
            at_line(&p, MT_NO_ID, cases[i].function, cases[i].file, cases[i].line);
        struct set parameters = make_set(&p, model_stack(&p));
        struct set made =
            make_set(&p, at_line(&p, constructor, "make", cases[i].file, cases[i].line + 1));
        run_loop(&loop);
        assert_roles(&p, &parameters, MT_ROLE_PARAMETERS);
        assert_roles(&p, &made, cases[i].role);
        end(&p);
    }
}

/* A loop over names makes two blocks for each parameter; or there is one block of a parameter's
 * size. */
TEST(blocks_of_a_constructor)
{
    struct program p;
    struct loop loop;

    begin_loop(&loop, &p);
    loop.update = own_step(&loop, 20);
    uint32_t constructor = at_line(&p, MT_NO_ID, "__init__", "/home/me/own.py", 10);
    make_set(&p, model_stack(&p));
    struct set first = make_set(&p, constructor);
    struct set second = make_set(&p, constructor);
    uint64_t one = born_by(&p, at_line(&p, MT_NO_ID, "__init__", "/home/me/own.py", 11), sizes[2]);
    run_loop(&loop);
    assert_roles(&p, &first, MT_ROLE_OPTIMIZER_STATE);
    assert_roles(&p, &second, MT_ROLE_OPTIMIZER_STATE);
    assert_int_equal(role(&p, one), MT_ROLE_PARAMETERS);
    end(&p);
}

/* A model whose parameters are made by such a constructor: they come first. */
TEST(parameters_of_a_constructor)
{
    struct program p;
    struct loop loop;

    begin_loop(&loop, &p);
    loop.update = own_step(&loop, 20);
    struct set parameters = make_set(&p, at_line(&p, MT_NO_ID, "__init__", "/home/me/own.py", 10));
    run_loop(&loop);
    assert_roles(&p, &parameters, MT_ROLE_PARAMETERS);
    end(&p);
}

/* `p.data = p.data - ...` */
TEST(replaced_parameters)
{
    struct program p;
    struct loop loop;
    struct set parameters;

    begin_loop(&loop, &p);
    parameters = loop.old = make_set(&p, model_stack(&p));
    loop.counter = born_by(&p, at_line(&p, MT_NO_ID, "main", "/home/me/train.py", 81), 512);
    loop.replaces = own_step(&loop, 20);
    run_loop(&loop);
    assert_roles(&p, &parameters, MT_ROLE_PARAMETERS);
    assert_roles(&p, &loop.old, MT_ROLE_PARAMETERS);
    end(&p);
}

/* `state = 0.9 * state + ...`, where the state is made by the loop's function before it. */
TEST(replaced_state)
{
    struct program p;
    struct loop loop;
    struct set first;

    begin_loop(&loop, &p);
    struct set parameters = make_set(&p, model_stack(&p));
    first = loop.old = make_set(&p, at_line(&p, MT_NO_ID, "main", "/home/me/train.py", 80));
    loop.replaces = own_step(&loop, 20);
    run_loop(&loop);
    assert_roles(&p, &parameters, MT_ROLE_PARAMETERS);
    assert_roles(&p, &first, MT_ROLE_OPTIMIZER_STATE);
    assert_roles(&p, &loop.old, MT_ROLE_OPTIMIZER_STATE);
    end(&p);
}

/* State that step() makes and replaces has no older block. */
TEST(state_of_step)
{
    struct program p;
    struct loop loop;

    begin_loop(&loop, &p);
    make_set(&p, model_stack(&p));
    enter(&p, "step#100");
    enter(&p, "optimizer");
    loop.old = make_set(&p, own_step(&loop, 20));
    leave(&p, "optimizer");
    leave(&p, "step#100");
    loop.replaces = own_step(&loop, 20);
    run_loop(&loop);
    assert_roles(&p, &loop.old, MT_ROLE_OPTIMIZER_STATE);
    end(&p);
}

static void average(struct loop *loop, int turn)
{
    uint32_t line = at_line(loop->p, loop->main, "average", "/home/me/train.py", 95);

    for (int i = 0; i < PARAMETERS; i++) {
        uint64_t next = born_by(loop->p, line, sizes[i]);

        freed(loop->p, loop->old.blocks[i]);
        loop->old.blocks[i] = next;
    }
    (void)turn;
}

/* `average[name] = 0.9 * average[name] + ...` after the optimizer. */
TEST(averaged_parameters)
{
    struct program p;
    struct loop loop;
    struct set first;

    begin_loop(&loop, &p);
    make_set(&p, model_stack(&p));
    loop.update = own_step(&loop, 20);
    first = loop.old = make_set(&p, at_line(&p, MT_NO_ID, "main", "/home/me/train.py", 80));
    loop.after_step = average;
    run_loop(&loop);
    assert_roles(&p, &first, MT_ROLE_PARAMETERS);
    assert_roles(&p, &loop.old, MT_ROLE_PARAMETERS);
    end(&p);
}

static void next_batch(struct loop *loop, int turn)
{
    uint64_t next =
        born_by(loop->p, at_line(loop->p, loop->main, "batch", "/home/me/data.py", 3), sizes[2]);

    freed(loop->p, loop->batch);
    loop->batch = next;
    (void)turn;
}

/* The next batch also takes the place of the last one, and has the size of a parameter. */
TEST(replaced_batch)
{
    struct program p;
    struct loop loop;

    begin_loop(&loop, &p);
    make_set(&p, model_stack(&p));
    loop.update = own_step(&loop, 20);
    uint64_t first = loop.batch =
        born_by(&p, at_line(&p, MT_NO_ID, "batch", "/home/me/data.py", 3), sizes[2]);
    loop.after_step = next_batch;
    run_loop(&loop);
    assert_int_equal(role(&p, first), MT_ROLE_INPUTS);
    end(&p);
}

static uint32_t save_stack(const struct loop *loop)
{
    return at_line(loop->p, loop->main, "save", "/home/me/train.py", 70);
}

static void save(struct loop *loop, int turn)
{
    loop->saved[turn] = make_set(loop->p, save_stack(loop));
    if (turn)
        free_set(loop->p, &loop->saved[turn - 1]);
}

static void call_again(struct loop *loop)
{
    struct set gradients;

    call_and_backward(loop, &gradients);
    enter(loop->p, "zero_grad");
    free_set(loop->p, &gradients);
    leave(loop->p, "zero_grad");
}

static void save_and_call_again(struct loop *loop, int turn)
{
    save(loop, turn);
    call_again(loop);
}

static void save_one_and_call_again(struct loop *loop, int turn)
{
    uint64_t one = born_by(loop->p, save_stack(loop), sizes[2]);

    for (int i = 0; i < PARAMETERS; i++)
        loop->saved[turn].blocks[i] = one;
    if (turn)
        freed(loop->p, loop->saved[turn - 1].blocks[0]);
    call_again(loop);
}

static void save_and_drop(struct loop *loop, int turn)
{
    loop->saved[turn] = make_set(loop->p, save_stack(loop));
    enter(loop->p, "zero_grad");
    free_set(loop->p, &loop->saved[turn]);
    leave(loop->p, "zero_grad");
    call_again(loop);
}

/* A second call needs the copies. Copies that only the optimizer needs may be of gradients. */
TEST(saved_parameters)
{
    static const struct {
        void (*after_backward)(struct loop *, int);
        enum mt_role role;
    } cases[] = {{save_and_call_again, MT_ROLE_PARAMETERS},
                 {save, MT_ROLE_INPUTS},
                 {save_one_and_call_again, MT_ROLE_INPUTS},
                 {save_and_drop, MT_ROLE_INPUTS}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct program p;
        struct loop loop;

        begin_loop(&loop, &p);
        make_set(&p, model_stack(&p));
        loop.update = own_step(&loop, 20);
        loop.after_backward = cases[i].after_backward;
        run_loop(&loop);
        for (int turn = 0; turn + 1 < TURNS; turn++)
            assert_roles(&p, &loop.saved[turn], cases[i].role);
        end(&p);
    }
}

static void make_state_once(struct loop *loop, int turn)
{
    if (turn == 0)
        loop->saved[0] = make_set(loop->p, loop->update);
}

/* An optimizer that is a class of its own, without torch.optim. Elsewhere such a set is unknown. */
TEST(state_of_a_plain_class)
{
    for (int i = 0; i < 2; i++) {
        struct program p;
        struct loop loop;

        begin_loop(&loop, &p);
        make_set(&p, model_stack(&p));
        loop.has_no_optimizer = true;
        loop.update = at_line(&p, loop.main, i ? "main" : "step", "/home/me/train.py", 40);
        loop.after_backward = make_state_once;
        run_loop(&loop);
        assert_roles(&p, &loop.saved[0], i ? MT_ROLE_OTHER : MT_ROLE_OPTIMIZER_STATE);
        end(&p);
    }
}

/* Backward leaves no gradients: those of setup are views of one block. A stack that makes buckets,
 * or gradients, shows that they are elsewhere. */
TEST(flat_gradients)
{
    for (int i = 0; i < 3; i++) {
        struct program p;
        struct loop loop;

        begin_loop(&loop, &p);
        struct set parameters = make_set(&p, model_stack(&p));
        struct set second = make_set(&p, at_line(&p, MT_NO_ID, "main", "/home/me/train.py", 80));
        if (i == 1)
            born_by(&p, stack(&p, "_ddp_init_helper", "/x/torch/nn/parallel/distributed.py"), 512);
        loop.has_no_gradients = i < 2;
        enter(&p, "step#100");
        enter(&p, "optimizer");
        make_set(&p, own_step(&loop, 20));
        leave(&p, "optimizer");
        leave(&p, "step#100");
        run_loop(&loop);
        assert_roles(&p, &parameters, MT_ROLE_PARAMETERS);
        assert_roles(&p, &second, i ? MT_ROLE_PARAMETERS : MT_ROLE_GRADIENTS);
        end(&p);
    }
}

/* FSDP2 keeps the gradients of a parameter in another type until the last backward of a step. */
TEST(gradients_of_several_backwards)
{
    static const char *const functions[] = {"FSDPParam.to_accumulated_grad_if_needed",
                                            "FSDPParam.init_all_gather_outputs"};

    for (int run = 0; run < 2; run++) {
        struct program p;
        struct loop loop;
        uint64_t kept[2];

        begin_loop(&loop, &p);
        make_set(&p, model_stack(&p));
        for (int turn = 0; turn < 2; turn++) {
            struct set gradients[2] = {{{0}}, {{0}}};

            enter(&p, turn ? "step#1" : "step#0");
            for (int part = 0; part < 2; part++) {
                call_and_backward(&loop, &gradients[part]);
                enter(&p, "backward");
                if (part)
                    freed(&p, kept[turn]);
                else
                    kept[turn] = born_by(
                        &p,
                        at_line(&p, MT_NO_ID, functions[run],
                                "/x/torch/distributed/fsdp/_fully_shard/_fsdp_param.py", 681),
                        1536);
                leave(&p, "backward");
            }
            enter(&p, "optimizer");
            free_set(&p, &gradients[0]);
            free_set(&p, &gradients[1]);
            leave(&p, "optimizer");
            leave(&p, turn ? "step#1" : "step#0");
        }
        finish(&p);
        assert_int_equal(role(&p, kept[1]) == MT_ROLE_GRADIENTS, !run);
        end(&p);
    }
}

enum { HOOKED = 16 };

/* Hooks of backward that replace blocks of setup, as an optimizer with state of 8 bits does. In run
 * 1 no constructor made these blocks, and in run 2 there are fewer. */
TEST(state_in_hooks)
{
    for (int run = 0; run < 3; run++) {
        struct program p;
        struct loop loop;
        const int count = run == 2 ? 15 : HOOKED;
        uint64_t old[HOOKED], heirs[HOOKED] = {0};

        begin_loop(&loop, &p);
        uint32_t made =
            at_line(&p, MT_NO_ID, run == 1 ? "batches" : "__init__", "/home/me/adam8.py", 5);
        uint32_t hook = at_line(&p, at_line(&p, MT_NO_ID, "<lambda>", "/home/me/train.py", 3),
                                "step", "/home/me/adam8.py", 20);
        make_set(&p, model_stack(&p));
        for (int i = 0; i < count; i++)
            old[i] = born_by(&p, made, 1536);
        for (int turn = 0; turn < 2; turn++) {
            struct set gradients = {{0}};

            enter(&p, turn ? "step#1" : "step#0");
            call_and_backward(&loop, &gradients);
            enter(&p, "backward");
            for (int i = 0; i < count; i++) {
                uint64_t next = born_by(&p, hook, 1536);

                freed(&p, turn ? heirs[i] : old[i]);
                heirs[i] = next;
            }
            leave(&p, "backward");
            enter(&p, "optimizer");
            free_set(&p, &gradients);
            leave(&p, "optimizer");
            leave(&p, turn ? "step#1" : "step#0");
        }
        finish(&p);
        assert_int_equal(role(&p, old[1]), run ? MT_ROLE_INPUTS : MT_ROLE_OPTIMIZER_STATE);
        assert_int_equal(role(&p, heirs[1]), run ? MT_ROLE_GRADIENTS : MT_ROLE_OPTIMIZER_STATE);
        end(&p);
    }
}

/* torch's Adagrad makes its state in its constructor. */
TEST(state_of_a_constructor_of_torch)
{
    struct program p;
    struct loop loop;

    begin_loop(&loop, &p);
    make_set(&p, model_stack(&p));
    struct set made = make_set(&p, stack(&p, "__init__", "/x/torch/optim/adagrad.py"));
    run_loop(&loop);
    assert_roles(&p, &made, MT_ROLE_OPTIMIZER_STATE);
    end(&p);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
