/* The model of cuda-async: consecutive pieces from one base, and one flag per page. The array never
 * ends with a free piece without a stream: the memory after it is free and unlimited. While a piece
 * is free, `requested` is the time at which it was freed. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

enum { EVERYBODY, FIRST_STREAM, MODEL_PAGES = 4096, MODEL_STREAMS = 8 };
enum { GPU, THRESHOLD, BASE, HAS_BASE, STREAMS_SEEN, SEEN };
enum { SYNCHRONIZED, IDLE, BUSY };

static const uint64_t PAGE = 32 * MT_MIB;

static bool mapped[MODEL_PAGES];

static void configure(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    static const char *const gpu[] = {"gpu=synchronized", "gpu=idle", "gpu=busy"};
    uint64_t *setting = oracle->setting, most;

    memset(mapped, 0, sizeof mapped);
    oracle->edge[0] = PAGE;
    oracle->edge[1] = 512;
    setting[GPU] = dice_below(dice, 3);
    setting[THRESHOLD] = UINT64_MAX;
    strncat(text, gpu[setting[GPU]], size - strlen(text) - 1);
    if (dice_one_in(dice, 3)) {
        setting[THRESHOLD] = dice_below(dice, 400 * MT_MIB);
        oracle_option(text, size, "release_threshold", setting[THRESHOLD]);
    }
    if (dice_one_in(dice, 3)) {
        most = dice_between(dice, 200 * MT_MIB, 2048 * MT_MIB);
        oracle_option(text, size, "max_size", most);
        if (!oracle->limit || oracle->limit > most)
            oracle->limit = most;
    }
}

static uint64_t first_page(const struct oracle *oracle, uint64_t addr)
{
    return (addr - oracle->setting[BASE]) / PAGE;
}

static uint64_t last_page(const struct oracle *oracle, uint64_t addr, uint64_t bytes)
{
    return (addr + bytes - 1 - oracle->setting[BASE]) / PAGE;
}

static bool lacks_pages(const struct oracle *oracle, const struct oracle_piece *piece)
{
    for (uint64_t page = first_page(oracle, piece->addr);
         page <= last_page(oracle, piece->addr, piece->size); page++) {
        if (!mapped[page])
            return true;
    }
    return false;
}

static bool is_held(const struct oracle *oracle, uint64_t page)
{
    for (size_t i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if ((piece->state != ORACLE_FREE || piece->list != EVERYBODY) &&
            first_page(oracle, piece->addr) <= page &&
            page <= last_page(oracle, piece->addr, piece->size))
            return true;
    }
    return false;
}

/* The highest page that is mapped and idle, not from..to; MODEL_PAGES = none. */
static uint64_t idle_page(const struct oracle *oracle, uint64_t from, uint64_t to)
{
    for (uint64_t page = MODEL_PAGES; page-- > 0;) {
        if (mapped[page] && (page < from || page > to) && !is_held(oracle, page))
            return page;
    }
    return MODEL_PAGES;
}

static void change_reserved(struct oracle *oracle, bool more)
{
    oracle->counters.reserved.now += more ? PAGE : 0 - PAGE;
    oracle->counters.segments.now += more ? 1 : UINT64_MAX;
    oracle->counters.device_allocs += more;
    oracle->counters.device_frees += !more;
}

/* Maps what a request of everybody's memory needs, page by page, as long as the
 * limit allows it. */
static bool map_range(struct oracle *oracle, uint64_t addr, uint64_t bytes)
{
    uint64_t from = first_page(oracle, addr), to = last_page(oracle, addr, bytes), page, idle;

    if (to >= MODEL_PAGES) {
        oracle->complaint = "the model has no room for another page";
        return false;
    }
    for (page = from; page <= to; page++) {
        if (mapped[page])
            continue;
        idle = idle_page(oracle, from, to);
        if (idle == MODEL_PAGES && !oracle_fits_limit(oracle, PAGE))
            return false;
        if (idle == MODEL_PAGES)
            change_reserved(oracle, true);
        else
            mapped[idle] = false;
        mapped[page] = true;
    }
    return true;
}

static void release_above(struct oracle *oracle, uint64_t threshold)
{
    uint64_t page;

    while (oracle->counters.reserved.now > threshold &&
           (page = idle_page(oracle, 1, 0)) != MODEL_PAGES) {
        mapped[page] = false;
        change_reserved(oracle, false);
    }
}

static void give_to_all(struct oracle *oracle, size_t at)
{
    oracle->piece[at].list = EVERYBODY;
    at = oracle_merge(oracle, at);
    if (at + 1 == oracle->count)
        oracle_remove(oracle, at);
}

