/* The origin of frames, which frame is the site, and its label. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "frame_judge.h"
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

TEST(frames_have_origins)
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
        {{"kernel", "/opt/memtrace/python/memtrace_dry_run/hooks.py", 5},
         MT_ORIGIN_FRAMEWORK,
         false},
        {{"torch::unwind::unwind()", "??", 0}, MT_ORIGIN_NATIVE, true},
        {{"_PyEval_EvalFrameDefault", "??", 0}, MT_ORIGIN_NATIVE, true},
        {{"my_kernel(float*)", "/home/me/k.cu", 12}, MT_ORIGIN_NATIVE, false},
        {{"work", "/usr/lib/libwork.so.2", 0}, MT_ORIGIN_NATIVE, false},
        {{"work", "[work]", 0}, MT_ORIGIN_NATIVE, false},
        {{"work", "[libpython3.12.so.1.0]", 0}, MT_ORIGIN_NATIVE, true},
        {{"list_extend", "/src/Python-3.11.4/Objects/listobject.c", 0}, MT_ORIGIN_NATIVE, true},
        {{"execute_native_thread_routine", "thread48.o", 0}, MT_ORIGIN_NATIVE, true},
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

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        uint32_t frame = add_frame(&symbols, &cases[i].line);

        mt_site_table_update(&table, &symbols);
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

/* A trace determines the length of its names, and a frame is classified many times. */
TEST(only_the_beginning_of_a_path_is_judged)
{
    char path[5000] = {0};
    struct mt_symbols symbols = {0};
    const struct line near = {"f", path, 1}, far = {"g", path, 1};

    memset(path, 'a', 4000);
    memcpy(path + 4000, "/site-packages/x.py", sizeof "/site-packages/x.py");
    assert_int_equal(mt_frame_origin(&symbols, add_frame(&symbols, &near)), MT_ORIGIN_FRAMEWORK);
    memset(path, 'a', 4096);
    memcpy(path + 4096, "/site-packages/x.py", sizeof "/site-packages/x.py");
    assert_int_equal(mt_frame_origin(&symbols, add_frame(&symbols, &far)), MT_ORIGIN_USER);
    mt_symbols_release(&symbols);
}

#define SITES "/opt/conda/lib/python3.12/site-packages/"
#define CALL                                                                                       \
    {                                                                                              \
        "Module._call_impl", TORCH "nn/modules/module.py", 1790                                    \
    }
#define MALLOC                                                                                     \
    {                                                                                              \
        "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(int)", "", 0      \
    }
#define MAIN                                                                                       \
    {                                                                                              \
        "<module>", "/home/me/hf_trainer.py", 13                                                   \
    }
#define LLAMA SITES "transformers/models/llama/modeling_llama.py"

