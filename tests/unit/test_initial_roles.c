/* Roles of blocks that were alive when a trace began. A constructed program tests each rule. */
#include "cmocka_all.h"

#include "early_roles.h"

#define KIB(n) ((uint64_t)(n) << 10)

static struct mt_early_blocks early;
static uint64_t blocks;

static int begin(void **state)
{
    (void)state;
    blocks = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    mt_early_blocks_release(&early);
    return 0;
}

static uint64_t add(struct mt_early_block block)
{
    mt_early_blocks_birth(&early, blocks, &block);
    return blocks++;
}

/* The first of `count` blocks. */
static uint64_t alive(uint64_t bytes, int count)
{
    uint64_t first = blocks;

    for (int i = 0; i < count; i++)
        (void)add((struct mt_early_block){.bytes = bytes, .initial = true});
    return first;
}

static uint64_t alive_by(uint64_t bytes, enum mt_phase_kind stack)
{
    return add(
        (struct mt_early_block){.bytes = bytes, .initial = true, .stack_kind = (uint8_t)stack});
}

static uint64_t born(uint64_t bytes, enum mt_phase_kind part)
{
    return add((struct mt_early_block){.bytes = bytes, .birth_kind = (uint8_t)part});
}

/* Backward makes gradients, which stay. */
static void backward_makes(uint64_t bytes, int count)
{
    for (int i = 0; i < count; i++)
        (void)born(bytes, MT_PHASE_BACKWARD);
}

/* In a phase other than its own. */
static void freed(uint64_t block, enum mt_phase_kind part, enum mt_role role)
{
    const struct mt_early_block how = {.end_kind = (uint8_t)part, .role = (uint8_t)role};

    mt_early_blocks_end(&early, block, &how);
}

/* Allocated and freed in a phase. */
static void passes_through(uint64_t bytes, enum mt_phase_kind part)
{
    const struct mt_early_block how = {
        .end_kind = (uint8_t)part, .role = MT_ROLE_TEMPORARIES, .died_in_part = true};

    mt_early_blocks_end(&early, born(bytes, part), &how);
}

/* How many of `count` blocks have the role? */
static void expect_some(uint64_t first, int count, enum mt_role role, int some)
{
    int found = 0;

    for (uint64_t i = first; i < first + (uint64_t)count; i++)
        found += early.blocks[i].role == role;
    assert_int_equal(found, some);
}

static void expect(uint64_t first, int count, enum mt_role role)
{
    expect_some(first, count, role, count);
}

/* All blocks of a size: first the parameters, then their gradients and the state of the optimizer.
 */
static void expect_split(uint64_t first, int parameters, int gradients, int states)
{
    const int count = parameters + gradients + states;

    expect_some(first, count, MT_ROLE_PARAMETERS, parameters);
    expect_some(first, count, MT_ROLE_GRADIENTS, gradients);
    expect_some(first, count, MT_ROLE_OPTIMIZER_STATE, states);
}

static void infer(void)
{
    mt_initial_roles_infer(&early);
}

TEST_WITH(no_evidence, begin, end)
{
    uint64_t block = alive(KIB(64), 1), workspace = alive(8519680, 1);

    (void)born(512, MT_PHASE_UNKNOWN);
    infer();
    expect(block, 1, MT_ROLE_OTHER);
    expect(workspace, 1, MT_ROLE_OTHER); /* its size alone is no evidence */
}

TEST_WITH(a_call_needs_its_parameters, begin, end)
{
    uint64_t block = alive(KIB(64), 5), workspace = alive(8519680, 2);

    passes_through(512, MT_PHASE_FORWARD);
    infer();
    expect(block, 5, MT_ROLE_PARAMETERS);
    expect(workspace, 2, MT_ROLE_WORKSPACE);
}

TEST_WITH(many_of_a_workspaces_size, begin, end)
{
    uint64_t block = alive(8519680, 7);

    passes_through(512, MT_PHASE_FORWARD);
    infer();
    expect(block, 7, MT_ROLE_PARAMETERS);
}

