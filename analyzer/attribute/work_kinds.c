/* Kinds of work: of a phase by its name, and of a stack by its frames. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "ascii.h"
#include "frame_judge.h"
#include "grow.h"
#include "process_memory.h"
#include "symbols.h"
#include "util.h"
#include "work_kinds.h"

/* Tables of words, tried in order: the first match decides. */

/* How certainly a numbered name is a step: in a trace with several kinds ("epoch 1" around "step
 * 3") those of the highest rank are the steps. */
#define MT_STEP_RANK_NONE 0

static const struct {
    const char *word; /* lower case */
    int rank;
} step_words[] = {
    {"step", 3},  {"iteration", 3}, {"iter", 3},  {"request", 3},
    {"batch", 2}, {"epoch", 1},     {"round", 1},
};

/* Found anywhere in the lower-cased name. */
static const struct {
    const char *part;
    enum mt_phase_kind kind;
} kind_parts[] = {
    {"zero_grad", MT_PHASE_ZERO_GRAD},
    {"zerograd", MT_PHASE_ZERO_GRAD},
    {"zero grad", MT_PHASE_ZERO_GRAD},
    {"dataloader", MT_PHASE_DATA},
    {"optim", MT_PHASE_OPTIMIZER},
    {"opt_step", MT_PHASE_OPTIMIZER},
    {"opt.step", MT_PHASE_OPTIMIZER},
    {"weight_update", MT_PHASE_OPTIMIZER},
    {"weight update", MT_PHASE_OPTIMIZER},
    {"backward", MT_PHASE_BACKWARD},
    {"bwd", MT_PHASE_BACKWARD},
    {"backprop", MT_PHASE_BACKWARD},
    {"autograd::engine", MT_PHASE_BACKWARD},
    {"loss", MT_PHASE_LOSS},
    {"criterion", MT_PHASE_LOSS},
    {"cross_entropy", MT_PHASE_LOSS},
    {"forward", MT_PHASE_FORWARD},
    {"fwd", MT_PHASE_FORWARD},
    {"valid", MT_PHASE_FORWARD},
    {"eval", MT_PHASE_FORWARD},
    {"infer", MT_PHASE_FORWARD},
    {"predict", MT_PHASE_FORWARD},
    {"generat", MT_PHASE_FORWARD},
    {"prefill", MT_PHASE_FORWARD},
    {"decode", MT_PHASE_FORWARD},
    {"load_batch", MT_PHASE_DATA},
    {"load batch", MT_PHASE_DATA},
    {"get_batch", MT_PHASE_DATA},
    {"fetch", MT_PHASE_DATA},
    {"h2d", MT_PHASE_DATA},
};

/* The whole lower-cased name. */
static const struct {
    const char *name;
    enum mt_phase_kind kind;
} kind_names[] = {
    {"opt", MT_PHASE_OPTIMIZER}, {"update", MT_PHASE_OPTIMIZER}, {"data", MT_PHASE_DATA},
    {"input", MT_PHASE_DATA},    {"inputs", MT_PHASE_DATA},      {"batch", MT_PHASE_DATA},
    {"model", MT_PHASE_FORWARD}, {"test", MT_PHASE_FORWARD},
};

/* Libraries and compilers below a framework: their names concern only themselves. */
static const char *const library_prefixes[] = {"TSL:", "CCCL:", "NCCL:", "cuDNN", "cuBLAS"};

static const char *const plumbing_prefixes[] = {
    "Optimizer.",
    "nccl:",
    "gloo:",
    "c10d::",
    "DistributedDataParallel.",
    "FullyShardedDataParallel.",
    "FSDP",
    "aten::",
    "autograd::",
    "torch::",
    "enumerate(DataLoader)",
    "Torch-Compiled Region",
    "TorchDynamo",
    "CompiledFunction",
    "CompiledFxGraph",
    "## ",
    "record_param_comms",
    "cudaGraph",
    "[pl]",
};

/* Whether `word` (lower case) is at the start of `text`, in any case. */
static bool starts_with_word(const char *text, const char *word)
{
    for (; *word; text++, word++)
        if (mt_lower(*text) != *word)
            return false;
    return true;
}

static bool has_word(const char *text, const char *word)
{
    for (; *text; text++)
        if (starts_with_word(text, word))
            return true;
    return false;
}