static const struct line in_library[] = {
    {"Linear.forward", TORCH "nn/modules/linear.py", 134},
    {"new_forward", SITES "accelerate/hooks.py", 170},
    CALL,
    {"LlamaMLP.forward", LLAMA, 175},
    CALL,
    {"GradientCheckpointingLayer.__call__", SITES "transformers/modeling_layers.py", 109},
    {"LlamaModel.forward", LLAMA, 403},
    {"can_return_tuple.<locals>.wrapper", SITES "transformers/utils/generic.py", 939},
    {"ConvertOutputsToFp32.__call__", SITES "accelerate/utils/operations.py", 931},
    {"Trainer.compute_loss", SITES "transformers/trainer.py", 2088},
    MAIN,
};
static const struct line in_library_native[] = {
    MALLOC,
    {"at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "[libtorch_cpu.so]", 0},
    {"cfunction_call", "/usr/local/src/conda/python-3.12.3/Objects/methodobject.c", 543},
    {"Linear.forward", TORCH "nn/modules/linear.py", 134},
    {"method_vectorcall_VARARGS_KEYWORDS.llvm.7574463793130541339", "??", 0},
    {"LlamaMLP.forward", LLAMA, 175},
    {"slot_tp_call", "", 0},
    {"_PyEval_EvalFrameDefault", "??", 0},
    MAIN,
    {"pymain_run_file", "??", 0},
};
static const struct line in_lora[] = {
    {"Linear.forward", TORCH "nn/modules/linear.py", 134},
    {"Linear.forward", SITES "peft/tuners/lora/layer.py", 771},
    {"BaseTuner.forward", SITES "peft/tuners/tuners_utils.py", 308},
    {"PeftModelForCausalLM.forward", SITES "peft/peft_model.py", 1850},
    MAIN,
};
static const struct line in_strategy[] = {
    {"cross_entropy", TORCH "nn/functional.py", 3504},
    {"Strategy.training_step", SITES "lightning/pytorch/strategies/strategy.py", 391},
    {"Trainer.fit", SITES "lightning/pytorch/trainer/trainer.py", 560},
    {"fit", SITES "timm/engine.py", 5},
    {"inner", SITES "torch/_dynamo/eval_frame.py", 736},
    MAIN,
};
static const struct line in_optimizer[] = {
    {"Adam._init_group", TORCH "optim/adam.py", 178},
    {"_use_grad_for_differentiable.<locals>._use_grad", TORCH "optim/optimizer.py", 81},
    {"Optimizer.profile_hook_step.<locals>.wrapper", TORCH "optim/optimizer.py", 533},
    {"AcceleratedOptimizer.step", SITES "accelerate/optimizer.py", 186},
    {"Trainer._inner_training_loop", SITES "transformers/trainer.py", 1602},
    MAIN,
};
static const struct line in_move[] = {
    {"Module.to.<locals>.convert", TORCH "nn/modules/module.py", 1370},
    {"Module._apply", TORCH "nn/modules/module.py", 965},
    {"Module.to", TORCH "nn/modules/module.py", 1384},
    {"PreTrainedModel.to", SITES "transformers/modeling_utils.py", 3706},
    {"Trainer._move_model_to_device", SITES "transformers/trainer.py", 4593},
    MAIN,
};
static const struct line in_activation[] = {
    {"gelu", TORCH "nn/functional.py", 1},
    {"GELUActivation.forward", SITES "transformers/activations.py", 89},
    CALL,
    {"BertIntermediate.forward", SITES "transformers/models/bert/modeling_bert.py", 335},
    MAIN,
};
static const struct line in_convnext[] = {
    {"LayerNorm2d.forward", SITES "timm/layers/norm.py", 132},
    CALL,
    {"ConvNeXtBlock.forward", SITES "timm/models/convnext.py", 208},
    MAIN,
};
static const struct line in_graph_layer[] = {
    {"MeanAggregation.forward", SITES "torch_geometric/nn/aggr/basic.py", 36},
    {"MessagePassing._index_select_safe", SITES "torch_geometric/nn/conv/message_passing.py", 271},
    {"collect", "/tmp/torch_geometric.nn.conv.sage_conv_SAGEConv_propagate_5l5mvom5.py", 83},
    {"propagate", "/tmp/torch_geometric.nn.conv.sage_conv_SAGEConv_propagate_5l5mvom5.py", 173},
    {"SAGEConv.forward", SITES "torch_geometric/nn/conv/sage_conv.py", 134},
    MAIN,
};
static const struct line in_graph_move[] = {
    {"recursive_apply", SITES "torch_geometric/data/storage.py", 905},
    {"Data.to", SITES "torch_geometric/data/data.py", 360},
    MAIN,
};
static const struct line in_batch_move[] = {
    {"apply_to_collection", SITES "lightning_utilities/core/apply_func.py", 72},
    {"Trainer.fit", SITES "lightning/pytorch/trainer/trainer.py", 560},
    MAIN,
};
static const struct line on_a_thread[] = {
    MALLOC,
    {"at::_ops::bmm::call(at::Tensor const&)", "??", 0},
    {"execute_native_thread_routine", "thread48.o", 0},
};
/* What torch.compile generates, below the frames of the compiler, which name nothing. */
static const struct line in_compiled[] = {
    {"run", TORCH "_inductor/utils.py", 3220},
    {"partition_0",
     "/tmp/torchinductor_me/mu/cmu6p65bsxdc7us3awgwdtrknx76s4zt4lup2vokmbjhkw6wiitz.py", 192},
    {"__call__", TORCH "_inductor/output_code.py", 656},
    {"_fn", TORCH "_dynamo/eval_frame.py", 1024}};
static const struct line in_traced[] = {{"forward", "<eval_with_key>.12", 7}};
static const struct line resumed[] = {
    {"torch_dynamo_resume_in_forward_at_66", "/home/me/vit.py", 66}};
static const struct line entered[] = {{"__compiled_fn_3_0c8b1d2e", "/home/me/vit.py", 9}};

static const struct line in_cell[] = {
    {"zeros", SITES "numpy/core/numeric.py", 1},
    {"train_step", "/tmp/ipykernel_41/3105878423.py", 21},
    {"run_code", SITES "IPython/core/interactiveshell.py", 3577},
};
static const struct line in_counted_cell[] = {
    {"forward", SITES "timm/models/vit.py", 7},
    {"<module>", "<ipython-input-5-0c8b1d2e>", 2},
};

TEST(site_is_the_innermost_frame_of_a_model)
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
        {in_library, MT_ARRAY_LEN(in_library),
         "LlamaMLP.forward modeling_llama.py:175 < hf_trainer.py:13"},
        {in_library_native, MT_ARRAY_LEN(in_library_native),
         "LlamaMLP.forward modeling_llama.py:175 < hf_trainer.py:13"},
        {in_lora, MT_ARRAY_LEN(in_lora), "Linear.forward layer.py:771 < hf_trainer.py:13"},
        {in_strategy, MT_ARRAY_LEN(in_strategy), "fit engine.py:5 < hf_trainer.py:13"},
        {in_optimizer, MT_ARRAY_LEN(in_optimizer),
         "Adam._init_group adam.py:178 < hf_trainer.py:13"},
        {in_move, MT_ARRAY_LEN(in_move),
         "Trainer._move_model_to_device trainer.py:4593 < hf_trainer.py:13"},
        {in_activation, MT_ARRAY_LEN(in_activation),
         "BertIntermediate.forward modeling_bert.py:335 < hf_trainer.py:13"},
        {in_convnext, MT_ARRAY_LEN(in_convnext),
         "ConvNeXtBlock.forward convnext.py:208 < hf_trainer.py:13"},
        {in_graph_layer, MT_ARRAY_LEN(in_graph_layer),
         "SAGEConv.forward sage_conv.py:134 < hf_trainer.py:13"},
        {in_graph_move, MT_ARRAY_LEN(in_graph_move), "<module> hf_trainer.py:13"},
        {in_batch_move, MT_ARRAY_LEN(in_batch_move), "<module> hf_trainer.py:13"},
        {on_a_thread, MT_ARRAY_LEN(on_a_thread), "bmm"},
        {in_compiled, MT_ARRAY_LEN(in_compiled), "partition_0 compiled code:192"},
        {in_traced, MT_ARRAY_LEN(in_traced), "forward traced graph:7"},
        {resumed, MT_ARRAY_LEN(resumed), "forward vit.py:66"},
        {entered, MT_ARRAY_LEN(entered), "compiled function 3 vit.py:9"},
        {in_cell, MT_ARRAY_LEN(in_cell), "train_step cell[3105878423]:21"},
        {in_counted_cell, MT_ARRAY_LEN(in_counted_cell), "forward vit.py:7 < cell[5]:2"},
    };
    struct mt_symbols symbols = {0};
    struct mt_site_table table = {0};
    struct mt_arena arena = {0};

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        uint32_t stack = add_stack(&symbols, cases[i].lines, cases[i].count);

        assert_string_equal(mt_site_label(&arena, &symbols, stack, false), cases[i].label);
    }
    mt_site_table_update(&table, &symbols);
    for (uint32_t stack = 0; stack < symbols.stack_count; stack++) {
        struct mt_site kept = mt_site_table_at(&table, stack);
        struct mt_site walked = mt_stack_site(&symbols, stack);

        assert_int_equal(kept.frame, walked.frame);
        assert_int_equal(kept.own, walked.own);
    }
    assert_int_equal(mt_site_table_site(&table, MT_NO_ID), MT_NO_ID);
    assert_int_equal(mt_stack_site(&symbols, MT_NO_ID).frame, MT_NO_ID);
    assert_string_equal(mt_site_label(&arena, &symbols, MT_NO_ID, true),
                        "autograd engine (no Python stack)");
    assert_string_equal(mt_site_label(&arena, &symbols, MT_NO_ID, false), "no stack recorded");
    mt_arena_release(&arena);
    mt_site_table_release(&table);
    mt_symbols_release(&symbols);
}