/* Adam: a block without gradient is frozen, also if a trained one has the same size. */
TEST_WITH(gradients_show_parameters_and_state, begin, end)
{
    uint64_t trained = alive(KIB(64), 7), frozen = alive(KIB(256), 2), other = alive(KIB(8), 3);

    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(64), 2);
    backward_makes(KIB(8), 1);
    infer();
    expect_split(trained, 3, 0, 4);
    expect(frozen, 2, MT_ROLE_PARAMETERS);
    expect_some(other, 3, MT_ROLE_OPTIMIZER_STATE, 2);
}

/* Adam's state is certain. A third block is AMSGrad's, or a copy of the model. */
TEST_WITH(a_third_block_for_each_parameter, begin, end)
{
    uint64_t one = alive(KIB(64), 4), two = alive(KIB(16), 8);

    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(64), 1);
    backward_makes(KIB(16), 2);
    infer();
    expect_some(one, 4, MT_ROLE_PARAMETERS, 1);
    expect_some(one, 4, MT_ROLE_OPTIMIZER_STATE, 2);
    expect_some(one, 4, MT_ROLE_OTHER, 1);
    expect_some(two, 8, MT_ROLE_PARAMETERS, 2);
    expect_some(two, 8, MT_ROLE_OPTIMIZER_STATE, 4);
    expect_some(two, 8, MT_ROLE_OTHER, 2);
}

/* Most parameters have no other blocks of their size: the optimizer has no state. */
TEST_WITH(frozen_ones_are_no_state, begin, end)
{
    uint64_t some = alive(KIB(64), 5), large = alive(KIB(256), 2);

    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(64), 1);
    backward_makes(KIB(256), 2);
    infer();
    expect(some, 5, MT_ROLE_PARAMETERS);
    expect(large, 2, MT_ROLE_PARAMETERS);
}

/* Two iterations clear their gradients: there is one parameter, not two. */
TEST_WITH(gradients_of_two_iterations, begin, end)
{
    uint64_t block = alive(KIB(64), 3);

    for (int turn = 0; turn < 2; turn++) {
        passes_through(512, MT_PHASE_FORWARD);
        uint64_t gradient = born(KIB(64), MT_PHASE_BACKWARD);
        freed(gradient, MT_PHASE_ZERO_GRAD, MT_ROLE_GRADIENTS);
    }
    infer();
    expect_split(block, 1, 0, 2);
}

/* Half precision: a copy of the parameters and two moments, of twice the size each. */
TEST_WITH(state_of_twice_the_size, begin, end)
{
    uint64_t parameters = alive(KIB(64), 2), wide = alive(KIB(128), 6);

    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(64), 2);
    infer();
    expect(parameters, 2, MT_ROLE_PARAMETERS);
    expect(wide, 6, MT_ROLE_OPTIMIZER_STATE);
}

/* Three blocks of each size: Adam's, or three equal models. Only a graph is a sign of training. */
TEST_WITH(equal_models_have_no_state, begin, end)
{
    static const uint64_t sizes[] = {KIB(64), KIB(32), KIB(16)};
    uint64_t first[3];

    for (int training = 0; training < 2; training++) {
        for (int i = 0; i < 3; i++)
            first[i] = alive(sizes[i], 3);
        passes_through(512, MT_PHASE_FORWARD);
        early.keeps_no_graph = !training;
        infer();
        for (int i = 0; i < 3; i++)
            expect_some(first[i], 3, MT_ROLE_OPTIMIZER_STATE, training ? 2 : 0);
        (void)end(NULL);
        (void)begin(NULL);
    }
}

/* One block of flat weights, whose state is in two pairs of pieces. */
TEST_WITH(state_in_pieces, begin, end)
{
    uint64_t flat = alive(KIB(96), 1), linear = alive(KIB(16), 3);
    uint64_t large = alive(KIB(64), 2), small = alive(KIB(32), 2);

    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(96), 1);
    backward_makes(KIB(16), 1);
    infer();
    expect(flat, 1, MT_ROLE_PARAMETERS);
    expect_some(linear, 3, MT_ROLE_OPTIMIZER_STATE, 2);
    expect(large, 2, MT_ROLE_OPTIMIZER_STATE);
    expect(small, 2, MT_ROLE_OPTIMIZER_STATE);
}

