/* Memory from step to step: the steps that count, the trend of the memory allocated at their ends,
 * and the verdict of the finding "growth". Findings and pictures use these steps, so they refer to
 * the same ones. */
#ifndef MT_ANALYZER_TREND_H
#define MT_ANALYZER_TREND_H

#include "report.h"

#define MT_TREND_MIN_STEPS  5 /* fewer are no trend */
#define MT_GROWTH_MIN_STEPS 8 /* for a verdict: four that count, two of warm-up, the last two */

/* How many of the first `steps` steps are warm-up: two, or a quarter if that is more. */
static inline uint32_t mt_warm_up_steps(uint32_t steps)
{
    return steps / 4 > 2 ? steps / 4 : 2;
}

/* Slope of values at 0, 1, 2, ...: the median of the slopes of all pairs (Theil-Sen), rounded to
 * whole bytes; outliers do not change it. O(n log n); with more than 2^13 values, only every
 * second, third, ... is used. count >= 2, values below 2^53. */
void mt_robust_slope(const uint64_t *values, uint32_t count, int64_t *slope);

enum mt_trend_verdict {
    MT_TREND_TOO_SHORT,  /* fewer than MT_TREND_MIN_STEPS */
    MT_TREND_NOT_JUDGED, /* long enough for a slope, not for a verdict */
    MT_TREND_GROWS,      /* the finding reports growth */
    MT_TREND_STEADY      /* no memory left behind by steps makes it grow */
};

struct mt_trend {
    const struct mt_step_use *steps; /* those considered: of one loop */
    uint32_t count;
    uint32_t begin, end; /* indices in these (from 0): the steps of the slope, without warm-up and
                            without a truncated last one */
    bool has_slope;
    int64_t bytes_per_step; /* the slope */
    int64_t level_bytes;    /* of the line at `begin` */
    enum mt_trend_verdict verdict;
    const struct mt_finding *growth; /* NULL = none */
};

/* The steps and the slope, without verdict and growth, which follow from the findings. */
void mt_trend_fit(const struct mt_report *report, const struct mt_device_report *device,
                  struct mt_trend *trend);
/* All fields, from a report with its findings. */
void mt_trend_make(const struct mt_report *report, const struct mt_device_report *device,
                   struct mt_trend *trend);

/* Whether the memory left behind by steps was judged, and if not, why. */
enum mt_growth_basis {
    MT_GROWTH_JUDGED,
    MT_GROWTH_NO_STEPS,
    MT_GROWTH_FEW_STEPS,  /* in the recording: fewer than MT_GROWTH_MIN_STEPS */
    MT_GROWTH_MANY_BLOCKS /* more outlive their step than can be followed */
};

/* For a report with its findings. */
enum mt_growth_basis mt_growth_basis(const struct mt_report *report,
                                     const struct mt_device_report *device);

#endif
