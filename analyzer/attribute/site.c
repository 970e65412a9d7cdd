/* A frame is judged by its file (origin) and by its function (plumbing). Two
 * static tables hold all that is known of other people's code. */
#include "site.h"

#include "cxx_name.h"
#include "grow.h"
#include "util.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Parts of a path, first match wins; tried on files that are not native. */
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
    {"torchinductor_", MT_ORIGIN_FRAMEWORK}, /* compiled kernels' wrappers */
    {"/lib/python3", MT_ORIGIN_FRAMEWORK},
    {"/lib64/python3", MT_ORIGIN_FRAMEWORK},
    {"/lib/python2", MT_ORIGIN_FRAMEWORK},
    {"<frozen ", MT_ORIGIN_FRAMEWORK},
    {"<eval_with_key>", MT_ORIGIN_FRAMEWORK},
    {"<__array_function__", MT_ORIGIN_FRAMEWORK},
};

/* Python functions that only call on; outside of user code. */
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

/* C and C++ names without arguments, first match wins. Operators, nodes of the
 * autograd graph and the engine itself speak; what lies between them does not;
 * what is not listed is somebody's own code and speaks too. `short_name`: the
 * label is the name between prefix and suffix; `label`: it is this. */
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
    {"pybind11::", "", true, false, false, NULL},
    {"__libc_", "", true, false, false, NULL},
    {"__clone", "", true, false, false, NULL},
    {"clone", "", true, false, false, NULL},
    {"_start", "", true, false, false, NULL},
    {"start_thread", "", true, false, false, NULL},
    {"pthread_", "", true, false, false, NULL},
    {"cudaMalloc", "", true, false, false, NULL},
    {"cudaFree", "", true, false, false, NULL},
    {"cuMem", "", true, false, false, NULL},
    {"rmm::", "", true, false, false, NULL},
};

static const char *const native_extensions[] = {".cpp", ".cc", ".cxx", ".c",   ".h",
                                                ".hpp", ".cu", ".cuh", ".inl", ".S"};

static const struct mt_frame *frame_at(const struct mt_symbols *symbols, uint32_t frame)
{
    return frame < symbols->frame_count ? &symbols->frames[frame] : NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && !memcmp(text + length - end_length, end, end_length);
}

static const char *base_name(const char *path)
{
    const char *base = path;

    for (; *path; path++)
        if (*path == '/' || *path == '\\')
            base = path + 1;
    return base;
}

/* A frame without a name: a place in a module, or in the process. */
static bool is_address(const char *function)
{
    return !strncmp(function, "+0x", 3) || !strncmp(function, "0x", 2);
}

/* "[libcuda.so.1]" is the module of a function without a line. */
static bool is_native(const char *function, const char *file)
{
    if (!*file || !strcmp(file, "??") || *file == '[' || is_address(function))
        return true;
    if (*file == '<' || ends_with(file, ".py"))
        return false;
    if (strstr(function, "::") || strchr(function, '(') || strstr(file, ".so"))
        return true;
    for (size_t i = 0; i < MT_ARRAY_LEN(native_extensions); i++)
        if (ends_with(file, native_extensions[i]))
            return true;
    return false;
}

/* Linux opens no longer path. A trace may hold longer names, and every frame is judged several
 * times by every part. */
enum { MAX_PATH = 4096 };

/* strstr within the first MAX_PATH bytes; a '/' in `part` also stands for '\' in `path`. A part
 * that starts with a name begins at the start of a component. */
static bool has_part(const char *path, const char *part)
{
    for (const char *at = path; *at && at < path + MAX_PATH; at++) {
        size_t i = 0;

        if (isalpha((unsigned char)*part) && at > path && at[-1] != '/' && at[-1] != '\\')
            continue;
        while (part[i] && (at[i] == part[i] || (at[i] == '\\' && part[i] == '/')))
            i++;
        if (!part[i])
            return true;
    }
    return false;
}

static enum mt_origin python_origin(const char *file)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(python_paths); i++)
        if (has_part(file, python_paths[i].part))
            return python_paths[i].origin;
    return MT_ORIGIN_USER;
}

/* Row of native_names for a cleaned name, or its length. */
static size_t native_row(const char *name)
{
    size_t i;

    for (i = 0; i < MT_ARRAY_LEN(native_names); i++)
        if (!strncmp(name, native_names[i].prefix, strlen(native_names[i].prefix)) &&
            ends_with(name, native_names[i].suffix))
            break;
    return i;
}

/* What the table keeps of a frame: origin in the low bits, and these. */
enum { ORIGIN_MASK = 7, IS_PLUMBING = 8, IS_NODE = 16 };

