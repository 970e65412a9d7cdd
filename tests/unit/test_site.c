/* Where frames come from, which one is the site, what it is called. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "cxx_name.h"
#include "site.h"
#include "util.h"

#define TORCH "/home/user/.venv/lib/python3.12/site-packages/torch/"

struct line {
    const char *function, *file;
    uint32_t line;
};

static uint32_t add_frame(struct mt_symbols *symbols, const struct line *line)
{
    uint32_t function, file, frame;

    assert_int_equal(mt_symbols_string(symbols, line->function, strlen(line->function), &function),
                     MT_OK);
    assert_int_equal(mt_symbols_string(symbols, line->file, strlen(line->file), &file), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, function, file, line->line, &frame), MT_OK);
    return frame;
}

/* Lines from the innermost out, as tracebacks of PyTorch print them. */
static uint32_t add_stack(struct mt_symbols *symbols, const struct line *lines, size_t count)
{
    uint32_t stack = MT_NO_ID;

    while (count-- > 0)
        assert_int_equal(
            mt_symbols_stack(symbols, stack, add_frame(symbols, &lines[count]), &stack), MT_OK);
    return stack;
}

static void frames_have_origins(void **state)
{
    static const struct {
        struct line line;
        enum mt_origin origin;
        bool plumbing;
    } cases[] = {
        {{"train", "/workspace/train.py", 75}, MT_ORIGIN_USER, false},
        {{"<lambda>", "/workspace/train.py", 12}, MT_ORIGIN_USER, false},
        {{"wrapper", "<string>", 1}, MT_ORIGIN_USER, false},
        {{"main", "/usr/local/bin/run", 4}, MT_ORIGIN_USER, false},
        {{"forward", "/home/me/mytorch/nn/net.py", 4}, MT_ORIGIN_USER, false},
        {{"forward", TORCH "nn/modules/linear.py", 134}, MT_ORIGIN_NN, false},
        {{"_call_impl", TORCH "nn/modules/module.py", 1790}, MT_ORIGIN_NN, true},
        {{"Module._call_impl", TORCH "nn/modules/module.py", 1790}, MT_ORIGIN_NN, true},
        {{"Module.cuda.<locals>.<lambda>", TORCH "nn/modules/module.py", 1097}, MT_ORIGIN_NN, true},
        {{"Module.cuda", TORCH "nn/modules/module.py", 1097}, MT_ORIGIN_NN, false},
        {{"forward", "C:\\py\\Lib\\site-packages\\torch\\nn\\modules\\linear.py", 134},
         MT_ORIGIN_NN,
         false},
        {{"step", TORCH "optim/adam.py", 238}, MT_ORIGIN_OPTIM, false},
        {{"_use_grad", TORCH "optim/optimizer.py", 81}, MT_ORIGIN_OPTIM, true},
        {{"backward", TORCH "_tensor.py", 1}, MT_ORIGIN_FRAMEWORK, false},
        {{"inner", TORCH "_compile.py", 1}, MT_ORIGIN_FRAMEWORK, true},
        {{"inner", "/usr/lib/python3/dist-packages/other.py", 1}, MT_ORIGIN_FRAMEWORK, false},
        {{"generate", "/opt/conda/lib/python3.11/site-packages/transformers/u.py", 9},
         MT_ORIGIN_FRAMEWORK,
         false},
        {{"_run_code", "<frozen runpy>", 88}, MT_ORIGIN_FRAMEWORK, true},
        {{"run", "/usr/lib/python3.12/threading.py", 5}, MT_ORIGIN_FRAMEWORK, false},
        {{"torch::unwind::unwind()", "??", 0}, MT_ORIGIN_NATIVE, true},
        {{"_PyEval_EvalFrameDefault", "??", 0}, MT_ORIGIN_NATIVE, true},
        {{"my_kernel(float*)", "/home/me/k.cu", 12}, MT_ORIGIN_NATIVE, false},
        {{"work", "/usr/lib/libwork.so.2", 0}, MT_ORIGIN_NATIVE, false},
        {{"work", "[work]", 0}, MT_ORIGIN_NATIVE, false},
        {{"cuMemAlloc_v2", "[libcuda.so.1]", 0}, MT_ORIGIN_NATIVE, true},
        {{"+0x1f3a", "/usr/bin/work (build id 01ab)", 0}, MT_ORIGIN_NATIVE, true},
        {{"0x7f0000001f3a", "", 0}, MT_ORIGIN_NATIVE, true},
        {{"at::_ops::mm::call(at::Tensor const&)", "??", 0}, MT_ORIGIN_NATIVE, false},
        {{"at::_ops::empty_like::call(at::Tensor const&)", "??", 0}, MT_ORIGIN_NATIVE, true},
        {{"torch::autograd::Engine::evaluate_function(int)", "??", 0}, MT_ORIGIN_ENGINE, false},
        {{"torch::autograd::Engine::thread_main(int)", "", 0}, MT_ORIGIN_ENGINE, true},
    };
    struct mt_symbols symbols = {0};
    struct mt_site_table table = {0};

    (void)state;
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        uint32_t frame = add_frame(&symbols, &cases[i].line);

        assert_int_equal(mt_site_table_update(&table, &symbols), MT_OK);
        if (mt_frame_origin(&symbols, frame) != cases[i].origin ||
            mt_frame_is_plumbing(&symbols, frame) != cases[i].plumbing)
            fail_msg("%s in %s is judged wrongly", cases[i].line.function, cases[i].line.file);
        assert_int_equal(mt_site_table_origin(&table, frame), cases[i].origin);
        assert_int_equal(mt_site_table_is_plumbing(&table, frame), cases[i].plumbing);
    }
    assert_true(mt_frame_is_plumbing(&symbols, MT_NO_ID));
    assert_true(mt_site_table_is_plumbing(&table, MT_NO_ID));
    mt_site_table_release(&table);
    mt_symbols_release(&symbols);
}

