/* Judges a frame by its file (origin) and by its function (plumbing). Static tables have all
 * knowledge about other people's code. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "frame_judge.h"
#include "ascii.h"
#include "symbols.h"
#include "util.h"

/* One pass over the symbol: skips brackets of every kind with their contents; a space outside of
 * brackets ends a return type. */

#define ANONYMOUS "(anonymous namespace)::"
#define OPERATOR  "operator"

/* Position after the bracket that closes the one at `at`. In templates the '>' of "->" closes
 * nothing. */
static const char *skip_brackets(const char *at)
{
    int depth = 0;

    for (; *at; at++) {
        if (*at == '<' || *at == '(' || *at == '{' || *at == '[')
            depth++;
        else if ((*at == '>' && at[-1] != '-') || *at == ')' || *at == '}' || *at == ']')
            depth--;
        if (depth == 0)
            return at + 1;
    }
    return at;
}

static bool is_identifier(char c)
{
    return mt_is_alnum(c) || c == '_';
}

/* Length of "operator<<", "operator()", ... at `at`, 0 if it is not an operator. */
static size_t operator_length(const char *symbol, const char *at)
{
    size_t length = sizeof OPERATOR - 1;

    if (strncmp(at, OPERATOR, length) || (at > symbol && is_identifier(at[-1])) ||
        is_identifier(at[length]))
        return 0;
    if (!strncmp(at + length, "()", 2))
        return length + 2;
    return length + strspn(at + length, "<>=!+-*/%^&|~,[]");
}

/* "f.llvm.7574463793130541339", "f.constprop.0", "f.localalias" -> "f" */
static void cut_clone(char *name)
{
    static const char *const marks[] = {".llvm.", ".localalias", ".constprop.", ".isra.",
                                        ".part.", ".cold",       ".lto_priv."};

    for (size_t i = 0; i < MT_ARRAY_LEN(marks); i++) {
        char *at = strstr(name, marks[i]);

        if (at && at > name)
            *at = '\0';
    }
}

char *mt_cxx_name(const char *symbol, char name[MT_CXX_NAME_SIZE])
{
    const char *at = symbol;
    size_t length = 0, copied;

    while (*at && length < MT_CXX_NAME_SIZE - 1) {
        if (!strncmp(at, ANONYMOUS, sizeof ANONYMOUS - 1)) {
            at += sizeof ANONYMOUS - 1;
        } else if ((copied = operator_length(symbol, at)) > 0) {
            if (copied > MT_CXX_NAME_SIZE - 1 - length)
                copied = MT_CXX_NAME_SIZE - 1 - length;
            memcpy(name + length, at, copied);
            length += copied;
            at += copied;
        } else if (*at == '<') {
            at = skip_brackets(at);
        } else if (*at == '(') {
            at = skip_brackets(at);
            if (strncmp(at, "::", 2)) /* the scope of a lambda continues after its arguments */
                break;
        } else if (*at == '{') {
            at = skip_brackets(at);
            copied = sizeof "{lambda}" - 1;
            if (copied > MT_CXX_NAME_SIZE - 1 - length)
                break;
            memcpy(name + length, "{lambda}", copied);
            length += copied;
        } else if (*at == ' ') {
            if (at[1] != '<') /* "operator<< <char>" */
                length = 0;
            at++;
        } else {
            name[length++] = *at++;
        }
    }
    if (length == 0) {
        length = strnlen(symbol, MT_CXX_NAME_SIZE - 1);
        memcpy(name, symbol, length);
    }
    name[length] = '\0';
    cut_clone(name);
    return name;
}

const char *mt_cxx_last_components(const char *name)
{
    const char *at = name + strlen(name);
    int separators = 0;

    while (at - name >= 2) {
        if (at[-1] == ':' && at[-2] == ':' && ++separators == 2)
            return at;
        at--;
    }
    return name;
}

