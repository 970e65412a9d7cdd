/* Model of PyTorch's native caching allocator. A list is a pool, of large or
 * small blocks, in one stream; a segment is a cudaMalloc or one reservation of
 * address space into which memory is mapped. */
#include "event.h"
#include "oracle_pytorch.h"

static bool is_small(uint64_t list)
{
    return list / STREAMS % 2 == 1;
}

static uint64_t *clock_of(struct oracle *oracle, uint64_t list)
{
    return &oracle->setting[CLOCK + list / STREAMS];
}

static uint64_t chunk(const struct oracle *oracle, uint64_t list)
{
    return is_small(list) ? CHUNK_SMALL : oracle->setting[LARGE_SEGMENT];
}

/* In the order of PyTorch's set: the driver's stream pointer, length, since 2.13 the age of the
 * segment, address.
 * Handles of streams fall as their numbers rise, except the default stream's, 0. */
static uint64_t stream_rank(const struct oracle_piece *piece)
{
    return piece->stream ? STREAMS - piece->stream : 0;
}

static bool comes_before(const struct oracle *oracle, const struct oracle_piece *a,
                         const struct oracle_piece *b)
{
    if (stream_rank(a) != stream_rank(b))
        return stream_rank(a) < stream_rank(b);
    if (a->size != b->size)
        return a->size < b->size;
    if (oracle->free_order == MT_FREE_OLDEST_SEGMENT && a->segment != b->segment)
        return a->segment < b->segment;
    return a->addr < b->addr;
}

/* The first piece of the list, in that order, that is long enough. */
static size_t shortest(const struct oracle *oracle, uint64_t list, uint64_t bytes)
{
    size_t best = ORACLE_NONE, i;

    for (i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if (piece->state == ORACLE_FREE && piece->list == list && piece->size >= bytes &&
            (best == ORACLE_NONE || comes_before(oracle, piece, &oracle->piece[best])))
            best = i;
    }
    return best;
}

/* The free piece of the pool `list / STREAMS` (`any` stream, or that list's)
 * behind `after`, NONE = the first. */
static size_t next_in_set(const struct oracle *oracle, uint64_t list, bool any, size_t after)
{
    size_t i, best = ORACLE_NONE;

    for (i = 0; i < oracle->count; i++) {
        const struct oracle_piece *piece = &oracle->piece[i];
        if (piece->state != ORACLE_FREE ||
            (any ? piece->list / STREAMS != list / STREAMS : piece->list != list))
            continue;
        if (after != ORACLE_NONE && !comes_before(oracle, &oracle->piece[after], piece))
            continue;
        if (best == ORACLE_NONE || comes_before(oracle, piece, &oracle->piece[best]))
            best = i;
    }
    return best;
}

static bool touches(const struct oracle *oracle, size_t low)
{
    return low + 1 < oracle->count && oracle->piece[low].segment == oracle->piece[low + 1].segment;
}

static void file(struct oracle *oracle, size_t at)
{
    oracle->piece[at].filed = *clock_of(oracle, oracle->piece[at].list);
}

/* Joins with equals; files the result in its pool. */
static size_t join(struct oracle *oracle, size_t at)
{
    at = oracle_merge(oracle, at);
    file(oracle, at);
    return at;
}

/* What a block may become by mapping what lies behind it. */
static uint64_t grown(const struct oracle *oracle, size_t at)
{
    bool grows = touches(oracle, at) && oracle->piece[at + 1].state == ORACLE_UNMAPPED;

    return oracle->piece[at].size + (grows ? oracle->piece[at + 1].size : 0);
}

static size_t find_free(struct oracle *oracle, uint64_t list, uint64_t bytes)
{
    uint64_t max_split = oracle->setting[MAX_SPLIT];
    size_t at = shortest(oracle, list, bytes), next;

    if (oracle->device_limit && oracle->setting[GC_PERCENT])
        ++*clock_of(oracle, list);
    if (at == ORACLE_NONE)
        return at;
    while (oracle->setting[EXPANDABLE] &&
           (next = next_in_set(oracle, list, false, at)) != ORACLE_NONE &&
           grown(oracle, next) < grown(oracle, at))
        at = next;
    if (bytes < max_split && oracle->piece[at].size >= max_split)
        return ORACLE_NONE;
    if (bytes >= max_split && oracle->piece[at].size >= bytes + oracle->setting[ROUNDING])
        return ORACLE_NONE;
    return at;
}