/* Matches "Step" in "ProfilerStep", "step" in "train_step", but not in "timestep"; and a
 * micro-batch is not a step. */
static bool begins_word(const char *name, const char *at)
{
    if (at == name)
        return true;
    if (mt_is_letter(at[-1]) && !mt_is_upper(at[0]))
        return false;
    while (at > name && strchr(" _-", at[-1]))
        at--;
    return at - name < 5 || !starts_with_word(at - 5, "micro");
}

static const char *skip_separators(const char *at)
{
    for (int i = 0; i < 3 && *at && strchr(" #_:-=[(", *at); i++)
        at++;
    return at;
}

/* Reads a separate number: "3", "3/100", "3]", but not "2_conv" or "2x". */
static bool read_number(const char *at, int64_t *number)
{
    int64_t value = 0;
    int digits = 0;

    for (; mt_is_digit(*at); at++, digits++) {
        if (digits == 18)
            return false;
        value = value * 10 + (*at - '0');
    }
    if (digits == 0 || (*at && !strchr(" /)],:;|", *at)))
        return false;
    *number = value;
    return true;
}

static int rank_at(const char *name, const char *at, int64_t *number)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(step_words); i++) {
        const char *word = step_words[i].word;

        if (starts_with_word(at, word) && begins_word(name, at) &&
            read_number(skip_separators(at + strlen(word)), number))
            return step_words[i].rank;
    }
    return MT_STEP_RANK_NONE;
}

int mt_phase_step_rank(const char *name, int64_t *number)
{
    int best = MT_STEP_RANK_NONE;

    for (const char *at = name; *at; at++) {
        int64_t value = 0;
        int rank = rank_at(name, at, &value);

        if (rank > best) {
            best = rank;
            *number = value;
        }
    }
    return best;
}

static bool is_of_library(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(library_prefixes); i++)
        if (mt_begins_with(name, library_prefixes[i]))
            return true;
    return false;
}

enum mt_phase_kind mt_phase_kind_of(const char *name)
{
    if (is_of_library(name))
        return MT_PHASE_UNKNOWN;
    for (size_t i = 0; i < MT_ARRAY_LEN(kind_parts); i++)
        if (has_word(name, kind_parts[i].part))
            return kind_parts[i].kind;
    for (size_t i = 0; i < MT_ARRAY_LEN(kind_names); i++)
        if (starts_with_word(name, kind_names[i].name) && !name[strlen(kind_names[i].name)])
            return kind_names[i].kind;
    return MT_PHASE_UNKNOWN;
}

bool mt_phase_name_is_plumbing(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(plumbing_prefixes); i++)
        if (mt_begins_with(name, plumbing_prefixes[i]))
            return true;
    return is_of_library(name);
}

/* Whether `end` is the whole path of `length` bytes, or its last names. */
static bool ends_with(const char *path, size_t length, const char *end)
{
    size_t tail = strlen(end);

    if (!tail || tail > length || memcmp(path + length - tail, end, tail) != 0)
        return false;
    return tail == length || path[length - tail - 1] == '/';
}

/* The number of the step around the first `length` bytes of a path: among names with a number, the
 * one with the highest rank. False if there is none. */
static bool step_of_path(const char *path, size_t length, int64_t *number)
{
    int best = MT_STEP_RANK_NONE;
    char name[128];

    for (size_t at = 0; at < length;) {
        const char *slash = memchr(path + at, '/', length - at);
        size_t bytes = slash ? (size_t)(slash - path) - at : length - at;
        int64_t found;

        if (bytes < sizeof name) {
            memcpy(name, path + at, bytes);
            name[bytes] = '\0';
            int rank = mt_phase_step_rank(name, &found);
            if (rank > best) {
                best = rank;
                *number = found;
            }
        }
        at += bytes + 1;
    }
    return best != MT_STEP_RANK_NONE;
}

/* "step 2, backward": reads the number and the rest; returns false for other text. */
static bool read_step_words(const char *asked, int64_t *number, const char **part)
{
    char *end;

    if (strncmp(asked, "step ", 5) != 0 || asked[5] < '0' || asked[5] > '9')
        return false;
    errno = 0;
    long long value = strtoll(asked + 5, &end, 10);
    if (errno || (*end && strncmp(end, ", ", 2) != 0))
        return false;
    *number = value;
    *part = *end ? end + 2 : "";
    if (strcmp(*part, "between phases") == 0)
        *part = "";
    return true;
}

