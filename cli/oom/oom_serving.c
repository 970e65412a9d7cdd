/* What the numbers of the MPS backend, of XLA's pool and of vLLM's KV cache prove. */
#include "oom_text.h"

#include <string.h>

#include "units.h"
#include "util.h"

#define MORE_OF_CARD "export XLA_PYTHON_CLIENT_MEM_FRACTION=.95"

enum {
    MILLION = 1000000,
    HUNDREDTH = MILLION / 100,         /* of a utilization */
    MOST_UTILIZATION = 97 * HUNDREDTH, /* a context needs the rest, even of a large card */
    BLOCK_TOKENS = 16
};

static const struct mt_oom_value *value(const struct mt_oom_message *message,
                                        enum mt_oom_number number)
{
    return &message->numbers[number];
}

/* A message that is cut, or whose numbers do not exceed the limit, proves nothing. */
void mt_oom_judge_mps(const struct mt_oom_message *message, struct mt_oom_verdict *verdict)
{
    const struct mt_oom_value *limit = value(message, MT_OOM_LIMIT);
    const struct mt_oom_value *request = value(message, MT_OOM_REQUEST);
    const struct mt_oom_value *held = value(message, MT_OOM_ALLOCATED);
    const struct mt_oom_value *outside = value(message, MT_OOM_OUTSIDE);
    const uint64_t all = held->value + outside->value;
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT], most[MT_UNITS_TEXT];

    if (!limit->is_known || !request->is_known || !held->is_known ||
        all + request->value + held->error + outside->error + request->error + limit->error <
            limit->value) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_DEVICE_MEMORY, false);
        mt_buf_add_text(&verdict->headline, "Device memory: the MPS backend refused a request");
        mt_oom_verdict_unknown(verdict, "why: numbers are not there, or do not reach the limit");
    } else {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_OWN_LIMIT, true);
        mt_buf_printf(&verdict->headline,
                      "The limit of the MPS backend, %s: %s is allocated, and %s more exceeds it",
                      mt_format_bytes(most, limit->value), mt_format_bytes(one, all),
                      mt_format_bytes(other, request->value));
        mt_oom_verdict_unknown(verdict,
                               "how much memory the machine has free: it shares its memory");
    }
    mt_oom_verdict_record(verdict, message);
}

/* Pool of the BFC allocator: bytes in use, of `limit`, of which `taken` are from the device. */
struct pool {
    const struct mt_oom_value *request;
    uint64_t used, taken, limit, error;
    bool is_taken_known, is_tensorflow;
};

static void add_pool_parts(struct mt_oom_verdict *verdict, const struct pool *pool)
{
    verdict->whole = "limit of the pool";
    verdict->whole_bytes = pool->limit;
    mt_oom_verdict_part(verdict, "in use", pool->used);
    if (pool->is_taken_known)
        mt_oom_verdict_part(verdict, "unused in the pool",
                            mt_sub_or_0_u64(pool->taken, pool->used));
    mt_oom_verdict_part(verdict,
                        pool->is_taken_known ? "not taken from the device" : "unused or not taken",
                        UINT64_MAX);
}

/* The text has no numbers of the pool, or the pool is not of the device. */
static void judge_no_pool(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *request = value(message, MT_OOM_REQUEST);
    char bytes[MT_UNITS_TEXT];

    mt_oom_conclude(verdict,
                    message->is_host_pool ? MT_OOM_CAUSE_HOST_MEMORY : message->wording->cause,
                    message->is_host_pool);
    mt_buf_printf(&verdict->headline, "%s: %s's allocator refused %s",
                  message->is_host_pool                                   ? "Host memory"
                  : message->wording->cause == MT_OOM_CAUSE_DEVICE_MEMORY ? "Device memory"
                                                                          : "Host or device memory",
                  message->software,
                  request->is_known ? mt_format_bytes(bytes, request->value) : "a tensor");
    if (message->is_host_pool) {
        mt_oom_verdict_unknown(verdict, "whether a limit (ulimit -v, container, Slurm, the pool's) "
                                        "or the machine refused it");
        mt_buf_add_text(&verdict->next, "ulimit -v; free -h");
        return;
    }
    if (message->wording->cause != MT_OOM_CAUSE_DEVICE_MEMORY)
        mt_oom_verdict_unknown(verdict, "which: the CPU and the card have the same words");
    mt_oom_verdict_unknown(verdict, "why: the lines of bfc_allocator.cc ('Limit:', 'InUse:') are "
                                    "not in the text");
    mt_buf_add_text(&verdict->next, "export TF_CPP_MIN_LOG_LEVEL=0");
}