/* Parts of a path, first match wins; for files that are not native. */
static const struct {
    const char *part;
    enum mt_origin origin;
} python_paths[] = {
    {"torch/nn/", MT_ORIGIN_NN},
    {"torch/optim/", MT_ORIGIN_OPTIM},
    {"/site-packages/", MT_ORIGIN_FRAMEWORK},
    {"/dist-packages/", MT_ORIGIN_FRAMEWORK},
    {"torch/autograd/", MT_ORIGIN_FRAMEWORK}, /* PyTorch run from its sources */
    {"torch/cuda/", MT_ORIGIN_FRAMEWORK},
    {"torch/distributed/", MT_ORIGIN_FRAMEWORK},
    {"torch/utils/", MT_ORIGIN_FRAMEWORK},
    {"torch/amp/", MT_ORIGIN_FRAMEWORK},
    {"torch/_", MT_ORIGIN_FRAMEWORK},
    {"torch/functional.py", MT_ORIGIN_FRAMEWORK},
    {"torchinductor_", MT_ORIGIN_FRAMEWORK},      /* compiled kernels' wrappers */
    {"/memtrace_dry_run/", MT_ORIGIN_FRAMEWORK},  /* hooks of a dry run */
    {"torch_geometric.nn.", MT_ORIGIN_FRAMEWORK}, /* code that it generates from a layer */
    {"/lib/python3", MT_ORIGIN_FRAMEWORK},
    {"/lib64/python3", MT_ORIGIN_FRAMEWORK},
    {"/lib/python2", MT_ORIGIN_FRAMEWORK},
    {"<frozen ", MT_ORIGIN_FRAMEWORK},
    {"<eval_with_key>", MT_ORIGIN_FRAMEWORK},
    {"<__array_function__", MT_ORIGIN_FRAMEWORK},
};

/* Installed packages: a model's code owns its memory, unless it is listed here. Prefixes after
 * site-packages/, first match wins. */
static const struct {
    const char *beginning;
    const char *function; /* NULL = any */
    bool speaks;
} packages[] = {
    /* Functions that compute: their callers know the purpose. */
    {"torch/", NULL, false},
    {"torchgen/", NULL, false},
    {"functorch/", NULL, false},
    {"torch_xla/", NULL, false},
    {"triton/", NULL, false},
    {"numpy/", NULL, false},
    {"cupy/", NULL, false},
    {"cupyx/", NULL, false},
    {"numba/", NULL, false},
    {"rmm/", NULL, false},
    {"jax/", NULL, false},
    {"jaxlib/", NULL, false},
    {"flax/core/", NULL, false},
    {"flax/linen/", NULL, false},
    {"flax/nnx/", NULL, false},
    {"einops/", NULL, false},
    {"opt_einsum/", NULL, false},
    {"transformers/activations.py", NULL, false},
    {"transformers/pytorch_utils.py", NULL, false},
    {"timm/layers/activations", NULL, false},
    {"timm/layers/conv2d_same.py", NULL, false},
    {"timm/layers/fast_norm.py", NULL, false},
    {"timm/layers/linear.py", NULL, false},
    {"timm/layers/norm", NULL, false},
    {"torchvision/ops/misc.py", NULL, false},
    {"torch_geometric/nn/aggr/base.py", NULL, false},
    {"torch_geometric/nn/aggr/basic.py", NULL, false},
    {"torch_geometric/nn/conv/message_passing.py", NULL, false},
    {"torch_geometric/nn/dense/linear.py", NULL, false},
    {"torch_geometric/nn/norm/", NULL, false},
    {"torch_geometric/utils/", NULL, false},
    {"torch_scatter/", NULL, false},
    {"torch_sparse/", NULL, false},
    /* Wrappers around a model. */
    {"accelerate/", NULL, false},
    {"peft/peft_model.py", NULL, false},
    {"peft/mixed_model.py", NULL, false},
    {"peft/tuners/tuners_utils.py", NULL, false},
    {"lightning/pytorch/callbacks/", NULL, true},
    {"lightning/pytorch/demos/", NULL, true},
    {"lightning/", NULL, false},
    {"pytorch_lightning/callbacks/", NULL, true},
    {"pytorch_lightning/demos/", NULL, true},
    {"pytorch_lightning/", NULL, false},
    {"lightning_fabric/", NULL, false},
    {"lightning_utilities/", NULL, false},
    {"torch_geometric/data/", NULL, false},
    {"deepspeed/runtime/engine.py", NULL, false},
    {"deepspeed/utils/nvtx.py", NULL, false},
    {"transformers/utils/", NULL, false},
    {"transformers/modeling_layers.py", "__call__", false},
    {"transformers/modeling_utils.py", NULL, false},
    {"transformers/core_model_loading.py", NULL, false},
    {"transformers/integrations/accelerate.py", NULL, false},
    {"diffusers/utils/", NULL, false},
    {"diffusers/hooks/", NULL, false},
    {"diffusers/models/modeling_utils.py", NULL, false},
    {"jaxtyping/", NULL, false},
    {"beartype/", NULL, false},
    {"wrapt/", NULL, false},
    {"tqdm/", NULL, false},
};

