/* What the numbers of XLA's pool and of vLLM's KV cache prove. */
#include "oom_text.h"

#include <string.h>

#include "units.h"
#include "util.h"

#define SMI "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv"

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

/* Pool of the BFC allocator: in use, unused, and not yet taken from the device. */
static void add_pool_parts(struct mt_oom_verdict *verdict, uint64_t used, uint64_t pool,
                           uint64_t limit)
{
    verdict->whole = "limit of the pool";
    verdict->whole_bytes = limit;
    mt_oom_verdict_part(verdict, "in use", used);
    mt_oom_verdict_part(verdict, "unused in the pool", mt_sub_or_0_u64(pool, used));
    mt_oom_verdict_part(verdict, "not taken from the device", UINT64_MAX);
}

static void judge_no_pool(struct mt_oom_verdict *verdict, const struct mt_oom_value *request)
{
    char bytes[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_DEVICE_MEMORY, false);
    mt_buf_printf(&verdict->headline, "Device memory: XLA's allocator refused %s",
                  request->is_known ? mt_format_bytes(bytes, request->value) : "a tensor");
    mt_oom_verdict_unknown(verdict, "why: the lines of bfc_allocator.cc ('Limit:', 'InUse:') are "
                                    "not in the text");
    mt_buf_add_text(&verdict->next, "export TF_CPP_MIN_LOG_LEVEL=0");
}

static void judge_pool(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct mt_oom_value *request = value(message, MT_OOM_REQUEST);
    const struct mt_oom_value *limit = value(message, MT_OOM_LIMIT);
    const struct mt_oom_value *used = value(message, MT_OOM_ALLOCATED);
    const struct mt_oom_value *pool = value(message, MT_OOM_POOL);
    const uint64_t error = request->error + used->error + limit->error + pool->error;
    uint64_t taken, unused, left;
    char asked[MT_UNITS_TEXT], one[MT_UNITS_TEXT], other[MT_UNITS_TEXT];

    if (!request->is_known || !limit->is_known || !used->is_known ||
        used->value > limit->value + error) {
        judge_no_pool(verdict, request);
        return;
    }
    taken = pool->is_known && pool->value <= limit->value ? pool->value : limit->value;
    unused = mt_sub_or_0_u64(taken, used->value);
    left = limit->value - taken;
    add_pool_parts(verdict, used->value, taken, limit->value);
    mt_format_bytes(asked, request->value);
    if (request->value > limit->value + error) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_OWN_LIMIT, true);
        mt_buf_printf(&verdict->headline, "One request of %s is larger than XLA's whole pool of %s",
                      asked, mt_format_bytes(one, limit->value));
        mt_oom_verdict_unknown(verdict,
                               "whether it fits the card: JAX takes 75%% of it by default");
        mt_buf_add_text(&verdict->next, "export XLA_PYTHON_CLIENT_MEM_FRACTION=.95");
    } else if (unused >= request->value + error) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_FRAGMENTATION, true);
        mt_buf_printf(&verdict->headline,
                      "Fragmentation: %s of XLA's pool is unused, but not %s in one piece",
                      mt_format_bytes(one, unused), asked);
        mt_buf_add_text(&verdict->next, "export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async");
    } else if (left >= request->value + error) {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_DEVICE_MEMORY, true);
        mt_buf_printf(&verdict->headline,
                      "Card full: XLA's pool of %s may grow to %s, but the driver refused %s more",
                      mt_format_bytes(one, taken), mt_format_bytes(other, limit->value), asked);
        mt_oom_verdict_unknown(verdict, "who holds the rest of the card: often another process");
        mt_buf_add_text(&verdict->next, SMI);
    } else {
        mt_oom_conclude(verdict, MT_OOM_CAUSE_OWN_LIMIT, true);
        mt_buf_printf(
            &verdict->headline, "XLA's pool is full: %s of %s is in use, and %s more does not fit",
            mt_format_bytes(one, used->value), mt_format_bytes(other, limit->value), asked);
        mt_oom_verdict_unknown(verdict, "what holds it; JAX takes 75%% of the card by default, so "
                                        "the card may have more");
        mt_buf_add_text(&verdict->next, "export XLA_PYTHON_CLIENT_MEM_FRACTION=.95");
    }
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
    uint64_t millionths;

    if (share > 1)
        return 0;
    millionths = mt_round_up((uint64_t)(share * MILLION) + 1, HUNDREDTH);
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
    const uint64_t needed = weights->value + peak->value + outside->value;
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
    double more;

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
    more = (double)share->value / MILLION + (double)cache->value / (double)fit->value *
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
    uint64_t fits;
    char one[MT_UNITS_TEXT], other[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_OTHER_PROCESS, false);
    mt_buf_add_text(&verdict->headline,
                    "Memory was in use before vLLM began: less is free than its share");
    mt_buf_add_text(&verdict->next, SMI);
    if (!capacity->is_known || !free_gib->is_known || !capacity->value)
        return;
    verdict->whole = "memory of the card";
    verdict->whole_bytes = capacity->value;
    mt_oom_verdict_part(verdict, "free", free_bytes);
    mt_oom_verdict_part(verdict, "in use before vLLM began", UINT64_MAX);
    fits = (uint64_t)((double)free_bytes / (double)capacity->value * 100) * HUNDREDTH;
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

void mt_oom_judge_serving(const struct mt_oom_message *message, struct mt_oom_verdict *verdict)
{
    switch (message->wording->form) {
    case MT_OOM_BFC: judge_pool(verdict, message); break;
    case MT_OOM_HBM: judge_hbm(verdict, message); break;
    case MT_OOM_NO_BLOCKS: judge_no_blocks(verdict, message); break;
    case MT_OOM_SEQUENCE: judge_sequence(verdict, message); break;
    case MT_OOM_NEEDED: judge_needed(verdict, message); break;
    case MT_OOM_START: judge_start(verdict, message); break;
    case MT_OOM_FIXED:
    case MT_OOM_PYTORCH:
    case MT_OOM_ASYNC:
    case MT_OOM_MPS: break;
    }
}