/* The operation is next to the user's line: frames of the interpreter are skipped. */
TEST(operation_is_the_innermost_named_frame)
{
    static const struct {
        const struct line *lines;
        size_t count;
        bool has_python;
        const char *operation;
    } cases[] = {
        {in_library, MT_ARRAY_LEN(in_library), true, "Linear.forward linear.py:134"},
        {in_library_native, MT_ARRAY_LEN(in_library_native), true, "mm [libtorch_cpu.so]"},
        {in_lora + 1, 1, true, "Linear.forward layer.py:771"},
        {on_a_thread, MT_ARRAY_LEN(on_a_thread), false, "bmm"},
        {on_a_thread + 2, 1, false, "execute_native_thread_routine thread48.o"},
    };
    struct mt_symbols symbols = {0};
    struct mt_site_table table = {0};
    struct mt_arena arena = {0};

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        uint32_t stack = add_stack(&symbols, cases[i].lines, cases[i].count);

        mt_site_table_update(&table, &symbols);
        assert_int_equal(mt_site_table_has_python(&table, stack), cases[i].has_python);
        assert_string_equal(
            mt_frame_label(&arena, &symbols, mt_site_table_operation(&table, &symbols, stack)),
            cases[i].operation);
    }
    assert_true(table.has_python);
    assert_false(mt_site_table_has_python(&table, MT_NO_ID));
    mt_arena_release(&arena);
    mt_site_table_release(&table);
    mt_symbols_release(&symbols);
}