TEST_WITH(buckets, begin, end)
{
    uint64_t parameters = alive(KIB(64), 4), bucket = alive(KIB(256), 1);

    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(64), 4);
    infer();
    expect(parameters, 4, MT_ROLE_PARAMETERS);
    expect(bucket, 1, MT_ROLE_GRADIENTS);
}

/* Each parameter, its gradient, two moments. Gradients are cleared in place, so backward leaves no
 * blocks. */
TEST_WITH(gradients_cleared_in_place, begin, end)
{
    uint64_t one = alive(KIB(64), 4), two = alive(KIB(16), 8), three = alive(KIB(4), 4);

    passes_through(512, MT_PHASE_FORWARD);
    passes_through(512, MT_PHASE_BACKWARD);
    infer();
    expect_split(one, 1, 1, 2);
    expect_some(two, 8, MT_ROLE_OPTIMIZER_STATE, 4);
    expect_some(three, 4, MT_ROLE_GRADIENTS, 1);
}

/* The trace begins in a call, or directly before it. Only after it has made its last block does the
 * program drop the results of the call before. */
TEST_WITH(the_graph_of_the_call_before, begin, end)
{
    uint64_t graph = alive(KIB(64), 3), temporary = alive(KIB(64), 1), other = alive(KIB(16), 1);

    passes_through(512, MT_PHASE_FORWARD);
    freed(temporary, MT_PHASE_FORWARD, MT_ROLE_OTHER);
    for (int i = 0; i < 3; i++)
        (void)born(KIB(64), MT_PHASE_FORWARD);
    for (int i = 0; i < 3; i++)
        freed(graph + (uint64_t)i, MT_PHASE_FORWARD, MT_ROLE_OTHER);
    freed(other, MT_PHASE_FORWARD, MT_ROLE_OTHER);
    infer();
    expect(graph, 3, MT_ROLE_ACTIVATIONS);
    expect(temporary, 1, MT_ROLE_TEMPORARIES);
    expect(other, 1, MT_ROLE_TEMPORARIES);
}

/* An adapter is trained: backward makes gradients of its size only. */
TEST_WITH(counts_of_frozen_parameters, begin, end)
{
    uint64_t one = alive(KIB(64), 4), two = alive(KIB(16), 8), three = alive(KIB(4), 4);
    uint64_t adapters = alive(KIB(1), 2);

    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(1), 2);
    infer();
    expect(one, 4, MT_ROLE_PARAMETERS);
    expect(two, 8, MT_ROLE_PARAMETERS);
    expect(three, 4, MT_ROLE_PARAMETERS);
    expect(adapters, 2, MT_ROLE_PARAMETERS);
}

/* Layers occur four times. A block that occurs once shows that counts are no evidence. */
TEST_WITH(a_model_of_four_layers, begin, end)
{
    uint64_t layers = alive(KIB(64), 4), more = alive(KIB(16), 8), norms = alive(KIB(4), 4);
    uint64_t embedding = alive(KIB(48), 1);

    passes_through(512, MT_PHASE_FORWARD);
    infer();
    expect(layers, 4, MT_ROLE_PARAMETERS);
    expect(more, 8, MT_ROLE_PARAMETERS);
    expect(norms, 4, MT_ROLE_PARAMETERS);
    expect(embedding, 1, MT_ROLE_PARAMETERS);
}

