/* Memory that stays allocated through a phase, and the part of it that the phase does not use. */
#include "cmocka_all.h"

#include "block_watches.h"
#include "step_program.h"
#include "util.h"

static const struct mt_idle_use *idle_of(const struct mt_report *report, const char *path,
                                         enum mt_role role)
{
    const struct mt_device_report *device = &report->devices[0];

    for (uint32_t i = 0; i < device->idle_count; i++)
        if (device->idle[i].role == role &&
            strcmp(report->phases[device->idle[i].phase].path, path) == 0)
            return &device->idle[i];
    return NULL;
}

static void expect_idle(const struct mt_report *report, const char *path, enum mt_role role,
                        uint64_t mib, uint64_t movable_mib)
{
    const struct mt_idle_use *idle = idle_of(report, path, role);

    if (!idle)
        fail_msg("%s: no %s", path, mt_role_name(role));
    if (idle->bytes != mib * MT_MIB || idle->movable_bytes != movable_mib * MT_MIB)
        fail_msg("%s, %s: %llu, %llu", path, mt_role_name(role), (unsigned long long)idle->bytes,
                 (unsigned long long)idle->movable_bytes);
}

static void begin(const char *name)
{
    range(MT_EVENT_PHASE_PUSH, name);
}

static void end(const char *name)
{
    range(MT_EVENT_PHASE_POP, name);
}

/* Other memory of a phase, which makes the second step the highest. */
static void work(uint32_t step)
{
    give(take("model.py:work:5", (step == 1 ? 40 : 30) * MT_MIB));
}

/* One step: activations of 4 MiB (freed in backward), 3 MiB (freed in the loss) and 2 MiB (the last
 * ones, of one line), gradients of 8 MiB, state of 16 MiB. */
static void train(uint32_t step, uint64_t *kept_gradient)
{
    uint64_t early, last;

    step_begins(step);
    begin("forward");
    early = take("model.py:early:3", 4 * MT_MIB);
    work(step);
    uint64_t in_loss = take("model.py:middle:6", 3 * MT_MIB);
    uint64_t other = take("model.py:last:9", MT_MIB);
    if (!step)
        (void)take("model.py:last:9", 5 * MT_MIB); /* kept, but no activation */
    last = take("model.py:last:9", MT_MIB);
    end("forward");
    begin("loss");
    work(step);
    give(in_loss);
    end("loss");
    begin("backward");
    work(step);
    give(early);
    give(other);
    uint64_t gradient = take("engine.cpp:grad:1", 8 * MT_MIB);
    end("backward");
    begin("optimizer");
    if (!step)
        (void)take("adam.py:state:2", 16 * MT_MIB);
    work(step);
    end("optimizer");
    give(last);
    if (*kept_gradient)
        give(*kept_gradient);
    *kept_gradient = gradient;
    step_ends(step);
}

static struct mt_report *trained(void)
{
    uint64_t gradient = 0;

    program_begin();
    (void)take("module.py:_apply:1", 8 * MT_MIB);
    for (uint32_t i = 0; i < 4; i++)
        train(i, &gradient);
    return program_report();
}

TEST(unused_memory_of_a_phase_is_idle)
{
    struct mt_report *report = trained();

    expect_idle(report, "step#1/forward", MT_ROLE_PARAMETERS, 8, 0);
    expect_idle(report, "step#1/forward", MT_ROLE_OPTIMIZER_STATE, 16, 16);
    expect_idle(report, "step#1/forward", MT_ROLE_GRADIENTS, 8, 8);
    expect_idle(report, "step#1/loss", MT_ROLE_OPTIMIZER_STATE, 16, 16);
    expect_idle(report, "step#1/loss", MT_ROLE_GRADIENTS, 8, 8);
    expect_idle(report, "step#1/backward", MT_ROLE_OPTIMIZER_STATE, 16, 16);
    expect_idle(report, "step#1/backward", MT_ROLE_GRADIENTS, 8, 0);
    expect_idle(report, "step#1/backward", MT_ROLE_ACTIVATIONS, 1, 0);
    expect_idle(report, "step#1/optimizer", MT_ROLE_OPTIMIZER_STATE, 16, 0);
    expect_idle(report, "step#1/optimizer", MT_ROLE_GRADIENTS, 16, 0);
    expect_idle(report, "step#1/optimizer", MT_ROLE_ACTIVATIONS, 1, 1);
    program_end(report);
}

