/* Which allocations belong to a call of a model, on constructed stacks. */
#include "cmocka_all.h"

#include <string.h>

#include "forward_logs.h"
#include "phases.h"

static uint32_t stack_in(struct mt_symbols *symbols, uint32_t parent, const char *function,
                         const char *path)
{
    uint32_t name, file, frame, stack;

    assert_int_equal(mt_symbols_string(symbols, function, strlen(function), &name), MT_OK);
    assert_int_equal(mt_symbols_string(symbols, path, strlen(path), &file), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, name, file, 7, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, parent, frame, &stack), MT_OK);
    return stack;
}

static void expect_call(const char *module_path, bool is_call)
{
    struct mt_symbols symbols;
    struct mt_forward_logs logs = {0};
    struct mt_forward_birth birth = {.event = 1, .phase = MT_NO_PHASE, .owner = MT_NO_PHASE};
    struct mt_forward_position place;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    birth.stack = stack_in(&symbols, MT_NO_ID, "main", "/home/me/train.py");
    birth.stack = stack_in(&symbols, birth.stack, "_call_impl", module_path);
    birth.stack = stack_in(&symbols, birth.stack, "forward", "/home/me/model.py");
    mt_forward_logs_update(&logs, &symbols);
    mt_forward_logs_add(&logs, &birth, &place);
    assert_int_equal(place.log, is_call ? 0 : MT_NO_ID);
    mt_forward_logs_release(&logs);
    mt_symbols_release(&symbols);
}

TEST(calls_of_models)
{
    expect_call("/x/site-packages/torch/nn/modules/module.py", true);
    expect_call("C:\\x\\site-packages\\torch\\nn\\modules\\module.py", true);
    expect_call("/x/site-packages/mytorch/nn/modules/module.py", false);
    expect_call("/x/module.py", false);
}

/* A container that calls several modules shows no code of a model. */
static void expect_inner(const char *caller_path, bool is_inner)
{
    static const char module_path[] = "/x/site-packages/torch/nn/modules/module.py";
    struct mt_symbols symbols;
    struct mt_forward_logs logs = {0};

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    uint32_t caller = stack_in(&symbols, MT_NO_ID, "main", "/home/me/train.py");
    caller = stack_in(&symbols, caller, "_call_impl", module_path);
    caller = stack_in(&symbols, caller, "forward", caller_path);
    uint32_t inner = stack_in(&symbols, caller, "_call_impl", module_path);
    mt_forward_logs_update(&logs, &symbols);
    assert_false(mt_forward_logs_is_inner(&logs, caller));
    assert_int_equal(mt_forward_logs_is_inner(&logs, inner), is_inner);
    mt_forward_logs_release(&logs);
    mt_symbols_release(&symbols);
}

TEST(modules_that_models_call)
{
    expect_inner("/home/me/model.py", true);
    expect_inner("/x/site-packages/torch/nn/modules/container.py", false);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