static void drop(struct oracle *oracle, size_t at)
{
    oracle_drop(oracle, at);
}

/* The chunks that lie in a free piece as a whole are unmapped. */
static void unmap(struct oracle *oracle, size_t at)
{
    uint64_t step = chunk(oracle, oracle->piece[at].list), base, begin, end;
    size_t first = at;

    while (first > 0 && touches(oracle, first - 1))
        first--;
    base = oracle->piece[first].addr;
    begin = base + (oracle->piece[at].addr - base + step - 1) / step * step;
    end = base + (oracle->piece[at].addr + oracle->piece[at].size - base) / step * step;
    if (begin >= end)
        return;
    if (begin > oracle->piece[at].addr) {
        oracle_cut(oracle, at, begin - oracle->piece[at].addr);
        file(oracle, at++);
    }
    oracle_cut(oracle, at, end - begin);
    if (touches(oracle, at))
        file(oracle, at + 1);
    oracle->piece[at].state = ORACLE_UNMAPPED;
    at = oracle_merge(oracle, at);
    oracle->counters.reserved.now -= end - begin;
    oracle->counters.device_frees++;
    oracle_expect(oracle, MT_EVENT_SEGMENT_UNMAP, begin, end - begin);
    if (oracle_is_whole(oracle, at))
        oracle_remove(oracle, at);
}

/* Addresses of the free pieces of a pool, in the order of its set. */
static size_t list_pool(const struct oracle *oracle, uint64_t list, uint64_t *addresses)
{
    size_t at = ORACLE_NONE, count = 0;

    while ((at = next_in_set(oracle, list, true, at)) != ORACLE_NONE)
        addresses[count++] = oracle->piece[at].addr;
    return count;
}

static size_t free_at(const struct oracle *oracle, uint64_t addr)
{
    for (size_t i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].addr == addr && oracle->piece[i].state == ORACLE_FREE)
            return i;
    }
    return ORACLE_NONE;
}

static void release_pool(struct oracle *oracle, uint64_t list)
{
    uint64_t addresses[512];
    size_t count = list_pool(oracle, list, addresses), i, at;

    for (i = 0; i < count; i++) {
        at = free_at(oracle, addresses[i]);
        if (oracle->setting[EXPANDABLE])
            unmap(oracle, at);
        else if (oracle_is_whole(oracle, at))
            drop(oracle, at);
    }
}

/* Only for the default pools; private ones keep their segments. */
static void release_cached(struct oracle *oracle)
{
    release_pool(oracle, 0);
    release_pool(oracle, STREAMS);
}

/* With max_split_size: one block that is long enough by itself, else long ones
 * from the longest down until they are together. */
static bool release_some(struct oracle *oracle, uint64_t list, uint64_t bytes)
{
    uint64_t wanted = mt_max_u64(bytes, oracle->setting[MAX_SPLIT]), total = 0;

    if (oracle->setting[MAX_SPLIT] == UINT64_MAX || oracle->setting[EXPANDABLE])
        return false;
    size_t at = shortest(oracle, list, wanted);
    if (at != ORACLE_NONE) {
        drop(oracle, at);
        return true;
    }
    while (total < wanted) {
        size_t last = ORACLE_NONE;
        for (size_t i = 0; (i = next_in_set(oracle, list, false, last)) != ORACLE_NONE;)
            last = i;
        if (last == ORACLE_NONE || oracle->piece[last].size < oracle->setting[MAX_SPLIT])
            return false;
        total += oracle->piece[last].size;
        drop(oracle, last);
    }
    return true;
}