static uint8_t judge_native(const char *function)
{
    char name[MT_CXX_NAME_SIZE];
    enum mt_origin origin = MT_ORIGIN_NATIVE;
    size_t row;

    if (is_address(function))
        return (uint8_t)((unsigned)origin | IS_PLUMBING);
    mt_cxx_name(function, name);
    row = native_row(name);
    if (!strncmp(name, "torch::autograd::Engine::", 25))
        origin = MT_ORIGIN_ENGINE;
    if (row == MT_ARRAY_LEN(native_names))
        return (uint8_t)origin;
    return (uint8_t)((unsigned)origin | (native_names[row].plumbing ? IS_PLUMBING : 0u) |
                     (native_names[row].node ? IS_NODE : 0u));
}

/* "Module.cuda.<locals>.<lambda>" -> "<lambda>": who records qualified names
 * means the same function. */
static const char *bare_name(const char *function)
{
    const char *dot = strrchr(function, '.');

    return dot ? dot + 1 : function;
}

static bool python_is_plumbing(const char *qualified, const char *file)
{
    const char *function = bare_name(qualified);

    for (size_t i = 0; i < MT_ARRAY_LEN(python_plumbing); i++)
        if (!strcmp(function, python_plumbing[i].function) &&
            (!python_plumbing[i].file || !strcmp(base_name(file), python_plumbing[i].file)))
            return true;
    return false;
}

static uint8_t judge_frame(const struct mt_symbols *symbols, uint32_t id)
{
    const struct mt_frame *frame = frame_at(symbols, id);
    const char *function, *file;
    enum mt_origin origin;

    if (!frame)
        return MT_ORIGIN_NATIVE | IS_PLUMBING;
    function = mt_symbols_text(symbols, frame->function);
    file = mt_symbols_text(symbols, frame->file);
    if (is_native(function, file))
        return judge_native(function);
    origin = python_origin(file);
    if (origin != MT_ORIGIN_USER && python_is_plumbing(function, file))
        return (uint8_t)((unsigned)origin | IS_PLUMBING);
    return (uint8_t)origin;
}

static enum mt_origin origin_of(uint8_t judged)
{
    return (enum mt_origin)(judged & ORIGIN_MASK);
}

enum mt_origin mt_frame_origin(const struct mt_symbols *symbols, uint32_t frame)
{
    return origin_of(judge_frame(symbols, frame));
}

bool mt_frame_is_plumbing(const struct mt_symbols *symbols, uint32_t frame)
{
    return judge_frame(symbols, frame) & IS_PLUMBING;
}

const char *mt_origin_name(enum mt_origin origin)
{
    static const char *const names[] = {"your code", "torch.nn",        "torch.optim",
                                        "libraries", "autograd engine", "native code"};
    _Static_assert(sizeof names / sizeof *names == MT_ORIGIN_COUNT, "one entry for each");

    return (unsigned)origin < MT_ORIGIN_COUNT ? names[origin] : "?";
}

/* Which of two frames without a user among them stands for the stack: an
 * autograd node before any other, a speaking one before plumbing, else the
 * inner one. */
static bool inner_stands(uint8_t inner, uint8_t outer)
{
    if (inner & IS_NODE)
        return true;
    if (outer & IS_NODE)
        return false;
    return !(inner & IS_PLUMBING) || (outer & IS_PLUMBING);
}

uint32_t mt_stack_site_frame(const struct mt_symbols *symbols, uint32_t stack)
{
    uint32_t best = MT_NO_ID;
    uint8_t best_judged = 0;

    while (stack < symbols->stack_count) {
        uint32_t frame = symbols->stacks[stack].frame;
        uint8_t judged = judge_frame(symbols, frame);

        if (origin_of(judged) == MT_ORIGIN_USER)
            return frame;
        if (best == MT_NO_ID || !inner_stands(best_judged, judged)) {
            best = frame;
            best_judged = judged;
        }
        stack = symbols->stacks[stack].parent;
    }
    return best;
}

/* Longest piece of foreign text in a label, cut between characters. */
#define MAX_NAME_BYTES 96

static const char *cut_text(struct mt_arena *arena, const char *text)
{
    size_t length = strlen(text);

    if (length <= MAX_NAME_BYTES)
        return mt_arena_text(arena, text, length);
    length = MAX_NAME_BYTES - 1;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return mt_arena_printf(arena, "%.*s…", (int)length, text);
}

static const char *native_function(struct mt_arena *arena, const char *symbol)
{
    char name[MT_CXX_NAME_SIZE];
    size_t row, prefix, suffix;

    mt_cxx_name(symbol, name);
    row = native_row(name);
    if (row < MT_ARRAY_LEN(native_names) && native_names[row].label)
        return native_names[row].label;
    if (row == MT_ARRAY_LEN(native_names) || !native_names[row].short_name)
        return cut_text(arena, mt_cxx_last_components(name));
    prefix = strlen(native_names[row].prefix);
    suffix = strlen(native_names[row].suffix);
    if (strlen(name) <= prefix + suffix)
        return cut_text(arena, name);
    name[strlen(name) - suffix] = '\0';
    return cut_text(arena, name + prefix);
}