/* Backward is already running: existing gradients do not count as state. */
TEST_WITH(began_in_backward, begin, end)
{
    uint64_t one = alive(KIB(64), 7), two = alive(KIB(16), 3), three = alive(KIB(32), 3);
    uint64_t activation = alive(KIB(20), 1);

    freed(activation, MT_PHASE_UNKNOWN, MT_ROLE_OTHER); /* the phase is unknown */
    backward_makes(KIB(64), 1);
    backward_makes(KIB(16), 1);
    backward_makes(KIB(32), 1);
    passes_through(512, MT_PHASE_OPTIMIZER);
    infer();
    expect_split(one, 2, 1, 4);
    expect_some(two, 3, MT_ROLE_OPTIMIZER_STATE, 2);
    expect(three, 1, MT_ROLE_PARAMETERS);
    expect(activation, 1, MT_ROLE_ACTIVATIONS);
}

/* A ring buffer keeps stacks, so parameters are known. Gradients have no stacks. */
TEST_WITH(stacks_show_parameters, begin, end)
{
    uint64_t parameter = alive_by(KIB(64), MT_PHASE_SETUP);
    uint64_t moment = alive_by(KIB(64), MT_PHASE_OPTIMIZER), gradient = alive(KIB(64), 1);

    passes_through(512, MT_PHASE_OPTIMIZER);
    infer();
    expect(parameter, 1, MT_ROLE_PARAMETERS);
    expect(moment, 1, MT_ROLE_OPTIMIZER_STATE);
    expect(gradient, 1, MT_ROLE_GRADIENTS);
}

TEST_WITH(blocks_that_calls_leave_behind, begin, end)
{
    uint64_t leaked = alive(KIB(20), 3), parameter = alive(KIB(64), 1);

    for (int turn = 0; turn < 3; turn++)
        (void)born(KIB(20), MT_PHASE_FORWARD);
    infer();
    expect(leaked, 3, MT_ROLE_ACTIVATIONS);
    expect(parameter, 1, MT_ROLE_PARAMETERS);
}

/* The ends of blocks are evidence. */
TEST_WITH(where_blocks_end, begin, end)
{
    uint64_t scratch = alive(KIB(4), 1), activation = alive(KIB(8), 1);
    uint64_t gradient = alive(KIB(16), 1), batch = alive(KIB(2), 1), output = alive(KIB(6), 1);

    passes_through(512, MT_PHASE_FORWARD);
    freed(scratch, MT_PHASE_FORWARD, MT_ROLE_OTHER);
    uint64_t next_output = born(KIB(6), MT_PHASE_FORWARD);
    passes_through(512, MT_PHASE_BACKWARD);
    freed(activation, MT_PHASE_BACKWARD, MT_ROLE_OTHER);
    freed(gradient, MT_PHASE_ZERO_GRAD, MT_ROLE_OTHER);
    uint64_t next_batch = born(KIB(2), MT_PHASE_DATA);
    freed(batch, MT_PHASE_DATA, MT_ROLE_OTHER);
    freed(output, MT_PHASE_DATA, MT_ROLE_OTHER);
    passes_through(512, MT_PHASE_FORWARD);
    freed(next_batch, MT_PHASE_DATA, MT_ROLE_INPUTS);
    freed(next_output, MT_PHASE_DATA, MT_ROLE_ACTIVATIONS);
    passes_through(512, MT_PHASE_FORWARD);
    infer();
    expect(scratch, 1, MT_ROLE_TEMPORARIES);
    expect(activation, 1, MT_ROLE_ACTIVATIONS);
    expect(gradient, 1, MT_ROLE_GRADIENTS);
    expect(batch, 1, MT_ROLE_INPUTS);
    expect(output, 1, MT_ROLE_ACTIVATIONS);
}

/* A trace without initial state needs no extra memory. */
TEST_WITH(complete_traces_cost_nothing, begin, end)
{
    for (int i = 0; i < 100; i++)
        (void)born(KIB(4), MT_PHASE_FORWARD);
    assert_int_equal(early.count, 0);
    infer();
}

/* An optimizer with `m = beta * m + ...`: the successor of each block of the state is allocated
 * before the block ends. Gradients are accumulated in place, so none is allocated. */