/* Whether it is the last name of the path, in that step. */
static bool matches_words(const char *path, int64_t step, const char *part)
{
    size_t length = strlen(path), tail = strlen(part);
    const char *last = strrchr(path, '/');
    int64_t number;

    if (tail && (!ends_with(path, length, part) || tail == length))
        return false;
    if (tail)
        return step_of_path(path, length - tail - 1, &number) && number == step;
    last = last ? last + 1 : path;
    return mt_phase_step_rank(last, &number) != MT_STEP_RANK_NONE && number == step &&
           step_of_path(path, length, &number) && number == step;
}

bool mt_phase_path_matches(const char *path, const char *asked)
{
    const char *part;
    int64_t step;

    return ends_with(path, strlen(path), asked) ||
           (read_step_words(asked, &step, &part) && matches_words(path, step, part));
}

/* A stack has the kind of its innermost frame that has one. But work inside of backward, an
 * optimizer or the construction of a model stays part of it (a checkpoint's second forward is work
 * of backward). An optimizer with a closure runs the other parts itself: these keep their kinds,
 * and the closure's other work does not belong to the optimizer. */

void mt_named_frames_init(struct mt_named_frames *named, struct mt_arena *arena,
                          const struct mt_symbols *symbols)
{
    memset(named, 0, sizeof *named);
    named->arena = arena;
    named->symbols = symbols;
}

/* A copy with twice the room. */
static void *regrown(struct mt_arena *arena, const void *old, uint32_t count, uint32_t capacity,
                     size_t element_bytes)
{
    void *bigger = mt_arena_array(arena, capacity, element_bytes);

    if (count)
        memcpy(bigger, old, count * element_bytes);
    return bigger;
}

static uint32_t doubled(uint32_t wanted)
{
    return wanted < UINT32_MAX / 2 ? wanted * 2 : wanted;
}

static void learn_frames(struct mt_named_frames *named)
{
    uint32_t wanted = named->symbols->frame_count, capacity = doubled(wanted);

    if (wanted > named->frame_capacity) {
        uint8_t *plumbing =
            regrown(named->arena, named->plumbing, named->frame_count, capacity, sizeof *plumbing);
        named->plumbing = plumbing;
        named->frame_capacity = capacity;
    }
    for (; named->frame_count < wanted; named->frame_count++)
        named->plumbing[named->frame_count] =
            mt_frame_is_plumbing(named->symbols, named->frame_count);
}

static void make_room(struct mt_named_frames *named, uint32_t wanted)
{
    uint32_t capacity = doubled(wanted), *node;
    uint8_t *depth;

    if (wanted <= named->stack_capacity)
        return;
    node = regrown(named->arena, named->node, named->stack_count, capacity, sizeof *node);
    depth = regrown(named->arena, named->depth, named->stack_count, capacity, sizeof *depth);
    named->node = node;
    named->depth = depth;
    named->stack_capacity = capacity;
}

static void learn_stack(struct mt_named_frames *named, uint32_t id)
{
    const struct mt_stack *stack = &named->symbols->stacks[id];
    bool has_parent = stack->parent < id;
    uint8_t above = has_parent ? named->depth[stack->parent] : 0;
    bool silent = stack->frame >= named->frame_count || named->plumbing[stack->frame];

    if (silent || above == MT_NAMED_FRAMES_DEPTH) {
        named->node[id] = has_parent ? named->node[stack->parent] : MT_NO_ID;
        named->depth[id] = above;
    } else {
        named->node[id] = id;
        named->depth[id] = (uint8_t)(above + 1);
    }
}

static void learn(struct mt_named_frames *named)
{
    learn_frames(named);
    make_room(named, named->symbols->stack_count);
    for (; named->stack_count < named->symbols->stack_count; named->stack_count++)
        learn_stack(named, named->stack_count);
}

void mt_named_frames_get(struct mt_named_frames *named, uint32_t stack,
                         uint32_t frames[MT_NAMED_FRAMES_DEPTH], uint32_t *count)
{
    const struct mt_stack *stacks = named->symbols->stacks;

    *count = 0;
    if (stack >= named->symbols->stack_count)
        return;
    if (stack >= named->stack_count)
        learn(named);
    uint32_t depth = named->depth[stack];
    if (depth == 0) {
        frames[0] = stacks[stack].frame;
        *count = 1;
        return;
    }
    *count = depth;
    for (uint32_t node = named->node[stack]; depth > 0; node = named->node[node]) {
        frames[--depth] = stacks[node].frame;
        if (depth == 0)
            break;
        node = stacks[node].parent;
    }
}

