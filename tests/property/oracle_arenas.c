/* Models of the arenas of TensorFlow (bfc) and of ONNX Runtime (ort). */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

enum { LIMIT, REGION, CAP, WASTE, SAME, COLLECTS };

/* Bytes that the arena may still request. */
static uint64_t room(const struct oracle *oracle)
{
    uint64_t limit = oracle->setting[LIMIT];

    return limit ? (limit - oracle->counters.reserved.now) / 256 * 256 : (uint64_t)1 << 45;
}

/* Regions double in size. If the device refuses one, the arena tries nine tenths of it. */
static size_t extend(struct oracle *oracle, uint64_t bytes, uint32_t stream, uint64_t list)
{
    uint64_t *region = &oracle->setting[REGION], size = bytes;

    if (bytes > room(oracle))
        return ORACLE_NONE;
    if (!oracle->setting[SAME]) {
        bool was_long_enough = bytes <= *region;
        while (*region < bytes)
            *region *= 2;
        size = mt_min_u64(*region, room(oracle));
        if (was_long_enough)
            *region =
                oracle->setting[CAP] ? mt_min_u64(2 * *region, oracle->setting[CAP]) : 2 * *region;
    }
    while (!oracle_fits_limit(oracle, size)) {
        size = oracle_steps((uint64_t)((float)size * 0.9f), 256);
        if (size < bytes || size < 8192)
            return ORACLE_NONE;
    }
    return oracle_new_segment(oracle, size, stream, list);
}

static uint64_t idle_regions(const struct oracle *oracle)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].state == ORACLE_FREE && oracle_is_whole(oracle, i))
            bytes += oracle->piece[i].size;
    }
    return bytes;
}

enum { NOBODY = 0 };

/* The shortest of those that belong to the owner or to no owner. */
static size_t shortest_for(const struct oracle *oracle, uint64_t owner, uint64_t bytes)
{
    size_t own = oracle_shortest(oracle, owner, bytes);
    size_t other = oracle_shortest(oracle, NOBODY, bytes);

    if (own == ORACLE_NONE || other == ORACLE_NONE)
        return own == ORACLE_NONE ? other : own;
    if (oracle->piece[own].size != oracle->piece[other].size)
        return oracle->piece[own].size < oracle->piece[other].size ? own : other;
    return oracle->piece[own].addr < oracle->piece[other].addr ? own : other;
}

static size_t take(struct oracle *oracle, const struct oracle_request *request, uint64_t owner)
{
    uint64_t bytes = oracle_steps(request->size, 256), idle;
    size_t at = shortest_for(oracle, owner, bytes);

    if (at == ORACLE_NONE)
        at = extend(oracle, bytes, request->stream, NOBODY);
    if (at == ORACLE_NONE && oracle->setting[COLLECTS]) {
        idle = idle_regions(oracle);
        if (!idle || bytes > room(oracle) + idle)
            return ORACLE_NONE;
        oracle->counters.retries++;
        oracle_drop_idle(oracle);
        at = extend(oracle, bytes, request->stream, NOBODY);
    }
    if (at == ORACLE_NONE)
        return at;
    if (oracle->piece[at].size >= 2 * bytes ||
        oracle->piece[at].size - bytes >= oracle->setting[WASTE])
        oracle_cut(oracle, at, bytes);
    oracle->piece[at].list = owner;
    return at;
}

static void give(struct oracle *oracle, size_t at)
{
    oracle_merge(oracle, at);
}

/* A chunk of three times the waste for a request of twice the waste is split. */
static void know_edges(struct oracle *oracle)
{
    oracle->edge[0] = 2 * oracle->setting[WASTE];
    oracle->edge[1] = 3 * oracle->setting[WASTE];
    oracle->edge[2] = oracle->setting[REGION];
    oracle->edge[3] = oracle->setting[LIMIT] / 2;
}

/* "name=0.375": eighths, whose product with a size is exact. */
static void share(char *text, size_t size, const char *name, uint64_t eighths)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s=%u.%03u", length ? "," : "", name,
             (unsigned)(eighths / 8), (unsigned)(eighths % 8 * 125));
}

static void yes_or_no(char *text, size_t size, const char *name, bool value)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s=%s", length ? "," : "", name,
             value ? "True" : "False");
}

static void configure_bfc(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t eighths = dice_one_in(dice, 2) ? 6 : dice_between(dice, 1, 8);
    uint64_t waste = dice_one_in(dice, 3) ? dice_between(dice, 1, 8) : 0;
    uint64_t memory = oracle->device_limit ? oracle->device_limit : oracle->memory, limit;
    bool preallocates = dice_one_in(dice, 4), collects = dice_one_in(dice, 2);

    share(text, size, "memory_fraction", eighths);
    share(text, size, "fragmentation_fraction", waste);
    yes_or_no(text, size, "preallocate", preallocates);
    yes_or_no(text, size, "garbage_collection", collects);
    limit = mt_min_u64(oracle_steps(memory * eighths / 8, 2 * MT_MIB), memory);
    oracle->setting[LIMIT] = limit;
    oracle->setting[REGION] = 2 * MT_MIB;
    if (limit && (preallocates || limit < 2 * MT_MIB))
        oracle->setting[REGION] = oracle_steps(limit, 256);
    oracle->setting[WASTE] = limit && waste ? limit * waste / 8 : 128 * MT_MIB;
    oracle->setting[COLLECTS] = collects;
    know_edges(oracle);
}

static size_t take_bfc(struct oracle *oracle, const struct oracle_request *request)
{
    return take(oracle, request, NOBODY);
}

const struct oracle_rules oracle_bfc = {.policy = "bfc",
                                        .alignment = 256,
                                        .weight = 3,
                                        .configure = configure_bfc,
                                        .take = take_bfc,
                                        .give = give};

static void configure_ort(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t *setting = oracle->setting, first = MT_MIB;

    setting[CAP] = MT_GIB;
    setting[WASTE] = 128 * MT_MIB;
    if (dice_one_in(dice, 2)) {
        setting[LIMIT] = dice_between(dice, MT_KIB, 256 * MT_MIB);
        oracle_option(text, size, "gpu_mem_limit", setting[LIMIT]);
    }
    if (dice_one_in(dice, 2)) {
        first = dice_between(dice, 1, 4 * MT_MIB);
        oracle_option(text, size, "initial_chunk_size_bytes", first);
    }
    if (dice_one_in(dice, 2)) {
        setting[WASTE] = dice_between(dice, 1, 2 * MT_MIB);
        if (dice_one_in(dice, 2))
            setting[WASTE] = oracle_steps(setting[WASTE], 256);
        oracle_option(text, size, "max_dead_bytes_per_chunk", setting[WASTE]);
    }
    if (dice_one_in(dice, 2)) {
        setting[CAP] = dice_between(dice, MT_MIB, 40 * MT_MIB);
        oracle_option(text, size, "max_power_of_two_extend_bytes", setting[CAP]);
    }
    setting[SAME] = dice_one_in(dice, 2);
    snprintf(text + strlen(text), size - strlen(text), "%sarena_extend_strategy=%s",
             text[0] ? "," : "", setting[SAME] ? "kSameAsRequested" : "kNextPowerOfTwo");
    if (setting[LIMIT])
        first = mt_min_u64(first, setting[LIMIT]);
    setting[REGION] = oracle_steps(first, 256);
    know_edges(oracle);
}

static size_t take_ort(struct oracle *oracle, const struct oracle_request *request)
{
    return take(oracle, request, request->stream);
}

const struct oracle_rules oracle_ort = {
    .policy = "ort", .alignment = 256, .configure = configure_ort, .take = take_ort, .give = give};
