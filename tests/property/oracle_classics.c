/* Models of buddy, tlsf, segregated and paged. */
#include "oracle.h"

static void no_options(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    (void)oracle;
    (void)dice;
    (void)text;
    (void)size;
}

static size_t take_buddy(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = 512;

    while (bytes < request->size)
        bytes *= 2;
    size_t at = oracle_shortest(oracle, 0, bytes);
    if (at == ORACLE_NONE)
        at = oracle_grow_or_flush(oracle, mt_max_u64(bytes, 2 * MT_MIB), request->stream, 0);
    while (at != ORACLE_NONE && oracle->piece[at].size > bytes)
        oracle_cut(oracle, at, oracle->piece[at].size / 2);
    return at;
}

/* Is the piece at `low` the lower one of two free halves? */
static bool are_halves(const struct oracle *oracle, size_t low)
{
    const struct oracle_piece *piece = &oracle->piece[low];

    return low + 1 < oracle->count && piece[0].segment == piece[1].segment &&
           piece[0].state == ORACLE_FREE && piece[1].state == ORACLE_FREE &&
           piece[0].size == piece[1].size && piece[0].addr % (2 * piece[0].size) == 0;
}

static void give_buddy(struct oracle *oracle, size_t at)
{
    bool joined = true;

    (void)at;
    while (joined) {
        joined = false;
        for (size_t i = 0; i < oracle->count && !joined; i++) {
            if (!are_halves(oracle, i))
                continue;
            oracle->piece[i].size *= 2;
            oracle_remove(oracle, i + 1);
            joined = true;
        }
    }
}

const struct oracle_rules oracle_buddy = {.policy = "buddy",
                                          .alignment = 512,
                                          .configure = no_options,
                                          .take = take_buddy,
                                          .give = give_buddy,
                                          .empty = oracle_drop_idle};

/* The shortest block of the class that a block of that size lies in. */
static uint64_t class_start(uint64_t bytes)
{
    uint64_t power = 1;

    while (2 * power <= bytes)
        power *= 2;
    return bytes / (power / 32) * (power / 32);
}

static size_t take_tlsf(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = oracle_steps(request->size, 512);
    const struct oracle_piece *piece, *best = NULL;

    for (piece = oracle->piece; piece < oracle->piece + oracle->count; piece++) {
        if (piece->state != ORACLE_FREE || class_start(piece->size) < bytes)
            continue;
        if (!best || class_start(piece->size) < class_start(best->size) ||
            (class_start(piece->size) == class_start(best->size) && piece->filed > best->filed))
            best = piece;
    }
    size_t at =
        best ? (size_t)(best - oracle->piece)
             : oracle_grow_or_flush(oracle, oracle_steps(bytes, 2 * MT_MIB), request->stream, 0);
    if (at != ORACLE_NONE)
        oracle_cut(oracle, at, bytes);
    return at;
}

static void give_tlsf(struct oracle *oracle, size_t at)
{
    oracle_merge(oracle, at);
}

const struct oracle_rules oracle_tlsf = {.policy = "tlsf",
                                         .alignment = 512,
                                         .configure = no_options,
                                         .take = take_tlsf,
                                         .give = give_tlsf,
                                         .empty = oracle_drop_idle};

enum { NEVER = 0, UNUSED = 0, ALONE = 1 /* lists beside those of the classes */ };

/* 512, 768, 1024, 1280, ...: four steps to a doubling, of 256 bytes at least. */
static uint64_t class_for(uint64_t bytes)
{
    uint64_t length = 512, doubling = 512;

    while (length < bytes) {
        length += mt_max_u64(doubling / 4, 256);
        if (length == 2 * doubling)
            doubling = length;
    }
    return length;
}

/* What is left of a slab behind the objects that were ever used is one piece of
 * the class, never filed: its low end is the next object when no freed one is
 * left. */
static size_t take_segregated(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t length = class_for(request->size);
    size_t i, best = ORACLE_NONE;

    if (request->size > MT_MIB)
        return oracle_grow_or_flush(oracle, oracle_steps(request->size, 2 * MT_MIB),
                                    request->stream, ALONE);
    for (i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if (piece->state == ORACLE_FREE && piece->list == length &&
            (best == ORACLE_NONE || piece->filed > oracle->piece[best].filed))
            best = i;
    }
    if (best == ORACLE_NONE) {
        best = oracle_grow_or_flush(oracle, 2 * MT_MIB, request->stream, length);
        if (best == ORACLE_NONE)
            return best;
        oracle_cut(oracle, best, 2 * MT_MIB / length * length);
        if (oracle->piece[best].size < 2 * MT_MIB)
            oracle->piece[best + 1].list = UNUSED;
    }
    if (oracle->piece[best].size > length) {
        oracle_cut(oracle, best, length);
        oracle->piece[best + 1].filed = NEVER;
    }
    return best;
}

static void give_segregated(struct oracle *oracle, size_t at)
{
    if (oracle->piece[at].list == ALONE)
        oracle_drop(oracle, at);
    else
        oracle->piece[at].filed = ++oracle->clock;
}

const struct oracle_rules oracle_segregated = {.policy = "segregated",
                                               .alignment = 256,
                                               .configure = no_options,
                                               .take = take_segregated,
                                               .give = give_segregated,
                                               .empty = oracle_drop_idle};

enum { FREE_BYTES };

static void free_pages_change(struct oracle *oracle, uint64_t by)
{
    oracle->setting[FREE_BYTES] += by;
}

static size_t take_paged(struct oracle *oracle, const struct oracle_request *request)
{
    const uint64_t page = 2 * MT_MIB;
    bool shares = request->size <= MT_MIB;
    uint64_t bytes = oracle_steps(request->size, shares ? 512 : page);
    uint64_t pages = oracle_steps(bytes, page), fresh;
    size_t at = shares ? oracle_shortest(oracle, 0, bytes) : ORACLE_NONE;

    if (at == ORACLE_NONE) {
        fresh = pages - mt_min_u64(pages, oracle->setting[FREE_BYTES]);
        if (!oracle_fits_limit(oracle, fresh))
            return ORACLE_NONE;
        free_pages_change(oracle, fresh - pages);
        oracle->counters.reserved.now += fresh;
        oracle->counters.device_allocs += fresh / page;
        at = oracle_place(oracle, oracle->answer_addr, pages, 0, 0);
    }
    oracle_cut(oracle, at, bytes);
    return at;
}

static void give_paged(struct oracle *oracle, size_t at)
{
    at = oracle_merge(oracle, at);
    if (!oracle_is_whole(oracle, at))
        return;
    free_pages_change(oracle, oracle->piece[at].size);
    oracle_remove(oracle, at);
}

static void empty_paged(struct oracle *oracle)
{
    oracle->counters.reserved.now -= oracle->setting[FREE_BYTES];
    oracle->counters.device_frees += oracle->setting[FREE_BYTES] / (2 * MT_MIB);
    oracle->setting[FREE_BYTES] = 0;
}

const struct oracle_rules oracle_paged = {.policy = "paged",
                                          .alignment = 512,
                                          .unlogged = true,
                                          .configure = no_options,
                                          .take = take_paged,
                                          .give = give_paged,
                                          .empty = empty_paged};