/* Rows are tried in order; both texts must be found, "" matches anything. A file without '/' is
 * searched in the last part of the path, because a project may be in a folder of that name. */
static const struct {
    const char *file, *function;
    uint8_t judged;
} known[] = {
    {"torch/optim/", "zero_grad", MT_PHASE_ZERO_GRAD},
    {"torch/optim/", "", MT_PHASE_OPTIMIZER},
    {"torch/autograd/__init__.py", "backward", MT_PHASE_BACKWARD},
    {"torch/autograd/graph.py", "_engine_run_backward", MT_PHASE_BACKWARD},
    {"torch/utils/checkpoint.py", "backward", MT_PHASE_BACKWARD},
    {"torch/utils/checkpoint.py", "unpack_hook", MT_PHASE_BACKWARD},
    {"amp/grad_scaler.py", "unscale", MT_PHASE_OPTIMIZER},
    {"amp/grad_scaler.py", "scale", MT_PHASE_LOSS}, /* of the loss, before backward */
    {"amp/grad_scaler.py", "", MT_PHASE_OPTIMIZER},
    {"torch/nn/utils/clip_grad.py", "", MT_PHASE_OPTIMIZER},
    {"torch/_tensor.py", "backward", MT_PHASE_BACKWARD},
    {"", "torch::autograd::Engine::", MT_PHASE_BACKWARD},
    {"torch/nn/modules/loss.py", "", MT_PHASE_LOSS},
    {"torch/nn/functional.py", "loss", MT_PHASE_LOSS},
    {"torch/nn/functional.py", "cross_entropy", MT_PHASE_LOSS},
    {"torch/nn/parallel/distributed.py", "_ddp_init_helper", MT_STACK_BUCKETS},
    {"torch/nn/parallel/distributed.py", "_pre_forward", MT_STACK_BUCKETS},
    {"_fsdp_param.py", "to_accumulated_grad", MT_STACK_BUCKETS},
    {"torch/nn/init.py", "", MT_PHASE_SETUP},
    {"torch/nn/parameter.py", "__deepcopy__", MT_PHASE_SETUP},
    {"torch/nn/", "reset_parameters", MT_PHASE_SETUP},
    {"torch/nn/", "__init__", MT_PHASE_SETUP},
    {"torch/nn/modules/module.py", "_apply", MT_PHASE_SETUP | MT_STACK_MOVES},
    {"torch/nn/modules/module.py", "load_state_dict", MT_PHASE_SETUP},
    {"torch/distributed/fsdp/", "_init_", MT_PHASE_SETUP},
    {"deepspeed/runtime/", "__init__", MT_PHASE_SETUP},
    {"megatron/", "__init__", MT_PHASE_SETUP},
    {"", "from_pretrained", MT_PHASE_SETUP},
    /* vLLM and SGLang allocate their pools of pages once, before the first request */
    {"", "_allocate_kv_cache", MT_PHASE_SETUP | MT_STACK_KV_CACHE},
    /* of vLLM's engine: also runs the model, to measure what it needs and to warm up */
    {"core.py", "_initialize_kv_caches", MT_PHASE_UNKNOWN},
    {"llm_engine.py", "_initialize_kv_caches", MT_PHASE_UNKNOWN},
    {"", "KVPool", MT_PHASE_SETUP | MT_STACK_KV_CACHE},
    {"mem_cache/", "_create_buffers", MT_PHASE_SETUP | MT_STACK_KV_CACHE},
    {"", "ReqToTokenPool", MT_PHASE_DATA}, /* the pages of each request */
    {"cache_utils", "", MT_PHASE_FORWARD | MT_STACK_KV_CACHE},
    {"kv_cache", "", MT_PHASE_FORWARD | MT_STACK_KV_CACHE},
    {"torch/nn/modules/module.py", "_call_impl", MT_PHASE_FORWARD},
    {"torch/utils/data/", "", MT_PHASE_DATA},
    {"", "closure", MT_STACK_CLOSURE},
    {"", "_to_copy", MT_STACK_CASTS},
    {"", "cached_cast", MT_STACK_CASTS},
};