TEST_WITH(state_that_is_replaced, begin, end)
{
    uint64_t stays[3], moments[3];

    for (int i = 0; i < 3; i++) {
        stays[i] = alive(KIB(64) << i, 8);
        moments[i] = alive(KIB(64) << i, 8);
    }
    passes_through(512, MT_PHASE_FORWARD);
    passes_through(512, MT_PHASE_BACKWARD);
    for (int i = 0; i < 3; i++)
        for (uint64_t j = 0; j < 8; j++) {
            (void)born(KIB(64) << i, MT_PHASE_OPTIMIZER);
            freed(moments[i] + j, MT_PHASE_OPTIMIZER, MT_ROLE_OTHER);
        }
    infer();
    for (int i = 0; i < 3; i++) {
        expect(moments[i], 8, MT_ROLE_OPTIMIZER_STATE);
        expect_split(stays[i], 4, 4, 0);
    }
}

/* Adam's first step, which also frees the gradients: two blocks are allocated for each that ends.
 */
TEST_WITH(gradients_that_the_optimizer_frees, begin, end)
{
    uint64_t gradients = alive(KIB(64), 4), parameters = alive(KIB(64), 4);

    for (uint64_t i = 0; i < 4; i++) {
        (void)born(KIB(64), MT_PHASE_OPTIMIZER);
        (void)born(KIB(64), MT_PHASE_OPTIMIZER);
    }
    for (uint64_t i = 0; i < 4; i++)
        freed(gradients + i, MT_PHASE_OPTIMIZER, MT_ROLE_OTHER);
    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(KIB(64), 4);
    infer();
    expect_some(gradients, 4, MT_ROLE_OPTIMIZER_STATE, 0);
    expect(parameters, 4, MT_ROLE_PARAMETERS);
}

/* Backward allocates a block, adds it to the gradient, and frees it. */
static void adds_gradients(uint64_t bytes, int count)
{
    for (int i = 0; i < count; i++)
        passes_through(bytes, MT_PHASE_BACKWARD);
}

static void updates(uint64_t bytes, int count)
{
    for (int i = 0; i < count; i++)
        passes_through(bytes, MT_PHASE_OPTIMIZER);
}

/* Without optimizer, with accumulated gradients. Backward allocates one block for each parameter.
 * Of eight blocks, four are parameters, though eight is also twice four. */
TEST_WITH(accumulated_gradients, begin, end)
{
    uint64_t stays[3];

    for (int i = 0; i < 3; i++)
        stays[i] = alive(KIB(64) << i, 8);
    for (int turn = 0; turn < 2; turn++) {
        passes_through(512, MT_PHASE_FORWARD);
        for (int i = 0; i < 3; i++)
            adds_gradients(KIB(64) << i, 4);
    }
    infer();
    for (int i = 0; i < 3; i++) {
        expect_split(stays[i], 4, 4, 0);
    }
}

/* The trace lacks the first half of the backward in which it begins, so this phase does not show
 * how many blocks each parameter has. */
TEST_WITH(gradients_added_in_half_of_backward, begin, end)
{
    uint64_t large = alive(KIB(1024), 12), small = alive(KIB(64), 8);

    (void)alive(KIB(640), 2);
    adds_gradients(KIB(1024), 2);
    passes_through(512, MT_PHASE_FORWARD);
    adds_gradients(KIB(1024), 3);
    adds_gradients(KIB(64), 2);
    infer();
    expect_split(large, 3, 3, 6);
    expect_some(small, 8, MT_ROLE_PARAMETERS, 2);
    expect_some(small, 8, MT_ROLE_OPTIMIZER_STATE, 4);
}

/* Adam, in the last phase of backward. A flat parameter (1.5 MiB) and its gradient are one block
 * each. Its state is in two pieces of 512 KiB and two of 256 KiB. Blocks that the optimizer does
 * not update are no parameters. */
