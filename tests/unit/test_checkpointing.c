/* How to enable activation checkpointing: the switch of a library, or PyTorch's function. */
#include "cmocka_all.h"

#include <string.h>

#include "finding.h"

static struct mt_symbols symbols;
static struct mt_arena arena;

static const char *advice_in(const char *function, const char *file,
                             const struct mt_modules *modules)
{
    struct mt_site site = {.own = MT_NO_ID};
    uint32_t name, path;

    assert_int_equal(mt_symbols_string(&symbols, function, strlen(function), &name), MT_OK);
    assert_int_equal(mt_symbols_string(&symbols, file, strlen(file), &path), MT_OK);
    assert_int_equal(mt_symbols_frame(&symbols, name, path, 7, &site.frame), MT_OK);
    return mt_checkpoint_advice(&arena, &symbols, site, modules);
}

static const char *advice_for(const char *function, const char *file)
{
    return advice_in(function, file, NULL);
}

TEST(libraries_have_a_switch)
{
    assert_non_null(strstr(advice_for("LlamaMLP.forward", "/v/site-packages/transformers/models/"
                                                          "llama/modeling_llama.py"),
                           "gradient_checkpointing_enable()"));
    assert_non_null(strstr(advice_for("Block.forward", "/v/timm/models/vision_transformer.py"),
                           "set_grad_checkpointing(True)"));
    assert_non_null(strstr(advice_for("Block.forward", "C:\\v\\timm\\models\\resnet.py"),
                           "set_grad_checkpointing(True)"));
    assert_non_null(strstr(advice_for("f", "/v/diffusers/models/unets/unet_2d.py"),
                           "enable_gradient_checkpointing()"));
}

/* model.gradient_checkpointing_enable() raises an error in RT-DETR, not in DETR. */
TEST(models_without_a_switch)
{
    assert_null(strstr(advice_for("f", "/v/transformers/models/rt_detr/modeling_rt_detr.py"),
                       "gradient_checkpointing_enable()"));
    assert_non_null(strstr(advice_for("f", "/v/transformers/models/detr/modeling_detr.py"),
                           "gradient_checkpointing_enable()"));
}

/* Adds a frame of the Trainer of transformers to the stacks. */
TEST(trainers_have_words_of_their_own)
{
    static const char llama[] = "/v/transformers/models/llama/modeling_llama.py";

    assert_null(strstr(advice_for("LlamaMLP.forward", llama), "TrainingArguments"));
    (void)advice_for("train", "/v/transformers/trainer.py");
    assert_string_equal(advice_for("LlamaMLP.forward", llama),
                        "gradient_checkpointing=True in TrainingArguments");
    assert_null(
        strstr(advice_for("Block.forward", "/v/timm/models/resnet.py"), "TrainingArguments"));
}

/* A model with a module that holds `rest` bytes, and functions that repeat. The change of
 * `dry-run --apply` becomes `change`. */
static const char *change;
static const char *advice_of_model(const char *rest_path, uint64_t rest,
                                   struct mt_module_repeat *repeats, uint32_t count)
{
    struct mt_module_row rows[] = {
        {.kind = MT_MODULE_OTHER, .path = "Net", .role_bytes[MT_ROLE_ACTIVATIONS] = 40},
        {.kind = MT_MODULE_OTHER, .path = rest_path, .role_bytes[MT_ROLE_ACTIVATIONS] = rest},
        {.kind = MT_MODULE_OUTSIDE, .path = "(loss)", .role_bytes[MT_ROLE_ACTIVATIONS] = 9000}};
    const struct mt_modules modules = {
        .rows = rows, .row_count = 3, .repeats = repeats, .repeat_count = count};

    change = mt_checkpoint_change(&arena, &modules);
    return advice_in("Net.forward", "/home/me/net.py", &modules);
}

static void expect_change(const char *expected)
{
    if (expected && change)
        assert_string_equal(change, expected);
    else
        assert_true(!expected && !change);
}

TEST(layers_that_repeat_are_checkpointed)
{
    struct mt_module_repeat named[] = {{"Net/Block", 12, 60}, {"Net/Other", 4, 10}};
    struct mt_module_repeat lines[] = {{"net.py:60/net.py:65/net.py:56", 12, 60}};
    struct mt_module_repeat own[] = {{"net.py:46", 50, 60}};

    assert_non_null(strstr(advice_of_model("Net/Head", 20, named, 2),
                           "around each of the 12 layers Block; or torch.autograd"));
    expect_change("checkpoint=Block");
    named[1].activation_bytes = 30;
    assert_non_null(strstr(advice_of_model("Net/Head", 20, named, 2),
                           "around each of the 12 layers Block and of the 4 layers Other;"));
    expect_change("checkpoint=Block,Other");
    assert_non_null(strstr(advice_of_model("net.py:47", 20, lines, 1),
                           "around each of the 12 layers called from net.py:65;"));
    expect_change(NULL);
    assert_non_null(strstr(advice_of_model("net.py:47", 20, own, 1),
                           "around each of the 50 turns of the loop at net.py:46;"));
}

/* Around the whole model, backward needs as much as without. */
TEST(the_whole_model_is_not_checkpointed)
{
    struct mt_module_repeat small[] = {{"Net/Block", 12, 10}};

    assert_null(strstr(advice_for("Net.forward", "/home/me/net.py"), "utils.checkpoint"));
    assert_null(strstr(advice_of_model("Net/Head", 20, NULL, 0), "utils.checkpoint"));
    assert_non_null(strstr(advice_of_model("Net/Head", 50, NULL, 0), "around Head;"));
    assert_non_null(strstr(advice_of_model("Net/Head", 50, small, 1), "around Head;"));
    expect_change("checkpoint=Head");
    assert_null(strstr(advice_of_model("net.py:30/net.py:47", 50, NULL, 0), "utils.checkpoint"));
    expect_change(NULL);
}

int main(void)
{
    int failed = run_tests_of_file(NULL, NULL);

    mt_symbols_release(&symbols);
    mt_arena_release(&arena);
    return failed;
}
