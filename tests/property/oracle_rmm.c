/* Models of RMM's pool, binning and arena resources. */
#include "oracle.h"

static size_t oldest_of(const struct oracle *oracle, uint64_t list)
{
    size_t i, oldest = ORACLE_NONE;

    for (i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].state == ORACLE_FREE && oracle->piece[i].list == list &&
            (oldest == ORACLE_NONE || oracle->piece[i].filed < oracle->piece[oldest].filed))
            oldest = i;
    }
    return oldest;
}

enum { INITIAL, MAXIMUM, STARTED, USERS, USER /* streams in order of first use */ };

static void configure_pool(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t memory = oracle->device_limit ? oracle->device_limit : oracle->memory;
    uint64_t *setting = oracle->setting;

    setting[INITIAL] = memory / 2 / 256 * 256;
    if (dice_one_in(dice, 2)) {
        setting[MAXIMUM] = dice_between(dice, MT_MIB, 200 * MT_MIB);
        oracle_option(text, size, "maximum_pool_size", setting[MAXIMUM]);
        setting[MAXIMUM] = setting[MAXIMUM] / 256 * 256;
    }
    if (setting[MAXIMUM] || dice_one_in(dice, 2)) {
        setting[INITIAL] = dice_below(dice, dice_one_in(dice, 2) ? MT_MIB : 8 * MT_KIB);
        oracle_option(text, size, "initial_pool_size", setting[INITIAL]);
        setting[INITIAL] = setting[INITIAL] / 256 * 256;
    }
}

static void note_stream(struct oracle *oracle, uint32_t stream)
{
    uint64_t i, *users = &oracle->setting[USERS];

    for (i = 0; i < *users; i++) {
        if (oracle->setting[USER + i] == stream)
            return;
    }
    oracle->setting[USER + (*users)++] = stream;
}

static bool start_pool(struct oracle *oracle)
{
    if (oracle->setting[STARTED] || !oracle->setting[INITIAL])
        return true;
    note_stream(oracle, 0);
    if (!oracle_fits_limit(oracle, oracle->setting[INITIAL]))
        return false;
    oracle_new_segment(oracle, oracle->setting[INITIAL], 0, 0);
    oracle->setting[STARTED] = true;
    return true;
}

/* All free pieces of one list go to another, and merge with what is there. */
static void hand_over(struct oracle *oracle, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].state == ORACLE_FREE && oracle->piece[i].list == from)
            oracle->piece[i].list = to;
    }
    for (size_t i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].state == ORACLE_FREE && oracle->piece[i].list == to)
            i = oracle_merge(oracle, i);
    }
}

static void give_back_segments(struct oracle *oracle, uint64_t bytes)
{
    uint64_t maximum = oracle->setting[MAXIMUM];
    size_t i, lowest;

    while (bytes <= maximum && maximum - oracle->counters.reserved.now < bytes) {
        for (i = 0, lowest = ORACLE_NONE; i < oracle->count; i++) {
            if (oracle->piece[i].state == ORACLE_FREE && oracle_is_whole(oracle, i) &&
                (lowest == ORACLE_NONE || oracle->piece[i].addr < oracle->piece[lowest].addr))
                lowest = i;
        }
        if (lowest == ORACLE_NONE)
            return;
        oracle_drop(oracle, lowest);
    }
}

static size_t grow_pool(struct oracle *oracle, uint64_t bytes, uint32_t stream)
{
    uint64_t held = oracle->counters.reserved.now, wanted = mt_max_u64(bytes, held);

    if (oracle->setting[MAXIMUM]) {
        if (bytes > oracle->setting[MAXIMUM] - held)
            return ORACLE_NONE;
        wanted = mt_max_u64(bytes, (oracle->setting[MAXIMUM] - held) / 2);
    }
    while (!oracle_fits_limit(oracle, oracle_steps(wanted, 256)) && wanted > bytes)
        wanted = mt_max_u64(bytes, wanted / 2);
    wanted = oracle_steps(wanted, 256);
    return oracle_fits_limit(oracle, wanted) ? oracle_new_segment(oracle, wanted, stream, stream)
                                             : ORACLE_NONE;
}

static size_t find_in_pool(struct oracle *oracle, uint64_t bytes, uint32_t stream)
{
    size_t at = oracle_shortest(oracle, stream, bytes);

    for (uint64_t i = 0; i < oracle->setting[USERS] && at == ORACLE_NONE; i++)
        at = oracle_shortest(oracle, oracle->setting[USER + i], bytes);
    for (uint64_t i = 0; i < oracle->setting[USERS] && at == ORACLE_NONE; i++) {
        hand_over(oracle, oracle->setting[USER + i], stream);
        at = oracle_shortest(oracle, stream, bytes);
    }
    if (at != ORACLE_NONE)
        return at;
    if (oracle->setting[MAXIMUM])
        give_back_segments(oracle, bytes);
    return grow_pool(oracle, bytes, stream);
}