/* What to try if the pool is too small: `unknown` is about JAX, whose pool has a default limit. */
static void add_larger_pool(struct mt_oom_verdict *verdict, const struct pool *pool,
                            const char *unknown)
{
    mt_oom_verdict_unknown(verdict, "%s",
                           pool->is_tensorflow ? "whether the program or the card set the limit"
                                               : unknown);
    mt_buf_add_text(&verdict->next,
                    pool->is_tensorflow
                        ? "grep -rnE 'per_process_gpu_memory_fraction|memory_limit' ."
                        : MORE_OF_CARD);
}

static void judge_pool_numbers(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                               const struct pool *pool)
{
    const uint64_t request = pool->request->value, needed = request + pool->error;
    const uint64_t unused = mt_sub_or_0_u64(pool->taken, pool->used);
    const char *software = message->software;
    char asked[MT_UNITS_TEXT], one[MT_UNITS_TEXT], other[MT_UNITS_TEXT];

    mt_format_bytes(asked, request);
    if (request > pool->limit + pool->error) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_OWN_LIMIT, true);
        mt_buf_printf(&verdict->headline, "One request of %s is larger than %s's whole pool of %s",
                      asked, software, mt_format_bytes(one, pool->limit));
        add_larger_pool(verdict, pool, "whether it fits the card: JAX takes 75% of it by default");
    } else if (pool->is_taken_known && unused >= needed) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_FRAGMENTATION, true);
        mt_buf_printf(&verdict->headline,
                      "Fragmentation: %s of %s's pool is unused, but not %s in one piece",
                      mt_format_bytes(one, unused), software, asked);
        mt_buf_add_text(&verdict->next, pool->is_tensorflow
                                            ? "export TF_GPU_ALLOCATOR=cuda_malloc_async"
                                            : "export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async");
    } else if (pool->is_taken_known && pool->limit - pool->taken >= needed) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_DEVICE_MEMORY, true);
        mt_buf_printf(&verdict->headline,
                      "Card full: %s's pool of %s may grow to %s, but the driver refused %s more",
                      software, mt_format_bytes(one, pool->taken),
                      mt_format_bytes(other, pool->limit), asked);
        mt_oom_verdict_unknown(verdict, "who holds the rest of the card: often another process");
        mt_oom_verdict_list(verdict, message);
    } else if (pool->used + request > pool->limit + pool->error) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_OWN_LIMIT, true);
        mt_buf_printf(&verdict->headline,
                      "%s's pool is full: %s of %s is in use, and %s more does not fit", software,
                      mt_format_bytes(one, pool->used), mt_format_bytes(other, pool->limit), asked);
        add_larger_pool(verdict, pool,
                        "what holds it; JAX takes 75% of the card by default, so "
                        "the card may have more");
    } else {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_DEVICE_MEMORY, false);
        mt_buf_printf(&verdict->headline,
                      "Device memory: %s's allocator refused %s below the limit of its pool",
                      software, asked);
        mt_oom_verdict_unknown(verdict, "why: no piece of the pool was large enough, or the driver "
                                        "refused to let the pool grow");
        mt_oom_verdict_list(verdict, message);
    }
}

static void judge_pool(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *limit = value(message, MT_OOM_LIMIT);
    const struct mt_oom_value *used = value(message, MT_OOM_ALLOCATED);
    const struct mt_oom_value *taken = value(message, MT_OOM_POOL);
    struct pool pool = {.request = value(message, MT_OOM_REQUEST),
                        .used = used->value,
                        .limit = limit->value,
                        .taken = limit->value,
                        .is_taken_known = taken->is_known && taken->value <= limit->value,
                        .is_tensorflow = strcmp(message->software, "TensorFlow") == 0};

    pool.error = pool.request->error + used->error + limit->error + taken->error;
    pool.taken = pool.is_taken_known ? taken->value : limit->value;
    if (message->is_host_pool || !pool.request->is_known || !limit->is_known || !used->is_known ||
        used->value > limit->value + pool.error) {
        judge_no_pool(verdict, message);
        return;
    }
    add_pool_parts(verdict, &pool);
    judge_pool_numbers(verdict, message, &pool);
}

