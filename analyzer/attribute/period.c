/* A token that is unique within a turn repeats after exactly one period, so distances to the next
 * equal token reveal it; a few candidates are then compared in full. The first third is excluded
 * because set-up and the first turns differ. */
#include "period.h"

#include "grow.h"
#include "map.h"
#include "process_memory.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CANDIDATES 16
#define MIN_REQUESTS   24
#define MIN_TURNS      3
/* Share of the requests that must equal those one period later. */
#define EQUAL_PERCENT 95

void mt_period_add(struct mt_period *period, const struct mt_event *event)
{
    struct mt_request *request;

    if (event->flags & MT_EVENT_INITIAL)
        return;
    period->last_seq = event->seq;
    period->last_t_ns = event->t_ns;
    if (event->kind == MT_EVENT_FREE_REQUESTED)
        period->level_bytes -= event->size_bytes;
    if (event->kind != MT_EVENT_ALLOC)
        return;
    if (period->count < MT_PERIOD_MAX) {
        mt_grow_to(&period->requests, &period->capacity, period->count + 1, sizeof *request);
        request = &period->requests[period->count++];
        *request = (struct mt_request){
            .seq = event->seq, .t_ns = event->t_ns, .level_bytes = period->level_bytes};
        request->token =
            (uint32_t)mt_hash_u64(mt_hash_u64(event->size_bytes) ^ (uint64_t)event->stack << 16 ^
                                  event->stream << 8 ^ event->device);
    }
    period->level_bytes += event->size_bytes;
}

/* Counts how often a token repeats after each distance. */
static void count_distances(const struct mt_period *period, uint32_t *distances, size_t longest)
{
    struct mt_map last = {0};

    for (size_t i = 0; i < period->count; i++) {
        uint32_t before = mt_map_get(&last, period->requests[i].token);

        if (before != MT_MAP_NONE && i - before <= longest)
            distances[i - before]++;
        mt_map_put(&last, period->requests[i].token, (uint32_t)i);
    }
    mt_map_release(&last);
}

/* Whether almost all of the requests [begin, end) equal those one length later. */
static bool repeats(const struct mt_period *period, size_t begin, size_t end, size_t length)
{
    size_t equal = 0;

    for (size_t i = begin; i < end; i++)
        equal += period->requests[i].token == period->requests[i + length].token;
    return end > begin && equal * 100 >= (end - begin) * EQUAL_PERCENT;
}

static size_t most_frequent(const uint32_t *distances, size_t longest)
{
    size_t best = 0;

    for (size_t i = 1; i <= longest; i++)
        if (distances[i] > (best ? distances[best] : 0))
            best = i;
    return best;
}

/* The shortest length that repeats. A length of one or two is not a turn. */
static size_t find_length(const struct mt_period *period, uint32_t *distances, size_t longest)
{
    size_t found = 0, from = period->count / 3;

    for (int i = 0; i < MAX_CANDIDATES; i++) {
        size_t length = most_frequent(distances, longest);

        if (!length || distances[length] < MIN_TURNS - 1)
            break;
        distances[length] = 0;
        if (length > 2 && (!found || length < found) &&
            repeats(period, from, period->count - length, length))
            found = length;
    }
    return found;
}

/* The first request after a third of the sequence at whose position in the turn the lowest
 * allocation is. */
static size_t lowest_begin(const struct mt_period *period, double *levels)
{
    size_t from = period->count / 3, best = 0;

    for (size_t i = from; i + period->length <= period->count; i++)
        levels[(i - from) % period->length] += (double)period->requests[i].level_bytes;
    /* positions at the end of the range have at most one turn less */
    for (size_t i = 0; i < period->length; i++) {
        size_t times = (period->count - period->length - from - i) / period->length + 1;

        levels[i] /= (double)times;
        if (levels[i] < levels[best])
            best = i;
    }
    return from + best;
}

static void find_turns(struct mt_period *period, size_t begin)
{
    size_t length = period->length, last = begin;

    while (begin >= length && repeats(period, begin - length, begin, length))
        begin -= length;
    while (last + length <= period->count &&
           (last == begin || repeats(period, last - length, last, length)))
        last += length;
    period->first = begin;
    period->turns = (last - begin) / length;
}

void mt_period_find(struct mt_period *period)
{
    size_t longest = period->count * 2 / 3 / MIN_TURNS;
    uint32_t *distances = mt_memory_zeroed(longest + 1, sizeof *distances);
    double *levels = NULL;

    period->turns = 0;
    count_distances(period, distances, longest);
    if (period->count >= MIN_REQUESTS)
        period->length = find_length(period, distances, longest);
    if (period->length) {
        levels = mt_memory_zeroed(period->length, sizeof *levels);
        find_turns(period, lowest_begin(period, levels));
    }
    if (period->turns < MIN_TURNS)
        period->turns = 0;
    free(levels);
    free(distances);
}

size_t mt_period_begin(const struct mt_period *period, size_t turn)
{
    return period->first + turn * period->length;
}

void mt_period_release(struct mt_period *period)
{
    free(period->requests);
    memset(period, 0, sizeof *period);
}
