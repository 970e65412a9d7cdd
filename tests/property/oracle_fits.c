/* Models of first-fit, next-fit, best-fit and worst-fit. */
#include "oracle.h"

enum { SEGMENT, ROVER };

static void configure(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    static const uint64_t segments[] = {2 * MT_MIB, 512, 4096, 100000, 20 * MT_MIB};

    oracle->setting[SEGMENT] = segments[dice_below(dice, MT_ARRAY_LEN(segments))];
    if (oracle->setting[SEGMENT] != 2 * MT_MIB)
        oracle_option(text, size, "segment", oracle->setting[SEGMENT]);
    oracle->setting[SEGMENT] = oracle_steps(oracle->setting[SEGMENT], 512);
}

/* The block that fits and for which this number is least. */
typedef uint64_t (*measure)(const struct oracle *oracle, const struct oracle_piece *piece);

static uint64_t by_address(const struct oracle *oracle, const struct oracle_piece *piece)
{
    (void)oracle;
    return piece->addr;
}

/* Distance from where the last allocation ended, going up and round. */
static uint64_t from_rover(const struct oracle *oracle, const struct oracle_piece *piece)
{
    uint64_t rover = oracle->setting[ROVER];

    if (piece->addr <= rover && rover < piece->addr + piece->size)
        return 0;
    return piece->addr - rover; /* wraps below */
}

static uint64_t shortest(const struct oracle *oracle, const struct oracle_piece *piece)
{
    (void)oracle;
    return piece->size;
}

static uint64_t longest(const struct oracle *oracle, const struct oracle_piece *piece)
{
    (void)oracle;
    return ~piece->size;
}

static size_t choose(const struct oracle *oracle, uint64_t bytes, measure of)
{
    const struct oracle_piece *piece, *best = NULL;

    for (piece = oracle->piece; piece < oracle->piece + oracle->count; piece++) {
        if (piece->state != ORACLE_FREE || piece->size < bytes)
            continue;
        if (!best || of(oracle, piece) < of(oracle, best) ||
            (of(oracle, piece) == of(oracle, best) && piece->addr < best->addr))
            best = piece;
    }
    return best ? (size_t)(best - oracle->piece) : ORACLE_NONE;
}

static size_t take_by(struct oracle *oracle, const struct oracle_request *request, measure of)
{
    uint64_t bytes = oracle_steps(request->size, 512);
    size_t at = choose(oracle, bytes, of);

    if (at == ORACLE_NONE)
        at = oracle_grow_or_flush(oracle, oracle_steps(bytes, oracle->setting[SEGMENT]),
                                  request->stream, 0);
    if (at == ORACLE_NONE)
        return at;
    oracle_cut(oracle, at, bytes);
    oracle->setting[ROVER] = oracle->piece[at].addr + bytes;
    return at;
}

static size_t take_first(struct oracle *oracle, const struct oracle_request *request)
{
    return take_by(oracle, request, by_address);
}

static size_t take_next(struct oracle *oracle, const struct oracle_request *request)
{
    return take_by(oracle, request, from_rover);
}

static size_t take_best(struct oracle *oracle, const struct oracle_request *request)
{
    return take_by(oracle, request, shortest);
}

static size_t take_worst(struct oracle *oracle, const struct oracle_request *request)
{
    return take_by(oracle, request, longest);
}

static void give(struct oracle *oracle, size_t at)
{
    oracle_merge(oracle, at);
}

#define FIT(name, policy_name, take_function)                                                      \
    const struct oracle_rules oracle_##name = {.policy = policy_name,                              \
                                               .alignment = 512,                                   \
                                               .configure = configure,                             \
                                               .take = take_function,                              \
                                               .give = give,                                       \
                                               .empty = oracle_drop_idle}

FIT(first_fit, "first-fit", take_first);
FIT(next_fit, "next-fit", take_next);
FIT(best_fit, "best-fit", take_best);
FIT(worst_fit, "worst-fit", take_worst);
