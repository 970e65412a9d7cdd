/* Blocks by role, framework segments, other driver memory, and NVML's value beyond these are
 * counted separately. The rest of the device is free, or was not seen. */
#include "fill_device_parts.h"

#include "analysis.h"
#include "report_query.h"
#include "util.h"

#include <string.h>

static uint64_t role_bytes(const struct mt_device_report *device, const struct mt_snapshot *peak,
                           enum mt_role role)
{
    uint64_t bytes = device->peak_role_bytes[role];

    return bytes - mt_min_u64(bytes, peak->pool_role_bytes[role]);
}

/* Weights, caches and workspaces count as such in any pool. */
static uint64_t pool_bytes(const struct mt_snapshot *peak, const struct mt_driver_level *then)
{
    static const enum mt_role told[] = {MT_ROLE_PARAMETERS, MT_ROLE_KV_CACHE, MT_ROLE_WORKSPACE};
    uint64_t own = 0, all = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(told); i++)
        own += peak->pool_role_bytes[told[i]];
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        all += peak->pool_role_bytes[role];
    /* segments of old traces do not name their pool */
    return mt_max_u64(then->pool_bytes, all) - own;
}

static void fill_blocks(struct mt_device_parts *device_parts, const struct mt_device_report *device,
                        const struct mt_snapshot *peak, const struct mt_driver_level *then)
{
    device_parts->parts[MT_DEVICE_WEIGHTS] = device->peak_role_bytes[MT_ROLE_PARAMETERS];
    device_parts->parts[MT_DEVICE_KV_CACHE] = device->peak_role_bytes[MT_ROLE_KV_CACHE];
    device_parts->parts[MT_DEVICE_WORKSPACES] = device->peak_role_bytes[MT_ROLE_WORKSPACE];
    device_parts->parts[MT_DEVICE_ACTIVATIONS] = role_bytes(device, peak, MT_ROLE_ACTIVATIONS) +
                                                 role_bytes(device, peak, MT_ROLE_TEMPORARIES) +
                                                 role_bytes(device, peak, MT_ROLE_INPUTS);
    device_parts->parts[MT_DEVICE_OTHER] = role_bytes(device, peak, MT_ROLE_OTHER) +
                                           role_bytes(device, peak, MT_ROLE_GRADIENTS) +
                                           role_bytes(device, peak, MT_ROLE_OPTIMIZER_STATE);
    device_parts->parts[MT_DEVICE_GRAPHS] = pool_bytes(peak, then);
}

/* Sets the rest of `whole` after the first `count` parts; returns false if they exceed it. */
static bool take_rest(struct mt_device_parts *device_parts, int count, uint64_t whole,
                      enum mt_device_part rest)
{
    uint64_t sum = 0;

    for (int i = 0; i < count; i++)
        if (!mt_add_ok(sum, device_parts->parts[i], &sum))
            return false;
    if (sum > whole)
        return false;
    device_parts->parts[rest] = whole - sum;
    return true;
}

/* Growth of the context up to NVML's largest sample: modules are loaded when kernels are called. */
static uint64_t context_growth(const struct mt_device_parts *device_parts,
                               const struct mt_residual *residual)
{
    const uint64_t largest =
        residual->used_bytes - mt_min_u64(residual->used_bytes, residual->tracked_bytes);

    return largest - mt_min_u64(largest, device_parts->parts[MT_DEVICE_CONTEXT]);
}

/* Segments, libraries and the context may later take more than at the allocated peak, and a larger
 * cache must leave room for that. */
static uint64_t spare_bytes(const struct mt_device_parts *device_parts,
                            const struct mt_driver_report *driver)
{
    const uint64_t later = driver->peak.bytes - mt_min_u64(driver->peak.bytes, driver->then.bytes) +
                           context_growth(device_parts, &driver->residual);
    const uint64_t free_bytes = device_parts->parts[MT_DEVICE_FREE];

    return free_bytes - mt_min_u64(free_bytes, later);
}

static bool fill_parts(struct mt_device_parts *device_parts, const struct mt_device_report *device,
                       const struct mt_snapshot *peak, const struct mt_driver_report *driver)
{
    const struct mt_residual *residual = &driver->residual;

    fill_blocks(device_parts, device, peak, &driver->then);
    if (!take_rest(device_parts, MT_DEVICE_UNUSED, driver->then.framework_bytes, MT_DEVICE_UNUSED))
        return false;
    device_parts->parts[MT_DEVICE_LIBRARIES] = driver->then.bytes - driver->then.framework_bytes;
    device_parts->context_is_known = residual->has_peak_sample;
    device_parts->context_t_ns = residual->peak_t_ns;
    device_parts->context_event = residual->peak_event;
    device_parts->samples = residual->samples;
    device_parts->parts[MT_DEVICE_CONTEXT] = residual->peak_bytes;
    if (!take_rest(device_parts, MT_DEVICE_FREE, device_parts->total_bytes, MT_DEVICE_FREE))
        return false;
    device_parts->spare_bytes = spare_bytes(device_parts, driver);
    device_parts->died = mt_fatal_oom(device);
    return true;
}

static uint64_t total_bytes(const struct mt_symbols *symbols, uint16_t device)
{
    return device < symbols->device_count ? symbols->devices[device].total_memory_bytes : 0;
}

void mt_report_fill_device_parts(struct mt_analysis *analysis, const struct mt_snapshot *peak,
                                 struct mt_device_report *out)
{
    const struct mt_report *report = analysis->report;
    const struct mt_driver_report *driver = mt_driver_of(report, out->device);
    struct mt_device_parts device_parts = {.total_bytes =
                                               total_bytes(report->symbols, out->device)};

    if (!peak || !driver || !driver->has_calls || !driver->has_then || report->saw_backward ||
        report->what_if || !out->peak_role_bytes[MT_ROLE_KV_CACHE] || !device_parts.total_bytes ||
        driver->then.framework_bytes > driver->then.bytes ||
        !fill_parts(&device_parts, out, peak, driver))
        return;
    out->device_parts = mt_arena_alloc(&analysis->report->arena, sizeof *out->device_parts);
    *out->device_parts = device_parts;
}
