/* Advice is for the framework that the recording shows. */
#include "cmocka_all.h"

#include "step_program.h"
#include "util.h"

enum { STEPS = 20 };

enum framework { NO_FRAMEWORK, TORCH, JAX, TENSORFLOW, FRAMEWORKS };

static const char *const stacks[FRAMEWORKS] = {
    "train.py:main:7", "train.py:main:7", "jax/_src/pjit.py:call:1 < train.py:main:7",
    "tensorflow/python/eager/execute.py:call:1 < train.py:main:7"};

static void program_of(enum framework framework)
{
    program_begin();
    if (framework == TORCH)
        return;
    program.heap = memory_source_heap(&program.source, "driver:async");
    if (framework == NO_FRAMEWORK)
        return;
    range(MT_EVENT_PHASE_PUSH, "TSL: XlaModule:#hlo_module=jit_step,program_id=1#");
    range(MT_EVENT_PHASE_POP, "TSL: XlaModule:#hlo_module=jit_step,program_id=1#");
}

static void expect_advice(const char *id, const char *part, enum framework framework)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, id);

    assert_int_equal(report->is_driver_level, framework != TORCH);
    if (!finding)
        fail_msg("%d: no %s", framework, id);
    if (!strstr(finding->advice, part))
        fail_msg("%d: %s", framework, finding->advice);
    if (framework != TORCH)
        assert_null(strstr(finding->advice, "torch"));
    if (framework != JAX)
        assert_null(strstr(finding->advice, "jax"));
    if (framework != TENSORFLOW)
        assert_null(strstr(finding->advice, "tf."));
    program_end(report);
}

TEST(cached_memory)
{
    static const char *const parts[FRAMEWORKS] = {"something keeps this memory", ".detach().cpu()",
                                                  "jax.device_get", ".numpy()"};

    for (enum framework framework = 0; framework < FRAMEWORKS; framework++) {
        program_of(framework);
        for (unsigned i = 0; i < STEPS; i++) {
            step_begins(i);
            give(take(stacks[framework], 8 * MT_MIB));
            (void)take(stacks[framework], 2 * MT_MIB);
            step_ends(i);
        }
        expect_advice("growth", parts[framework], framework);
    }
}

TEST(an_array_that_becomes_longer)
{
    static const char *const parts[FRAMEWORKS] = {"it grows in each step", "torch.cat",
                                                  "it grows in each step", "it grows in each step"};

    for (enum framework framework = 0; framework < FRAMEWORKS; framework++) {
        uint64_t old = 0;

        program_of(framework);
        for (unsigned i = 0; i < STEPS; i++) {
            step_begins(i);
            give(take(stacks[framework], 64 * MT_MIB));
            uint64_t fresh = take(stacks[framework], 2 * MT_MIB);
            uint64_t longer = take(stacks[framework], 2 * (i + 1) * MT_MIB);
            if (i)
                give(old);
            give(fresh);
            old = longer;
            step_ends(i);
        }
        expect_advice("growth", parts[framework], framework);
    }
}

/* Parameters that stay, one of which is most of the model; activations until backward; gradients;
 * the optimizer's state. */
static void train(enum framework framework)
{
    const char *line = stacks[framework];

    program_of(framework);
    (void)take(line, 256 * MT_MIB);
    (void)take(line, 16 * MT_MIB);
    for (unsigned i = 0; i < 3; i++) {
        step_begins(i);
        phase_begins("forward");
        uint64_t activation = take(line, 512 * MT_MIB);
        phase_ends("forward");
        phase_begins("backward");
        uint64_t gradient = take(line, 256 * MT_MIB);
        give(activation);
        phase_ends("backward");
        phase_begins("optimizer");
        if (!i)
            (void)take(line, 256 * MT_MIB);
        phase_ends("optimizer");
        phase_begins("zero_grad");
        give(gradient);
        phase_ends("zero_grad");
        step_ends(i);
    }
}

TEST(memory_of_training)
{
    static const struct {
        const char *id, *parts[FRAMEWORKS];
    } wanted[] = {
        {"large-layer",
         {"fewer or shorter rows", "sparse=True", "jax.sharding", "tf.nn.sampled_softmax_loss"}},
        {"held-activations",
         {"gradient checkpointing", "save_on_cpu()", "jax.checkpoint", "tf.recompute_grad"}},
        {"optimizer-state",
         {"Adafactor, Lion", "ZeroRedundancyOptimizer", "optax.adafactor",
          "tf.keras.optimizers.Adafactor"}},
    };

    for (enum framework framework = 0; framework < FRAMEWORKS; framework++)
        for (size_t i = 0; i < MT_ARRAY_LEN(wanted); i++) {
            train(framework);
            expect_advice(wanted[i].id, wanted[i].parts[framework], framework);
        }
}