/* torch.optim's code that is common to all optimizers. */
static const char *const optimizer_wrappers[] = {"torch/optim/optimizer.py",
                                                 "torch/optim/lr_scheduler.py"};

/* Python functions that only forward a call; outside of user code. */
static const struct {
    const char *function;
    const char *file; /* base name, NULL = in any file */
} python_plumbing[] = {
    {"_call_impl", NULL},
    {"_wrapped_call_impl", NULL},
    {"_apply", NULL},
    {"<lambda>", NULL},
    {"wrapper", NULL},
    {"wrapped", NULL},
    {"wrapped_func", NULL},
    {"inner_wrapper", NULL},
    {"_use_grad", NULL},
    {"maybe_fallback", NULL},
    {"decorate_context", NULL},
    {"decorate_autocast", NULL},
    {"_fn", NULL},
    {"fn", "_jit_internal.py"},
    {"inner", "_compile.py"},
    {"inner", "contextlib.py"},
    {"convert", "module.py"},
    {"_conv_forward", "conv.py"},
    {"_run_ddp_forward", "distributed.py"},
    {"__torch_function__", NULL},
    {"__torch_dispatch__", NULL},
    {"_run_module_as_main", NULL},
    {"_run_code", NULL},
};

/* The parts of torch.compile that call others: 30 frames for each compiled call. What it measures
 * and records (pad_mm, autotuning, CUDA graphs) is informative. */
static const char *const compiler_paths[] = {
    "torch/_dynamo/",
    "torch/_functorch/",
    "torch/_inductor/compile_fx.py",
    "torch/_inductor/output_code.py",
    "torch/_inductor/pattern_matcher.py",
    "torch/_inductor/utils.py",
    "torch/_ops.py",
    "torch/_utils_internal.py",
};

/* C and C++ names without arguments, first match wins. Operators, nodes of the autograd graph and
 * the engine itself are informative; functions between them are not; unlisted functions are other
 * code and count as informative. `short_name`: the label is the name between prefix and suffix;
 * `label`: the label itself. */