static const char *last_part(const char *path)
{
    const char *part = path;

    for (; *path; path++)
        if (*path == '/' || *path == '\\')
            part = path + 1;
    return part;
}

static bool is_in(const char *path, const char *part)
{
    return strchr(part, '/') ? mt_path_has(path, part) : strstr(last_part(path), part) != NULL;
}

/* Whether the name of a function, without its class, is one of the verbs and the object, in the
 * singular or plural. */
static bool is_named(const char *function, const char *const *verbs, size_t verb_count,
                     const char *object)
{
    const char *name = strrchr(function, '.') ? strrchr(function, '.') + 1 : function;

    name += strspn(name, "_");
    const char *found = strstr(name, object);
    if (!found || strcmp(found + strlen(object) + (found[strlen(object)] == 's'), "") != 0)
        return false;
    for (size_t i = 0; i < verb_count; i++)
        if (strlen(verbs[i]) == (size_t)(found - name) &&
            strncmp(name, verbs[i], strlen(verbs[i])) == 0)
            return true;
    return false;
}

static const char *const verbs_of_caches[] = {
    "",       "init_",     "initialize_", "setup_",  "make_",   "create_", "build_",
    "alloc_", "allocate_", "update_",     "append_", "extend_", "concat_", "cat_",
    "grow_",  "expand_",   "write_",      "store_",  "insert_", "fill_",   "reset_"};

/* Common names of functions that make or fill a key-value cache: "update_kv_cache",
 * "Attention._init_kv_caches". A function that only works with a cache, such as
 * "generate_with_kv_cache", also makes other blocks. */
static bool makes_cache(const char *function)
{
    return is_named(function, verbs_of_caches, MT_ARRAY_LEN(verbs_of_caches), "kv_cache");
}

static enum mt_made made_by(const char *function)
{
    static const char *const verbs[] = {"load_",   "init_",  "initialize_", "setup_",   "make_",
                                        "create_", "build_", "alloc_",      "allocate_"};
    static const char *const weights[] = {"weight", "param", "parameter", "model", "state_dict"};

    if (makes_cache(function) || is_named(function, verbs, MT_ARRAY_LEN(verbs), "cache"))
        return MT_MAKES_CACHE;
    for (size_t i = 0; i < MT_ARRAY_LEN(weights); i++)
        if (is_named(function, verbs, MT_ARRAY_LEN(verbs), weights[i]))
            return MT_MAKES_WEIGHTS;
    return MT_MAKES_UNKNOWN;
}

void mt_stack_kinds_judge_names(struct mt_stack_kinds *kinds, const struct mt_symbols *symbols)
{
    uint8_t *frames = mt_memory_zeroed((size_t)kinds->frame_count + 1, 1);

    free(kinds->made);
    kinds->made = mt_memory_zeroed((size_t)kinds->stack_count + 1, 1);
    for (uint32_t i = 0; i < kinds->frame_count; i++)
        frames[i] = (uint8_t)made_by(mt_symbols_text(symbols, symbols->frames[i].function));
    for (uint32_t i = 0; i < kinds->stack_count; i++) {
        const struct mt_stack *stack = &symbols->stacks[i];

        kinds->made[i] = stack->frame < kinds->frame_count ? frames[stack->frame] : 0;
        if (kinds->made[i] == MT_MAKES_UNKNOWN && stack->parent < i)
            kinds->made[i] = kinds->made[stack->parent];
    }
    free(frames);
}

static bool is_of_buffers(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    return is_in(mt_symbols_text(symbols, frame->file),
                 "megatron/core/distributed/param_and_grad_buffer.py") &&
           strstr(mt_symbols_text(symbols, frame->function), "__init__");
}

static bool is_python(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    return strstr(last_part(mt_symbols_text(symbols, frame->file)), ".py") != NULL;
}