/* A run that shards its state needs no advice to shard it. */
TEST(shards_are_not_sharded_again)
{
    static const char *const files[] = {"torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py",
                                        "deepspeed/runtime/engine.py",
                                        "torch/distributed/optim/zero_redundancy_optimizer.py"};

    for (size_t i = 0; i < MT_ARRAY_LEN(files); i++) {
        char line[128];

        train(TORCH);
        snprintf(line, sizeof line, "%s:f:3", files[i]);
        (void)program_stack(line);
        struct mt_report *report = program_report();
        assert_non_null(finding_of(report, "optimizer-state"));
        assert_null(strstr(finding_of(report, "optimizer-state")->advice, "shard"));
        assert_null(strstr(finding_of(report, "large-layer")->advice, "shard"));
        program_end(report);
    }
}

TEST(a_trainer_has_options)
{
    train(TORCH);
    (void)program_stack("/v/transformers/trainer.py:train:3");
    struct mt_report *report = program_report();
    assert_non_null(strstr(finding_of(report, "optimizer-state")->advice,
                           "optim=\"adamw_bnb_8bit\" or optim=\"adafactor\" in TrainingArguments"));
    program_end(report);
}

/* Its configuration replaces the optimizer of a trainer. */
TEST(deepspeed_has_its_own_optimizer)
{
    static const char *const trainers[] = {"/v/transformers/trainer.py:train:3",
                                           "/v/lightning/pytorch/trainer.py:fit:3",
                                           "/v/accelerate/optimizer.py:step:3"};

    for (size_t i = 0; i < MT_ARRAY_LEN(trainers); i++) {
        train(TORCH);
        (void)program_stack(trainers[i]);
        (void)program_stack("/v/deepspeed/runtime/engine.py:step:3");
        struct mt_report *report = program_report();
        assert_non_null(strstr(finding_of(report, "optimizer-state")->advice, "DeepSpeed's"));
        program_end(report);
    }
}

/* Each step makes new state of 300 MiB, before or after it drops the old. */
static void renew_state(enum framework framework, bool is_donated, uint64_t first_bytes)
{
    const char *line = stacks[framework];
    uint64_t old[2] = {0}, fresh[2];

    program_of(framework);
    for (unsigned i = 0; i < 4; i++) {
        step_begins(i);
        phase_begins("backward");
        give(take(line, 20 * MT_MIB));
        phase_ends("backward");
        phase_begins("optimizer");
        if (i && is_donated)
            give(old[0]), give(old[1]);
        fresh[0] = take(line, i ? 200 * MT_MIB : first_bytes);
        fresh[1] = take(line, 100 * MT_MIB);
        if (i && !is_donated)
            give(old[0]), give(old[1]);
        memcpy(old, fresh, sizeof old);
        phase_ends("optimizer");
        step_ends(i);
    }
}

static bool is_not_donated(enum framework framework, bool is_donated, uint64_t first_bytes)
{
    renew_state(framework, is_donated, first_bytes);
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, "not-donated");
    bool is_found = finding;
    if (finding) {
        const struct mt_finding *state = finding_of(report, "optimizer-state");

        assert_int_equal(finding->saves_bytes, 300 * MT_MIB);
        assert_int_equal(state->bytes, 600 * MT_MIB);
        assert_true(finding->counted_before_bytes || state->counted_before_bytes);
        assert_true(finding->counted_before_bytes <= finding->bytes);
        assert_true(state->counted_before_bytes <= finding->bytes);
        assert_non_null(strstr(finding->advice, "donate_argnums"));
    }
    program_end(report);
    return is_found;
}

TEST(arguments_of_jax_that_are_not_donated)
{
    assert_true(is_not_donated(JAX, false, 200 * MT_MIB));
    assert_false(is_not_donated(JAX, true, 200 * MT_MIB));
    assert_false(is_not_donated(TORCH, false, 200 * MT_MIB));
    assert_false(is_not_donated(JAX, false, 300 * MT_MIB)); /* the peak has different sizes */
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