static const struct {
    const char *prefix, *suffix;
    bool plumbing, short_name, node;
    const char *label;
} native_names[] = {
    {"at::_ops::empty", "", true, false, false, NULL},
    {"at::_ops::resize_", "", true, false, false, NULL},
    {"at::_ops::", "::call", false, true, false, NULL},
    {"torch::autograd::generated::", "::apply", false, true, true, NULL},
    {"torch::autograd::Engine::evaluate_function", "", false, false, false, "autograd engine"},
    {"torch::", "", true, false, false, NULL},
    {"at::", "", true, false, false, NULL},
    {"c10::", "", true, false, false, NULL},
    {"THP", "", true, false, false, NULL},
    {"std::", "", true, false, false, NULL},
    {"Py", "", true, false, false, NULL},
    {"_Py", "", true, false, false, NULL},
    {"cfunction_", "", true, false, false, NULL}, /* of CPython, built without its file names */
    {"method_vectorcall", "", true, false, false, NULL},
    {"slot_tp_", "", true, false, false, NULL},
    {"slot_nb_", "", true, false, false, NULL},
    {"slot_sq_", "", true, false, false, NULL},
    {"slot_mp_", "", true, false, false, NULL},
    {"vectorcall_", "", true, false, false, NULL},
    {"wrapperdescr_", "", true, false, false, NULL},
    {"do_call_core", "", true, false, false, NULL},
    {"object_vacall", "", true, false, false, NULL},
    {"type_call", "", true, false, false, NULL},
    {"partial_call", "", true, false, false, NULL},
    {"partial_vectorcall", "", true, false, false, NULL},
    {"binary_op", "", true, false, false, NULL},
    {"gen_send_ex", "", true, false, false, NULL},
    {"gen_iternext", "", true, false, false, NULL},
    {"builtin_exec", "", true, false, false, NULL},
    {"run_eval_code_obj", "", true, false, false, NULL},
    {"run_mod", "run_mod", true, false, false, NULL},
    {"pyrun_", "", true, false, false, NULL},
    {"pymain_", "", true, false, false, NULL},
    {"pybind11::", "", true, false, false, NULL},
    {"__libc_", "", true, false, false, NULL},
    {"__clone", "", true, false, false, NULL},
    {"clone", "", true, false, false, NULL},
    {"_start", "", true, false, false, NULL},
    {"start_thread", "", true, false, false, NULL},
    {"execute_native_thread_routine", "", true, false, false, NULL},
    {"pthread_", "", true, false, false, NULL},
    {"cudaMalloc", "", true, false, false, NULL},
    {"cudaFree", "", true, false, false, NULL},
    {"cuMem", "", true, false, false, NULL},
    {"rmm::", "", true, false, false, NULL},
};

static const char *const native_extensions[] = {".cpp", ".cc",  ".cxx", ".c", ".h", ".hpp",
                                                ".cu",  ".cuh", ".inl", ".S", ".o"};

const char *mt_code_base_name(const char *path)
{
    const char *base = path;

    for (; *path; path++)
        if (*path == '/' || *path == '\\')
            base = path + 1;
    return base;
}

/* A frame without a name: an address in a module, or in the process. */
static bool is_address(const char *function)
{
    return !strncmp(function, "+0x", 3) || !strncmp(function, "0x", 2);
}

/* "[libcuda.so.1]" is the module of a function without a line. */
bool mt_code_is_native(const char *function, const char *file)
{
    if (!*file || !strcmp(file, "??") || *file == '[' || is_address(function))
        return true;
    if (*file == '<' || mt_ends_with(file, ".py"))
        return false;
    if (strstr(function, "::") || strchr(function, '(') || strstr(file, ".so"))
        return true;
    for (size_t i = 0; i < MT_ARRAY_LEN(native_extensions); i++)
        if (mt_ends_with(file, native_extensions[i]))
            return true;
    return false;
}

/* Linux opens no longer path. A trace may have longer names, and every part judges every frame
 * several times. */
enum { MAX_PATH = 4096 };

static bool is_like(char in_path, char in_part)
{
    return in_path == in_part || (in_path == '\\' && in_part == '/');
}

static bool is_at(const char *path, const char *part)
{
    while (*part && is_like(*path, *part)) {
        path++;
        part++;
    }
    return !*part;
}