void mt_stack_kinds_find_buffers(struct mt_stack_kinds *kinds, const struct mt_symbols *symbols)
{
    /* By stack: the line of the constructor, if only native frames are below it. */
    uint32_t *lines = mt_memory_zeroed((size_t)kinds->stack_count + 1, sizeof *lines);
    uint32_t first = UINT32_MAX, last = 0;
    bool has_others = false;

    for (uint32_t i = 0; i < kinds->stack_count; i++) {
        const struct mt_stack *stack = &symbols->stacks[i];
        const struct mt_frame *frame =
            stack->frame < kinds->frame_count ? &symbols->frames[stack->frame] : NULL;

        if (frame && kinds->frames[stack->frame] == MT_PHASE_SETUP && is_of_buffers(symbols, frame))
            lines[i] = frame->line;
        else if (frame && stack->parent < i && lines[stack->parent] && !is_python(symbols, frame))
            lines[i] = lines[stack->parent];
        if (!lines[i])
            continue;
        first = lines[i] < first ? lines[i] : first;
        last = lines[i] > last ? lines[i] : last;
    }
    for (uint32_t i = 0; i < kinds->stack_count; i++)
        has_others |= lines[i] && lines[i] != first && lines[i] != last;
    for (uint32_t i = 0; i < kinds->stack_count && first < last && !has_others; i++)
        kinds->stacks[i] |= lines[i] == last ? MT_STACK_BUCKETS : 0;
    free(lines);
}

static uint8_t judge_frame(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    const char *file = mt_symbols_text(symbols, frame->file);
    const char *function = mt_symbols_text(symbols, frame->function);

    for (size_t i = 0; i < MT_ARRAY_LEN(known); i++)
        if (strstr(function, known[i].function) && is_in(file, known[i].file))
            return known[i].judged;
    return makes_cache(function) ? MT_PHASE_FORWARD | MT_STACK_KV_CACHE : MT_PHASE_UNKNOWN;
}

static uint8_t judge_stack(const struct mt_stack_kinds *kinds, const struct mt_stack *stack,
                           uint32_t id)
{
    uint8_t outer = stack->parent < id ? kinds->stacks[stack->parent] : MT_PHASE_UNKNOWN;
    uint8_t own = stack->frame < kinds->frame_count ? kinds->frames[stack->frame] : 0;
    uint8_t outer_kind = outer & MT_STACK_KIND_MASK;
    uint8_t own_kind = own & MT_STACK_KIND_MASK;
    bool stays = outer_kind == MT_PHASE_BACKWARD || outer_kind == MT_PHASE_SETUP ||
                 outer_kind == MT_PHASE_LOSS ||
                 (outer_kind == MT_PHASE_OPTIMIZER && !mt_stack_kind_trains(own_kind));

    outer &= (uint8_t)~MT_STACK_BUCKETS;
    if ((own & MT_STACK_CLOSURE) && outer_kind == MT_PHASE_OPTIMIZER)
        return (uint8_t)((outer & ~MT_STACK_KIND_MASK) | MT_STACK_CLOSURE);
    if (stays || (own & MT_STACK_KIND_MASK) == MT_PHASE_UNKNOWN)
        return (uint8_t)(outer | (own & (MT_STACK_BUCKETS | MT_STACK_MOVES | MT_STACK_KV_CACHE |
                                         MT_STACK_CASTS)));
    return (uint8_t)(own | (outer & (MT_STACK_KV_CACHE | MT_STACK_CLOSURE)));
}

void mt_stack_kinds_update(struct mt_stack_kinds *kinds, const struct mt_symbols *symbols)
{
    mt_grow_to(&kinds->frames, &kinds->frame_capacity, symbols->frame_count, 1);
    mt_grow_to(&kinds->stacks, &kinds->stack_capacity, symbols->stack_count, 1);
    for (; kinds->frame_count < symbols->frame_count; kinds->frame_count++)
        kinds->frames[kinds->frame_count] =
            judge_frame(symbols, &symbols->frames[kinds->frame_count]);
    for (; kinds->stack_count < symbols->stack_count; kinds->stack_count++)
        kinds->stacks[kinds->stack_count] =
            judge_stack(kinds, &symbols->stacks[kinds->stack_count], kinds->stack_count);
}

bool mt_stack_kinds_calls_model(const struct mt_stack_kinds *kinds,
                                const struct mt_symbols *symbols, uint32_t stack)
{
    for (; stack < kinds->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;

        if (frame < kinds->frame_count &&
            (kinds->frames[frame] & MT_STACK_KIND_MASK) == MT_PHASE_FORWARD)
            return true;
    }
    return false;
}

void mt_stack_kinds_release(struct mt_stack_kinds *kinds)
{
    free(kinds->frames);
    free(kinds->stacks);
    free(kinds->made);
    memset(kinds, 0, sizeof *kinds);
}