static void judge_hbm(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *used = value(message, MT_OOM_REQUEST);
    const struct mt_oom_value *capacity = value(message, MT_OOM_CAPACITY);
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_THIS_PROCESS, used->is_known && capacity->is_known);
    mt_buf_add_text(&verdict->headline, "The compiled program does not fit the TPU");
    if (used->is_known && capacity->is_known)
        mt_buf_printf(&verdict->headline, ": it needs %s of %s", mt_format_bytes(one, used->value),
                      mt_format_bytes(other, capacity->value));
    mt_oom_verdict_unknown(verdict, "which arrays need not be alive: the list below the message "
                                    "has the largest");
    mt_buf_add_text(&verdict->next, "export XLA_FLAGS=--xla_dump_to=/tmp/xla");
}

static void add_utilization(struct mt_buf *out, uint64_t millionths)
{
    mt_buf_add_text(out, "vllm serve MODEL --gpu-memory-utilization ");
    mt_buf_add_decimal(out, (double)millionths / MILLION, 2);
}

/* The smallest utilization in hundredths that gives `bytes` of the card; 0 = none is sensible. */
static uint64_t utilization_for(uint64_t bytes, uint64_t capacity)
{
    const double share = capacity ? (double)bytes / (double)capacity : 2;

    if (share > 1)
        return 0;
    uint64_t millionths = mt_round_up((uint64_t)(share * MILLION) + 1, HUNDREDTH);
    return millionths > MOST_UTILIZATION ? 0 : millionths;
}

static void judge_no_blocks(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *capacity = value(message, MT_OOM_CAPACITY);
    const struct mt_oom_value *share = value(message, MT_OOM_UTILIZATION);
    const struct mt_oom_value *weights = value(message, MT_OOM_WEIGHTS);
    const struct mt_oom_value *peak = value(message, MT_OOM_PEAK_ACTIVATIONS);
    const struct mt_oom_value *outside = value(message, MT_OOM_OUTSIDE);
    const struct mt_oom_value *cache = value(message, MT_OOM_KV_CACHE);
    const uint64_t needed =
        mt_add_most_u64(mt_add_most_u64(weights->value, peak->value), outside->value);
    uint64_t enough = 0;
    char one[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_KV_CACHE, true);
    mt_buf_add_text(&verdict->headline,
                    "KV cache: nothing is left for it within vLLM's share of the card");
    if (cache->is_known && cache->is_negative)
        mt_buf_printf(&verdict->headline, "; %s is missing before the first token",
                      mt_format_bytes(one, cache->value));
    if (capacity->is_known && weights->is_known && peak->is_known) {
        verdict->whole = "needed before the KV cache";
        verdict->whole_bytes = needed;
        mt_oom_verdict_part(verdict, "weights", weights->value);
        mt_oom_verdict_part(verdict, "activations at their peak", peak->value);
        mt_oom_verdict_part(verdict, "outside PyTorch", UINT64_MAX);
        enough = utilization_for(needed, capacity->value);
        mt_oom_verdict_unknown(verdict,
                               "how much KV cache the requests need: this is only what "
                               "comes before it, on a card of %s",
                               mt_format_bytes(one, capacity->value));
    } else {
        mt_oom_verdict_unknown(verdict, "what takes the share: the lines 'Model loading took' and "
                                        "'memory profiling' of the log say it");
    }
    if (enough > share->value)
        add_utilization(&verdict->next, enough);
    else if (!needed || !capacity->is_known)
        mt_buf_add_text(&verdict->next, "vllm serve MODEL --gpu-memory-utilization 0.95");
    else
        mt_buf_add_text(&verdict->next, "vllm serve MODEL --tensor-parallel-size 2");
}

