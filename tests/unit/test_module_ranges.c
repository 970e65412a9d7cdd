/* Modules named by ranges of the program, on constructed ranges and calls. */
#include "cmocka_all.h"

#include <string.h>

#include "module_identity.h"

/* The text before the number, and the number; "" and MT_NO_ID for none. */
static void expect_number(const char *name, const char *before, uint32_t wanted)
{
    uint32_t layer = MT_NO_ID;
    size_t length = 0;
    const char *at = mt_layer_number(name, &layer, &length);

    assert_int_equal(layer, wanted);
    assert_int_equal(at != NULL, wanted != MT_NO_ID);
    assert_int_equal(length, strlen(before));
    assert_memory_equal(name, before, length);
}

TEST(numbers)
{
    expect_number("layer_3", "layer", 3);
    expect_number("Layer 12", "Layer", 12);
    expect_number("block [7]", "block", 7);
    expect_number("model.layers.3.mlp", "model.layers", 3);
    expect_number("h.0", "h", 0);
    expect_number("conv1", "", MT_NO_ID);
    expect_number("conv_2d", "", MT_NO_ID); /* more than a number */
    expect_number("3", "", MT_NO_ID);
    expect_number("encoder", "", MT_NO_ID);
    expect_number("x_99999999999", "", MT_NO_ID);
    expect_number("", "", MT_NO_ID);
}

enum { MODEL, ENCODER, LAYER, ATTENTION, STEP, OPERATOR, HOOK, INNER_HOOK, PHASES };

/* The call lasts from event 10 to 90. */
static void expect_module(int32_t phase, const char *path, uint32_t layer)
{
    static struct mt_phase phases[PHASES] = {
        [MODEL] = {.name = "forward", .parent = STEP, .begin_event = 5, .end_event = 95},
        [ENCODER] = {.name = "encoder", .parent = MODEL, .begin_event = 12, .end_event = 60},
        [LAYER] = {.name = "layer_3", .parent = ENCODER, .begin_event = 14, .end_event = 20},
        [ATTENTION] = {.name = "head 2", .parent = LAYER, .begin_event = 15, .end_event = 16},
        [STEP] = {.name = "step#1", .parent = MT_NO_PHASE, .is_step = true},
        [OPERATOR] = {.name = "aten::mm",
                      .parent = ENCODER,
                      .is_plumbing = true,
                      .begin_event = 30,
                      .end_event = 31},
        [HOOK] = {.name = "model.layers", .parent = MODEL, .begin_event = 40, .end_event = 50},
        [INNER_HOOK] = {.name = "model.layers.2.mlp",
                        .parent = HOOK,
                        .begin_event = 41,
                        .end_event = 42},
    };
    const struct mt_phases all = {.phases = phases, .count = PHASES};
    const struct mt_forward_log log = {.first_event = 10, .last_event = 90};
    struct mt_arena arena = {0};
    struct mt_module_range range = mt_module_range_of(&arena, &all, &log, phase);

    assert_string_equal(range.path, path);
    assert_int_equal(range.layer, layer);
    mt_arena_release(&arena);
}

TEST(modules)
{
    expect_module(MT_NO_PHASE, "", MT_NO_ID);
    expect_module(STEP, "", MT_NO_ID);
    expect_module(MODEL, "", MT_NO_ID); /* around the call */
    expect_module(ENCODER, "encoder", MT_NO_ID);
    expect_module(LAYER, "encoder/layer", 3);
    expect_module(ATTENTION, "encoder/layer", 3); /* within the layer */
    expect_module(OPERATOR, "encoder", MT_NO_ID);
    expect_module(INNER_HOOK, "model.layers", 2);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