static void collect_garbage(struct oracle *oracle)
{
    uint64_t threshold =
        (uint64_t)((double)oracle->setting[GC_PERCENT] / 100 * (double)oracle->device_limit);
    uint64_t total = oracle->counters.reserved.now, freed = 0, ages = 0, count = 0, age;
    uint64_t addresses[512], of_pool = *clock_of(oracle, 0);
    size_t listed = list_pool(oracle, 0, addresses), i, at;
    bool any = true;

    if (total <= threshold)
        return;
    for (i = 0; i < listed; i++) {
        at = free_at(oracle, addresses[i]);
        if (!oracle_is_whole(oracle, at))
            continue;
        ages += of_pool - oracle->piece[at].filed;
        count++;
    }
    while (freed < total - threshold && any && count > 0) {
        double mean = (double)ages / (double)count;
        any = false;
        for (i = 0; i < listed; i++) {
            at = free_at(oracle, addresses[i]);
            if (at == ORACLE_NONE || !oracle_is_whole(oracle, at) || oracle->setting[EXPANDABLE])
                continue;
            age = of_pool - oracle->piece[at].filed;
            if ((double)age < mean)
                continue;
            any = true;
            freed += oracle->piece[at].size;
            ages -= age;
            count--;
            drop(oracle, at);
        }
    }
}

/* Maps chunks at the low end of an unmapped piece; what is free around it joins. */
static size_t map(struct oracle *oracle, size_t at, uint64_t bytes)
{
    uint64_t length = oracle_steps(bytes, chunk(oracle, oracle->piece[at].list));
    uint64_t addr = oracle->piece[at].addr;

    if (length < oracle->piece[at].size)
        oracle_cut(oracle, at, length);
    oracle->piece[at].state = ORACLE_FREE;
    oracle->counters.reserved.now += length;
    oracle->counters.device_allocs++;
    oracle_expect(oracle, MT_EVENT_SEGMENT_MAP, addr, length);
    return join(oracle, at);
}

static bool has_room(const struct oracle *oracle, size_t at, uint64_t bytes)
{
    uint64_t found = 0;

    for (;; at++) {
        if (oracle->piece[at].state != ORACLE_FREE && oracle->piece[at].state != ORACLE_UNMAPPED)
            break;
        found += oracle->piece[at].size;
        if (!touches(oracle, at))
            break;
    }
    return found >= bytes;
}

/* The lowest unmapped piece where the request fits, with what is free below. */
static size_t find_space(const struct oracle *oracle, uint64_t list, uint64_t bytes)
{
    size_t i, best = ORACLE_NONE, from;
    uint64_t lowest = UINT64_MAX;

    for (i = 0; i < oracle->count; i++) {
        if (oracle->piece[i].state != ORACLE_UNMAPPED || oracle->piece[i].list != list)
            continue;
        from = i > 0 && touches(oracle, i - 1) && oracle->piece[i - 1].state == ORACLE_FREE ? i - 1
                                                                                            : i;
        if (has_room(oracle, from, bytes) && oracle->piece[i].addr < lowest) {
            lowest = oracle->piece[i].addr;
            best = from;
        }
    }
    return best;
}

static size_t reserve(struct oracle *oracle, uint64_t list, uint64_t bytes, uint32_t stream)
{
    uint64_t memory = oracle->memory ? oracle->memory : 512 * MT_GIB;
    uint64_t length = oracle_steps(mt_max_u64(memory + memory / 8, bytes), chunk(oracle, list));
    size_t at =
        oracle_place(oracle, oracle_address(oracle, MT_EVENT_SEGMENT_MAP), length, stream, list);

    oracle->piece[at].state = ORACLE_UNMAPPED;
    return at;
}

static size_t expand(struct oracle *oracle, uint64_t list, uint64_t bytes, uint32_t stream)
{
    size_t at = find_space(oracle, list, bytes);

    if (at == ORACLE_NONE)
        at = reserve(oracle, list, bytes, stream);
    if (oracle->piece[at].state == ORACLE_UNMAPPED)
        at = map(oracle, at, mt_min_u64(bytes, oracle->piece[at].size));
    while (oracle->piece[at].size < bytes && !oracle->complaint)
        at = map(oracle, at + 1,
                 mt_min_u64(bytes - oracle->piece[at].size, oracle->piece[at + 1].size));
    return at;
}