static const struct line in_linear[] = {
    {"forward", TORCH "nn/modules/linear.py", 134},
    {"_call_impl", TORCH "nn/modules/module.py", 1790},
    {"forward", TORCH "nn/modules/container.py", 253},
    {"_call_impl", TORCH "nn/modules/module.py", 1790},
    {"forward", "/workspace/train.py", 49},
    {"_call_impl", TORCH "nn/modules/module.py", 1790},
    {"train", "/workspace/train.py", 75},
    {"<module>", "/workspace/train.py", 166},
};
static const struct line no_user[] = {
    {"_call_impl", TORCH "nn/modules/module.py", 1790},
    {"forward", TORCH "nn/modules/linear.py", 134},
    {"_run_code", "<frozen runpy>", 88},
};
static const struct line plumbing_alone[] = {
    {"_call_impl", TORCH "nn/modules/module.py", 1790},
    {"_wrapped_call_impl", TORCH "nn/modules/module.py", 1779},
};
static const struct line in_engine[] = {
    {"c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(void**)", "", 0},
    {"at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "??", 0},
    {"torch::autograd::generated::details::mm_mat2_backward(at::Tensor const&)", "", 0},
    {"torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", "??", 0},
    {"torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&)", "??", 0},
    {"__clone", "??", 0},
};
static const struct line native_program[] = {
    {"cudaMalloc", "/usr/lib/libcudart.so.12", 0},
    {"void app::Solver<float>::grow(unsigned long)", "/src/solver.cu", 81},
    {"main", "/src/main.cpp", 9},
};

/* A trace chooses how long its names are, and a frame is judged many times. */
static void only_the_beginning_of_a_path_is_judged(void **state)
{
    char path[5000] = {0};
    struct mt_symbols symbols = {0};
    const struct line near = {"f", path, 1}, far = {"g", path, 1};

    (void)state;
    memset(path, 'a', 4000);
    memcpy(path + 4000, "/site-packages/x.py", sizeof "/site-packages/x.py");
    assert_int_equal(mt_frame_origin(&symbols, add_frame(&symbols, &near)), MT_ORIGIN_FRAMEWORK);
    memset(path, 'a', 4096);
    memcpy(path + 4096, "/site-packages/x.py", sizeof "/site-packages/x.py");
    assert_int_equal(mt_frame_origin(&symbols, add_frame(&symbols, &far)), MT_ORIGIN_USER);
    mt_symbols_release(&symbols);
}

static void site_is_the_innermost_user_frame(void **state)
{
    static const struct {
        const struct line *lines;
        size_t count;
        const char *label;
    } cases[] = {
        {in_linear, MT_ARRAY_LEN(in_linear), "forward train.py:49"},
        {no_user, MT_ARRAY_LEN(no_user), "forward linear.py:134"},
        {plumbing_alone, MT_ARRAY_LEN(plumbing_alone), "_call_impl module.py:1790"},
        {in_engine, MT_ARRAY_LEN(in_engine), "MmBackward0"},
        {native_program, MT_ARRAY_LEN(native_program), "Solver::grow solver.cu:81"},
    };
    struct mt_symbols symbols = {0};
    struct mt_site_table table = {0};
    struct mt_arena arena = {0};

    (void)state;
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        uint32_t stack = add_stack(&symbols, cases[i].lines, cases[i].count);

        assert_string_equal(mt_site_label(&arena, &symbols, stack, false), cases[i].label);
    }
    assert_int_equal(mt_site_table_update(&table, &symbols), MT_OK);
    for (uint32_t stack = 0; stack < symbols.stack_count; stack++)
        assert_int_equal(mt_site_table_site(&table, stack), mt_stack_site_frame(&symbols, stack));
    assert_int_equal(mt_site_table_site(&table, MT_NO_ID), MT_NO_ID);
    assert_int_equal(mt_stack_site_frame(&symbols, MT_NO_ID), MT_NO_ID);
    assert_string_equal(mt_site_label(&arena, &symbols, MT_NO_ID, true),
                        "autograd engine (no Python stack)");
    assert_string_equal(mt_site_label(&arena, &symbols, MT_NO_ID, false), "no stack recorded");
    mt_arena_release(&arena);
    mt_site_table_release(&table);
    mt_symbols_release(&symbols);
}

