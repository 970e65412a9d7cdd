#include "chart.h"

#include <stddef.h>

static bool has_steps(const struct mt_report *report, const struct mt_device_report *device)
{
    (void)report;
    return device && device->step_count;
}

/* Enough to look where it lies: over 15 %, or over 1 GiB. */
static bool wastes_memory(const struct mt_report *report, const struct mt_device_report *device)
{
    (void)report;
    return device && device->address &&
           (device->fragmentation_at_reserved_peak > 0.15 ||
            device->worst_unused_bytes > UINT64_C(1) << 30);
}

const struct mt_chart mt_charts[] = {
    {"timeline", "memory over time by role, with what is reserved", MT_MODEL_TIMELINE, NULL,
     mt_timeline_draw},
    {"icicle", "who holds memory at the peak: call stacks as wide as their bytes", 0, NULL,
     mt_icicle_draw},
    {"flamechart", "step, phases and call stacks over time, coloured by what they did to memory",
     MT_MODEL_TIMELINE | MT_MODEL_FLAMECHART, NULL, mt_flamechart_draw},
    {"blocks", "every large block of one step as a shape of its own, from birth to end",
     MT_MODEL_TIMELINE | MT_MODEL_BLOCKS, has_steps, mt_blocks_draw},
    {"trend", "memory from step to step: does it grow?", 0, mt_trend_called_for, mt_trend_draw},
    {"scatter", "size and lifetime of every allocation", MT_MODEL_LIFETIMES, mt_scatter_called_for,
     mt_scatter_draw},
    {"address", "segments over time: what is in them, and what is reserved and idle",
     MT_MODEL_TIMELINE | MT_MODEL_ADDRESS, wastes_memory, mt_address_draw},
    {NULL, NULL, 0, NULL, NULL},
};

unsigned mt_charts_models(void)
{
    unsigned models = 0;

    for (size_t i = 0; mt_charts[i].name; i++)
        models |= mt_charts[i].models;
    return models;
}