static void add_length(struct mt_oom_verdict *verdict, uint64_t tokens)
{
    mt_buf_printf(&verdict->next, "vllm serve MODEL --max-model-len %llu",
                  (unsigned long long)mt_max_u64(mt_round_down(tokens, BLOCK_TOKENS), 1));
}

static void judge_sequence(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *tokens = value(message, MT_OOM_TOKENS);
    const struct mt_oom_value *fit = value(message, MT_OOM_TOKENS_FIT);
    const struct mt_oom_value *capacity = value(message, MT_OOM_CAPACITY);
    const struct mt_oom_value *share = value(message, MT_OOM_UTILIZATION);
    const struct mt_oom_value *cache = value(message, MT_OOM_KV_CACHE);
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_KV_CACHE, tokens->is_known && fit->is_known);
    mt_buf_add_text(&verdict->headline,
                    "KV cache: it holds fewer tokens than one sequence may have");
    if (!tokens->is_known || !fit->is_known || !fit->value)
        return;
    mt_buf_printf(&verdict->headline, ": %s, and max_model_len is %s",
                  mt_format_count(one, fit->value), mt_format_count(other, tokens->value));
    add_length(verdict, fit->value);
    if (!capacity->is_known || !share->is_known || !cache->is_known || !capacity->value) {
        mt_oom_verdict_unknown(verdict, "whether a larger --gpu-memory-utilization is enough: the "
                                        "text lacks the sizes");
        return;
    }
    double more = (double)share->value / MILLION + (double)cache->value / (double)fit->value *
                                                       (double)(tokens->value - fit->value) /
                                                       (double)capacity->value;
    if (tokens->value > fit->value && more * MILLION < MOST_UTILIZATION) {
        mt_buf_add_text(&verdict->headline, "; or gpu_memory_utilization of ");
        mt_buf_add_decimal(&verdict->headline,
                           (double)mt_round_up((uint64_t)(more * MILLION), HUNDREDTH) / MILLION, 2);
    }
}

static void judge_needed(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *tokens = value(message, MT_OOM_TOKENS);
    const struct mt_oom_value *needed = value(message, MT_OOM_KV_NEEDED);
    const struct mt_oom_value *cache = value(message, MT_OOM_KV_CACHE);
    const struct mt_oom_value *fit = value(message, MT_OOM_TOKENS_FIT);
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT], count[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_KV_CACHE, true);
    mt_buf_add_text(&verdict->headline, "KV cache: it is smaller than one sequence needs");
    if (needed->is_known && cache->is_known && tokens->is_known) {
        mt_buf_printf(&verdict->headline, ": %s for %s tokens, and %s is left",
                      mt_format_bytes(one, needed->value), mt_format_count(count, tokens->value),
                      mt_format_bytes(other, cache->value));
        verdict->whole = "one sequence";
        verdict->whole_bytes = needed->value;
        mt_oom_verdict_part(verdict, "available", cache->value);
        mt_oom_verdict_part(verdict, "missing", UINT64_MAX);
    }
    if (fit->is_known) {
        add_length(verdict, fit->value);
    } else if (needed->value && cache->is_known && tokens->is_known) {
        add_length(verdict, (uint64_t)((double)tokens->value *
                                       (double)mt_sub_or_0_u64(cache->value, cache->error) /
                                       (double)(needed->value + needed->error)));
        mt_oom_verdict_unknown(verdict, "exactly how many tokens fit: layers with a window need "
                                        "fewer bytes for each");
    } else {
        mt_buf_add_text(&verdict->next, "vllm serve MODEL --gpu-memory-utilization 0.95");
    }
}