/* Best fit of a list, the oldest of equals. */
static size_t best_fit(const struct oracle *oracle, uint64_t list, uint64_t bytes, bool backed)
{
    size_t i, best = ORACLE_NONE;

    for (i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if (piece->state != ORACLE_FREE || piece->list != list || piece->size < bytes ||
            (backed && lacks_pages(oracle, piece)))
            continue;
        if (best == ORACLE_NONE || piece->size < oracle->piece[best].size ||
            (piece->size == oracle->piece[best].size && piece->filed < oracle->piece[best].filed))
            best = i;
    }
    return best;
}

static size_t latest_freed(const struct oracle *oracle, uint64_t list)
{
    size_t i, latest = ORACLE_NONE;

    for (i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if (piece->state == ORACLE_FREE && piece->list == list &&
            (latest == ORACLE_NONE || piece->requested > oracle->piece[latest].requested))
            latest = i;
    }
    return latest;
}

static void complete_all(struct oracle *oracle)
{
    size_t at;

    for (uint64_t i = 0; i < oracle->setting[STREAMS_SEEN]; i++) {
        while ((at = latest_freed(oracle, oracle->setting[SEEN + i])) != ORACLE_NONE)
            give_to_all(oracle, at);
    }
}

static void see_stream(struct oracle *oracle, uint64_t list)
{
    uint64_t *setting = oracle->setting, i;

    for (i = 0; i < setting[STREAMS_SEEN]; i++) {
        if (setting[SEEN + i] == list)
            return;
    }
    if (i < MODEL_STREAMS)
        setting[SEEN + setting[STREAMS_SEEN]++] = list;
}

/* A piece whose memory is there: of the stream, of all, of other streams. */
static size_t find_backed(const struct oracle *oracle, uint64_t own, uint64_t bytes)
{
    size_t at = best_fit(oracle, own, bytes, false);

    if (at == ORACLE_NONE)
        at = best_fit(oracle, EVERYBODY, bytes, true);
    for (uint64_t i = 0;
         at == ORACLE_NONE && oracle->setting[GPU] == IDLE && i < oracle->setting[STREAMS_SEEN];
         i++) {
        if (oracle->setting[SEEN + i] != own)
            at = best_fit(oracle, oracle->setting[SEEN + i], bytes, false);
    }
    return at;
}

static size_t lengthen(struct oracle *oracle, uint64_t bytes)
{
    uint64_t *setting = oracle->setting, addr;
    size_t at = oracle->count;

    if (!setting[HAS_BASE] && oracle->answer_addr) {
        setting[BASE] = oracle->answer_addr;
        setting[HAS_BASE] = true;
    }
    addr = at ? oracle->piece[at - 1].addr + oracle->piece[at - 1].size : setting[BASE];
    if (!map_range(oracle, addr, bytes))
        return ORACLE_NONE;
    at = oracle_place(oracle, addr, bytes, 0, EVERYBODY);
    oracle->piece[at].segment = 0;
    return at;
}

static size_t take(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = oracle_steps(request->size, 512), own = FIRST_STREAM + request->stream;

    see_stream(oracle, own);
    size_t at = find_backed(oracle, own, bytes);
    if (at == ORACLE_NONE) {
        if (oracle->setting[GPU] == IDLE)
            complete_all(oracle);
        at = best_fit(oracle, EVERYBODY, bytes, false);
        if (at == ORACLE_NONE)
            at = lengthen(oracle, bytes);
        else if (!map_range(oracle, oracle->piece[at].addr, bytes)) {
            oracle->piece[at].filed = ++oracle->clock; /* it was in hand */
            at = ORACLE_NONE;
        }
    }
    if (at == ORACLE_NONE)
        return at;
    oracle_cut(oracle, at, bytes);
    oracle->piece[at].list = own;
    return at;
}

static void give(struct oracle *oracle, size_t at)
{
    uint64_t when = ++oracle->clock;

    if (oracle->setting[GPU] == SYNCHRONIZED) {
        give_to_all(oracle, at);
        release_above(oracle, oracle->setting[THRESHOLD]);
        return;
    }
    at = oracle_merge(oracle, at);
    oracle->piece[at].requested = when;
}

static void empty(struct oracle *oracle)
{
    complete_all(oracle);
    release_above(oracle, 0);
}

const struct oracle_rules oracle_cuda_async = {.policy = "cuda-async",
                                               .alignment = 512,
                                               .unlogged = true,
                                               .configure = configure,
                                               .take = take,
                                               .give = give,
                                               .empty = empty};
