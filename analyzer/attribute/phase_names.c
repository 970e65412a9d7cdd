/* Tables of words, tried in order: the first match decides. */
#include "phase_names.h"

#include "util.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static char lower(char c)
{
    return (char)tolower((unsigned char)c);
}

static bool starts_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/* Whether `word` (lower case) is at the start of `text`, in any case. */
static bool starts_with_word(const char *text, const char *word)
{
    for (; *word; text++, word++)
        if (lower(*text) != *word)
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
    if (isalpha((unsigned char)at[-1]) && !isupper((unsigned char)at[0]))
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

    for (; isdigit((unsigned char)*at); at++, digits++) {
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
        if (starts_with(name, library_prefixes[i]))
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
        if (starts_with(name, plumbing_prefixes[i]))
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
        int rank;

        if (bytes < sizeof name) {
            memcpy(name, path + at, bytes);
            name[bytes] = '\0';
            rank = mt_phase_step_rank(name, &found);
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
    long long value;

    if (strncmp(asked, "step ", 5) != 0 || asked[5] < '0' || asked[5] > '9')
        return false;
    errno = 0;
    value = strtoll(asked + 5, &end, 10);
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