static size_t take_pool(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = oracle_steps(request->size, 256);

    if (!start_pool(oracle))
        return ORACLE_NONE;
    note_stream(oracle, request->stream);
    size_t at = find_in_pool(oracle, bytes, request->stream);
    if (at == ORACLE_NONE)
        return at;
    oracle_cut(oracle, at, bytes);
    oracle->piece[at].list = request->stream;
    return at;
}

static void give_pool(struct oracle *oracle, size_t at)
{
    oracle_merge(oracle, at);
}

const struct oracle_rules oracle_rmm_pool = {.policy = "rmm-pool",
                                             .alignment = 256,
                                             .weight = 3,
                                             .configure = configure_pool,
                                             .take = take_pool,
                                             .give = give_pool};

enum { LEAST, MOST, BINS_STARTED, BIN_USERS, BIN_USER /* the same for all bins */ };
enum { UPSTREAM = 1 };

static void configure_binning(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t *setting = oracle->setting;

    setting[LEAST] = dice_between(dice, 8, 20);
    setting[MOST] = setting[LEAST] + dice_below(dice, 4);
    setting[BINS_STARTED] = setting[LEAST];
    oracle_option(text, size, "min_size_exponent", setting[LEAST]);
    oracle_option(text, size, "max_size_exponent", setting[MOST]);
}

static uint64_t bin_list(uint64_t bin, uint64_t stream)
{
    return 100 * (bin + 1) + stream;
}

static bool add_blocks(struct oracle *oracle, uint64_t bin, uint32_t stream)
{
    uint64_t bytes = (uint64_t)1 << bin;

    if (!oracle_fits_limit(oracle, 128 * bytes))
        return false;
    size_t at = oracle_new_segment(oracle, 128 * bytes, stream, bin_list(bin, stream));
    for (size_t i = 0; i < 127; i++)
        oracle_cut(oracle, at + i, bytes);
    return true;
}

/* Who asked that bin first, second, ...: one number a bin and stream. */
static void note_bin_user(struct oracle *oracle, uint64_t bin, uint32_t stream)
{
    uint64_t i, *users = &oracle->setting[BIN_USERS], list = bin_list(bin, stream);

    for (i = 0; i < *users; i++) {
        if (oracle->setting[BIN_USER + i] == list)
            return;
    }
    oracle->setting[BIN_USER + (*users)++] = list;
}

static size_t take_from_bin(struct oracle *oracle, uint64_t bin, uint32_t stream)
{
    uint64_t list = bin_list(bin, stream), i, other;

    note_bin_user(oracle, bin, stream);
    size_t at = oldest_of(oracle, list);
    for (i = 0; i < oracle->setting[BIN_USERS] && at == ORACLE_NONE; i++) {
        other = oracle->setting[BIN_USER + i];
        if (other / 100 == list / 100)
            at = oldest_of(oracle, other);
    }
    if (at == ORACLE_NONE && add_blocks(oracle, bin, stream))
        at = oldest_of(oracle, list);
    if (at != ORACLE_NONE)
        oracle->piece[at].list = list;
    return at;
}

static size_t take_binning(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t *started = &oracle->setting[BINS_STARTED], bin = oracle->setting[LEAST], bytes;

    for (; *started <= oracle->setting[MOST]; ++*started) {
        note_bin_user(oracle, *started, 0);
        if (!add_blocks(oracle, *started, 0))
            return ORACLE_NONE;
    }
    while (bin <= oracle->setting[MOST] && (uint64_t)1 << bin < request->size)
        bin++;
    if (bin <= oracle->setting[MOST])
        return take_from_bin(oracle, bin, request->stream);
    bytes = oracle_steps(request->size, 256);
    return oracle_fits_limit(oracle, bytes) ? oracle_new_segment(oracle, bytes, 0, UPSTREAM)
                                            : ORACLE_NONE;
}

static void give_binning(struct oracle *oracle, size_t at)
{
    if (oracle->piece[at].list == UPSTREAM)
        oracle_drop(oracle, at);
    else
        oracle->piece[at].filed = ++oracle->clock;
}

const struct oracle_rules oracle_rmm_binning = {.policy = "rmm-binning",
                                                .alignment = 256,
                                                .configure = configure_binning,
                                                .take = take_binning,
                                                .give = give_binning};

/* A superblock is a list; its number says who owns it: the global arena or a
 * stream, by `list % 8`. All pieces belong to one segment, ascending. */