/* A block that is freed or allocated in the phase does not stay through it. */
TEST(only_blocks_that_stay_through_count)
{
    struct mt_report *report = trained();

    assert_null(idle_of(report, "step#1/forward", MT_ROLE_ACTIVATIONS));
    assert_null(idle_of(report, "step#1/forward", MT_ROLE_TEMPORARIES));
    program_end(report);
}

/* The loss may read the 2 MiB of the last line, of the 6 MiB that stay through it. */
TEST(a_loss_reads_what_the_model_returned)
{
    struct mt_report *report = trained();

    expect_idle(report, "step#1/loss", MT_ROLE_ACTIVATIONS, 6, 4);
    program_end(report);
}

/* For each name, only the highest phase is reported. */
TEST(the_highest_of_a_name_is_reported)
{
    struct mt_report *report = trained();
    const struct mt_device_report *device = &report->devices[0];

    assert_true(device->idle_count > 0);
    for (uint32_t i = 0; i < device->idle_count; i++) {
        assert_int_equal(report->phases[device->idle[i].phase].step, 1);
        assert_true(!i || device->idle[i].phase > device->idle[i - 1].phase ||
                    (device->idle[i].phase == device->idle[i - 1].phase &&
                     device->idle[i].role > device->idle[i - 1].role));
    }
    program_end(report);
}

/* An optimizer that steps inside backward uses its state there. */
TEST(nested_phases_count_as_use)
{
    program_begin();
    (void)take("module.py:_apply:1", 8 * MT_MIB);
    for (uint32_t i = 0; i < 4; i++) {
        step_begins(i);
        begin("forward");
        uint64_t saved = take("model.py:early:3", 4 * MT_MIB);
        end("forward");
        begin("backward");
        give(saved);
        begin("Optimizer.step#Adam.step");
        if (!i)
            (void)take("adam.py:state:2", 16 * MT_MIB);
        end("Optimizer.step#Adam.step");
        work(i);
        end("backward");
        step_ends(i);
    }
    struct mt_report *report = program_report();
    expect_idle(report, "step#1/backward", MT_ROLE_OPTIMIZER_STATE, 16, 0);
    expect_idle(report, "step#1/forward", MT_ROLE_OPTIMIZER_STATE, 16, 16);
    program_end(report);
}

/* The same blocks in a program without backward: their uses are unknown. */
TEST(without_training_nothing_is_idle)
{
    uint64_t kept = 0;

    program_begin();
    (void)take("module.py:_apply:1", 8 * MT_MIB);
    for (uint32_t i = 0; i < 4; i++) {
        step_begins(i);
        begin("loss");
        work(i);
        if (kept)
            give(kept);
        kept = take("model.py:early:3", 4 * MT_MIB);
        end("loss");
        begin("zero_grad");
        work(i);
        end("zero_grad");
        step_ends(i);
    }
    struct mt_report *report = program_report();
    assert_false(report->saw_backward);
    expect_idle(report, "step#1/zero_grad", MT_ROLE_ACTIVATIONS, 4, 0);
    program_end(report);
}

