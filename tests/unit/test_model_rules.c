/* Findings about a layer that is most of the model, and about copies of weights. Each rule is
 * tested on programs that just satisfy it and that just fail to. */
#include "cmocka_all.h"

#include "step_program.h"
#include "util.h"

/* The sizes of a program's blocks, and the number of blocks of each size. */
struct model {
    uint64_t sizes[16];
    uint32_t counts[16];
};

static void make(const struct model *model, const char *line)
{
    for (uint32_t i = 0; model->sizes[i]; i++)
        for (uint32_t j = 0; j < model->counts[i]; j++)
            (void)take(line ? line : "module.py:_apply:1", model->sizes[i]);
}

static void part_begins(const char *name)
{
    range(MT_EVENT_PHASE_PUSH, name);
}

static void part_ends(const char *name)
{
    range(MT_EVENT_PHASE_POP, name);
}

/* A model, and the memory of a step at its peak in forward. */
struct training {
    struct model model;
    uint64_t layer; /* a gradient and two blocks of state of that size each */
    uint64_t activations, activation_count;
    bool no_backward, no_call;
    const char *made_by; /* the parameters; NULL: moved */
};

static struct mt_report *train(const struct training *training)
{
    uint64_t gradient = 0, results[8];

    program_begin();
    make(&training->model, training->made_by);
    for (uint32_t i = 0; i < 4; i++) {
        step_begins(i);
        part_begins(training->no_call ? "multiply" : "forward");
        for (uint32_t j = 0; j < training->activation_count; j++)
            results[j] = take("model.py:forward:9", training->activations);
        part_ends(training->no_call ? "multiply" : "forward");
        part_begins(training->no_backward ? "loss" : "backward");
        for (uint32_t j = 0; j < training->activation_count; j++)
            give(results[j]);
        if (gradient)
            give(gradient);
        gradient = take("engine.cpp:grad:1", training->layer);
        part_ends(training->no_backward ? "loss" : "backward");
        part_begins(training->no_backward ? "after" : "optimizer");
        if (!i)
            for (uint32_t j = 0; j < 2; j++)
                (void)take("adam.py:state:2", training->layer);
        part_ends(training->no_backward ? "after" : "optimizer");
        step_ends(i);
    }
    return program_report();
}

static void expect_layer(const struct training *training, uint64_t mib)
{
    struct mt_report *report = train(training);
    const struct mt_finding *finding = finding_of(report, "large-layer");

    if (!mib && finding)
        fail_msg("%s", finding->title);
    if (mib) {
        assert_non_null(finding);
        assert_int_equal(finding->bytes, mib * MT_MIB);
    }
    program_end(report);
}

/* 160 MiB of its size: the parameter, a gradient, two blocks of state. */
static const struct training one_layer = {.model = {{40 * MT_MIB, MT_MIB}, {1, 3}},
                                          .layer = 40 * MT_MIB,
                                          .activations = 100 * MT_MIB,
                                          .activation_count = 1};

TEST(a_layer_is_found_with_blocks_of_its_size)
{
    struct training same = one_layer;

    expect_layer(&one_layer, 160);
    same.activations = 40 * MT_MIB; /* of the same size, but a result */
    expect_layer(&same, 160);
}

TEST(it_has_to_be_a_quarter_of_the_peak)
{
    struct training training = one_layer;

    training.activations = 476 * MT_MIB; /* and 163 */
    expect_layer(&training, 160);
    training.activations = 478 * MT_MIB;
    expect_layer(&training, 0);
}

TEST(it_has_to_be_half_of_the_parameters)
{
    struct training training = one_layer;

    training.model = (struct model){{40 * MT_MIB, 21 * MT_MIB, 18 * MT_MIB}, {1, 1, 1}};
    expect_layer(&training, 160);
    training.model.sizes[1] = 23 * MT_MIB;
    expect_layer(&training, 0);
}

/* Two parameters of a size may be the ends of a model, unless the counts of other sizes show a
 * model of two layers. Three are layers. */