const char *mt_frame_function(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t id)
{
    const struct mt_frame *frame = frame_at(symbols, id);
    const char *function, *file;

    if (!frame)
        return mt_arena_text(arena, "?", 1);
    function = mt_symbols_text(symbols, frame->function);
    file = mt_symbols_text(symbols, frame->file);
    return is_native(function, file) ? native_function(arena, function) : cut_text(arena, function);
}

const char *mt_frame_place(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t id)
{
    const struct mt_frame *frame = frame_at(symbols, id);
    const char *file = frame ? base_name(mt_symbols_text(symbols, frame->file)) : "", *build_id;

    if (!*file || !strcmp(file, "??"))
        return mt_arena_text(arena, "", 0);
    build_id = strstr(file, " (build id ");
    if (build_id && frame->line == 0)
        file = mt_arena_text(arena, file, (size_t)(build_id - file));
    file = file ? cut_text(arena, file) : NULL;
    if (!file || frame->line == 0)
        return file;
    return mt_arena_printf(arena, "%s:%u", file, frame->line);
}

const char *mt_frame_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t frame)
{
    const char *function = mt_frame_function(arena, symbols, frame);
    const char *place = mt_frame_place(arena, symbols, frame);

    if (!function || !place || !*place)
        return function;
    return mt_arena_printf(arena, "%s %s", function, place);
}

const char *mt_site_label(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t stack,
                          bool phase_is_backward)
{
    uint32_t frame = mt_stack_site_frame(symbols, stack);

    if (frame != MT_NO_ID)
        return mt_frame_label(arena, symbols, frame);
    return phase_is_backward ? "autograd engine (no Python stack)" : "no stack recorded";
}

static enum mt_status make_room(struct mt_site_table *table, const struct mt_symbols *symbols)
{
    size_t fallback_capacity = table->stack_capacity;

    if (mt_grow(&table->frames, &table->frame_capacity, symbols->frame_count,
                sizeof *table->frames) ||
        mt_grow(&table->fallback, &fallback_capacity, symbols->stack_count,
                sizeof *table->fallback))
        return MT_ERR_MEMORY;
    return mt_grow(&table->user, &table->stack_capacity, symbols->stack_count, sizeof *table->user);
}

static uint8_t judged_at(const struct mt_site_table *table, uint32_t frame)
{
    return frame < table->frame_count ? table->frames[frame] : MT_ORIGIN_NATIVE | IS_PLUMBING;
}

/* From the parent's answer: parents come first. */
static void judge_stack(struct mt_site_table *table, const struct mt_stack *stack, uint32_t id)
{
    bool has_parent = stack->parent < id;
    uint8_t judged = judged_at(table, stack->frame);

    table->user[id] = has_parent ? table->user[stack->parent] : MT_NO_ID;
    table->fallback[id] = has_parent ? table->fallback[stack->parent] : stack->frame;
    if (origin_of(judged) == MT_ORIGIN_USER)
        table->user[id] = stack->frame;
    else if (inner_stands(judged, judged_at(table, table->fallback[id])))
        table->fallback[id] = stack->frame;
}

enum mt_status mt_site_table_update(struct mt_site_table *table, const struct mt_symbols *symbols)
{
    enum mt_status status = make_room(table, symbols);

    if (status)
        return status;
    for (; table->frame_count < symbols->frame_count; table->frame_count++)
        table->frames[table->frame_count] = judge_frame(symbols, table->frame_count);
    for (; table->stack_count < symbols->stack_count; table->stack_count++)
        judge_stack(table, &symbols->stacks[table->stack_count], table->stack_count);
    return MT_OK;
}

void mt_site_table_release(struct mt_site_table *table)
{
    if (!table)
        return;
    free(table->frames);
    free(table->user);
    free(table->fallback);
    memset(table, 0, sizeof *table);
}

enum mt_origin mt_site_table_origin(const struct mt_site_table *table, uint32_t frame)
{
    return origin_of(judged_at(table, frame));
}

bool mt_site_table_is_plumbing(const struct mt_site_table *table, uint32_t frame)
{
    return judged_at(table, frame) & IS_PLUMBING;
}

uint32_t mt_site_table_site(const struct mt_site_table *table, uint32_t stack)
{
    if (stack >= table->stack_count)
        return MT_NO_ID;
    return table->user[stack] != MT_NO_ID ? table->user[stack] : table->fallback[stack];
}

uint32_t mt_site_table_inner(const struct mt_site_table *table, const struct mt_symbols *symbols,
                             uint32_t stack)
{
    uint32_t first = MT_NO_ID;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;

        if (!mt_site_table_is_plumbing(table, frame))
            return frame;
        if (first == MT_NO_ID)
            first = frame;
    }
    return first;
}