/* If there are too many names, the highest ones are reported. */
TEST(the_highest_names_are_reported)
{
    char name[32];

    program_begin();
    (void)take("module.py:_apply:1", 8 * MT_MIB);
    for (uint32_t i = 0; i < MT_IDLE_PHASES + 4; i++) {
        snprintf(name, sizeof name, "part %c%c", (char)('a' + i / 26), (char)('a' + i % 26));
        begin(name);
        give(take("model.py:work:5", (i == 3 ? 15u : i > 5 ? 21u : 20u) * MT_MIB));
        end(name);
    }
    struct mt_report *report = program_report();
    const struct mt_device_report *device = &report->devices[0];
    assert_int_equal(device->idle_count, MT_IDLE_PHASES); /* one row each: they have one role */
    assert_non_null(idle_of(report, "part ag", device->idle[0].role));
    assert_non_null(idle_of(report, "part bj", device->idle[0].role));
    assert_null(idle_of(report, "part ad", device->idle[0].role));
    for (uint32_t i = 1; i < device->idle_count; i++)
        assert_true(device->idle[i].phase > device->idle[i - 1].phase);
    program_end(report);
}

/* Without an end, it is unknown which blocks stay through the phase. */
TEST(a_phase_without_an_end_is_not_reported)
{
    program_begin();
    (void)take("module.py:_apply:1", 8 * MT_MIB);
    begin("forward");
    work(0);
    end("forward");
    begin("backward");
    work(1);
    struct mt_report *report = program_report();
    assert_non_null(idle_of(report, "forward", report->devices[0].idle[0].role));
    assert_int_equal(report->devices[0].idle_count, 1);
    program_end(report);
}

/* Its bytes would be those of the initial state. */
TEST(a_phase_before_the_history_is_not_reported)
{
    program_begin();
    program.source.source.header.starts_in_middle = true;
    (void)take("module.py:_apply:1", 8 * MT_MIB);
    program.events[0].flags = MT_EVENT_INITIAL;
    begin("early");
    end("early");
    begin("forward");
    work(0);
    end("forward");
    struct mt_report *report = program_report();
    assert_int_equal(report->devices[0].idle_count, 1);
    assert_non_null(idle_of(report, "forward", report->devices[0].idle[0].role));
    program_end(report);
}

TEST(roles_are_idle_in_phases_that_do_not_read_them)
{
    assert_true(mt_role_is_idle_in(MT_ROLE_OPTIMIZER_STATE, MT_PHASE_BACKWARD));
    assert_true(mt_role_is_idle_in(MT_ROLE_OPTIMIZER_STATE, MT_PHASE_ZERO_GRAD));
    assert_true(mt_role_is_idle_in(MT_ROLE_OPTIMIZER_STATE, MT_PHASE_DATA));
    assert_false(mt_role_is_idle_in(MT_ROLE_OPTIMIZER_STATE, MT_PHASE_OPTIMIZER));
    assert_false(mt_role_is_idle_in(MT_ROLE_OPTIMIZER_STATE, MT_PHASE_UNKNOWN));
    assert_false(mt_role_is_idle_in(MT_ROLE_GRADIENTS, MT_PHASE_BACKWARD));
    assert_false(mt_role_is_idle_in(MT_ROLE_GRADIENTS, MT_PHASE_ZERO_GRAD));
    assert_true(mt_role_is_idle_in(MT_ROLE_GRADIENTS, MT_PHASE_DATA));
    assert_false(mt_role_is_idle_in(MT_ROLE_ACTIVATIONS, MT_PHASE_BACKWARD));
    assert_false(mt_role_is_idle_in(MT_ROLE_ACTIVATIONS, MT_PHASE_FORWARD));
    assert_true(mt_role_is_idle_in(MT_ROLE_ACTIVATIONS, MT_PHASE_OPTIMIZER));
    assert_true(mt_role_is_idle_in(MT_ROLE_ACTIVATIONS, MT_PHASE_ZERO_GRAD));
    assert_true(mt_role_is_idle_in(MT_ROLE_ACTIVATIONS, MT_PHASE_DATA));
    assert_false(mt_role_is_idle_in(MT_ROLE_PARAMETERS, MT_PHASE_LOSS));
    assert_false(mt_role_is_idle_in(MT_ROLE_WORKSPACE, MT_PHASE_OPTIMIZER));
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