static size_t new_memory(struct oracle *oracle, uint64_t list, uint64_t bytes, uint32_t stream)
{
    uint64_t segment = oracle_pytorch_segment(oracle, bytes);

    if (!oracle_fits_limit(oracle, segment))
        return ORACLE_NONE;
    if (oracle->setting[EXPANDABLE])
        return expand(oracle, list, bytes, stream);
    return oracle_new_segment(oracle, segment, stream, list);
}

static size_t after_miss(struct oracle *oracle, const struct oracle_request *request, uint64_t list,
                         uint64_t bytes)
{
    if (oracle->device_limit && oracle->setting[GC_PERCENT])
        collect_garbage(oracle);
    size_t at = new_memory(oracle, list, bytes, request->stream);
    if (at == ORACLE_NONE && release_some(oracle, list, bytes))
        at = new_memory(oracle, list, bytes, request->stream);
    if (at != ORACLE_NONE || request->pool != 0) /* while memory goes to a pool, no flush */
        return at;
    oracle_complete_waiting(oracle);
    release_cached(oracle);
    oracle->counters.retries++;
    return new_memory(oracle, list, bytes, request->stream);
}

static bool is_cut(const struct oracle *oracle, const struct oracle_request *request, uint64_t rest,
                   uint64_t bytes)
{
    (void)request;
    if (bytes <= MT_MIB || oracle->setting[EXPANDABLE])
        return rest >= 512;
    return rest > MT_MIB && bytes < oracle->setting[MAX_SPLIT];
}

static size_t take(struct oracle *oracle, const struct oracle_request *request)
{
    uint64_t bytes = oracle_pytorch_rounded(oracle, request->size);
    uint64_t list = STREAMS * (2 * (uint64_t)request->pool + (bytes <= MT_MIB)) + request->stream;
    uint64_t *split = &oracle->counters.inactive_split.now, rest;
    size_t at = find_free(oracle, list, bytes);

    if (at == ORACLE_NONE)
        at = after_miss(oracle, request, list, bytes);
    if (at == ORACLE_NONE)
        return at;
    bool was_whole = oracle_is_whole(oracle, at);
    rest = oracle->piece[at].size - bytes;
    if (is_cut(oracle, request, rest, bytes)) {
        oracle_cut(oracle, at, bytes);
        file(oracle, at + 1);
    } else {
        rest = 0;
    }
    if (!oracle->setting[EXPANDABLE])
        *split = was_whole ? *split + rest : *split - oracle->piece[at].size;
    return at;
}

static uint64_t inactive_around(const struct oracle *oracle, size_t at)
{
    uint64_t bytes = 0;

    if (at > 0 && touches(oracle, at - 1) && oracle->piece[at - 1].state == ORACLE_FREE)
        bytes += oracle->piece[at - 1].size;
    if (touches(oracle, at) && oracle->piece[at + 1].state == ORACLE_FREE)
        bytes += oracle->piece[at + 1].size;
    return bytes;
}

static void give(struct oracle *oracle, size_t at)
{
    uint64_t before = inactive_around(oracle, at);

    at = join(oracle, at);
    if (oracle->setting[EXPANDABLE])
        return;
    oracle->counters.inactive_split.now -= before;
    if (!oracle_is_whole(oracle, at))
        oracle->counters.inactive_split.now += oracle->piece[at].size;
}

const struct oracle_rules oracle_pytorch = {.policy = "pytorch",
                                            .alignment = 512,
                                            .weight = 9,
                                            .in_order = true,
                                            .configure = oracle_pytorch_configure,
                                            .take = take,
                                            .give = give,
                                            .empty = release_cached};

/* Without a plan it is its rest (test_planned_random.c has plans). */
const struct oracle_rules oracle_planned = {.policy = "planned",
                                            .alignment = 512,
                                            .in_order = true,
                                            .configure = oracle_pytorch_configure,
                                            .take = take,
                                            .give = give,
                                            .empty = release_cached};
