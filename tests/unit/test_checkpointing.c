/* How to enable activation checkpointing: the switch of a library, or PyTorch's function. */
#include "cmocka_all.h"

#include <string.h>

#include "finding.h"

static struct mt_symbols symbols;
static struct mt_arena arena;

static const char *advice_for(const char *function, const char *file)
{
    struct mt_site site = {.own = MT_NO_ID};
    uint32_t name, path;

    assert_int_equal(mt_symbols_string(&symbols, function, strlen(function), &name), MT_OK);
    assert_int_equal(mt_symbols_string(&symbols, file, strlen(file), &path), MT_OK);
    assert_int_equal(mt_symbols_frame(&symbols, name, path, 7, &site.frame), MT_OK);
    return mt_checkpoint_advice(&arena, &symbols, site);
}

static void libraries_have_a_switch(void **unused)
{
    (void)unused;
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

static void others_are_named_by_their_module(void **unused)
{
    (void)unused;
    assert_non_null(strstr(advice_for("Net.forward", "/home/me/net.py"), "around Net;"));
    assert_non_null(strstr(advice_for("forward", "/home/me/net.py"), "around the modules"));
    assert_non_null(strstr(advice_for(".forward", "/home/me/net.py"), "around the modules"));
    assert_non_null(
        strstr(mt_checkpoint_advice(&arena, &symbols, (struct mt_site){MT_NO_ID, MT_NO_ID}),
               "around the modules"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_have_a_switch),
        cmocka_unit_test(others_are_named_by_their_module),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    mt_symbols_release(&symbols);
    mt_arena_release(&arena);
    return failed;
}