TEST(two_layers_may_be_the_ends_of_a_model)
{
    struct training training = one_layer;

    training.model = (struct model){{40 * MT_MIB, MT_MIB, 2 * MT_MIB}, {2, 7, 1}};
    expect_layer(&training, 200);
    training.model.counts[1] = 6;
    expect_layer(&training, 0);
    training.model.counts[0] = 3;
    training.model.counts[1] = 20;
    expect_layer(&training, 0);
}

/* Logits and targets are no model: one other block, and it is small. */
TEST(a_program_of_one_operation_has_no_layers)
{
    struct training training = one_layer;

    training.model = (struct model){{40 * MT_MIB, 8 * MT_KIB}, {1, 1}};
    expect_layer(&training, 0);
    training.model.counts[1] = 2;
    expect_layer(&training, 160);
    training.model = (struct model){{40 * MT_MIB, MT_MIB}, {1, 1}};
    expect_layer(&training, 160);
}

TEST(without_training_roles_are_not_sure_enough)
{
    struct training training = one_layer;

    training.no_backward = true;
    expect_layer(&training, 0);
}

TEST(a_benchmark_of_an_operation_has_no_layer)
{
    struct training training = one_layer;

    training.no_call = true;
    expect_layer(&training, 0);
    training.made_by = "torch/nn/modules/linear.py:__init__:106";
    expect_layer(&training, 160);
}

/* Four blocks of 10 MiB are not worth reporting, even if there is nothing else. */
TEST(small_layers_are_not_reported)
{
    struct training training = one_layer;

    training.model = (struct model){{15 * MT_MIB, MT_MIB}, {1, 3}};
    training.layer = 15 * MT_MIB;
    training.activations = MT_MIB;
    expect_layer(&training, 0);
    training.model.sizes[0] = training.layer = 16 * MT_MIB;
    expect_layer(&training, 64);
}

static void expect_origin(const char *line, const char *text)
{
    struct training training = one_layer;

    training.made_by = line;
    struct mt_report *report = train(&training);
    const struct mt_finding *finding = finding_of(report, "large-layer");
    assert_non_null(finding);
    assert_string_equal(finding->evidence[1], text);
    program_end(report);
}

TEST(the_module_shows_where_it_made_the_parameter)
{
    expect_origin("torch/nn/modules/sparse.py:__init__:160",
                  "created by an embedding: __init__ sparse.py:160");
    expect_origin("torch/nn/modules/linear.py:__init__:106",
                  "created by a linear layer: __init__ linear.py:106");
    expect_origin("model.py:__init__:3", "the recording does not show which module created it; it "
                                         "reached the device at __init__ model.py:3");
    expect_origin("torch/nn/modules/sparse.py:reset_parameters:9",
                  "the recording does not show which module created it; it reached the device at "
                  "reset_parameters sparse.py:9");
}

struct inference {
    struct model model, copies;
    uint64_t more;     /* other memory at the peak */
    bool before;       /* the copies are allocated and freed before the first step */
    bool without_line; /* another line makes the results of the operators */
};

/* Casts the weights, each before the result of its operator. */
static uint32_t cast_weights(const struct inference *inference, uint64_t *results)
{
    const char *line = inference->without_line ? "model.py:forward:7" : "linear.py:forward:134";
    uint32_t count = 0;

    for (uint32_t j = 0; inference->copies.sizes[j]; j++)
        for (uint32_t k = 0; k < inference->copies.counts[j]; k++) {
            results[count++] = take(inference->before ? "train.py:load:5" : "linear.py:forward:134",
                                    inference->copies.sizes[j]);
            results[count++] = take(line, 1000);
        }
    return count;
}