enum { ARENA, ARENA_STARTED, SUPERBLOCKS, GLOBAL = 0, OWNERS = 8 };

static void configure_arena(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t memory = oracle->device_limit ? oracle->device_limit : oracle->memory;

    oracle->setting[ARENA] = memory / 2 / 256 * 256;
    if (oracle->setting[ARENA] >= MT_MIB && dice_one_in(dice, 3))
        return;
    oracle->setting[ARENA] = dice_between(dice, MT_MIB, 60 * MT_MIB);
    if (oracle->device_limit && !dice_one_in(dice, 8))
        oracle->setting[ARENA] =
            mt_max_u64(mt_min_u64(oracle->setting[ARENA], oracle->device_limit), MT_MIB);
    oracle_option(text, size, "arena_size", oracle->setting[ARENA]);
    oracle->setting[ARENA] = oracle->setting[ARENA] / 256 * 256;
}

static uint64_t owned_by(uint64_t list, uint64_t owner)
{
    return list / OWNERS * OWNERS + owner;
}

/* Is the whole superblock this one free piece? */
static bool is_empty_superblock(const struct oracle *oracle, size_t at)
{
    uint64_t list = oracle->piece[at].list;

    return oracle->piece[at].state == ORACLE_FREE &&
           (at == 0 || oracle->piece[at - 1].list != list) &&
           (at + 1 == oracle->count || oracle->piece[at + 1].list != list);
}

static size_t first_of(const struct oracle *oracle, uint64_t owner, uint64_t bytes)
{
    for (size_t i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].state == ORACLE_FREE && oracle->piece[i].list % OWNERS == owner &&
            oracle->piece[i].size >= bytes)
            return i;
    }
    return ORACLE_NONE;
}

static size_t first_of_global(struct oracle *oracle, uint64_t bytes)
{
    uint64_t keep = mt_max_u64(bytes, MT_MIB);
    size_t at = first_of(oracle, GLOBAL, bytes);

    if (at != ORACLE_NONE && is_empty_superblock(oracle, at) &&
        oracle->piece[at].size >= keep + MT_MIB) {
        oracle_cut(oracle, at, keep);
        oracle->piece[at + 1].list = OWNERS * ++oracle->setting[SUPERBLOCKS] + GLOBAL;
    }
    return at;
}

/* Empty neighbors in the global arena become one. */
static void join_superblocks(struct oracle *oracle)
{
    for (size_t i = 0; i + 1 < oracle->count;) {
        if (is_empty_superblock(oracle, i) && is_empty_superblock(oracle, i + 1) &&
            oracle->piece[i].list % OWNERS == GLOBAL &&
            oracle->piece[i + 1].list % OWNERS == GLOBAL) {
            oracle->piece[i].size += oracle->piece[i + 1].size;
            oracle_remove(oracle, i + 1);
        } else {
            i++;
        }
    }
}

static size_t find_in_arena(struct oracle *oracle, uint64_t bytes, uint32_t stream)
{
    uint64_t owner = 1 + stream, list;

    if (bytes > MT_MIB)
        return first_of_global(oracle, bytes);
    size_t at = first_of(oracle, owner, bytes);
    if (at != ORACLE_NONE)
        return at;
    at = first_of_global(oracle, bytes);
    if (at == ORACLE_NONE)
        return at;
    list = oracle->piece[at].list;
    for (size_t i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].list == list)
            oracle->piece[i].list = owned_by(list, owner);
    }
    return at;
}

static size_t take_arena(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = oracle_steps(request->size, 256);

    if (!oracle->setting[ARENA_STARTED]) {
        if (!oracle_fits_limit(oracle, oracle->setting[ARENA]))
            return ORACLE_NONE;
        oracle_new_segment(oracle, oracle->setting[ARENA], 0, GLOBAL);
        oracle->setting[ARENA_STARTED] = true;
    }
    size_t at = find_in_arena(oracle, bytes, request->stream);
    if (at == ORACLE_NONE) {
        oracle->counters.retries++;
        for (size_t i = 0; i < oracle->count; i++)
            oracle->piece[i].list = owned_by(oracle->piece[i].list, GLOBAL);
        join_superblocks(oracle);
        at = find_in_arena(oracle, bytes, request->stream);
    }
    if (at != ORACLE_NONE)
        oracle_cut(oracle, at, bytes);
    return at;
}

static void give_arena(struct oracle *oracle, size_t at)
{
    oracle_merge(oracle, at);
    join_superblocks(oracle);
}

const struct oracle_rules oracle_rmm_arena = {.policy = "rmm-arena",
                                              .alignment = 256,
                                              .weight = 2,
                                              .configure = configure_arena,
                                              .take = take_arena,
                                              .give = give_arena};
