/* Models of the policies that only round and keep: none, cupy, cub. */
#include "oracle.h"

static void give_merged(struct oracle *oracle, size_t at)
{
    oracle_merge(oracle, at);
}

enum { PAGE };

static void configure_none(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    static const uint64_t pages[] = {512, 1024, 2 * MT_MIB, 512 * 3};

    oracle->setting[PAGE] = pages[dice_below(dice, MT_ARRAY_LEN(pages))];
    if (oracle->setting[PAGE] != 512)
        oracle_option(text, size, "page_size", oracle->setting[PAGE]);
}

static size_t take_none(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = oracle_steps(request->size, oracle->setting[PAGE]);

    return oracle_fits_limit(oracle, bytes) ? oracle_new_segment(oracle, bytes, 0, 0) : ORACLE_NONE;
}

const struct oracle_rules oracle_none = {.policy = "none",
                                         .alignment = 512,
                                         .configure = configure_none,
                                         .take = take_none,
                                         .give = oracle_drop};

enum { POOL_LIMIT };

static void configure_cupy(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    if (dice_one_in(dice, 2))
        return;
    oracle->setting[POOL_LIMIT] = dice_between(dice, 1, 100 * MT_MIB);
    if (!oracle->limit || oracle->limit > oracle->setting[POOL_LIMIT])
        oracle->limit = oracle->setting[POOL_LIMIT];
    oracle_option(text, size, "limit", oracle->setting[POOL_LIMIT]);
}

static size_t take_cupy(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = oracle_steps(request->size, 512);
    size_t at = oracle_shortest(oracle, request->stream, bytes);

    if (at == ORACLE_NONE && oracle->setting[POOL_LIMIT] && bytes > oracle->setting[POOL_LIMIT])
        return ORACLE_NONE;
    if (at == ORACLE_NONE)
        at = oracle_grow_or_flush(oracle, bytes, request->stream, request->stream);
    if (at != ORACLE_NONE)
        oracle_cut(oracle, at, bytes);
    return at;
}

const struct oracle_rules oracle_cupy = {.policy = "cupy",
                                         .alignment = 512,
                                         .configure = configure_cupy,
                                         .take = take_cupy,
                                         .give = give_merged,
                                         .empty = oracle_drop_idle};

enum { GROWTH, LEAST, MOST, CACHED, NOT_CACHED = 99 };

static void configure_cub(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t *setting = oracle->setting;

    setting[GROWTH] = 8;
    setting[LEAST] = 3;
    setting[MOST] = 7;
    setting[CACHED] = 6291455;
    if (dice_one_in(dice, 3))
        return;
    setting[GROWTH] = dice_between(dice, 2, 10);
    setting[LEAST] = dice_between(dice, 0, 5);
    setting[MOST] = dice_between(dice, setting[LEAST], 8);
    setting[CACHED] = dice_below(dice, 10 * MT_MIB);
    oracle_option(text, size, "bin_growth", setting[GROWTH]);
    oracle_option(text, size, "min_bin", setting[LEAST]);
    oracle_option(text, size, "max_bin", setting[MOST]);
    oracle_option(text, size, "max_cached_bytes", setting[CACHED]);
}

/* The smallest power of the growth that is long enough, and its exponent. */
static uint64_t bin_for(const struct oracle *oracle, uint64_t bytes, uint64_t *bin)
{
    uint64_t power = 1;

    for (*bin = 0; *bin < oracle->setting[LEAST] || power < bytes; ++*bin)
        power *= oracle->setting[GROWTH];
    return power;
}

static size_t take_cub(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bin, bytes = bin_for(oracle, request->size, &bin), list;
    size_t i, oldest = ORACLE_NONE;

    if (bin > oracle->setting[MOST])
        return oracle_grow_or_flush(oracle, oracle_steps(request->size, 256), request->stream,
                                    NOT_CACHED);
    list = 100 * (request->stream + 1) + bin;
    for (i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if (piece->state == ORACLE_FREE && piece->list == list &&
            (oldest == ORACLE_NONE || piece->filed < oracle->piece[oldest].filed))
            oldest = i;
    }
    if (oldest != ORACLE_NONE)
        return oldest;
    return oracle_grow_or_flush(oracle, oracle_steps(bytes, 256), request->stream, list);
}

static void give_cub(struct oracle *oracle, size_t at)
{
    uint64_t cached = 0;

    oracle->piece[at].filed = ++oracle->clock;
    for (size_t i = 0; i < oracle->count; i++)
        cached += oracle->piece[i].state == ORACLE_FREE ? oracle->piece[i].size : 0;
    if (oracle->piece[at].list == NOT_CACHED || cached > oracle->setting[CACHED])
        oracle_drop(oracle, at);
}

const struct oracle_rules oracle_cub = {.policy = "cub",
                                        .alignment = 256,
                                        .configure = configure_cub,
                                        .take = take_cub,
                                        .give = give_cub,
                                        .empty = oracle_drop_idle};