/* strstr within the first MAX_PATH bytes, by the rules of mt_path_has. */
static const char *find_part(const char *path, const char *part)
{
    const bool begins_name = mt_is_letter(*part);

    for (const char *at = path; *at && at < path + MAX_PATH; at++) {
        if (!is_like(*at, *part))
            continue;
        if (begins_name && at > path && at[-1] != '/' && at[-1] != '\\')
            continue;
        if (is_at(at, part))
            return at;
    }
    return NULL;
}

bool mt_path_has(const char *path, const char *part)
{
    return find_part(path, part) != NULL;
}

/* Row of native_names for a cleaned name, or its length. */
static size_t native_row(const char *name)
{
    size_t i;

    for (i = 0; i < MT_ARRAY_LEN(native_names); i++)
        if (!strncmp(name, native_names[i].prefix, strlen(native_names[i].prefix)) &&
            mt_ends_with(name, native_names[i].suffix))
            break;
    return i;
}

/* "[libpython3.12.so.1.0]", "/src/python-3.10.14/Objects/methodobject.c" */
static bool is_of_interpreter(const char *file)
{
    static const char *const folders[] = {"/Objects/", "/Python/", "/Modules/", "/Include/"};

    if (!strncmp(file, "[python", 7) || !strncmp(file, "[libpython", 10))
        return true;
    if (!mt_path_has(file, "python-") && !mt_path_has(file, "Python-") &&
        !mt_path_has(file, "cpython"))
        return false;
    for (size_t i = 0; i < MT_ARRAY_LEN(folders); i++)
        if (mt_path_has(file, folders[i]))
            return true;
    return false;
}

static struct mt_judged judge_native(const char *function, const char *file)
{
    struct mt_judged judged = {MT_ORIGIN_NATIVE, MT_RANK_NATIVE_PLUMBING};
    char name[MT_CXX_NAME_SIZE];

    if (is_address(function))
        return judged;
    mt_cxx_name(function, name);
    size_t row = native_row(name);
    if (!strncmp(name, "torch::autograd::Engine::", 25))
        judged.origin = MT_ORIGIN_ENGINE;
    if (is_of_interpreter(file))
        return judged;
    if (row == MT_ARRAY_LEN(native_names) || !native_names[row].plumbing)
        judged.rank = MT_RANK_NATIVE;
    if (row < MT_ARRAY_LEN(native_names) && native_names[row].node)
        judged.rank = MT_RANK_NODE;
    return judged;
}

/* The code cache names a file "c" and the SHA-256 of its text in base 32, which has 51 letters. */
bool mt_code_is_compiled(const char *path)
{
    const char *base = mt_code_base_name(path);
    size_t length = strspn(base, "abcdefghijklmnopqrstuvwxyz234567");

    return base[0] == 'c' && length == 52 && !strcmp(base + length, ".py");
}

static enum mt_origin python_origin(const char *file)
{
    if (mt_code_is_compiled(file))
        return MT_ORIGIN_FRAMEWORK;
    for (size_t i = 0; i < MT_ARRAY_LEN(python_paths); i++)
        if (mt_path_has(file, python_paths[i].part))
            return python_paths[i].origin;
    return MT_ORIGIN_USER;
}

/* "Module.cuda.<locals>.<lambda>" -> "<lambda>": qualified names mean the same function. */
static const char *bare_name(const char *function)
{
    const char *dot = strrchr(function, '.');

    return dot ? dot + 1 : function;
}

static bool python_is_plumbing(const char *qualified, const char *file)
{
    const char *function = bare_name(qualified);

    for (size_t i = 0; i < MT_ARRAY_LEN(compiler_paths); i++)
        if (mt_path_has(file, compiler_paths[i]))
            return true;
    for (size_t i = 0; i < MT_ARRAY_LEN(python_plumbing); i++)
        if (!strcmp(function, python_plumbing[i].function) &&
            (!python_plumbing[i].file || !strcmp(mt_code_base_name(file), python_plumbing[i].file)))
            return true;
    return false;
}