static void expect_copies(const struct inference *inference, uint64_t bytes)
{
    uint64_t results[64];
    uint32_t count = 0;

    program_begin();
    make(&inference->model, NULL);
    if (inference->before)
        count = cast_weights(inference, results);
    while (count)
        give(results[--count]);
    for (uint32_t i = 0; i < 4; i++) {
        step_begins(i);
        part_begins("forward");
        count = inference->before ? 0 : cast_weights(inference, results);
        results[count++] = take("model.py:forward:9", inference->more + 1000);
        while (count)
            give(results[--count]);
        part_ends("forward");
        step_ends(i);
    }
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "cast-weights");
    if (!bytes && finding)
        fail_msg("%s", finding->title);
    assert_int_equal(finding ? finding->bytes : 0, bytes);
    program_end(report);
}

#define KIB UINT64_C(1024)

/* Weights and biases in two sizes each; an embedding and a norm, which are not cast. */
static const struct inference cast = {
    .model = {{64 * MT_MIB, 96 * MT_MIB, 16 * KIB, 24 * KIB, 50 * MT_MIB, 6 * KIB},
              {2, 2, 2, 2, 1, 9}},
    .copies = {{32 * MT_MIB, 48 * MT_MIB, 8 * KIB, 12 * KIB}, {2, 2, 2, 2}}};

#define CAST_BYTES (2 * (80 * MT_MIB + 20 * KIB))

TEST(copies_of_weights_are_found)
{
    struct inference other = cast;

    expect_copies(&cast, CAST_BYTES);
    other.copies.counts[0] = 1; /* one weight is in no operator */
    expect_copies(&other, CAST_BYTES - 32 * MT_MIB);
    other.copies.counts[0] = 5; /* more than weights: not only copies */
    expect_copies(&other, CAST_BYTES - 2 * 32 * MT_MIB);
}

TEST(weights_without_biases_are_found)
{
    struct inference inference = cast;

    inference.copies = (struct model){{32 * MT_MIB, 48 * MT_MIB}, {2, 2}};
    expect_copies(&inference, CAST_BYTES - 40 * KIB);
}

TEST(one_copy_is_no_evidence)
{
    struct inference inference = cast;

    inference.copies = (struct model){{48 * MT_MIB, 8 * KIB}, {1, 2}};
    expect_copies(&inference, 0);
}

/* Half the size of a weight each, but they are the results. */
TEST(results_are_no_copies)
{
    struct inference inference = cast;

    inference.without_line = true;
    expect_copies(&inference, 0);
}

TEST(a_quarter_of_the_parameters_has_to_be_copied)
{
    struct inference inference = cast;

    inference.model.sizes[4] = 958 * MT_MIB; /* in addition to 320 that have a copy */
    expect_copies(&inference, CAST_BYTES);
    inference.model.sizes[4] = 962 * MT_MIB;
    expect_copies(&inference, 0);
}

TEST(copies_have_to_be_a_tenth_of_the_peak)
{
    struct inference inference = cast;

    inference.more = 1060 * MT_MIB; /* and 530 */
    expect_copies(&inference, CAST_BYTES);
    inference.more = 1080 * MT_MIB;
    expect_copies(&inference, 0);
}

/* Half the size, but allocated before the first phase: not made by autocast. */
TEST(copies_are_made_in_a_phase)
{
    struct inference inference = cast;

    inference.before = true;
    expect_copies(&inference, 0);
}

/* State of the optimizer in half precision also has half the size, one to one. */
TEST(state_in_half_precision_is_no_copy)
{
    program_begin();
    make(&cast.model, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        step_begins(i);
        part_begins("forward");
        uint64_t result = take("model.py:forward:9", MT_MIB);
        part_ends("forward");
        part_begins("backward");
        give(result);
        part_ends("backward");
        part_begins("optimizer");
        for (uint32_t j = 0; !i && cast.copies.sizes[j]; j++)
            for (uint32_t k = 0; k < cast.copies.counts[j]; k++)
                (void)take("adam.py:state:2", cast.copies.sizes[j]);
        part_ends("optimizer");
        step_ends(i);
    }
    struct mt_report *report = program_report();
    assert_true(report->devices[0].peak_role_bytes[MT_ROLE_OPTIMIZER_STATE] >= CAST_BYTES);
    assert_null(finding_of(report, "cast-weights"));
    program_end(report);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
