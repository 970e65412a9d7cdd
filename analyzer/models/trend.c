/* The median of all pairwise slopes without visiting all pairs: a pair's slope is at most s exactly
 * if y - s x does not rise from its first to its second. So the number of such pairs is a number of
 * inversions, which a merge sort counts; a binary search over s finds the median. */
#include "trend.h"

#include <stdlib.h>
#include <string.h>

#include "process_memory.h"
#include "report_query.h"
#include "util.h"

__extension__ typedef __int128 wide;

enum { MAX_VALUES = 1 << 13 };
#define MAX_BYTES (UINT64_C(1) << 53)

struct pairs {
    const uint64_t *values;
    uint32_t count, stride; /* every stride-th value */
    int64_t steepest;       /* no pair's slope is steeper in either direction */
    wide *rest, *scratch;
};

/* Counts pairs of [begin, end) whose second is not above the first; sorts. */
static uint64_t count_falling(struct pairs *pairs, uint32_t begin, uint32_t end)
{
    uint32_t middle = begin + (end - begin) / 2, left = begin, right = middle;

    if (end - begin < 2)
        return 0;
    uint64_t falling = count_falling(pairs, begin, middle) + count_falling(pairs, middle, end);
    for (uint32_t at = begin; at < end; at++) {
        if (left < middle && (right == end || pairs->rest[left] < pairs->rest[right])) {
            pairs->scratch[at] = pairs->rest[left++];
        } else {
            falling += middle - left;
            pairs->scratch[at] = pairs->rest[right++];
        }
    }
    memcpy(pairs->rest + begin, pairs->scratch + begin, (end - begin) * sizeof *pairs->rest);
    return falling;
}

/* Counts pairs whose slope is at most `slope`. */
static uint64_t count_up_to(struct pairs *pairs, int64_t slope)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        uint32_t x = i * pairs->stride;
        pairs->rest[i] = (wide)mt_min_u64(pairs->values[x], MAX_BYTES) - (wide)slope * x;
    }
    return count_falling(pairs, 0, pairs->count);
}

/* The smallest whole slope that `rank` pairs do not exceed. */
static int64_t slope_of_rank(struct pairs *pairs, uint64_t rank)
{
    int64_t low = -pairs->steepest, high = pairs->steepest;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (count_up_to(pairs, middle) >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t range_of(const struct pairs *pairs)
{
    uint64_t low = MAX_BYTES, high = 0;

    for (uint32_t i = 0; i < pairs->count; i++) {
        uint64_t value = mt_min_u64(pairs->values[i * pairs->stride], MAX_BYTES);
        low = mt_min_u64(low, value);
        high = mt_max_u64(high, value);
    }
    return (int64_t)(high - low);
}

void mt_robust_slope(const uint64_t *values, uint32_t count, int64_t *slope)
{
    struct pairs pairs = {.values = values, .stride = (count - 1) / MAX_VALUES + 1};

    pairs.count = (count - 1) / pairs.stride + 1;
    pairs.steepest = range_of(&pairs);
    uint64_t all = (uint64_t)pairs.count * (pairs.count - 1) / 2;
    pairs.rest = mt_memory_zeroed(pairs.count, sizeof *pairs.rest);
    pairs.scratch = mt_memory_zeroed(pairs.count, sizeof *pairs.scratch);
    {
        int64_t low = slope_of_rank(&pairs, (all + 1) / 2);
        int64_t high = all % 2 ? low : slope_of_rank(&pairs, all / 2 + 1);
        *slope = low + (high - low) / 2;
    }
    free(pairs.rest);
    free(pairs.scratch);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The line goes through the middle of the levels: as many are above as below. */
static void set_level(struct mt_trend *trend, const uint64_t *levels, uint32_t count)
{
    int64_t *rest = mt_memory_zeroed(count, sizeof *rest);

    for (uint32_t i = 0; i < count; i++) {
        wide at = (wide)mt_min_u64(levels[i], MAX_BYTES) - (wide)trend->bytes_per_step * i;
        rest[i] = (int64_t)(at > (wide)INT64_MAX / 2    ? (wide)INT64_MAX / 2
                            : at < -(wide)INT64_MAX / 2 ? -(wide)INT64_MAX / 2
                                                        : at);
    }
    qsort(rest, count, sizeof *rest, by_value);
    trend->level_bytes = rest[(count - 1) / 2] / 2 + rest[count / 2] / 2 +
                         (rest[(count - 1) / 2] % 2 + rest[count / 2] % 2) / 2;
    free(rest);
}

static void fit_line(struct mt_trend *trend)
{
    uint32_t count = trend->end - trend->begin;
    uint64_t *levels = mt_memory_zeroed((size_t)count + 1, sizeof *levels);

    for (uint32_t i = 0; i < count; i++)
        levels[i] = trend->steps[trend->begin + i].exit.allocated;
    mt_robust_slope(levels, count, &trend->bytes_per_step);
    set_level(trend, levels, count);
    trend->has_slope = true;
    free(levels);
}

static const struct mt_finding *find_growth(const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->finding_count; i++)
        if (strcmp(device->findings[i].id, "growth") == 0)
            return &device->findings[i];
    return NULL;
}

static enum mt_trend_verdict judge(const struct mt_trend *trend,
                                   const struct mt_device_report *device)
{
    if (trend->count < MT_TREND_MIN_STEPS)
        return MT_TREND_TOO_SHORT;
    if (trend->growth)
        return MT_TREND_GROWS;
    return device->growth.judged ? MT_TREND_STEADY : MT_TREND_NOT_JUDGED;
}

void mt_trend_fit(const struct mt_report *report, const struct mt_device_report *device,
                  struct mt_trend *trend)
{
    struct mt_step_list steps = mt_judged_steps(report, device);

    *trend = (struct mt_trend){.steps = steps.list, .count = steps.count};
    trend->begin = mt_warm_up_steps(trend->count);
    trend->end = trend->count;
    if (trend->end && report->phases[trend->steps[trend->count - 1].phase].cut)
        trend->end--;
    if (trend->count < MT_TREND_MIN_STEPS || trend->end < trend->begin + 2)
        return;
    fit_line(trend);
}

void mt_trend_make(const struct mt_report *report, const struct mt_device_report *device,
                   struct mt_trend *trend)
{
    mt_trend_fit(report, device, trend);
    trend->growth = find_growth(device);
    trend->verdict = judge(trend, device);
}

enum mt_growth_basis mt_growth_basis(const struct mt_report *report,
                                     const struct mt_device_report *device)
{
    if (device->growth.judged)
        return MT_GROWTH_JUDGED;
    if (!device->step_count)
        return MT_GROWTH_NO_STEPS;
    return mt_judged_steps(report, device).count < MT_GROWTH_MIN_STEPS ? MT_GROWTH_FEW_STEPS
                                                                       : MT_GROWTH_MANY_BLOCKS;
}