/* "transformers/trainer.py" for an installed file, otherwise NULL. */
static const char *path_in_packages(const char *file)
{
    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};

    for (size_t i = 0; i < MT_ARRAY_LEN(roots); i++) {
        const char *at = find_part(file, roots[i]);

        if (at)
            return at + strlen(roots[i]);
    }
    return NULL;
}

static bool package_speaks(const char *path, const char *function)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(packages); i++)
        if (is_at(path, packages[i].beginning) &&
            (!packages[i].function || !strcmp(bare_name(function), packages[i].function)))
            return packages[i].speaks;
    return true;
}

static bool is_of_an_optimizer(const char *file)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(optimizer_wrappers); i++)
        if (mt_path_has(file, optimizer_wrappers[i]))
            return false;
    return true;
}

static struct mt_judged judge_python(const char *function, const char *file)
{
    struct mt_judged judged = {python_origin(file), MT_RANK_FRAMEWORK};
    const char *path = path_in_packages(file);

    if (judged.origin == MT_ORIGIN_USER)
        judged.rank = MT_RANK_CODE;
    else if (python_is_plumbing(function, file))
        judged.rank = MT_RANK_PLUMBING;
    else if (judged.origin == MT_ORIGIN_OPTIM ? is_of_an_optimizer(file)
                                              : path && package_speaks(path, function))
        judged.rank = MT_RANK_CODE;
    return judged;
}

struct mt_judged mt_judge_frame(const struct mt_symbols *symbols, uint32_t id)
{
    const struct mt_frame *frame = id < symbols->frame_count ? &symbols->frames[id] : NULL;

    if (!frame)
        return (struct mt_judged){MT_ORIGIN_NATIVE, MT_RANK_NATIVE_PLUMBING};
    const char *function = mt_symbols_text(symbols, frame->function);
    const char *file = mt_symbols_text(symbols, frame->file);
    return mt_code_is_native(function, file) ? judge_native(function, file)
                                             : judge_python(function, file);
}

enum mt_origin mt_frame_origin(const struct mt_symbols *symbols, uint32_t frame)
{
    return mt_judge_frame(symbols, frame).origin;
}

bool mt_frame_is_plumbing(const struct mt_symbols *symbols, uint32_t frame)
{
    return mt_rank_is_plumbing(mt_judge_frame(symbols, frame).rank);
}

bool mt_frame_is_forward(const struct mt_symbols *symbols, uint32_t frame)
{
    return frame < symbols->frame_count &&
           !strcmp(bare_name(mt_symbols_text(symbols, symbols->frames[frame].function)), "forward");
}

const char *mt_origin_name(enum mt_origin origin)
{
    static const char *const names[] = {"your code", "torch.nn",        "torch.optim",
                                        "libraries", "autograd engine", "native code"};
    _Static_assert(sizeof names / sizeof *names == MT_ORIGIN_COUNT, "one entry for each");

    return (unsigned)origin < MT_ORIGIN_COUNT ? names[origin] : "?";
}

const char *mt_code_short_name(const char *name, size_t *length)
{
    size_t row = native_row(name), prefix, suffix;

    *length = 0;
    if (row == MT_ARRAY_LEN(native_names))
        return NULL;
    if (native_names[row].label) {
        *length = strlen(native_names[row].label);
        return native_names[row].label;
    }
    prefix = strlen(native_names[row].prefix);
    suffix = strlen(native_names[row].suffix);
    if (!native_names[row].short_name)
        return NULL;
    *length = strlen(name) > prefix + suffix ? strlen(name) - prefix - suffix : strlen(name);
    return *length == strlen(name) ? name : name + prefix;
}

bool mt_symbols_have_python(const struct mt_symbols *symbols)
{
    for (uint32_t i = 0; i < symbols->frame_count; i++)
        if (mt_rank_is_python(mt_judge_frame(symbols, i).rank))
            return true;
    return false;
}