TEST_WITH(the_optimizer_shows_parameters, begin, end)
{
    uint64_t large = alive(KIB(2048), 4), flat = alive(KIB(1536), 2), half = alive(KIB(512), 8);
    uint64_t quarter = alive(KIB(256), 8), logits = alive(KIB(4096), 1);

    passes_through(512, MT_PHASE_BACKWARD);
    for (int i = 0; i < 2; i++) {
        updates(KIB(2048), 1);
        updates(KIB(512), 3);
        updates(KIB(256), 3);
    }
    freed(logits, MT_PHASE_UNKNOWN, MT_ROLE_OTHER);
    infer();
    expect_some(large, 4, MT_ROLE_PARAMETERS, 1);
    expect_some(large, 4, MT_ROLE_GRADIENTS, 1);
    expect_split(flat, 1, 1, 0);
    expect_some(half, 8, MT_ROLE_PARAMETERS, 1);
    expect_some(half, 8, MT_ROLE_OPTIMIZER_STATE, 6);
    expect_some(quarter, 8, MT_ROLE_OPTIMIZER_STATE, 6);
    expect(logits, 1, MT_ROLE_ACTIVATIONS);
}

/* The recording kept the stacks of the last gradients, and began in the optimizer. */
TEST_WITH(stacks_show_gradients, begin, end)
{
    enum { SIZES = 10, LAYERS = 4 };
    uint64_t parameters = 0, gradients = 0;

    for (int i = 0; i < SIZES; i++) {
        uint64_t first = alive(KIB(64 * (i + 1)), LAYERS);

        parameters = i ? parameters : first;
    }
    for (int i = 0; i < SIZES * LAYERS; i++) {
        uint64_t block = alive_by(KIB(64 * (i % SIZES + 1)), MT_PHASE_BACKWARD);

        gradients = i ? gradients : block;
    }
    passes_through(512, MT_PHASE_OPTIMIZER);
    infer();
    expect(parameters, SIZES * LAYERS, MT_ROLE_PARAMETERS);
    expect(gradients, SIZES * LAYERS, MT_ROLE_GRADIENTS);
}

/* A call that runs out of memory keeps the activations that backward needs. The trace lacks its
 * first half. */
TEST_WITH(a_call_that_does_not_end, begin, end)
{
    uint64_t weights = alive(KIB(64), 3), activations = alive(KIB(48), 4);
    uint64_t kept[2];

    passes_through(512, MT_PHASE_FORWARD);
    for (int i = 0; i < 2; i++)
        kept[i] = born(KIB(48), MT_PHASE_FORWARD);
    for (int i = 0; i < 2; i++)
        freed(kept[i], MT_PHASE_UNKNOWN, MT_ROLE_ACTIVATIONS);
    infer();
    expect(weights, 3, MT_ROLE_PARAMETERS);
    expect(activations, 4, MT_ROLE_ACTIVATIONS);
}

/* The trace has the beginning of the call, so it did not allocate older blocks. */
TEST_WITH(a_complete_call_that_fails, begin, end)
{
    uint64_t weights = alive(KIB(48), 4);
    const struct mt_early_block made = {
        .bytes = KIB(48), .birth_kind = MT_PHASE_FORWARD, .in_named_part = true};

    for (int i = 0; i < 2; i++)
        (void)add(made);
    for (int i = 0; i < 2; i++)
        freed(weights + 4 + (uint64_t)i, MT_PHASE_UNKNOWN, MT_ROLE_ACTIVATIONS);
    infer();
    expect(weights, 4, MT_ROLE_PARAMETERS);
}

/* The end of the first backward phase leaves the last gradients behind, and later ones are added to
 * them. Other blocks of their size are older gradients, not state. */
TEST_WITH(gradients_allocated_before_others_add, begin, end)
{
    uint64_t stays = alive(KIB(1024), 13);

    backward_makes(KIB(1024), 3);
    for (int turn = 0; turn < 2; turn++) {
        passes_through(512, MT_PHASE_FORWARD);
        adds_gradients(KIB(1024), 8);
    }
    infer();
    expect_split(stays, 8, 5, 0);
}

/* Adam. Activations have the size of small parameters, so backward allocates many of that size. One
 * parameter is flat, with a state in pieces: not all counts are multiples of four. */