TEST(labels_are_parsed)
{
    const char *label = "LlamaMLP.forward modeling_llama.py:175 < hf_trainer.py:13";

    assert_int_equal(mt_site_label_head(label), strlen("LlamaMLP.forward modeling_llama.py:175"));
    assert_string_equal(mt_site_label_own(label), "hf_trainer.py:13");
    assert_int_equal(mt_site_label_head("MmBackward0"), strlen("MmBackward0"));
    assert_null(mt_site_label_own("MmBackward0"));
}

TEST(labels_omit_unknown_parts)
{
    struct mt_symbols symbols = {0};
    struct mt_arena arena = {0};
    const struct line no_line = {"f", "/a/b.py", 0}, no_file = {"start", "??", 0};
    const struct line module = {"cuMemAlloc_v2", "[libcuda.so.1]", 0};
    const struct line address = {"+0x1f", "/lib/libwork.so (build id 01ab)", 0};
    char name[300];
    struct line endless = {name, "x.py", 3};

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &no_line)), "f b.py");
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &no_file)), "start");
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &module)),
                        "cuMemAlloc_v2 [libcuda.so.1]");
    assert_string_equal(mt_frame_label(&arena, &symbols, add_frame(&symbols, &address)),
                        "+0x1f libwork.so");
    assert_string_equal(mt_frame_label(&arena, &symbols, MT_NO_ID), "?");
    for (size_t i = 0; i + 3 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa4", 3); /* never cut inside a character */
    const char *label = mt_frame_label(&arena, &symbols, add_frame(&symbols, &endless));
    assert_string_equal(strchr(label, ' '), " x.py:3");
    assert_true(strlen(label) < 120);
    assert_string_equal(strstr(label, "…"), "… x.py:3");
    assert_int_equal((strstr(label, "…") - label) % 2, 0);
    mt_arena_release(&arena);
    mt_symbols_release(&symbols);
}

TEST(cxx_names_are_shortened)
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
        {"run_mod.llvm.9196888086361497952", "run_mod", "run_mod"},
        {"pyrun_file.cold", "pyrun_file", "pyrun_file"},
        {"my_operator(int)", "my_operator", "my_operator"},
        {"(unknown)", "(unknown)", "(unknown)"},
        {"f(", "f", "f"},
        {"", "", ""},
    };
    char name[MT_CXX_NAME_SIZE], symbol[2000];

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
    return run_tests_of_file(NULL, NULL);
}