static void labels_leave_out_what_is_unknown(void **state)
{
    struct mt_symbols symbols = {0};
    struct mt_arena arena = {0};
    const struct line no_line = {"f", "/a/b.py", 0}, no_file = {"start", "??", 0};
    const struct line module = {"cuMemAlloc_v2", "[libcuda.so.1]", 0};
    const struct line address = {"+0x1f", "/lib/libwork.so (build id 01ab)", 0};
    char name[300];
    struct line endless = {name, "x.py", 3};
    const char *label;

    (void)state;
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &no_line)), "f b.py");
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &no_file)), "start");
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &module)),
                        "cuMemAlloc_v2 [libcuda.so.1]");
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &address)),
                        "+0x1f libwork.so");
    assert_string_equal(mt_frame_label(&arena, &symbols, MT_NO_ID), "?");
    for (size_t i = 0; i + 3 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa4", 3); /* never cut within a character */
    label = mt_frame_label(&arena, &symbols, add_frame(&symbols, &endless));
    assert_string_equal(strchr(label, ' '), " x.py:3");
    assert_true(strlen(label) < 120);
    assert_string_equal(strstr(label, "…"), "… x.py:3");
    assert_int_equal((strstr(label, "…") - label) % 2, 0);
    mt_arena_release(&arena);
    mt_symbols_release(&symbols);
}

static void cxx_names_are_cut_down(void **state)
{
    static const struct {
        const char *symbol, *name, *last;
    } cases[] = {
        {"at::Tensor at::_sum_to<c10::SymInt>(at::Tensor, bool)", "at::_sum_to", "at::_sum_to"},
        {"a::(anonymous namespace)::b(int) const", "a::b", "a::b"},
        {"x::C<a::B>::operator()(int) const", "x::C::operator()", "C::operator()"},
        {"void f<int, (g)1>(x) [clone .isra.0]", "f", "f"},
        {"std::ostream& operator<< <char>(std::ostream&)", "operator<<", "operator<<"},
        {"n::k(int)::{lambda()#2}::operator()() const", "n::k::{lambda}::operator()",
         "{lambda}::operator()"},
        {"a::f<&b::operator-> >(int)", "a::f", "a::f"},
        {"forward", "forward", "forward"},
        {"my_operator(int)", "my_operator", "my_operator"},
        {"(unknown)", "(unknown)", "(unknown)"},
        {"f(", "f", "f"},
        {"", "", ""},
    };
    char name[MT_CXX_NAME_SIZE], symbol[2000];

    (void)state;
    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        assert_string_equal(mt_cxx_name(cases[i].symbol, name), cases[i].name);
        assert_string_equal(mt_cxx_last_components(name), cases[i].last);
    }
    for (size_t kind = 0; kind < 5; kind++) { /* too long, in every branch */
        static const char *const pieces[] = {"a", "operator<<", "{x}", "((", "a::"};
        size_t length = 0;

        while (length + 12 < sizeof symbol)
            length += (size_t)sprintf(symbol + length, "%s", pieces[kind]);
        assert_true(strlen(mt_cxx_name(symbol, name)) < MT_CXX_NAME_SIZE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_have_origins),
        cmocka_unit_test(only_the_beginning_of_a_path_is_judged),
        cmocka_unit_test(site_is_the_innermost_user_frame),
        cmocka_unit_test(labels_leave_out_what_is_unknown),
        cmocka_unit_test(cxx_names_are_cut_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