TEST_WITH(sizes_that_activations_share, begin, end)
{
    uint64_t large = alive(KIB(1024), 12), small = alive(KIB(64), 8);
    uint64_t workspace = alive(8519680, 4);

    (void)alive(KIB(640), 2);
    passes_through(512, MT_PHASE_FORWARD);
    adds_gradients(KIB(1024), 3);
    adds_gradients(KIB(640), 1);
    adds_gradients(KIB(64), 50);
    infer();
    expect_split(large, 3, 3, 6);
    expect_some(small, 8, MT_ROLE_OPTIMIZER_STATE, 4);
    expect(workspace, 4, MT_ROLE_WORKSPACE);
}

/* LoRA: 8 frozen blocks of each of three sizes, which could be four parameters with their
 * gradients, and three of a small size, one of which has a gradient in each iteration. */
TEST_WITH(few_parameters_are_trained, begin, end)
{
    uint64_t frozen[3], adapter = alive(KIB(4), 3);

    for (int i = 0; i < 3; i++)
        frozen[i] = alive(KIB(64) << i, 8);
    for (int turn = 0; turn < 2; turn++) {
        passes_through(512, MT_PHASE_FORWARD);
        freed(born(KIB(4), MT_PHASE_BACKWARD), MT_PHASE_ZERO_GRAD, MT_ROLE_GRADIENTS);
    }
    infer();
    for (int i = 0; i < 3; i++)
        expect(frozen[i], 8, MT_ROLE_PARAMETERS);
    expect_split(adapter, 1, 0, 2);
}

/* Kernels add the gradients of linear layers to existing blocks. Backward makes only those of the
 * embedding, which is larger than any other parameter. */
TEST_WITH(gradients_that_kernels_add, begin, end)
{
    uint64_t weights[3], embedding = alive(KIB(1024), 3);

    for (int i = 0; i < 3; i++)
        weights[i] = alive(KIB(64) << i, 32);
    for (int turn = 0; turn < 2; turn++) {
        passes_through(512, MT_PHASE_FORWARD);
        freed(born(KIB(1024), MT_PHASE_BACKWARD), MT_PHASE_OPTIMIZER, MT_ROLE_GRADIENTS);
    }
    infer();
    for (int i = 0; i < 3; i++)
        expect_some(weights[i], 32, MT_ROLE_GRADIENTS, 8);
    expect_some(embedding, 3, MT_ROLE_OPTIMIZER_STATE, 2);
}

/* Gradients that are cleared in place, without state. The two workspaces do not match that pattern.
 */
TEST_WITH(workspaces_and_pairs, begin, end)
{
    uint64_t one = alive(KIB(64), 2), two = alive(KIB(16), 6), three = alive(KIB(4), 2);
    uint64_t workspaces = alive(33554432, 2);

    passes_through(512, MT_PHASE_FORWARD);
    passes_through(512, MT_PHASE_BACKWARD);
    infer();
    expect_some(one, 2, MT_ROLE_GRADIENTS, 1);
    expect_some(two, 6, MT_ROLE_GRADIENTS, 3);
    expect_some(three, 2, MT_ROLE_PARAMETERS, 1);
    expect(workspaces, 2, MT_ROLE_WORKSPACE);
}

/* A hundred times the bytes of these gradients is 84 TiB modulo 2^64, which is less than ten times
 * the 11 TiB that stay. If the product wrapped, the gradients would count as older ones, and rule 6
 * would divide the other sizes among roles. */
TEST_WITH(sizes_whose_products_would_wrap, begin, end)
{
    enum { GRADIENTS = 167773, STAY = 11 };
    uint64_t large = alive(UINT64_MAX, STAY), small = alive(KIB(4), 4);

    (void)alive(KIB(8), 4);
    (void)alive(KIB(16), 4);
    passes_through(512, MT_PHASE_FORWARD);
    backward_makes(UINT64_MAX, GRADIENTS);
    infer();
    expect(large, STAY, MT_ROLE_PARAMETERS);
    expect(small, 4, MT_ROLE_PARAMETERS);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