static void judge_start(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *capacity = value(message, MT_OOM_CAPACITY);
    const struct mt_oom_value *free_gib = value(message, MT_OOM_FREE_GIB);
    const struct mt_oom_value *share = value(message, MT_OOM_UTILIZATION);
    const uint64_t free_bytes = (uint64_t)((double)free_gib->value / MILLION * (double)MT_GIB);
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_OTHER_PROCESS, false);
    mt_buf_add_text(&verdict->headline,
                    "Memory was in use before vLLM began: less is free than its share");
    mt_oom_verdict_list(verdict, message);
    if (!capacity->is_known || !free_gib->is_known || !capacity->value)
        return;
    verdict->whole = "memory of the card";
    verdict->whole_bytes = capacity->value;
    mt_oom_verdict_part(verdict, "free", free_bytes);
    mt_oom_verdict_part(verdict, "in use before vLLM began", UINT64_MAX);
    uint64_t fits = (uint64_t)((double)free_bytes / (double)capacity->value * 100) * HUNDREDTH;
    mt_buf_printf(&verdict->headline, " (%s of %s)", mt_format_bytes(one, free_bytes),
                  mt_format_bytes(other, capacity->value));
    if (fits && fits < share->value) {
        mt_buf_add_text(&verdict->headline, "; gpu_memory_utilization of ");
        mt_buf_add_decimal(&verdict->headline, (double)fits / MILLION, 2);
        mt_buf_add_text(&verdict->headline, " starts");
    }
    mt_oom_verdict_unknown(verdict, "what holds it: another process, an earlier server that still "
                                    "ends, or the page cache if host and card share memory");
}

/* SGLang reserves all but its fraction of the memory that is free before the weights. Lines of
 * another server, or of a second model, contradict the message. */
static void judge_static(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *left = value(message, MT_OOM_FREE);
    const struct mt_oom_value *weights = value(message, MT_OOM_WEIGHTS);
    const struct mt_oom_value *begin = value(message, MT_OOM_CAPACITY);
    const struct mt_oom_value *share = value(message, MT_OOM_UTILIZATION);
    const uint64_t before = weights->is_known && !weights->is_negative
                                ? mt_add_most_u64(left->value, weights->value)
                                : begin->value;
    const double reserved = (double)before * (1 - (double)share->value / MILLION);
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT], missing[MT_UNITS_TEXT];

    if (!left->is_known || left->is_negative || !share->is_known || share->is_negative ||
        share->value > MILLION || before <= left->value || reserved <= (double)left->value) {
        mt_oom_judge_fixed(message, verdict);
        return;
    }
    mt_oom_conclude(verdict, MT_OOM_CAUSE_KV_CACHE, true);
    mt_buf_printf(&verdict->headline,
                  "KV cache: nothing is left for it; %s is missing: the weights leave %s, and the "
                  "reserve is %s",
                  mt_format_bytes(missing, (uint64_t)reserved - left->value),
                  mt_format_bytes(one, left->value), mt_format_bytes(other, (uint64_t)reserved));
    verdict->whole = "needed before the KV cache";
    verdict->whole_bytes = before - left->value + (uint64_t)reserved;
    mt_oom_verdict_part(verdict, "weights", before - left->value);
    mt_oom_verdict_part(verdict, "reserve", UINT64_MAX);
    mt_oom_verdict_unknown(verdict,
                           "how much KV cache the requests need: this is only what comes "
                           "before it, of %s that were free",
                           mt_format_bytes(one, before));
    uint64_t enough = utilization_for(before - left->value, before);
    mt_buf_printf(&verdict->next, "python -m sglang.launch_server %s",
                  enough ? "--mem-fraction-static " : "--tp-size 2");
    if (enough)
        mt_buf_add_decimal(&verdict->next, (double)enough / MILLION, 2);
}

void mt_oom_judge_serving(const struct mt_oom_message *message, struct mt_oom_verdict *verdict)
{
    switch (message->wording->form) {
    case MT_OOM_BFC: judge_pool(verdict, message); break;
    case MT_OOM_HBM: judge_hbm(verdict, message); break;
    case MT_OOM_NO_BLOCKS: judge_no_blocks(verdict, message); break;
    case MT_OOM_SEQUENCE: judge_sequence(verdict, message); break;
    case MT_OOM_NEEDED: judge_needed(verdict, message); break;
    case MT_OOM_STATIC: judge_static(verdict, message); break;
    case MT_OOM_START: judge_start(verdict, message); break;
    case MT_OOM_NO_MESSAGE:
    case MT_OOM_FIXED:
    case MT_OOM_PYTORCH:
    case MT_OOM_ASYNC:
    case MT_OOM_MPS: break;
    }
}
